/* SPDX-License-Identifier: Apache-2.0 */
/* The one compute thread, and the two lists through which the loop thread communicates with it.
 *
 * Jobs run one by one in the order of their pushes, so what they touch (the trainer, the snapshots)
 * needs no lock. Finished jobs return by one uv_async_t. Wake-ups coalesce, so each wake-up drains
 * the whole list. Nothing is allocated after the start.
 *
 * Waking a thread costs more than a small job. So a job whose kind was short recently runs on the
 * loop thread, if the compute thread is idle. A job that takes minutes lets jobs that only read run
 * from time to time.
 *
 * Thread: all functions are the loop thread's, except worker_let_in. */
#ifndef SGPD_WORKER_H
#define SGPD_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#define WORKER_SHORT_NS 50000u /* a job expected to take at most this is short */
#define WORKER_TURN_JOBS 4u    /* short jobs, those of a round; then the loop continues */

/* Jobs of about the same duration. The owner's memory, all zero at first. */
struct job_kind {
    uint64_t expected; /* ns, from the latest jobs; 0: none has run yet */
};

/* Embedded in the struct that the job works on; the owner's memory. */
struct job {
    STAILQ_ENTRY(job) next;
    struct job_kind *kind; /* NULL: the job is not short */
    bool reads;            /* the job changes nothing, and may be let in */
    /* On the compute thread, or on the loop thread while the compute thread is idle. */
    void (*run)(struct job *job);
    /* On the loop thread, once. May push jobs, or stop the worker. `cancelled`: the job did not
     * run. */
    void (*done)(struct job *job, bool cancelled);
    uint64_t took; /* ns */
};

STAILQ_HEAD(job_list, job);

struct worker {
    uv_thread_t thread;
    uv_mutex_t mutex; /* guards todo, finished and stopping */
    uv_sem_t wake;    /* there may be something to do */
    uv_async_t async;
    uv_idle_t idle; /* while jobs are ready, so that the loop does not wait */
    struct job_list todo;
    struct job_list finished;
    bool stopping;
    /* the loop thread's own: */
    bool turning;             /* worker_turn is under way */
    struct job_list ready;    /* pushed, but not handed to the thread: worker_turn */
    struct job_list returned; /* finished jobs whose `done` is not called yet */
    uint32_t pending;         /* pushed and not done, */
    uint32_t away;            /* and the number of these handed to the thread */
};

/* Start the thread. Returns 0 or a negative code of libuv. */
int worker_start(struct worker *worker, uv_loop_t *loop);

/* Called by a running job between two of its steps: run the next jobs that only read. */
void worker_let_in(struct worker *worker);

/* Processor time of the thread in ns; it grows while a job works. Must not be called after
 * worker_stop. */
uint64_t worker_spent(const struct worker *worker);

/* Append a job. The job belongs to the worker until `done`. Must not be called after
 * worker_stop. */
void worker_push(struct worker *worker, struct job *job);

/* Run the first short jobs, at most WORKER_TURN_JOBS, and hand the others to the thread. Called
 * after pushes, so that these jobs are done before more is read. Does nothing if called from within
 * itself. */
void worker_turn(struct worker *worker);

/* End the thread after the running job. Call `done` of every job left, in the order of their
 * pushes. Close the handles, which the loop must run to close. Blocks for the rest of one job. */
void worker_stop(struct worker *worker);

#endif
