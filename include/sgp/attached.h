/* SPDX-License-Identifier: Apache-2.0 */
/* The trainer of an attached program. The program takes the steps in turns, in shared memory
 * (sgp/attach.h).
 *
 * x may change while the program computes with its estimate, because a turn is not a job of the
 * compute thread. The program's work is the difference from the estimate that it was given. This
 * difference is added to the x of that later time, as with a delayed share (OSGP: Assran et al.
 * 2019). An update, u = z' - z, counts once: x += pace u. A value replaces the previous value: x +=
 * w (z' - z).
 *
 * The trainer keeps two vectors beside x: the estimate handed out, and the memory itself.
 *
 * Thread: as every trainer, see sgp/trainer.h. `train` is NULL; `evaluate` finds no rows; `go_to`
 * does nothing. */
#ifndef SGP_ATTACHED_H
#define SGP_ATTACHED_H

#include "sgp/outer.h"
#include "sgp/trainer.h"

/* limit for the change of a value in one turn; a larger change or a NaN is refused */
#define SGP_ATTACHED_STEP_MAX 1e18f

struct sgp_attached;

struct sgp_attached_settings {
    uint64_t parameters;  /* d */
    uint64_t values_from; /* the first parameter that is a value; d: none is */
    struct sgp_outer_settings outer;
};

/* Create with an x of zeros. Returns 0, SGP_E_LIMIT, -ENOMEM, or SGP_E_CONFIG with *error for the
 * outer step. */
int sgp_attached_create(const struct sgp_attached_settings *settings, struct sgp_error *error,
    struct sgp_attached **ret_attached);

/* The same object as a trainer, destroyed once, by either name. */
struct sgp_trainer *sgp_attached_trainer(struct sgp_attached *attached);

/* memory[0..d) = x / weight, weight > 0. The estimate is kept for sgp_attached_take_back. Returns
 * true if the estimate does not continue the previous estimate: x was adopted from another node, or
 * resumed. */
bool sgp_attached_hand_out(struct sgp_attached *attached, double weight, float *memory);

/* Fold the program's result into x. `weight` and `pace` are those of the turn. `assigned`: all
 * tensors hold values. The memory is read once. Returns 0, and in *ret_update the digest of the
 * updates (sgp/update.h), 0 for values. If a value moved further than SGP_ATTACHED_STEP_MAX,
 * returns SGP_E_DIVERGED. Then x is unchanged, and *ret_first is the first such value. */
int sgp_attached_take_back(struct sgp_attached *attached, double weight, double pace, bool assigned,
    const float *memory, uint64_t *ret_update, uint64_t *ret_first);

#endif
