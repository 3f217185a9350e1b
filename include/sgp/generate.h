/* SPDX-License-Identifier: Apache-2.0 */
/* Families of topologies: which node gives to which, for any number of nodes. */
#ifndef SGP_GENERATE_H
#define SGP_GENERATE_H

#include "sgp/topology.h"

struct sgp_generate_options {
    const char *family; /* a name of sgp_generate_families */
    uint32_t nodes;     /* 1 to SGP_NODES_MAX; they are named n0, n1, ... */
    /* m, the number of targets of each node in a round; 0: the family's default, 1 */
    uint32_t peers;
    uint32_t degree; /* out-degree of `random`; 0: the default, 2 or the number of other nodes */
    uint32_t phases; /* of `pairs`; 0: the default, N, or N - 1 if N is even, at most 16 */
    uint64_t seed;   /* of `random` and `pairs`; the other families use no random numbers */
    uint32_t group;  /* nodes of a group of all-reduce-groups, 2 or more */
    uint32_t hubs;   /* of all-reduce-hubs, the first nodes; 0: the default, 1 */
    bool relays;     /* of all-reduce-hubs: these do not train */
    /* Of all-reduce-*: the number of pieces of the vector. Each piece has its own rounds between
     * those of the others, so that a link carries one piece while another is summed. 0: the
     * default, 1. */
    uint32_t pieces;
    double fraction; /* of `elastic`, to and from the relay; 0: the default, 1/nodes */
    /* of `owner`, the number of owners: the first nodes, each of a part; 0: the default, 1 of
     * all */
    uint32_t owners;
    bool members;    /* of `owner`: the owners train too */
    uint32_t backup; /* of `owner`: the number of workers whose updates a step does not need */
    struct sgp_staleness staleness; /* of `owner`, if it has no backup workers */
    struct sgp_delay delay;         /* of `token`; its token NONE: dynamic */
    uint32_t prelude;               /* passes of `prelude_family` before the cycle; 0: none */
    /* A family that averages exactly; its only options are group, hubs, relays and pieces. */
    const char *prelude_family;
    bool outer; /* an outer step after each cycle, or each phase of `pairs`; a prelude has none */
    const char *const *names; /* one for each node, borrowed for the call; NULL: n0, n1, ... */
    const char *address;      /* "HOST:PORT+": node i listens on PORT + i; NULL: no addresses */
};

/* The options that a family has beside `nodes`; peers, degree and phases must be 0 if the family
 * does not have them. */
#define SGP_GENERATE_PEERS 1u
#define SGP_GENERATE_DEGREE 2u
#define SGP_GENERATE_SEED 4u
#define SGP_GENERATE_GROUP 8u
#define SGP_GENERATE_FRACTION 16u
#define SGP_GENERATE_HUBS 256u  /* hubs and relays */
#define SGP_GENERATE_OWNER 64u  /* owners, members, backup and staleness */
#define SGP_GENERATE_TOKEN 128u /* delay */
#define SGP_GENERATE_PHASES 512u
/* pieces; every cycle of the family is exact, so it may be a prelude */
#define SGP_GENERATE_EXACT 32u

struct sgp_generate_family {
    const char *name;
    const char *summary; /* one line, for `sgpctl topology generate --help` */
    unsigned options;    /* SGP_GENERATE_* */
    /* Add the phases for options->nodes >= 2 to a topology of that many nodes. */
    int (*add_phases)(struct sgp_topology *topology, const struct sgp_generate_options *options,
        struct sgp_error *error);
};

/* All families; the last entry's name is NULL. */
SGP_API extern const struct sgp_generate_family sgp_generate_families[];

/* Make a sealed topology, which the caller destroys. One node gets one phase without edges,
 * whatever the family. Errors: SGP_E_TOPOLOGY with reason and remedy (unknown family, a number of
 * nodes that the family cannot serve, an option that it does not have, a bad address), SGP_E_LIMIT,
 * -ENOMEM. Equal options give equal topologies on every machine. Any thread. */
SGP_API int sgp_generate(const struct sgp_generate_options *options, struct sgp_error *error,
    struct sgp_topology **ret_topology);

#endif
