/* SPDX-License-Identifier: Apache-2.0 */
/* Links: the edges of all files that a host ever has, with one entry at each end. */
#include "sim/world.h"

#include <errno.h>
#include <stdlib.h>

enum { MARK_OUT = 1, MARK_IN = 2 };

struct peers {            /* the peers of one host */
    unsigned char *marks; /* for each host */
    uint32_t *hosts;      /* the marked hosts */
    uint32_t count;
};

struct sgp_sim_link *sgp_sim_link_of(
    struct sgp_sim_host *host, uint32_t peer, enum sgp_direction direction)
{
    struct sgp_sim_link *links = host->sim->links + host->link_first;
    uint32_t low = direction == SGP_OUT ? 0 : host->out_count;
    uint32_t high = direction == SGP_OUT ? host->out_count : host->link_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (links[middle].peer < peer)
            low = middle + 1;
        else
            high = middle;
    }
    sgp_assert(low < host->link_count && links[low].peer == peer);
    return &links[low];
}

bool sgp_sim_link_account(const struct sgp_sim_host *host, const struct sgp_sim_link *link,
    uint64_t *ret_last_number, double *ret_weight_owed)
{
    uint32_t index = (uint32_t)(link - host->sim->links) - host->link_first;
    if (host->sim->file_count == 1) { /* the links are those of the core, in the same order */
        sgp_node_link_account(host->node, index, ret_last_number, ret_weight_owed);
        return true;
    }
    enum sgp_direction direction = index < host->out_count ? SGP_OUT : SGP_IN;
    uint32_t peer = host->file->nodes[link->peer];
    uint32_t place =
        peer != SGP_SLOT_NONE ? sgp_node_find_link(host->node, peer, direction) : SGP_SLOT_NONE;
    *ret_last_number = 0;
    *ret_weight_owed = 0;
    if (place != SGP_SLOT_NONE)
        sgp_node_link_account(host->node, place, ret_last_number, ret_weight_owed);
    return place != SGP_SLOT_NONE;
}

/* ---- creation ---- */

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

/* Append the marked peers, and return their number. */
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

/* Append the links of one host after the `*total` previous ones. 0 or -ENOMEM. */
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
