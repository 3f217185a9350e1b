/* SPDX-License-Identifier: Apache-2.0 */
/* The edges of a phase while a generator makes them. */
#include "topology/edges.h"

#include <errno.h>
#include <stdlib.h>

void sgp_edges_push(struct sgp_edges *edges, uint32_t source, uint32_t target, double fraction)
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
    edges->edges[edges->count++] =
        (struct sgp_edge){.source = source, .target = target, .fraction = fraction};
}

int sgp_edges_flush(struct sgp_edges *edges, struct sgp_topology *topology, const char *name,
    struct sgp_error *error)
{
    if (edges->code == SGP_E_LIMIT)
        return sgp_fail(error, SGP_E_LIMIT,
            "%u nodes of this family have too many edges; the limit is %u, so take a sparser "
            "family",
            topology->node_count, SGP_EDGES_MAX);
    if (edges->code)
        return sgp_fail(error, edges->code, "no memory for the edges of %s", name);
    int code = sgp_topology_add_phase(topology, name, 1, false, edges->edges, edges->count, error);
    edges->count = 0;
    return code;
}

void sgp_edges_finish(struct sgp_edges *edges)
{
    free(edges->edges);
}
