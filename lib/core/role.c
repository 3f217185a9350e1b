/* SPDX-License-Identifier: Apache-2.0 */
/* Which role a node has. The table of each role is in its own file. */
#include "core/core.h"

/* The role outside exact cycles. A file with owners has no exact cycles. */
static const struct sgp_role *role_of(const struct sgp_topology *topology, uint32_t self)
{
    if (topology->owner == SGP_NODE_NONE)
        return &sgp_role_gossip;
    if (sgp_topology_has_token(topology))
        return &sgp_role_token;
    return topology->nodes[self].owns ? &sgp_role_owner : &sgp_role_worker;
}

void sgp_core_take_roles(struct sgp_node *node)
{
    const struct sgp_topology *topology = node->config.topology;
    node->roles[0] = node->roles[1] = role_of(topology, node->config.self);
    if (sgp_topology_has_exact(topology))
        node->roles[1] = &sgp_role_cycle;
    sgp_core_set_round(node, node->round);
}
