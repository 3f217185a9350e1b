/* SPDX-License-Identifier: Apache-2.0 */
/* Exact cycles whose shares are coded: what coding leaves out stays at its source, whatever happens. After each job the simulator
 * holds the change of x against what the job is, in double precision; at the end of training a plain cycle makes all equal. */
#include "sim_cycle.h"
#include "sim_kills.h"
#include "sim_wide.h"

static const struct schedule coded[] = {{"all-reduce-direct", 4}, {"all-reduce-ring", 4},
    {"all-reduce-halving", 4}, {"all-reduce-tree", 4}, {"all-reduce-hubs", 4, 2}};
#define CODED (sizeof coded / sizeof *coded)

static struct fleet *wide_fleet(const struct schedule *schedule, enum sgp_compressor compressor)
{
    struct fleet *fleet = fleet_of(schedule);
    fleet_widen(fleet, compressor);
    return fleet;
}

static uint64_t bytes_of(const struct schedule *schedule, enum sgp_compressor compressor)
{
    struct fleet *fleet = wide_fleet(schedule, compressor);
    fleet->options.through_wire = true;
    fleet_run(fleet);
    expect_all(fleet, schedule->nodes, schedule->nodes - schedule->hubs);
    uint64_t bytes = fleet_summary(fleet).bytes;
    fleet_destroy(fleet);
    return bytes;
}

/* 30 cycles that train, and 2 that mix, which are plain. A fleet that codes nothing has no need to mix, so 2 cycles are added. */
Test(cycle_coded, cycles_take_fewer_bytes_and_end_equal)
{
    for (size_t s = 0; s < 4; s++) {
        double plain = (double)bytes_of(&coded[s], SGP_COMPRESSOR_NONE) * 32 / 30;
        double halves = (double)bytes_of(&coded[s], SGP_COMPRESSOR_FP16) / plain;
        double eighths = (double)bytes_of(&coded[s], SGP_COMPRESSOR_INT8) / plain;
        cr_expect(gt(dbl, halves, 0.5), "%s", coded[s].family);
        cr_expect(lt(dbl, halves, 0.56), "%s: %g", coded[s].family, halves);
        cr_expect(gt(dbl, eighths, 0.25), "%s", coded[s].family);
        cr_expect(lt(dbl, eighths, 0.36), "%s: %g", coded[s].family, eighths);
    }
}

static struct fleet *make_coded(size_t schedule, uint64_t seed)
{
    static const enum sgp_compressor compressors[] = {
        SGP_COMPRESSOR_INT8, SGP_COMPRESSOR_FP16, SGP_COMPRESSOR_INT4_64, SGP_COMPRESSOR_BF16};
    struct fleet *fleet = wide_fleet(&coded[schedule], compressors[seed % 4]);
    bring(fleet, seed);
    fleet->options.rounds = 20;
    return fleet;
}

Test(cycle_coded, kills_and_stops_lose_nothing_of_what_coding_leaves_out, .timeout = 3600)
{
    uint64_t seeds = fleet_most(100, 16, 1);
    for (size_t s = 0; s < CODED; s++)
        for (uint64_t seed = 1; seed <= seeds; seed++) {
            struct fleet *fleet;
            int status = run_kills(make_coded, s, seed, NULL, &fleet);
            cr_assert(zero(int, status), "%s, seed %u: %s", coded[s].family, (unsigned)seed,
                fleet->error.text);
            expect_all(fleet, coded[s].nodes, coded[s].nodes - coded[s].hubs);
            fleet_destroy(fleet);
        }
}

/* A renewal puts back what a target would decode of the entry vector. */
static void enter_again_coded(void *context, const struct sgp_effect *job)
{
    struct sgp_effect copy = *job;
    if (job->type == SGP_EFFECT_RESTORE && job->restore.fraction >= 1)
        copy.restore.compressor = SGP_COMPRESSOR_INT4_64;
    sgp_sim_ops.work(context, &copy);
}

Test(cycle_coded, an_entry_vector_that_was_projected_is_caught, .timeout = 600)
{
    struct sgp_driver_ops bug = sgp_sim_ops;
    bug.work = enter_again_coded;
    cr_assert(is_caught(make_coded, CODED, &bug), "an entry vector that was projected");
}
