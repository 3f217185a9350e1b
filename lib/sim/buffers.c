/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a host: what it gives, receives, records and saves. */
#include "sim/world.h"

#include "sgp/random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool gives_coded_updates(const struct sgp_sim *sim, const struct sgp_sim_host *host)
{
    const struct sgp_topology *topology = host->file->topology;
    return sim->options.chooser.compressor != SGP_COMPRESSOR_NONE &&
           sgp_topology_has_copy(topology, host->file->nodes[host->index]) &&
           !sgp_topology_has_token(topology);
}

int sgp_sim_create_buffers(struct sgp_sim *sim, struct sgp_sim_host *host)
{
    struct sgp_node_needs needs;
    sgp_node_counts(host->node, &needs);
    uint64_t dimension = sim->options.dimension;
    host->digests = calloc(needs.snapshots, sizeof *host->digests);
    host->outstanding = calloc(needs.snapshots, sizeof *host->outstanding);
    host->compressors = calloc(needs.snapshots, sizeof *host->compressors);
    host->versions = calloc(needs.snapshots, sizeof *host->versions);
    host->receives = calloc(needs.receives, sizeof *host->receives);
    host->came = calloc(dimension, sizeof *host->came);
    host->record.link_capacity = needs.links;
    host->record.links = calloc(needs.links + 1u, sizeof *host->record.links);
    if (needs.effects > sim->effects.capacity)
        sim->effects.capacity = needs.effects;
    if (sim->options.checkpoint_ns > 0)
        host->checkpoint.x = calloc((2 + SGP_KEPT_MAX) * dimension, sizeof *host->checkpoint.x);
    if (host->checkpoint.x) {
        host->checkpoint.rest = host->checkpoint.x + dimension;
        host->checkpoint.kept = host->checkpoint.rest + dimension;
    }
    bool complete = host->digests && host->outstanding && host->compressors && host->versions &&
                    host->receives && host->came && host->record.links &&
                    (host->checkpoint.x || sim->options.checkpoint_ns == 0);
    bool owned = sim->topology->owner != SGP_NODE_NONE;
    int status =
        complete ? sgp_performer_reserve(&host->performer, &needs, dimension, owned) : -ENOMEM;
    if (status == 0 && owned)
        status = sgp_sim_create_step(host);
    if (status == 0 && gives_coded_updates(sim, host))
        status = sgp_performer_choose(&host->performer, &sim->options.chooser,
            sgp_random_at(sim->options.seed, host->index), dimension);
    sgp_performer_choose_copies(&host->performer, &sim->options.copies);
    if (status == 0 && sim->options.guard > 0)
        status = sgp_performer_guard(&host->performer, sim->options.guard);
    if (status == 0 && sim->options.guard > 0)
        status = sgp_sim_create_words(host);
    if (status == 0 && sgp_topology_has_token(sim->topology))
        status = sgp_sim_create_mover(host);
    return status;
}

/* `array` points to a pointer of any type. Its bytes are copied, so that no pointer of another type
 * is read. */
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
    uint32_t had_snapshots = host->performer.snapshots.count;
    uint32_t had_receives = host->performer.receives.count;
    uint32_t had_links = host->record.link_capacity, had_effects = sim->effects.capacity;
    uint32_t snapshots = most(had_snapshots, needs->snapshots);
    uint32_t receives = most(had_receives, needs->receives);
    uint32_t links = most(had_links, needs->links);
    uint32_t effects = most(had_effects, needs->effects);
    struct sgp_record *record = &host->record;
    bool room = extend(&host->digests, had_snapshots, snapshots, sizeof *host->digests) &&
                extend(&host->outstanding, had_snapshots, snapshots, sizeof *host->outstanding) &&
                extend(&host->compressors, had_snapshots, snapshots, sizeof *host->compressors) &&
                extend(&host->versions, had_snapshots, snapshots, sizeof *host->versions) &&
                extend(&host->receives, had_receives, receives, sizeof *host->receives) &&
                extend(&record->links, had_links, links + 1u, sizeof *record->links) &&
                extend(&sim->effects.items, had_effects, effects, sizeof *sim->effects.items);
    if (!room)
        return -ENOMEM;
    record->link_capacity = links;
    sim->effects.capacity = effects;
    return sgp_performer_reserve(&host->performer, needs, sim->options.dimension, false);
}

void sgp_sim_free_buffers(struct sgp_sim_host *host)
{
    sgp_performer_finish(&host->performer);
    sgp_sim_free_step(host);
    sgp_sim_free_mover(host);
    sgp_sim_free_words(host);
    free(host->digests);
    free(host->outstanding);
    free(host->compressors);
    free(host->versions);
    free(host->receives);
    free(host->came);
    free(host->record.links);
    free(host->record.accounts);
    free(host->checkpoint.x);
}
