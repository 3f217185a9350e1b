/* Membership: which topology file each host has, when it gets another, and what that does to it.
 *
 * Hosts are the nodes of the fleet's topology, which names all that will ever be. Another file may name
 * fewer, in another order, so a core's indices are translated by the file that it runs on. A host
 * whose first file comes later than at 0 is not born before: it counts as dead, with its weight. */
#include "sim/world.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- files ---- */

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
    if (!file->hosts || !file->nodes || !file->weight_least)
        return -ENOMEM;
    for (uint32_t i = 0; i < sim->host_count; i++) {
        int64_t node = sgp_topology_find(topology, sim->topology->nodes[i].name);
        file->nodes[i] = node < 0 ? SGP_SLOT_NONE : (uint32_t)node;
        if (node >= 0)
            file->hosts[node] = i;
    }
    return sgp_topology_weight_least(topology, file->weight_least);
}

static const struct sgp_sim_file *file_of(
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
        if (!file_of(sim, reloads[i].topology))
            status = read_file(sim, reloads[i].topology, &sim->files[sim->file_count++]);
    return status;
}

void sgp_sim_forget_files(struct sgp_sim *sim)
{
    for (uint32_t i = 0; i < sim->file_count; i++) {
        free(sim->files[i].hosts);
        free(sim->files[i].nodes);
        free(sim->files[i].weight_least);
    }
    if (sim->files) /* the options are a copy then */
        free((void *)(uintptr_t)sim->options.reloads);
    free(sim->files);
}

static const struct sgp_sim_reload *first_of(const struct sgp_sim *sim, uint32_t host)
{
    for (uint32_t i = 0; i < sim->options.reload_count; i++)
        if (sim->options.reloads[i].node == host)
            return &sim->options.reloads[i];
    return NULL;
}

const struct sgp_sim_file *sgp_sim_first_file(
    const struct sgp_sim *sim, uint32_t host, bool *ret_later)
{
    const struct sgp_sim_reload *first = first_of(sim, host);
    *ret_later = first && first->at > 0;
    return first ? file_of(sim, first->topology) : &sim->files[0];
}

void sgp_sim_schedule_reloads(struct sgp_sim *sim)
{
    for (uint32_t i = 0; i < sim->options.reload_count; i++) {
        const struct sgp_sim_reload *reload = &sim->options.reloads[i];
        if (reload->at > 0 || first_of(sim, reload->node) != reload)
            sgp_sim_push(sim, reload->at, SGP_SIM_RELOAD, 0, i);
        if (reload->at > sim->faults_end)
            sim->faults_end = reload->at;
    }
}

/* ---- links: the edges of all files ---- */

enum { MARK_OUT = 1, MARK_IN = 2 };

struct peers {            /* of one host */
    unsigned char *marks; /* by host */
    uint32_t *hosts;      /* those that bear a mark */
    uint32_t count;
};

static void mark(struct peers *peers, uint32_t host, unsigned char mark)
{
    if (peers->marks[host] == 0)
        peers->hosts[peers->count++] = host;
    peers->marks[host] |= mark;
}

static void mark_peers(const struct sgp_sim_file *file, uint32_t host, struct peers *peers)
{
    uint32_t self = file->nodes[host], count;
    for (uint32_t p = 0; p < file->topology->phase_count && self != SGP_SLOT_NONE; p++) {
        const struct sgp_phase *phase = &file->topology->phases[p];
        const struct sgp_edge *edges = sgp_phase_out(phase, self, &count);
        for (uint32_t e = 0; e < count; e++)
            mark(peers, file->hosts[edges[e].target], MARK_OUT);
        edges = sgp_phase_in(phase, self, &count);
        for (uint32_t e = 0; e < count; e++)
            mark(peers, file->hosts[edges[e].source], MARK_IN);
    }
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Append the peers that bear a mark; returns their number. */
static uint32_t append_links(struct sgp_sim *sim, uint32_t host, uint32_t first,
    const struct peers *peers, unsigned char mark)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < peers->count; i++)
        if (peers->marks[peers->hosts[i]] & mark)
            sim->links[first + count++] = (struct sgp_sim_link){
                .peer = peers->hosts[i], .holder = host, .before_holder = host};
    return count;
}

/* The links of one host, behind those of the `*total` before. 0 or -ENOMEM. */
static int append_host(struct sgp_sim *sim, struct sgp_sim_host *host, struct peers *peers,
    uint32_t *total, uint32_t *capacity)
{
    peers->count = 0;
    for (uint32_t f = 0; f < sim->file_count; f++)
        mark_peers(&sim->files[f], host->index, peers);
    qsort(peers->hosts, peers->count, sizeof *peers->hosts, by_number);
    if (*capacity - *total < 2 * peers->count) {
        *capacity = 2 * (*capacity + peers->count);
        void *links = realloc(sim->links, *capacity * sizeof *sim->links);
        if (!links)
            return -ENOMEM;
        sim->links = links;
    }
    host->link_first = *total;
    host->out_count = append_links(sim, host->index, *total, peers, MARK_OUT);
    host->link_count =
        host->out_count + append_links(sim, host->index, *total + host->out_count, peers, MARK_IN);
    *total += host->link_count;
    for (uint32_t i = 0; i < peers->count; i++)
        peers->marks[peers->hosts[i]] = 0;
    return 0;
}

static void find_others(struct sgp_sim *sim)
{
    for (uint32_t i = 0; i < sim->host_count; i++) {
        struct sgp_sim_host *host = &sim->hosts[i];
        for (uint32_t j = 0; j < host->link_count; j++) {
            struct sgp_sim_link *link = &sim->links[host->link_first + j];
            enum sgp_direction there = j < host->out_count ? SGP_IN : SGP_OUT;
            const struct sgp_sim_link *other =
                sgp_sim_link_of(&sim->hosts[link->peer], host->index, there);
            link->other = (uint32_t)(other - sim->links);
        }
    }
}

int sgp_sim_create_links(struct sgp_sim *sim)
{
    uint32_t total = 0, capacity = 0;
    struct peers peers = {
        .marks = calloc(sim->host_count, 1), .hosts = calloc(sim->host_count, sizeof *peers.hosts)};
    int status = peers.marks && peers.hosts ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < sim->host_count && status == 0; i++)
        status = append_host(sim, &sim->hosts[i], &peers, &total, &capacity);
    free(peers.marks);
    free(peers.hosts);
    if (status == 0)
        find_others(sim);
    return status;
}

bool sgp_sim_link_account(const struct sgp_sim_host *host, const struct sgp_sim_link *link,
    uint64_t *ret_last_number, double *ret_weight_owed)
{
    uint32_t index = (uint32_t)(link - host->sim->links) - host->link_first;
    if (host->sim->file_count == 1) { /* then they are the core's, in its order */
        sgp_node_link_account(host->node, index, ret_last_number, ret_weight_owed);
        return true;
    }
    enum sgp_direction direction = index < host->out_count ? SGP_OUT : SGP_IN;
    uint32_t peer = host->file->nodes[link->peer];
    for (uint32_t i = 0; i < sgp_node_link_count(host->node) && peer != SGP_SLOT_NONE; i++) {
        struct sgp_peer_status status;
        sgp_node_link_status(host->node, i, &status);
        if (status.peer != peer || status.direction != direction)
            continue;
        *ret_last_number = status.last_number;
        *ret_weight_owed = status.weight_owed;
        return true;
    }
    *ret_last_number = 0;
    *ret_weight_owed = 0;
    return false;
}

/* ---- another file ---- */

/* `array` points to a pointer to whatever type: that is copied, not looked at as another. */
static bool extend(void *array, size_t from, size_t to, size_t element_bytes)
{
    char *memory;
    memcpy(&memory, array, sizeof memory);
    memory = realloc(memory, to * element_bytes);
    if (!memory)
        return false;
    memset(memory + from * element_bytes, 0, (to - from) * element_bytes);
    memcpy(array, &memory, sizeof memory);
    return true;
}

static uint32_t most(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

int sgp_sim_make_room(
    struct sgp_sim *sim, struct sgp_sim_host *host, const struct sgp_node_needs *needs)
{
    size_t bytes = sim->options.dimension * sizeof(float);
    uint32_t had_snapshots = host->snapshot_count, had_receives = host->receive_count;
    uint32_t had_links = host->record.link_capacity, had_effects = sim->effects.capacity;
    uint32_t snapshots = most(had_snapshots, needs->snapshots);
    uint32_t receives = most(had_receives, needs->receives);
    uint32_t links = most(had_links, needs->links);
    uint32_t effects = most(had_effects, needs->effects);
    struct sgp_record *record = &host->record;
    bool room = extend(&host->snapshots, had_snapshots, snapshots, bytes) &&
                extend(&host->digests, had_snapshots, snapshots, sizeof *host->digests) &&
                extend(&host->outstanding, had_snapshots, snapshots, sizeof *host->outstanding) &&
                extend(&host->received, had_receives, receives, bytes) &&
                extend(&host->receives, had_receives, receives, sizeof *host->receives) &&
                extend(&record->links, had_links, links + 1u, sizeof *record->links) &&
                extend(&sim->effects.items, had_effects, effects, sizeof *sim->effects.items);
    if (!room)
        return -ENOMEM;
    host->snapshot_count = snapshots;
    host->receive_count = receives;
    record->link_capacity = links;
    sim->effects.capacity = effects;
    return 0;
}

/* Dials under way are void. */
static void give_up_dials(struct sgp_sim *sim, uint32_t host)
{
    for (uint32_t i = 0; i < sim->connection_count; i++) {
        struct sgp_sim_connection *connection = sim->connections[i];
        if (connection && connection->hosts[SGP_SIM_SOURCE] == host &&
            connection->ends[SGP_SIM_SOURCE] == SGP_SIM_END_NONE)
            connection->broken = true;
    }
}

static int change(struct sgp_sim *sim, struct sgp_sim_host *host, const struct sgp_sim_file *file)
{
    struct sgp_node_change change = {.topology = file->topology,
        .self = file->nodes[host->index],
        .weight_least = file->weight_least[file->nodes[host->index]]};
    struct sgp_node_needs needs;
    struct sgp_reload *plan;
    int status = sgp_reload_prepare(host->node, &change, &needs, &plan);
    if (status < 0)
        return status;
    status = sgp_sim_make_room(sim, host, &needs);
    if (status < 0) {
        sgp_reload_cancel(plan);
        return status;
    }
    give_up_dials(sim, host->index);
    sgp_driver_reload(&host->driver, sgp_sim_clock(sim, host), plan);
    host->file = file;
    host->weight_least = change.weight_least;
    host->guard = fmin(host->guard, sgp_sim_guard(sim, host)); /* it may be below the new one yet */
    struct sgp_event event = {.type = SGP_EVENT_TICK};
    sgp_sim_post(sim, host, &event);
    return 0;
}

static void begin(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    host->dead = false;
    host->file_next = NULL; /* it was there before the first */
    sgp_sim_check_begin(sim, host);
    struct sgp_event event = {.type = SGP_EVENT_START};
    sgp_sim_post(sim, host, &event);
}

void sgp_sim_reload(struct sgp_sim *sim, const struct sgp_sim_reload *reload)
{
    struct sgp_sim_host *host = &sim->hosts[reload->node];
    sgp_time ready = sgp_sim_ready(sim, host->index);
    if (host->gone)
        return;
    if (ready > sim->now) { /* its process is stopped */
        if (ready != SGP_TIME_NEVER)
            sgp_sim_push(sim, ready, SGP_SIM_RELOAD, 0, (uint32_t)(reload - sim->options.reloads));
        return;
    }
    if (host->dead && first_of(sim, host->index) == reload) {
        begin(sim, host);
        return;
    }
    if (host->dead || host->drained || host->diverged) {
        host->file_next = file_of(sim, reload->topology);
        return;
    }
    int status = change(sim, host, file_of(sim, reload->topology));
    if (status < 0)
        sgp_sim_fail(sim, status, "%s cannot reload: %s", sgp_sim_name(sim, host->index),
            sgp_strerror(status));
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
    host->guard = fmin(host->guard, sgp_sim_guard(host->sim, host));
}
