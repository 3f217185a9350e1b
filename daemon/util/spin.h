/* SPDX-License-Identifier: Apache-2.0 */
/* Busy polling: if a wait is expected to be short, the loop polls instead of sleeping.
 *
 * On a virtual machine, sleeping and waking takes 10 to 30 us, as long as a whole small share. So
 * if the latest waits were short, the loop polls for up to SPIN_NS before it sleeps. A longer wait
 * counts as four times SPIN_NS. Two or three of these in a row end the polling, and short waits
 * begin it again.
 *
 * While it polls, the loop yields its core, because the awaited node may need the core. A process
 * that takes the core to compute keeps it for milliseconds, whereas a sleeping loop would get it
 * back at once. So a loop that lost its core sleeps for SPIN_REST_NS. If that recurs within
 * SPIN_REST_MOST_NS, the time doubles.
 *
 * Thread: the loop thread. Times are of uv_hrtime. */
#ifndef SGPD_SPIN_H
#define SGPD_SPIN_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define SPIN_NS 50000u
#define SPIN_LOST_NS 500000u /* longer than any node needs for a small round */
#define SPIN_REST_NS 20000000u
#define SPIN_REST_MOST_NS 10000000000u

struct spin {
    uv_idle_t idle;    /* active while it spins, so that the loop does not sleep */
    uint64_t began;    /* the present wait */
    uint64_t expected; /* ns: the mean of the latest waits */
    uint64_t rest;     /* ns: the latest rest, */
    uint64_t rests;    /* and when that rest ends */
    bool waits;
};

void spin_open(struct spin *spin, uv_loop_t *loop);
void spin_close(struct spin *spin);

/* There is nothing to do but wait. `may`: false if the loop waits for a thread of ours, which needs
 * the core more. */
void spin_wait(struct spin *spin, uint64_t now, bool may);

/* There is work in the next turn, so the loop waits for nothing. */
void spin_work(struct spin *spin);

/* The awaited event has arrived. */
void spin_end(struct spin *spin, uint64_t now);

/* While it polled, the loop yielded its core for so long, until now. */
void spin_yielded(struct spin *spin, uint64_t now, uint64_t took);

#endif
