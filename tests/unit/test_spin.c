/* SPDX-License-Identifier: Apache-2.0 */
/* When the loop spins through a wait. Time is what the test says it is. */
#include "spin.h"

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
