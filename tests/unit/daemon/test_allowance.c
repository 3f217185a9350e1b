/* SPDX-License-Identifier: Apache-2.0 */
/* An allowance of processor time, by exact numbers of a clock that the test turns. */
#include "util/allowance.h"

#include <criterion/criterion.h>
#include <assertions.h>

Test(allowance, what_was_spent_is_waited_for)
{
    struct allowance allowance;
    allowance_init(&allowance, 1000, 16, 100);
    cr_assert(eq(u64, allowance_wait(&allowance, 1000), 0));
    allowance_charge(&allowance, 1000, 100); /* all of it: the next piece may still begin */
    cr_assert(eq(u64, allowance_wait(&allowance, 1000), 0));
    allowance_charge(&allowance, 1000, 50);
    cr_assert(eq(u64, allowance_wait(&allowance, 1000), 800));
    cr_assert(eq(u64, allowance_wait(&allowance, 1015), 800), "a part of a nanosecond is kept");
    cr_assert(eq(u64, allowance_wait(&allowance, 1016), 784));
    cr_assert(eq(u64, allowance_wait(&allowance, 1799), 16));
    cr_assert(eq(u64, allowance_wait(&allowance, 1800), 0));
}

Test(allowance, rest_earns_no_more_than_the_bound)
{
    struct allowance allowance;
    allowance_init(&allowance, 0, 4, 100);
    allowance_charge(&allowance, UINT64_C(1) << 62, 140);
    cr_assert(eq(u64, allowance_wait(&allowance, UINT64_C(1) << 62), 160));
}

/* Pieces of unlike size that are always there take one part in 16 of an hour, and one piece and the bound at most beside. */
Test(allowance, work_that_is_always_there_takes_its_part)
{
    struct allowance allowance;
    const uint64_t hour = 3600u * UINT64_C(1000000000), most = 50000000, largest = 40000000;
    uint64_t now = 0, spent = 0, piece = 1;
    allowance_init(&allowance, now, 16, most);
    while (now < hour) {
        uint64_t wait = allowance_wait(&allowance, now);
        if (wait > 0) {
            now += wait;
            continue;
        }
        piece = piece * 48271 % 2147483647;
        uint64_t took = piece % largest + 1;
        now += took;
        spent += took;
        allowance_charge(&allowance, now, took);
    }
    cr_assert(ge(u64, spent, hour / 16));
    cr_assert(le(u64, spent, hour / 16 + most + largest));
}
