/* SPDX-License-Identifier: Apache-2.0 */
/* Families in which nodes own the vector, or parts of it. Any thread. */
#include "topology/edges.h"

static int check_owners(const struct sgp_generate_options *options, struct sgp_error *error)
{
    uint32_t owners = options->owners > 0 ? options->owners : 1;
    if (owners > SGP_SLICES_MAX)
        return sgp_fail(
            error, SGP_E_LIMIT, "%u owners are too many; the limit is %u", owners, SGP_SLICES_MAX);
    if (options->members ? owners <= options->nodes : owners < options->nodes)
        return 0;
    return sgp_fail(error, SGP_E_TOPOLOGY,
        options->members ? "%u owners of %u nodes are too many; take at most all of them"
                         : "%u owners of %u nodes leave no worker; take fewer than the nodes, or "
                           "--members, which train",
        owners, options->nodes);
}

/* From each owner to each node that trains, and back. Between two nodes that do both there is one
 * pair of edges. */
int sgp_generate_owner(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error)
{
    struct sgp_edges edges = {0};
    uint32_t owners = options->owners > 0 ? options->owners : 1;
    int code = check_owners(options, error);
    if (code)
        return code;
    topology->slices = owners;
    for (uint32_t k = 0; k < owners; k++) {
        struct sgp_topology_node *owner = &topology->nodes[k];
        owner->owns = true;
        owner->relay = !options->members;
        owner->own_part = (uint16_t)k;
        owner->own_part_count = owners > 1;
        for (uint32_t i = options->members ? k + 1 : owners; i < options->nodes; i++) {
            sgp_edges_push(&edges, k, i, SGP_FRACTION_DEFAULT);
            sgp_edges_push(&edges, i, k, SGP_FRACTION_DEFAULT);
        }
    }
    code = sgp_edges_flush(&edges, topology, "owner", error);
    sgp_edges_finish(&edges);
    if (code)
        return code;
    topology->phases[0].backup = options->backup;
    topology->phases[0].staleness = options->staleness;
    return 0;
}

/* From each node to all others. A node that is absent or not ready is passed over. */
int sgp_generate_token(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error)
{
    struct sgp_edges edges = {0};
    topology->nodes[0].owns = true;
    for (uint32_t i = 0; i < options->nodes; i++)
        for (uint32_t j = 0; j < options->nodes; j++)
            if (i != j)
                sgp_edges_push(&edges, i, j, SGP_FRACTION_DEFAULT);
    int code = sgp_edges_flush(&edges, topology, "token", error);
    sgp_edges_finish(&edges);
    if (code)
        return code;
    topology->phases[0].delay = options->delay;
    if (options->delay.token == SGP_TOKEN_NONE)
        topology->phases[0].delay.token = SGP_TOKEN_DYNAMIC;
    return 0;
}
