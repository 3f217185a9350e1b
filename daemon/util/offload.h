/* SPDX-License-Identifier: Apache-2.0 */
/* Work that would block the loop thread too long: parsing what clients send, rendering what they
 * read.
 *
 * Work runs in libuv's pool, one piece at a time in the order of the pushes, within an allowance of
 * processor time (allowance.h). A piece reads the node when its turn comes, and holds no copy
 * before.
 *
 * Thread: the loop thread, also for `begin` and `end`; `run` is called on a pool thread. A piece
 * belongs to its owner before the push and from `end` on, and to the pool's thread during `run`. */
#ifndef SGPD_OFFLOAD_H
#define SGPD_OFFLOAD_H

#include "allowance.h"

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

#define OFFLOAD_PART 32u          /* 1 / 32 of one processor, while work is always waiting */
#define OFFLOAD_MOST_NS 50000000u /* that may be spent at once after a rest */

/* A piece of work; embedded in the struct that it works on. */
struct offload {
    STAILQ_ENTRY(offload) next;
    struct offloads *owner; /* NULL once the owner is closed */
    uv_work_t work;
    uint64_t spent; /* processor time in ns */
    /* Called when the piece's turn has come: copy what `run` needs. Returns false if there is
     * nothing to run. */
    bool (*begin)(struct offload *offload);
    /* Must touch only the piece's own memory and constants. */
    void (*run)(struct offload *offload);
    /* Exactly once, also for a piece that was not run; may free the piece and push others. */
    void (*end)(struct offload *offload);
};

/* The waiting pieces, and the running piece. */
struct offloads {
    uv_loop_t *loop;
    struct allowance allowance;
    STAILQ_HEAD(, offload) waiting;
    struct offload *running; /* or NULL */
    bool closed;
};

void offloads_open(struct offloads *offloads, uv_loop_t *loop);

/* End the waiting pieces in their order. The running piece ends by itself later, and does not need
 * the owner any more. */
void offloads_close(struct offloads *offloads);

/* Append a piece. It does not begin before the next offloads_turn. Must not be called after
 * offloads_close. */
void offloads_push(struct offloads *offloads, struct offload *offload);

/* Begin the next piece if the allowance permits. Returns ns after which to call again; UINT64_MAX:
 * no piece waits. */
uint64_t offloads_turn(struct offloads *offloads);

#endif
