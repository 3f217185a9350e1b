/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that are killed and begin again, under the simulator's checkers: no weight is lost while
 * the record survives, and a fleet trains on whatever happens to it. */
#include "sim_fleet.h"

#include "sim/world.h"

#define CRASHES_MAX 12

static const char *const families[] = {
    "one-peer-exponential", "ring", "exponential", "random", "complete"};

/* Quadratics with unlike centres: the best model is their mean. */
static struct fleet *crashing_fleet(uint64_t seed, struct sgp_sim_crash *crashes, bool forgets)
{
    struct sgp_random random;
    sgp_random_init(&random, seed, 77);
    uint32_t nodes = 4 + sgp_random_below(&random, 9);
    const char *family = families[seed % 5];
    struct fleet *fleet = fleet_generate(family, nodes, 0);
    fleet->eta = 0.05;
    for (uint32_t i = 0; i < nodes; i++)
        fleet->centre[i][0] = (float)i;
    fleet->options.seed = seed;
    fleet->options.rounds = 2500; /* at about 5 ms: all faults end before training does */
    fleet->options.final_cycles = 60;
    fleet->options.compute_ns = 5 * SGP_MILLISECOND;
    fleet->options.compute_jitter = 0.5;
    fleet->options.loss = seed % 3 == 0 ? 0.01 : 0;
    fleet->options.through_wire = seed % 2 == 0;
    fleet->options.crash_count = 1 + sgp_random_below(&random, CRASHES_MAX);
    for (uint32_t i = 0; i < fleet->options.crash_count; i++) {
        sgp_time at = (sgp_time)(sgp_random_double(&random) * 2.0 * (double)SGP_SECOND);
        double away = sgp_random_double(&random);
        crashes[i] = (struct sgp_sim_crash){.node = sgp_random_below(&random, nodes),
            .at = at,
            .back = at + 1 + (sgp_time)(away * away * 5 * (double)SGP_SECOND),
            .forgets = forgets && i % 2 == 0};
    }
    fleet->options.crashes = crashes;
    return fleet;
}

static void run_to_the_end(struct fleet *fleet, uint64_t seed)
{
    fleet_open(fleet);
    int status = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
    cr_assert(eq(int, status, 0), "seed %llu: %s", (unsigned long long)seed, fleet->error.text);
    cr_assert(sgp_sim_done(fleet->sim));
}

Test(crash, campaigns_with_their_records_keep_all_weight)
{
    uint64_t adopted = 0, crashed = 0, seeds = fleet_many(20, 3);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct sgp_sim_crash crashes[CRASHES_MAX];
        struct fleet *fleet = crashing_fleet(seed, crashes, false);
        run_to_the_end(fleet, seed);
        struct sgp_sim_summary summary = fleet_summary(fleet);
        double nodes = fleet->topology->node_count;
        cr_assert(le(dbl, fabs(summary.weight - nodes), 1e-9), "seed %llu: %.17g of %g",
            (unsigned long long)seed, summary.weight, nodes);
        cr_assert(eq(u32, summary.finished, fleet->topology->node_count));
        cr_assert(lt(dbl, summary.disagreement, 0.1), "seed %llu: %g", (unsigned long long)seed,
            summary.disagreement);
        adopted += summary.adopted;
        crashed += summary.crashes;
        fleet_destroy(fleet);
    }
    cr_assert(gt(u64, crashed, 7 * seeds / 2));
    cr_assert(gt(u64, adopted, crashed / 2));
}

Test(crash, campaigns_that_forget_change_the_weight_by_that_alone)
{
    for (uint64_t seed = 1; seed <= fleet_many(10, 2); seed++) {
        struct sgp_sim_crash crashes[CRASHES_MAX];
        struct fleet *fleet = crashing_fleet(seed, crashes, true);
        run_to_the_end(fleet, seed);
        cr_assert(eq(u32, fleet_summary(fleet).finished, fleet->topology->node_count));
        fleet_destroy(fleet);
    }
}

/* Each with the record of an earlier moment of its life: by so much as the total is off then, it stays off,
 * and those that were put back say that it may be. */
Test(crash, campaigns_with_records_from_backups_say_what_they_cannot_know)
{
    uint64_t restored = 0, off = 0, seeds = fleet_many(30, 3);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct sgp_sim_crash crashes[CRASHES_MAX];
        struct fleet *fleet = crashing_fleet(seed, crashes, false);
        for (uint32_t i = 0; i < fleet->options.crash_count; i++)
            crashes[i].saved = crashes[i].at > 1 ? 1 + crashes[i].at / (2 + i) : 0;
        run_to_the_end(fleet, seed);
        struct sgp_sim_summary summary = fleet_summary(fleet);
        double nodes = fleet->topology->node_count;
        double most = summary.weight_unknown * (double)summary.restored + 1e-9;
        cr_assert(le(dbl, fabs(summary.weight - nodes), most), "seed %llu: %.17g of %g",
            (unsigned long long)seed, summary.weight, nodes);
        cr_assert(eq(u32, summary.finished, fleet->topology->node_count));
        cr_assert(lt(dbl, summary.disagreement, 0.1), "seed %llu: %g", (unsigned long long)seed,
            summary.disagreement);
        restored += summary.restored;
        off += fabs(summary.weight - nodes) > 1e-9;
        fleet_destroy(fleet);
    }
    cr_assert(gt(u64, restored, 2 * seeds));
    cr_assert(ge(u64, off, seeds / 2), "%llu: else it proves nothing", (unsigned long long)off);
}

static uint32_t found_out;

static void look_at_n1(void *context, uint32_t node, sgp_time now, const struct sgp_effect *note)
{
    (void)context;
    (void)now;
    found_out += node == 1 && note->note.what == SGP_NOTE_OUTDATED;
}

/* Nobody waits for a node whose neighbours know more than it: it is found out when it greets, by
 * either end of a link, once. */
Test(crash, an_old_record_is_found_out_once)
{
    struct fleet *fleet = fleet_generate("ring", 5, 0);
    struct sgp_sim_crash crash = {1, 4 * SGP_SECOND, 5 * SGP_SECOND, false, SGP_SECOND};
    fleet->options.rounds = 1000;
    fleet->options.compute_jitter = 0.5;
    fleet->options.crashes = &crash;
    fleet->options.crash_count = 1;
    fleet->options.note = look_at_n1;
    fleet_open(fleet);
    cr_assert(
        zero(int, sgp_sim_run(fleet->sim, 6 * SGP_SECOND, &fleet->error)), "%s", fleet->error.text);
    cr_assert(eq(u32, found_out, 1), "%u", found_out);
    struct sgp_node_status status;
    sgp_node_status(sgp_sim_node(fleet->sim, 1), &status);
    cr_assert(eq(dbl, status.unknown, 5));
    cr_assert(gt(i64, status.round, 200), "it is in round %lld", (long long)status.round);
    cr_assert(
        zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)), "%s", fleet->error.text);
    cr_assert(eq(u32, found_out, 1));
    cr_assert(eq(u32, fleet_summary(fleet).finished, 5));
    fleet_destroy(fleet);
}

/* Number of the last share that a node has given to this peer, or accepted from it. */
static uint64_t last_number(
    const struct fleet *fleet, uint32_t node, uint32_t peer, enum sgp_direction direction)
{
    const struct sgp_node *core = sgp_sim_node(fleet->sim, node);
    for (uint32_t i = 0; i < sgp_node_link_count(core); i++) {
        struct sgp_peer_status status;
        sgp_node_link_status(core, i, &status);
        if (status.peer == peer && status.direction == direction)
            return status.last_number;
    }
    cr_fatal("no link");
    return 0;
}

/* The record of n2 is from before n1 lost its ledger. Its number from n1 is of the former incarnation, and
 * greater than the number that n1 knows. n2 takes the lesser number. */
Test(crash, an_old_record_has_numbers_of_an_incarnation_that_its_source_has_lost)
{
    struct fleet *fleet = fleet_generate("ring", 5, 0);
    struct sgp_sim_crash crashes[] = {
        {.node = 1, .at = 2 * SGP_SECOND, .back = 3 * SGP_SECOND, .forgets = true},
        {.node = 2,
            .at = 4 * SGP_SECOND,
            .back = 5 * SGP_SECOND,
            .saved = 2 * SGP_SECOND - SGP_MILLISECOND}};
    fleet->options.rounds = 1000;
    fleet->options.compute_jitter = 0.5;
    fleet->options.crashes = crashes;
    fleet->options.crash_count = 2;
    fleet_open(fleet);
    cr_assert(zero(int, sgp_sim_run(fleet->sim, crashes[1].saved, &fleet->error)), "%s",
        fleet->error.text);
    uint64_t saved = last_number(fleet, 2, 1, SGP_IN);
    cr_assert(
        zero(int, sgp_sim_run(fleet->sim, crashes[1].at, &fleet->error)), "%s", fleet->error.text);
    uint64_t present = last_number(fleet, 2, 1, SGP_IN);
    cr_assert(lt(u64, present, saved), "%llu; else it proves nothing", (unsigned long long)present);
    cr_assert(
        zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)), "%s", fleet->error.text);
    cr_assert(eq(u64, last_number(fleet, 2, 1, SGP_IN), last_number(fleet, 1, 2, SGP_OUT)));
    cr_assert(eq(u64, fleet_summary(fleet).restored, 1));
    cr_assert(eq(u32, fleet_summary(fleet).finished, 5));
    fleet_destroy(fleet);
}

Test(crash, all_at_once_go_on_together)
{
    struct fleet *fleet = fleet_generate("one-peer-exponential", 8, 0);
    struct sgp_sim_crash crashes[8];
    for (uint32_t i = 0; i < 8; i++)
        crashes[i] = (struct sgp_sim_crash){
            .node = i, .at = SGP_SECOND, .back = 2 * SGP_SECOND + i * SGP_SECOND / 4};
    fleet->options.rounds = 200;
    fleet->options.crashes = crashes;
    fleet->options.crash_count = 8;
    fleet_run(fleet);
    cr_assert(eq(u32, fleet_summary(fleet).finished, 8));
    cr_assert(le(dbl, fabs(fleet_summary(fleet).weight - 8), 1e-9));
    cr_assert(eq(u64, fleet_summary(fleet).crashes, 8));
    cr_assert(lt(i64, fleet_summary(fleet).time, 20 * SGP_SECOND));
    fleet_destroy(fleet);
}

/* Everybody agrees on 3 before the crash; the newcomer's own guess is 100. */
Test(crash, a_killed_node_begins_with_the_model_of_a_neighbour)
{
    struct fleet *fleet = fleet_generate("ring", 5, 0);
    struct sgp_sim_crash crash = {.node = 2, .at = SGP_SECOND, .back = 2 * SGP_SECOND};
    for (uint32_t i = 0; i < 5; i++)
        fleet->start[i][0] = 3;
    fleet->options.rounds = 300;
    fleet->options.crashes = &crash;
    fleet->options.crash_count = 1;
    fleet_open(fleet);
    cr_assert(eq(int, sgp_sim_run(fleet->sim, SGP_SECOND / 2, &fleet->error), 0));
    fleet->start[2][0] = 100;
    cr_assert(eq(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error), 0), "%s",
        fleet->error.text);
    cr_assert(eq(u64, fleet_summary(fleet).adopted, 1));
    for (uint32_t i = 0; i < 5; i++) {
        float estimate;
        sgp_sim_estimate(fleet->sim, i, &estimate);
        cr_assert(le(dbl, fabs((double)estimate - 3), 1e-4), "node %u: %g", i, (double)estimate);
    }
    fleet_destroy(fleet);
}

/* n0 is stopped when it is killed, before it has begun: there is no record. It begins when its machine
 * goes on, not when it was to be started, and once. */
Test(crash, a_node_that_is_killed_while_it_is_stopped_begins_when_that_is_over)
{
    for (int forgets = 0; forgets < 2; forgets++) {
        struct fleet *fleet = fleet_generate("ring", 4, 0);
        struct sgp_sim_absence absence = {0, 0, 10 * SGP_SECOND};
        struct sgp_sim_crash crash = {0, 5 * SGP_SECOND, 6 * SGP_SECOND, forgets};
        fleet->options.absences = &absence;
        fleet->options.absence_count = 1;
        fleet->options.crashes = &crash;
        fleet->options.crash_count = 1;
        fleet_open(fleet);
        cr_assert(zero(int, sgp_sim_run(fleet->sim, 10 * SGP_SECOND - 1, &fleet->error)), "%s",
            fleet->error.text);
        uint64_t events = fleet_summary(fleet).events;
        cr_assert(fleet->sim->hosts[0].dead);
        cr_assert(zero(int, sgp_sim_run(fleet->sim, 10 * SGP_SECOND, &fleet->error)));
        cr_assert(not(fleet->sim->hosts[0].dead));
        cr_assert(eq(u64, fleet_summary(fleet).events, events + 1));
        cr_assert(zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)), "%s",
            fleet->error.text);
        struct sgp_sim_summary summary = fleet_summary(fleet);
        cr_assert(eq(u32, summary.finished, 4));
        cr_assert(eq(u64, summary.crashes, 1));
        cr_assert(eq(dbl, summary.weight, 4));
        fleet_destroy(fleet);
    }
}

/* SIGTERM waits for a process that is stopped and dies with it; and where none is, none hears of it later. */
Test(crash, a_signal_to_a_stopped_machine_is_not_for_the_next_process)
{
    static const int seconds[][3] = {{4, 5, 6}, {7, 3, 6}, {7, 3, 8}}; /* signal, death, birth */
    for (int i = 0; i < 3; i++) {
        struct fleet *fleet = fleet_generate("complete", 4, 0);
        struct sgp_sim_absence absence = {0, SGP_SECOND, 10 * SGP_SECOND};
        struct sgp_sim_crash crash = {
            0, seconds[i][1] * SGP_SECOND, seconds[i][2] * SGP_SECOND, false};
        fleet->options.rounds = 4000;
        fleet->options.absences = &absence;
        fleet->options.absence_count = 1;
        fleet->options.crashes = &crash;
        fleet->options.crash_count = 1;
        fleet_open(fleet);
        cr_assert(
            zero(int, sgp_sim_command(fleet->sim, seconds[i][0] * SGP_SECOND, 0, SGP_EVENT_STOP)));
        cr_assert(zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)), "%s",
            fleet->error.text);
        struct sgp_node_status status;
        sgp_node_status(sgp_sim_node(fleet->sim, 0), &status);
        cr_assert(eq(int, status.state, SGP_NODE_FINISHED));
        fleet_destroy(fleet);
    }
}

/* n1 is killed in a pause, while n2 does not answer: its checkpoint is of that moment, and has what n2 is owed. */
Test(crash, a_share_that_was_kept_comes_home_to_the_bit)
{
    struct fleet *fleet = fleet_generate("ring", 4, 0);
    struct sgp_sim_absence absence = {2, 2 * SGP_SECOND, 9 * SGP_SECOND};
    struct sgp_sim_crash crash = {1, 5 * SGP_SECOND, 6 * SGP_SECOND, false, 0};
    fleet->eta = 0.05;
    fleet->options.rounds = 2000;
    fleet->options.checkpoint_ns = SGP_SECOND / 2;
    fleet->options.absences = &absence;
    fleet->options.absence_count = 1;
    fleet->options.crashes = &crash;
    fleet->options.crash_count = 1;
    fleet_open(fleet);
    sgp_time pause = 2500 * SGP_MILLISECOND;
    cr_assert(zero(int, sgp_sim_command(fleet->sim, pause, 1, SGP_EVENT_PAUSE)));
    cr_assert(
        zero(int, sgp_sim_run(fleet->sim, 8 * SGP_SECOND, &fleet->error)), "%s", fleet->error.text);
    cr_assert(eq(u64, fleet_summary(fleet).exact, 1));
    cr_assert(eq(u64, fleet_summary(fleet).kept, 1));
    cr_assert(gt(dbl, fleet->sim->hosts[1].outstanding[0], 0));
    cr_assert(
        zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)), "%s", fleet->error.text);
    cr_assert(eq(u32, fleet_summary(fleet).finished, 4));
    cr_assert(le(dbl, fabs(fleet_summary(fleet).weight - 4), 1e-12));
    fleet_destroy(fleet);
}

Test(crash, nothing_begins_on_a_machine_that_is_gone_meanwhile)
{
    struct fleet *fleet = fleet_generate("complete", 4, 0);
    struct sgp_sim_crash crash = {0, 5 * SGP_SECOND, 20 * SGP_SECOND, false};
    struct sgp_sim_absence absence = {0, 10 * SGP_SECOND, SGP_TIME_NEVER};
    fleet->options.rounds = 4000;
    fleet->options.absences = &absence;
    fleet->options.absence_count = 1;
    fleet->options.crashes = &crash;
    fleet->options.crash_count = 1;
    fleet_run(fleet);
    cr_assert(fleet->sim->hosts[0].dead && fleet->sim->hosts[0].gone);
    cr_assert(gt(i64, fleet_summary(fleet).time, crash.back));
    cr_assert(eq(u32, fleet_summary(fleet).finished, 3));
    fleet_destroy(fleet);
}

Test(crash, equal_seeds_crash_alike)
{
    uint64_t digests[2];
    for (int i = 0; i < 2; i++) {
        struct sgp_sim_crash crashes[CRASHES_MAX];
        struct fleet *fleet = crashing_fleet(7, crashes, true);
        run_to_the_end(fleet, 7);
        digests[i] = fleet_summary(fleet).digest;
        fleet_destroy(fleet);
    }
    cr_assert(eq(u64, digests[0], digests[1]));
}

/* Whether all train, and the round after the next one of all. `unequal`: how many have another weight than 1, and 1/2 in mid-round,
 * which every node of a ring has. */
static bool all_train(const struct fleet *fleet, sgp_round *ret_start, uint32_t *ret_unequal)
{
    bool all = true;
    *ret_start = 0;
    *ret_unequal = 0;
    for (uint32_t i = 0; i < fleet->topology->node_count; i++) {
        struct sgp_node_status status;
        sgp_node_status(sgp_sim_node(fleet->sim, i), &status);
        all = all && status.state == SGP_NODE_TRAINING;
        *ret_start = status.round + 2 > *ret_start ? status.round + 2 : *ret_start;
        *ret_unequal += fabs(status.weight - 1) > 0.01 && fabs(status.weight - 0.5) > 0.01;
    }
    return all;
}

/* All processes are killed within a round, and come back. Shares that were under way have returned, or count before their round, so
 * weights differ. Then each is ordered to begin again in one round, one some time after the other. */
Test(crash, an_order_to_all_makes_all_weights_1_again)
{
    static const struct sgp_edge ring[] = {{0, 1, SGP_FRACTION_DEFAULT},
        {1, 2, SGP_FRACTION_DEFAULT}, {2, 3, SGP_FRACTION_DEFAULT}, {3, 0, SGP_FRACTION_DEFAULT}};
    uint32_t unequal = 0, more;
    for (uint32_t k = 0; k < 8; k++) {
        struct fleet *fleet = fleet_of_edges(4, ring, 4);
        struct sgp_sim_crash crashes[4];
        sgp_time now = 3 * SGP_SECOND;
        sgp_round start = 0;
        fleet->eta = 0.05;
        fleet->options.seed = k + 1;
        fleet->options.rounds = 4000;
        fleet->options.compute_jitter = 0.5;
        fleet->options.through_wire = k % 2;
        for (uint32_t i = 0; i < 4; i++) {
            sgp_time at = SGP_SECOND + k * 3 * SGP_MILLISECOND + i * SGP_MILLISECOND;
            crashes[i] = (struct sgp_sim_crash){.node = (i + k) % 4, .at = at, .back = 2 * at};
            fleet->centre[i][0] = (float)i;
        }
        fleet->options.crashes = crashes;
        fleet->options.crash_count = 4;
        fleet_open(fleet);
        do {
            now += SGP_MILLISECOND;
            cr_assert(
                zero(int, sgp_sim_run(fleet->sim, now, &fleet->error)), "%s", fleet->error.text);
            cr_assert(lt(i64, now, 60 * SGP_SECOND));
        } while (!all_train(fleet, &start, &more));
        unequal += more;
        fleet->watched = start;
        for (uint32_t i = 0; i < 4; i++) {
            struct sgp_event order = {.type = SGP_EVENT_RENEW, .bytes = (uint64_t)start};
            sgp_sim_post(fleet->sim, &fleet->sim->hosts[i], &order);
            now += 2 * SGP_MILLISECOND;
            cr_assert(zero(int, sgp_sim_run(fleet->sim, now, &fleet->error)));
        }
        cr_assert(zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)), "%s",
            fleet->error.text);
        cr_assert(sgp_sim_done(fleet->sim));
        for (uint32_t i = 0; i < 4; i++)
            cr_expect(eq(dbl, fleet->weight[i], 1), "%u: node %u has %g", k, i, fleet->weight[i]);
        cr_expect(le(dbl, fabs(fleet_summary(fleet).weight - 4), 1e-9));
        fleet_destroy(fleet);
    }
    cr_expect(gt(u32, unequal, 0), "else it proves nothing");
}

/* The source gave a share to each of two processes of its target, and left both debts to its heir. The heir's
 * ledger is lost, and the second share arrives first. */
Test(crash, an_heir_loses_two_debts_of_one_link)
{
    struct fleet *fleet = fleet_generate("ring", 3, 0);
    fleet_open(fleet);
    struct sgp_sim *sim = fleet->sim;
    struct sgp_sim_host *heir = &sim->hosts[2];
    const struct sgp_sim_link *in = sgp_sim_link_of(&sim->hosts[1], 0, SGP_IN);
    uint64_t source = sim->hosts[0].incarnation;
    struct sgp_account debts[] = {
        {SGP_ACCOUNT_DEBT, "n0", "n1", source, sim->hosts[1].incarnation, 8, 0.25},
        {SGP_ACCOUNT_DEBT, "n0", "n1", source, 77, 7, 0.5}};
    struct sgp_record record;
    struct sgp_node_config config;
    struct sgp_node *indebted, *next = heir->node;
    sgp_sim_node_config(sim, heir, &config);
    record = (struct sgp_record){.incarnation = config.incarnation,
        .weight = 1,
        .rounds = config.rounds,
        .stop = SGP_ROUND_NONE,
        .epoch = {.start = SGP_ROUND_NONE},
        .accounts = debts,
        .account_count = 2,
        .account_capacity = 2};
    config.record = &record;
    cr_assert(zero(int, sgp_node_create(&config, &indebted)));
    cr_assert(eq(u32, sgp_node_debt_count(indebted), 2));
    heir->node = indebted;
    sgp_sim_check_debts(sim, heir, next);
    sgp_sim_check_debts(sim, heir, next);
    heir->node = next;
    sgp_node_destroy(indebted);
    cr_assert(not(sgp_sim_take_unowed(sim, in, 6)));
    cr_assert(sgp_sim_take_unowed(sim, in, 8));
    cr_assert(sgp_sim_take_unowed(sim, in, 7));
    cr_assert(not(sgp_sim_take_unowed(sim, in, 8)), "it is accepted once");
    cr_assert(not(sgp_sim_take_unowed(sim, in, 7)));
    fleet_destroy(fleet);
}
