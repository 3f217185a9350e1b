/* SPDX-License-Identifier: Apache-2.0 */
/* Topology files: which file each host has, and when it gets another one.
 *
 * Hosts are the nodes of the fleet's topology, which names all nodes that will ever exist. Another
 * file may name fewer, in another order. So a core's indices are translated by the file that it
 * runs on. A host whose first file comes later than at 0 does not exist before. It counts as dead,
 * with its weight. */
#include "sim/world.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int sgp_sim_check_reloads(const struct sgp_topology *topology,
    const struct sgp_sim_options *options, struct sgp_error *error)
{
    if (options->reload_count > SGP_SIM_FAULTS_MAX)
        return sgp_fail(error, -EINVAL, "too many reloads; at most %u", SGP_SIM_FAULTS_MAX);
    for (uint32_t i = 0; i < options->reload_count; i++) {
        const struct sgp_sim_reload *reload = &options->reloads[i];
        if (reload->node >= topology->node_count || reload->at < 0 || reload->at > SGP_SIM_TIME_MAX)
            return sgp_fail(error, -EINVAL, "a reload names no node or no time");
        if (sgp_topology_find(reload->topology, topology->nodes[reload->node].name) < 0)
            return sgp_fail(error, -EINVAL, "%s is not in the file that it reloads",
                topology->nodes[reload->node].name);
        for (uint32_t n = 0; n < reload->topology->node_count; n++)
            if (sgp_topology_find(topology, reload->topology->nodes[n].name) < 0)
                return sgp_fail(error, -EINVAL, "%s is not a node of the fleet",
                    reload->topology->nodes[n].name);
    }
    return 0;
}

static int read_file(
    struct sgp_sim *sim, const struct sgp_topology *topology, struct sgp_sim_file *file)
{
    file->topology = topology;
    file->hosts = calloc(topology->node_count, sizeof *file->hosts);
    file->nodes = calloc(sim->host_count, sizeof *file->nodes);
    file->weight_least = calloc(topology->node_count, sizeof *file->weight_least);
    file->weight_most = calloc(topology->node_count, sizeof *file->weight_most);
    if (!file->hosts || !file->nodes || !file->weight_least || !file->weight_most)
        return -ENOMEM;
    for (uint32_t i = 0; i < sim->host_count; i++) {
        int64_t node = sgp_topology_find(topology, sim->topology->nodes[i].name);
        file->nodes[i] = node < 0 ? SGP_SLOT_NONE : (uint32_t)node;
        if (node >= 0)
            file->hosts[node] = i;
    }
    bool exact =
        topology->cycle.exact && (topology->prelude.exact || topology->prelude.rounds == 0);
    sim->mixed = sim->file_count > 1 ? sim->mixed || exact != sim->apart
                                     : sgp_topology_has_exact(topology) && !exact;
    sim->apart = sim->apart || sgp_topology_has_exact(topology);
    return sgp_topology_weight_range(topology, file->weight_least, file->weight_most);
}

const struct sgp_sim_file *sgp_sim_file_of(
    const struct sgp_sim *sim, const struct sgp_topology *topology)
{
    for (uint32_t i = 0; i < sim->file_count; i++)
        if (sim->files[i].topology == topology)
            return &sim->files[i];
    return NULL;
}

int sgp_sim_read_files(struct sgp_sim *sim)
{
    uint32_t count = sim->options.reload_count;
    struct sgp_sim_reload *reloads = calloc(count + 1u, sizeof *reloads);
    if (reloads && count > 0)
        memcpy(reloads, sim->options.reloads, count * sizeof *reloads);
    sim->options.reloads = reloads;
    sim->files = calloc(count + 1u, sizeof *sim->files);
    if (!reloads || !sim->files)
        return -ENOMEM;
    int status = read_file(sim, sim->topology, &sim->files[sim->file_count++]);
    for (uint32_t i = 0; i < count && status == 0; i++)
        if (!sgp_sim_file_of(sim, reloads[i].topology))
            status = read_file(sim, reloads[i].topology, &sim->files[sim->file_count++]);
    return status;
}

void sgp_sim_forget_files(struct sgp_sim *sim)
{
    for (uint32_t i = 0; i < sim->file_count; i++) {
        free(sim->files[i].hosts);
        free(sim->files[i].nodes);
        free(sim->files[i].weight_least);
        free(sim->files[i].weight_most);
    }
    if (sim->files) /* the options are a copy in that case */
        free((void *)(uintptr_t)sim->options.reloads);
    free(sim->files);
}

const struct sgp_sim_reload *sgp_sim_first_reload(const struct sgp_sim *sim, uint32_t host)
{
    for (uint32_t i = 0; i < sim->options.reload_count; i++)
        if (sim->options.reloads[i].node == host)
            return &sim->options.reloads[i];
    return NULL;
}

const struct sgp_sim_file *sgp_sim_first_file(
    const struct sgp_sim *sim, uint32_t host, bool *ret_later)
{
    const struct sgp_sim_reload *first = sgp_sim_first_reload(sim, host);
    *ret_later = first && first->at > 0;
    return first ? sgp_sim_file_of(sim, first->topology) : &sim->files[0];
}

void sgp_sim_schedule_reloads(struct sgp_sim *sim)
{
    for (uint32_t i = 0; i < sim->options.reload_count; i++) {
        const struct sgp_sim_reload *reload = &sim->options.reloads[i];
        if (reload->at > 0 || sgp_sim_first_reload(sim, reload->node) != reload)
            sgp_sim_push(sim, reload->at, SGP_SIM_RELOAD, 0, i);
        if (reload->at > sim->faults_end)
            sim->faults_end = reload->at;
    }
}

void sgp_sim_translate(
    struct sgp_record *record, const struct sgp_sim_file *from, const struct sgp_sim_file *to)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < record->link_count; i++) {
        struct sgp_record_link link = record->links[i];
        link.peer = to->nodes[from->hosts[link.peer]];
        if (link.peer != SGP_SLOT_NONE)
            record->links[kept++] = link;
        else
            record->weight += link.owed_weight;
    }
    record->link_count = kept;
    kept = 0;
    for (uint32_t i = 0; i < record->account_count; i++) {
        const struct sgp_account *account = &record->accounts[i];
        bool struck = account->kind == SGP_ACCOUNT_DEBT &&
                      sgp_topology_find(to->topology, account->target) < 0;
        record->weight += struck ? account->weight : 0;
        if (!struck)
            record->accounts[kept++] = *account;
    }
    record->account_count = kept;
}

void sgp_sim_take_file(struct sgp_sim_host *host)
{
    const struct sgp_sim_file *next = host->file_next;
    if (!next)
        return;
    sgp_sim_translate(&host->record, host->file, next);
    host->file = next;
    host->file_next = NULL;
    host->weight_least = next->weight_least[next->nodes[host->index]];
    host->weight_floor = fmin(host->weight_floor, sgp_sim_weight_floor(host->sim, host));
}
