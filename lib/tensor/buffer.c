/* Owns the memory of flat vectors and pools. A pool belongs to one thread. */
#include "sgp/buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FLOATS_PER_LINE (SGP_BUFFER_ALIGNMENT / sizeof(float))

/* Whole cache lines: aligned_alloc wants it, and neighbouring buffers then share no line. */
static uint64_t round_up(uint64_t floats)
{
    return (floats + FLOATS_PER_LINE - 1) / FLOATS_PER_LINE * FLOATS_PER_LINE;
}

int sgp_vector_create(uint64_t count, float **ret_vector)
{
    if (count == 0 || count > SGP_POOL_FLOATS_MAX)
        return SGP_E_LIMIT;
    size_t bytes = round_up(count) * sizeof(float);
    float *vector = aligned_alloc(SGP_BUFFER_ALIGNMENT, bytes);
    if (!vector)
        return -ENOMEM;
    memset(vector, 0, bytes); /* also touches every page */
    *ret_vector = vector;
    return 0;
}

void sgp_vector_destroy(float *vector)
{
    free(vector);
}

int sgp_pool_init(struct sgp_pool *pool, uint32_t buffer_count, uint64_t floats)
{
    *pool = (struct sgp_pool){0};
    if (buffer_count == 0 || buffer_count > SGP_BUFFERS_MAX)
        return SGP_E_LIMIT;
    if (floats == 0 || floats > SGP_POOL_FLOATS_MAX / buffer_count)
        return SGP_E_LIMIT;
    uint64_t stride = round_up(floats);
    float *memory = NULL;
    int status = sgp_vector_create(stride * buffer_count, &memory);
    if (status < 0)
        return status;
    uint32_t *references = calloc(buffer_count, sizeof *references);
    uint32_t *unused = calloc(buffer_count, sizeof *unused);
    if (!references || !unused) {
        free(references);
        free(unused);
        sgp_vector_destroy(memory);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < buffer_count; i++)
        unused[i] = buffer_count - 1 - i;
    *pool = (struct sgp_pool){.buffer_count = buffer_count,
        .free_count = buffer_count,
        .floats = floats,
        .stride = stride,
        .memory = memory,
        .references = references,
        .free = unused};
    return 0;
}

void sgp_pool_finish(struct sgp_pool *pool)
{
    sgp_vector_destroy(pool->memory);
    free(pool->references);
    free(pool->free);
    *pool = (struct sgp_pool){0};
}

uint32_t sgp_pool_take(struct sgp_pool *pool)
{
    if (pool->free_count == 0)
        return SGP_BUFFER_NONE;
    uint32_t buffer = pool->free[--pool->free_count];
    pool->references[buffer] = 1;
    return buffer;
}

void sgp_pool_ref(struct sgp_pool *pool, uint32_t buffer)
{
    sgp_assert(buffer < pool->buffer_count);
    sgp_assert(pool->references[buffer] > 0 && pool->references[buffer] < UINT32_MAX);
    pool->references[buffer]++;
}

bool sgp_pool_give(struct sgp_pool *pool, uint32_t buffer)
{
    sgp_assert(buffer < pool->buffer_count);
    sgp_assert(pool->references[buffer] > 0);
    if (--pool->references[buffer] > 0)
        return false;
    pool->free[pool->free_count++] = buffer;
    return true;
}

float *sgp_pool_data(const struct sgp_pool *pool, uint32_t buffer)
{
    sgp_assert(buffer < pool->buffer_count);
    sgp_assert(pool->references[buffer] > 0);
    return pool->memory + buffer * pool->stride;
}
