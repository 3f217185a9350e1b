/* SPDX-License-Identifier: Apache-2.0 */
/* Exact cycles in the simulator, which checks at the end of each that everybody holds the mean of what all entered it
 * with: as synchronous training. Under faults, orders and other files: test_sim_cycle_faults.c. */
#include "sim_cycle.h"

#include "core/core.h"
#include "sim/world.h"

#include <stdlib.h>

/* ---- synchronous training ---- */

/* By steps at the mean of all minima: one node with the rows of all. */
static void expect_pooled(const struct fleet *fleet, uint32_t nodes, sgp_round turns)
{
    for (uint32_t c = 0; c < FLEET_DIMENSION_MAX; c++) {
        double z = 1, centre = 0;
        for (uint32_t i = 0; i < nodes; i++)
            centre += (double)fleet->centre[i][c] / nodes;
        for (sgp_round turn = 0; turn < turns; turn++)
            z -= fleet->eta * (z - centre);
        for (uint32_t i = 0; i < nodes; i++) {
            float estimate[FLEET_DIMENSION_MAX];
            sgp_sim_estimate(fleet->sim, i, estimate);
            cr_assert(epsilon_eq(dbl, (double)estimate[c], z, 1e-5), "node %u", i);
        }
    }
}

Test(cycle, every_schedule_is_one_node_with_all_the_rows)
{
    static const char *const families[] = {"all-reduce-ring", "all-reduce-direct",
        "all-reduce-doubling", "all-reduce-halving", "all-reduce-blocks", "all-reduce-tree",
        "all-reduce-groups", "all-reduce-hubs"};
    for (uint32_t n = 2; n <= 17; n++)
        for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
            struct fleet *fleet = fleet_of(&(struct schedule){families[f], n, 0, n % 4});
            fleet_run(fleet);
            expect_all(fleet, n, n);
            expect_pooled(fleet, n, 30);
            fleet_destroy(fleet);
        }
}

Test(cycle, doubling_of_powers_of_two_gives_equal_bits)
{
    for (uint32_t n = 2; n <= 8; n *= 2) {
        struct fleet *fleet = fleet_that_trains("all-reduce-doubling", n);
        fleet_run(fleet);
        float first[FLEET_DIMENSION_MAX], other[FLEET_DIMENSION_MAX];
        sgp_sim_estimate(fleet->sim, 0, first);
        for (uint32_t i = 1; i < n; i++) {
            sgp_sim_estimate(fleet->sim, i, other);
            cr_assert(zero(int, memcmp(first, other, sizeof first)));
        }
        fleet_destroy(fleet);
    }
}

/* By the analysis a cycle is the mean; where all fractions are powers of two, and the values too, it is so to the bit. */
Test(cycle, dyadic_values_are_averaged_to_the_bit)
{
    static const char *const families[] = {
        "all-reduce-direct", "all-reduce-doubling", "all-reduce-halving", "all-reduce-tree"};
    for (uint32_t n = 2; n <= 32; n *= 2)
        for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
            struct fleet *fleet = fleet_that_trains(families[f], n);
            fleet->eta = 0;
            fleet->options.rounds = 1;
            fleet->options.final_cycles = 1; /* doubling is gossip, which may end amid a cycle */
            for (uint32_t i = 0; i < n; i++)
                for (uint32_t c = 0; c < FLEET_DIMENSION_MAX; c++)
                    fleet->start[i][c] = (float)((i * i + 3 * i) << c);
            fleet_run(fleet);
            for (uint32_t i = 0; i < n; i++) {
                float estimate[FLEET_DIMENSION_MAX];
                sgp_sim_estimate(fleet->sim, i, estimate);
                for (uint32_t c = 0; c < FLEET_DIMENSION_MAX; c++) {
                    double sum = 0;
                    for (uint32_t j = 0; j < n; j++)
                        sum += (double)fleet->start[j][c];
                    cr_assert(eq(dbl, (double)estimate[c], sum / n), "%s, %u nodes, node %u",
                        families[f], n, i);
                }
            }
            fleet_destroy(fleet);
        }
}

/* T local steps, then the mean: Cong, Bhardwaj and Feng 2017. On quadratics of one curvature that is T pooled
 * steps. */
Test(cycle, local_steps_before_a_cycle_are_averaged_every_so_many)
{
    struct fleet *fleet = fleet_that_trains("all-reduce-doubling", 5);
    fleet->options.local_steps = 8;
    fleet_run(fleet);
    expect_pooled(fleet, 5, 240);
    fleet_destroy(fleet);
}

/* No round waits for the acknowledgement, or for the credit, of the one before: it takes as long as a share is under way, also
 * over the seam of two cycles. */
Test(cycle, a_round_takes_the_time_of_its_share)
{
    static const struct schedule all[] = {{"all-reduce-ring", 4}, {"all-reduce-direct", 4},
        {"all-reduce-halving", 8}, {"all-reduce-doubling", 8}, {"all-reduce-tree", 5}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct fleet *fleet = fleet_of(&all[i]);
        fleet->options.latency_ns = SGP_SECOND;
        fleet->options.bandwidth = 0;
        fleet->options.compute_ns = SGP_MICROSECOND;
        fleet->options.rounds = 100;
        fleet_run(fleet);
        double seconds = (double)fleet_summary(fleet).time / (double)SGP_SECOND;
        double rounds = 100.0 * fleet->topology->cycle.rounds;
        cr_assert(
            lt(dbl, seconds, 1.06 * rounds), "%s: %g s, %g rounds", all[i].family, seconds, rounds);
        fleet_destroy(fleet);
    }
}

/* ---- outer steps ---- */

static struct fleet *fleet_with_outer(
    const char *family, uint32_t nodes, struct sgp_outer_settings outer)
{
    struct sgp_generate_options options = {.family = family, .nodes = nodes, .outer = true};
    struct sgp_error error = {0};
    struct fleet *fleet = fleet_that_trains(family, nodes);
    sgp_topology_destroy(fleet->topology);
    cr_assert(zero(int, sgp_generate(&options, &error, &fleet->topology)), "%s", error.text);
    fleet->outer = outer;
    fleet->options.local_steps = 4;
    return fleet;
}

/* The rule of sgp/outer.h once more, after each 4 steps at the mean of all minima. */
static double outer_reference(const struct fleet *fleet, uint32_t c, sgp_round turns)
{
    double alpha = fleet->outer.learning_rate, beta = fleet->outer.momentum;
    double z = 1, b = 1, v = 0, centre = 0;
    for (uint32_t i = 0; i < fleet->topology->node_count; i++)
        centre += (double)fleet->centre[i][c] / fleet->topology->node_count;
    for (sgp_round turn = 0; turn < turns; turn++) {
        for (uint32_t step = 0; step < fleet->options.local_steps; step++)
            z -= fleet->eta * (z - centre);
        double way = b - z;
        v = beta * v + way;
        z = b = b - alpha * (fleet->outer.kind == SGP_OUTER_SLOWMO ? v : way + beta * v);
    }
    return z;
}

Test(cycle, outer_steps_follow_each_exact_mean)
{
    static const struct sgp_outer_settings rules[] = {
        {SGP_OUTER_SLOWMO, 1, 0.5}, {SGP_OUTER_NESTEROV, 0.7, 0.6}, {SGP_OUTER_SLOWMO, 1, 0}};
    static const char *const families[] = {
        "all-reduce-ring", "all-reduce-direct", "all-reduce-tree"};
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
            struct fleet *fleet = fleet_with_outer(families[f], 5, rules[r]);
            fleet_run(fleet);
            expect_all(fleet, 5, 5);
            for (uint32_t c = 0; c < FLEET_DIMENSION_MAX; c++)
                for (uint32_t i = 0; i < 5; i++) {
                    float estimate[FLEET_DIMENSION_MAX];
                    sgp_sim_estimate(fleet->sim, i, estimate);
                    cr_assert(
                        epsilon_eq(dbl, (double)estimate[c], outer_reference(fleet, c, 30), 2e-5));
                }
            fleet_destroy(fleet);
        }
}

/* One-peer gossip of a power of two averages exactly in a cycle, though each round trains: SlowMo on SGP. */
Test(cycle, outer_steps_of_size_one_without_momentum_change_nothing_of_gossip)
{
    float plain[FLEET_DIMENSION_MAX], stepped[FLEET_DIMENSION_MAX];
    for (int outer = 0; outer < 2; outer++) {
        struct fleet *fleet = outer ? fleet_with_outer("one-peer-exponential", 8,
                                          (struct sgp_outer_settings){SGP_OUTER_SLOWMO, 1, 0})
                                    : fleet_that_trains("one-peer-exponential", 8);
        fleet->options.local_steps = 4;
        fleet_run(fleet);
        sgp_sim_estimate(fleet->sim, 3, outer ? stepped : plain);
        fleet_destroy(fleet);
    }
    for (uint32_t c = 0; c < FLEET_DIMENSION_MAX; c++)
        cr_assert(epsilon_eq(flt, plain[c], stepped[c], 1e-6F));
}

Test(cycle, outer_steps_of_gossip_carry_momentum_and_agree_at_the_end)
{
    struct fleet *fleet = fleet_with_outer(
        "one-peer-exponential", 8, (struct sgp_outer_settings){SGP_OUTER_SLOWMO, 1, 0.4});
    fleet->options.rounds = 300;
    fleet->options.final_cycles = 4;
    fleet_run(fleet);
    expect_all(fleet, 8, 8);
    for (uint32_t c = 0; c < FLEET_DIMENSION_MAX; c++) {
        double centre = 0;
        float estimate[FLEET_DIMENSION_MAX];
        for (uint32_t i = 0; i < 8; i++)
            centre += (double)fleet->centre[i][c] / 8;
        sgp_sim_estimate(fleet->sim, 0, estimate);
        cr_assert(epsilon_eq(dbl, (double)estimate[c], centre, 1e-4), "the minimum of all");
    }
    fleet_destroy(fleet);
}

Test(cycle, thousands_of_cycles_stay_together)
{
    struct fleet *fleet = fleet_that_trains("all-reduce-ring", 3);
    fleet->options.rounds = fleet_many(10000, 500);
    fleet->eta = 0.001;
    fleet->options.row = NULL;
    fleet_run(fleet);
    cr_assert(lt(dbl, fleet_summary(fleet).disagreement, 1e-6));
    cr_assert(eq(dbl, fleet_summary(fleet).weight, 3));
    fleet_destroy(fleet);
}

/* Fewer values than parts: some parts are empty, and so are their shares. */
Test(cycle, a_part_may_have_no_values)
{
    struct fleet *fleet = fleet_that_trains("all-reduce-ring", 7);
    fleet_run(fleet);
    expect_pooled(fleet, 7, 30);
    cr_assert(gt(u64, fleet_summary(fleet).shares_empty, 0));
    fleet_destroy(fleet);
}

/* A prelude of exact cycles, then gossip, and back to one model. */
Test(cycle, a_prelude_is_followed_by_gossip)
{
    struct sgp_generate_options options = {.family = "one-peer-exponential",
        .nodes = 4,
        .prelude = 10,
        .prelude_family = "all-reduce-direct"};
    struct fleet *fleet = fleet_that_trains("all-reduce-ring", 4);
    sgp_topology_destroy(fleet->topology);
    cr_assert(zero(int, sgp_generate(&options, &fleet->error, &fleet->topology)), "%s",
        fleet->error.text);
    fleet->options.rounds = 40;
    fleet->options.final_cycles = 10;
    fleet_run(fleet);
    expect_all(fleet, 4, 4);
    fleet_destroy(fleet);
}

/* EASGD (Zhang, Choromanska and LeCun 2015, equations 4 and 5): x_i -= eta g_i(x_i) + a (x_i - c), and c += a sum (x_i -
 * c), where the elastic step is taken after the gradient's. */
Test(cycle, a_star_with_a_relay_is_elastic_averaging)
{
    struct fleet *fleet = fleet_that_trains("elastic", 5);
    fleet->idle[0] = true;
    fleet->options.rounds = 20;
    fleet->options.final_cycles = 0;
    fleet_run(fleet);
    double fraction = 1.0 / 5, x[5], centre = 1;
    for (uint32_t i = 1; i < 5; i++)
        x[i] = 1;
    for (int turn = 0; turn < 20; turn++) {
        double pull = 0;
        for (uint32_t i = 1; i < 5; i++) {
            x[i] -= fleet->eta * (x[i] - (double)fleet->centre[i][0]);
            pull += fraction * (x[i] - centre);
            x[i] -= fraction * (x[i] - centre);
        }
        centre += pull;
    }
    for (uint32_t i = 0; i < 5; i++) {
        float estimate[FLEET_DIMENSION_MAX];
        sgp_sim_estimate(fleet->sim, i, estimate);
        cr_assert(epsilon_eq(dbl, (double)estimate[0], i == 0 ? centre : x[i], 1e-5), "node %u", i);
    }
    fleet_destroy(fleet);
}

/* Weight that nobody began with comes and goes through a relay: zeros are all it has before the first share. */
Test(cycle, a_relay_of_gossip_begins_with_nothing)
{
    static const struct sgp_topology_node names[] = {
        {.name = "hub", .relay = true}, {.name = "a"}, {.name = "b"}, {.name = "c"}};
    static const struct sgp_edge both[] = {
        {0, 1, 0.2}, {0, 2, 0.2}, {0, 3, 0.2}, {1, 0, 0.2}, {2, 0, 0.2}, {3, 0, 0.2}};
    struct fleet *fleet = fleet_that_trains("ring", 4);
    sgp_topology_destroy(fleet->topology);
    cr_assert(zero(int, sgp_topology_create(names, 4, NULL, &fleet->topology)));
    cr_assert(zero(int, sgp_topology_add_phase(fleet->topology, "star", 1, false, both, 6, NULL)));
    cr_assert(
        zero(int, sgp_topology_seal(fleet->topology, &fleet->error)), "%s", fleet->error.text);
    fleet->options.final_cycles = 200;
    fleet_run(fleet);
    cr_assert(eq(u32, fleet_summary(fleet).finished, 4));
    cr_assert(epsilon_eq(dbl, fleet_summary(fleet).weight, 3, 1e-12));
    cr_assert(lt(dbl, fleet_summary(fleet).disagreement, 1e-3));
    fleet_destroy(fleet);
}

/* Sites that only reach one machine: it has no data, sums up, and ends each cycle with nothing. */
Test(cycle, a_relay_in_the_middle_of_an_exact_cycle_ends_with_nothing)
{
    static const struct sgp_topology_node names[] = {
        {.name = "hub", .relay = true}, {.name = "a"}, {.name = "b"}, {.name = "c"}};
    static const struct sgp_edge up[] = {{1, 0, 1}, {2, 0, 1}, {3, 0, 1}};
    static const struct sgp_edge down[] = {{0, 1, 1.0 / 3}, {0, 2, 1.0 / 3}, {0, 3, 1.0 / 3}};
    struct fleet *fleet = fleet_that_trains("all-reduce-ring", 4);
    sgp_topology_destroy(fleet->topology);
    cr_assert(zero(int, sgp_topology_create(names, 4, NULL, &fleet->topology)));
    struct sgp_phase_options first = {.name = "up", .rounds = 1},
                             second = {.name = "down", .rounds = 1, .exchanges = true};
    cr_assert(zero(int, sgp_topology_add(fleet->topology, &first, up, 3, NULL)));
    cr_assert(zero(int, sgp_topology_add(fleet->topology, &second, down, 3, NULL)));
    cr_assert(
        zero(int, sgp_topology_seal(fleet->topology, &fleet->error)), "%s", fleet->error.text);
    struct sgp_sim_crash crash = {0, 100 * SGP_MILLISECOND, SGP_SECOND, false, 0};
    fleet->options.crashes = &crash;
    fleet->options.crash_count = 1;
    fleet_run(fleet);
    cr_assert(eq(u32, fleet_summary(fleet).finished, 4));
    cr_assert(eq(dbl, fleet_summary(fleet).weight, 3));
    float a[FLEET_DIMENSION_MAX], c[FLEET_DIMENSION_MAX];
    sgp_sim_estimate(fleet->sim, 1, a);
    sgp_sim_estimate(fleet->sim, 3, c);
    cr_assert(epsilon_eq(dbl, (double)a[0], (double)c[0], 1e-6));
    fleet_destroy(fleet);
}
