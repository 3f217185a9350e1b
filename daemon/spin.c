/* SPDX-License-Identifier: Apache-2.0 */
/* Busy polling; see spin.h. */
#include "spin.h"

#include <sched.h>

#define LONG_NS (4 * (uint64_t)SPIN_NS)

static void on_idle(uv_idle_t *idle)
{
    (void)idle;
    (void)sched_yield(); /* with more nodes than cores, the one that is waited for may be on ours */
}

void spin_open(struct spin *spin, uv_loop_t *loop)
{
    (void)uv_idle_init(loop, &spin->idle);
    spin->expected = LONG_NS;
    spin->waits = false;
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
    if (may && spin->expected <= SPIN_NS && now - spin->began < SPIN_NS)
        (void)uv_idle_start(&spin->idle, on_idle);
    else
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
