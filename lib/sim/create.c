/* Owns how a simulation begins and ends: its hosts with their cores, buffers and
 * trainers, the links between them, and the first entries of the queue. One thread. */
#include "sim/world.h"

#include "sgp/buffer.h"
#include "sgp/wire.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STREAM_NETWORK ((uint64_t)1 << 32) /* streams of the seed; a core's is its index */
#define STREAM_LINEAGE ((uint64_t)2 << 32)
#define STREAM_COMPUTE ((uint64_t)3 << 32)
#define STALL_FACTOR 64 /* times the longest job and the longest transfer, at least */

static void note(void *context, const struct sgp_effect *effect)
{
    struct sgp_sim_host *host = context;
    struct sgp_sim *sim = host->sim;
    switch (effect->note) {
    case SGP_NOTE_ROUND:
        sgp_sim_measure(host, effect->round, effect->weight);
        break;
    case SGP_NOTE_ABSENT:
        sim->summary.absences++;
        break;
    case SGP_NOTE_JUMP:
        sim->summary.jumps++;
        break;
    case SGP_NOTE_REFUSED:
        sim->summary.shares_refused++;
        break;
    case SGP_NOTE_ADOPTED:
        sim->summary.adopted++;
        break;
    case SGP_NOTE_DIVERGED:
        host->diverged = true;
        break;
    case SGP_NOTE_DISSOLVED:
        sgp_sim_check_dissolve(host, effect->factor);
        break;
    case SGP_NOTE_DISPUTED:
        sgp_sim_check_dispute(host, effect);
        break;
    case SGP_NOTE_DRAINED:
        host->drained = true;
        if (sim->options.checkpoint_ns > 0)
            sgp_sim_checkpoint(host);
        break;
    default:
        break;
    }
    if (sim->options.note)
        sim->options.note(sim->options.context, host->index, sim->now, effect);
}

static const struct sgp_driver_verbs verbs = {
    .commit = sgp_sim_commit,
    .dial = sgp_sim_dial,
    .send = sgp_sim_send,
    .hang_up = sgp_sim_hang_up,
    .receive = sgp_sim_receive,
    .train = sgp_sim_train,
    .publish = sgp_sim_publish,
    .absorb = sgp_sim_absorb,
    .restore = sgp_sim_restore,
    .adopt = sgp_sim_adopt,
    .scale = sgp_sim_scale,
    .sketch = sgp_sim_sketch,
    .inquire = sgp_sim_inquire,
    .note = note,
};

/* The least weight at which a node may ever train: it gives nothing below SGP_STARVING * w_min, and
 * giving leaves it what its sparsest phase keeps, or half where it chooses itself. */
double sgp_sim_guard(const struct sgp_sim *sim, const struct sgp_sim_host *host)
{
    const struct sgp_topology *topology = host->file->topology;
    double keep = sim->options.method->whom == SGP_WHOM_ONE_BY_LOT ? 0.5 : 1;
    for (uint32_t p = 0; p < topology->phase_count; p++)
        keep = fmin(keep, sgp_phase_keep(&topology->phases[p], host->file->nodes[host->index]));
    return SGP_STARVING * host->weight_least * keep;
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
        .lineage = host->lineage,
        .seed = options->seed,
        .parameters = options->dimension,
        .fingerprint = {.shape = options->dimension, .topology = topology->digest},
        .rounds = options->rounds,
        .local_steps = options->local_steps,
        .final_cycles = options->final_cycles,
        .start = options->start,
        .weight_least = host->weight_least,
    };
}

static int create_node(struct sgp_sim *sim, struct sgp_sim_host *host, struct sgp_random *lineages)
{
    struct sgp_node_config config;
    host->lineage = sgp_random_next(lineages) | 1;
    host->weight_least = host->file->weight_least[host->file->nodes[host->index]];
    sgp_sim_node_config(sim, host, &config);
    host->guard = sgp_sim_guard(sim, host);
    return sgp_node_create(&config, &host->node);
}

static int create_buffers(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    struct sgp_node_needs needs;
    sgp_node_counts(host->node, &needs);
    uint64_t dimension = sim->options.dimension;
    host->snapshot_count = needs.snapshots;
    host->receive_count = needs.receives;
    host->snapshots = calloc(needs.snapshots, dimension * sizeof *host->snapshots);
    host->digests = calloc(needs.snapshots, sizeof *host->digests);
    host->outstanding = calloc(needs.snapshots, sizeof *host->outstanding);
    host->received = calloc(needs.receives, dimension * sizeof *host->received);
    host->receives = calloc(needs.receives, sizeof *host->receives);
    host->record.link_capacity = needs.links;
    host->record.links = calloc(needs.links + 1u, sizeof *host->record.links);
    if (needs.effects > sim->effects.capacity)
        sim->effects.capacity = needs.effects;
    if (sim->options.checkpoint_ns > 0)
        host->checkpoint.x = calloc((1 + SGP_KEPT_MAX) * dimension, sizeof *host->checkpoint.x);
    if (host->checkpoint.x)
        host->checkpoint.kept = host->checkpoint.x + dimension;
    bool complete = host->snapshots && host->digests && host->outstanding && host->received &&
                    host->receives && host->record.links &&
                    (host->checkpoint.x || sim->options.checkpoint_ns == 0);
    return complete ? sgp_vector_create(dimension, &host->lent) : -ENOMEM;
}

static int create_host(struct sgp_sim *sim, uint32_t index, struct sgp_random *lineages)
{
    struct sgp_sim_host *host = &sim->hosts[index];
    *host = (struct sgp_sim_host){
        .sim = sim, .index = index, .compute_factor = 1, .tick_at = SGP_TIME_NEVER};
    host->file = sgp_sim_first_file(sim, index, &host->dead);
    sgp_random_init(&host->random, sim->options.seed, STREAM_COMPUTE + index);
    int status = create_node(sim, host, lineages);
    if (status == 0)
        status = create_buffers(sim, host);
    if (status == 0)
        status = sim->options.trainer(sim->options.context, index, &host->trainer);
    if (status < 0)
        return status;
    sgp_assert(host->trainer->parameters == sim->options.dimension);
    struct sgp_node_status now;
    sgp_node_status(host->node, &now);
    host->weight = now.weight;
    host->driver = (struct sgp_driver){
        .node = host->node,
        .verbs = &verbs,
        .context = host,
        .sink = sim->options.sink,
        .name = sgp_sim_name(sim, index),
        .effects = &sim->effects,
    };
    return 0;
}

/* Its record will be read. */
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
    struct sgp_random lineages;
    sgp_random_init(&lineages, sim->options.seed, STREAM_LINEAGE);
    int status = sgp_sim_read_files(sim);
    for (uint32_t i = 0; i < sim->host_count && status == 0; i++)
        status = create_host(sim, i, &lineages);
    if (status < 0)
        return status;
    for (uint32_t i = 0; i < sim->options.crash_count && status == 0; i++)
        status = make_mortal(&sim->hosts[sim->options.crashes[i].node]);
    if (status < 0)
        return status;
    for (uint32_t i = 0; i < sim->options.straggler_count; i++) {
        const struct sgp_sim_straggler *straggler = &sim->options.stragglers[i];
        sim->hosts[straggler->node].compute_factor = straggler->factor;
    }
    sim->options.stragglers = NULL; /* the hosts know them now */
    sim->effects.items = calloc(sim->effects.capacity, sizeof *sim->effects.items);
    return sim->effects.items ? sgp_sim_create_links(sim) : -ENOMEM;
}

/* How long nobody may complete a round before we say that nobody ever will. */
static sgp_time stall_of(const struct sgp_sim *sim)
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

static int schedule_start(struct sgp_sim *sim)
{
    for (uint32_t i = 0; i < sim->host_count; i++)
        if (!sim->hosts[i].dead) /* not yet born: its first file starts it */
            sgp_sim_push(sim, 0, SGP_SIM_START, 0, i);
    int status = sgp_sim_schedule_faults(sim);
    sim->faults_end = sgp_sim_faults_end(sim);
    sgp_sim_schedule_reloads(sim);
    sim->stall_ns = stall_of(sim);
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
    sim->expected = (double)topology->node_count;
    sim->summary.weight_least = INFINITY;
    sgp_random_init(&sim->random, options->seed, STREAM_NETWORK);
    status = sgp_sim_copy_faults(sim);
    if (status == 0)
        status = sgp_queue_init(&sim->queue, topology->node_count);
    sim->hosts = calloc(topology->node_count, sizeof *sim->hosts);
    sim->frame = malloc(SGP_WIRE_FRAME_MAX);
    if (!sim->hosts || !sim->frame)
        status = -ENOMEM;
    if (status == 0)
        status = sgp_vector_create(options->dimension, &sim->lent);
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
    while (host->job_first) {
        struct sgp_sim_job *job = host->job_first;
        host->job_first = job->next;
        free(job);
    }
    sgp_node_destroy(host->node);
    if (host->trainer)
        host->trainer->methods->destroy(host->trainer);
    sgp_vector_destroy(host->lent);
    free(host->snapshots);
    free(host->digests);
    free(host->outstanding);
    free(host->received);
    free(host->receives);
    free(host->record.links);
    free(host->record.accounts);
    free(host->checkpoint.x);
}

void sgp_sim_destroy(struct sgp_sim *sim)
{
    if (!sim)
        return;
    for (uint32_t i = 0; i < sim->host_count && sim->hosts; i++)
        finish_host(&sim->hosts[i]);
    sgp_sim_free_faults(sim);
    sgp_sim_forget_files(sim);
    sgp_sim_network_finish(sim);
    sgp_sim_check_finish(sim);
    sgp_sim_rows_finish(sim);
    sgp_queue_finish(&sim->queue);
    sgp_vector_destroy(sim->lent);
    free(sim->frame);
    free(sim->links);
    free(sim->effects.items);
    free(sim->hosts);
    free(sim);
}
