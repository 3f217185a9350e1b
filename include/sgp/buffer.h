/* SPDX-License-Identifier: Apache-2.0 */
/* Flat float vectors, and pools of them.
 *
 * All memory that is as long as the model is allocated at the start, so that no allocation can fail
 * within a round. Large vectors lie in huge pages where the system grants them, which saves a good
 * part of the processor's page walks. They take memory only once they are used, so a pool that is
 * sized for the worst case costs no more than its actual use.
 *
 * A pool names its vectors by index, since an index fits in an effect or a message. The address of
 * a vector is stored in a place that never moves. The thread that has the vector may put another
 * vector of the same length there: so threads swap vectors instead of copying them.
 *
 * Thread: a pool belongs to one thread (the loop thread in the daemon), and a place to the thread
 * that has the vector. */
#ifndef SGP_BUFFER_H
#define SGP_BUFFER_H

#include "sgp/status.h"

#define SGP_BUFFER_ALIGNMENT 64u                  /* bytes: a cache line, and the widest vector */
#define SGP_VECTOR_FLOATS_MAX ((uint64_t)1 << 40) /* floats in a vector */
/* vectors of this size and more: huge pages, and memory only when used */
#define SGP_VECTOR_HUGE_BYTES ((size_t)2 << 20)
#define SGP_POOL_VECTORS_MAX 65536u /* vectors in a pool */

/* A vector of `count` floats (1 <= count <= SGP_VECTOR_FLOATS_MAX), all zero, aligned to
 * SGP_BUFFER_ALIGNMENT. Returns 0, SGP_E_LIMIT or -ENOMEM. The caller owns it. */
int sgp_vector_create(uint64_t count, float **ret_vector);
void sgp_vector_destroy(float *vector); /* NULL is allowed */

struct sgp_pool {
    uint64_t floats;               /* in each vector */
    uint32_t count;                /* of vectors; grows, never shrinks */
    struct sgp_pool_block *blocks; /* of places */
};

/* Add vectors of `floats` zeros each (>= 1, the same in every call) to a pool, which is all zero at
 * first, until there are `count` (<= SGP_POOL_VECTORS_MAX). Existing vectors stay. Returns 0 (also
 * if there are enough already), SGP_E_LIMIT or -ENOMEM; after a failure the pool may have grown by
 * some vectors. */
int sgp_pool_grow(struct sgp_pool *pool, uint32_t count, uint64_t floats);

/* Free the vectors of the places. An all-zero pool is allowed. */
void sgp_pool_finish(struct sgp_pool *pool);

/* The place of a vector, index < pool->count: valid until sgp_pool_finish. */
float **sgp_pool_place(const struct sgp_pool *pool, uint32_t index);

#endif
