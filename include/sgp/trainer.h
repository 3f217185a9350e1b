/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between the gossip core and the models.
 *
 * A trainer owns the biased numerator x (float32, `parameters` values). The core owns the weight w,
 * and passes it to each call. The model in use is the estimate z = x / w. This table is implemented
 * by the built-in models (sgp_learner) and by a quadratic for simulations. A model in another
 * process can implement it, too.
 *
 * Thread: calls on one trainer come one after the other, in the order in which the core emitted
 * them. They come from the compute thread, or from another thread while the compute thread is idle.
 * No call allocates after creation. */
#ifndef SGP_TRAINER_H
#define SGP_TRAINER_H

#include "sgp/codec.h"
#include "sgp/sketch.h"
#include "sgp/status.h"

#include <stdatomic.h>

struct sgp_training {     /* the result of a `train` call */
    uint64_t samples;     /* rows used */
    double loss;          /* mean over these rows, each at the estimate of its own step */
    double epoch;         /* epochs done since the start, fractional */
    double learning_rate; /* of the last step */
    /* digest of all steps (sgp/update.h); 0: the steps changed nothing, or the digest is not
     * known */
    uint64_t update;
};

struct sgp_evaluation { /* the quality of the estimate on held-out rows */
    uint64_t samples;   /* 0 if the trainer has none */
    double loss;
    double accuracy; /* fraction in [0, 1]; NaN for numbers */
};

/* compares another node's estimate, a share, with the node's own: see `distance` in
 * sgp/kernels.h */
struct sgp_comparison {
    const float *own; /* `parameters` values that were published with own_weight */
    double own_weight;
    double their_weight; /* when the other node's values were published */
    /* out: the squares of the distance, and of the length of the own estimate, over a sample of the
     * slice */
    double difference, norm;
};

#define SGP_STATE_NAME_BYTES 24u /* of a vector or a counter, with the 0 at the end */
#define SGP_STATE_VECTORS_MAX 12u
#define SGP_STATE_COUNTERS_MAX 4u
#define SGP_STATE_STEPS                                                                            \
    "steps" /* taken since the start: the position in the data and in the schedule */

#define SGP_STATE_LOCAL "local" /* the vector of the parameters that stay local */

struct sgp_state_vector {
    char name[SGP_STATE_NAME_BYTES];
    const float *values; /* borrowed */
    uint64_t count;      /* of them: that of x, or of parameters that stay local */
};

struct sgp_state_counter {
    char name[SGP_STATE_NAME_BYTES];
    uint64_t value;
};

/* The whole state that later steps depend on. Only the owners know which vectors and counters exist
 * beside x. The owners are the optimiser (sgp/optimizer.h), the outer step (sgp/outer.h), and the
 * trainers that count steps. All zero: no state. */
struct sgp_trainer_state {
    const float *x; /* the biased numerator */
    uint32_t vector_count, counter_count;
    struct sgp_state_vector vectors[SGP_STATE_VECTORS_MAX];
    struct sgp_state_counter counters[SGP_STATE_COUNTERS_MAX];
};

/* The `count` values of that name, or NULL. */
const float *sgp_state_vector(
    const struct sgp_trainer_state *state, const char *name, uint64_t count);
/* The counter of that name, or 0. */
uint64_t sgp_state_counter(const struct sgp_trainer_state *state, const char *name);
/* Add a vector, or a counter. The caller must check that the name is new and fits, and that there
 * is room. */
void sgp_state_add_vector(
    struct sgp_trainer_state *state, const char *name, const float *values, uint64_t count);
void sgp_state_add_counter(struct sgp_trainer_state *state, const char *name, uint64_t value);

struct sgp_trainer;
struct sgp_measures;

struct sgp_trainer_methods {
    /* NULL: the steps are taken elsewhere, in turns (sgp/attached.h). Otherwise take `steps`
     * optimiser steps from the estimate x / weight (weight > 0). Each step is x -= pace * eta *
     * step(gradient at x / weight), with pace > 0. Returns 0, or SGP_E_DIVERGED if a loss was not
     * finite. Then x is left as it was before the failing step. */
    int (*train)(struct sgp_trainer *trainer, double weight, uint32_t steps, double pace,
        struct sgp_training *ret_training);
    /* *snapshot = x, then x *= keep, the part of the mass that this node keeps. The memory is
     * exchanged, not copied. The trainer takes over *snapshot, a vector of `parameters` floats
     * (sgp/buffer.h), whose content does not matter. The caller receives another vector in its
     * place. The caller must not write to that vector before it passes the vector to publish or
     * copy again. Until all of x has changed, the trainer reads the rest from there. */
    void (*publish)(struct sgp_trainer *trainer, float **snapshot, float keep);
    /* Publish a range: (*snapshot)[first + i] = x[first + i], then x[first + i] *= keep, for i <
     * count. The values are copied. Elsewhere both vectors are unchanged. Later jobs may write
     * other ranges of the same snapshot. */
    void (*copy)(struct sgp_trainer *trainer, float *const *snapshot, float keep, uint64_t first,
        uint64_t count);
    /* x[first + i] += fraction * (*share)[i] for i < count; each product is rounded to float32
     * first. A whole share (first = 0, count = parameters) may be exchanged for another vector of
     * as many floats, whose content does not matter. `comparison`, unless NULL, is filled in the
     * same pass. */
    void (*absorb)(struct sgp_trainer *trainer, float **share, float fraction, uint64_t first,
        uint64_t count, struct sgp_comparison *comparison);
    /* x = *values, `parameters` floats (sgp/buffer.h), by an exchange of the memory. The values are
     * what x would be after absorbing. They were computed while the share arrived. */
    void (*take)(struct sgp_trainer *trainer, float **values);
    /* As absorb, without an exchange: `share` is only read. */
    void (*restore)(struct sgp_trainer *trainer, const float *share, float fraction, uint64_t first,
        uint64_t count);
    /* x = factor * values[0..parameters), factor >= 0. The optimiser resets its momentum, and the
     * outer step its position. */
    void (*adopt)(struct sgp_trainer *trainer, const float *values, double factor);
    /* x[first + i] *= factor for i < count; factor >= 0. With factor 0 every value becomes zero,
     * even a NaN. */
    void (*scale)(struct sgp_trainer *trainer, double factor, uint64_t first, uint64_t count);
    /* Exchange x and *values, `parameters` floats (sgp/buffer.h). A job can thus use other
     * parameters, and restore x by another call. */
    void (*exchange)(struct sgp_trainer *trainer, float **values);
    /* Take the outer step (sgp/outer.h) from the estimate x / weight, weight > 0. The core calls
     * this only if the trainer was created with an outer step. */
    void (*outer)(struct sgp_trainer *trainer, double weight);
    /* Evaluate x / weight on the held-out rows. Reads only. -ECANCELED: `cut` was set. */
    int (*evaluate)(
        struct sgp_trainer *trainer, double weight, struct sgp_evaluation *ret_evaluation);
    /* As evaluate, and init *ret_measures (sgp/measures.h) and add the held-out rows to it. Also
     * -ENOMEM; on failure nothing is to finish. NULL: the trainer knows no labels. */
    int (*measure)(struct sgp_trainer *trainer, double weight,
        struct sgp_evaluation *ret_evaluation, struct sgp_measures *ret_measures);
    /* estimate[0..parameters) = x / weight. */
    void (*estimate)(const struct sgp_trainer *trainer, double weight, float *estimate);
    /* The sketch of x / weight (sgp/sketch.h), weight > 0. */
    void (*sketch)(struct sgp_trainer *trainer, double weight, struct sgp_sketch *ret_sketch);
    /* values[0..model_values) = the estimate x / weight, weight > 0, and the parameters that stay
     * local (sgp_model_set_local), in the order of a model file. */
    void (*model)(const struct sgp_trainer *trainer, double weight, float *values);
    /* XXH3 of the bits of x: equal digests mean equal models. */
    uint64_t (*digest)(struct sgp_trainer *trainer);
    /* The present state, borrowed until the next call that trains or moves mass. */
    void (*state)(struct sgp_trainer *trainer, struct sgp_trainer_state *ret_state);
    /* Resume from a state, which is copied. x may be NULL to keep the present x, and with it the
     * vectors of the outer step. A state without local parameters leaves them. */
    void (*resume)(struct sgp_trainer *trainer, const struct sgp_trainer_state *state);
    /* Continue from another position. `steps` taken since the start determine the rows of the next
     * batch and the position in the schedule. The parameters are unchanged. */
    void (*go_to)(struct sgp_trainer *trainer, uint64_t steps);
    void (*destroy)(struct sgp_trainer *trainer);
};

/* The first member of every concrete trainer. */
struct sgp_trainer {
    const struct sgp_trainer_methods *methods;
    uint64_t parameters;        /* d */
    uint64_t model_values;      /* d, and the parameters that stay local */
    struct sgp_tensors tensors; /* of the parameters; all zero: unknown */
    /* Another thread sets it to end an evaluation early; the trainer may look at it. Borrowed, and
     * changed by the caller between calls. NULL, as at first: none. */
    const atomic_bool *cut;
};

#endif
