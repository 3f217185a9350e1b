/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to lib/topology: a node that owns and trains, as two nodes of one machine. */
#ifndef SGP_TOPOLOGY_COLOCATED_H
#define SGP_TOPOLOGY_COLOCATED_H

#include "sgp/topology.h"

/* The number of nodes of the file that own something and train, if there is no token. */
uint32_t sgp_colocated_count(const struct sgp_topology *topology);

/* Divide these nodes, in a fleet with room for the additional nodes. Each goes on training. What it
 * owns, and its address, move to a new node after all others. node_count grows. Returns 0 or an
 * error. SGP_E_TOPOLOGY: a name does not fit or an owner cannot be dialled, and *ret_where is the
 * node at fault. Or SGP_E_LIMIT. */
int sgp_colocated_divide(
    struct sgp_topology *topology, struct sgp_error *error, uint32_t *ret_where);

/* The edges of a phase of the file, between the divided nodes: at most 2 for each edge, and 2 for
 * each divided node. Returns their number. */
uint32_t sgp_colocated_edges(
    const struct sgp_topology *topology, const struct sgp_phase *phase, struct sgp_edge *ret_edges);

#endif
