/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to lib/topology: building with the place of an error, so that the reader can point at a
 * line. */
#ifndef SGP_TOPOLOGY_BUILD_H
#define SGP_TOPOLOGY_BUILD_H

#include "sgp/topology.h"

/* Like sgp_topology_create. *ret_where (may be NULL) is the node at fault, of two nodes the later
 * one, or SGP_NODE_NONE. */
int sgp_topology_create_where(const struct sgp_topology_node *nodes, uint32_t node_count,
    struct sgp_error *error, uint32_t *ret_where, struct sgp_topology **ret_topology);

/* Like sgp_topology_add. On a bad edge *ret_where (may be NULL) has its ends. If only the source is
 * at fault (a column above 1), the target is SGP_NODE_NONE. If no edge is at fault, both are. */
int sgp_topology_add_where(struct sgp_topology *topology, const struct sgp_phase_options *options,
    const struct sgp_edge *edges, uint32_t edge_count, struct sgp_error *error,
    struct sgp_edge *ret_where);

/* Like sgp_topology_seal. *ret_where (may be NULL) is the phase at fault, 0 if none is, or the node
 * (as source), or the edge. */
int sgp_topology_seal_where(
    struct sgp_topology *topology, struct sgp_error *error, struct sgp_edge_place *ret_where);

#endif
