/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of this room share: datasets from parts, and arrays that grow with what really
 * arrives. */
#ifndef SGP_TRAIN_TABLE_H
#define SGP_TRAIN_TABLE_H

#include "sgp/dataset.h"

/* A dataset that takes over the arrays of `parts` (malloc'd), digests included. On failure
 * (-ENOMEM) they stay the caller's. */
int sgp_dataset_create_parts(const struct sgp_dataset *parts, struct sgp_dataset **ret_dataset);

/* The digest of `count` class names, or of the numbers 0 .. count-1 where names is NULL. */
uint64_t sgp_classes_digest(const char *const *names, uint32_t count);

/* The digest of features that are bytes / 255, and of unscaled features in memory order. */
uint64_t sgp_bytes_digest(uint32_t features);
uint64_t sgp_unscaled_digest(uint32_t features);

/* Room in `array` (malloc'd or NULL; *capacity elements of `size` bytes) for `count` elements, at
 * least doubling it, never past `limit`, which must be >= count. Returns the array, perhaps moved,
 * or NULL without memory; then the old one is still there. */
void *sgp_grow(void *array, size_t *capacity, size_t size, size_t count, size_t limit);

#endif
