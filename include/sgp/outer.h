/* SPDX-License-Identifier: Apache-2.0 */
/* Outer steps: a step on the result of training and averaging, where the topology file says
 * `outer=true`.
 *
 * With b the estimate after the last outer step, z the estimate now, and alpha and beta the
 * learning rate and the momentum:
 *
 *   slowmo     v = beta * v + (b - z)    z = b - alpha * v
 *   nesterov   v = beta * v + (b - z)    z = b - alpha * ((b - z) + beta * v)
 *
 * slowmo is that of Wang et al. (SlowMo, 2020), with v in units of parameters; nesterov that of
 * Douillard et al. (DiLoCo, 2023). alpha = 1 and beta = 0 change nothing. b and v are local to the
 * node and never shared: after exact averages alone all nodes have equal ones.
 *
 * Thread: an outer step belongs to the thread of its trainer. */
#ifndef SGP_OUTER_H
#define SGP_OUTER_H

#include "sgp/trainer.h"

enum sgp_outer_kind { SGP_OUTER_NONE = 0, SGP_OUTER_SLOWMO, SGP_OUTER_NESTEROV };

struct sgp_outer_settings {
    enum sgp_outer_kind kind;
    double learning_rate; /* alpha, above 0, at most SGP_OUTER_RATE_MAX */
    double momentum;      /* beta, [0, 1) */
};

#define SGP_OUTER_RATE_MAX 100.0

struct sgp_outer {
    struct sgp_outer_settings settings;
    uint64_t parameters;
    bool begun;               /* b exists */
    float *anchor, *velocity; /* b and v, `parameters` values each, owned; NULL for kind NONE */
};

/* "none", "slowmo", "nesterov". Returns 0, or SGP_E_CONFIG with *error (may be NULL) filled. */
int sgp_outer_kind_parse(const char *text, struct sgp_error *error, enum sgp_outer_kind *ret_kind);

/* Whether the settings are in range: 0, or SGP_E_CONFIG with *error filled. Of kind NONE nothing
 * else is checked. */
int sgp_outer_check(const struct sgp_outer_settings *settings, struct sgp_error *error);

/* Begin with checked settings and without b. Returns 0, SGP_E_LIMIT (parameters not in
 * 1..SGP_PARAMETERS_MAX) or -ENOMEM; on failure *outer is all zero. Of kind NONE nothing is
 * allocated, and no steps are taken. */
int sgp_outer_init(
    struct sgp_outer *outer, const struct sgp_outer_settings *settings, uint64_t parameters);
void sgp_outer_finish(struct sgp_outer *outer);

/* b = x / weight (weight > 0), v = 0. */
void sgp_outer_begin(struct sgp_outer *outer, const float *x, double weight);

/* Forget b: the next step takes the present estimate as b, and changes nothing. */
void sgp_outer_forget(struct sgp_outer *outer);

/* Add b and v to *state, borrowed until the next step; nothing if there is no b. */
void sgp_outer_state(const struct sgp_outer *outer, struct sgp_trainer_state *state);
/* Continue with b and v of *state, which are copied; if it has none, there is no b. */
void sgp_outer_resume(struct sgp_outer *outer, const struct sgp_trainer_state *state);

/* One outer step: x becomes weight times the new estimate, weight > 0. Computed in double, and
 * rounded once for each of b, v, x. */
void sgp_outer_step(struct sgp_outer *outer, float *x, double weight);

#endif
