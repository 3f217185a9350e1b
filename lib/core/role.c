/* SPDX-License-Identifier: Apache-2.0 */
/* Which role a node has. Each role's own file has its table. */
#include "core/core.h"

/* The role outside exact cycles; a file with owners has none of these. */
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
