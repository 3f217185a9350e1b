/* SPDX-License-Identifier: Apache-2.0 */
/* What a node does with its parameters: the seam between rounds and models.
 *
 * A trainer owns the biased numerator x (float32, `parameters` values); the core owns the weight w
 * and passes it in. The model in use is the estimate z = x / w. Built-in models live behind this
 * table (sgp_learner), a quadratic for simulations too, and one in another process can.
 *
 * Thread: calls on one trainer come one after the other, in the order in which the core emitted them: from the
 * compute thread, or from another while that has nothing to do. No call allocates after creation. */
#ifndef SGP_TRAINER_H
#define SGP_TRAINER_H

#include "sgp/codec.h"
#include "sgp/sketch.h"
#include "sgp/status.h"

struct sgp_training {     /* what one `train` call did */
    uint64_t samples;     /* rows used */
    double loss;          /* mean over these rows, at the estimates they were computed at */
    double epoch;         /* epochs done since the start, fractional */
    double learning_rate; /* of the last step */
    uint64_t
        update; /* digest of all steps (sgp/update.h); 0: they changed nothing, or it is not known */
};

struct sgp_evaluation { /* how good the estimate is on held-out rows */
    uint64_t samples;   /* 0 if the trainer has none */
    double loss;
    double accuracy; /* fraction in [0, 1]; NaN for numbers */
};

struct
    sgp_comparison { /* of another's estimate, a share, with the node's own: see kernels' `distance` */
    const float *own; /* `parameters` values that were published with own_weight */
    double own_weight;
    double their_weight; /* when theirs were published */
    /* out: square of the distance, and of the length of our own, over a sample of the slice */
    double difference, norm;
};

#define SGP_STATE_NAME_BYTES 24u /* of a vector or a counter, with the 0 at the end */
#define SGP_STATE_VECTORS_MAX 8u
#define SGP_STATE_COUNTERS_MAX 4u
#define SGP_STATE_STEPS                                                                            \
    "steps" /* taken since the start: the position in the data and in the schedule */

struct sgp_state_vector {
    char name[SGP_STATE_NAME_BYTES];
    const float *values; /* `parameters` of them, borrowed */
};

struct sgp_state_counter {
    char name[SGP_STATE_NAME_BYTES];
    uint64_t value;
};

/* All that later steps depend on. Which vectors and counters there are beside x is known to their owners alone: the
 * optimiser (sgp/optimizer.h), the outer step (sgp/outer.h), and whoever counts steps. All zero: none. */
struct sgp_trainer_state {
    const float *x; /* the biased numerator */
    uint32_t vector_count, counter_count;
    struct sgp_state_vector vectors[SGP_STATE_VECTORS_MAX];
    struct sgp_state_counter counters[SGP_STATE_COUNTERS_MAX];
};

/* The values of that name, or NULL. */
const float *sgp_state_vector(const struct sgp_trainer_state *state, const char *name);
/* The counter of that name, or 0. */
uint64_t sgp_state_counter(const struct sgp_trainer_state *state, const char *name);
/* One more of each. A name that is new and fits, and room for it, are the caller's to see to. */
void sgp_state_add_vector(struct sgp_trainer_state *state, const char *name, const float *values);
void sgp_state_add_counter(struct sgp_trainer_state *state, const char *name, uint64_t value);

struct sgp_trainer;

struct sgp_trainer_methods {
    /* NULL: its steps are taken elsewhere, in turns (sgp/attached.h). Else: take `steps` optimiser steps from the estimate x / weight (weight > 0), each
     * x -= pace * eta * step(gradient at x / weight), with pace > 0. Returns 0, or SGP_E_DIVERGED if a loss was not
     * finite: then x is left as it was before the failing step. */
    int (*train)(struct sgp_trainer *trainer, double weight, uint32_t steps, double pace,
        struct sgp_training *ret_training);
    /* *snapshot is x as it is, then x *= keep (what is not given away). The memory is exchanged, not copied:
     * *snapshot, a vector of `parameters` floats (sgp/buffer.h) whose content does not matter, becomes the
     * trainer's, and the one put in its place the caller's, who writes to it no more before it is handed to
     * publish or copy again; until all of x has changed, it is where the trainer reads the rest. */
    void (*publish)(struct sgp_trainer *trainer, float **snapshot, float keep);
    /* Publish a range: (*snapshot)[first + i] = x[first + i], then x[first + i] *= keep, for i <
     * count. The values are copied, and both vectors stay as they are elsewhere. Later jobs may
     * write other ranges of the same snapshot. */
    void (*copy)(struct sgp_trainer *trainer, float *const *snapshot, float keep, uint64_t first,
        uint64_t count);
    /* x[first + i] += fraction * (*share)[i] for i < count; each product is rounded to float32 first. A share
     * that is whole (first = 0, count = parameters) may be exchanged for another vector of as many floats, whose
     * content does not matter. `comparison`, unless NULL, is filled in on the way. */
    void (*absorb)(struct sgp_trainer *trainer, float **share, float fraction, uint64_t first,
        uint64_t count, struct sgp_comparison *comparison);
    /* x is *values, `parameters` floats (sgp/buffer.h), which are exchanged: what absorbing would have made of x,
     * made while the share came. */
    void (*take)(struct sgp_trainer *trainer, float **values);
    /* As absorb, without an exchange: `share` is read only. */
    void (*restore)(struct sgp_trainer *trainer, const float *share, float fraction, uint64_t first,
        uint64_t count);
    /* x = factor * values[0..parameters), factor >= 0; the optimiser forgets its momentum, the outer
     * step where it was. */
    void (*adopt)(struct sgp_trainer *trainer, const float *values, double factor);
    /* x[first + i] *= factor for i < count; factor >= 0, and 0 makes zeros of whatever is there. */
    void (*scale)(struct sgp_trainer *trainer, double factor, uint64_t first, uint64_t count);
    /* x becomes *values, `parameters` floats (sgp/buffer.h), and what x was is there in their place: so that a job may look
     * at other parameters, and put things back by another call. */
    void (*exchange)(struct sgp_trainer *trainer, float **values);
    /* The outer step (sgp/outer.h) from the estimate x / weight, weight > 0. A trainer that has not been given one is
     * not asked for it. */
    void (*outer)(struct sgp_trainer *trainer, double weight);
    /* Evaluate x / weight on the held-out rows. Reads only. */
    int (*evaluate)(
        struct sgp_trainer *trainer, double weight, struct sgp_evaluation *ret_evaluation);
    /* estimate[0..parameters) = x / weight. */
    void (*estimate)(const struct sgp_trainer *trainer, double weight, float *estimate);
    /* The sketch of x / weight (sgp/sketch.h), weight > 0. */
    void (*sketch)(struct sgp_trainer *trainer, double weight, struct sgp_sketch *ret_sketch);
    /* XXH3 of the bits of x: equal digests, equal models. */
    uint64_t (*digest)(struct sgp_trainer *trainer);
    /* The state now, borrowed until the next call that trains or moves mass. */
    void (*state)(struct sgp_trainer *trainer, struct sgp_trainer_state *ret_state);
    /* Go on from a state, which is copied; x may be NULL to keep it as it is. */
    void (*resume)(struct sgp_trainer *trainer, const struct sgp_trainer_state *state);
    /* Go on from another position: `steps` taken since the start decide the rows of the next batch and where the
     * schedule stands. The parameters stay. */
    void (*go_to)(struct sgp_trainer *trainer, uint64_t steps);
    void (*destroy)(struct sgp_trainer *trainer);
};

/* The first member of every concrete trainer. */
struct sgp_trainer {
    const struct sgp_trainer_methods *methods;
    uint64_t parameters;        /* d */
    struct sgp_tensors tensors; /* of the parameters; all zero: not known */
};

#endif
