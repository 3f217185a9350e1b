/* SPDX-License-Identifier: Apache-2.0 */
/* What a trainer outside the daemon asks of the rounds: one beginning for all, and an end that each node says. */
#include "sim_fleet.h"

#include <criterion/criterion.h>
#include <assertions.h>

static struct fleet *fleet_of(const char *family, uint32_t nodes, const char *method)
{
    struct fleet *fleet = fleet_generate(family, nodes, 0);
    fleet->options.method = sgp_method_find(method);
    fleet->options.trainer =
        fleet_counting_trainer; /* node i begins at i, and takes steps of length 0 */
    fleet->options.rounds = 20;
    return fleet;
}

/* The mean of 0 .. n-1 would be half of n-1. */
static void expect_first(const char *family, uint32_t nodes, const char *method, bool one)
{
    struct fleet *fleet = fleet_of(family, nodes, method);
    fleet->options.one_beginning = one;
    fleet_run(fleet);
    for (uint32_t i = 0; i < nodes; i++) {
        float estimate;
        sgp_sim_estimate(fleet->sim, i, &estimate);
        double wanted = one ? 0 : (nodes - 1) / 2.0;
        cr_assert(epsilon_eq(dbl, (double)estimate, wanted, one ? 0 : 0.02),
            "%s of %u, %s: node %u ends at %g", family, nodes, method, i, (double)estimate);
    }
    cr_assert(zero(u64, fleet_summary(fleet).jumps), "somebody began later than in round 0");
    fleet_destroy(fleet);
}

Test(attached, all_begin_with_the_parameters_of_the_first)
{
    static const char *const methods[] = {"sgp", "osgp", "agp"};
    for (size_t m = 0; m < 3; m++) {
        expect_first("ring", 5, methods[m], true);
        expect_first("one-peer-exponential", 8, methods[m], true);
    }
    expect_first("all-reduce-ring", 4, "sgp", true);
    expect_first("one-peer-exponential", 8, "sgp", false);
}

/* The first is not there before the others have waited for long. */
Test(attached, the_first_is_waited_for)
{
    struct fleet *fleet = fleet_of("one-peer-exponential", 4, "sgp");
    fleet->options.one_beginning = true;
    const struct sgp_sim_absence late = {.node = 0, .from = 0, .to = 100 * SGP_SECOND};
    fleet->options.absences = &late;
    fleet->options.absence_count = 1;
    fleet_run(fleet);
    for (uint32_t i = 0; i < 4; i++) {
        float estimate;
        sgp_sim_estimate(fleet->sim, i, &estimate);
        cr_assert(eq(flt, estimate, 0));
    }
    fleet_destroy(fleet);
}

/* Each says when it has taken its last step; who is through mixes with the others, and all finish together. */
static void end_at(const char *family, const sgp_time ends[4], sgp_time compute)
{
    struct fleet *fleet = fleet_of(family, 4, "sgp");
    fleet->options.open = true;
    fleet->options.rounds = 1; /* says nothing */
    fleet->options.compute_ns = compute;
    fleet->watched = 1;
    fleet_open(fleet);
    sgp_time last = 0;
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert(zero(int, sgp_sim_command(fleet->sim, ends[i], i, SGP_EVENT_STEPS_END)));
        last = ends[i] > last ? ends[i] : last;
    }
    cr_assert(
        zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)), "%s", fleet->error.text);
    cr_assert(sgp_sim_done(fleet->sim));
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, 4));
    for (uint32_t i = 0; i < 4; i++) {
        struct sgp_node_status status;
        sgp_node_status(sgp_sim_node(fleet->sim, i), &status);
        cr_assert(ge(i64, status.round, last / compute * 9 / 10), "%s: node %u ends in round %lld",
            family, i, (long long)status.round);
        cr_assert(zero(u32, sgp_node_disagreeing(sgp_sim_node(fleet->sim, i))));
    }
    fleet_destroy(fleet);
}

Test(attached, an_open_end_is_said_by_each_node)
{
    const sgp_time together[4] = {SGP_SECOND, SGP_SECOND, SGP_SECOND, SGP_SECOND};
    const sgp_time apart[4] = {SGP_SECOND, 3 * SGP_SECOND, SGP_SECOND / 10, 2 * SGP_SECOND};
    static const char *const families[] = {"ring", "one-peer-exponential", "all-reduce-ring"};
    for (size_t f = 0; f < 3; f++) {
        end_at(families[f], together, 10 * SGP_MILLISECOND);
        end_at(families[f], apart, 10 * SGP_MILLISECOND);
    }
}
