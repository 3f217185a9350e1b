/* SPDX-License-Identifier: Apache-2.0 */
/* The compute thread; see worker.h. */
#include "worker.h"

#include "sgp/status.h"

#include <stddef.h>

static struct job *take_first(struct job_list *list)
{
    struct job *job = STAILQ_FIRST(list);
    if (job != NULL)
        STAILQ_REMOVE_HEAD(list, next);
    return job;
}

static void run(struct job *job)
{
    uint64_t begin = uv_hrtime();
    job->run(job);
    job->took = uv_hrtime() - begin;
}

/* Called with the mutex held. The mutex is released while the job runs or a thread is woken, which
 * needs it at once. */
static void run_unlocked(struct worker *worker, struct job *job)
{
    uv_mutex_unlock(&worker->mutex);
    run(job);
    uv_mutex_lock(&worker->mutex);
    STAILQ_INSERT_TAIL(&worker->finished, job, next);
    uv_mutex_unlock(&worker->mutex);
    (void)uv_async_send(&worker->async);
    uv_mutex_lock(&worker->mutex);
}

void worker_let_in(struct worker *worker)
{
    uv_mutex_lock(&worker->mutex);
    const struct job *job;
    while (!worker->stopping && (job = STAILQ_FIRST(&worker->todo)) != NULL && job->reads)
        run_unlocked(worker, take_first(&worker->todo));
    uv_mutex_unlock(&worker->mutex);
}

static void compute(void *argument)
{
    struct worker *worker = argument;
    struct job *job;
    bool stopping = false;
    while (!stopping) {
        uv_sem_wait(&worker->wake);
        uv_mutex_lock(&worker->mutex);
        while (!worker->stopping && (job = take_first(&worker->todo)) != NULL)
            run_unlocked(worker, job);
        stopping = worker->stopping;
        uv_mutex_unlock(&worker->mutex);
    }
}

/* ---- what is short ---- */

static bool is_short(const struct job *job)
{
    return job->kind != NULL && job->kind->expected > 0 && job->kind->expected <= WORKER_SHORT_NS;
}

/* The mean of the latest times. One interrupted job does not make its kind long; two in a
 * row do. */
static void learn(const struct job *job)
{
    const uint64_t most = 4 * WORKER_SHORT_NS;
    uint64_t took = job->took < most ? job->took : most;
    uint64_t *expected = &job->kind->expected;
    *expected = *expected == 0 ? took : *expected - *expected / 8 + took / 8;
    *expected += *expected == 0;
}

/* ---- to the thread and back ---- */

static void finish(struct worker *worker, struct job *job, bool cancelled)
{
    worker->pending--;
    if (job->kind != NULL && !cancelled)
        learn(job);
    job->done(job, cancelled);
}

/* One by one: `done` may stop the worker, which hands back all jobs still in the list. */
static void hand_back(struct worker *worker, struct job_list *list, bool cancelled)
{
    struct job *job;
    while ((job = take_first(list)) != NULL) {
        worker->away--;
        finish(worker, job, cancelled);
    }
}

static void hand_over(struct worker *worker, struct job *job)
{
    worker->away++;
    STAILQ_INSERT_TAIL(&worker->todo, job, next);
}

static void on_wake(uv_async_t *async)
{
    struct worker *worker = async->data;
    uv_mutex_lock(&worker->mutex);
    STAILQ_CONCAT(&worker->returned, &worker->finished);
    uv_mutex_unlock(&worker->mutex);
    hand_back(worker, &worker->returned, false);
}

int worker_start(struct worker *worker, uv_loop_t *loop)
{
    *worker = (struct worker){.stopping = false};
    STAILQ_INIT(&worker->todo);
    STAILQ_INIT(&worker->finished);
    STAILQ_INIT(&worker->ready);
    STAILQ_INIT(&worker->returned);
    int code = uv_mutex_init(&worker->mutex);
    if (code < 0)
        return code;
    code = uv_sem_init(&worker->wake, 0);
    if (code < 0)
        goto no_wake;
    code = uv_async_init(loop, &worker->async, on_wake);
    if (code < 0)
        goto no_async;
    worker->async.data = worker;
    (void)uv_idle_init(loop, &worker->idle);
    code = uv_thread_create(&worker->thread, compute, worker);
    if (code == 0)
        return 0;
    uv_close((uv_handle_t *)&worker->async, NULL);
    uv_close((uv_handle_t *)&worker->idle, NULL);
no_async:
    uv_sem_destroy(&worker->wake);
no_wake:
    uv_mutex_destroy(&worker->mutex);
    return code;
}

uint64_t worker_spent(const struct worker *worker)
{
    clockid_t clock;
    struct timespec spent = {0};
    if (pthread_getcpuclockid(worker->thread, &clock) == 0)
        (void)clock_gettime(clock, &spent);
    return (uint64_t)spent.tv_sec * 1000000000u + (uint64_t)spent.tv_nsec;
}

void worker_push(struct worker *worker, struct job *job)
{
    sgp_assert(!worker->stopping);
    worker->pending++;
    if (!STAILQ_EMPTY(&worker->ready) || (is_short(job) && worker->away == 0)) {
        STAILQ_INSERT_TAIL(&worker->ready, job, next);
        return;
    }
    uv_mutex_lock(&worker->mutex);
    hand_over(worker, job);
    uv_mutex_unlock(&worker->mutex);
    uv_sem_post(&worker->wake);
}

static void on_idle(uv_idle_t *idle)
{
    (void)idle;
}

static void hand_over_all(struct worker *worker)
{
    struct job *job;
    uv_mutex_lock(&worker->mutex);
    while ((job = take_first(&worker->ready)) != NULL)
        hand_over(worker, job);
    uv_mutex_unlock(&worker->mutex);
    uv_sem_post(&worker->wake);
}

void worker_turn(struct worker *worker)
{
    struct job *job;
    if (worker->turning || worker->stopping)
        return;
    worker->turning = true;
    for (uint32_t jobs = 0; (job = STAILQ_FIRST(&worker->ready)) != NULL; jobs++) {
        if (worker->away > 0 || !is_short(job)) {
            hand_over_all(worker);
            break;
        }
        if (jobs == WORKER_TURN_JOBS)
            break;
        STAILQ_REMOVE_HEAD(&worker->ready, next);
        run(job);
        finish(worker, job, false); /* may push other jobs, and may stop the worker */
    }
    worker->turning = false;
    if (worker->stopping)
        return;
    if (!STAILQ_EMPTY(&worker->ready))
        (void)uv_idle_start(&worker->idle, on_idle);
    else
        (void)uv_idle_stop(&worker->idle);
}

void worker_stop(struct worker *worker)
{
    uv_mutex_lock(&worker->mutex);
    worker->stopping = true;
    uv_mutex_unlock(&worker->mutex);
    uv_sem_post(&worker->wake);
    (void)uv_thread_join(&worker->thread);
    hand_back(worker, &worker->returned, false);
    hand_back(worker, &worker->finished, false);
    hand_back(worker, &worker->todo, true);
    struct job *job;
    while ((job = take_first(&worker->ready)) != NULL)
        finish(worker, job, true);
    sgp_assert(worker->pending == 0);
    uv_close((uv_handle_t *)&worker->async, NULL);
    uv_close((uv_handle_t *)&worker->idle, NULL);
    uv_sem_destroy(&worker->wake);
    uv_mutex_destroy(&worker->mutex);
}
