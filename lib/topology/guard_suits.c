/* SPDX-License-Identifier: Apache-2.0 */
/* Which files suit a guard on received shares (sgp/guard.h).
 *
 * Any thread; pure except for working memory. */
#include "sgp/topology.h"

#include <errno.h>
#include <stdlib.h>

int sgp_topology_check_guard(
    const struct sgp_topology *topology, uint32_t node, struct sgp_error *error)
{
    const char *name = topology->nodes[node].name;
    if (topology->owner != SGP_NODE_NONE)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "a guard is for nodes that mix, and here %s; take guard = off",
            sgp_topology_has_token(topology) ? "owning is a token" : "the vector has an owner");
    if (sgp_topology_has_exact(topology))
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "a guard would end the exactness of a cycle with fraction 1 or parts; take guard = "
            "off, or a file without them");
    uint32_t *sources = calloc(topology->node_count, sizeof *sources);
    if (sources == NULL || sgp_topology_count_sources(topology, sources) < 0) {
        free(sources);
        return sgp_fail(error, -ENOMEM, "%s", sgp_strerror(-ENOMEM));
    }
    uint32_t count = sources[node];
    free(sources);
    if (count >= SGP_GUARD_SOURCES_LEAST && count <= SGP_GUARD_SOURCES_MOST)
        return 0;
    return sgp_fail(error, SGP_E_TOPOLOGY,
        "a guard needs %u to %u nodes that give to %.64s in a cycle, so that one that lies is "
        "outvoted; the file has %u; add edges, or take guard = off",
        SGP_GUARD_SOURCES_LEAST, SGP_GUARD_SOURCES_MOST, name, count);
}
