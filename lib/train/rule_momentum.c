/* SPDX-License-Identifier: Apache-2.0 */
/* Steps along the gradient or a velocity. Thread: the trainer's; no state. */
#include "rule.h"

static float decay_of(const struct sgp_optimizer *optimizer, double weight)
{
    return (float)(optimizer->settings.weight_decay / weight);
}

static void step_sgd(struct sgp_optimizer *optimizer, float *x, const float *gradient,
    const float *deviation, double weight, double rate)
{
    (void)deviation; /* linear in the gradient */
    sgp_kernels_best()->sgd(
        x, gradient, (float)rate, decay_of(optimizer, weight), optimizer->parameters);
}

const struct sgp_rule sgp_rule_sgd = {.step = step_sgd};

static void step_momentum(struct sgp_optimizer *optimizer, float *x, const float *gradient,
    const float *deviation, double weight, double rate)
{
    (void)deviation; /* linear in the gradient */
    sgp_kernels_best()->momentum(x, optimizer->vectors[0], gradient, (float)rate,
        (float)optimizer->settings.momentum, decay_of(optimizer, weight), optimizer->parameters);
}

const struct sgp_rule sgp_rule_momentum = {
    .vectors = {"velocity"}, .uses = SGP_USES_MOMENTUM, .step = step_momentum};

static void step_nesterov(struct sgp_optimizer *optimizer, float *x, const float *gradient,
    const float *deviation, double weight, double rate)
{
    (void)deviation; /* linear in the gradient */
    sgp_kernels_best()->nesterov(x, optimizer->vectors[0], gradient, (float)rate,
        (float)optimizer->settings.momentum, decay_of(optimizer, weight), optimizer->parameters);
}

const struct sgp_rule sgp_rule_nesterov = {
    .vectors = {"velocity"}, .uses = SGP_USES_MOMENTUM, .step = step_nesterov};
