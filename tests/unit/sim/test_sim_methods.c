/* SPDX-License-Identifier: Apache-2.0 */
/* The other waiting policies, on the real core in virtual time: what each waits for, what each costs,
 * and the figures that tell them apart. */
#include "sim_fleet.h"

/* ---- publishing before or after the step ---- */

/* Ring of 4, every fraction 1/3, objectives (z - c)^2 / 2, from 0. */
static struct fleet *ring_of_four(const char *method, double eta, sgp_round rounds)
{
    static const float centres[] = {0, 1, 2, 9};
    struct fleet *fleet = fleet_generate("bidirectional-ring", 4, 0);
    fleet->options.method = sgp_method_find(method);
    fleet->options.rounds = rounds;
    fleet->options.final_cycles = 0;
    fleet->eta = eta;
    for (int i = 0; i < 4; i++)
        fleet->centre[i][0] = centres[i];
    return fleet;
}

static void assert_estimates(const char *method, sgp_round rounds, const double expected[4])
{
    struct fleet *fleet = ring_of_four(method, 0.1, rounds);
    fleet_run(fleet);
    for (int i = 0; i < 4; i++)
        cr_assert(epsilon_eq(dbl, (double)fleet->estimate[i][0], expected[i], 6e-4),
            "%s node %d after %lld rounds", method, i, (long long)rounds);
    fleet_destroy(fleet);
}

Test(methods, dpsgd_publishes_before_its_step_and_sgp_after)
{
    assert_estimates("sgp", 1, (const double[]){0.3333, 0.1, 0.4, 0.3667});
    assert_estimates("dpsgd", 1, (const double[]){0, 0.1, 0.2, 0.9});
    assert_estimates("sgp", 1000, (const double[]){3.004, 2.758, 3.099, 3.139});
    assert_estimates("dpsgd", 1000, (const double[]){2.730, 2.618, 2.991, 3.661});
}

Test(methods, without_a_step_dpsgd_and_sgp_coincide)
{
    double disagreement[2];
    for (int run = 0; run < 2; run++) {
        struct fleet *fleet = ring_of_four(run == 0 ? "sgp" : "dpsgd", 0, 7);
        for (int i = 0; i < 4; i++)
            fleet->start[i][0] = (float)(i * i);
        fleet_run(fleet);
        disagreement[run] = fleet->rows[6].disagreement;
        fleet_destroy(fleet);
    }
    cr_assert(eq(dbl, disagreement[0], disagreement[1]));
    cr_assert(gt(dbl, disagreement[0], 0));
}

/* ---- shares that are folded ---- */

/* Node i hears from the `sources` nodes before it. The simulator holds each share that is folded against absorbing
 * it, to the bit; where all do the same at the same time, each round folds the first of them. */
Test(methods, one_share_of_each_round_is_folded_however_many_come)
{
    for (uint32_t sources = 1; sources <= 5; sources++) {
        struct sgp_edge edges[8 * 5];
        uint32_t count = 0;
        for (uint32_t i = 0; i < 8; i++)
            for (uint32_t k = 1; k <= sources; k++)
                edges[count++] = (struct sgp_edge){i, (i + k) % 8, SGP_FRACTION_DEFAULT};
        struct fleet *fleet = fleet_of_edges(8, edges, count);
        fleet->options.method = sgp_method_find("sgp");
        fleet->options.rounds = 20;
        fleet->options.final_cycles = 0;
        fleet->eta = 0.1;
        for (int i = 0; i < 8; i++)
            fleet->centre[i][0] = (float)(i * i) / 7;
        fleet_run(fleet);
        cr_assert(eq(u64, fleet_summary(fleet).shares_folded, 8 * 20), "%u sources", sources);
        cr_assert(ge(u64, fleet_summary(fleet).shares, 8 * 20 * sources));
        fleet_destroy(fleet);
    }
}

/* ---- who waits for whom ---- */

/* Virtual seconds until the last training round was left by all. */
static double seconds_of(struct fleet *fleet)
{
    fleet_run(fleet);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, fleet->topology->node_count));
    cr_assert(lt(dbl, summary.mass_error, 1e-11));
    double seconds = 0;
    for (uint32_t k = 0; k < fleet->row_count; k++)
        if (fleet->rows[k].round == fleet->options.rounds - 1)
            seconds = (double)fleet->rows[k].time / (double)SGP_SECOND;
    fleet_destroy(fleet);
    return seconds;
}

/* Steps of 10 ms over links of 30 ms. */
static struct fleet *slow_links(const char *method, uint32_t overlap)
{
    struct fleet *fleet = fleet_generate("one-peer-exponential", 8, 0);
    fleet->options.method = sgp_method_find(method);
    fleet->options.overlap = overlap;
    fleet->options.rounds = 200;
    fleet->options.compute_ns = 10 * SGP_MILLISECOND;
    fleet->options.latency_ns = 30 * SGP_MILLISECOND;
    return fleet;
}

Test(methods, overlap_hides_the_latency_of_links)
{
    double synchronous = seconds_of(slow_links("sgp", 0));
    double overlapped = seconds_of(slow_links("osgp", 4));
    cr_assert(gt(dbl, synchronous, 200 * 0.040 - 0.1), "a round is a step and a transfer");
    cr_assert(
        lt(dbl, overlapped, 200 * 0.010 + 0.4), "a round is a step; it took %g s", overlapped);
}

Test(methods, overlap_of_no_rounds_waits_like_sgp)
{
    cr_assert(eq(dbl, seconds_of(slow_links("osgp", 0)), seconds_of(slow_links("sgp", 0))));
}

/* One of eight computes ten times slower. */
static struct fleet *uneven(const char *method, uint32_t overlap, uint32_t backup)
{
    static const struct sgp_sim_straggler straggler = {3, 10};
    struct fleet *fleet = fleet_generate("complete", 8, 0);
    fleet->options.method = sgp_method_find(method);
    fleet->options.overlap = overlap;
    fleet->options.backup_neighbours = backup;
    fleet->options.rounds = 100;
    fleet->options.stragglers = &straggler;
    fleet->options.straggler_count = 1;
    return fleet;
}

/* When a node that is not slow left its last training round: `left` is called with every node. */
static sgp_round fast_progress(struct fleet *fleet, sgp_time at)
{
    fleet_open(fleet);
    cr_assert(eq(int, sgp_sim_run(fleet->sim, at, &fleet->error), 0), "%s", fleet->error.text);
    struct sgp_node_status status;
    sgp_node_status(sgp_sim_node(fleet->sim, 0), &status);
    sgp_round round = status.round;
    fleet_destroy(fleet);
    return round;
}

Test(methods, only_sgp_moves_at_the_pace_of_the_slowest)
{
    const sgp_time second = SGP_SECOND; /* 100 steps of a fast node, 10 of the slow one */
    sgp_round sgp = fast_progress(uneven("sgp", 0, 0), second);
    sgp_round osgp = fast_progress(uneven("osgp", 3, 0), second);
    sgp_round agp = fast_progress(uneven("agp", 0, 0), second);
    cr_assert(le(i64, sgp, 11));
    cr_assert(le(i64, osgp, sgp + 4), "overlap bounds the lead");
    sgp_round adpsgd = fast_progress(uneven("adpsgd", 0, 0), second);
    cr_assert(ge(i64, agp, 90), "nobody is waited for");
    cr_assert(ge(i64, adpsgd, 90), "nor here");
}

Test(methods, a_backup_neighbour_need_not_be_waited_for)
{
    sgp_round none = fast_progress(uneven("sgp", 0, 0), SGP_SECOND);
    sgp_round one = fast_progress(uneven("sgp", 0, 1), SGP_SECOND);
    cr_assert(ge(i64, one, none));
    struct fleet *fleet = uneven("sgp", 0, 1);
    fleet_run(fleet);
    cr_assert(lt(dbl, fleet_summary(fleet).mass_error, 1e-11));
    fleet_destroy(fleet);
}

/* The mean weight of the slow one at the ends of its rounds `from` to `until`. */
static double mean_weight_of_the_slow_one(struct fleet *fleet, sgp_round from, sgp_round until)
{
    struct sgp_node_status status = {0};
    double sum = 0;
    uint32_t count = 0;
    for (sgp_time now = 0; status.round < until; now += 5 * SGP_MILLISECOND) {
        sgp_round before = status.round;
        cr_assert(lt(i64, now, 60 * SGP_SECOND), "it stands at round %d", (int)before);
        cr_assert(zero(int, sgp_sim_run(fleet->sim, now, &fleet->error)), "%s", fleet->error.text);
        sgp_node_status(sgp_sim_node(fleet->sim, 3), &status);
        if (status.round == before || status.round < from)
            continue;
        sum += status.weight;
        count++;
    }
    return sum / count;
}

/* It is ten times slower, and has nine tenths of its steps to take when the others have taken theirs. If these kept what it
 * gives, it would train alone, with the weight that part_to_give leaves it. */
Test(methods, who_has_done_its_steps_goes_on_giving_to_those_who_train)
{
    static const char *const generators[] = {"one-peer-exponential", "complete", "ring", "elastic"};
    static const struct sgp_sim_straggler straggler = {3, 10};
    for (size_t g = 0; g < sizeof generators / sizeof *generators; g++) {
        struct fleet *fleet = fleet_generate(generators[g], 8, 0);
        fleet->options.method = sgp_method_find("agp");
        fleet->options.final_cycles = 8; /* the ring is so long */
        fleet->options.rounds = 200;
        fleet->options.stragglers = &straggler;
        fleet->options.straggler_count = 1;
        struct sgp_sim_crash crash = {
            .node = 0, .at = 3 * SGP_SECOND, .back = 3200 * SGP_MILLISECOND};
        fleet->options.crashes =
            &crash; /* one that has done its steps, and then knows its pace no more */
        fleet->options.crash_count = strcmp(generators[g], "complete") == 0;
        fleet_open(fleet);
        double beside = mean_weight_of_the_slow_one(fleet, 5, 19);
        double after = mean_weight_of_the_slow_one(fleet, 40, 199);
        cr_assert(gt(dbl, after, 0.8 * beside), "%s: %g of %g", generators[g], after, beside);
        cr_assert(zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)));
        cr_assert(lt(dbl, fleet_summary(fleet).mass_error, 1e-11));
        fleet_destroy(fleet);
    }
}

/* The relay n0 gives once for each share that comes, and seven come in a round of the others. n3 is
 * restarted when these have taken half of their steps. */
Test(methods, a_relay_at_its_own_pace_is_in_the_round_of_the_nodes_that_train)
{
    struct sgp_sim_crash crash = {.node = 3, .at = SGP_SECOND, .back = 1020 * SGP_MILLISECOND};
    struct fleet *fleet = fleet_generate("elastic", 8, 0);
    fleet->options.method = sgp_method_find("agp");
    fleet->options.final_cycles = 8;
    fleet->options.rounds = 200;
    fleet->options.crashes = &crash;
    fleet->options.crash_count = 1;
    fleet_open(fleet);
    struct sgp_node_status relay, restarted;
    for (sgp_time t = 1; t < 15; t++) {
        cr_assert(zero(int, sgp_sim_run(fleet->sim, t * 100 * SGP_MILLISECOND, &fleet->error)));
        sgp_node_status(sgp_sim_node(fleet->sim, 0), &relay);
        cr_assert(epsilon_eq(dbl, (double)relay.round, 10.0 * (double)t, 2), "at 0.%d s: %d",
            (int)t, (int)relay.round);
    }
    sgp_node_status(sgp_sim_node(fleet->sim, 3), &restarted);
    cr_assert(eq(int, restarted.state, SGP_NODE_TRAINING));
    cr_assert(epsilon_eq(dbl, (double)restarted.round, (double)relay.round, 3), "%d",
        (int)restarted.round);
    cr_assert(zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)));
    cr_assert(lt(dbl, fleet_summary(fleet).mass_error, 1e-11));
    fleet_destroy(fleet);
}

/* Between 1 s and 11 s the relay reaches no other node, and it notices that after 3 s. The others
 * continue. */
Test(methods, a_relay_that_is_alone_keeps_the_pace_of_the_others)
{
    static const uint32_t nodes[] = {0};
    static const struct sgp_sim_cut cut = {
        .nodes = nodes, .node_count = 1, .from = SGP_SECOND, .to = 11 * SGP_SECOND};
    struct fleet *fleet = fleet_generate("elastic", 8, 0);
    fleet->options.method = sgp_method_find("agp");
    fleet->options.final_cycles = 8;
    fleet->options.rounds = 2000;
    fleet->options.cuts = &cut;
    fleet->options.cut_count = 1;
    fleet_open(fleet);
    struct sgp_node_status relay, other;
    for (sgp_time t = 1; t < 18; t++) {
        cr_assert(zero(int, sgp_sim_run(fleet->sim, t * SGP_SECOND, &fleet->error)));
        sgp_node_status(sgp_sim_node(fleet->sim, 0), &relay);
        sgp_node_status(sgp_sim_node(fleet->sim, 3), &other);
        cr_assert(le(i64, relay.round, other.round + 2), "at %d s", (int)t);
    }
    cr_assert(zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)));
    cr_assert(lt(dbl, fleet_summary(fleet).mass_error, 1e-11));
    fleet_destroy(fleet);
}

/* n4 waits for n3, which is twenty times slower, from 2 s on, and passes mass on a hundred times a second. n5 waits for n4:
 * twice as long as the patience says, for n4 waits itself and does not compute. */
Test(methods, who_passes_mass_on_waits_once_and_computes_nothing)
{
    static const struct sgp_sim_straggler straggler = {3, 20};
    struct fleet *fleet = fleet_generate("ring", 8, 0);
    fleet->options.method = sgp_method_find("agp");
    fleet->options.final_cycles = 8;
    fleet->options.rounds = 200;
    fleet->options.patience_ns = 2 * SGP_SECOND;
    fleet->options.stragglers = &straggler;
    fleet->options.straggler_count = 1;
    fleet_open(fleet);
    cr_assert(zero(int, sgp_sim_run(fleet->sim, 5 * SGP_SECOND, &fleet->error)));
    struct sgp_node_status status;
    sgp_node_status(sgp_sim_node(fleet->sim, 4), &status);
    cr_assert(eq(int, status.waiting, SGP_WAITING_SHARE));
    cr_assert(eq(u32, status.waiting_peer, 3));
    cr_assert(lt(i64, status.waiting_since, 3 * SGP_SECOND));
    cr_assert(zero(u32, fleet->notes[SGP_NOTE_OVERDUE]));
    fleet_destroy(fleet);
}

/* ---- what they agree on ---- */

Test(methods, every_method_agrees_in_the_end_and_keeps_all_mass)
{
    for (uint32_t m = 0; sgp_method_at(m) != NULL; m++) {
        const char *method = sgp_method_at(m)->name;
        struct fleet *fleet = uneven(method, 2, 0);
        fleet->options.final_cycles = 40;
        fleet->eta = 0.05;
        for (int i = 0; i < 8; i++)
            fleet->centre[i][0] = (float)i;
        fleet_run(fleet);
        struct sgp_sim_summary summary = fleet_summary(fleet);
        cr_assert(eq(u32, summary.finished, 8), "%s", method);
        cr_assert(lt(dbl, summary.disagreement, 1e-5), "%s: %g", method, summary.disagreement);
        cr_assert(epsilon_eq(dbl, summary.weight, 8, 1e-11), "%s", method);
        cr_assert(epsilon_eq(dbl, summary.weight_in_flight, 0, 1e-12), "%s", method);
        fleet_destroy(fleet);
    }
}

/* An odd ring, which has no perfect matching, of machines whose steps take unlike times. */
static struct fleet *ring_of_seven(uint64_t seed)
{
    struct fleet *fleet = fleet_generate("bidirectional-ring", 7, 0);
    fleet->options.method = sgp_method_find("adpsgd");
    fleet->options.seed = seed;
    fleet->options.compute_jitter = 0.95;
    fleet->options.latency_ns = 7 * SGP_MILLISECOND;
    for (int i = 0; i < 7; i++)
        fleet->start[i][0] = (float)(i * i);
    return fleet;
}

static double disagreement_of_seven(uint64_t seed, sgp_round rounds)
{
    struct fleet *fleet = ring_of_seven(seed);
    fleet->options.rounds = rounds;
    fleet->options.final_cycles = 0;
    fleet_run(fleet);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(le(dbl, summary.mass_error, 1e-12), "at any time: %g", summary.mass_error);
    cr_assert(epsilon_eq(dbl, summary.weight, 7, 1e-12));
    fleet_destroy(fleet);
    return summary.disagreement;
}

/* From 0, 1, 4, ... 36, of which the mean is 13, and without a step: only exchanges with one neighbour
 * by lot bring them together. */
Test(methods, adpsgd_agrees_on_an_odd_ring_without_a_step)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        double early = disagreement_of_seven(seed, 20), late = disagreement_of_seven(seed, 200);
        cr_assert(lt(dbl, early, 23), "seed %d: %g", (int)seed, early);
        cr_assert(lt(dbl, late, 0.01 * early), "seed %d: %g", (int)seed, late);
    }
}

static void campaign(const char *method, uint64_t seed)
{
    static const char *const families[] = {
        "ring", "bidirectional-ring", "one-peer-exponential", "complete", "star", "random"};
    struct sgp_random random;
    sgp_random_init(&random, seed, 7);
    struct fleet *fleet = fleet_generate(families[seed % 6], 7, 0);
    for (int i = 0; i < 7; i++)
        fleet->start[i][0] = (float)i;
    struct sgp_sim_absence absences[3];
    for (int i = 0; i < 3; i++) {
        sgp_time from = (sgp_time)sgp_random_below(&random, (uint64_t)(8 * SGP_SECOND));
        sgp_time length = 1 + (sgp_time)sgp_random_below(&random, (uint64_t)(12 * SGP_SECOND));
        absences[i] =
            (struct sgp_sim_absence){(uint32_t)sgp_random_below(&random, 7), from, from + length};
    }
    struct sgp_sim_crash crashes[2];
    for (int i = 0; i < 2; i++) {
        sgp_time at = (sgp_time)sgp_random_below(&random, (uint64_t)(12 * SGP_SECOND));
        sgp_time away = 1 + (sgp_time)sgp_random_below(&random, (uint64_t)(4 * SGP_SECOND));
        crashes[i] = (struct sgp_sim_crash){
            .node = (uint32_t)sgp_random_below(&random, 7), .at = at, .back = at + away};
    }
    static const uint32_t island[] = {1, 4};
    sgp_time cut_from = (sgp_time)sgp_random_below(&random, (uint64_t)(10 * SGP_SECOND));
    const struct sgp_sim_cut cut = {island, 2, cut_from, cut_from + 6 * SGP_SECOND};
    fleet->options.method = sgp_method_find(method);
    fleet->options.overlap = (uint32_t)(seed % 4);
    fleet->options.backup_neighbours = (uint32_t)(seed % 3);
    fleet->options.seed = seed;
    fleet->options.rounds = 600;
    fleet->options.final_cycles = 60;
    fleet->options.compute_ns = 50 * SGP_MILLISECOND;
    fleet->options.compute_jitter = 0.9;
    fleet->options.loss = (double)(seed % 5) * 0.01;
    fleet->options.absences = absences;
    fleet->options.absence_count = 3;
    fleet->options.crashes = crashes;
    fleet->options.crash_count = 2;
    fleet->options.cuts = &cut;
    fleet->options.cut_count = seed % 2;
    fleet_open(fleet);
    int status = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
    cr_assert(eq(int, status, 0), "%s, seed %llu: %s", method, (unsigned long long)seed,
        fleet->error.text);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, 7), "%s, seed %llu", method, (unsigned long long)seed);
    cr_assert(epsilon_eq(dbl, summary.weight, 7, 1e-11), "%s, seed %llu", method,
        (unsigned long long)seed);
    fleet_destroy(fleet);
}

Test(methods, campaigns_of_resets_absences_crashes_and_cuts_lose_nothing)
{
    for (uint32_t m = 0; sgp_method_at(m) != NULL; m++)
        for (uint64_t seed = 1; seed <= fleet_many(25, 3); seed++)
            campaign(sgp_method_at(m)->name, seed);
}

/* ---- at one's own pace ---- */

/* What a node that is four times as fast as its three fellows holds while all still train. The optimum
 * is the mean of the centres, 1; weighted by speed it is 16/7. */
static double estimate_of_the_fast_one(const char *method, bool step_by_rate)
{
    static const struct sgp_sim_straggler slow[] = {{1, 4}, {2, 4}, {3, 4}};
    struct fleet *fleet = fleet_generate("complete", 4, 0);
    fleet->options.method = sgp_method_find(method);
    fleet->options.step_by_rate = step_by_rate;
    fleet->options.rounds = 1000000;
    fleet->options.stragglers = slow;
    fleet->options.straggler_count = 3;
    fleet->eta = 0.01;
    fleet->centre[0][0] = 4;
    fleet->watched = 4000;
    fleet_open(fleet);
    cr_assert(zero(int, sgp_sim_run(fleet->sim, 60 * SGP_SECOND, &fleet->error)), "%s",
        fleet->error.text);
    double estimate = (double)fleet->estimate[0][0];
    fleet_destroy(fleet);
    return estimate;
}

Test(methods, steps_by_rate_give_fast_and_slow_nodes_one_voice)
{
    static const char *const paced[] = {"agp", "adpsgd"};
    for (int m = 0; m < 2; m++) {
        double without = estimate_of_the_fast_one(paced[m], false);
        double with = estimate_of_the_fast_one(paced[m], true);
        cr_assert(epsilon_eq(dbl, without, 16.0 / 7, 0.15), "%s: %g", paced[m], without);
        cr_assert(epsilon_eq(dbl, with, 1, 0.15), "%s: %g", paced[m], with);
    }
}
