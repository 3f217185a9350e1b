/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of exact cycles: a host that completes a cycle has the mean of what all hosts entered it
 * with. */
#include "sim/world.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* relative to the mean of the absolute values that went in */
#define ROUNDING (83 * (double)FLT_EPSILON)
#define CYCLES_KEPT_MAX 64u /* older ones were given up by a renewal */

static struct sgp_sim_cycle *find(struct sgp_sim *sim, const struct sgp_sim_job *job)
{
    for (uint32_t i = 0; i < sim->cycle_count; i++) {
        struct sgp_sim_cycle *cycle = &sim->cycles[i];
        if (cycle->epoch.number == job->epoch.number && cycle->epoch.start == job->epoch.start &&
            cycle->start == job->start)
            return cycle;
    }
    return NULL;
}

static void drop(struct sgp_sim *sim, struct sgp_sim_cycle *cycle)
{
    free(cycle->hosts);
    free(cycle->sum);
    *cycle = sim->cycles[--sim->cycle_count];
}

static struct sgp_sim_cycle *make(
    struct sgp_sim *sim, const struct sgp_sim_job *job, const struct sgp_topology *topology)
{
    uint64_t dimension = sim->options.dimension;
    if (!sim->cycles)
        sim->cycles = calloc(CYCLES_KEPT_MAX, sizeof *sim->cycles);
    if (!sim->cycles)
        return NULL;
    if (sim->cycle_count == CYCLES_KEPT_MAX)
        drop(sim, &sim->cycles[0]);
    struct sgp_sim_cycle *cycle = &sim->cycles[sim->cycle_count];
    *cycle = (struct sgp_sim_cycle){.epoch = job->epoch, .start = job->start, .topology = topology};
    cycle->hosts = calloc(sim->host_count, 1);
    cycle->sum = calloc(2 * dimension, sizeof *cycle->sum);
    cycle->size = cycle->sum + dimension;
    sim->cycle_count++;
    if (cycle->hosts && cycle->sum)
        return cycle;
    drop(sim, cycle);
    return NULL;
}

void sgp_sim_enter_cycle(struct sgp_sim_host *host, const struct sgp_sim_job *job, const float *x)
{
    struct sgp_sim *sim = host->sim;
    struct sgp_sim_cycle *cycle = find(sim, job);
    if (!cycle)
        cycle = make(sim, job, host->file->topology);
    if (!cycle) {
        sgp_sim_fail(sim, -ENOMEM, "out of memory");
        return;
    }
    if (host->file->topology->nodes[host->file->nodes[host->index]].relay)
        return;
    if (cycle->hosts[host->index])
        sgp_sim_fail(sim, SGP_E_STATE, "%s enters the cycle of round %lld a second time",
            sgp_sim_name(sim, host->index), (long long)job->start);
    cycle->hosts[host->index] = 1;
    cycle->entered++;
    for (uint64_t c = 0; c < sim->options.dimension; c++) {
        cycle->sum[c] += (double)x[c];
        cycle->size[c] += fabs((double)x[c]);
    }
}

/* The bound for the distance of a coded cycle's result from the mean: half a step of each share of
 * a value. No step is larger than what all hosts entered with. Each job is checked exactly
 * (compute.c), so this check finds only gross errors. */
static double slack(const struct sgp_sim *sim, const struct sgp_sim_cycle *cycle)
{
    enum sgp_compressor compressor = sim->options.chooser.compressor;
    double largest = 0;
    if (compressor == SGP_COMPRESSOR_NONE)
        return 0;
    for (uint64_t c = 0; c < sim->options.dimension; c++)
        largest = fmax(largest, cycle->size[c]);
    return sgp_compressor_error(compressor) * 2 * largest;
}

/* Whether x[c] is as it must be. A relay ends with zero. */
static bool is_right(
    const struct sgp_sim_cycle *cycle, uint64_t c, double x, bool relay, double more)
{
    if (relay)
        return x >= 0 && x <= 0;
    double mean = cycle->sum[c] / cycle->entered, size = cycle->size[c] / cycle->entered;
    return fabs(x - mean) <= ROUNDING * size + more || !isfinite(mean);
}

void sgp_sim_leave_cycle(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    struct sgp_sim *sim = host->sim;
    struct sgp_sim_cycle *cycle = find(sim, job);
    const struct sgp_topology *topology = cycle ? cycle->topology : host->file->topology;
    bool relay = host->file->topology->nodes[host->file->nodes[host->index]].relay;
    uint32_t entered = cycle ? cycle->entered : 0;
    if (cycle == NULL || entered != sgp_topology_trainers(topology)) {
        sgp_sim_fail(sim, SGP_E_STATE,
            "%s ends the cycle of round %lld, which %u of %u nodes have entered",
            sgp_sim_name(sim, host->index), (long long)job->start, entered,
            sgp_topology_trainers(topology));
        return;
    }
    host->trainer->methods->estimate(host->trainer, 1.0, sim->after);
    double more = slack(sim, cycle);
    for (uint64_t c = 0; c < sim->options.dimension; c++)
        if (!is_right(cycle, c, (double)sim->after[c], relay, more)) {
            sgp_sim_fail(sim, SGP_E_STATE,
                "%s ends the cycle of round %lld with %.9g in x[%llu]; the mean is %.9g",
                sgp_sim_name(sim, host->index), (long long)job->start, (double)sim->after[c],
                (unsigned long long)c, cycle->sum[c] / entered);
            break;
        }
    if (++cycle->left == topology->node_count)
        drop(sim, cycle);
}

void sgp_sim_renewed(struct sgp_sim_host *host)
{
    struct sgp_node_status status;
    sgp_node_status(host->node, &status);
    for (uint32_t i = 0; i < host->performer.receives.count; i++) {
        struct sgp_sim_receive *receive = &host->receives[i];
        bool over = receive->epoch.number != status.epoch.number
                        ? receive->epoch.number < status.epoch.number
                        : receive->epoch.start < status.epoch.start;
        if (receive->state == SGP_SIM_RECEIVE_HELD && over && receive->share.bequest <= 0)
            receive->state = SGP_SIM_RECEIVE_FREE;
    }
}

void sgp_sim_forget_cycles(struct sgp_sim *sim)
{
    while (sim->cycle_count > 0)
        drop(sim, &sim->cycles[sim->cycle_count - 1]);
    free(sim->cycles);
}
