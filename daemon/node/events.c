/* SPDX-License-Identifier: Apache-2.0 */
/* How events enter the core; see events.h. */
#include "events.h"

#include "edges.h"

#include <errno.h>
#include <stdio.h>

sgp_time events_now(void)
{
    return (sgp_time)uv_hrtime();
}

static void on_tick(uv_timer_t *timer)
{
    events_post(timer->data, (struct sgp_event){.type = SGP_EVENT_TICK});
}

/* Milliseconds are rounded up, because the loop would otherwise spin until the deadline. */
static void arm(struct daemon *daemon)
{
    sgp_time deadline = sgp_node_deadline(daemon->node);
    if (deadline == SGP_TIME_NEVER || daemon->drained) {
        (void)uv_timer_stop(&daemon->tick);
        return;
    }
    sgp_time left = deadline - events_now();
    uint64_t milliseconds =
        left > 0 ? (uint64_t)((left + SGP_MILLISECOND - 1) / SGP_MILLISECOND) : 0;
    (void)uv_timer_start(&daemon->tick, on_tick, milliseconds, 0);
}

/* Once the core has ended, its last checkpoint is being written, and no event may invalidate it. */
static void step(struct daemon *daemon, struct sgp_event event)
{
    if (daemon->drained)
        return;
    event.now = events_now();
    spin_end(&daemon->spin, (uint64_t)event.now);
    recorder_event(&daemon->recorder, &event);
    sgp_driver_post(&daemon->driver, &event);
}

/* Actions that could not begin for lack of memory have failed. The operation could not report that
 * within the step. */
static void post_unbegun(struct daemon *daemon)
{
    for (uint32_t i = 0; daemon->undialled && i < daemon->out_count; i++) {
        struct edge *edge = &daemon->edges[i];
        if (!edge->undialled)
            continue;
        edge->undialled = false;
        (void)snprintf(edge->error, sizeof edge->error, "cannot connect: out of memory");
        step(daemon, (struct sgp_event){.type = SGP_EVENT_DOWN,
                         .link = {.peer = edge->peer, .direction = SGP_OUT},
                         .code = -ENOMEM});
    }
    bool unasked = daemon->unasked;
    daemon->undialled = daemon->unasked = false;
    if (unasked)
        step(daemon, (struct sgp_event){.type = SGP_EVENT_ANSWER});
}

void events_settle(struct daemon *daemon)
{
    if (daemon->ending)
        return;
    post_unbegun(daemon);
    while (daemon->failed_links != NULL) {
        struct link *link = daemon->failed_links;
        daemon->failed_links = link->next_failed;
        if (link->id.peer != SGP_SLOT_NONE) /* otherwise a reload has removed the peer */
            step(daemon, (struct sgp_event){
                             .type = SGP_EVENT_DOWN, .link = link->id, .code = link->failure});
    }
    daemon->settled(daemon);
    if (!daemon->ending)
        arm(daemon);
}

void events_post(struct daemon *daemon, struct sgp_event event)
{
    if (daemon->ending)
        return;
    step(daemon, event);
    events_settle(daemon);
    worker_turn(&daemon->worker);
}

/* After the events of this turn: run short jobs, then send messages, with one write to each
 * peer. */
static void on_turn(uv_prepare_t *turn)
{
    struct daemon *daemon = turn->data;
    const struct worker *worker = &daemon->worker;
    do {
        worker_turn(&daemon->worker);
        edges_flush(daemon); /* a failure may lead to more */
        if (!daemon->ending)
            daemon->turned(daemon);
    } while (!daemon->ending &&
             (daemon->unsent != NULL || (!STAILQ_EMPTY(&worker->ready) &&
                                            !uv_is_active((const uv_handle_t *)&worker->idle))));
    if (daemon->ending)
        return;
    if (!STAILQ_EMPTY(&worker->ready)) /* continue after the loop has polled */
        spin_work(&daemon->spin);
    else
        spin_wait(&daemon->spin, uv_hrtime(), worker->away == 0);
}

void events_open(struct daemon *daemon)
{
    (void)uv_timer_init(&daemon->loop, &daemon->tick);
    (void)uv_prepare_init(&daemon->loop, &daemon->turn);
    daemon->tick.data = daemon;
    daemon->turn.data = daemon;
    (void)uv_prepare_start(&daemon->turn, on_turn);
    spin_open(&daemon->spin, &daemon->loop);
}

void events_close(struct daemon *daemon)
{
    uv_close((uv_handle_t *)&daemon->tick, NULL);
    uv_close((uv_handle_t *)&daemon->turn, NULL);
    spin_close(&daemon->spin);
}
