/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's copy of its owners' parameters (docs/rules/owner.md), beside whatever trainer it has: x of the trainer is
 * the copy and what the worker has moved since, at weight 1. And what an owner makes of an update that is stale.
 *
 * Vectors are of sgp/buffer.h, `trainer->parameters` values. Thread: that of the trainer. */
#ifndef SGP_COPY_H
#define SGP_COPY_H

#include "sgp/trainer.h"

/* The slice of the copy is *values, from its first on, and so is that of x, whatever it was; the optimiser keeps its
 * momentum. If the slice is all of x, *values is exchanged for another vector, whose content does not matter. */
SGP_API void sgp_copy_follow(
    float *copy, struct sgp_trainer *trainer, float **values, struct sgp_slice slice);

/* The slice of x is that of the copy. */
SGP_API void sgp_copy_return(
    const float *copy, struct sgp_trainer *trainer, struct sgp_slice slice);

/* The slice of the copy changes by *values, from its first on; each sum is rounded once, at both
 * ends of a link to the same bits. */
SGP_API void sgp_copy_add(float *copy, const float *values, struct sgp_slice slice);

/* Of an owner, at weight 1: values = x - copy; or the copy is x, and so is values. Of the slice,
 * slice.count values, from its first on. `trainer` is not changed. */
SGP_API void sgp_copy_lacks(
    const float *copy, struct sgp_trainer *trainer, float *values, struct sgp_slice slice);
SGP_API void sgp_copy_take(
    float *copy, struct sgp_trainer *trainer, float *values, struct sgp_slice slice);

/* Of an owner: the slice of x is factor * values; if it is all of x, as `adopt` of the trainer. */
SGP_API void sgp_copy_adopt(
    struct sgp_trainer *trainer, const float *values, double factor, struct sgp_slice slice);

/* *snapshot = x - copy, x = copy. The memory is exchanged. */
SGP_API void sgp_copy_push(const float *copy, struct sgp_trainer *trainer, float **snapshot);

/* *snapshot = x - copy; nothing else changes. */
SGP_API void sgp_copy_tell(const float *copy, struct sgp_trainer *trainer, float *snapshot);

/* The node has the token: copy + part * (x - copy) is what *snapshot, copy and x become. */
SGP_API void sgp_copy_give(float *copy, struct sgp_trainer *trainer, float **snapshot, float part);

/* The token comes: update = token + fraction * update, of `count` values; with fraction 0 no update is read. Any thread. */
SGP_API void sgp_copy_collect(float *update, const float *token, float fraction, uint64_t count);

/* After that, with `collected` for what the update has become: the copy is that, and so is x; or, if it `computes`, x
 * goes on from there with what it has moved since the update was told. *token is exchanged for another vector, whose
 * content does not matter. */
SGP_API void sgp_copy_visit(float *copy, struct sgp_trainer *trainer, float **token,
    const float *collected, float fraction, bool computes);

/* Of an owner: the update of the slice, slice.count values, of a worker that trained from `base`, becomes
 * u - factor u u (x - base), value by value, before it is added to x (Zheng et al. 2017, equation 10, of updates in the place
 * of gradients). `base` is of all values. `trainer` is not changed. */
SGP_API void sgp_copy_compensate(float *update, struct sgp_trainer *trainer, const float *base,
    float factor, struct sgp_slice slice);

#endif
