/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to lib/topology: what a file with an owner must contain. */
#ifndef SGP_TOPOLOGY_OWNER_H
#define SGP_TOPOLOGY_OWNER_H

#include "sgp/topology.h"

/* Note the owner of each part, and refuse what owners and their workers cannot do. Returns 0 or
 * SGP_E_TOPOLOGY. Then *ret_where is the digraph at fault, or the node (as source), or the edge.
 * Source and target must be SGP_NODE_NONE before the call. */
int sgp_owner_check(
    struct sgp_topology *topology, struct sgp_error *error, struct sgp_edge_place *ret_where);

#endif
