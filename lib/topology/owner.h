/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the room: what a file with an owner must be. */
#ifndef SGP_TOPOLOGY_OWNER_H
#define SGP_TOPOLOGY_OWNER_H

#include "sgp/topology.h"

/* Note who owns what, and refuse what owners and their workers cannot do. 0 or SGP_E_TOPOLOGY; then *ret_where is the digraph at
 * fault, or the node, its source, or the edge. Source and target must be SGP_NODE_NONE before. */
int sgp_owner_check(
    struct sgp_topology *topology, struct sgp_error *error, struct sgp_edge_place *ret_where);

#endif
