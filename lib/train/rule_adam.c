/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of Adam, AdamW and RMSprop, which divide by the root of a mean square. Thread: the
 * trainer's; no state. */
#include "rule.h"

#include <math.h>

/* base^exponent by multiplications alone. The library's pow may differ in the last bit between
 * processors. */
static double power(double base, uint64_t exponent)
{
    double result = 1;
    for (; exponent > 0; exponent /= 2, base *= base)
        if (exponent % 2 == 1)
            result *= base;
    return result;
}

/* Set the constants for leaving out the noise of a gradient. */
static void leave_out_noise(
    struct sgp_adam *adam, const struct sgp_optimizer *optimizer, const float *deviation)
{
    if (optimizer->settings.noise_fraction == 1)
        return;
    adam->fraction = (float)optimizer->settings.noise_fraction;
    adam->noise_second = deviation != NULL ? adam->second : 0;
}

struct sgp_adam sgp_rule_adam_of(
    const struct sgp_optimizer *optimizer, const float *deviation, double rate)
{
    const struct sgp_optimizer_settings *settings = &optimizer->settings;
    double beta = settings->beta1, kept = power(beta, optimizer->steps);
    struct sgp_adam adam = {.rate = (float)rate,
        .first = (float)(1 - beta),
        .second = (float)(1 - settings->beta2),
        .mean_scale = (float)(1 / (1 - kept)),
        .square_scale = (float)(1 / sqrt(1 - power(settings->beta2, optimizer->steps))),
        .epsilon = (float)settings->epsilon};
    leave_out_noise(&adam, optimizer, deviation);
    adam.spread = (float)((1 - settings->noise_fraction) * (1 - beta) * (1 + kept) /
                          ((1 + beta) * (1 - kept)));
    return adam;
}

static void step_adam(struct sgp_optimizer *optimizer, float *x, const float *gradient,
    const float *deviation, double weight, double rate)
{
    struct sgp_adam adam = sgp_rule_adam_of(optimizer, deviation, rate);
    adam.coupled = (float)(optimizer->settings.weight_decay / weight);
    sgp_kernels_best()->adam(x, optimizer->vectors[0], optimizer->vectors[1], optimizer->vectors[2],
        gradient, sgp_rule_deviation(gradient, deviation), &adam, optimizer->parameters);
}

const struct sgp_rule sgp_rule_adam = {SGP_RULE_OF_ADAM, .step = step_adam};

static void step_adamw(struct sgp_optimizer *optimizer, float *x, const float *gradient,
    const float *deviation, double weight, double rate)
{
    struct sgp_adam adam = sgp_rule_adam_of(optimizer, deviation, rate);
    for (uint32_t i = 0; i < sgp_rule_tensors(optimizer); i++) {
        struct sgp_rule_tensor tensor = sgp_rule_tensor_at(optimizer, i);
        uint64_t first = tensor.first;
        adam.decay = tensor.has_columns ? (float)(optimizer->settings.weight_decay / weight) : 0.0f;
        sgp_kernels_best()->adam(x + first, optimizer->vectors[0] + first,
            optimizer->vectors[1] + first, sgp_rule_part(optimizer->vectors[2], first),
            gradient + first, sgp_rule_deviation(gradient, deviation) + first, &adam, tensor.count);
    }
}

const struct sgp_rule sgp_rule_adamw = {SGP_RULE_OF_ADAM, .step = step_adamw};

static void step_rmsprop(struct sgp_optimizer *optimizer, float *x, const float *gradient,
    const float *deviation, double weight, double rate)
{
    const struct sgp_optimizer_settings *settings = &optimizer->settings;
    struct sgp_adam adam = {.rate = (float)rate,
        .coupled = (float)(settings->weight_decay / weight),
        .second = (float)(1 - settings->alpha),
        .square_scale = 1,
        .epsilon = (float)settings->epsilon};
    if (settings->noise_fraction == 1) {
        sgp_kernels_best()->rmsprop(x, optimizer->vectors[0], gradient, adam.rate, adam.second,
            adam.epsilon, adam.coupled, optimizer->parameters);
        return;
    }
    leave_out_noise(&adam, optimizer, deviation);
    sgp_kernels_best()->rmsprop_fleet(x, optimizer->vectors[0], optimizer->vectors[1], gradient,
        sgp_rule_deviation(gradient, deviation), &adam, optimizer->parameters);
}

const struct sgp_rule sgp_rule_rmsprop = {.vectors = {"mean square"},
    .divides = true,
    .uses = SGP_USES_ALPHA | SGP_USES_EPSILON | SGP_USES_NOISE,
    .step = step_rmsprop};
