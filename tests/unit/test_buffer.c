/* Pools: bounded, aligned, disjoint, counted. */
#include "sgp/buffer.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>

Test(buffer, vector_is_aligned_and_zero)
{
    float *vector = NULL;
    cr_assert(eq(int, sgp_vector_create(17, &vector), 0));
    cr_assert(eq(u64, (uintptr_t)vector % SGP_BUFFER_ALIGNMENT, 0));
    for (size_t i = 0; i < 17; i++)
        cr_assert(eq(flt, vector[i], 0.0f));
    sgp_vector_destroy(vector);
}

Test(buffer, vector_refuses_sizes_out_of_range)
{
    float *vector = NULL;
    cr_assert(eq(int, sgp_vector_create(0, &vector), SGP_E_LIMIT));
    cr_assert(eq(int, sgp_vector_create(SGP_POOL_FLOATS_MAX + 1, &vector), SGP_E_LIMIT));
    cr_assert(eq(ptr, vector, NULL));
}

Test(buffer, pool_refuses_sizes_out_of_range)
{
    struct sgp_pool pool = {.buffer_count = 9};
    cr_assert(eq(int, sgp_pool_init(&pool, 0, 1), SGP_E_LIMIT));
    cr_assert(eq(u32, pool.buffer_count, 0));
    cr_assert(eq(int, sgp_pool_init(&pool, SGP_BUFFERS_MAX + 1, 1), SGP_E_LIMIT));
    cr_assert(eq(int, sgp_pool_init(&pool, 1, 0), SGP_E_LIMIT));
    cr_assert(eq(int, sgp_pool_init(&pool, 3, SGP_POOL_FLOATS_MAX / 3 + 1), SGP_E_LIMIT));
    cr_assert(eq(int, sgp_pool_init(&pool, 2, UINT64_MAX), SGP_E_LIMIT));
    sgp_pool_finish(&pool);
}

Test(buffer, pool_is_bounded_and_its_buffers_are_disjoint)
{
    struct sgp_pool pool;
    cr_assert(eq(int, sgp_pool_init(&pool, 5, 33), 0));
    for (uint32_t i = 0; i < 5; i++) {
        cr_assert(eq(u32, sgp_pool_take(&pool), i));
        float *data = sgp_pool_data(&pool, i);
        cr_assert(eq(u64, (uintptr_t)data % SGP_BUFFER_ALIGNMENT, 0));
        for (size_t j = 0; j < 33; j++)
            data[j] = (float)i;
    }
    cr_assert(eq(u32, pool.free_count, 0));
    cr_assert(eq(u32, sgp_pool_take(&pool), SGP_BUFFER_NONE));
    for (uint32_t i = 0; i < 5; i++)
        for (size_t j = 0; j < 33; j++)
            cr_assert(eq(flt, sgp_pool_data(&pool, i)[j], (float)i));
    sgp_pool_finish(&pool);
    cr_assert(eq(ptr, pool.data, NULL));
}

Test(buffer, a_pool_grows_and_what_is_in_it_stays_where_it_is)
{
    struct sgp_pool pool;
    cr_assert(eq(int, sgp_pool_init(&pool, 2, 33), 0));
    cr_assert(eq(u32, sgp_pool_take(&pool), 0));
    float *first = sgp_pool_data(&pool, 0);
    first[32] = 7;
    cr_assert(eq(int, sgp_pool_grow(&pool, 2), 0));
    cr_assert(eq(int, sgp_pool_grow(&pool, 1), 0));
    cr_assert(eq(u32, pool.buffer_count, 2));
    cr_assert(eq(int, sgp_pool_grow(&pool, SGP_BUFFERS_MAX + 1), SGP_E_LIMIT));
    cr_assert(eq(u32, pool.buffer_count, 2));
    cr_assert(eq(int, sgp_pool_grow(&pool, 5), 0));
    cr_assert(eq(ptr, sgp_pool_data(&pool, 0), first));
    cr_assert(eq(flt, first[32], 7));
    for (uint32_t i = 1; i < 5; i++) { /* the lowest first, as in a fresh pool */
        cr_assert(eq(u32, sgp_pool_take(&pool), i));
        cr_assert(eq(u64, (uintptr_t)sgp_pool_data(&pool, i) % SGP_BUFFER_ALIGNMENT, 0));
        cr_assert(zero(flt, sgp_pool_data(&pool, i)[32]));
    }
    cr_assert(eq(u32, sgp_pool_take(&pool), SGP_BUFFER_NONE));
    sgp_pool_finish(&pool);
}

Test(buffer, the_last_reference_frees)
{
    struct sgp_pool pool;
    cr_assert(eq(int, sgp_pool_init(&pool, 2, 1), 0));
    uint32_t buffer = sgp_pool_take(&pool);
    sgp_pool_ref(&pool, buffer);
    sgp_pool_ref(&pool, buffer);
    cr_assert(not(sgp_pool_give(&pool, buffer)));
    cr_assert(not(sgp_pool_give(&pool, buffer)));
    cr_assert(eq(u32, pool.free_count, 1));
    cr_assert(sgp_pool_give(&pool, buffer));
    cr_assert(eq(u32, pool.free_count, 2));
    cr_assert(eq(u32, sgp_pool_take(&pool), buffer), "the warm buffer comes back first");
    sgp_pool_finish(&pool);
}

Test(buffer, giving_twice_asserts, .signal = SIGABRT)
{
    struct sgp_pool pool;
    cr_assert(eq(int, sgp_pool_init(&pool, 2, 1), 0));
    uint32_t buffer = sgp_pool_take(&pool);
    sgp_pool_give(&pool, buffer);
    sgp_pool_give(&pool, buffer);
}

Test(buffer, reading_a_free_buffer_asserts, .signal = SIGABRT)
{
    struct sgp_pool pool;
    cr_assert(eq(int, sgp_pool_init(&pool, 2, 1), 0));
    sgp_pool_data(&pool, 1);
}
