/* SPDX-License-Identifier: Apache-2.0 */
/* Busy polling: a wait that is expected to be short is spun through.
 *
 * To sleep and to be woken takes a thread 10 to 30 us on a virtual machine, as long as a small share takes altogether. So where
 * the latest waits were short the loop asks the kernel again and again, for SPIN_NS at most, before it sleeps. Each time it yields
 * to whoever else can run on its core. A wait of more than SPIN_NS counts as one of four times that: at most two of these in a
 * row end the spinning, and waits that are short again begin it.
 *
 * Thread: the loop thread. */
#ifndef SGPD_SPIN_H
#define SGPD_SPIN_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define SPIN_NS 50000u

struct spin {
    uv_idle_t idle;    /* active while it spins, so that the loop does not sleep */
    uint64_t began;    /* the present wait, ns of uv_hrtime */
    uint64_t expected; /* ns: the mean of the latest waits */
    bool waits;
};

void spin_open(struct spin *spin, uv_loop_t *loop);
void spin_close(struct spin *spin);

/* Nothing is left to do but wait; told again in each turn of the loop. `may` is false while the wait is for another thread of
 * this process, which needs a core more than we do. */
void spin_wait(struct spin *spin, uint64_t now, bool may);

/* Something has come. */
void spin_end(struct spin *spin, uint64_t now);

#endif
