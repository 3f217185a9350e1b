/* SPDX-License-Identifier: Apache-2.0 */
/* One host: the configuration of its core, and what may be read of its state. */
#include "sim/world.h"

#include <math.h>

const char *sgp_sim_name(const struct sgp_sim *sim, uint32_t host)
{
    return sim->topology->nodes[host].name;
}

const struct sgp_node *sgp_sim_node(const struct sgp_sim *sim, uint32_t node)
{
    sgp_assert(node < sim->host_count);
    return sim->hosts[node].node;
}

float *sgp_sim_snapshot(const struct sgp_sim_host *host, uint32_t slot)
{
    return *sgp_pool_place(&host->performer.snapshots, slot);
}

const float *sgp_sim_given(const struct sgp_sim_host *host, uint32_t slot)
{
    struct sgp_sim *sim = host->sim;
    const float *snapshot = sgp_sim_snapshot(host, slot);
    struct sgp_codec codec = sgp_perform_codec(&host->performer, host->compressors[slot]);
    if (codec.compressor == SGP_COMPRESSOR_NONE || host->performer.rest != NULL)
        return snapshot; /* an update was coded in its own place */
    (void)sgp_codec_project(&codec, sim->given, snapshot, 0, sim->options.dimension);
    return sim->given;
}

const float *sgp_sim_received(const struct sgp_sim_host *host, uint32_t slot)
{
    bool folded = host->receives[slot].folds && host->performer.folded == slot;
    return folded ? host->came : *sgp_pool_place(&host->performer.receives, slot);
}

struct sgp_trainer *sgp_sim_trainer(const struct sgp_sim *sim, uint32_t node)
{
    sgp_assert(node < sim->host_count);
    return sim->hosts[node].trainer;
}

void sgp_sim_estimate(const struct sgp_sim *sim, uint32_t node, float *ret_estimate)
{
    struct sgp_node_status status;
    sgp_node_status(sgp_sim_node(sim, node), &status);
    const struct sgp_trainer *trainer = sim->hosts[node].trainer;
    trainer->methods->estimate(trainer, status.weight_estimate, ret_estimate);
}

double sgp_sim_weight_floor(const struct sgp_sim *sim, const struct sgp_sim_host *host)
{
    const struct sgp_topology *topology = host->file->topology;
    double keep = sgp_method_keep(sim->options.method);
    for (uint32_t p = 0; p < topology->phase_count; p++)
        keep = fmin(keep, sgp_phase_keep(&topology->phases[p], host->file->nodes[host->index]));
    return SGP_STARVING * host->weight_least * keep;
}

bool sgp_sim_is_owner(const struct sgp_sim_host *host)
{
    const struct sgp_topology *topology = host->file->topology;
    uint32_t node = host->file->nodes[host->index];
    return node != SGP_SLOT_NONE && topology->nodes[node].owns && !sgp_topology_has_token(topology);
}

struct sgp_sim_host *sgp_sim_machine(struct sgp_sim_host *host)
{
    uint32_t node = host->file->nodes[host->index];
    if (node == SGP_SLOT_NONE)
        return host;
    return &host->sim->hosts[host->file->hosts[sgp_topology_machine(host->file->topology, node)]];
}

bool sgp_sim_is_within(struct sgp_sim *sim, const struct sgp_sim_connection *connection)
{
    return sgp_sim_machine(&sim->hosts[connection->hosts[SGP_SIM_SOURCE]]) ==
           sgp_sim_machine(&sim->hosts[connection->hosts[SGP_SIM_TARGET]]);
}

sgp_time sgp_sim_latency(struct sgp_sim *sim, const struct sgp_sim_connection *connection)
{
    return sgp_sim_is_within(sim, connection) ? 0 : sim->options.latency_ns;
}

struct sgp_sim_host *sgp_sim_owner_of(const struct sgp_sim_host *host, uint64_t first)
{
    const struct sgp_topology *topology = host->file->topology;
    for (uint32_t i = 0; i < topology->node_count; i++) {
        struct sgp_slice values = sgp_topology_owned(topology, i, host->sim->options.dimension);
        if (first >= values.first && first - values.first < values.count)
            return &host->sim->hosts[host->file->hosts[i]];
    }
    return &host->sim->hosts[host->file->hosts[topology->owner]];
}

void sgp_sim_node_config(
    const struct sgp_sim *sim, const struct sgp_sim_host *host, struct sgp_node_config *ret_config)
{
    const struct sgp_sim_options *options = &sim->options;
    const struct sgp_topology *topology = host->file->topology;
    *ret_config = (struct sgp_node_config){
        .topology = topology,
        .self = host->file->nodes[host->index],
        .method = sim->options.method,
        .overlap = sim->options.overlap,
        .step_by_rate = sim->options.step_by_rate,
        .backup_neighbours = sim->options.backup_neighbours,
        .patience = sim->options.patience_ns,
        .incarnation = host->incarnation,
        .seed = options->seed,
        .parameters = options->dimension,
        .fingerprint = {.shape = options->dimension, .topology = topology->digest},
        .rounds = options->node_rounds ? options->node_rounds[host->index] : options->rounds,
        .open = options->open,
        .seeks = options->one_beginning && host->index > 0,
        .one_beginning = options->one_beginning,
        .local_steps = options->local_steps,
        .compressor = options->chooser.compressor,
        .copies = options->copies.compressor,
        .candidates = options->guard > 0 ? SGP_CANDIDATES_MOST : 0,
        .final_cycles = options->final_cycles,
        .start = options->start,
        .weight_least = host->weight_least,
        .weight_most = host->file->weight_most[host->file->nodes[host->index]],
    };
}
