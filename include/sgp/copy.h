/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's copy of its owner's parameters (docs/rules/owner.md), beside whatever trainer it has: x of the trainer is
 * the copy and what the worker has moved since, at weight 1.
 *
 * Vectors are of sgp/buffer.h, `trainer->parameters` values. Thread: that of the trainer. */
#ifndef SGP_COPY_H
#define SGP_COPY_H

#include "sgp/trainer.h"

/* The copy is *values, and so is x, whatever it was; the optimiser keeps its momentum. *values is exchanged for another
 * vector, whose content does not matter. */
SGP_API void sgp_copy_follow(float *copy, struct sgp_trainer *trainer, float **values);

/* *snapshot = x - copy, x = copy. The memory is exchanged. */
SGP_API void sgp_copy_push(const float *copy, struct sgp_trainer *trainer, float **snapshot);

#endif
