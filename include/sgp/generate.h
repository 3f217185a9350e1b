/* SPDX-License-Identifier: Apache-2.0 */
/* Families of topologies, made rather than written: who gives to whom for any number of nodes. */
#ifndef SGP_GENERATE_H
#define SGP_GENERATE_H

#include "sgp/topology.h"

struct sgp_generate_options {
    const char *family; /* a name of sgp_generate_families */
    uint32_t nodes;     /* 1 to SGP_NODES_MAX; they are named n0, n1, ... */
    uint32_t peers;     /* m, nodes that each gives to in a round; 0: the family's default, 1 */
    uint32_t degree;    /* out-degree of `random`; 0: the default, 2 or as many as there are */
    uint32_t phases;    /* of `pairs`; 0: the default, N, or N - 1 if N is even, at most 16 */
    uint64_t seed;      /* of `random` and `pairs`; the others leave nothing to chance */
    uint32_t group;     /* nodes of a group of all-reduce-groups, 2 or more */
    uint32_t hubs;      /* of all-reduce-hubs, the first nodes; 0: the default, 1 */
    bool relays;        /* of all-reduce-hubs: these do not train */
    uint32_t
        pieces; /* of all-reduce-*: into so many the vector is cut, each reduced by rounds of its own between those of the
                           others, so that a link carries one while another is summed up; 0: the default, 1 */
    double fraction; /* of `elastic`, to and from the relay; 0: the default, 1/nodes */
    uint32_t owners; /* of `owner`, the first nodes, each of a part; 0: the default, 1 of all */
    bool members;    /* of `owner`: these train, too */
    uint32_t backup; /* of `owner`: backup workers, whose updates a step does not wait for */
    struct sgp_staleness staleness; /* of `owner`, if it has no backup workers */
    struct sgp_delay delay;         /* of `token`; its token NONE: dynamic */
    uint32_t prelude;               /* passes of `prelude_family` that come first; 0: none */
    const char *
        prelude_family; /* one that averages exactly; it knows no options but group, hubs, relays and pieces */
    bool outer; /* an outer step after each cycle, or each phase of `pairs`; a prelude has none */
    const char *const *names; /* one for each node, borrowed for the call; NULL: n0, n1, ... */
    const char *address;      /* "HOST:PORT+": node i listens on PORT + i; NULL: no addresses */
};

/* What a family listens to beside `nodes`; peers, degree and phases must be 0 where they mean nothing. */
#define SGP_GENERATE_PEERS 1u
#define SGP_GENERATE_DEGREE 2u
#define SGP_GENERATE_SEED 4u
#define SGP_GENERATE_GROUP 8u
#define SGP_GENERATE_FRACTION 16u
#define SGP_GENERATE_HUBS 256u  /* hubs and relays */
#define SGP_GENERATE_OWNER 64u  /* owners, members, backup and staleness */
#define SGP_GENERATE_TOKEN 128u /* delay */
#define SGP_GENERATE_PHASES 512u
#define SGP_GENERATE_EXACT 32u /* pieces; every cycle of it is exact, so it may be a prelude */

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

/* Make a sealed topology, which the caller destroys. One node gets one phase without edges, whatever
 * the family. Errors: SGP_E_TOPOLOGY with the reason and what to do instead (unknown family, a number
 * of nodes that the family cannot serve, an option it does not know, a bad address), SGP_E_LIMIT,
 * -ENOMEM. Equal options give equal topologies on every machine. Any thread. */
SGP_API int sgp_generate(const struct sgp_generate_options *options, struct sgp_error *error,
    struct sgp_topology **ret_topology);

#endif
