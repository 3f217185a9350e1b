/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisers: what one gradient does to the biased numerator x (Assran et al. 2019, Algorithm 1).
 *
 * With g the gradient at z = x / w plus weight_decay * z, and m the momentum coefficient:
 *
 *   sgd                         x -= rate * g
 *   momentum   u = m * u + g    x -= rate * u
 *   nesterov   u = m * u + g    x -= rate * (g + m * u)
 *
 * The rate is applied to x as it is, without a factor w. The velocity u is local to the node and
 * never shared. One fused pass over memory; every instruction set gives the same bits.
 *
 * Thread: an optimizer belongs to the thread of its trainer. */
#ifndef SGP_OPTIMIZER_H
#define SGP_OPTIMIZER_H

#include "sgp/status.h"

enum sgp_optimizer_kind { SGP_OPTIMIZER_SGD = 1, SGP_OPTIMIZER_MOMENTUM, SGP_OPTIMIZER_NESTEROV };

struct sgp_optimizer_settings {
    enum sgp_optimizer_kind kind;
    double momentum;     /* [0, 1); not used by sgd */
    double weight_decay; /* finite, >= 0; acts on the estimate z, biases included */
};

struct sgp_optimizer {
    struct sgp_optimizer_settings settings;
    uint64_t parameters;
    float *velocity; /* u, parameters values, owned; NULL for sgd */
};

/* Whether the settings are in range: 0, or SGP_E_CONFIG with *error filled. */
SGP_API int sgp_optimizer_check(
    const struct sgp_optimizer_settings *settings, struct sgp_error *error);

/* Start with a velocity of zeros. The settings must be checked. Returns 0, SGP_E_LIMIT (parameters
 * not in 1..SGP_PARAMETERS_MAX) or -ENOMEM; on failure *optimizer is all zero. */
SGP_API int sgp_optimizer_init(struct sgp_optimizer *optimizer,
    const struct sgp_optimizer_settings *settings, uint64_t parameters);
SGP_API void sgp_optimizer_finish(struct sgp_optimizer *optimizer);

/* One step with the gradient of the loss at x / weight (weight > 0), at a learning rate >= 0. */
SGP_API void sgp_optimizer_step(
    struct sgp_optimizer *optimizer, float *x, const float *gradient, double weight, double rate);

#endif
