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
/* Of `count` parts from `part` on. */
void sgp_edges_push_parts(struct sgp_edges *edges, uint32_t source, uint32_t target,
    double fraction, uint32_t part, uint32_t count);

/* Hand the edges to the topology as a phase of one round and start again empty. */
int sgp_edges_flush(struct sgp_edges *edges, struct sgp_topology *topology, const char *name,
    struct sgp_error *error);

/* The same as a phase that says more. */
int sgp_edges_flush_as(struct sgp_edges *edges, struct sgp_topology *topology,
    const struct sgp_phase_options *options, struct sgp_error *error);

void sgp_edges_finish(struct sgp_edges *edges);

/* The Base-(m+1) family, in a file of its own. */
int sgp_generate_base(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error);

/* Random pairs. */
int sgp_generate_pairs(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error);

/* Those with an owner. */
int sgp_generate_owner(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error);
int sgp_generate_token(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error);

/* The all-reduce families, and elastic averaging. */
int sgp_generate_reduce_ring(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error);
int sgp_generate_reduce_direct(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error);
int sgp_generate_reduce_doubling(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error);
int sgp_generate_reduce_halving(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error);
int sgp_generate_reduce_blocks(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error);
int sgp_generate_reduce_tree(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error);
int sgp_generate_reduce_groups(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error);
int sgp_generate_reduce_hubs(struct sgp_topology *topology,
    const struct sgp_generate_options *options, struct sgp_error *error);
int sgp_generate_elastic(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error);

#endif
