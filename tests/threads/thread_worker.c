/* SPDX-License-Identifier: Apache-2.0 */
/* The worker under stress: jobs pushed from the loop thread, some of them by jobs that end, an end in
 * the middle, and a vector that only the order of jobs protects; and an end ordered by a job that is
 * handed back. Run under ThreadSanitizer too. */
#include "worker.h"

#include "sgp/status.h"

#include <sched.h>
#include <stddef.h>

#define CHAINS 8u     /* jobs that each push themselves again */
#define LENGTH 20000u /* times they do, all together */
#define LEFT 100u     /* jobs still waiting when the worker is stopped */

static struct worker worker;
static uint64_t shared;    /* written by the compute thread alone, read once it has ended */
static uint64_t runs;      /* the same */
static uint64_t done;      /* the loop thread's */
static uint64_t cancelled; /* the same */

struct work {
    struct job job;
    uint64_t before; /* written by the loop thread before the push, read by the compute thread */
    uint64_t after;  /* written by the compute thread, read by the loop thread after */
};
static struct work works[CHAINS + LEFT];

static void run(struct job *job)
{
    struct work *work = (struct work *)job;
    shared = shared * 31 + work->before;
    runs++;
    work->after = work->before + 1;
}

static void on_left_done(struct job *job, bool was_cancelled)
{
    (void)job;
    cancelled += was_cancelled;
    done++;
}

static void on_done(struct job *job, bool was_cancelled)
{
    struct work *work = (struct work *)job;
    done++;
    if (was_cancelled) {
        cancelled++;
        return;
    }
    sgp_assert(work->after == work->before + 1);
    work->before = work->after;
    if (done < LENGTH) {
        worker_push(&worker, job);
    } else if (done == LENGTH) { /* the other chains are still under way */
        for (size_t i = 0; i < LEFT; i++) {
            works[CHAINS + i].job = (struct job){.run = run, .done = on_left_done};
            worker_push(&worker, &works[CHAINS + i].job);
        }
        uv_stop(worker.async.loop);
    }
}

static void stress(void)
{
    uv_loop_t loop;
    sgp_assert(uv_loop_init(&loop) == 0);
    sgp_assert(worker_start(&worker, &loop) == 0);
    for (size_t i = 0; i < CHAINS; i++) {
        works[i].job = (struct job){.run = run, .done = on_done};
        worker_push(&worker, &works[i].job);
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    sgp_assert(done >= LENGTH);
    sgp_assert(worker.pending >= LEFT);
    uint64_t pushed = done + worker.pending;
    worker_stop(&worker);
    sgp_assert(done == pushed);
    sgp_assert(runs + cancelled == pushed);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    sgp_assert(uv_loop_close(&loop) == 0);
}

/* ---- a job whose `done` stops the worker ---- */

/* Both of the first come back in one list, the third is still at work, the last is never begun. */
enum { FIRST, SECOND, RUNNING, WAITING, COUNT };

static struct job jobs[COUNT];
static uv_sem_t two_have_run;
static int order[COUNT]; /* of `done`; the loop thread's, like what follows */
static int done_count;
static bool was_run[COUNT];

static void run_at_once(struct job *job)
{
    (void)job;
}

static void run_until_the_stop(struct job *job)
{
    (void)job;
    uv_sem_post(&two_have_run);
    for (bool stopping = false; !stopping; (void)sched_yield()) {
        uv_mutex_lock(&worker.mutex);
        stopping = worker.stopping;
        uv_mutex_unlock(&worker.mutex);
    }
}

static void on_end(struct job *job, bool was_cancelled)
{
    order[done_count++] = (int)(job - jobs);
    was_run[job - jobs] = !was_cancelled;
    if (job == &jobs[FIRST])
        worker_stop(&worker);
}

static void stop_from_within(void)
{
    uv_loop_t loop;
    sgp_assert(uv_loop_init(&loop) == 0);
    sgp_assert(uv_sem_init(&two_have_run, 0) == 0);
    sgp_assert(worker_start(&worker, &loop) == 0);
    for (int i = 0; i < COUNT; i++) {
        jobs[i] =
            (struct job){.run = i == RUNNING ? run_until_the_stop : run_at_once, .done = on_end};
        worker_push(&worker, &jobs[i]);
    }
    uv_sem_wait(&two_have_run);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    sgp_assert(done_count == COUNT && worker.pending == 0);
    for (int i = 0; i < COUNT; i++)
        sgp_assert(order[i] == i && was_run[i] == (i != WAITING));
    sgp_assert(uv_loop_close(&loop) == 0);
    uv_sem_destroy(&two_have_run);
}

int main(void)
{
    stress();
    stop_from_within();
    return 0;
}
