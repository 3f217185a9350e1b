/* SPDX-License-Identifier: Apache-2.0 */
/* Undirected graphs, in which each edge is written as two. */
#include "sgp/topology.h"

int sgp_topology_reverses(const struct sgp_topology *topology, struct sgp_error *error,
    struct sgp_edge_place *ret_culprit)
{
    for (uint32_t p = 0; p < topology->phase_count; p++) {
        const struct sgp_phase *phase = &topology->phases[p];
        for (uint32_t e = 0; e < phase->edge_count; e++) {
            uint32_t source = phase->out[e].source, target = phase->out[e].target;
            if (sgp_topology_next_round(topology, target, source, 0) != SGP_ROUND_NONE)
                continue;
            if (ret_culprit != NULL)
                *ret_culprit = (struct sgp_edge_place){p, source, target};
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "digraph %s: edge %s -> %s has no reverse in any digraph of the file; this method "
                "wants every neighbour to answer: add %s -> %s, or choose agp",
                phase->name, topology->nodes[source].name, topology->nodes[target].name,
                topology->nodes[target].name, topology->nodes[source].name);
        }
    }
    return 0;
}
