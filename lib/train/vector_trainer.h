/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of all trainers whose parameters are one flat vector in this process: the methods
 * of sgp/trainer.h that move mass. Thread: the trainer's. */
#ifndef SGP_TRAIN_VECTOR_TRAINER_H
#define SGP_TRAIN_VECTOR_TRAINER_H

#include "sgp/kernels.h"
#include "sgp/outer.h"
#include "sgp/trainer.h"

#define SGP_VECTOR_RANGES_MAX 32u /* further ranges are written to x */

/* A deferred range: x[i] is keep * source[i], or 0 if keep is 0, for `count` values from the
 * first. */
struct sgp_vector_range {
    uint64_t first, count;
    float keep;
};

struct sgp_vector_trainer {
    struct sgp_trainer trainer; /* first, so that pointers to both can be converted */
    const struct sgp_kernels *kernels;
    /* the biased numerator; trainer.parameters values, owned; the values in `ranges` are invalid */
    float *x;
    /* deferred ranges, disjoint, in no order */
    struct sgp_vector_range ranges[SGP_VECTOR_RANGES_MAX];
    uint32_t range_count;
    /* the snapshot published last, of which deferred values are multiples; borrowed */
    const float *source;
    struct sgp_outer outer; /* of kind NONE until sgp_vector_trainer_begin_outer */
};

/* Allocate x, all zeros. Returns 0, SGP_E_LIMIT or -ENOMEM. */
int sgp_vector_trainer_init(struct sgp_vector_trainer *vector,
    const struct sgp_trainer_methods *methods, uint64_t parameters);
void sgp_vector_trainer_finish(struct sgp_vector_trainer *vector);

/* Enable outer steps with checked settings, from the present x, at weight 1. Must be called only
 * once. Returns 0 or -ENOMEM. */
int sgp_vector_trainer_begin_outer(
    struct sgp_vector_trainer *vector, const struct sgp_outer_settings *settings);

/* x, which may be read and written until the next call of publish, copy, scale or absorb. */
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
/* As the estimate, for a range: estimate[i] is that of x[first + i]. */
void sgp_vector_trainer_estimate_part(const struct sgp_trainer *trainer, double weight,
    uint64_t first, uint64_t count, float *estimate);
void sgp_vector_trainer_sketch(
    struct sgp_trainer *trainer, double weight, struct sgp_sketch *ret_sketch);
uint64_t sgp_vector_trainer_digest(struct sgp_trainer *trainer);
void sgp_vector_trainer_state(struct sgp_trainer *trainer, struct sgp_trainer_state *ret_state);
void sgp_vector_trainer_resume(struct sgp_trainer *trainer, const struct sgp_trainer_state *state);
/* does nothing: there is no position */
void sgp_vector_trainer_go_to(struct sgp_trainer *trainer, uint64_t steps);

#endif
