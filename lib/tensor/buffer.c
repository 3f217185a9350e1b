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

/* An array of `count` elements in the place of one of fewer; false: no memory, and it is as it was. */
static bool extend(void *array, size_t count, size_t element_bytes)
{
    void *memory = realloc(*(void **)array, count * element_bytes);
    if (memory)
        memcpy(array, &memory, sizeof memory);
    return memory != NULL;
}

int sgp_pool_grow(struct sgp_pool *pool, uint32_t buffer_count)
{
    if (buffer_count <= pool->buffer_count)
        return 0;
    if (buffer_count > SGP_BUFFERS_MAX || pool->floats > SGP_POOL_FLOATS_MAX / buffer_count)
        return SGP_E_LIMIT;
    bool room = extend(&pool->data, buffer_count, sizeof *pool->data) &&
                extend(&pool->references, buffer_count, sizeof *pool->references) &&
                extend(&pool->free, buffer_count, sizeof *pool->free) &&
                extend(&pool->block_first, pool->block_count + 1u, sizeof *pool->block_first);
    if (!room)
        return -ENOMEM;
    uint32_t first = pool->buffer_count, more = buffer_count - first;
    float *memory = NULL;
    int status = sgp_vector_create(pool->stride * more, &memory);
    if (status < 0)
        return status;
    memmove(pool->free + more, pool->free, pool->free_count * sizeof *pool->free);
    for (uint32_t i = 0; i < more; i++) {
        pool->data[first + i] = memory + i * pool->stride;
        pool->references[first + i] = 0;
        pool->free[i] = buffer_count - 1 - i;
    }
    pool->block_first[pool->block_count++] = first;
    pool->free_count += more;
    pool->buffer_count = buffer_count;
    return 0;
}

int sgp_pool_init(struct sgp_pool *pool, uint32_t buffer_count, uint64_t floats)
{
    *pool = (struct sgp_pool){0};
    if (buffer_count == 0 || floats == 0 || floats > SGP_POOL_FLOATS_MAX)
        return SGP_E_LIMIT;
    pool->floats = floats;
    pool->stride = round_up(floats);
    int status = sgp_pool_grow(pool, buffer_count);
    if (status < 0)
        sgp_pool_finish(pool);
    return status;
}

void sgp_pool_finish(struct sgp_pool *pool)
{
    for (uint32_t i = 0; i < pool->block_count; i++)
        sgp_vector_destroy(pool->data[pool->block_first[i]]);
    free(pool->data);
    free(pool->block_first);
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
    return pool->data[buffer];
}
