/* SPDX-License-Identifier: Apache-2.0 */
/* Busy polling; see spin.h. */
#include "spin.h"

#include <sched.h>

#define LONG_NS (4 * (uint64_t)SPIN_NS)

static void on_idle(uv_idle_t *idle)
{
    uint64_t before = uv_hrtime();
    (void)sched_yield();
    uint64_t now = uv_hrtime();
    spin_yielded(idle->data, now, now - before);
}

void spin_open(struct spin *spin, uv_loop_t *loop)
{
    *spin = (struct spin){.expected = LONG_NS};
    (void)uv_idle_init(loop, &spin->idle);
    spin->idle.data = spin;
}

void spin_close(struct spin *spin)
{
    uv_close((uv_handle_t *)&spin->idle, NULL);
}

void spin_wait(struct spin *spin, uint64_t now, bool may)
{
    if (!spin->waits)
        spin->began = now;
    spin->waits = true;
    bool soon = spin->expected <= SPIN_NS && now - spin->began < SPIN_NS;
    if (may && soon && now >= spin->rests)
        (void)uv_idle_start(&spin->idle, on_idle);
    else
        (void)uv_idle_stop(&spin->idle);
}

void spin_work(struct spin *spin)
{
    spin->waits = false;
    (void)uv_idle_stop(&spin->idle);
}

void spin_end(struct spin *spin, uint64_t now)
{
    if (!spin->waits)
        return;
    uint64_t took = now - spin->began <= SPIN_NS ? now - spin->began : LONG_NS;
    spin->expected = spin->expected - spin->expected / 8 + took / 8;
    spin->waits = false;
}

void spin_yielded(struct spin *spin, uint64_t now, uint64_t took)
{
    if (took < SPIN_LOST_NS)
        return;
    bool again = spin->rest > 0 && now < spin->rests + SPIN_REST_MOST_NS;
    spin->rest = again ? 2 * spin->rest : SPIN_REST_NS;
    spin->rest = spin->rest < SPIN_REST_MOST_NS ? spin->rest : SPIN_REST_MOST_NS;
    spin->rests = now + spin->rest;
    (void)uv_idle_stop(&spin->idle);
}
