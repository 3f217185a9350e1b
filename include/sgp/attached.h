/* SPDX-License-Identifier: Apache-2.0 */
/* The trainer of a program: its steps are taken in turns, in memory that both see (sgp/attach.h).
 *
 * A turn is no job: x may change while the program has its estimate. What the program did is a difference from what
 * it was given, so it is added to whatever x is by then, as the step of a share that is late would be (OSGP: Assran et
 * al. 2019). An update, u = z' - z, counts once: x += pace u. A value is what it is: x += w (z' - z).
 *
 * Two vectors beside x: the estimate handed out, and the memory itself.
 * Thread: as every trainer, see sgp/trainer.h. `train` is NULL; `evaluate` finds no rows; `go_to` does nothing. */
#ifndef SGP_ATTACHED_H
#define SGP_ATTACHED_H

#include "sgp/outer.h"
#include "sgp/trainer.h"

#define SGP_ATTACHED_STEP_MAX 1e18f /* of a value, in one turn: more, or no number, is not taken */

struct sgp_attached;

struct sgp_attached_settings {
    uint64_t parameters;  /* d */
    uint64_t values_from; /* the first that is a value; d: none is */
    struct sgp_outer_settings outer;
};

/* x is all zeros. Returns 0, SGP_E_LIMIT, -ENOMEM, or SGP_E_CONFIG with *error for the outer step. */
int sgp_attached_create(const struct sgp_attached_settings *settings, struct sgp_error *error,
    struct sgp_attached **ret_attached);

/* The same object as a trainer, destroyed once, by either name. */
struct sgp_trainer *sgp_attached_trainer(struct sgp_attached *attached);

/* memory[0..d) = x / weight, weight > 0, remembered for sgp_attached_take_back. True: it is another's (adopt), or of another
 * time (resume), and no continuation of what was there before. */
bool sgp_attached_hand_out(struct sgp_attached *attached, double weight, float *memory);

/* Fold what the program made of it; `weight` and `pace` are those of the turn. `assigned`: all are values. The memory is
 * read once. Returns 0, and in *ret_update the digest of the updates (sgp/update.h), 0 for values; SGP_E_DIVERGED if a value moved further than SGP_ATTACHED_STEP_MAX: then x is as it was, and *ret_first the first of them. */
int sgp_attached_take_back(struct sgp_attached *attached, double weight, double pace, bool assigned,
    const float *memory, uint64_t *ret_update, uint64_t *ret_first);

#endif
