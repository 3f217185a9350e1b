/* SPDX-License-Identifier: Apache-2.0 */
/* A stall: no host completes a round any more, and which host is the cause. A host that nobody will
 * greet is no cause. */
#include "sim/world.h"

#include <math.h>
#include <stdio.h>

#define STALL_FACTOR 64   /* at least this multiple of the longest job and the longest transfer */
#define STALL_HOPS_MAX 6u /* length of the reported chain of waiting hosts */
#define STALL_BYTES (SGP_TEXT_BYTES - 96u) /* bytes for that chain; time and seed precede it */

sgp_time sgp_sim_stall_time(const struct sgp_sim *sim)
{
    const struct sgp_sim_options *options = &sim->options;
    double slowest = 1, links = 1;
    for (uint32_t i = 0; i < sim->host_count; i++) {
        slowest = fmax(slowest, sim->hosts[i].compute_factor);
        links = fmax(links, sim->hosts[i].out_count);
    }
    if (options->compute_tail > 0)
        slowest *= options->compute_tail_max;
    double job = (double)options->compute_ns * options->local_steps * slowest;
    double transfer = 0;
    if (options->bandwidth > 0)
        transfer =
            links * 4.0 * (double)options->dimension / options->bandwidth * (double)SGP_SECOND;
    double stall =
        (double)SGP_SIM_STALL_NS + STALL_FACTOR * (job + transfer + (double)options->latency_ns);
    return (sgp_time)fmin(stall, 0x1p61);
}

bool sgp_sim_is_stalled(const struct sgp_sim *sim, sgp_time next)
{
    sgp_time since = sim->progressed > sim->faults_end ? sim->progressed : sim->faults_end;
    return next > since && next - since > sim->stall_ns;
}

/* Whether the file of this host has an edge between it and the other. */
static bool names_neighbour(const struct sgp_sim_host *host, const struct sgp_sim_host *other)
{
    const struct sgp_topology *topology = host->file->topology;
    uint32_t self = host->file->nodes[host->index], peer = host->file->nodes[other->index];
    for (uint32_t p = 0; p < topology->phase_count && peer != SGP_SLOT_NONE; p++) {
        const struct sgp_phase *phase = &topology->phases[p];
        if (sgp_phase_gives(phase, self, peer) || sgp_phase_gives(phase, peer, self))
            return true;
    }
    return false;
}

bool sgp_sim_is_cut_off(const struct sgp_sim *sim, uint32_t index)
{
    const struct sgp_sim_host *host = &sim->hosts[index];
    struct sgp_node_status status;
    sgp_node_status(host->node, &status);
    if (status.state != SGP_NODE_JOINING || host->dead)
        return false;
    for (uint32_t i = 0; i < sim->host_count; i++) {
        const struct sgp_sim_host *other = &sim->hosts[i];
        bool ended = other->gone || other->drained;
        if (i != index && !ended && names_neighbour(host, other) && names_neighbour(other, host))
            return false;
    }
    return true;
}

/* The unfinished host that has waited longest. NONE: all have finished, or are cut off. */
static uint32_t find_stalled(const struct sgp_sim *sim)
{
    sgp_time since = SGP_TIME_NEVER;
    uint32_t worst = SGP_SLOT_NONE;
    for (uint32_t i = 0; i < sim->host_count; i++) {
        struct sgp_node_status status;
        sgp_node_status(sim->hosts[i].node, &status);
        if (sim->hosts[i].done || sgp_sim_is_cut_off(sim, i) ||
            (worst != SGP_SLOT_NONE && status.waiting_since >= since))
            continue;
        since = status.waiting_since;
        worst = i;
    }
    return worst;
}

/* Add "NAME, STATE in round K, waits for WHAT". Returns the host for which it waits; NONE: it waits
 * for no host. */
static uint32_t tell_waiting(
    const struct sgp_sim *sim, uint32_t index, char *text, size_t size, size_t *used)
{
    const struct sgp_sim_host *host = &sim->hosts[index];
    struct sgp_node_status status;
    sgp_node_status(host->node, &status);
    bool waits = !host->gone && !host->dead && status.waiting != SGP_WAITING_NOTHING;
    const char *state = host->gone   ? "gone"
                        : host->dead ? "killed"
                                     : sgp_node_state_name(status.state);
    int bytes = snprintf(text + *used, size - *used, "%s, %s in round %lld%s%s",
        sgp_sim_name(sim, index), state, (long long)status.round, waits ? ", waits for " : "",
        waits ? sgp_waiting_name(status.waiting) : "");
    *used = bytes < 0 || (size_t)bytes >= size - *used ? size - 1 : *used + (size_t)bytes;
    return waits && status.waiting_peer != SGP_SLOT_NONE ? host->file->hosts[status.waiting_peer]
                                                         : SGP_SLOT_NONE;
}

void sgp_sim_fail_stalled(struct sgp_sim *sim)
{
    static const char of[] = " of ";
    char text[STALL_BYTES] = "";
    /* the last name has the remaining room */
    const size_t room = sizeof text - SGP_NAME_BYTES - sizeof of;
    size_t used = 0;
    uint32_t first = find_stalled(sim), at = first;
    if (first == SGP_SLOT_NONE)
        return;
    for (uint32_t hop = 1; at != SGP_SLOT_NONE; hop++) {
        at = tell_waiting(sim, at, text, room, &used);
        bool last = at == first || hop == STALL_HOPS_MAX || room - used < SGP_NAME_BYTES;
        if (at != SGP_SLOT_NONE)
            used += (size_t)snprintf(
                text + used, sizeof text - used, "%s%s", of, last ? sgp_sim_name(sim, at) : "");
        if (last)
            break;
    }
    sgp_sim_fail(sim, SGP_E_STATE, "nobody advances any more: %s", text);
}
