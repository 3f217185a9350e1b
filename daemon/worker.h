/* SPDX-License-Identifier: Apache-2.0 */
/* The one compute thread, and the two lists through which the loop thread talks to it.
 *
 * Jobs run one after the other in the order of their pushes, so whatever they touch (the trainer, the
 * snapshots) needs no lock. A finished job comes back to the loop thread by one uv_async_t; since
 * wake-ups coalesce, each of them drains the whole list. Nothing here allocates after the start.
 *
 * Thread: all functions are the loop thread's. */
#ifndef SGPD_WORKER_H
#define SGPD_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* Embedded in whatever the job is about; the owner's memory. */
struct job {
    struct job *next;
    void (*run)(struct job *job); /* on the compute thread */
    /* On the loop thread, exactly once; may stop the worker, and push other jobs unless that has been
     * done. `cancelled` says that the worker stopped before the job was run. */
    void (*done)(struct job *job, bool cancelled);
};

struct job_list {
    struct job *first;
    struct job *last;
};

struct worker {
    uv_thread_t thread;
    uv_mutex_t mutex; /* guards todo, finished and stopping */
    uv_cond_t wake;
    uv_async_t async;
    struct job_list todo;
    struct job_list finished;
    struct job_list returned; /* of these, not `done` yet; the loop thread's own */
    bool stopping;
    uint32_t pending; /* pushed and not done; the loop thread's own */
};

/* Start the thread. Returns 0 or a negative code of libuv. */
int worker_start(struct worker *worker, uv_loop_t *loop);

/* Processor time of the thread in nanoseconds: it grows for as long as a job does anything. Not after
 * worker_stop. */
uint64_t worker_spent(const struct worker *worker);

/* Append a job; it belongs to the worker until `done`. Not after worker_stop. */
void worker_push(struct worker *worker, struct job *job);

/* End the thread after the job that runs now, call `done` of every job left, in the order of their
 * pushes, and close the handle, which the loop has to see through. Blocks for the rest of one job. */
void worker_stop(struct worker *worker);

#endif
