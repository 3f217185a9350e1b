/* SPDX-License-Identifier: Apache-2.0 */
/* Begin and end of a simulation: its hosts with their cores and trainers, the links between them,
 * and the first queue entries. */
#include "sim/world.h"

#include "sgp/wire.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* streams of the seed; the stream of a core is its index */
#define STREAM_NETWORK ((uint64_t)1 << 32)
#define STREAM_INCARNATION ((uint64_t)2 << 32)
#define STREAM_COMPUTE ((uint64_t)3 << 32)

static int create_node(
    struct sgp_sim *sim, struct sgp_sim_host *host, struct sgp_random *incarnations)
{
    struct sgp_node_config config;
    host->incarnation = sgp_random_next(incarnations) | 1;
    host->weight_least = host->file->weight_least[host->file->nodes[host->index]];
    sgp_sim_node_config(sim, host, &config);
    if (config.one_beginning)
        config.x_digest = host->trainer->methods->digest(host->trainer);
    host->weight_floor = sgp_sim_weight_floor(sim, host);
    return sgp_node_create(&config, &host->node);
}

static int create_host(struct sgp_sim *sim, uint32_t index, struct sgp_random *incarnations)
{
    struct sgp_sim_host *host = &sim->hosts[index];
    *host = (struct sgp_sim_host){
        .sim = sim, .index = index, .compute_factor = 1, .tick_at = SGP_TIME_NEVER};
    host->file = sgp_sim_first_file(sim, index, &host->dead);
    sim->expected += sgp_topology_starts(host->file->topology, host->file->nodes[index]);
    sgp_random_init(&host->random, sim->options.seed, STREAM_COMPUTE + index);
    int status = sim->options.trainer(sim->options.context, index, &host->trainer);
    if (status == 0)
        status = create_node(sim, host, incarnations);
    if (status == 0)
        status = sgp_sim_create_buffers(sim, host);
    if (status < 0)
        return status;
    sgp_assert(host->trainer->parameters == sim->options.dimension);
    sgp_performer_begin(&host->performer, host->trainer);
    struct sgp_node_status now;
    sgp_node_status(host->node, &now);
    host->weight = now.weight;
    host->driver = (struct sgp_driver){
        .node = host->node,
        .ops = &sgp_sim_ops,
        .context = host,
        .sink = sim->options.sink,
        .name = sgp_sim_name(sim, index),
        .effects = &sim->effects,
    };
    return 0;
}

/* Prepare a host whose record will be read. */
static int make_mortal(struct sgp_sim_host *host)
{
    if (host->mortal)
        return 0;
    host->mortal = true;
    host->record.account_capacity = SGP_ACCOUNTS_MAX;
    host->record.accounts = calloc(SGP_ACCOUNTS_MAX, sizeof *host->record.accounts);
    return host->record.accounts ? 0 : -ENOMEM;
}

static int create_hosts(struct sgp_sim *sim)
{
    struct sgp_random incarnations;
    sgp_random_init(&incarnations, sim->options.seed, STREAM_INCARNATION);
    int status = sgp_sim_create_liars(sim);
    if (status == 0)
        status = sgp_sim_read_files(sim);
    for (uint32_t i = 0; i < sim->host_count && status == 0; i++)
        status = create_host(sim, i, &incarnations);
    if (status < 0)
        return status;
    for (uint32_t i = 0; i < sim->options.crash_count && status == 0; i++)
        status = make_mortal(&sim->hosts[sim->options.crashes[i].node]);
    for (uint32_t i = 0; i < sim->options.crash_count; i++)
        sim->apart = sim->apart ||
                     (sim->options.crashes[i].saved > 0 && sim->topology->owner != SGP_NODE_NONE);
    sim->apart = sim->apart || sgp_topology_has_token(sim->topology) || sim->topology->owners > 1;
    if (status < 0)
        return status;
    for (uint32_t i = 0; i < sim->options.straggler_count; i++) {
        const struct sgp_sim_straggler *straggler = &sim->options.stragglers[i];
        sim->hosts[straggler->node].compute_factor = straggler->factor;
    }
    sim->options.stragglers = NULL; /* the hosts have copies now */
    sim->effects.items = calloc(sim->effects.capacity, sizeof *sim->effects.items);
    return sim->effects.items ? sgp_sim_create_links(sim) : -ENOMEM;
}

static int schedule_start(struct sgp_sim *sim)
{
    for (uint32_t i = 0; i < sim->host_count; i++)
        if (!sim->hosts[i].dead) /* a host that starts later is started by its first file */
            sgp_sim_push(sim, 0, SGP_SIM_START, 0, i);
    int status = sgp_sim_schedule_faults(sim);
    sim->faults_end = sgp_sim_faults_end(sim);
    sgp_sim_schedule_reloads(sim);
    sim->stall_ns = sgp_sim_stall_time(sim);
    return status;
}

int sgp_sim_create(const struct sgp_topology *topology, const struct sgp_sim_options *options,
    struct sgp_error *error, struct sgp_sim **ret_sim)
{
    int status = sgp_sim_check_options(topology, options, error);
    if (status < 0)
        return status;
    struct sgp_sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return sgp_fail(error, -ENOMEM, "out of memory");
    sim->topology = topology;
    sim->options = *options;
    sim->restart = sgp_restart;
    sim->host_count = topology->node_count;
    sim->behind = topology->node_count;
    sim->done_at = SGP_TIME_NEVER;
    sim->summary.weight_least = INFINITY;
    sgp_random_init(&sim->random, options->seed, STREAM_NETWORK);
    status = sgp_sim_copy_faults(sim);
    if (status == 0)
        status = sgp_sim_create_backups(sim);
    if (status == 0)
        status = sgp_queue_init(&sim->queue, topology->node_count);
    sim->hosts = calloc(topology->node_count, sizeof *sim->hosts);
    sim->frame = malloc(SGP_WIRE_FRAME_MAX);
    sim->share = calloc(options->dimension, sizeof *sim->share);
    sim->given = calloc(options->dimension, sizeof *sim->given);
    sim->packed = malloc(sgp_coding_bytes_most(SGP_CODING_BLOCKS, options->dimension));
    if (!sim->hosts || !sim->frame || !sim->share || !sim->given || !sim->packed)
        status = -ENOMEM;
    if (status == 0)
        status = create_hosts(sim);
    if (status == 0)
        status = sgp_sim_check_init(sim);
    if (status == 0)
        status = schedule_start(sim);
    if (status < 0) {
        sgp_sim_destroy(sim);
        return sgp_fail(error, status, "%s", sgp_strerror(status));
    }
    *ret_sim = sim;
    return 0;
}

static void finish_host(struct sgp_sim_host *host)
{
    sgp_sim_drop_jobs(host);
    sgp_node_destroy(host->node);
    if (host->trainer)
        host->trainer->methods->destroy(host->trainer);
    sgp_sim_free_buffers(host);
}

void sgp_sim_destroy(struct sgp_sim *sim)
{
    if (!sim)
        return;
    for (uint32_t i = 0; i < sim->host_count && sim->hosts; i++)
        finish_host(&sim->hosts[i]);
    sgp_sim_free_jobs(sim);
    sgp_sim_free_faults(sim);
    sgp_sim_free_backups(sim);
    sgp_sim_forget_files(sim);
    sgp_sim_forget_unowed(sim);
    sgp_sim_network_finish(sim);
    sgp_sim_check_finish(sim);
    sgp_sim_knowledge_finish(&sim->knowledge);
    sgp_sim_forget_cycles(sim);
    sgp_sim_rows_finish(sim);
    sgp_queue_finish(&sim->queue);
    free(sim->share);
    free(sim->packed);
    free(sim->given);
    free(sim->frame);
    free(sim->token);
    free(sim->links);
    free(sim->effects.items);
    free(sim->hosts);
    free(sim);
}
