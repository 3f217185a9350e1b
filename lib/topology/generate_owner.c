/* SPDX-License-Identifier: Apache-2.0 */
/* Families in which a node owns the vector. Any thread. */
#include "topology/edges.h"

int sgp_generate_owner(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error)
{
    struct sgp_edges edges = {0};
    topology->nodes[0].relay = topology->nodes[0].owns = true;
    for (uint32_t i = 1; i < options->nodes; i++) {
        sgp_edges_push(&edges, 0, i, SGP_FRACTION_DEFAULT);
        sgp_edges_push(&edges, i, 0, SGP_FRACTION_DEFAULT);
    }
    int code = sgp_edges_flush(&edges, topology, "owner", error);
    sgp_edges_finish(&edges);
    if (code)
        return code;
    topology->phases[0].backup = options->backup;
    topology->phases[0].staleness = options->staleness;
    return 0;
}

/* From each to all others: whoever is not there, or not ready, is passed over. */
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
