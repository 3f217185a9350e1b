/* SPDX-License-Identifier: Apache-2.0 */
/* Work off the loop thread under stress: pieces that push themselves again, one at a time and in order; an owner that
 * closes while a piece runs; and who touches what. Run under ThreadSanitizer too. */
#include "util/offload.h"

#include "sgp/status.h"

#include <stddef.h>

#define CHAINS 8u
#define LENGTH 4000u /* pieces in all */

struct piece {
    struct offload offload;
    uint64_t given; /* written by the loop thread in `begin`, read by the pool's in `run` */
    uint64_t made;  /* written in `run`, read in `end` */
};

static struct offloads offloads;
static struct piece pieces[CHAINS];
static uv_thread_t loop_thread;
static uint64_t in_run;            /* whichever thread of the pool runs a piece: one at a time */
static uint64_t begun, ended, run; /* the loop thread's; `run` the pool's, until all have ended */
static bool closes;                /* the owner closes amid the next piece */

static bool on_loop_thread(void)
{
    uv_thread_t self = uv_thread_self();
    return uv_thread_equal(&self, &loop_thread) != 0;
}

static struct piece *piece_of(struct offload *offload)
{
    return (struct piece *)((char *)offload - offsetof(struct piece, offload));
}

static bool begin(struct offload *offload)
{
    sgp_assert(on_loop_thread());
    piece_of(offload)->given = ++begun;
    return begun % 5 != 0; /* some have nothing to run */
}

static void run_piece(struct offload *offload)
{
    struct piece *piece = piece_of(offload);
    sgp_assert(!on_loop_thread() && in_run == 0);
    in_run = 1;
    piece->made = piece->given * 3;
    run++;
    in_run = 0;
}

static void end(struct offload *offload)
{
    struct piece *piece = piece_of(offload);
    sgp_assert(on_loop_thread());
    sgp_assert(closes || piece->given == ++ended); /* in the order of the pushes */
    sgp_assert(piece->given % 5 == 0 || closes || piece->made == piece->given * 3);
    if (begun < LENGTH && !closes)
        offloads_push(&offloads, offload);
}

static void on_turn(uv_prepare_t *turn)
{
    (void)turn;
    (void)offloads_turn(&offloads);
}

static void push_all(uv_loop_t *loop)
{
    begun = ended = run = 0;
    offloads_open(&offloads, loop);
    offloads.allowance.part = 1;
    for (size_t i = 0; i < CHAINS; i++) {
        pieces[i] = (struct piece){.offload = {.begin = begin, .run = run_piece, .end = end}};
        offloads_push(&offloads, &pieces[i].offload);
    }
}

int main(void)
{
    uv_loop_t loop;
    uv_prepare_t turn;
    loop_thread = uv_thread_self();
    sgp_assert(uv_loop_init(&loop) == 0);
    (void)uv_prepare_init(&loop, &turn);
    (void)uv_prepare_start(&turn, on_turn);
    push_all(&loop);
    while (ended < LENGTH)
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    while (offloads.running != NULL || !STAILQ_EMPTY(&offloads.waiting))
        (void)uv_run(&loop, UV_RUN_ONCE);
    sgp_assert(run >= LENGTH - LENGTH / 5 && begun == ended);
    offloads_close(&offloads);

    /* One runs, the others wait: these end at once, and that one by itself. */
    push_all(&loop);
    (void)offloads_turn(&offloads);
    sgp_assert(offloads.running == &pieces[0].offload);
    closes = true;
    offloads_close(&offloads);
    sgp_assert(begun == 1 && STAILQ_EMPTY(&offloads.waiting));
    uv_close((uv_handle_t *)&turn, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT); /* ends when that piece has */
    sgp_assert(run == 1);
    sgp_assert(uv_loop_close(&loop) == 0);
    return 0;
}
