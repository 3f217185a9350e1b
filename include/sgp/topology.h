/* A time-varying directed graph: who gives to whom, in which round, and how much.
 *
 * A topology is a list of phases. Phase p holds for `rounds` rounds, then the next; after the last
 * the cycle begins again, without the phases marked `once` (the prelude). What a round looks like is
 * a pure function of the round, so no two nodes need to agree on anything but the file.
 *
 * A topology is immutable once built, may be shared by threads, and is freed by its owner. */
#ifndef SGP_TOPOLOGY_H
#define SGP_TOPOLOGY_H

#include "sgp/status.h"

/* One directed edge: `source` gives `fraction` of its mass to `target` (both are node indices). */
struct sgp_edge {
    uint32_t source;
    uint32_t target;
    double fraction; /* 0 < fraction <= 1; fractions of one source sum to at most 1 */
};

struct sgp_topology_node {
    char name[SGP_NAME_BYTES];
    char address[SGP_ADDRESS_BYTES]; /* "host:port" as written, "" if the file gives none */
};

struct sgp_phase {
    char name[SGP_NAME_BYTES];
    uint32_t rounds; /* >= 1 */
    bool once;       /* belongs to the prelude */
    uint32_t edge_count;
    struct sgp_edge *out; /* edges by (source, target) */
    uint32_t *out_first;  /* node_count + 1 offsets into `out` */
    struct sgp_edge *in;  /* the same edges by (target, source) */
    uint32_t *in_first;   /* node_count + 1 offsets into `in` */
};

struct sgp_topology {
    uint32_t node_count;
    uint32_t phase_count;
    struct sgp_topology_node *nodes;
    struct sgp_phase *phases;   /* the prelude's first */
    sgp_round prelude_rounds;   /* rounds of all `once` phases */
    sgp_round rounds_per_cycle; /* rounds of all others; >= 1 */
    uint64_t digest;            /* of everything but addresses; equal files, equal digests */
};

/* Building. `create` gives a topology of named nodes and no phases; `add_phase` copies edges and
 * checks them; `seal` sums up rounds and digest and must be last. On failure the topology stays
 * valid and *error says why: SGP_E_TOPOLOGY (self-loop, repeated edge, fraction out of range, column
 * above 1, duplicate name or address, a prelude phase after a cycle phase, no phase in the cycle),
 * SGP_E_LIMIT, -ENOMEM. An edge with fraction <= 0 (SGP_FRACTION_DEFAULT) gets 1/(1+outdegree). */
#define SGP_FRACTION_DEFAULT (-1.0)
SGP_API int sgp_topology_create(const struct sgp_topology_node *nodes, uint32_t node_count,
    struct sgp_error *error, struct sgp_topology **ret_topology);
SGP_API int sgp_topology_add_phase(struct sgp_topology *topology, const char *name, uint32_t rounds,
    bool once, const struct sgp_edge *edges, uint32_t edge_count, struct sgp_error *error);
SGP_API int sgp_topology_seal(struct sgp_topology *topology, struct sgp_error *error);
SGP_API void sgp_topology_destroy(struct sgp_topology *topology); /* NULL is fine */

/* The phase of a round (round >= 0), and its index. */
SGP_API uint32_t sgp_topology_phase_index(const struct sgp_topology *topology, sgp_round round);
SGP_API const struct sgp_phase *sgp_topology_phase(
    const struct sgp_topology *topology, sgp_round round);

/* Edges out of or into a node in a phase, ordered by the other end. Returns the first of *ret_count
 * contiguous edges; borrowed from the phase. */
SGP_API const struct sgp_edge *sgp_phase_out(
    const struct sgp_phase *phase, uint32_t node, uint32_t *ret_count);
SGP_API const struct sgp_edge *sgp_phase_in(
    const struct sgp_phase *phase, uint32_t node, uint32_t *ret_count);

/* The first round >= from in which source gives to target, or SGP_ROUND_NONE if it never does again. */
SGP_API sgp_round sgp_topology_next_round(
    const struct sgp_topology *topology, uint32_t source, uint32_t target, sgp_round from);

/* The index of a named node, or -ENOENT. */
SGP_API int64_t sgp_topology_find(const struct sgp_topology *topology, const char *name);

/* Run the weights alone, from all ones, through the prelude and ten cycles; ret_least[i] is the least
 * weight that node i held just before giving (the w_min of the guard against starving).
 * ret_least has node_count elements. Returns 0 or -ENOMEM. */
SGP_API int sgp_topology_weight_least(const struct sgp_topology *topology, double *ret_least);

#endif
