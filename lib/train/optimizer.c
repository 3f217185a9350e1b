/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the velocity of an optimizer. Thread: the one of its trainer. */
#include "sgp/optimizer.h"

#include "sgp/buffer.h"
#include "sgp/kernels.h"

#include <math.h>
#include <string.h>

int sgp_optimizer_check(const struct sgp_optimizer_settings *settings, struct sgp_error *error)
{
    if (settings->kind < SGP_OPTIMIZER_SGD || settings->kind > SGP_OPTIMIZER_NESTEROV)
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
    if (settings->kind != SGP_OPTIMIZER_SGD) {
        int status = sgp_vector_create(parameters, &optimizer->velocity);
        if (status < 0)
            return status;
    }
    optimizer->settings = *settings;
    optimizer->parameters = parameters;
    return 0;
}

void sgp_optimizer_finish(struct sgp_optimizer *optimizer)
{
    sgp_vector_destroy(optimizer->velocity);
    *optimizer = (struct sgp_optimizer){0};
}

void sgp_optimizer_step(
    struct sgp_optimizer *optimizer, float *x, const float *gradient, double weight, double rate)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    float m = (float)optimizer->settings.momentum;
    float decay = (float)(optimizer->settings.weight_decay / weight);
    switch (optimizer->settings.kind) {
    case SGP_OPTIMIZER_SGD:
        kernels->sgd(x, gradient, (float)rate, decay, optimizer->parameters);
        break;
    case SGP_OPTIMIZER_MOMENTUM:
        kernels->momentum(
            x, optimizer->velocity, gradient, (float)rate, m, decay, optimizer->parameters);
        break;
    case SGP_OPTIMIZER_NESTEROV:
        kernels->nesterov(
            x, optimizer->velocity, gradient, (float)rate, m, decay, optimizer->parameters);
        break;
    }
}
