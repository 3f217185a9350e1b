/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the readers in this folder: datasets from parts, and arrays that grow with the bytes
 * that really arrive. */
#ifndef SGP_TRAIN_TABLE_H
#define SGP_TRAIN_TABLE_H

#include "sgp/dataset.h"

/* A dataset that takes over the arrays of `parts` (malloc'd), digests included. On failure
 * (-ENOMEM) the caller still owns the arrays. */
int sgp_dataset_create_parts(const struct sgp_dataset *parts, struct sgp_dataset **ret_dataset);

/* The digest of `count` class names, or of the numbers 0 .. count-1 if names is NULL. */
uint64_t sgp_classes_digest(const char *const *names, uint32_t count);

/* The digest of features that are bytes / 255, and of unscaled features in memory order. */
uint64_t sgp_bytes_digest(uint32_t features);
uint64_t sgp_unscaled_digest(uint32_t features);

/* Make room in `array` for `count` elements. `array` is malloc'd or NULL, and has *capacity
 * elements of `size` bytes. The capacity at least doubles, but never exceeds `limit`, which must be
 * >= count. Returns the array, which may have moved. Without memory returns NULL, and the old array
 * remains. */
void *sgp_grow(void *array, size_t *capacity, size_t size, size_t count, size_t limit);

#endif
