/* SPDX-License-Identifier: Apache-2.0 */
/* Each host's queue of jobs, of which one runs at a time. Training takes virtual time. Moving mass
 * takes none, but keeps its place in the queue. */
#include "sim/world.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static sgp_time duration(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    if (job->steps == 0)
        return 0;
    const struct sgp_sim_options *options = &host->sim->options;
    double time = (double)options->compute_ns * (double)job->steps * host->compute_factor;
    if (options->compute_jitter > 0)
        time *= 1 + options->compute_jitter * (2 * sgp_random_double(&host->random) - 1);
    if (options->compute_tail > 0) {
        double tail = pow(1 - sgp_random_double(&host->random), -1 / options->compute_tail);
        time *= fmin(tail, options->compute_tail_max);
    }
    return sgp_sim_span(time);
}

/* Schedule the end of the next step, or of a job without steps. It is not before now, even if the
 * machine was suspended. */
static void await_step(struct sgp_sim_host *host)
{
    const struct sgp_sim_running *running = &host->running;
    uint32_t steps = host->job_first->steps > 0 ? host->job_first->steps : 1;
    double part = (double)(running->taken + 1) / steps;
    sgp_time end = running->since + sgp_sim_span((double)running->takes * part);
    bool last = running->taken + 1 == steps, never = running->takes >= SGP_SIM_TIME_MAX;
    end = last || never ? running->since + running->takes
                        : end; /* if it never ends, the queue refuses it */
    end = end > host->sim->now ? end : host->sim->now;
    sgp_sim_push(host->sim, end, SGP_SIM_JOB, host->life, host->index);
}

static void begin_first(struct sgp_sim_host *host)
{
    host->running =
        (struct sgp_sim_running){.since = host->sim->now, .takes = duration(host, host->job_first)};
    await_step(host);
}

bool sgp_sim_job_goes_on(struct sgp_sim_host *host)
{
    struct sgp_sim_job *job = host->job_first;
    job->taken = host->running.taken += job->cancelled ? 0 : 1;
    if (job->cancelled || job->curtailed || job->taken >= job->steps)
        return false;
    await_step(host);
    return true;
}

static struct sgp_sim_job *find_steps(const struct sgp_sim_host *host)
{
    struct sgp_sim_job *job = host->job_first;
    while (job != NULL && job->steps == 0)
        job = job->next;
    return job;
}

void sgp_sim_cancel(struct sgp_sim_host *host)
{
    struct sgp_sim_job *job = find_steps(host);
    if (job != NULL)
        job->cancelled = true;
}

void sgp_sim_curtail(void *context)
{
    struct sgp_sim_host *host = context;
    struct sgp_sim_job *job = find_steps(host);
    if (job != NULL)
        job->curtailed = true;
    else
        sgp_sim_fail(host->sim, SGP_E_STATE, "%s curtails steps that it does not take",
            sgp_sim_name(host->sim, host->index));
}

struct sgp_sim_job *sgp_sim_new_job(struct sgp_sim_host *host, enum sgp_sim_job_kind kind)
{
    struct sgp_sim *sim = host->sim;
    struct sgp_sim_job *job = sim->jobs;
    if (job)
        sim->jobs = job->next;
    else
        job = malloc(sizeof *job);
    if (!job) {
        sgp_sim_fail(sim, -ENOMEM, "out of memory");
        return NULL;
    }
    memset(job, 0, offsetof(struct sgp_sim_job, work)); /* the caller fills the rest */
    job->kind = kind;
    return job;
}

void sgp_sim_end_job(struct sgp_sim_host *host, struct sgp_sim_job *job)
{
    job->next = host->sim->jobs;
    host->sim->jobs = job;
}

void sgp_sim_free_jobs(struct sgp_sim *sim)
{
    while (sim->jobs) {
        struct sgp_sim_job *job = sim->jobs;
        sim->jobs = job->next;
        free(job);
    }
}

void sgp_sim_append(struct sgp_sim_host *host, struct sgp_sim_job *job)
{
    if (host->job_last)
        host->job_last->next = job;
    else
        host->job_first = job;
    host->job_last = job;
    if (host->job_first == job)
        begin_first(host);
}

struct sgp_sim_job *sgp_sim_take_job(struct sgp_sim_host *host)
{
    struct sgp_sim_job *job = host->job_first;
    host->job_first = job->next;
    if (host->job_first)
        begin_first(host);
    else
        host->job_last = NULL;
    return job;
}

void sgp_sim_drop_jobs(struct sgp_sim_host *host)
{
    while (host->job_first) {
        struct sgp_sim_job *job = host->job_first;
        host->job_first = job->next;
        sgp_sim_end_job(host, job);
    }
    host->job_last = NULL;
}
