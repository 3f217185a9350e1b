/* SPDX-License-Identifier: Apache-2.0 */
/* Busy polling: a wait that is expected to be short is spun through.
 *
 * To sleep and to be woken takes 10 to 30 us on a virtual machine, as long as a whole small share.
 * So where the latest waits were short, the loop polls for up to SPIN_NS before it sleeps. A longer
 * wait counts as four times SPIN_NS: two or three in a row end the polling, and short ones begin it
 * again.
 *
 * While it polls, the loop yields its core, for the awaited node may need it. A process that
 * computes instead keeps that core for milliseconds; a sleeper would get it back at once. So a loop
 * that lost its core sleeps for SPIN_REST_NS, and twice as long each time if that recurs within
 * SPIN_REST_MOST_NS.
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
    uint64_t rests;    /* which is over then */
    bool waits;
};

void spin_open(struct spin *spin, uv_loop_t *loop);
void spin_close(struct spin *spin);

/* Nothing to do but wait. `may`: unless it is for a thread of ours, which needs the core more. */
void spin_wait(struct spin *spin, uint64_t now, bool may);

/* There is something to do in the next turn: nothing is waited for. */
void spin_work(struct spin *spin);

/* Something has come. */
void spin_end(struct spin *spin, uint64_t now);

/* While it spun it yielded its core for so long, until now. */
void spin_yielded(struct spin *spin, uint64_t now, uint64_t took);

#endif
