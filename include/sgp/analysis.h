/* SPDX-License-Identifier: Apache-2.0 */
/* The properties of a topology, computed before anything starts: `sgpctl topology check`. */
#ifndef SGP_ANALYSIS_H
#define SGP_ANALYSIS_H

#include "sgp/topology.h"

#define SGP_ANALYSIS_WARNINGS_MAX 16u
/* Up to this many nodes exact averaging is tried on every unit vector. Beyond, it is tried on four
 * seeded random vectors; a linear map that is not exact passes all of them with probability
 * zero. */
#define SGP_ANALYSIS_DENSE_NODES_MAX 256u
/* Multiplications for one field. If a cycle is too long for them, the field stays open, with a
 * warning. */
#define SGP_ANALYSIS_WORK_MAX UINT64_C(4000000000)

/* The fields of `topology check --json`, by the same names (`diverges` is its exit status). The
 * prelude counts only for the weights and for exact_average_rounds, which describe the first
 * rounds. */
struct sgp_analysis {
    uint32_t nodes;
    uint32_t phases;
    sgp_round rounds_per_cycle;
    sgp_round turns_per_cycle; /* of these, the rounds that train */
    uint32_t slices;           /* parts of the vector */
    uint32_t relays;           /* nodes that do not train */
    /* Whether a node owns the vector. Then nothing is mixed, and the fields about mixing have the
     * values of a cycle that averages exactly; weights are 0 at workers and 1 at the owner. */
    bool owner;
    uint32_t backup; /* workers whose updates a step does not need */
    /* Every cycle is proven to end with the mean of all at every node that trains. A missing node
     * then blocks the others. */
    bool exact;
    bool strongly_connected; /* the union of a cycle's edges */
    bool diverges;           /* the nodes can never agree: a warning says why */
    /* Least W so that the union of any W successive rounds is strongly connected, or SGP_ROUND_NONE
     * (null). */
    sgp_round window_rounds;
    bool symmetric;         /* in every phase each edge has its reverse with the same fraction */
    bool doubly_stochastic; /* in every phase each node receives and keeps 1 in all, to 1e-9 */
    uint32_t out_degree_max;
    uint32_t in_degree_max;
    /* The members that may lie beside guarded nodes (sgp/guard.h): fewer than half of the sources
     * that any node has in a cycle. 0 if a guard protects from none: with fewer than 3 sources, in
     * an exact cycle, and with an owner. */
    uint32_t guard_liars;
    /* The factor by which max |x_i/w_i - mean| shrinks in a cycle in the long run: the geometric
     * mean over cycles 11 to 30 from three seeded starts. 0 if a cycle averages exactly; NaN (null)
     * if the disagreement cannot vanish. */
    double contraction_per_cycle;
    /* The least number of rounds from round 0 after which every unit vector is averaged to 1e-12,
     * by one last decisive round (before it the error was above 1e-6); else SGP_ROUND_NONE (null).
     * A file that only approaches the average is never exact. The search covers the prelude, two
     * cycles and min(nodes, 64) rounds more. 0 for a single node. */
    sgp_round exact_average_rounds;
    /* Over all nodes, just before giving, in the prelude and ten cycles from weights of 1. */
    double weight_min;
    double weight_max;
    uint64_t shares_per_cycle;
    double vectors_sent_most,
        /* By a node of the file in a cycle: bytes relative to those of the model. */
        vectors_sent_mean;
    uint32_t warning_count;
    char warnings[SGP_ANALYSIS_WARNINGS_MAX][SGP_TEXT_BYTES]; /* lines for people */
};

/* Analyse a sealed topology. Equal topologies give equal analyses. Allocates and frees its working
 * memory, at most 2 * 256 * 256 + 20 * nodes doubles. Returns 0 or -ENOMEM. Any thread. */
int sgp_analyse(const struct sgp_topology *topology, struct sgp_analysis *ret_analysis);

#endif
