/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of what training changed. */
#include <criterion/criterion.h>
#include <assertions.h>

#include "sgp/random.h"
#include "sgp/update.h"

#define COUNT 100003u

static float before[COUNT], after[COUNT];

static void draw(uint64_t seed)
{
    struct sgp_random random;
    sgp_random_init(&random, seed, 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        before[i] = (float)sgp_random_double(&random);
        after[i] = before[i] + (float)sgp_random_double(&random);
    }
}

Test(update, equal_steps_have_one_digest_and_others_have_not)
{
    static const uint64_t counts[] = {1, 2, SGP_UPDATE_VALUES, SGP_UPDATE_VALUES + 1, COUNT};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        draw(1);
        uint64_t first = sgp_update_digest(after, before, counts[i], 0);
        cr_assert(ne(u64, first, 0));
        cr_assert(eq(u64, sgp_update_digest(after, before, counts[i], 0), first));
        cr_assert(
            ne(u64, sgp_update_digest(after, before, counts[i], first), first), "a second step");
        draw(2);
        cr_assert(ne(u64, sgp_update_digest(after, before, counts[i], 0), first));
    }
}

Test(update, what_has_not_changed_is_no_update)
{
    draw(1);
    cr_assert(zero(u64, sgp_update_digest(before, before, COUNT, 0)));
    cr_assert(eq(u64, sgp_update_digest(before, before, COUNT, 7), 7));
    static const float zeros[COUNT] = {-0.0f};
    cr_assert(zero(u64, sgp_update_digest(zeros, NULL, COUNT, 0)));
}

/* Any thousandth of a large model is looked at, whatever its place. */
Test(update, the_sample_is_spread_over_all_values)
{
    for (uint32_t part = 0; part < 256; part++) {
        for (uint32_t i = 0; i < COUNT; i++)
            after[i] = i >= part * (COUNT / 256) && i < (part + 1) * (COUNT / 256) ? 1.0f : 0.0f;
        cr_assert(ne(u64, sgp_update_digest(after, NULL, COUNT, 0), 0), "part %u", part);
    }
}

Test(update, steps_are_chained_in_their_order)
{
    cr_assert(eq(u64, sgp_update_chain(0, 5), 5));
    cr_assert(eq(u64, sgp_update_chain(5, 0), 5));
    cr_assert(ne(u64, sgp_update_chain(5, 6), sgp_update_chain(6, 5)));
}
