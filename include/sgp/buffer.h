/* SPDX-License-Identifier: Apache-2.0 */
/* Flat float vectors, and pools of them.
 *
 * Everything that is as long as the model lives in memory that is asked for at start, so that no
 * allocation can fail in the middle of a round. Large vectors lie in huge pages where the system
 * grants them, which spares the processor a good part of its page walks, and cost memory only once
 * they are used: a pool that is sized for the worst case is as small as what really happens.
 *
 * A pool names its vectors by index, for an index fits in an effect or a message. Where a vector
 * lies is written down in a place that never moves, and whoever has the vector may put another one of
 * the same length there: so the threads exchange vectors where they would copy them.
 *
 * Thread: a pool belongs to one thread (the loop thread in the daemon), and a place to whoever has
 * the vector. */
#ifndef SGP_BUFFER_H
#define SGP_BUFFER_H

#include "sgp/status.h"

#define SGP_BUFFER_ALIGNMENT 64u                  /* bytes: a cache line, and the widest vector */
#define SGP_VECTOR_FLOATS_MAX ((uint64_t)1 << 40) /* floats in a vector */
#define SGP_VECTOR_HUGE_BYTES ((size_t)2 << 20)   /* from here on: huge pages, and only when used */
#define SGP_POOL_VECTORS_MAX 65536u               /* vectors in a pool */

/* A vector of `count` floats (1 <= count <= SGP_VECTOR_FLOATS_MAX), all zero, aligned to
 * SGP_BUFFER_ALIGNMENT. Returns 0, SGP_E_LIMIT or -ENOMEM. The caller owns it. */
SGP_API int sgp_vector_create(uint64_t count, float **ret_vector);
SGP_API void sgp_vector_destroy(float *vector); /* NULL is fine */

struct sgp_pool {
    uint64_t floats;               /* in each vector */
    uint32_t count;                /* of vectors; grows, never shrinks */
    struct sgp_pool_block *blocks; /* of places */
};

/* Add vectors of `floats` zeros each (>= 1, the same in every call) to a pool, all zero at first, until
 * there are `count` (<= SGP_POOL_VECTORS_MAX); those that are there stay. Returns 0 (also if there are
 * as many), SGP_E_LIMIT or -ENOMEM: then there may be some more than before. */
SGP_API int sgp_pool_grow(struct sgp_pool *pool, uint32_t count, uint64_t floats);

/* Free the vectors that the places name. An all-zero pool is fine. */
SGP_API void sgp_pool_finish(struct sgp_pool *pool);

/* The place of a vector, index < pool->count: valid until sgp_pool_finish. */
SGP_API float **sgp_pool_place(const struct sgp_pool *pool, uint32_t index);

#endif
