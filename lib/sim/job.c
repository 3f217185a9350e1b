/* SPDX-License-Identifier: Apache-2.0 */
/* Each host's queue of jobs, one under way at a time. Training takes virtual time; moving mass takes
 * none, but keeps its place in the queue. */
#include "sim/world.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static sgp_time duration(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    if (job->work != SGP_SIM_TRAIN)
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

static void begin_first(struct sgp_sim_host *host)
{
    sgp_time time = host->sim->now + duration(host, host->job_first);
    sgp_sim_push(host->sim, time, SGP_SIM_JOB, host->life, host->index);
}

void sgp_sim_append(struct sgp_sim_host *host, struct sgp_sim_job job)
{
    struct sgp_sim_job *copy = malloc(sizeof *copy);
    if (!copy) {
        sgp_sim_fail(host->sim, -ENOMEM, "out of memory");
        return;
    }
    *copy = job;
    if (host->job_last)
        host->job_last->next = copy;
    else
        host->job_first = copy;
    host->job_last = copy;
    if (host->job_first == copy)
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
        free(job);
    }
    host->job_last = NULL;
}
