/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what an optimiser keeps from step to step. Thread: the one of its trainer. */
#include "sgp/optimizer.h"

#include "sgp/buffer.h"
#include "sgp/kernels.h"

#include <math.h>
#include <string.h>

/* ---- rules ---- */

struct rule {
    const char
        *vectors[SGP_OPTIMIZER_VECTORS_MAX]; /* their names in a checkpoint; those in use first */
    void (*step)(
        struct sgp_optimizer *optimizer, float *x, const float *gradient, float rate, float decay);
};

static void step_sgd(
    struct sgp_optimizer *optimizer, float *x, const float *gradient, float rate, float decay)
{
    sgp_kernels_best()->sgd(x, gradient, rate, decay, optimizer->parameters);
}

static void step_momentum(
    struct sgp_optimizer *optimizer, float *x, const float *gradient, float rate, float decay)
{
    sgp_kernels_best()->momentum(x, optimizer->vectors[0], gradient, rate,
        (float)optimizer->settings.momentum, decay, optimizer->parameters);
}

static void step_nesterov(
    struct sgp_optimizer *optimizer, float *x, const float *gradient, float rate, float decay)
{
    sgp_kernels_best()->nesterov(x, optimizer->vectors[0], gradient, rate,
        (float)optimizer->settings.momentum, decay, optimizer->parameters);
}

static const struct rule rules[] = {
    [SGP_OPTIMIZER_SGD] = {.step = step_sgd},
    [SGP_OPTIMIZER_MOMENTUM] = {.vectors = {"velocity"}, .step = step_momentum},
    [SGP_OPTIMIZER_NESTEROV] = {.vectors = {"velocity"}, .step = step_nesterov},
};
#define RULES (sizeof rules / sizeof rules[0])

uint32_t sgp_optimizer_vectors(enum sgp_optimizer_kind kind)
{
    uint32_t count = 0;
    while (count < SGP_OPTIMIZER_VECTORS_MAX && rules[kind].vectors[count])
        count++;
    return count;
}

/* ---- an optimiser ---- */

int sgp_optimizer_check(const struct sgp_optimizer_settings *settings, struct sgp_error *error)
{
    if ((size_t)settings->kind >= RULES || !rules[settings->kind].step)
        return sgp_fail(error, SGP_E_CONFIG, "unknown optimizer kind %d", (int)settings->kind);
    if (!(settings->momentum >= 0.0 && settings->momentum < 1.0))
        return sgp_fail(error, SGP_E_CONFIG,
            "a momentum of %g is not at least 0 and below 1; 0.9 is usual", settings->momentum);
    if (!(isfinite(settings->weight_decay) && settings->weight_decay >= 0.0))
        return sgp_fail(error, SGP_E_CONFIG,
            "a weight decay of %g is not finite and at least 0; 1e-4 is usual",
            settings->weight_decay);
    return 0;
}

int sgp_optimizer_init(struct sgp_optimizer *optimizer,
    const struct sgp_optimizer_settings *settings, uint64_t parameters)
{
    *optimizer = (struct sgp_optimizer){0};
    if (parameters == 0 || parameters > SGP_PARAMETERS_MAX)
        return SGP_E_LIMIT;
    for (uint32_t i = 0; i < sgp_optimizer_vectors(settings->kind); i++) {
        int status = sgp_vector_create(parameters, &optimizer->vectors[i]);
        if (status < 0) {
            sgp_optimizer_finish(optimizer);
            return status;
        }
    }
    optimizer->settings = *settings;
    optimizer->parameters = parameters;
    return 0;
}

void sgp_optimizer_finish(struct sgp_optimizer *optimizer)
{
    for (uint32_t i = 0; i < SGP_OPTIMIZER_VECTORS_MAX; i++)
        sgp_vector_destroy(optimizer->vectors[i]);
    *optimizer = (struct sgp_optimizer){0};
}

void sgp_optimizer_step(
    struct sgp_optimizer *optimizer, float *x, const float *gradient, double weight, double rate)
{
    float decay = (float)(optimizer->settings.weight_decay / weight);
    rules[optimizer->settings.kind].step(optimizer, x, gradient, (float)rate, decay);
}

void sgp_optimizer_state(const struct sgp_optimizer *optimizer, struct sgp_trainer_state *state)
{
    const struct rule *rule = &rules[optimizer->settings.kind];
    for (uint32_t i = 0; i < sgp_optimizer_vectors(optimizer->settings.kind); i++)
        sgp_state_add_vector(state, rule->vectors[i], optimizer->vectors[i]);
}

void sgp_optimizer_resume(struct sgp_optimizer *optimizer, const struct sgp_trainer_state *state)
{
    const struct rule *rule = &rules[optimizer->settings.kind];
    uint32_t count = sgp_optimizer_vectors(optimizer->settings.kind), found = 0;
    while (found < count && sgp_state_vector(state, rule->vectors[found]))
        found++;
    size_t bytes = optimizer->parameters * sizeof(float);
    for (uint32_t i = 0; i < count; i++)
        if (found == count)
            memcpy(optimizer->vectors[i], sgp_state_vector(state, rule->vectors[i]), bytes);
        else
            memset(optimizer->vectors[i], 0, bytes);
}
