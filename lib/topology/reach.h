/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to lib/topology: which nodes can be reached from which over successive phases. */
#ifndef SGP_TOPOLOGY_REACH_H
#define SGP_TOPOLOGY_REACH_H

#include "sgp/topology.h"

struct sgp_reach {
    const struct sgp_topology *topology;
    uint32_t cycle_first; /* phases of the cycle: cycle_first .. cycle_first + cycle_count - 1 */
    uint32_t cycle_count;
    bool *forward;   /* node_count: reached from the root of the latest search */
    bool *backward;  /* node_count: the root can be reached from the node */
    uint32_t *queue; /* node_count */
    uint64_t work;   /* number of edges and nodes examined so far */
};

/* Returns 0 or -ENOMEM. */
int sgp_reach_init(struct sgp_reach *reach, const struct sgp_topology *topology);
void sgp_reach_finish(struct sgp_reach *reach);

/* Whether the union of `count` successive phases of the cycle is strongly connected. The window
 * begins at `first`, and continues around the end of the cycle. The search starts at node 0 in both
 * directions. */
bool sgp_reach_window(struct sgp_reach *reach, uint32_t first, uint32_t count);

/* A node of the largest strongly connected part of the cycle's union, among the parts of the first
 * few roots tried. `forward` and `backward` are left as searched from that node. */
uint32_t sgp_reach_core(struct sgp_reach *reach);

/* The least W such that any W successive rounds of the cycle are together strongly connected. The
 * whole cycle must be. False, with *ret_rounds unchanged, if the search would take more than
 * work_max steps. */
bool sgp_reach_least_window(struct sgp_reach *reach, uint64_t work_max, sgp_round *ret_rounds);

#endif
