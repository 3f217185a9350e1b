/* SPDX-License-Identifier: Apache-2.0 */
/* The edges of a phase while a generator makes them. */
#include "topology/edges.h"

#include <errno.h>
#include <stdlib.h>

void sgp_edges_push(struct sgp_edges *edges, uint32_t source, uint32_t target, double fraction)
{
    sgp_edges_push_parts(edges, source, target, fraction, 0, 0);
}

void sgp_edges_push_parts(struct sgp_edges *edges, uint32_t source, uint32_t target,
    double fraction, uint32_t part, uint32_t count)
{
    if (edges->code)
        return;
    if (edges->count == edges->capacity) {
        uint32_t capacity = edges->capacity ? edges->capacity * 2 : 64;
        if (edges->count == SGP_EDGES_MAX) {
            edges->code = SGP_E_LIMIT;
            return;
        }
        struct sgp_edge *grown = realloc(edges->edges, capacity * sizeof *grown);
        if (!grown) {
            edges->code = -ENOMEM;
            return;
        }
        edges->edges = grown;
        edges->capacity = capacity;
    }
    edges->edges[edges->count++] = (struct sgp_edge){.source = source,
        .target = target,
        .fraction = fraction,
        .part = (uint16_t)part,
        .part_count = (uint16_t)count};
}

int sgp_edges_flush(struct sgp_edges *edges, struct sgp_topology *topology, const char *name,
    struct sgp_error *error)
{
    const struct sgp_phase_options options = {.name = name, .rounds = 1};
    return sgp_edges_flush_as(edges, topology, &options, error);
}

int sgp_edges_flush_as(struct sgp_edges *edges, struct sgp_topology *topology,
    const struct sgp_phase_options *options, struct sgp_error *error)
{
    if (edges->code == SGP_E_LIMIT)
        return sgp_fail(error, SGP_E_LIMIT,
            "%u nodes of this family have too many edges; the limit is %u, so take a sparser "
            "family",
            topology->node_count, SGP_EDGES_MAX);
    if (edges->code)
        return sgp_fail(error, edges->code, "no memory for the edges of %s", options->name);
    int code = sgp_topology_add(topology, options, edges->edges, edges->count, error);
    edges->count = 0;
    return code;
}

void sgp_edges_finish(struct sgp_edges *edges)
{
    free(edges->edges);
}
