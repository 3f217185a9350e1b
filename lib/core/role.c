/* SPDX-License-Identifier: Apache-2.0 */
/* Which role a node has. The table of each role is in its own file. */
#include "core/core.h"

#define ROLE(name) &sgp_role_##name,

static const struct sgp_role *role_of(const struct sgp_node_config *config)
{
    static const struct sgp_role *const roles[] = {SGP_ROLES(ROLE)};
    const struct sgp_role *const *role = roles;
    while ((*role)->suits != NULL && !(*role)->suits(config))
        role++;
    return *role;
}

/* A file with owners has no exact cycles. */
void sgp_core_take_roles(struct sgp_node *node)
{
    node->roles[0] = node->roles[1] = role_of(&node->config);
    if (sgp_topology_has_exact(node->config.topology))
        node->roles[1] = &sgp_role_cycle;
    sgp_core_set_round(node, node->round);
}
