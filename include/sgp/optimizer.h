/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisers: what one gradient does to the biased numerator x (Assran et al. 2019, Algorithm 1).
 *
 * With g the gradient at z = x / w plus weight_decay * z, and m the momentum coefficient:
 *
 *   sgd                         x -= rate * g
 *   momentum   u = m * u + g    x -= rate * u
 *   nesterov   u = m * u + g    x -= rate * (g + m * u)
 *
 * The rate is applied to x as it is, without a factor w. What a rule keeps from step to step, here the velocity u, is
 * local to the node and never shared. One fused pass over memory; every instruction set gives the same bits.
 *
 * Thread: an optimizer belongs to the thread of its trainer. */
#ifndef SGP_OPTIMIZER_H
#define SGP_OPTIMIZER_H

#include "sgp/trainer.h"

enum sgp_optimizer_kind { SGP_OPTIMIZER_SGD = 1, SGP_OPTIMIZER_MOMENTUM, SGP_OPTIMIZER_NESTEROV };
#define SGP_OPTIMIZER_WORDS "sgd|momentum|nesterov" /* their names, in the same order */
#define SGP_OPTIMIZER_VECTORS_MAX 2u                /* that a rule keeps */

struct sgp_optimizer_settings {
    enum sgp_optimizer_kind kind;
    double momentum;     /* [0, 1); not used by sgd */
    double weight_decay; /* finite, >= 0; acts on the estimate z, biases included */
};

struct sgp_optimizer {
    struct sgp_optimizer_settings settings;
    uint64_t parameters;
    float *
        vectors[SGP_OPTIMIZER_VECTORS_MAX]; /* that the rule keeps, parameters values each, owned */
};

/* Whether the settings are in range: 0, or SGP_E_CONFIG with *error filled. */
SGP_API int sgp_optimizer_check(
    const struct sgp_optimizer_settings *settings, struct sgp_error *error);

/* How many vectors of its own, as long as x, a rule keeps from step to step. */
SGP_API uint32_t sgp_optimizer_vectors(enum sgp_optimizer_kind kind);

/* Start with vectors of zeros. The settings must be checked. Returns 0, SGP_E_LIMIT (parameters
 * not in 1..SGP_PARAMETERS_MAX) or -ENOMEM; on failure *optimizer is all zero. */
SGP_API int sgp_optimizer_init(struct sgp_optimizer *optimizer,
    const struct sgp_optimizer_settings *settings, uint64_t parameters);
SGP_API void sgp_optimizer_finish(struct sgp_optimizer *optimizer);

/* One step with the gradient of the loss at x / weight (weight > 0), at a learning rate >= 0. */
SGP_API void sgp_optimizer_step(
    struct sgp_optimizer *optimizer, float *x, const float *gradient, double weight, double rate);

/* Add what the rule keeps to *state, borrowed until the next step. */
SGP_API void sgp_optimizer_state(
    const struct sgp_optimizer *optimizer, struct sgp_trainer_state *state);
/* Go on with what *state has of it, which is copied; zeros if that is not all of it. */
SGP_API void sgp_optimizer_resume(
    struct sgp_optimizer *optimizer, const struct sgp_trainer_state *state);

#endif
