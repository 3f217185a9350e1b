/* SPDX-License-Identifier: Apache-2.0 */
/* Kills and stops by a seed, for fleets of exact cycles. */
#ifndef TEST_SIM_KILLS_H
#define TEST_SIM_KILLS_H

#include "test_sim_fleet.h"

#include "sgp/random.h"

static struct {
    struct sgp_sim_crash crashes[4];
    struct sgp_sim_absence absences[4];
    uint32_t crash_count, absence_count;
} faults; /* of the run under way */

/* Up to four kills and stops, some overlapping, none of one node within another of the same. */
static void draw(struct sgp_random *random, uint32_t nodes)
{
    static const sgp_time spans[] = {50 * SGP_MILLISECOND, 500 * SGP_MILLISECOND, 2 * SGP_SECOND,
        6 * SGP_SECOND, 20 * SGP_SECOND};
    sgp_time at = 50 * SGP_MILLISECOND, free[FLEET_NODES_MAX] = {0};
    memset(&faults, 0, sizeof faults);
    for (uint64_t left = 1 + sgp_random_below(random, 4); left > 0; left--) {
        uint32_t node = (uint32_t)sgp_random_below(random, nodes);
        sgp_time span = spans[sgp_random_below(random, 5)];
        span += (sgp_time)sgp_random_below(random, (uint64_t)span);
        if (free[node] < at && sgp_random_below(random, 10) < 6)
            faults.crashes[faults.crash_count++] =
                (struct sgp_sim_crash){node, at, at + span, sgp_random_below(random, 5) == 0, 0};
        else if (free[node] < at)
            faults.absences[faults.absence_count++] = (struct sgp_sim_absence){node, at, at + span};
        free[node] = free[node] < at ? at + span : free[node];
        at += (sgp_time)(50 + sgp_random_below(random, 2000)) * SGP_MILLISECOND;
    }
}

static void bring(struct fleet *fleet, uint64_t seed)
{
    struct sgp_random random;
    uint32_t nodes = fleet->topology->node_count;
    sgp_random_init(&random, seed, nodes);
    draw(&random, nodes);
    fleet->options.seed = seed;
    fleet->options.rounds = 40;
    fleet->options.compute_jitter = 0.3;
    fleet->options.checkpoint_ns = seed % 2 ? 200 * SGP_MILLISECOND : 0;
    fleet->options.through_wire = seed % 3 == 0;
    fleet->options.loss = seed % 4 == 0 ? 0.002 : 0;
    fleet->options.crashes = faults.crashes;
    fleet->options.crash_count = faults.crash_count;
    fleet->options.absences = faults.absences;
    fleet->options.absence_count = faults.absence_count;
}

#endif
