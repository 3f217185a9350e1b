/* SPDX-License-Identifier: Apache-2.0 */
/* Kills and stops by a seed, for fleets of exact cycles. */
#ifndef SIM_KILLS_H
#define SIM_KILLS_H

#include "sim_fleet.h"

#include "sgp/random.h"
#include "sim/world.h"

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

/* A suite's fleet on one of its schedules, with the faults of the seed. */
typedef struct fleet *(*make_fleet)(size_t schedule, uint64_t seed);

/* Runs it to its end. `bug`: operations between the driver and the simulator's, or NULL. Returns 0, or
 * the code of a check that failed. */
static int run_kills(make_fleet begin, size_t schedule, uint64_t seed,
    const struct sgp_driver_ops *bug, struct fleet **ret_fleet)
{
    struct fleet *fleet = begin(schedule, seed);
    fleet_open(fleet);
    for (uint32_t i = 0; bug && i < fleet->sim->host_count; i++)
        fleet->sim->hosts[i].driver.ops = bug;
    *ret_fleet = fleet;
    return sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
}

/* Whether the simulator's checks see the bug with one of 50 seeds. */
static bool is_caught(make_fleet begin, size_t schedule_count, const struct sgp_driver_ops *bug)
{
    bool caught = false;
    for (uint64_t seed = 1; seed <= 50 && !caught; seed++) {
        struct fleet *fleet;
        caught = run_kills(begin, seed % schedule_count, seed, bug, &fleet) != 0;
        fleet_destroy(fleet);
    }
    return caught;
}

#endif
