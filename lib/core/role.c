/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the roles, and which of them a node has. */
#include "core/core.h"

static const struct sgp_role gossip = {.name = "gossip"};

static const struct sgp_role cycle = {.name = "cycle", .collective = true, .gives_always = true};

static const struct sgp_role owner = {
    .name = "owner",
    .part = SGP_PART_LEADS,
    .gives_nothing = true,
    .counts_steps = true,
    .leave_obstacle = "it owns the vector, or a part, which nobody can inherit; stop it, and name "
                      "another node in its place",
};

static const struct sgp_role worker = {
    .name = "worker",
    .part = SGP_PART_FOLLOWS,
    .gives_always = true,
    .gives_updates = true,
    .counts_steps = true,
    .keeps_copy = true,
};

static const struct sgp_role token = {
    .name = "token",
    .part = SGP_PART_BY_WEIGHT,
    .gives_nothing = true,
    .counts_steps = true,
    .keeps_copy = true,
    .unique = true,
};

/* The role outside exact cycles; a file with owners has none of these. */
static const struct sgp_role *role_of(const struct sgp_topology *topology, uint32_t self)
{
    if (topology->owner == SGP_NODE_NONE)
        return &gossip;
    if (sgp_topology_has_token(topology))
        return &token;
    return topology->nodes[self].owns ? &owner : &worker;
}

void sgp_core_take_roles(struct sgp_node *node)
{
    const struct sgp_topology *topology = node->config.topology;
    node->roles[0] = node->roles[1] = role_of(topology, node->config.self);
    if (sgp_topology_has_exact(topology))
        node->roles[1] = &cycle;
    sgp_core_set_round(node, node->round);
}
