/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the memory of flat vectors and pools; see sgp/buffer.h. */
#include "sgp/buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Precedes every vector, in its own cache line. */
union head {
    size_t mapped_bytes; /* 0: from malloc */
    unsigned char line[SGP_BUFFER_ALIGNMENT];
};

/* Whole cache lines, because aligned_alloc requires that, and so that neighbouring vectors share
 * none. */
static size_t bytes_of(uint64_t floats)
{
    size_t bytes = (size_t)floats * sizeof(float) + sizeof(union head);
    return (bytes + SGP_BUFFER_ALIGNMENT - 1) / SGP_BUFFER_ALIGNMENT * SGP_BUFFER_ALIGNMENT;
}

/* Fresh zero pages, which the kernel allocates when they are first written. */
static union head *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    /* a failure is ignored: huge pages may be disabled */
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

int sgp_vector_create(uint64_t count, float **ret_vector)
{
    if (count == 0 || count > SGP_VECTOR_FLOATS_MAX)
        return SGP_E_LIMIT;
    size_t bytes = bytes_of(count);
    bool huge = bytes >= SGP_VECTOR_HUGE_BYTES;
    union head *head = huge ? map(bytes) : aligned_alloc(SGP_BUFFER_ALIGNMENT, bytes);
    if (!head)
        return -ENOMEM;
    if (!huge)
        memset(head, 0, bytes);
    head->mapped_bytes = huge ? bytes : 0;
    *ret_vector = (float *)(head + 1);
    return 0;
}

void sgp_vector_destroy(float *vector)
{
    if (!vector)
        return;
    union head *head = (union head *)(void *)vector - 1;
    if (head->mapped_bytes > 0)
        (void)munmap(head, head->mapped_bytes);
    else
        free(head);
}

/* Places that were requested together are adjacent, so that access to one brings the others into
 * the cache. */
struct sgp_pool_block {
    struct sgp_pool_block *next;
    uint32_t count;
    float *vectors[];
};

int sgp_pool_grow(struct sgp_pool *pool, uint32_t count, uint64_t floats)
{
    sgp_assert(pool->count == 0 || pool->floats == floats);
    if (count <= pool->count)
        return 0;
    if (count > SGP_POOL_VECTORS_MAX)
        return SGP_E_LIMIT;
    uint32_t more = count - pool->count;
    struct sgp_pool_block *block = calloc(1, sizeof *block + more * sizeof block->vectors[0]);
    if (!block)
        return -ENOMEM;
    struct sgp_pool_block **end = &pool->blocks;
    while (*end)
        end = &(*end)->next;
    *end = block;
    pool->floats = floats;
    int status = 0;
    while (status == 0 && block->count < more) {
        status = sgp_vector_create(floats, &block->vectors[block->count]);
        block->count += status == 0;
    }
    pool->count += block->count;
    return status;
}

void sgp_pool_finish(struct sgp_pool *pool)
{
    while (pool->blocks) {
        struct sgp_pool_block *block = pool->blocks;
        pool->blocks = block->next;
        for (uint32_t i = 0; i < block->count; i++)
            sgp_vector_destroy(block->vectors[i]);
        free(block);
    }
    *pool = (struct sgp_pool){0};
}

float **sgp_pool_place(const struct sgp_pool *pool, uint32_t index)
{
    sgp_assert(index < pool->count);
    struct sgp_pool_block *block = pool->blocks;
    for (; index >= block->count; block = block->next)
        index -= block->count;
    return &block->vectors[index];
}
