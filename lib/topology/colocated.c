/* SPDX-License-Identifier: Apache-2.0 */
/* An owner that trains becomes two nodes of one machine. The node that trains keeps the name in the
 * file, and the node that owns gets the address. To all other nodes the first is an ordinary
 * worker, and the second an ordinary owner.
 *
 * The rule: docs/rules/owner.md */
#include "topology/colocated.h"

#include <stdio.h>
#include <string.h>

#define SUFFIX ".owner"

static bool is_divided(const struct sgp_topology_node *node)
{
    return node->owns && !node->relay;
}

uint32_t sgp_colocated_count(const struct sgp_topology *topology)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < topology->node_count && !sgp_topology_has_token(topology); i++)
        count += is_divided(&topology->nodes[i]);
    return count;
}

uint32_t sgp_topology_machine(const struct sgp_topology *topology, uint32_t node)
{
    return topology->nodes[node].colocated ? topology->nodes[node].trainer : node;
}

uint32_t sgp_topology_colocated_owner(const struct sgp_topology *topology, uint32_t node)
{
    for (uint32_t i = topology->node_count; i-- > 0 && topology->nodes[i].colocated;)
        if (topology->nodes[i].trainer == node)
            return i;
    return SGP_NODE_NONE;
}

/* Workers dial their owners. An owner that trains is dialled only as an owner. */
static int check_dialled(const struct sgp_topology_node *node, struct sgp_error *error)
{
    if (!node->owns || strcmp(node->address, SGP_ADDRESS_NONE) != 0)
        return 0;
    return sgp_fail(error, SGP_E_TOPOLOGY,
        "node %s owns something, so its workers dial it; give it an address", node->name);
}

/* Move the owned part and the address to the owner. */
static int divide(struct sgp_topology *topology, uint32_t trainer, struct sgp_error *error)
{
    struct sgp_topology_node *node = &topology->nodes[trainer];
    struct sgp_topology_node owner = *node;
    if (strlen(node->name) + strlen(SUFFIX) >= SGP_NAME_BYTES)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "node %.40s... owns and trains, so what it owns is called by its name and " SUFFIX
            ", which is too long; take a name of at most %zu bytes",
            node->name, SGP_NAME_BYTES - sizeof SUFFIX);
    owner.colocated = owner.relay = true;
    owner.trainer = trainer;
    owner.starts = SGP_STARTS_USUAL;
    memcpy(owner.name + strlen(node->name), SUFFIX, sizeof SUFFIX);
    if (sgp_topology_is_dialled(topology, trainer))
        (void)snprintf(node->address, sizeof node->address, "%s", SGP_ADDRESS_NONE);
    node->owns = false;
    node->own_part = node->own_part_count = 0;
    topology->nodes[topology->node_count++] = owner;
    return 0;
}

int sgp_colocated_divide(
    struct sgp_topology *topology, struct sgp_error *error, uint32_t *ret_where)
{
    uint32_t count = topology->node_count, divided = sgp_colocated_count(topology);
    if (divided > SGP_SLICES_MAX)
        return sgp_fail(error, SGP_E_LIMIT,
            "%u nodes own something and train, but there are at most %u parts; strike owns at the "
            "others",
            divided, SGP_SLICES_MAX);
    if (count + divided > SGP_NODES_MAX)
        return sgp_fail(error, SGP_E_LIMIT,
            "an owner that trains counts twice, and %u nodes are too many; the limit is %u, so let "
            "fewer of them own",
            count + divided, SGP_NODES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        *ret_where = i;
        int code = check_dialled(&topology->nodes[i], error);
        if (code == 0 && is_divided(&topology->nodes[i]))
            code = divide(topology, i, error);
        if (code)
            return code;
    }
    *ret_where = SGP_NODE_NONE;
    return 0;
}

static uint32_t owner_at(const struct sgp_topology *topology, uint32_t node)
{
    return topology->nodes[node].owns ? node : sgp_topology_colocated_owner(topology, node);
}

/* Updates go from the node that trains to the node that owns, and copies go back. Any other edge is
 * refused later. */
uint32_t sgp_colocated_edges(
    const struct sgp_topology *topology, const struct sgp_phase *phase, struct sgp_edge *ret_edges)
{
    uint32_t count = 0;
    for (uint32_t e = 0; e < phase->edge_count; e++) {
        struct sgp_edge edge = phase->out[e];
        uint32_t source = edge.source, target = edge.target;
        uint32_t giver = owner_at(topology, source), taker = owner_at(topology, target);
        bool updates = !topology->nodes[source].relay && taker != SGP_NODE_NONE;
        bool copies = !topology->nodes[target].relay && giver != SGP_NODE_NONE;
        edge.fraction = edge.usual ? SGP_FRACTION_DEFAULT : edge.fraction;
        if (copies) {
            edge.source = giver;
            ret_edges[count++] = edge;
        }
        edge.source = source;
        edge.target = updates ? taker : target;
        if (updates || !copies)
            ret_edges[count++] = edge;
    }
    for (uint32_t i = 0; i < topology->node_count; i++) {
        uint32_t trainer = topology->nodes[i].trainer;
        if (!topology->nodes[i].colocated)
            continue;
        ret_edges[count++] = (struct sgp_edge){i, trainer, .fraction = SGP_FRACTION_DEFAULT};
        ret_edges[count++] = (struct sgp_edge){trainer, i, .fraction = SGP_FRACTION_DEFAULT};
    }
    return count;
}
