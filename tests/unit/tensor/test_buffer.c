/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors: aligned, zero, of any size; pools: bounded, disjoint, with places that stay. */
#include "sgp/buffer.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_FLOATS (SGP_VECTOR_HUGE_BYTES / sizeof(float))

static void check_vector(uint64_t count)
{
    float *vector = NULL;
    cr_assert(eq(int, sgp_vector_create(count, &vector), 0));
    cr_assert(eq(u64, (uintptr_t)vector % SGP_BUFFER_ALIGNMENT, 0));
    for (uint64_t i = 0; i < count; i++) {
        cr_assert(eq(flt, vector[i], 0.0f));
        vector[i] = 1.0f;
    }
    sgp_vector_destroy(vector);
}

Test(buffer, vector_is_aligned_and_zero)
{
    check_vector(1);
    check_vector(17);
    for (uint64_t count = HUGE_FLOATS - 32; count <= HUGE_FLOATS + 32; count += 8)
        check_vector(count);
    sgp_vector_destroy(NULL);
}

/* Pages of this vector that have memory behind them. */
static size_t resident(const float *vector, uint64_t count)
{
    static unsigned char pages[65536];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)vector + page - 1) / page * page;
    size_t bytes = count * sizeof *vector - page, here = 0;
    cr_assert(lt(u64, bytes / page, sizeof pages));
    cr_assert(eq(int, mincore((void *)first, bytes / page * page, pages), 0));
    for (size_t i = 0; i < bytes / page; i++)
        here += pages[i] & 1;
    return here;
}

Test(buffer, a_large_vector_costs_memory_once_it_is_used)
{
    float *vector = NULL;
    uint64_t count = 8 * HUGE_FLOATS;
    cr_assert(eq(int, sgp_vector_create(count, &vector), 0));
    size_t before =
        resident(vector, count); /* what stands in front of it may have taken a huge page */
    cr_assert(le(u64, before * (size_t)sysconf(_SC_PAGESIZE), SGP_VECTOR_HUGE_BYTES));
    for (uint64_t i = 0; i < count; i++)
        vector[i] = 1.0f;
    cr_assert(gt(u64, resident(vector, count), before));
    sgp_vector_destroy(vector);
}

Test(buffer, vector_refuses_sizes_out_of_range)
{
    float *vector = NULL;
    cr_assert(eq(int, sgp_vector_create(0, &vector), SGP_E_LIMIT));
    cr_assert(eq(int, sgp_vector_create(SGP_VECTOR_FLOATS_MAX + 1, &vector), SGP_E_LIMIT));
    cr_assert(eq(ptr, vector, NULL));
}

Test(buffer, pool_refuses_sizes_out_of_range)
{
    struct sgp_pool pool = {0};
    cr_assert(eq(int, sgp_pool_grow(&pool, SGP_POOL_VECTORS_MAX + 1, 1), SGP_E_LIMIT));
    cr_assert(eq(int, sgp_pool_grow(&pool, 1, 0), SGP_E_LIMIT));
    cr_assert(eq(int, sgp_pool_grow(&pool, 2, UINT64_MAX), SGP_E_LIMIT));
    cr_assert(eq(u32, pool.count, 0));
    sgp_pool_finish(&pool);
}

Test(buffer, pool_has_disjoint_vectors_and_grows_around_them)
{
    struct sgp_pool pool = {0};
    float **places[5];
    cr_assert(eq(int, sgp_pool_grow(&pool, 2, 33), 0));
    for (uint32_t count = 2; count <= 5; count += 3) {
        cr_assert(eq(int, sgp_pool_grow(&pool, count, 33), 0));
        cr_assert(eq(u32, pool.count, count));
        for (uint32_t i = count == 2 ? 0 : 2; i < count; i++) {
            places[i] = sgp_pool_place(&pool, i);
            for (size_t j = 0; j < 33; j++)
                (*places[i])[j] = (float)i;
        }
    }
    cr_assert(eq(int, sgp_pool_grow(&pool, 3, 33), 0));
    cr_assert(eq(u32, pool.count, 5));
    for (uint32_t i = 0; i < 5; i++) {
        cr_assert(eq(ptr, sgp_pool_place(&pool, i), places[i]));
        for (size_t j = 0; j < 33; j++)
            cr_assert(eq(flt, (*places[i])[j], (float)i));
    }
    sgp_pool_finish(&pool);
    cr_assert(eq(u32, pool.count, 0));
}

Test(buffer, a_vector_in_a_place_may_be_exchanged)
{
    struct sgp_pool pool = {0};
    float *other = NULL;
    cr_assert(eq(int, sgp_pool_grow(&pool, 1, HUGE_FLOATS), 0));
    cr_assert(eq(int, sgp_vector_create(HUGE_FLOATS, &other), 0));
    float **place = sgp_pool_place(&pool, 0);
    float *first = *place;
    *place = other;
    cr_assert(eq(int, sgp_pool_grow(&pool, 2, HUGE_FLOATS), 0));
    cr_assert(eq(ptr, *sgp_pool_place(&pool, 0), other));
    sgp_pool_finish(&pool); /* which frees what stands in the places: the sanitizers see whether */
    sgp_vector_destroy(first);
}

Test(buffer, a_place_beyond_the_pool_asserts, .signal = SIGABRT)
{
    struct sgp_pool pool = {0};
    cr_assert(eq(int, sgp_pool_grow(&pool, 2, 1), 0));
    (void)sgp_pool_place(&pool, 2);
}
