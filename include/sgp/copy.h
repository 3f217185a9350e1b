/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's copy of its owners' parameters (docs/rules/owner.md). x of the worker's trainer is the
 * copy plus the worker's changes since, at weight 1. An owner compensates stale updates here.
 *
 * Vectors are of sgp/buffer.h, with `trainer->parameters` values. Thread: that of the trainer. */
#ifndef SGP_COPY_H
#define SGP_COPY_H

#include "sgp/trainer.h"

/* The slice of the copy and the slice of x become *values, which begin with the slice's first; the
 * optimiser keeps its momentum. If the slice is all of x, *values is swapped for another vector,
 * whose content is undefined. */
void sgp_copy_follow(
    float *copy, struct sgp_trainer *trainer, float **values, struct sgp_slice slice);

/* The slice of x becomes that of the copy. */
void sgp_copy_return(const float *copy, struct sgp_trainer *trainer, struct sgp_slice slice);

/* Add *values to the slice of the copy, from its first value on. Each sum is rounded once, so both
 * ends of a link have the same bits. */
void sgp_copy_add(float *copy, const float *values, struct sgp_slice slice);

/* At an owner, with weight 1. `lacks`: values = x - copy. `take`: copy = values = x. `values` has
 * slice.count values, from the first of the slice on. `trainer` is not changed. */
void sgp_copy_lacks(
    const float *copy, struct sgp_trainer *trainer, float *values, struct sgp_slice slice);
void sgp_copy_take(float *copy, struct sgp_trainer *trainer, float *values, struct sgp_slice slice);

/* An owner's slice of x becomes factor * values. If the slice is all of x, the trainer's `adopt`
 * does it. */
void sgp_copy_adopt(
    struct sgp_trainer *trainer, const float *values, double factor, struct sgp_slice slice);

/* *snapshot = x - copy, x = copy. The memory of snapshot and x is swapped. */
void sgp_copy_push(const float *copy, struct sgp_trainer *trainer, float **snapshot);

/* *snapshot = x - copy; nothing else changes. */
void sgp_copy_offer(const float *copy, struct sgp_trainer *trainer, float *snapshot);

/* The node holds the token: *snapshot, copy and x become copy + part * (x - copy). */
void sgp_copy_give(float *copy, struct sgp_trainer *trainer, float **snapshot, float part);

/* The token arrives: update = token + fraction * update, of `count` values; with fraction 0 the
 * update is not read. Any thread. */
void sgp_copy_collect(float *update, const float *token, float fraction, uint64_t count);

/* The token is here, after sgp_copy_collect, which computed `collected` from the update. The copy
 * and x become `collected`. If the node `computes`, x also keeps its change since the update was
 * offered. *token is swapped for another vector, whose content is undefined. */
void sgp_copy_receive_token(float *copy, struct sgp_trainer *trainer, float **token,
    const float *collected, float fraction, bool computes);

/* An owner compensates a stale update u of a slice, slice.count values, before it adds u to x: u
 * becomes u - factor u u (x - base), value by value (Zheng et al. 2017, equation 10, with updates
 * instead of gradients). `base` is the snapshot from which the worker trained, and has all values.
 * `trainer` is not changed. */
void sgp_copy_compensate(float *update, struct sgp_trainer *trainer, const float *base,
    float factor, struct sgp_slice slice);

#endif
