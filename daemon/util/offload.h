/* SPDX-License-Identifier: Apache-2.0 */
/* Work that takes the loop thread too long: parsing what clients send, rendering what they read.
 *
 * It runs in libuv's pool, one piece at a time in the order of the pushes, within an allowance of
 * processor time (allowance.h). A piece looks at the node when its turn comes, and holds no copy
 * before.
 *
 * Thread: the loop thread, also `begin` and `end`; `run` is a pool thread's. A piece belongs to its
 * owner before the push and from `end` on, and to the pool's thread during `run`. */
#ifndef SGPD_OFFLOAD_H
#define SGPD_OFFLOAD_H

#include "allowance.h"

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

#define OFFLOAD_PART 32u          /* of one processor, while there is always something to do */
#define OFFLOAD_MOST_NS 50000000u /* that may be spent at once after a rest */

/* A piece of work; embedded in what it is about. */
struct offload {
    STAILQ_ENTRY(offload) next;
    struct offloads *owner; /* NULL once that is closed */
    uv_work_t work;
    uint64_t spent; /* ns of the processor */
    /* When its turn has come: take what `run` needs. false: there is nothing to run. */
    bool (*begin)(struct offload *offload);
    /* Touches the piece's own memory and constants alone. */
    void (*run)(struct offload *offload);
    /* Exactly once, also for a piece that was not run; may free the piece and push others. */
    void (*end)(struct offload *offload);
};

/* The pieces that wait, and the one that runs. */
struct offloads {
    uv_loop_t *loop;
    struct allowance allowance;
    STAILQ_HEAD(, offload) waiting;
    struct offload *running; /* or NULL */
    bool closed;
};

void offloads_open(struct offloads *offloads, uv_loop_t *loop);

/* End those that wait, in their order. The one that runs ends by itself later and needs the owner no more. */
void offloads_close(struct offloads *offloads);

/* Append a piece. It does not begin before the next offloads_turn. Not after offloads_close. */
void offloads_push(struct offloads *offloads, struct offload *offload);

/* Begin the next piece if it may. Returns ns after which to call again; UINT64_MAX: none waits. */
uint64_t offloads_turn(struct offloads *offloads);

#endif
