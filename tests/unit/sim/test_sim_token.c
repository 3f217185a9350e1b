/* SPDX-License-Identifier: Apache-2.0 */
/* Owning as a token in the simulator, which adds the token up beside it and sees that there is one: whose updates are used
 * when, the end on one model, deaths of whoever has it, and a token that is lost and made anew. */
#include "sim_fleet.h"

#include "core/core.h"
#include "sim/world.h"

#include "sgp/method.h"

#define NODES 4u
#define DIMENSION FLEET_DIMENSION_MAX

static uint32_t arrivals[NODES], used[NODES]; /* of this test */

static void watch(void *context, uint32_t node, sgp_time now, const struct sgp_effect *note)
{
    fleet_note(context, node, now, note);
    if (note->note.what != SGP_NOTE_TOKEN_RECEIVED)
        return;
    arrivals[node]++;
    used[node] += (uint32_t)note->note.amount;
}

static struct fleet *fleet_of(struct sgp_delay delay)
{
    struct fleet *fleet = fleet_create();
    struct sgp_generate_options options = {.family = "token", .nodes = NODES, .delay = delay};
    cr_assert(eq(int, sgp_generate(&options, &fleet->error, &fleet->topology), 0), "%s",
        fleet->error.text);
    fleet->options.method = sgp_method_find("cyclic");
    fleet->options.dimension = DIMENSION;
    fleet->options.rounds = 60;
    fleet->options.compute_jitter = 0.3;
    fleet->options.note = watch;
    fleet->eta = 0.02;
    memset(arrivals, 0, sizeof arrivals);
    memset(used, 0, sizeof used);
    for (uint32_t i = 0; i < NODES; i++)
        for (uint32_t c = 0; c < DIMENSION; c++) {
            fleet->centre[i][c] = (float)((i + 1) * (c + 2) % 7) - 3;
            fleet->start[i][c] = (float)(i + c) - 2;
        }
    return fleet;
}

static struct sgp_node_status status_of(const struct fleet *fleet, uint32_t node)
{
    struct sgp_node_status status;
    sgp_node_status(sgp_sim_node(fleet->sim, node), &status);
    return status;
}

static void expect_one_model(const struct fleet *fleet)
{
    float first[DIMENSION], other[DIMENSION];
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, NODES));
    cr_assert(epsilon_eq(dbl, summary.weight, 1, 0));
    sgp_sim_estimate(fleet->sim, 0, first);
    for (uint32_t i = 0; i < NODES; i++) {
        sgp_sim_estimate(fleet->sim, i, other);
        cr_assert(zero(int, memcmp(first, other, sizeof first)), "node %u", i);
        cr_assert(eq(i64, status_of(fleet, i).copy_label, status_of(fleet, 0).copy_label));
    }
}

/* ---- whose updates are used ---- */

static sgp_round label_at(struct fleet *fleet, sgp_time time)
{
    cr_assert(eq(int, sgp_sim_run(fleet->sim, time, &fleet->error), 0), "%s", fleet->error.text);
    sgp_round label = 0;
    for (uint32_t i = 0; i < NODES; i++)
        label = status_of(fleet, i).copy_label > label ? status_of(fleet, i).copy_label : label;
    return label;
}

/* A step takes a second, that of n3 four; nothing else takes time. The updates that the token takes up in 120 s, which
 * begin when all have their first copies: n0 hands them out between its first steps. */
static sgp_round used_in_time(struct sgp_delay delay)
{
    struct fleet *fleet = fleet_of(delay);
    struct sgp_sim_straggler slow = {.node = 3, .factor = 4};
    fleet->options.stragglers = &slow;
    fleet->options.straggler_count = 1;
    fleet->options.rounds = 1000;
    fleet->options.compute_ns = SGP_SECOND;
    fleet->options.compute_jitter = 0;
    fleet->options.latency_ns = 0;
    fleet->options.bandwidth = 0;
    fleet_open(fleet);
    sgp_round before = label_at(fleet, 2500 * SGP_MILLISECOND);
    memset(arrivals, 0, sizeof arrivals);
    memset(used, 0, sizeof used);
    sgp_round after = label_at(fleet, 122500 * SGP_MILLISECOND);
    fleet_destroy(fleet);
    return after - before;
}

/* Hu et al. 2018: a slow node makes nobody wait, and none of its updates is lost. Synchronous steps would use 4 x 30. */
Test(sim_token, with_dynamic_delay_a_slow_node_holds_nobody_back)
{
    sgp_round label = used_in_time((struct sgp_delay){.token = SGP_TOKEN_DYNAMIC});
    cr_assert(ge(i64, label, 386));
    cr_assert(le(i64, label, 390));
    for (uint32_t i = 0; i < 3; i++) { /* one may find two updates, once */
        cr_assert(ge(u32, arrivals[i], 119), "n%u", i);
        cr_assert(le(u32, arrivals[i], 120), "n%u", i);
    }
    cr_assert(eq(u32, arrivals[3], 30));
    cr_assert(eq(u32, used[3], 30));
}

Test(sim_token, in_strict_order_all_have_the_pace_of_the_slowest)
{
    sgp_round label = used_in_time((struct sgp_delay){.token = SGP_TOKEN_FIXED});
    cr_assert(ge(i64, label, 120));
    cr_assert(le(i64, label, 123));
    for (uint32_t i = 0; i < NODES; i++)
        cr_assert(le(u32, used[i], 31), "n%u", i);
}

/* With hops that take long a node takes no more steps between two arrivals of the token than it may. */
Test(sim_token, nobody_takes_more_steps_without_the_token_than_the_file_says)
{
    for (uint32_t most = 1; most <= 9; most += 4) {
        struct fleet *fleet =
            fleet_of((struct sgp_delay){.token = SGP_TOKEN_DYNAMIC, .most = most});
        fleet->options.latency_ns = 40 * SGP_MILLISECOND;
        fleet_run(fleet);
        expect_one_model(fleet);
        for (uint32_t i = 0; i < NODES; i++)
            cr_assert(le(u32, used[i], most * arrivals[i]), "n%u", i);
        fleet_destroy(fleet);
    }
}

/* ---- the end ---- */

Test(sim_token, all_end_with_the_last_token)
{
    const struct sgp_delay delays[] = {{.token = SGP_TOKEN_DYNAMIC}, {.token = SGP_TOKEN_FIXED},
        {.token = SGP_TOKEN_DYNAMIC, .mean = true, .most = 5}};
    for (uint32_t i = 0; i < 3; i++) {
        for (uint64_t seed = 1; seed <= fleet_many(20, 3); seed++) {
            struct fleet *fleet = fleet_of(delays[i]);
            fleet->options.seed = seed;
            fleet_run(fleet);
            expect_one_model(fleet);
            sgp_round end = status_of(fleet, 0).copy_label,
                      most = sgp_topology_delay_most(fleet->topology);
            cr_assert(ge(i64, end, 60 * NODES));
            cr_assert(le(i64, end, 60 * NODES + most * NODES));
            fleet_destroy(fleet);
        }
    }
}

/* ---- death ---- */

/* Somebody is killed at every moment of a few hand-overs, mostly whoever has the token or has just handed it on. It is back
 * with its record, and nothing is lost but what was added and is in no copy. */
Test(sim_token, whoever_is_killed_comes_back_with_it)
{
    for (uint32_t i = 0; i < fleet_many(400, 40); i++) {
        struct fleet *fleet = fleet_of((struct sgp_delay){.token = SGP_TOKEN_DYNAMIC});
        struct sgp_sim_crash crashes[2] = {{.node = i % NODES}, {.node = (i + 1) % NODES}};
        crashes[0].at = 200 * SGP_MILLISECOND + (sgp_time)i * 237 * 1000;
        crashes[0].back = crashes[0].at + (sgp_time)(1 + i % 5) * 50 * SGP_MILLISECOND;
        crashes[1].at = crashes[0].at + (i % 2 ? 10 : 300) * SGP_MILLISECOND;
        crashes[1].back = crashes[1].at + 70 * SGP_MILLISECOND;
        fleet->options.crashes = crashes;
        fleet->options.crash_count = 2;
        fleet->options.rounds = 100;
        fleet->options.seed = i + 1;
        fleet->options.checkpoint_ns = i % 3 == 0 ? 5 * SGP_MILLISECOND : 0;
        fleet_run(fleet);
        expect_one_model(fleet);
        fleet_destroy(fleet);
    }
}

/* A ledger is lost, maybe with the token: it is made anew at one node, or at two. There are never two of one epoch. */
Test(sim_token, what_is_lost_for_good_is_made_anew)
{
    uint32_t lost = 0;
    for (uint32_t i = 0; i < fleet_many(200, 20); i++) {
        struct fleet *fleet = fleet_of((struct sgp_delay){.token = SGP_TOKEN_DYNAMIC});
        struct sgp_sim_crash crash = {.node = i % NODES, .forgets = true};
        crash.at = 200 * SGP_MILLISECOND + (sgp_time)i * 237 * 1000;
        crash.back = crash.at + 100 * SGP_MILLISECOND;
        fleet->options.crashes = &crash;
        fleet->options.crash_count = 1;
        fleet->options.rounds = 400;
        fleet->options.seed = i + 1;
        cr_assert(eq(
            int, sgp_sim_create(fleet->topology, &fleet->options, &fleet->error, &fleet->sim), 0));
        cr_assert(eq(int, sgp_sim_run(fleet->sim, 5 * SGP_SECOND, &fleet->error), 0), "%s",
            fleet->error.text);
        struct sgp_sim_summary before = fleet_summary(fleet);
        lost += before.weight < 0.5;
        for (uint32_t k = 0; k <= i % 2; k++)
            cr_assert(eq(int,
                sgp_sim_command(
                    fleet->sim, 5 * SGP_SECOND + 1, (i + 1 + k) % NODES, SGP_EVENT_TOKEN),
                0));
        cr_assert(eq(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error), 0), "%u: %s", i,
            fleet->error.text);
        expect_one_model(fleet);
        fleet_destroy(fleet);
    }
    cr_assert(gt(u32, lost, 0), "the token was with some of them");
}

/* The ledger of n0 is put back from a backup of a time when n0 had the token, while n0 is cut off with n2 from the other nodes. n2
 * has exchanged nothing with n0, so it does not know the numbers of n0's shares; but it has a later copy of the token. */
Test(sim_token, an_old_ledger_in_a_part_that_is_cut_off_is_found_out_by_a_later_copy)
{
    static const uint32_t part[] = {0, 2};
    struct fleet *fleet = fleet_of((struct sgp_delay){.token = SGP_TOKEN_FIXED});
    struct sgp_sim_crash crash = {.node = 0, .saved = SGP_MILLISECOND};
    crash.at = 3 * SGP_SECOND;
    crash.back = crash.at + SGP_SECOND / 10;
    struct sgp_sim_cut cut = {part, 2, crash.at, crash.at + 20 * SGP_SECOND, SGP_SIM_BOTH_WAYS};
    fleet->options.crashes = &crash;
    fleet->options.crash_count = 1;
    fleet->options.cuts = &cut;
    fleet->options.cut_count = 1;
    fleet->options.rounds = 1000;
    fleet_open(fleet);
    int status = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
    cr_assert(eq(int, status, 0), "%s", fleet->error.text);
    cr_assert(eq(u32, fleet->notes[SGP_NOTE_OUTDATED], 1));
    expect_one_model(fleet);
    fleet_destroy(fleet);
}

/* n3 misses a reload, and its file has a lesser `delay_max`. So the others have more that is not offered at the end than n3's file allows. */
Test(sim_token, a_fleet_ends_though_one_node_missed_a_greater_delay_max)
{
    struct fleet *fleet = fleet_of((struct sgp_delay){.token = SGP_TOKEN_DYNAMIC, .most = 1});
    struct sgp_generate_options options = {
        .family = "token", .nodes = NODES, .delay = {.token = SGP_TOKEN_DYNAMIC, .most = 50}};
    struct sgp_topology *other;
    cr_assert(zero(int, sgp_generate(&options, &fleet->error, &other)), "%s", fleet->error.text);
    struct sgp_sim_reload reloads[2 * NODES - 1];
    uint32_t count = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        reloads[count++] = (struct sgp_sim_reload){.node = i, .topology = fleet->topology};
        if (i < NODES - 1)
            reloads[count++] =
                (struct sgp_sim_reload){.node = i, .at = SGP_SECOND / 2, .topology = other};
    }
    fleet->options.reloads = reloads;
    fleet->options.reload_count = count;
    fleet->options.latency_ns = 30 * SGP_MILLISECOND;
    fleet_open(fleet);
    int status = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
    cr_assert(eq(int, status, 0), "%s", fleet->error.text);
    expect_one_model(fleet);
    fleet_destroy(fleet);
    sgp_topology_destroy(other);
}

/* ---- clean stops ---- */

static struct fleet *stopped_fleet(uint32_t i)
{
    struct fleet *fleet =
        fleet_of((struct sgp_delay){.token = i % 3 == 0 ? SGP_TOKEN_FIXED : SGP_TOKEN_DYNAMIC});
    fleet->options.rounds = 40;
    fleet->options.seed = i + 1;
    fleet->options.latency_ns = (sgp_time)(1 + i % 7) * SGP_MILLISECOND;
    fleet->options.compute_tail = i % 2 == 0 ? 1.5 : 0;
    fleet->options.compute_tail_max = 40;
    cr_assert(
        eq(int, sgp_sim_create(fleet->topology, &fleet->options, &fleet->error, &fleet->sim), 0));
    return fleet;
}

/* The other nodes train on with the token, and end on one model: a node that stops at whatever moment hands it on first. */
static void expect_others_have_it(struct fleet *fleet, uint32_t i)
{
    uint32_t finished = 0;
    double weight = 0;
    cr_expect(eq(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error), 0), "%u: %s", i,
        fleet->error.text);
    for (uint32_t k = 0; k < NODES; k++) {
        bool there = status_of(fleet, k).state == SGP_NODE_FINISHED;
        finished += there;
        weight += there ? status_of(fleet, k).weight : 0;
    }
    cr_expect(ge(u32, finished, NODES - 2), "%u", i);
    cr_expect(epsilon_eq(dbl, weight, 1, 0), "%u: the token went with a node that stopped", i);
}

/* When all have begun: one that is gone before is waited for. */
static sgp_time all_train(struct fleet *fleet)
{
    sgp_time now = 0;
    for (uint32_t k = 0; k < NODES; k++)
        while (status_of(fleet, k).state == SGP_NODE_JOINING)
            cr_assert(zero(int, sgp_sim_run(fleet->sim, now += SGP_MILLISECOND, &fleet->error)));
    return now + 1;
}

/* Every moment from the first step on: whoever stops is given the token, has it, hands it on, or is about to be. */
Test(sim_token, whoever_stops_hands_it_on)
{
    for (uint32_t i = 0; i < fleet_many(2000, 100); i++) {
        struct fleet *fleet = stopped_fleet(i);
        sgp_time at = all_train(fleet) + (sgp_time)i * 613 * 1000;
        for (uint32_t k = 0; k <= i / 2 % 2; k++)
            cr_assert(zero(int, sgp_sim_command(fleet->sim, at + (sgp_time)k * SGP_MILLISECOND,
                                    (i + k) % NODES, SGP_EVENT_STOP)));
        expect_others_have_it(fleet, i);
        fleet_destroy(fleet);
    }
}

/* ---- the check that there is one ---- */

/* The status of the check when so much time has gone by. */
static int check_after(struct fleet *fleet, sgp_time time)
{
    fleet->sim->now += time;
    fleet->sim->error = (struct sgp_error){0};
    sgp_sim_check_one_token(fleet->sim);
    return fleet->sim->error.code;
}

/* A second token appears. It is a fault at once, unless a ledger was restored; then it is one after a minute in which links
 * join the two that have it. If none does, they cannot know of each other. */
Test(sim_token, two_tokens_are_found)
{
    struct fleet *fleet = fleet_of((struct sgp_delay){.token = SGP_TOKEN_DYNAMIC});
    fleet_open(fleet);
    (void)all_train(fleet);
    cr_assert(zero(int, check_after(fleet, 0)));
    for (uint32_t k = 0; k < NODES; k++)
        if (status_of(fleet, k).weight < 1) {
            fleet->sim->hosts[k].node->mass.weight = 1;
            break;
        }
    cr_expect(eq(int, check_after(fleet, 0), SGP_E_STATE));
    fleet->sim->summary.restored = 1;
    cr_expect(zero(int, check_after(fleet, 0)));
    cr_expect(zero(int, check_after(fleet, 59 * SGP_SECOND)));
    cr_expect(eq(int, check_after(fleet, SGP_SECOND), SGP_E_STATE));
    for (uint32_t k = 0; k < NODES; k++) {
        SGP_EACH_LINK (link, fleet->sim->hosts[k].node)
            link->connection.state = SGP_LINK_DOWN;
    }
    cr_expect(zero(int, check_after(fleet, 600 * SGP_SECOND)));
    fleet_destroy(fleet);
}
