/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the room: the edges of a phase while a generator makes them. */
#ifndef SGP_TOPOLOGY_EDGES_H
#define SGP_TOPOLOGY_EDGES_H

#include "sgp/generate.h"

/* Grows; remembers its first failure, so that generators need not look at every push. */
struct sgp_edges {
    struct sgp_edge *edges;
    uint32_t count;
    uint32_t capacity;
    int code; /* 0, SGP_E_LIMIT or -ENOMEM */
};

void sgp_edges_push(struct sgp_edges *edges, uint32_t source, uint32_t target, double fraction);

/* Hand the edges to the topology as a phase of one round and start again empty. */
int sgp_edges_flush(struct sgp_edges *edges, struct sgp_topology *topology, const char *name,
    struct sgp_error *error);

void sgp_edges_finish(struct sgp_edges *edges);

/* The Base-(m+1) family, in a file of its own. */
int sgp_generate_base(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error);

#endif
