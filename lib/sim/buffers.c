/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a host: what it gives, receives, records and writes down. */
#include "sim/world.h"

#include "sgp/buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sgp_sim_create_buffers(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    struct sgp_node_needs needs;
    sgp_node_counts(host->node, &needs);
    uint64_t dimension = sim->options.dimension;
    host->snapshot_count = needs.snapshots;
    host->receive_count = needs.receives;
    host->snapshots = calloc(needs.snapshots, dimension * sizeof *host->snapshots);
    host->digests = calloc(needs.snapshots, sizeof *host->digests);
    host->outstanding = calloc(needs.snapshots, sizeof *host->outstanding);
    host->versions = calloc(needs.snapshots, sizeof *host->versions);
    host->received = calloc(needs.receives, dimension * sizeof *host->received);
    host->receives = calloc(needs.receives, sizeof *host->receives);
    host->folded = calloc(dimension, sizeof *host->folded);
    host->record.link_capacity = needs.links;
    host->record.links = calloc(needs.links + 1u, sizeof *host->record.links);
    if (needs.effects > sim->effects.capacity)
        sim->effects.capacity = needs.effects;
    if (sim->options.checkpoint_ns > 0)
        host->checkpoint.x = calloc((1 + SGP_KEPT_MAX) * dimension, sizeof *host->checkpoint.x);
    if (host->checkpoint.x)
        host->checkpoint.kept = host->checkpoint.x + dimension;
    bool complete = host->snapshots && host->digests && host->outstanding && host->versions &&
                    host->received && host->receives && host->folded && host->record.links &&
                    (host->checkpoint.x || sim->options.checkpoint_ns == 0);
    int status = complete ? sgp_vector_create(dimension, &host->lent) : -ENOMEM;
    if (status == 0 && sim->topology->owner != SGP_NODE_NONE)
        status = sgp_sim_create_step(host);
    if (status == 0 && sgp_topology_has_token(sim->topology))
        status = sgp_sim_create_mover(host);
    return status;
}

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
                extend(&host->versions, had_snapshots, snapshots, sizeof *host->versions) &&
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

void sgp_sim_free_buffers(struct sgp_sim_host *host)
{
    sgp_vector_destroy(host->lent);
    sgp_sim_free_step(host);
    sgp_sim_free_mover(host);
    free(host->snapshots);
    free(host->digests);
    free(host->outstanding);
    free(host->versions);
    free(host->received);
    free(host->receives);
    free(host->folded);
    free(host->record.links);
    free(host->record.accounts);
    free(host->checkpoint.x);
}
