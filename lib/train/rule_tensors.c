/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of steps by layer, and the norm of a gradient. Pure. Any thread. */
#include "rule.h"

#include <math.h>

uint32_t sgp_rule_tensors(const struct sgp_optimizer *optimizer)
{
    return optimizer->tensors.count > 0 ? optimizer->tensors.count : 1;
}

struct sgp_rule_tensor sgp_rule_tensor_at(const struct sgp_optimizer *optimizer, uint32_t index)
{
    if (optimizer->tensors.count == 0)
        return (struct sgp_rule_tensor){0, optimizer->parameters, true};
    const struct sgp_tensor_end *end = &optimizer->tensors.ends[index];
    uint64_t first = index > 0 ? end[-1].end : 0;
    return (struct sgp_rule_tensor){first, end->end - first, end->has_columns};
}

double sgp_rule_norm(const struct sgp_optimizer *optimizer, const float *gradient,
    const float *deviation, uint64_t count)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    double squares = kernels->squares(gradient, count), fraction, rest;
    if (deviation == NULL)
        return sqrt(squares);
    fraction = optimizer->settings.noise_fraction;
    rest = squares - (1 - fraction) * kernels->squares(deviation, count);
    return sqrt(fmax(rest, fraction * squares));
}
