/* SPDX-License-Identifier: Apache-2.0 */
/* The worker under stress: jobs pushed from the loop thread, some of them by jobs that end, an end in
 * the middle, and a vector that only the order of jobs protects; jobs that turn from long to short and back; and
 * an end ordered by a job that is handed back; and a long one that lets in what only reads. Run under
 * ThreadSanitizer too. */
#include "util/worker.h"

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

/* ---- jobs that are short now and then ---- */

#define MIXED 3000u

static struct job_kind kind;
static uint64_t at_work; /* which job's turn it is: written by whichever thread runs it */
static uint64_t here;    /* how many ran on the loop thread */
static uv_thread_t loop_thread;

struct mixed {
    struct job job;
    uint64_t number;
    bool takes_time;
};
static struct mixed mixed[MIXED];
static uint64_t pushed, ended;
static struct job left;

static void run_mixed(struct job *job)
{
    struct mixed *one = (struct mixed *)job;
    uv_thread_t self = uv_thread_self();
    sgp_assert(at_work == one->number); /* in order, whoever runs them */
    here += (uint64_t)uv_thread_equal(&self, &loop_thread);
    uint64_t end = uv_hrtime() + (one->takes_time ? 3 * WORKER_SHORT_NS : 0);
    while (uv_hrtime() < end)
        continue;
    at_work++;
}

/* Two more for each that ends, so that some wait behind others; long ones come in rows of a hundred. */
static void on_mixed(struct job *job, bool was_cancelled)
{
    sgp_assert(!was_cancelled && ((struct mixed *)job)->number == ended);
    ended++;
    for (uint32_t i = 0; i < 2 && pushed < MIXED; i++, pushed++) {
        bool background = pushed % 7 == 0;
        mixed[pushed] = (struct mixed){
            .job = {.kind = background ? NULL : &kind, .run = run_mixed, .done = on_mixed},
            .number = pushed,
            .takes_time = pushed / 100 % 5 == 4};
        worker_push(&worker, &mixed[pushed].job);
    }
    if (ended == MIXED)
        uv_stop(worker.async.loop);
}

static void on_turn(uv_prepare_t *turn)
{
    (void)turn;
    worker_turn(&worker);
}

static void short_and_long(void)
{
    uv_loop_t loop;
    uv_prepare_t turn;
    loop_thread = uv_thread_self();
    sgp_assert(uv_loop_init(&loop) == 0);
    sgp_assert(worker_start(&worker, &loop) == 0);
    (void)uv_prepare_init(&loop, &turn);
    (void)uv_prepare_start(&turn, on_turn);
    kind.expected = 1; /* so the first runs here, even if the other thread is interrupted */
    mixed[0].job = (struct job){.kind = &kind, .run = run_mixed, .done = on_mixed};
    pushed = 1;
    worker_push(&worker, &mixed[0].job);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    sgp_assert(ended == MIXED && worker.pending == 0 && worker.away == 0);
    sgp_assert(here > 0 && here < MIXED); /* both threads had some */
    /* One that is ready and was not run comes back when the worker stops. */
    kind.expected = 1;
    left = (struct job){.kind = &kind, .run = run_mixed, .done = on_left_done};
    uint64_t cancelled_before = cancelled;
    worker_push(&worker, &left);
    sgp_assert(worker.pending == 1 && worker.away == 0);
    worker_stop(&worker);
    sgp_assert(cancelled == cancelled_before + 1);
    uv_close((uv_handle_t *)&turn, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    sgp_assert(uv_loop_close(&loop) == 0);
}

/* ---- a long job that lets others in ---- */

enum { LONG, LOOK, LOOK_AGAIN, CHANGE, LOOK_LATER, QUEUED };

static struct job queued[QUEUED];
static int run_as[QUEUED]; /* in which turn each ran; the compute thread's, until all are done */
static int run_count;
static int queued_done; /* the loop thread's */

static void run_in_turn(struct job *job)
{
    run_as[job - queued] = run_count++;
}

/* Until both that look have been let in, but never what changes something, and nobody past that. */
static void run_long(struct job *job)
{
    while (run_count < 2)
        worker_let_in(&worker);
    for (int i = 0; i < 100; i++)
        worker_let_in(&worker);
    run_in_turn(job);
}

static void on_queued(struct job *job, bool was_cancelled)
{
    (void)job;
    sgp_assert(!was_cancelled);
    if (++queued_done == QUEUED)
        uv_stop(worker.async.loop);
}

static void lets_in(void)
{
    uv_loop_t loop;
    sgp_assert(uv_loop_init(&loop) == 0);
    sgp_assert(worker_start(&worker, &loop) == 0);
    for (int i = 0; i < QUEUED; i++) {
        queued[i] = (struct job){.run = i == LONG ? run_long : run_in_turn,
            .done = on_queued,
            .reads = i == LOOK || i == LOOK_AGAIN || i == LOOK_LATER};
        worker_push(&worker, &queued[i]);
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    static const int expected[QUEUED] = {2, 0, 1, 3, 4};
    for (int i = 0; i < QUEUED; i++)
        sgp_assert(run_as[i] == expected[i]);
    worker_stop(&worker);
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
    short_and_long();
    lets_in();
    stop_from_within();
    return 0;
}
