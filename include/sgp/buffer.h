/* Flat float vectors and fixed pools of them.
 *
 * Everything that is as long as the model lives in memory that is allocated and touched at start, so
 * that no page fault and no failing allocation can happen in the middle of a round. A pool hands out
 * its buffers by index; an index fits in an effect or a message, a pointer would not.
 *
 * Thread: a pool and its reference counts belong to one thread (the loop thread in the daemon), and
 * the counts are plain integers. The floats inside a buffer may be handed to another thread. */
#ifndef SGP_BUFFER_H
#define SGP_BUFFER_H

#include "sgp/status.h"

#define SGP_BUFFER_ALIGNMENT 64u                /* bytes: a cache line, and the widest vector */
#define SGP_BUFFERS_MAX 65536u                  /* buffers in a pool */
#define SGP_POOL_FLOATS_MAX ((uint64_t)1 << 40) /* floats in a pool, all buffers together */
#define SGP_BUFFER_NONE UINT32_MAX              /* "no buffer" */

/* A vector of `count` floats (1 <= count <= SGP_POOL_FLOATS_MAX), all zero, every page touched,
 * aligned to SGP_BUFFER_ALIGNMENT. Returns 0, SGP_E_LIMIT or -ENOMEM. The caller owns it. */
SGP_API int sgp_vector_create(uint64_t count, float **ret_vector);
SGP_API void sgp_vector_destroy(float *vector); /* NULL is fine */

struct sgp_pool {
    uint32_t buffer_count; /* grows, never shrinks */
    uint32_t free_count;   /* buffers that sgp_pool_take can still give out */
    uint64_t floats;       /* usable floats in each buffer */
    uint64_t stride;       /* floats from one buffer to the next */
    float **data;          /* per buffer */
    uint32_t *block_first; /* of each piece of memory: its first buffer */
    uint32_t block_count;
    uint32_t *references; /* per buffer; 0 = free */
    uint32_t *free;       /* a stack of the free indices */
};

/* Allocate and touch `buffer_count` (1..SGP_BUFFERS_MAX) buffers of `floats` (>= 1) zeros each.
 * Returns 0, SGP_E_LIMIT or -ENOMEM; on failure *pool is all zero. */
SGP_API int sgp_pool_init(struct sgp_pool *pool, uint32_t buffer_count, uint64_t floats);

/* Add buffers until there are `buffer_count`; those that are there stay where they are. Returns 0 (also
 * if there are as many), SGP_E_LIMIT or -ENOMEM; on failure nothing has changed. */
SGP_API int sgp_pool_grow(struct sgp_pool *pool, uint32_t buffer_count);

/* Free the memory, whoever still holds buffers of it. An all-zero pool is fine. */
SGP_API void sgp_pool_finish(struct sgp_pool *pool);

/* Take a free buffer with one reference, or SGP_BUFFER_NONE if there is none. What it contains is
 * whatever its last user left. A fresh pool gives 0, 1, 2, ...; the buffer given back last is taken
 * first, because it is still in the cache. */
SGP_API uint32_t sgp_pool_take(struct sgp_pool *pool);

/* One more reference to a taken buffer. */
SGP_API void sgp_pool_ref(struct sgp_pool *pool, uint32_t buffer);

/* Give one reference back; the last one frees the buffer. Giving a free buffer asserts. Returns
 * whether the buffer became free. */
SGP_API bool sgp_pool_give(struct sgp_pool *pool, uint32_t buffer);

/* The floats of a taken buffer, aligned to SGP_BUFFER_ALIGNMENT. */
SGP_API float *sgp_pool_data(const struct sgp_pool *pool, uint32_t buffer);

#endif
