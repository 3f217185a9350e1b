/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the room: a node that owns and trains, as two nodes of one machine. */
#ifndef SGP_TOPOLOGY_BESIDE_H
#define SGP_TOPOLOGY_BESIDE_H

#include "sgp/topology.h"

/* How many nodes of the file own something and train, where owning is no token. */
uint32_t sgp_beside_count(const struct sgp_topology *topology);

/* Divide them, in a fleet that has room for so many nodes more: each trains on, and what it owns, and where it is dialled, is
 * that of a node behind all others. node_count grows. 0, SGP_E_TOPOLOGY if a name does not fit or an owner cannot be dialled, then *ret_where is the node at
 * fault; or SGP_E_LIMIT. */
int sgp_beside_divide(struct sgp_topology *topology, struct sgp_error *error, uint32_t *ret_where);

/* The edges of a phase of the file, between the nodes that it has become: at most 2 for each, and 2 for each node that was
 * divided. Returns how many. */
uint32_t sgp_beside_edges(
    const struct sgp_topology *topology, const struct sgp_phase *phase, struct sgp_edge *ret_edges);

#endif
