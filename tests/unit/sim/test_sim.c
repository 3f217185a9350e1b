/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator itself: equal seeds repeat, faults keep every share exactly once, the network behaves
 * as one, and the checkers see what they are there for. */
#include "sim_fleet.h"

#include "core/core.h"
#include "sim/world.h"

#include <errno.h>

static void spread(struct fleet *fleet)
{
    for (uint32_t i = 0; i < fleet->topology->node_count; i++)
        for (uint32_t c = 0; c < fleet->options.dimension; c++)
            fleet->start[i][c] = (float)((i * 5 + c * 3) % 16);
}

static double mean_start(const struct fleet *fleet)
{
    double sum = 0;
    for (uint32_t i = 0; i < fleet->topology->node_count; i++)
        sum += (double)fleet->start[i][0];
    return sum / fleet->topology->node_count;
}

/* ---- a run repeats ---- */

static struct sgp_sim_summary noisy_run(uint64_t seed, bool through_wire)
{
    struct fleet *fleet = fleet_generate("random", 7, 0);
    fleet->options.dimension = 3;
    spread(fleet);
    fleet->options.seed = seed;
    fleet->options.loss = 0.02;
    fleet->options.compute_jitter = 0.5;
    fleet->options.through_wire = through_wire;
    fleet_run(fleet);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(gt(u64, summary.resets, 0));
    fleet_destroy(fleet);
    return summary;
}

Test(sim, equal_seeds_give_equal_digests_and_others_do_not)
{
    struct sgp_sim_summary first = noisy_run(7, false), second = noisy_run(7, false);
    cr_assert(eq(int, memcmp(&first, &second, sizeof first), 0));
    cr_assert(ne(u64, first.digest, noisy_run(8, false).digest));
}

Test(sim, encoding_every_message_changes_nothing)
{
    struct sgp_sim_summary plain = noisy_run(7, false), wire = noisy_run(7, true);
    cr_assert(eq(int, memcmp(&plain, &wire, sizeof plain), 0));
}

Test(sim, a_thousand_nodes_for_two_hundred_rounds_repeat)
{
    uint64_t digests[2];
    uint32_t nodes = fleet_many(1000, 200);
    for (int run = 0; run < 2; run++) {
        struct sgp_generate_options options = {.family = "one-peer-exponential", .nodes = nodes};
        struct fleet *fleet = fleet_create();
        cr_assert(eq(int, sgp_generate(&options, &fleet->error, &fleet->topology), 0));
        fleet->options.rounds = 200;
        fleet->options.final_cycles = 0;
        fleet->options.left = NULL;
        fleet->options.trainer = fleet_counting_trainer;
        fleet_run(fleet);
        struct sgp_sim_summary summary = fleet_summary(fleet);
        cr_assert(eq(u64, summary.shares, 200 * nodes));
        cr_assert(eq(u32, summary.finished, nodes));
        cr_assert(eq(u32, fleet->row_count, 200));
        cr_assert(lt(dbl, summary.mass_error, 1e-9));
        cr_assert(gt(dbl, fleet->rows[0].disagreement, nodes / 10));
        cr_assert(lt(dbl, fleet->rows[199].disagreement, 0.01));
        digests[run] = summary.digest;
        fleet_destroy(fleet);
    }
    cr_assert(eq(u64, digests[0], digests[1]));
}

/* ---- virtual time ---- */

Test(sim, time_is_the_sum_of_its_parts)
{
    struct fleet *fleet = fleet_generate("ring", 2, 0);
    fleet->options.rounds = 1;
    fleet->options.final_cycles = 0;
    fleet->options.latency_ns = 5 * SGP_MILLISECOND;
    fleet->options.bandwidth = 0;
    fleet_run(fleet);
    /* connect 10, hello 5, welcome and credit 5, train 10, share 5 */
    cr_assert(eq(u32, fleet->row_count, 1));
    cr_assert(eq(i64, fleet->rows[0].time, 35 * SGP_MILLISECOND));
    fleet_destroy(fleet);
}

Test(sim, a_payload_takes_its_bytes_over_the_bandwidth)
{
    sgp_time times[2];
    for (int run = 0; run < 2; run++) {
        struct fleet *fleet = fleet_generate("ring", 2, 0);
        fleet->options.rounds = 1;
        fleet->options.final_cycles = 0;
        fleet->options.latency_ns = 0;
        fleet->options.compute_ns = 0;
        fleet->options.dimension = run == 0 ? 1 : 4;
        fleet->options.bandwidth = 4000; /* bytes a second: a float takes a millisecond */
        fleet_run(fleet);
        times[run] = fleet->rows[0].time;
        fleet_destroy(fleet);
    }
    cr_assert(eq(i64, times[1] - times[0], 3 * SGP_MILLISECOND));
}

static struct sgp_sim_connection *under_way(
    const struct fleet *fleet, uint32_t source, uint32_t target)
{
    for (uint32_t i = 0; i < fleet->sim->connection_count; i++) {
        struct sgp_sim_connection *connection = fleet->sim->connections[i];
        if (connection && connection->payload_count > 0 &&
            connection->hosts[SGP_SIM_SOURCE] == source &&
            connection->hosts[SGP_SIM_TARGET] == target)
            return connection;
    }
    return NULL;
}

/* n0 gives to n1 and, behind that, to n2. The connection to n1 breaks. `announced`: n2 has heard of its payload by then, and looks
 * for it at another time. */
static void drop_first(bool announced)
{
    static const struct sgp_edge edges[] = {{0, 1, SGP_FRACTION_DEFAULT},
        {0, 2, SGP_FRACTION_DEFAULT}, {1, 0, SGP_FRACTION_DEFAULT}, {2, 0, SGP_FRACTION_DEFAULT}};
    struct fleet *fleet = fleet_of_edges(3, edges, 4);
    struct sgp_sim_connection *first = NULL, *second = NULL;
    sgp_time now = 0;
    fleet->options.rounds = 5;
    fleet->options.dimension = FLEET_DIMENSION_MAX;
    fleet->options.bandwidth = 1000;
    fleet_open(fleet);
    while (first == NULL || second == NULL || (announced && second->payloads[0].begun == 0)) {
        now += SGP_MILLISECOND;
        cr_assert(zero(int, sgp_sim_run(fleet->sim, now, &fleet->error)));
        first = under_way(fleet, 0, 1);
        second = under_way(fleet, 0, 2);
        cr_assert(lt(i64, now, 60 * SGP_SECOND));
    }
    const struct sgp_sim_payload *waits = &second->payloads[0];
    const sgp_time spare = first->payloads[0].sent - fleet->sim->now, due = waits->due;
    cr_assert(gt(i64, spare, 0));
    cr_assert(eq(i64, waits->from, first->payloads[0].sent));
    sgp_sim_tear(fleet->sim, first);
    cr_assert(eq(i64, waits->from, fleet->sim->now));
    cr_assert(eq(i64, fleet->sim->hosts[0].busy_until, waits->sent));
    cr_assert(eq(i64, waits->due, due - spare));
    cr_assert(zero(int, sgp_sim_run(fleet->sim, due - spare, &fleet->error)));
    cr_assert(zero(u32, second->payload_count), "it has arrived by then");
    cr_assert(
        zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)), "%s", fleet->error.text);
    cr_assert(sgp_sim_done(fleet->sim));
    fleet_destroy(fleet);
}

Test(sim, a_payload_that_is_dropped_leaves_the_network_card_to_the_next)
{
    drop_first(false);
    drop_first(true);
}

Test(sim, everybody_waits_for_a_straggler_who_computes)
{
    struct sgp_sim_straggler straggler = {2, 100};
    struct fleet *fleet = fleet_generate("ring", 4, 0);
    fleet->options.rounds = 20;
    fleet->options.stragglers = &straggler;
    fleet->options.straggler_count = 1;
    fleet_run(fleet);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(ge(i64, summary.time, 20 * SGP_SECOND));
    cr_assert(lt(i64, summary.time, 21 * SGP_SECOND));
    cr_assert(eq(u64, summary.absences, 0));
    cr_assert(eq(u64, summary.shares_empty, 0));
    fleet_destroy(fleet);
}

Test(sim, a_run_can_be_continued)
{
    struct fleet *fleet = fleet_generate("ring", 4, 0);
    fleet_open(fleet);
    cr_assert(eq(int, sgp_sim_run(fleet->sim, 500 * SGP_MILLISECOND, &fleet->error), 0));
    cr_assert_not(sgp_sim_done(fleet->sim));
    cr_assert(le(i64, fleet_summary(fleet).time, 500 * SGP_MILLISECOND));
    cr_assert(eq(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error), 0));
    uint64_t digest = fleet_summary(fleet).digest;
    cr_assert(sgp_sim_done(fleet->sim));
    struct fleet *other = fleet_generate("ring", 4, 0);
    fleet_run(other);
    cr_assert(eq(u64, fleet_summary(other).digest, digest));
    fleet_destroy(other);
    fleet_destroy(fleet);
}

/* ---- faults ---- */

Test(faults, breaking_connections_at_three_messages_in_ten_keeps_the_mass_and_the_average)
{
    struct fleet *fleet = fleet_generate("one-peer-exponential", 8, 0);
    spread(fleet);
    fleet->options.rounds = 120;
    fleet->options.loss = 0.3;
    fleet_run(fleet);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(gt(u64, summary.resets, 1000));
    cr_assert(epsilon_eq(dbl, summary.weight, 8, 1e-12));
    cr_assert(epsilon_eq(dbl, summary.weight_in_flight, 0, 1e-12));
    cr_assert(lt(dbl, summary.mass_error, 1e-12));
    for (uint32_t i = 0; i < 8; i++) {
        float estimate;
        sgp_sim_estimate(fleet->sim, i, &estimate);
        cr_assert(epsilon_eq(dbl, (double)estimate, mean_start(fleet), 1e-4), "node %u", i);
    }
    fleet_destroy(fleet);
}

Test(faults, a_stopped_node_is_absent_and_comes_back)
{
    struct sgp_sim_absence absence = {5, SGP_SECOND, 31 * SGP_SECOND};
    struct fleet *fleet = fleet_generate("one-peer-exponential", 8, 0);
    spread(fleet);
    fleet->options.rounds = 4000;
    fleet->options.absences = &absence;
    fleet->options.absence_count = 1;
    fleet_run(fleet);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(ge(u32, fleet->notes[SGP_NOTE_ABSENT], 6));
    cr_assert(ge(u32, fleet->notes[SGP_NOTE_BACK], 6));
    cr_assert(eq(u64, summary.jumps, 1));
    cr_assert(eq(u32, summary.finished, 8));
    /* No weight is made or lost. Nodes that starve give a part that is no power of two, so sums of weights are rounded. */
    cr_assert(eq(u32, fleet->notes[SGP_NOTE_EXCESS] + fleet->notes[SGP_NOTE_LACK], 0));
    cr_assert(epsilon_eq(dbl, summary.weight, 8, 1e-12));
    cr_assert(ge(dbl, summary.weight_least, 0.3));
    cr_assert(lt(dbl, summary.disagreement, 1e-5));
    /* 4,000 rounds at 11 ms, and no more than the bound of silence for one who is stopped */
    cr_assert(lt(i64, summary.time, 50 * SGP_SECOND));
    fleet_destroy(fleet);
}

/* The first absence ends while the second holds the node. The pause is told in the first alone, the end of the pause in both. */
Test(faults, what_a_stopped_node_is_told_keeps_its_order)
{
    struct sgp_sim_absence absences[] = {
        {5, SGP_SECOND, 3 * SGP_SECOND}, {5, 2 * SGP_SECOND, 4 * SGP_SECOND}};
    struct fleet *fleet = fleet_generate("one-peer-exponential", 8, 0);
    spread(fleet);
    fleet->options.rounds = 1000;
    fleet->options.absences = absences;
    fleet->options.absence_count = 2;
    fleet_open(fleet);
    sgp_sim_command(fleet->sim, SGP_SECOND + SGP_SECOND / 2, 5, SGP_EVENT_PAUSE);
    sgp_sim_command(fleet->sim, 2 * SGP_SECOND + SGP_SECOND / 2, 5, SGP_EVENT_RESUME);
    int status = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
    cr_assert(eq(int, status, 0), "%s", fleet->error.text);
    cr_assert(eq(u32, fleet_summary(fleet).finished, 8));
    fleet_destroy(fleet);
}

static const char *const families[] = {
    "one-peer-exponential", "ring", "random", "complete", "star", "bidirectional-ring"};

/* One fleet of eight with everything going wrong that chance of this seed makes go wrong. */
static void campaign_run(uint64_t seed)
{
    struct sgp_random random;
    sgp_random_init(&random, seed, 99);
    struct fleet *fleet = fleet_generate(families[seed % 6], 8, 0);
    spread(fleet);
    struct sgp_sim_absence absences[4];
    for (int i = 0; i < 4; i++) {
        sgp_time from = (sgp_time)sgp_random_below(&random, (uint64_t)(20 * SGP_SECOND));
        sgp_time length = 1 + (sgp_time)sgp_random_below(&random, (uint64_t)(15 * SGP_SECOND));
        absences[i] =
            (struct sgp_sim_absence){(uint32_t)sgp_random_below(&random, 8), from, from + length};
    }
    uint32_t side[] = {(uint32_t)sgp_random_below(&random, 8),
        (uint32_t)sgp_random_below(&random, 8), (uint32_t)sgp_random_below(&random, 8)};
    struct sgp_sim_cut cut = {side, 3, 5 * SGP_SECOND, 15 * SGP_SECOND};
    fleet->options.seed = seed;
    fleet->options.through_wire = seed % 2 == 0;
    fleet->options.rounds = 1000; /* at 50 ms: all faults end before training does */
    fleet->options.final_cycles = 60;
    fleet->options.absences = absences;
    fleet->options.absence_count = 4;
    fleet->options.cuts = &cut;
    fleet->options.cut_count = 1;
    fleet->options.loss = (double)(seed % 5) * 0.01;
    fleet->options.compute_ns = 50 * SGP_MILLISECOND;
    fleet->options.compute_jitter = 0.9;
    fleet->options.bandwidth = 20000;
    fleet_open(fleet);
    int status = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
    cr_assert(eq(int, status, 0), "seed %llu: %s", (unsigned long long)seed, fleet->error.text);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, 8), "seed %llu", (unsigned long long)seed);
    cr_assert(epsilon_eq(dbl, summary.weight, 8, 1e-11), "seed %llu", (unsigned long long)seed);
    cr_assert(epsilon_eq(dbl, summary.weight_in_flight, 0, 1e-11));
    cr_assert(lt(dbl, summary.disagreement, 0.1), "seed %llu: %g", (unsigned long long)seed,
        summary.disagreement);
    fleet_destroy(fleet);
}

Test(faults, twenty_campaigns_of_resets_absences_and_cuts_lose_nothing)
{
    for (uint64_t seed = 1; seed <= fleet_many(20, 5); seed++)
        campaign_run(seed);
}

Test(faults, a_node_that_is_stopped_by_command_drains_and_the_others_finish)
{
    struct fleet *fleet = fleet_generate("complete", 4, 0);
    spread(fleet);
    fleet_open(fleet);
    cr_assert(eq(int, sgp_sim_command(fleet->sim, SGP_SECOND / 2, 2, SGP_EVENT_STOP), 0));
    int status = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
    cr_assert(eq(int, status, 0), "%s", fleet->error.text);
    cr_assert(eq(u32, fleet->notes[SGP_NOTE_DRAINED], 1));
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, 3));
    cr_assert(epsilon_eq(dbl, summary.weight, 4, 1e-12));
    cr_assert(eq(u32, fleet->rows[fleet->row_count - 1].nodes, 3));
    fleet_destroy(fleet);
}

Test(faults, a_paused_node_is_not_waited_for)
{
    struct fleet *fleet = fleet_generate("one-peer-exponential", 4, 0);
    spread(fleet);
    fleet->options.rounds = 1000;
    fleet_open(fleet);
    cr_assert(eq(int, sgp_sim_command(fleet->sim, SGP_SECOND, 1, SGP_EVENT_PAUSE), 0));
    cr_assert(eq(int, sgp_sim_command(fleet->sim, 4 * SGP_SECOND, 1, SGP_EVENT_RESUME), 0));
    int status = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
    cr_assert(eq(int, status, 0), "%s", fleet->error.text);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, 4));
    cr_assert(eq(u64, summary.absences, 0));
    cr_assert(lt(i64, summary.time, 13 * SGP_SECOND));
    cr_assert(eq(dbl, summary.weight, 4));
    cr_assert(lt(dbl, summary.disagreement, 1e-5));
    fleet_destroy(fleet);
}

Test(faults, training_that_diverges_ends_the_node_and_breaks_no_invariant)
{
    struct fleet *fleet = fleet_generate("ring", 3, 0);
    fleet->eta = 30;
    fleet->centre[0][0] = 1;
    fleet->options.rounds = 200;
    fleet_run(fleet);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.diverged, 3));
    cr_assert(epsilon_eq(dbl, summary.weight, 3, 1e-12));
    fleet_destroy(fleet);
}

/* ---- the checkers see what they are there for ---- */

static struct sgp_trainer_methods cheat_methods;
static const struct sgp_trainer_methods *honest_methods;

static void cheat_absorb(struct sgp_trainer *trainer, float **share, float fraction, uint64_t first,
    uint64_t count, struct sgp_comparison *comparison)
{
    honest_methods->restore(trainer, *share, fraction, first, count);
    honest_methods->absorb(trainer, share, fraction, first, count, comparison);
}

/* A trainer that goes bad without noticing, until it is to train again: what it gives away meanwhile is not finite. */
static int bad_train(struct sgp_trainer *trainer, double weight, uint32_t steps, double pace,
    struct sgp_training *ret_training)
{
    int code = honest_methods->train(trainer, weight, steps, pace, ret_training);
    if (code == 0)
        honest_methods->scale(trainer, NAN, 0, trainer->parameters);
    return code;
}

static int replace_methods(uint32_t node, uint32_t bad, struct sgp_trainer **trainer)
{
    honest_methods = (*trainer)->methods;
    if (node == bad)
        (*trainer)->methods = &cheat_methods;
    return 0;
}

static int cheating_trainer(void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    int status = fleet_trainer(context, node, ret_trainer);
    if (status < 0)
        return status;
    cheat_methods = *(*ret_trainer)->methods;
    cheat_methods.absorb = cheat_absorb;
    return replace_methods(node, 2, ret_trainer);
}

static int bad_trainer(void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    int status = fleet_trainer(context, node, ret_trainer);
    if (status < 0)
        return status;
    cheat_methods = *(*ret_trainer)->methods;
    cheat_methods.train = bad_train;
    return replace_methods(node, 0, ret_trainer);
}

static void assert_fails(struct fleet *fleet, const char *text)
{
    cr_assert(eq(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error), SGP_E_STATE));
    cr_assert(strstr(fleet->error.text, text) != NULL, "%s", fleet->error.text);
    cr_assert(strstr(fleet->error.text, "seed 1: ") != NULL, "%s", fleet->error.text);
    fleet_destroy(fleet);
}

Test(checkers, a_share_absorbed_twice_is_seen)
{
    struct fleet *fleet = fleet_generate("ring", 4, 0);
    spread(fleet);
    fleet->options.method = sgp_method_find("osgp"); /* what overlaps is not folded */
    fleet->options.trainer = cheating_trainer;
    fleet_open(fleet);
    assert_fails(fleet, "x[0] of n2 moved by 5 instead of 2.5");
}

/* Every check is tried on a core that has been tampered with in the middle of a sound run: all nodes
 * train, and hold the credit for their next share. */
static struct fleet *fleet_in_training(struct sgp_node **ret_node)
{
    struct fleet *fleet = fleet_generate("ring", 4, 0);
    spread(fleet);
    fleet_open(fleet);
    cr_assert(eq(int, sgp_sim_run(fleet->sim, 505 * SGP_MILLISECOND, &fleet->error), 0));
    *ret_node = (struct sgp_node *)(uintptr_t)sgp_sim_node(fleet->sim, 1);
    return fleet;
}

Test(checkers, weight_out_of_nothing_is_seen)
{
    struct sgp_node *node;
    struct fleet *fleet = fleet_in_training(&node);
    node->mass.weight += 1e-9;
    assert_fails(fleet, "the total weight of 4 nodes is 4.000000001");
}

Test(checkers, a_share_counted_twice_is_seen)
{
    struct sgp_node *node;
    struct fleet *fleet = fleet_in_training(&node);
    node->layout.links[node->layout.out_count].memory.accepted -= 1;
    assert_fails(fleet, "n1 accepts share ");
}

/* What the campaigns ask of every core in every round. */
Test(checkers, a_link_that_is_not_looked_at_is_seen)
{
    struct sgp_node *node;
    struct fleet *fleet = fleet_in_training(&node);
    cr_assert(sgp_core_is_indexed(node));
    node->layout.links[0].estimate.asks = true;
    cr_assert(not(sgp_core_is_indexed(node)));
    node->layout.links[0].estimate.asks = false;
    node->layout.links[0].connection.said -= SGP_MILLISECOND; /* a beat is due sooner */
    cr_assert(not(sgp_core_is_indexed(node)));
    fleet_destroy(fleet);
}

Test(checkers, a_share_without_a_credit_is_seen)
{
    struct sgp_node *node;
    struct fleet *fleet = fleet_in_training(&node);
    for (uint32_t i = 0; i < fleet->sim->connection_count; i++)
        fleet->sim->connections[i]->credits[0] = node->round + 1; /* n1 holds one for this round */
    assert_fails(fleet, "share 46 of round 45 without a credit");
}

/* If no core holds its shares back, nodes starve that give across a cut and no longer receive. */
Test(checkers, a_weight_below_the_floor_is_seen)
{
    static const uint32_t half[] = {0, 1, 2, 3};
    struct sgp_sim_cut cut = {half, 4, SGP_SECOND, SGP_TIME_NEVER};
    struct fleet *fleet = fleet_generate("one-peer-exponential", 8, 0);
    fleet->options.cuts = &cut;
    fleet->options.cut_count = 1;
    fleet->options.rounds = 1000;
    fleet_open(fleet);
    for (uint32_t i = 0; i < 8; i++)
        ((struct sgp_node *)(uintptr_t)sgp_sim_node(fleet->sim, i))->config.weight_least = 0;
    assert_fails(fleet, "at weight 0.25, below its weight floor 0.375");
}

Test(checkers, what_is_not_finite_is_refused_and_comes_back)
{
    struct fleet *fleet = fleet_generate("complete", 3, 0);
    fleet->options.trainer = bad_trainer;
    fleet_run(fleet);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u64, summary.shares_refused, 2)); /* of the round until n0 knows */
    cr_assert(eq(u32, fleet->notes[SGP_NOTE_RETURNED], 2));
    cr_assert(eq(u32, summary.diverged, 1)); /* what came back is not finite either */
    cr_assert(eq(u32, summary.finished, 2));
    cr_assert(epsilon_eq(dbl, summary.weight, 3, 1e-12));
    for (uint32_t i = 1; i < 3; i++) {
        float estimate;
        sgp_sim_estimate(fleet->sim, i, &estimate);
        cr_assert(isfinite(estimate));
    }
    fleet_destroy(fleet);
}

Test(checkers, a_fleet_that_can_never_start_names_whom_it_waits_for)
{
    struct sgp_sim_absence never = {3, 0, SGP_TIME_NEVER};
    struct fleet *fleet = fleet_generate("ring", 4, 0);
    fleet->options.absences = &never;
    fleet->options.absence_count = 1;
    fleet_open(fleet);
    assert_fails(fleet, "n0, joining in round 0, waits for hello of n3");
}

/* ---- options ---- */

static void assert_refused(struct fleet *fleet, const char *text)
{
    struct sgp_error error = {0};
    struct sgp_sim *sim = NULL;
    cr_assert(eq(int, sgp_sim_create(fleet->topology, &fleet->options, &error, &sim), -EINVAL));
    cr_assert(eq(str, error.text, (char *)(uintptr_t)text));
    cr_assert(sim == NULL);
    fleet_destroy(fleet);
}

Test(options, what_is_out_of_range_is_refused_with_the_reason)
{
    struct fleet *fleet = fleet_generate("ring", 3, 0);
    fleet->options.rounds = 0;
    assert_refused(fleet, "rounds must be at least 1");
    fleet = fleet_generate("ring", 3, 0);
    fleet->options.loss = 1;
    assert_refused(fleet, "the loss must be at least 0 and below 1");
    fleet = fleet_generate("ring", 3, 0);
    fleet->options.dimension = 0;
    assert_refused(fleet, "the dimension must be from 1 to 16777216");
    fleet = fleet_generate("ring", 3, 0);
    fleet->options.bandwidth = NAN;
    assert_refused(fleet, "the bandwidth must be above 0, or 0 for no limit");
    fleet = fleet_generate("ring", 3, 0);
    fleet->options.overlap = SGP_OVERLAP_MAX + 1;
    assert_refused(fleet, "the overlap must be at most 64 rounds");
    struct sgp_sim_absence backwards = {0, 5, 4};
    fleet = fleet_generate("ring", 3, 0);
    fleet->options.absences = &backwards;
    fleet->options.absence_count = 1;
    assert_refused(fleet, "an absence must end after it begins");
    uint32_t stranger = 3;
    struct sgp_sim_cut cut = {&stranger, 1, 0, 1};
    fleet = fleet_generate("ring", 3, 0);
    fleet->options.cuts = &cut;
    fleet->options.cut_count = 1;
    assert_refused(fleet, "a cut names a node that does not exist");
}

/* ---- nodes of unlike length ---- */

static uint64_t steps_of(const struct fleet *fleet, uint32_t node)
{
    struct sgp_training training;
    struct sgp_trainer *trainer = sgp_sim_trainer(fleet->sim, node);
    cr_assert(eq(int, trainer->methods->train(trainer, 1, 0, 1, &training), 0));
    return (uint64_t)training.epoch;
}

Test(sim, each_node_takes_its_own_number_of_steps)
{
    static const char *const methods[] = {"sgp", "osgp", "agp", "dpsgd", "adpsgd"};
    static const sgp_round rounds[] = {3, 40, 20, 1};
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        struct fleet *fleet = fleet_generate("base", 4, 0);
        struct sgp_sim_node_summary node;
        uint64_t bytes = 0;
        spread(fleet);
        fleet->eta = 0.01;
        fleet->options.method = sgp_method_find(methods[m]);
        fleet->options.node_rounds = rounds;
        fleet->options.row = NULL; /* nothing is kept of rounds that are open for long */
        fleet->options.left = NULL;
        fleet_run(fleet);
        for (uint32_t i = 0; i < 4; i++) {
            cr_assert(
                eq(u64, steps_of(fleet, i), (uint64_t)rounds[i]), "%s: node %u", methods[m], i);
            sgp_sim_node_summary(fleet->sim, i, &node);
            cr_assert(node.weight > 0 && !node.diverged && node.values >= 3);
            bytes += node.bytes;
        }
        cr_assert(eq(u32, fleet_summary(fleet).finished, 4));
        cr_assert(eq(u64, fleet_summary(fleet).bytes, bytes));
        fleet_destroy(fleet);
    }
}

Test(sim, a_node_that_trains_has_a_round)
{
    static const sgp_round rounds[] = {3, 0};
    struct fleet *fleet = fleet_generate("ring", 2, 0);
    fleet->options.node_rounds = rounds;
    cr_assert(eq(int, sgp_sim_create(fleet->topology, &fleet->options, &fleet->error, &fleet->sim),
        -EINVAL));
    cr_assert(eq(str, fleet->error.text, "the rounds of each node must be at least 1"));
    fleet->sim = NULL;
    fleet_destroy(fleet);
}
