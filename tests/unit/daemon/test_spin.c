/* SPDX-License-Identifier: Apache-2.0 */
/* When the loop spins through a wait. Time is what the test says it is. */
#include "util/spin.h"

#include <criterion/criterion.h>

#define SHORT_NS 10000u
#define LATE_NS (SPIN_NS + 1)

static uv_loop_t loop;
static struct spin spin;
static uint64_t now;

static void open_spin(void)
{
    cr_assert_eq(uv_loop_init(&loop), 0);
    spin_open(&spin, &loop);
}

static void close_spin(void)
{
    spin_close(&spin);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    cr_assert_eq(uv_loop_close(&loop), 0);
}

TestSuite(spin, .init = open_spin, .fini = close_spin);

static bool spins(bool may)
{
    spin_wait(&spin, now, may);
    return uv_is_active((const uv_handle_t *)&spin.idle) != 0;
}

/* A wait of so many nanoseconds; whether it was begun by spinning. */
static bool wait(uint64_t nanoseconds)
{
    bool spun = spins(true);
    now += nanoseconds;
    spin_end(&spin, now);
    now += SHORT_NS; /* of work */
    return spun;
}

static void wait_shortly(void)
{
    for (int i = 0; i < 40; i++)
        (void)wait(SHORT_NS);
}

Test(spin, sleeps_until_waits_have_been_short)
{
    cr_assert_not(wait(SHORT_NS));
    wait_shortly();
    cr_assert(wait(SHORT_NS));
}

Test(spin, one_long_wait_is_an_exception_and_two_are_none)
{
    wait_shortly();
    (void)wait(LATE_NS);
    cr_assert(wait(1000 * (uint64_t)SPIN_NS), "after one");
    cr_assert_not(wait(SHORT_NS), "after two");
    wait_shortly();
    cr_assert(wait(SHORT_NS), "short ones again");
}

Test(spin, a_wait_that_is_not_over_in_time_goes_on_asleep)
{
    wait_shortly();
    cr_assert(spins(true));
    now += SPIN_NS - 1;
    cr_assert(spins(true));
    now += 1;
    cr_assert_not(spins(true));
}

Test(spin, leaves_the_core_to_another_thread_of_the_process)
{
    wait_shortly();
    cr_assert_not(spins(false));
    cr_assert(spins(true), "the same wait, once that is done");
    cr_assert_not(spins(false));
}

Test(spin, what_comes_while_nothing_is_waited_for_says_nothing)
{
    wait_shortly();
    uint64_t expected = spin.expected;
    now += 1000 * (uint64_t)SPIN_NS; /* of work */
    spin_end(&spin, now);
    cr_assert_eq(spin.expected, expected);
}

Test(spin, work_that_is_ready_is_no_wait)
{
    wait_shortly();
    uint64_t expected = spin.expected;
    cr_assert(spins(true));
    spin_work(&spin);
    cr_assert_not(uv_is_active((const uv_handle_t *)&spin.idle));
    now += SHORT_NS;
    spin_end(&spin, now);
    cr_assert_eq(spin.expected, expected);
}

/* How long it sleeps through all waits, in steps of a millisecond; at most `most` of these. */
static uint64_t rest(uint64_t most)
{
    uint64_t taken = 0;
    while (taken < most && !spins(true)) {
        spin_end(&spin, now);
        now += 1000000 - SHORT_NS;
        (void)spins(true);
        now += SHORT_NS; /* a short wait, so that these go on being expected */
        spin_end(&spin, now);
        taken++;
    }
    return taken;
}

static void lose_core(uint64_t took)
{
    now += took;
    spin_yielded(&spin, now, took);
}

Test(spin, who_has_lost_its_core_rests_longer_each_time)
{
    wait_shortly();
    cr_assert(spins(true));
    lose_core(SPIN_LOST_NS - 1);
    spin_end(&spin, now);
    wait_shortly();
    cr_assert(spins(true), "another node of its kind had it");
    for (uint64_t expected = 20; expected <= 320; expected *= 2) {
        lose_core(3 * SPIN_LOST_NS);
        cr_assert_not(uv_is_active((const uv_handle_t *)&spin.idle));
        wait_shortly();
        uint64_t taken = rest(10000);
        cr_assert(taken + 1 >= expected && taken <= expected + 1, "%u ms", (unsigned)taken);
    }
    for (int i = 0; i < 20; i++)
        lose_core(3 * SPIN_LOST_NS);
    cr_assert_eq(spin.rests - now, SPIN_REST_MOST_NS);
    now = spin.rests + SPIN_REST_MOST_NS;
    lose_core(3 * SPIN_LOST_NS);
    cr_assert_eq(spin.rests - now, SPIN_REST_NS, "it has had it for long");
}
