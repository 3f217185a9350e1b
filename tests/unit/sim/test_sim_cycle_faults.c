/* SPDX-License-Identifier: Apache-2.0 */
/* Exact cycles in the simulator under faults, orders and other files: whatever happens, a cycle that ends is the mean of what all
 * entered it with, or none has happened. */
#include "sim_cycle.h"
#include "sim_kills.h"

#include "core/core.h"

#include <stdlib.h>

/* ---- faults ---- */

static struct fleet *make_faulty(size_t schedule, uint64_t seed)
{
    struct fleet *fleet = fleet_by_seed(&schedules[schedule], seed);
    bring(fleet, seed);
    return fleet;
}

/* Whoever dies or stands still, each cycle that ends is the mean of all, and nobody is stuck once all are back. */
Test(cycle, kills_and_stops_leave_every_cycle_exact, .timeout = 3600)
{
    uint64_t seeds = fleet_most(75, 32, 2);
    for (size_t s = 0; s < SCHEDULES; s++)
        for (uint64_t seed = 1; seed <= seeds; seed++) {
            struct fleet *fleet;
            int status = run_kills(make_faulty, s, seed, NULL, &fleet);
            cr_assert(zero(int, status), "%s of %u, seed %u: %s", schedules[s].family,
                schedules[s].nodes, (unsigned)seed, fleet->error.text);
            expect_all(fleet, schedules[s].nodes, schedules[s].nodes - schedules[s].hubs);
            fleet_destroy(fleet);
        }
}

/* The last cycle of a fleet of hubs ended at one site alone, and sites reach only hubs, which have no model. The hubs compare the
 * sites with each other, and ask for another cycle. */
Test(cycle, hubs_compare_the_sites_that_meet_nobody_else)
{
    struct fleet *fleet;
    cr_assert(eq(str, (char *)(uintptr_t)schedules[8].family, "all-reduce-hubs"));
    cr_assert(zero(int, run_kills(make_faulty, 8, 27, NULL, &fleet)));
    expect_all(fleet, 6, 4);
    fleet_destroy(fleet);
}

/* ---- faults, and what a person does meanwhile ---- */

static sgp_time moment(struct sgp_random *random)
{
    return (sgp_time)(50 + sgp_random_below(random, 8000)) * SGP_MILLISECOND;
}

static void run_until(
    struct fleet *fleet, const struct schedule *schedule, uint64_t seed, sgp_time until)
{
    int status = sgp_sim_run(fleet->sim, until, &fleet->error);
    cr_assert(zero(int, status), "%s of %u, seed %u: %s", schedule->family, schedule->nodes,
        (unsigned)seed, fleet->error.text);
}

/* A pause, and an early stop in half of the runs. Where sites reach relays alone the end is behind all faults: who dies after the
 * last mean without a checkpoint has nobody to ask there. */
static void run_orders(const struct schedule *schedule, uint64_t seed)
{
    struct fleet *fleet = fleet_by_seed(schedule, seed);
    struct sgp_random random;
    sgp_random_init(&random, seed, 31);
    bring(fleet, seed);
    fleet->options.rounds = schedule->hubs > 0 ? 600 : 40;
    fleet_open(fleet);
    uint32_t node = (uint32_t)sgp_random_below(&random, schedule->nodes);
    sgp_time at = moment(&random);
    cr_assert(zero(int, sgp_sim_command(fleet->sim, at, node, SGP_EVENT_PAUSE)));
    cr_assert(zero(int, sgp_sim_command(fleet->sim, at + moment(&random), node, SGP_EVENT_RESUME)));
    node = (uint32_t)sgp_random_below(&random, schedule->nodes);
    if (seed % 2 == 0 && schedule->hubs == 0)
        cr_assert(zero(int, sgp_sim_command(fleet->sim, moment(&random), node, SGP_EVENT_ENOUGH)));
    run_until(fleet, schedule, seed, SGP_TIME_NEVER);
    expect_all(fleet, schedule->nodes, schedule->nodes - schedule->hubs);
    fleet_destroy(fleet);
}

Test(cycle, orders_amid_faults_leave_every_cycle_exact, .timeout = 3600)
{
    uint64_t seeds = fleet_most(75, 20, 2);
    for (size_t s = 0; s < SCHEDULES; s++)
        for (uint64_t seed = 1; seed <= seeds; seed++)
            run_orders(&schedules[s], seed);
}

/* Each node gets another schedule, and the first again, in an order and at times of its own, which overlap. */
static void run_other_files(const struct schedule *schedule, uint64_t seed)
{
    struct fleet *fleet = fleet_by_seed(schedule, seed);
    struct sgp_sim_reload reloads[3 * FLEET_NODES_MAX];
    struct sgp_random random;
    uint32_t nodes = schedule->nodes, count = 0;
    const char *family =
        strcmp(schedule->family, "all-reduce-ring") == 0 ? "all-reduce-direct" : "all-reduce-ring";
    struct sgp_topology *other = make(family, nodes, 0);
    sgp_random_init(&random, seed, 37);
    bring(fleet, seed);
    for (uint32_t i = 0; i < nodes; i++) {
        sgp_time first = moment(&random), second = first + moment(&random);
        reloads[count++] = (struct sgp_sim_reload){i, 0, fleet->topology};
        reloads[count++] = (struct sgp_sim_reload){i, first, other};
        reloads[count++] = (struct sgp_sim_reload){i, second, fleet->topology};
    }
    fleet->options.reloads = reloads;
    fleet->options.reload_count = count;
    fleet->options.final_cycles = 4;
    fleet_open(fleet);
    run_until(fleet, schedule, seed, SGP_TIME_NEVER);
    expect_all(fleet, nodes, nodes);
    fleet_destroy(fleet);
    sgp_topology_destroy(other);
}

Test(cycle, other_files_amid_faults_leave_every_cycle_exact, .timeout = 3600)
{
    uint64_t seeds = fleet_most(75, 20, 2);
    for (size_t s = 0; s < SCHEDULES; s++)
        for (uint64_t seed = 1; seed <= seeds && schedules[s].hubs == 0; seed++)
            run_other_files(&schedules[s], seed);
}

/* The same where the cycles are a prelude: some die in it, some when others are through, some after it. Nothing of it
 * is lost or twice in the gossip that follows. One that forgets has a weight of its own there, which is counted. */
Test(cycle, kills_about_the_end_of_a_prelude_leave_every_weight, .timeout = 3600)
{
    uint64_t seeds = fleet_most(1000, 48, 6);
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
    for (uint32_t i = 0; note->note.what == SGP_NOTE_RENEWED && i < host->performer.receives.count;
         i++) {
        struct sgp_receive *receive = &node->layout.receives[i];
        if (host->receives[i].state != SGP_SIM_RECEIVE_HELD || receive->state != SGP_RECEIVE_FREE)
            continue;
        receive->state = SGP_RECEIVE_HELD;
        receive->share.round = node->round;
        receive->epoch = host->receives[i].epoch = node->exact.epoch;
    }
    sgp_sim_ops.note(context, note);
}

/* A node goes on without a source that it has lost. */
static void go_on_without(void *context, uint32_t peer)
{
    struct sgp_sim_host *host = context;
    sgp_sim_ops.dial(context, peer);
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
    sgp_sim_ops.send(context, link, &copy, snapshot);
}

/* Rounds end before the cycle does: what is left of it is not divided, nor given back. */
static void end_early(void *context, const struct sgp_effect *job)
{
    if (job->type != SGP_EFFECT_SCALE)
        sgp_sim_ops.work(context, job);
}

/* A sanitizer makes each of the many seeds several times as slow, and finds no other bug. */
Test(cycle, planted_bugs_are_caught, .timeout = 600)
{
    if (getenv("SGP_FEW") != NULL && getenv("SGP_LONG") == NULL)
        cr_skip_test("under a sanitizer with scripts/check --long");
    struct sgp_driver_ops bug = sgp_sim_ops;
    cr_assert(not(is_caught(make_faulty, SCHEDULES, &bug)));
    bug.note = absorb_the_old;
    cr_assert(is_caught(make_faulty, SCHEDULES, &bug), "a share of an old epoch");
    bug = sgp_sim_ops;
    bug.dial = go_on_without;
    cr_assert(is_caught(make_faulty, SCHEDULES, &bug), "going on without an absent one");
    bug = sgp_sim_ops;
    bug.send = renew_alone;
    cr_assert(is_caught(make_faulty, SCHEDULES, &bug), "a renewal by one node alone");
    bug = sgp_sim_ops;
    bug.work = end_early;
    cr_assert(is_caught(make_faulty, SCHEDULES, &bug), "an end amid a cycle");
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
    struct fleet *fleet = fleet_by_seed(schedule, seed);
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
    for (uint64_t seed = 1; seed <= fleet_most(3000, 1000, 20); seed++)
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

/* While one still has the exact file the others, who have gossip, give to it in vain. That is no reason to begin again. */
Test(cycle, a_late_reload_from_exact_cycles_to_gossip_renews_once_or_twice)
{
    static const struct {
        const char *from, *to;
    } files[] = {{"all-reduce-ring", "ring"}, {"all-reduce-direct", "one-peer-exponential"},
        {"all-reduce-ring", "complete"}};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        struct sgp_sim_reload reloads[8];
        struct fleet *fleet = fleet_that_trains(files[f].from, 4);
        struct sgp_topology *other = make(files[f].to, 4, 0);
        for (uint32_t i = 0; i < 4; i++) {
            reloads[i] = (struct sgp_sim_reload){i, 0, fleet->topology};
            reloads[4 + i] = (struct sgp_sim_reload){i, (i == 0 ? 6 : 1) * SGP_SECOND, other};
        }
        fleet->options.rounds = 1000;
        fleet->options.final_cycles = 8;
        fleet->options.reloads = reloads;
        fleet->options.reload_count = 8;
        fleet_run(fleet);
        cr_assert(le(u64, fleet_summary(fleet).cycles_renewed, 12), "%s: %u", files[f].to,
            (unsigned)fleet_summary(fleet).cycles_renewed);
        cr_assert(eq(u32, fleet_summary(fleet).finished, 4));
        fleet_destroy(fleet);
        sgp_topology_destroy(other);
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
static struct sgp_topology *without(uint32_t struck, const struct schedule *schedule)
{
    uint32_t nodes = schedule->nodes;
    struct sgp_topology_node names[FLEET_NODES_MAX] = {0};
    struct sgp_topology *topology,
        *pattern = make_cut(schedule->family, nodes - 1, 0, schedule->pieces);
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
            struct sgp_topology *fewer = without(2, &(struct schedule){"all-reduce-ring", 5, 0, 0});
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

/* Of the faults that were drawn, those of one node are left out: it has another. */
static void spare(struct fleet *fleet, uint32_t node)
{
    uint32_t crashes = 0, absences = 0;
    for (uint32_t i = 0; i < faults.crash_count; i++)
        if (faults.crashes[i].node != node)
            faults.crashes[crashes++] = faults.crashes[i];
    for (uint32_t i = 0; i < faults.absence_count; i++)
        if (faults.absences[i].node != node)
            faults.absences[absences++] = faults.absences[i];
    fleet->options.crash_count = crashes;
    fleet->options.absence_count = absences;
}

/* One is gone for good, by an order or without a word, while others die and come back; and each of these gets the file without
 * it at some time. One that is struck before it could leave keeps what it has, and waits. */
static void run_strike(const struct schedule *schedule, uint64_t seed)
{
    struct fleet *fleet = fleet_by_seed(schedule, seed);
    struct sgp_topology *fewer = without((uint32_t)(seed % schedule->nodes), schedule);
    struct sgp_sim_reload reloads[2 * FLEET_NODES_MAX];
    struct sgp_random random;
    struct sgp_node_status status;
    uint32_t nodes = schedule->nodes, struck = (uint32_t)(seed % nodes), count = 0;
    bool leaves = seed / nodes % 2 == 0;
    sgp_random_init(&random, seed, 41);
    sgp_time at = moment(&random);
    bring(fleet, seed);
    spare(fleet, struck);
    if (!leaves)
        faults.absences[fleet->options.absence_count++] =
            (struct sgp_sim_absence){struck, at, SGP_TIME_NEVER};
    for (uint32_t i = 0; i < nodes; i++)
        reloads[count++] = (struct sgp_sim_reload){i, 0, fleet->topology};
    for (uint32_t i = 0; i < nodes; i++)
        if (i != struck)
            reloads[count++] =
                (struct sgp_sim_reload){i, at + 10 * SGP_SECOND + moment(&random), fewer};
    fleet->options.rounds = 700; /* which end after that */
    fleet->options.reloads = reloads;
    fleet->options.reload_count = count;
    fleet_open(fleet);
    if (leaves)
        cr_assert(zero(int, sgp_sim_command(fleet->sim, at, struck, SGP_EVENT_LEAVE)));
    run_until(fleet, schedule, seed, 300 * SGP_SECOND);
    sgp_node_status(sgp_sim_node(fleet->sim, struck), &status);
    cr_assert(eq(u32, fleet_summary(fleet).finished, nodes - 1), "seed %u", (unsigned)seed);
    cr_assert(epsilon_eq(dbl, fleet_summary(fleet).weight - status.weight, nodes - 1, 1e-11),
        "%s, seed %u", schedule->family, (unsigned)seed);
    fleet_destroy(fleet);
    sgp_topology_destroy(fewer);
}

Test(cycle, a_strike_amid_faults_leaves_every_cycle_exact, .timeout = 3600)
{
    uint64_t seeds = fleet_most(40, 12, 1);
    for (size_t s = 0; s < SCHEDULES; s++)
        for (uint64_t seed = 1; seed <= seeds && schedules[s].hubs == 0; seed++)
            run_strike(&schedules[s], seed);
}

/* n1 comes back without a ledger to gossip that followed exact cycles. A neighbour that has begun the epoch already gives to n1
 * while a step holds up the renewal of n1. */
Test(cycle, a_share_amid_a_renewal_that_a_step_holds_up_is_kept)
{
    run_strike(&(struct schedule){"all-reduce-doubling", 5, 0, 0}, 122);
}
