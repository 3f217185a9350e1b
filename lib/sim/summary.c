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
