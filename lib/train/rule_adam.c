/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of Adam, AdamW and RMSprop, which divide by the root of a mean square. Thread: the one of the trainer; no state. */
#include "rule.h"

#include <math.h>

/* base^exponent by multiplications alone. The library's pow may differ in the last bit from one
 * processor to the next. */
static double power(double base, uint64_t exponent)
{
    double result = 1;
    for (; exponent > 0; exponent /= 2, base *= base)
        if (exponent % 2 == 1)
            result *= base;
    return result;
}

struct sgp_adam sgp_rule_adam_of(const struct sgp_optimizer *optimizer, double rate)
{
    const struct sgp_optimizer_settings *settings = &optimizer->settings;
    return (struct sgp_adam){.rate = (float)rate,
        .first = (float)(1 - settings->beta1),
        .second = (float)(1 - settings->beta2),
        .mean_scale = (float)(1 / (1 - power(settings->beta1, optimizer->steps))),
        .square_scale = (float)(1 / sqrt(1 - power(settings->beta2, optimizer->steps))),
        .epsilon = (float)settings->epsilon};
}

void sgp_rule_adam(
    struct sgp_optimizer *optimizer, float *x, const float *gradient, double weight, double rate)
{
    struct sgp_adam adam = sgp_rule_adam_of(optimizer, rate);
    adam.coupled = (float)(optimizer->settings.weight_decay / weight);
    sgp_kernels_best()->adam(
        x, optimizer->vectors[0], optimizer->vectors[1], gradient, &adam, optimizer->parameters);
}

void sgp_rule_adamw(
    struct sgp_optimizer *optimizer, float *x, const float *gradient, double weight, double rate)
{
    struct sgp_adam adam = sgp_rule_adam_of(optimizer, rate);
    for (uint32_t i = 0; i < sgp_rule_tensors(optimizer); i++) {
        struct sgp_rule_tensor tensor = sgp_rule_tensor_at(optimizer, i);
        uint64_t first = tensor.first;
        adam.decay = tensor.has_columns ? (float)(optimizer->settings.weight_decay / weight) : 0.0f;
        sgp_kernels_best()->adam(x + first, optimizer->vectors[0] + first,
            optimizer->vectors[1] + first, gradient + first, &adam, tensor.count);
    }
}

void sgp_rule_rmsprop(
    struct sgp_optimizer *optimizer, float *x, const float *gradient, double weight, double rate)
{
    const struct sgp_optimizer_settings *settings = &optimizer->settings;
    sgp_kernels_best()->rmsprop(x, optimizer->vectors[0], gradient, (float)rate,
        (float)(1 - settings->alpha), (float)settings->epsilon,
        (float)(settings->weight_decay / weight), optimizer->parameters);
}
