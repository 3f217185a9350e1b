/* SPDX-License-Identifier: Apache-2.0 */
/* The totals of a run, and its digest. */
#include "sim/world.h"

#include <xxhash.h>

void sgp_sim_summary(const struct sgp_sim *sim, struct sgp_sim_summary *ret_summary)
{
    *ret_summary = sim->summary;
    ret_summary->time = sim->now;
    ret_summary->weight = sgp_sim_weight(sim);
    ret_summary->weight_in_flight =
        sgp_sim_total(&sim->weight_in_flight) - sgp_sim_total(&sim->weight_unseen);
    ret_summary->disagreement = sgp_sim_rows_disagreement(sim);
    ret_summary->digest = sim->digest;
    for (uint32_t i = 0; i < sim->host_count; i++) {
        const struct sgp_sim_host *host = &sim->hosts[i];
        struct sgp_node_status status;
        sgp_node_status(host->node, &status);
        ret_summary->weight_unknown += status.unknown;
        ret_summary->finished += !host->gone && status.state == SGP_NODE_FINISHED;
        ret_summary->diverged += host->diverged;
        uint64_t digest = host->trainer->methods->digest(host->trainer);
        ret_summary->digest = XXH3_64bits_withSeed(&digest, sizeof digest, ret_summary->digest);
    }
}

#define SNAPSHOTS_USED 2u /* the others only after failures (sgp/node.h) */

/* The part of a receive buffer that the largest share fills is touched, and all of one if a whole
 * estimate may arrive. */
static uint64_t values_of(const struct sgp_sim_host *host)
{
    const uint64_t dimension = host->sim->options.dimension;
    struct sgp_node_needs needs;
    sgp_node_counts(host->node, &needs);
    const uint64_t share = (dimension * needs.share_parts + needs.slices - 1) / needs.slices;
    uint64_t vectors = SNAPSHOTS_USED;
    vectors += needs.share_parts < needs.slices && host->sim->topology->owner == SGP_NODE_NONE;
    vectors += host->performer.copy != NULL;
    vectors += host->performer.rest != NULL;
    return vectors * dimension + needs.receives * share;
}

void sgp_sim_node_summary(
    const struct sgp_sim *sim, uint32_t node, struct sgp_sim_node_summary *ret_summary)
{
    sgp_assert(node < sim->host_count);
    const struct sgp_sim_host *host = &sim->hosts[node];
    struct sgp_node_status status;
    sgp_node_status(host->node, &status);
    *ret_summary = (struct sgp_sim_node_summary){.rounds = host->left,
        .weight = status.weight_estimate,
        .bytes = host->bytes,
        .values = values_of(host),
        .diverged = host->diverged};
}
