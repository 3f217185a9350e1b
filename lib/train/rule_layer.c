/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of LARS and LAMB, whose length is proportional to the parameters of each tensor. Thread:
 * the trainer's; no state. */
#include "rule.h"

#include <float.h>
#include <math.h>

/* The factor as a float. If the gradient of a tensor is almost 0, the greatest float is enough. */
static float nearest(double factor)
{
    return factor < (double)FLT_MAX ? (float)factor : FLT_MAX;
}

/* You, Gitman, Ginsburg 2017, equation 6. Their velocity includes the rate. Here the rate is
 * applied afterwards, as in the other rules. So a step at rate 0 changes nothing. */
static void lars_tensor(const struct sgp_optimizer *optimizer, struct sgp_rule_tensor tensor,
    float *x, const float *gradient, const float *deviation, double weight, float rate)
{
    const struct sgp_optimizer_settings *settings = &optimizer->settings;
    const struct sgp_kernels *kernels = sgp_kernels_best();
    double ratio = 1, decay = 0;
    if (tensor.has_columns) {
        double z = sqrt(kernels->squares(x + tensor.first, tensor.count)) / weight;
        double g = sgp_rule_norm(optimizer, gradient + tensor.first,
            deviation != NULL ? deviation + tensor.first : NULL, tensor.count);
        decay = settings->weight_decay;
        ratio = z > 0 && g > 0 ? z / (g + decay * z) : 1;
    }
    kernels->lars(x + tensor.first, optimizer->vectors[0] + tensor.first, gradient + tensor.first,
        rate, (float)settings->momentum, nearest(settings->trust * ratio), (float)(decay / weight),
        tensor.count);
}

static void step_lars(struct sgp_optimizer *optimizer, float *x, const float *gradient,
    const float *deviation, double weight, double rate)
{
    for (uint32_t i = 0; i < sgp_rule_tensors(optimizer); i++)
        lars_tensor(optimizer, sgp_rule_tensor_at(optimizer, i), x, gradient, deviation, weight,
            (float)rate);
}

const struct sgp_rule sgp_rule_lars = {.vectors = {"scaled velocity"},
    .uses = SGP_USES_MOMENTUM | SGP_USES_TRUST | SGP_USES_NOISE,
    .step = step_lars};

/* You et al. 2020, algorithm 2, with phi(|z|) = |z|. */
static void step_lamb(struct sgp_optimizer *optimizer, float *x, const float *gradient,
    const float *deviation, double weight, double rate)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    const float *seen = sgp_rule_deviation(gradient, deviation);
    struct sgp_adam adam = sgp_rule_adam_of(optimizer, deviation, rate);
    for (uint32_t i = 0; i < sgp_rule_tensors(optimizer); i++) {
        struct sgp_rule_tensor tensor = sgp_rule_tensor_at(optimizer, i);
        float *mean = optimizer->vectors[0] + tensor.first;
        float *square = optimizer->vectors[1] + tensor.first;
        float *noise = sgp_rule_part(optimizer->vectors[2], tensor.first);
        adam.rate = (float)rate;
        adam.decay = 0;
        if (!tensor.has_columns) {
            kernels->adam(x + tensor.first, mean, square, noise, gradient + tensor.first,
                seen + tensor.first, &adam, tensor.count);
            continue;
        }
        struct sgp_lamb_sums sums;
        adam.decay = (float)(optimizer->settings.weight_decay / weight);
        kernels->lamb_moments(&sums, mean, square, noise, x + tensor.first, gradient + tensor.first,
            seen + tensor.first, &adam, tensor.count);
        /* d|^2 of the mean over nodes */
        double d = fmax(sums.r - sums.q, optimizer->settings.noise_fraction * sums.r);
        if (sums.x > 0 && d > 0)
            adam.rate = nearest(rate * (sqrt(sums.x) / weight / sqrt(d)));
        kernels->lamb(x + tensor.first, mean, square, noise, &adam, tensor.count);
    }
}

const struct sgp_rule sgp_rule_lamb = {SGP_RULE_OF_ADAM, .step = step_lamb};
