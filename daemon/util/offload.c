/* SPDX-License-Identifier: Apache-2.0 */
/* Work in libuv's pool, one piece at a time; see offload.h. */
#include "offload.h"

#include "sgp/status.h"

#include <stddef.h>

void offloads_open(struct offloads *offloads, uv_loop_t *loop)
{
    *offloads = (struct offloads){.loop = loop};
    STAILQ_INIT(&offloads->waiting);
    allowance_init(&offloads->allowance, uv_hrtime(), OFFLOAD_PART, OFFLOAD_MOST_NS);
}

void offloads_push(struct offloads *offloads, struct offload *offload)
{
    sgp_assert(!offloads->closed);
    offload->owner = offloads;
    STAILQ_INSERT_TAIL(&offloads->waiting, offload, next);
}

static void run(uv_work_t *work)
{
    struct offload *offload = work->data;
    uint64_t before = allowance_spent_by_thread();
    offload->run(offload);
    offload->spent = allowance_spent_by_thread() - before;
}

static void on_run(uv_work_t *work, int status)
{
    (void)status; /* it is never cancelled */
    struct offload *offload = work->data;
    struct offloads *offloads = offload->owner;
    if (offloads != NULL) {
        allowance_charge(&offloads->allowance, uv_hrtime(), offload->spent);
        offloads->running = NULL;
    }
    offload->end(offload);
}

uint64_t offloads_turn(struct offloads *offloads)
{
    struct offload *offload;
    while (offloads->running == NULL && (offload = STAILQ_FIRST(&offloads->waiting)) != NULL) {
        uint64_t wait = allowance_wait(&offloads->allowance, uv_hrtime());
        if (wait > 0)
            return wait;
        STAILQ_REMOVE_HEAD(&offloads->waiting, next);
        if (!offload->begin(offload)) {
            offload->end(offload);
            continue;
        }
        offloads->running = offload;
        offload->work.data = offload;
        int code = uv_queue_work(offloads->loop, &offload->work, run, on_run);
        sgp_assert(code == 0); /* fails only without a function */
    }
    return UINT64_MAX;
}

void offloads_close(struct offloads *offloads)
{
    struct offload *offload;
    offloads->closed = true;
    if (offloads->running != NULL)
        offloads->running->owner = NULL;
    offloads->running = NULL;
    while ((offload = STAILQ_FIRST(&offloads->waiting)) != NULL) {
        STAILQ_REMOVE_HEAD(&offloads->waiting, next);
        offload->end(offload);
    }
}
