/* SPDX-License-Identifier: Apache-2.0 */
/* Exact cycles in the simulator, which checks at the end of each that everybody holds the mean of what all entered it
 * with: as synchronous training, and under faults, orders and other files. */
#include "test_sim_fleet.h"

#include "core/core.h"
#include "sim/world.h"

#include <stdlib.h>

#define TURN (11 * SGP_MILLISECOND)

struct schedule {
    const char *family;
    uint32_t nodes;
    uint32_t hubs; /* of all-reduce-hubs, without data */
    uint32_t pieces;
};
static const struct schedule schedules[] = {{"all-reduce-ring", 4}, {"all-reduce-ring", 5},
    {"all-reduce-direct", 4}, {"all-reduce-halving", 8}, {"all-reduce-tree", 6},
    {"all-reduce-groups", 7}, {"all-reduce-doubling", 5}, {"all-reduce-blocks", 7},
    {"all-reduce-hubs", 6, 2}, {"all-reduce-ring", 4, 0, 2}, {"all-reduce-direct", 5, 0, 3},
    {"all-reduce-tree", 6, 0, 2}};
#define SCHEDULES (sizeof schedules / sizeof *schedules)

static struct sgp_topology *make_cut(
    const char *family, uint32_t nodes, uint32_t relays, uint32_t pieces)
{
    struct sgp_generate_options options = {.family = family, .nodes = nodes, .pieces = pieces};
    if (strcmp(family, "all-reduce-hubs") == 0) {
        options.hubs = relays > 0 ? relays : 2;
        options.relays = relays > 0;
    }
    options.group = strcmp(family, "all-reduce-groups") == 0 ? 3 : 0;
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    cr_assert(zero(int, sgp_generate(&options, &error, &topology)), "%s", error.text);
    return topology;
}

static struct sgp_topology *make(const char *family, uint32_t nodes, uint32_t relays)
{
    return make_cut(family, nodes, relays, 0);
}

/* Quadratics with minima of their own, all of which begin at one place. */
static struct fleet *fleet_of(const struct schedule *schedule)
{
    struct fleet *fleet = fleet_create();
    uint32_t nodes = schedule->nodes;
    fleet->topology = make_cut(schedule->family, nodes, schedule->hubs, schedule->pieces);
    fleet->options.dimension = FLEET_DIMENSION_MAX;
    fleet->options.rounds = 30;
    fleet->options.final_cycles = 1;
    fleet->eta = 0.1;
    for (uint32_t i = 0; i < nodes; i++)
        for (uint32_t c = 0; c < FLEET_DIMENSION_MAX; c++) {
            fleet->centre[i][c] = (float)((i + 1) * (c + 2) % 7) - 3;
            fleet->start[i][c] = 1;
        }
    return fleet;
}

static struct fleet *fleet_that_trains(const char *family, uint32_t nodes)
{
    return fleet_of(&(struct schedule){family, nodes, 0, 0});
}

static void expect_all(const struct fleet *fleet, uint32_t finished, double weight)
{
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, finished));
    cr_assert(epsilon_eq(dbl, summary.weight, weight, 1e-11));
    cr_assert(zero(dbl, summary.weight_in_flight));
    cr_assert(lt(dbl, summary.disagreement, 1e-4));
}

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

/* ---- faults ---- */

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

/* A bug between the driver and the simulator's verbs, or NULL. */
static int run_faults(const struct schedule *schedule, uint64_t seed,
    const struct sgp_driver_verbs *bug, struct fleet **ret_fleet)
{
    struct fleet *fleet = fleet_of(schedule);
    bring(fleet, seed);
    fleet_open(fleet);
    for (uint32_t i = 0; bug && i < fleet->sim->host_count; i++)
        fleet->sim->hosts[i].driver.verbs = bug;
    *ret_fleet = fleet;
    return sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
}

/* Whoever dies or stands still, each cycle that ends is the mean of all, and nobody is stuck once all are back. */
Test(cycle, kills_and_stops_leave_every_cycle_exact, .timeout = 3600)
{
    uint64_t seeds = fleet_most(500, 60, 3);
    for (size_t s = 0; s < SCHEDULES; s++)
        for (uint64_t seed = 1; seed <= seeds; seed++) {
            struct fleet *fleet;
            int status = run_faults(&schedules[s], seed, NULL, &fleet);
            cr_assert(zero(int, status), "%s of %u, seed %u: %s", schedules[s].family,
                schedules[s].nodes, (unsigned)seed, fleet->error.text);
            expect_all(fleet, schedules[s].nodes, schedules[s].nodes - schedules[s].hubs);
            fleet_destroy(fleet);
        }
}

/* The same where the cycles are a prelude: some die in it, some when others are through, some after it. Nothing of it
 * is lost or twice in the gossip that follows. One that forgets has a weight of its own there, which is counted. */
Test(cycle, kills_about_the_end_of_a_prelude_leave_every_weight, .timeout = 3600)
{
    uint64_t seeds = fleet_most(2000, 100, 6);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct sgp_generate_options options = {.family = "one-peer-exponential",
            .nodes = 4,
            .prelude = 4 + (uint32_t)(seed % 30),
            .prelude_family = seed % 2 ? "all-reduce-direct" : "all-reduce-ring"};
        struct fleet *fleet = fleet_that_trains("all-reduce-ring", 4);
        sgp_topology_destroy(fleet->topology);
        cr_assert(zero(int, sgp_generate(&options, &fleet->error, &fleet->topology)));
        bring(fleet, seed);
        for (size_t i = 0; i < fleet->options.crash_count; i++)
            faults.crashes[i].forgets = false;
        fleet->options.rounds = 60;
        fleet->options.final_cycles = 10;
        fleet_open(fleet);
        int status = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
        cr_assert(zero(int, status), "seed %u: %s", (unsigned)seed, fleet->error.text);
        struct sgp_sim_summary summary = fleet_summary(fleet);
        cr_assert(eq(u32, summary.finished, 4), "seed %u", (unsigned)seed);
        cr_assert(epsilon_eq(dbl, summary.weight + summary.weight_in_flight, 4, 1e-9), "seed %u",
            (unsigned)seed);
        fleet_destroy(fleet);
    }
}

/* ---- bugs put in on purpose ---- */

/* What came in a former epoch is kept, and absorbed in this. */
static void absorb_the_old(void *context, const struct sgp_effect *note)
{
    struct sgp_sim_host *host = context;
    struct sgp_node *node = host->node;
    for (uint32_t i = 0; note->note.what == SGP_NOTE_RENEWED && i < host->receive_count; i++) {
        struct sgp_receive *receive = &node->layout.receives[i];
        if (host->receives[i].state != SGP_SIM_RECEIVE_HELD || receive->state != SGP_RECEIVE_FREE)
            continue;
        receive->state = SGP_RECEIVE_HELD;
        receive->share.round = node->round;
        receive->epoch = host->receives[i].epoch = node->exact.epoch;
    }
    sgp_sim_verbs.note(context, note);
}

/* A node goes on without a source that it has lost. */
static void go_on_without(void *context, uint32_t peer)
{
    struct sgp_sim_host *host = context;
    sgp_sim_verbs.dial(context, peer);
    struct sgp_core_link *in = sgp_core_find(host->node, peer, SGP_IN);
    if (in && in->connection.state == SGP_LINK_DOWN)
        in->receiving.latest = host->node->round;
}

/* Nobody hears of the epoch of one node. */
static void renew_alone(
    void *context, struct sgp_link link, const struct sgp_message *message, uint32_t snapshot)
{
    const struct sgp_sim_host *host = context;
    struct sgp_message copy = *message;
    if (host->index == 1)
        copy.pulse.epoch.number = copy.pulse.epoch.start = 0;
    sgp_sim_verbs.send(context, link, &copy, snapshot);
}

/* Rounds end before the cycle does: what is left of it is not divided, nor given back. */
static void end_early(void *context, double factor, struct sgp_slice slice)
{
    (void)context;
    (void)factor;
    (void)slice;
}

static bool is_caught(const struct sgp_driver_verbs *bug)
{
    bool caught = false;
    for (uint64_t seed = 1; seed <= 50 && !caught; seed++) {
        struct fleet *fleet;
        caught = run_faults(&schedules[seed % SCHEDULES], seed, bug, &fleet) != 0;
        fleet_destroy(fleet);
    }
    return caught;
}

Test(cycle, planted_bugs_are_caught, .timeout = 600)
{
    struct sgp_driver_verbs bug = sgp_sim_verbs;
    cr_assert(not(is_caught(&bug)));
    bug.note = absorb_the_old;
    cr_assert(is_caught(&bug), "a share of an old epoch");
    bug = sgp_sim_verbs;
    bug.dial = go_on_without;
    cr_assert(is_caught(&bug), "going on without an absent one");
    bug = sgp_sim_verbs;
    bug.send = renew_alone;
    cr_assert(is_caught(&bug), "a renewal by one node alone");
    bug = sgp_sim_verbs;
    bug.scale = end_early;
    cr_assert(is_caught(&bug), "an end amid a cycle");
}

Test(cycle, a_kill_is_renewed_and_told)
{
    struct sgp_sim_crash crash = {1, 15 * SGP_MILLISECOND, 2 * SGP_SECOND, false, 0};
    struct fleet *fleet = fleet_that_trains("all-reduce-ring", 4);
    fleet->options.crashes = &crash;
    fleet->options.crash_count = 1;
    fleet_run(fleet);
    expect_all(fleet, 4, 4);
    cr_assert(ge(u64, fleet_summary(fleet).cycles_renewed, 4));
    cr_assert(eq(u32, fleet->notes[SGP_NOTE_RENEWED], fleet_summary(fleet).cycles_renewed));
    for (uint32_t i = 0; i < 4; i++) {
        struct sgp_node_status status;
        sgp_node_status(sgp_sim_node(fleet->sim, i), &status);
        cr_assert(eq(u64, status.epoch.number, 1));
    }
    fleet_destroy(fleet);
}

/* While one is away the others stand, and say for whom. */
Test(cycle, the_others_stand_while_one_is_away)
{
    struct sgp_sim_absence absence = {2, 40 * SGP_MILLISECOND, 60 * SGP_SECOND};
    struct fleet *fleet = fleet_that_trains("all-reduce-direct", 4);
    fleet->options.rounds = 1000;
    fleet->options.absences = &absence;
    fleet->options.absence_count = 1;
    fleet_open(fleet);
    cr_assert(zero(int, sgp_sim_run(fleet->sim, 30 * SGP_SECOND, &fleet->error)), "%s",
        fleet->error.text);
    for (uint32_t i = 0; i < 4; i++) {
        struct sgp_node_status status;
        sgp_node_status(sgp_sim_node(fleet->sim, i), &status);
        cr_assert(lt(i64, status.round, 20));
        if (i != 2)
            cr_assert(eq(u32, status.waiting_peer, 2), "node %u", i);
    }
    cr_assert(
        zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)), "%s", fleet->error.text);
    expect_all(fleet, 4, 4);
    fleet_destroy(fleet);
}

/* ---- orders ---- */

Test(cycle, orders_take_effect_between_cycles)
{
    for (size_t s = 0; s < SCHEDULES; s++)
        for (uint32_t at = 0; at < 5; at++) {
            struct fleet *fleet = fleet_of(&schedules[s]);
            sgp_time begin = (30 + 3 * at) * SGP_MILLISECOND;
            fleet->options.rounds = 100;
            fleet_open(fleet);
            cr_assert(zero(int, sgp_sim_command(fleet->sim, begin, 1, SGP_EVENT_PAUSE)));
            cr_assert(zero(int, sgp_sim_command(fleet->sim, 2 * SGP_SECOND, 1, SGP_EVENT_RESUME)));
            cr_assert(zero(int, sgp_sim_command(fleet->sim, 3 * SGP_SECOND, 0, SGP_EVENT_ENOUGH)));
            cr_assert(zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)), "%s: %s",
                schedules[s].family, fleet->error.text);
            expect_all(fleet, schedules[s].nodes, schedules[s].nodes - schedules[s].hubs);
            struct sgp_node_status status;
            sgp_node_status(sgp_sim_node(fleet->sim, 0), &status);
            cr_assert(
                eq(i64, sgp_topology_start_from(fleet->topology, status.round), status.round));
            cr_assert(zero(u64, status.cycles_renewed)); /* nobody lost anything */
            fleet_destroy(fleet);
        }
}

/* Pauses that are over before anybody was waited for, while links stand still for moments: what a target heard of them, and
 * when, is chance. */
static void run_short_pauses(uint64_t seed)
{
    const struct schedule *schedule = &schedules[seed % SCHEDULES];
    static const double bandwidths[] = {0, 2e4, 2e3, 1.25e8};
    struct fleet *fleet = fleet_of(schedule);
    struct sgp_sim_clog clogs[6];
    struct sgp_random random;
    sgp_random_init(&random, seed, 11);
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t source = (uint32_t)sgp_random_below(&random, schedule->nodes);
        uint32_t other = 1 + (uint32_t)sgp_random_below(&random, schedule->nodes - 1);
        sgp_time from = (sgp_time)sgp_random_below(&random, 1500) * SGP_MILLISECOND;
        sgp_time lasts = (sgp_time)(1 + sgp_random_below(&random, 200)) * SGP_MILLISECOND;
        clogs[i] =
            (struct sgp_sim_clog){source, (source + other) % schedule->nodes, from, from + lasts};
    }
    fleet->options.seed = seed;
    fleet->options.bandwidth = bandwidths[sgp_random_below(&random, 4)];
    fleet->options.latency_ns = (sgp_time)(1 + sgp_random_below(&random, 20)) * SGP_MILLISECOND;
    fleet->options.compute_jitter = 0.5;
    fleet->options.loss = seed % 3 == 0 ? 0.001 : 0;
    fleet->options.clogs = clogs;
    fleet->options.clog_count = 6;
    fleet_open(fleet);
    for (uint32_t i = 0; i < 12; i++) {
        uint32_t node = (uint32_t)sgp_random_below(&random, schedule->nodes);
        sgp_time at = (sgp_time)sgp_random_below(&random, 1500) * SGP_MILLISECOND;
        sgp_time back = at + (sgp_time)(1 + sgp_random_below(&random, 40)) * SGP_MILLISECOND;
        cr_assert(zero(int, sgp_sim_command(fleet->sim, at, node, SGP_EVENT_PAUSE)));
        cr_assert(zero(int, sgp_sim_command(fleet->sim, back, node, SGP_EVENT_RESUME)));
    }
    int status = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
    cr_assert(
        zero(int, status), "%s, seed %u: %s", schedule->family, (unsigned)seed, fleet->error.text);
    expect_all(fleet, schedule->nodes, schedule->nodes - schedule->hubs);
    fleet_destroy(fleet);
}

Test(cycle, short_pauses_while_links_stand_still, .timeout = 600)
{
    for (uint64_t seed = 1; seed <= fleet_most(20000, 2000, 100); seed++)
        run_short_pauses(seed);
}

/* ---- other files ---- */

/* From ring to direct and back, node by node, in any order. */
static void run_reloads(const char *from, const char *to, uint64_t seed)
{
    struct sgp_random random;
    struct sgp_sim_reload reloads[12];
    uint32_t order[4] = {0, 1, 2, 3}, count = 0;
    struct fleet *fleet = fleet_that_trains(from, 4);
    struct sgp_topology *other = make(to, 4, 0);
    sgp_random_init(&random, seed, 9);
    for (uint32_t i = 0; i < 4;
         i++) /* all begin with the first; then the other, and the first again */
        reloads[count++] = (struct sgp_sim_reload){i, 0, fleet->topology};
    for (uint32_t turn = 1; turn <= 2; turn++) {
        sgp_random_shuffle(&random, order, 4);
        for (uint32_t i = 0; i < 4; i++)
            reloads[count++] = (struct sgp_sim_reload){order[i],
                turn * SGP_SECOND + (sgp_time)sgp_random_below(&random, 800) * SGP_MILLISECOND,
                turn == 1 ? other : fleet->topology};
    }
    fleet->options.seed = seed;
    fleet->options.rounds = 200;
    fleet->options.final_cycles = 4;
    fleet->options.reloads = reloads;
    fleet->options.reload_count = count;
    fleet_open(fleet);
    int status = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
    cr_assert(
        zero(int, status), "%s to %s, seed %u: %s", from, to, (unsigned)seed, fleet->error.text);
    expect_all(fleet, 4, 4);
    fleet_destroy(fleet);
    sgp_topology_destroy(other);
}

Test(cycle, reloads_from_one_schedule_to_another_in_any_order, .timeout = 600)
{
    for (uint64_t seed = 1; seed <= fleet_many(30, 3); seed++) {
        run_reloads("all-reduce-ring", "all-reduce-direct", seed);
        run_reloads("all-reduce-tree", "all-reduce-halving", seed);
    }
}

/* Between gossip and exact cycles weights become 1 again, and the total the number of members. */
Test(cycle, reloads_between_gossip_and_exact_cycles, .timeout = 600)
{
    for (uint64_t seed = 1; seed <= fleet_many(30, 3); seed++) {
        run_reloads("one-peer-exponential", "all-reduce-direct", seed);
        run_reloads("all-reduce-ring", "ring", seed);
    }
}

/* All are in the gossip after a prelude. One is dead while the others get another file, and begin again at weight 1: so
 * does it when it is back. */
Test(cycle, one_that_was_away_weighs_as_the_others_do, .timeout = 600)
{
    struct sgp_generate_options options = {.family = "one-peer-exponential",
        .nodes = 4,
        .prelude = 4,
        .prelude_family = "all-reduce-direct"};
    for (uint64_t seed = 1; seed <= fleet_many(30, 5); seed++) {
        struct sgp_sim_reload reloads[8];
        struct sgp_sim_crash crash = {
            .node = 2, .at = 500 * SGP_MILLISECOND, .back = 4 * SGP_SECOND};
        struct fleet *fleet = fleet_that_trains("all-reduce-ring", 4);
        struct sgp_topology *other = NULL;
        sgp_topology_destroy(fleet->topology);
        options.prelude = 4;
        cr_assert(zero(int, sgp_generate(&options, &fleet->error, &fleet->topology)));
        options.prelude = 6;
        cr_assert(zero(int, sgp_generate(&options, &fleet->error, &other)));
        for (uint32_t i = 0; i < 4; i++) {
            reloads[i] = (struct sgp_sim_reload){i, 0, fleet->topology};
            reloads[4 + i] = (struct sgp_sim_reload){i, (2 + i % 2) * SGP_SECOND, other};
        }
        crash.at += (sgp_time)seed * 7 * SGP_MILLISECOND;
        fleet->options.seed = seed;
        fleet->options.compute_jitter = 0.3;
        fleet->options.rounds = 600;
        fleet->options.final_cycles = 10;
        fleet->options.crashes = &crash;
        fleet->options.crash_count = 1;
        fleet->options.reloads = reloads;
        fleet->options.reload_count = 8;
        fleet_open(fleet);
        int status = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
        cr_assert(zero(int, status), "seed %u: %s", (unsigned)seed, fleet->error.text);
        expect_all(fleet, 4, 4);
        fleet_destroy(fleet);
        sgp_topology_destroy(other);
    }
}

/* n0 gives half to each of two, and so has nothing until they, who are slow, have given back. If the other file comes
 * then, it has no estimate to begin a cycle with, and must not pass zeros off as one. */
Test(cycle, one_that_has_nothing_asks_for_an_estimate_before_it_begins)
{
    static const struct sgp_edge edges[] = {{.source = 0, .target = 1, .fraction = 0.5},
        {.source = 0, .target = 2, .fraction = 0.5}, {.source = 1, .target = 0, .fraction = 0.5},
        {.source = 2, .target = 0, .fraction = 0.5}};
    static const struct sgp_topology_node names[] = {
        {.name = "n0"}, {.name = "n1"}, {.name = "n2"}};
    for (uint32_t at = 0; at < 30; at++) {
        struct sgp_sim_reload reloads[6];
        struct sgp_sim_straggler slow[] = {{.node = 1, .factor = 180}, {.node = 2, .factor = 180}};
        struct fleet *fleet = fleet_that_trains("all-reduce-direct", 3);
        struct sgp_topology *exact = fleet->topology, *halves = NULL;
        cr_assert(zero(int, sgp_topology_create(names, 3, NULL, &halves)));
        cr_assert(zero(int, sgp_topology_add_phase(halves, "halves", 1, false, edges, 4, NULL)));
        cr_assert(zero(int, sgp_topology_seal(halves, NULL)));
        fleet->topology = halves;
        for (uint32_t i = 0; i < 3; i++) {
            for (uint32_t c = 0; c < FLEET_DIMENSION_MAX; c++)
                fleet->start[i][c] = 5;
            reloads[i] = (struct sgp_sim_reload){i, 0, halves};
            reloads[3 + i] =
                (struct sgp_sim_reload){i, SGP_SECOND + at * 17 * SGP_MILLISECOND, exact};
        }
        fleet->eta = 0;                 /* nothing but what all began with is anywhere */
        fleet->options.bandwidth = 4e4; /* an estimate takes longer than a step */
        fleet->options.compute_ns = SGP_MILLISECOND / 10;
        fleet->options.rounds = 100;
        fleet->options.stragglers = slow;
        fleet->options.straggler_count = 2;
        fleet->options.reloads = reloads;
        fleet->options.reload_count = 6;
        fleet_run(fleet);
        for (uint32_t i = 0; i < 3; i++) {
            float estimate[FLEET_DIMENSION_MAX];
            sgp_sim_estimate(fleet->sim, i, estimate);
            cr_assert(epsilon_eq(flt, estimate[0], 5, 1e-4F), "node %u, %u: %g", i, at,
                (double)estimate[0]);
        }
        expect_all(fleet, 3, 3);
        fleet_destroy(fleet);
        sgp_topology_destroy(exact);
    }
}

/* A file of those that are left, in the same order. */
static struct sgp_topology *without(uint32_t struck, uint32_t nodes)
{
    struct sgp_topology_node names[FLEET_NODES_MAX] = {0};
    struct sgp_topology *topology, *pattern = make("all-reduce-ring", nodes - 1, 0);
    for (uint32_t i = 0, at = 0; i < nodes; i++)
        if (i != struck)
            (void)snprintf(names[at++].name, sizeof names[0].name, "n%u", i);
    cr_assert(zero(int, sgp_topology_create(names, nodes - 1, NULL, &topology)));
    for (uint32_t p = 0; p < pattern->phase_count; p++) {
        const struct sgp_phase *phase = &pattern->phases[p];
        struct sgp_phase_options options = {.name = phase->name,
            .rounds = 1,
            .exchanges = phase->exchanges,
            .slices = pattern->slices};
        cr_assert(
            zero(int, sgp_topology_add(topology, &options, phase->out, phase->edge_count, NULL)));
    }
    cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
    sgp_topology_destroy(pattern);
    return topology;
}

/* A dead node is struck by a rolling reload, and the others go on. So it is when it has left for good. */
Test(cycle, a_node_is_struck_and_the_others_go_on)
{
    for (uint32_t leaves = 0; leaves < 2; leaves++)
        for (uint32_t at = 0; at < 10; at++) {
            struct fleet *fleet = fleet_that_trains("all-reduce-ring", 5);
            struct sgp_topology *fewer = without(2, 5);
            struct sgp_sim_absence gone = {2, (40 + at) * SGP_MILLISECOND, SGP_TIME_NEVER};
            struct sgp_sim_reload reloads[9];
            uint32_t count = 0;
            for (uint32_t i = 0; i < 5; i++)
                reloads[count++] = (struct sgp_sim_reload){i, 0, fleet->topology};
            for (uint32_t i = 0; i < 5; i++)
                if (i != 2)
                    reloads[count++] = (struct sgp_sim_reload){
                        i, 10 * SGP_SECOND + i * 300 * SGP_MILLISECOND, fewer};
            fleet->options.rounds = 100;
            fleet->options.reloads = reloads;
            fleet->options.reload_count = count;
            fleet->options.absences = &gone;
            fleet->options.absence_count = leaves ? 0 : 1;
            fleet_open(fleet);
            if (leaves)
                cr_assert(zero(int, sgp_sim_command(fleet->sim, gone.from, 2, SGP_EVENT_LEAVE)));
            int status = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
            cr_assert(zero(int, status), "%u, %u: %s", leaves, at, fleet->error.text);
            cr_assert(eq(u32, fleet_summary(fleet).finished, 4));
            cr_assert(epsilon_eq(dbl, fleet_summary(fleet).weight, leaves ? 4 : 5, 1e-11));
            fleet_destroy(fleet);
            sgp_topology_destroy(fewer);
        }
}
