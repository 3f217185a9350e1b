/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to lib/topology: the edges of a phase while a generator makes them. */
#ifndef SGP_TOPOLOGY_EDGES_H
#define SGP_TOPOLOGY_EDGES_H

#include "sgp/generate.h"

/* Grows. Remembers its first failure, so that generators need not check every push. */
struct sgp_edges {
    struct sgp_edge *edges;
    uint32_t count;
    uint32_t capacity;
    int code; /* 0, SGP_E_LIMIT or -ENOMEM */
};

void sgp_edges_push(struct sgp_edges *edges, uint32_t source, uint32_t target, double fraction);
/* With `count` parts from `part` on. */
void sgp_edges_push_parts(struct sgp_edges *edges, uint32_t source, uint32_t target,
    double fraction, uint32_t part, uint32_t count);

/* Pass the edges to the topology as a phase of one round, and begin again with none. */
int sgp_edges_flush(struct sgp_edges *edges, struct sgp_topology *topology, const char *name,
    struct sgp_error *error);

/* The same for a phase with more options. */
int sgp_edges_flush_as(struct sgp_edges *edges, struct sgp_topology *topology,
    const struct sgp_phase_options *options, struct sgp_error *error);

void sgp_edges_finish(struct sgp_edges *edges);

/* The Base-(m+1) family, in its own file. */
int sgp_generate_base(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error);

/* Random pairs. */
int sgp_generate_pairs(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error);

/* The families with an owner. */
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
