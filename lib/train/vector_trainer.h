/* SPDX-License-Identifier: Apache-2.0 */
/* What every trainer whose parameters are one flat vector in this process does alike: the methods of
 * sgp/trainer.h that move mass. Thread: the one of the trainer. */
#ifndef SGP_TRAIN_VECTOR_TRAINER_H
#define SGP_TRAIN_VECTOR_TRAINER_H

#include "sgp/kernels.h"
#include "sgp/outer.h"
#include "sgp/trainer.h"

#define SGP_VECTOR_RANGES_MAX 32u /* beyond, x is written */

/* x[i] is keep * source[i], and 0 where keep is 0, for `count` values from the first. */
struct sgp_vector_range {
    uint64_t first, count;
    float keep;
};

struct sgp_vector_trainer {
    struct sgp_trainer trainer; /* first, so that either pointer is the other */
    const struct sgp_kernels *kernels;
    float *
        x; /* the biased numerator; trainer.parameters values, owned; but of no meaning in these ranges, */
    struct sgp_vector_range ranges[SGP_VECTOR_RANGES_MAX]; /* apart, in no order, */
    uint32_t range_count;
    const float *source;    /* where it is keep * source, the snapshot published last; borrowed */
    struct sgp_outer outer; /* of kind NONE until one is begun */
};

/* Allocate x, all zeros. Returns 0, SGP_E_LIMIT or -ENOMEM. */
int sgp_vector_trainer_init(struct sgp_vector_trainer *vector,
    const struct sgp_trainer_methods *methods, uint64_t parameters);
void sgp_vector_trainer_finish(struct sgp_vector_trainer *vector);

/* Take outer steps by checked settings, from x as it is, at weight 1. Once. Returns 0 or -ENOMEM. */
int sgp_vector_trainer_begin_outer(
    struct sgp_vector_trainer *vector, const struct sgp_outer_settings *settings);

/* x, to be read and written until the next call of publish, copy, scale or absorb. */
float *sgp_vector_trainer_x(struct sgp_vector_trainer *vector);

/* The methods, see struct sgp_trainer_methods. */
void sgp_vector_trainer_publish(struct sgp_trainer *trainer, float **snapshot, float keep);
void sgp_vector_trainer_absorb(struct sgp_trainer *trainer, float **share, float fraction,
    uint64_t first, uint64_t count, struct sgp_comparison *comparison);
void sgp_vector_trainer_take(struct sgp_trainer *trainer, float **values);
void sgp_vector_trainer_restore(struct sgp_trainer *trainer, const float *share, float fraction,
    uint64_t first, uint64_t count);
void sgp_vector_trainer_adopt(struct sgp_trainer *trainer, const float *values, double factor);
void sgp_vector_trainer_copy(struct sgp_trainer *trainer, float *const *snapshot, float keep,
    uint64_t first, uint64_t count);
void sgp_vector_trainer_scale(
    struct sgp_trainer *trainer, double factor, uint64_t first, uint64_t count);
void sgp_vector_trainer_outer(struct sgp_trainer *trainer, double weight);
void sgp_vector_trainer_exchange(struct sgp_trainer *trainer, float **values);
void sgp_vector_trainer_estimate(const struct sgp_trainer *trainer, double weight, float *estimate);
/* The same of a range: estimate[i] is that of x[first + i]. */
void sgp_vector_trainer_estimate_part(const struct sgp_trainer *trainer, double weight,
    uint64_t first, uint64_t count, float *estimate);
void sgp_vector_trainer_sketch(
    struct sgp_trainer *trainer, double weight, struct sgp_sketch *ret_sketch);
uint64_t sgp_vector_trainer_digest(struct sgp_trainer *trainer);
void sgp_vector_trainer_state(struct sgp_trainer *trainer, struct sgp_trainer_state *ret_state);
void sgp_vector_trainer_resume(struct sgp_trainer *trainer, const struct sgp_trainer_state *state);
void sgp_vector_trainer_go_to(struct sgp_trainer *trainer, uint64_t steps); /* it has no position */

#endif
