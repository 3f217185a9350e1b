/* SPDX-License-Identifier: Apache-2.0 */
/* What the beginning and the end of a run cost: how many vectors of parameters the fleet sends
 * in all, by counting the bytes that enter the network. */
#include "sim_fleet.h"

#include "sgp/wire.h"

#define ROUNDS 12

static struct fleet *fleet_of(const char *family, uint32_t nodes)
{
    struct fleet *fleet = fleet_generate(family, nodes, 0);
    fleet->options.rounds = ROUNDS;
    fleet->options.dimension = 4; /* one value for each part of a reduction of 4 nodes */
    fleet->eta = 0.1;
    for (uint32_t i = 0; i < nodes; i++)
        for (uint32_t c = 0; c < FLEET_DIMENSION_MAX; c++)
            fleet->centre[i][c] = (float)((i + 2) * (c + 2) % 7) - 3;
    return fleet;
}

/* The payloads alone: without messages, and without the header of the one chunk of each payload. */
static double vectors_sent(const struct fleet *fleet)
{
    struct sgp_sim_summary summary = fleet_summary(fleet);
    uint64_t payloads = summary.shares - summary.shares_empty + summary.adopted;
    uint64_t heads = summary.messages * SGP_SIM_MESSAGE_BYTES + payloads * SGP_WIRE_HEADER_BYTES;
    return (double)(summary.bytes - heads) / (4.0 * (double)fleet->options.dimension);
}

static void expect_agreed(const struct fleet *fleet)
{
    struct sgp_sim_summary summary = fleet_summary(fleet);
    uint32_t nodes = fleet->topology->node_count;
    cr_expect(eq(u32, summary.finished, nodes));
    cr_expect(le(dbl, fabs(summary.weight - nodes), 1e-12 * nodes));
    cr_expect(le(dbl, summary.disagreement, 1e-5));
    for (uint32_t i = 0; i < nodes; i++)
        cr_expect(zero(u32, sgp_node_disagreeing(sgp_sim_node(fleet->sim, i))));
}

/* Of each node, beyond one exchange for each round of training. */
static void expect_end(
    const char *family, uint32_t nodes, const char *method, double each_round, double end)
{
    struct fleet *fleet = fleet_of(family, nodes);
    fleet->options.method = sgp_method_find(method);
    fleet_run(fleet);
    double each = vectors_sent(fleet) / nodes;
    cr_expect(epsilon_eq(dbl, each - ROUNDS * each_round, end, 1e-9),
        "%s of %u, %s: %g vectors of each node for the end", family, nodes, method,
        each - ROUNDS * each_round);
    cr_expect(zero(u32, fleet->notes[SGP_NOTE_MIXES]), "%s of %u, %s", family, nodes, method);
    expect_agreed(fleet);
    fleet_destroy(fleet);
}

/* Nodes take 40 steps at most, and node i takes `fewer(i, nodes)` less. */
static void expect_one_end(
    const char *family, uint32_t nodes, sgp_round (*fewer)(uint32_t, uint32_t), sgp_round end)
{
    struct fleet *fleet = fleet_of(family, nodes);
    sgp_round rounds[16];
    for (uint32_t i = 0; i < nodes; i++)
        rounds[i] = 40 - fewer(i, nodes);
    fleet->options.rounds = 40;
    fleet->options.node_rounds = rounds;
    fleet->options.compute_ns = 10 * SGP_MILLISECOND;
    fleet_run(fleet);
    cr_expect(zero(u32, fleet->notes[SGP_NOTE_MIXES]), "%s of %u", family, nodes);
    expect_agreed(fleet);
    for (uint32_t i = 0; i < nodes; i++) {
        struct sgp_node_status status;
        sgp_node_status(sgp_sim_node(fleet->sim, i), &status);
        cr_expect(eq(i64, status.round, end), "%s of %u, node %u", family, nodes, i);
    }
    fleet_destroy(fleet);
}

static sgp_round first_has_fewer(uint32_t i, uint32_t nodes)
{
    (void)nodes;
    return i == 0 ? 10 : 0;
}

static sgp_round all_but_the_last_have_fewer(uint32_t i, uint32_t nodes)
{
    return i + 1 < nodes ? 10 : 0;
}

static sgp_round some_have_a_few_less(uint32_t i, uint32_t nodes)
{
    (void)nodes;
    return i % 4;
}

/* Nodes with unlike numbers of rows take unlike numbers of steps. All mix after the last step of the
 * fleet, in the order of the file, so nobody asks for more. */
Test(sim_vectors, nodes_with_unlike_numbers_of_steps_have_one_end)
{
    expect_one_end("base", 8, first_has_fewer, 42);
    expect_one_end("one-peer-exponential", 8, first_has_fewer, 42);
    expect_one_end("one-peer-exponential", 8, some_have_a_few_less, 42);
    expect_one_end("base", 5, all_but_the_last_have_fewer, 45);
}

/* The exchange after the last step counts, so a file that averages exactly in k rounds needs k -
 * 1 more. */
Test(sim_vectors, an_end_lasts_until_models_agree_by_the_file)
{
    expect_end("one-peer-exponential", 2, "sgp", 1, 0);
    expect_end("one-peer-exponential", 4, "sgp", 1, 1);
    expect_end("one-peer-exponential", 8, "sgp", 1, 2);
    expect_end("one-peer-exponential", 16, "sgp", 1, 3);
    expect_end("base", 4, "sgp", 1, 1);
    expect_end("base", 8, "sgp", 1, 2);
    expect_end("complete", 4, "sgp", 3, 0);
    expect_end("all-reduce-direct", 4, "sgp", 1.5, 0);
    expect_end("all-reduce-ring", 4, "sgp", 1.5, 0);
}

/* D-PSGD gives before it steps, so its last steps are mixed after the end alone. */
Test(sim_vectors, steps_that_follow_the_exchange_of_their_round_are_mixed_later)
{
    expect_end("bipartite-exponential", 4, "dpsgd", 1, 2);
}

/* Methods that do not absorb in order mix for final_cycles, as they did in all files. */
Test(sim_vectors, other_methods_mix_for_final_cycles)
{
    expect_end("one-peer-exponential", 4, "osgp", 1, 4);
}

/* Coded shares keep a part of their values back. It is given in rounds of mixing. */
Test(sim_vectors, coded_steps_are_mixed_later)
{
    struct fleet *fleet = fleet_of("one-peer-exponential", 4);
    fleet->options.chooser.compressor = SGP_COMPRESSOR_FP16;
    fleet_run(fleet);
    struct sgp_node_status status;
    sgp_node_status(sgp_sim_node(fleet->sim, 0), &status);
    cr_expect(eq(i64, status.round, ROUNDS + 2));
    expect_agreed(fleet);
    fleet_destroy(fleet);
}

/* final_cycles is an upper bound, and 0 means no mixing. */
Test(sim_vectors, final_cycles_is_a_bound)
{
    struct fleet *fleet = fleet_of("one-peer-exponential", 4);
    fleet->options.final_cycles = 0;
    fleet_run(fleet);
    cr_expect(epsilon_eq(dbl, vectors_sent(fleet), 4 * ROUNDS, 1e-9));
    fleet_destroy(fleet);
}

/* Programs begin with the parameters of the first. Only if each has its `own` do they take vectors
 * for that. All end their steps in round 12, and mix for `end` rounds from there on. */
static void expect_programs(uint32_t nodes, bool own, uint32_t end)
{
    struct fleet *fleet = fleet_of("one-peer-exponential", nodes);
    for (uint32_t i = 0; i < nodes && own; i++)
        fleet->start[i][0] = (float)i;
    fleet->options.one_beginning = fleet->options.open = true;
    fleet->options.compute_ns = 100 * SGP_MILLISECOND;
    fleet->options.bandwidth = 0;
    fleet->watched = 1;
    fleet_open(fleet);
    struct sgp_node_status status = {.round = 0};
    sgp_time now = 0;
    while (status.round < ROUNDS) { /* all are in one round: steps take longer than exchanges */
        now += 10 * SGP_MILLISECOND;
        cr_assert(zero(int, sgp_sim_run(fleet->sim, now, &fleet->error)));
        sgp_node_status(sgp_sim_node(fleet->sim, 0), &status);
    }
    now += 50 * SGP_MILLISECOND;
    for (uint32_t i = 0; i < nodes; i++)
        cr_assert(zero(int, sgp_sim_command(fleet->sim, now, i, SGP_EVENT_STEPS_END)));
    cr_assert(
        zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)), "%s", fleet->error.text);
    uint32_t adopted = own ? nodes - 1 : 0;
    cr_expect(eq(u64, fleet_summary(fleet).adopted, adopted));
    cr_expect(epsilon_eq(dbl, vectors_sent(fleet), adopted + nodes * (ROUNDS + end), 1e-9),
        "%u nodes: %g", nodes, vectors_sent(fleet));
    cr_expect(zero(u32, fleet->notes[SGP_NOTE_MIXES]));
    expect_agreed(fleet);
    fleet_destroy(fleet);
}

Test(sim_vectors, programs_begin_and_end_with_few_vectors)
{
    expect_programs(4, false, 2);
    expect_programs(4, true, 2);
    expect_programs(8, false, 2);
    expect_programs(8, true, 2);
    expect_programs(16, false, 3);
}

/* Programs, of which the first `early` end in round 12, and all others in round `end`. */
static struct fleet *run_programs(const char *family, uint32_t nodes, uint32_t early, sgp_round end)
{
    struct fleet *fleet = fleet_of(family, nodes);
    fleet->options.open = true;
    fleet->options.compute_ns = 100 * SGP_MILLISECOND;
    fleet->watched = 1;
    fleet_open(fleet);
    for (uint32_t i = 0; i < nodes; i++)
        cr_assert(zero(
            int, sgp_sim_command(fleet->sim, (i < early ? 1250 : 50 + 100 * end) * SGP_MILLISECOND,
                     i, SGP_EVENT_STEPS_END)));
    cr_assert(
        zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)), "%s", fleet->error.text);
    expect_agreed(fleet);
    return fleet;
}

static uint64_t messages_of(const char *family, uint32_t nodes, uint32_t early)
{
    struct fleet *fleet = run_programs(family, nodes, early, 40);
    uint64_t messages = fleet_summary(fleet).messages;
    fleet_destroy(fleet);
    return messages;
}

/* The end of training moves on with the last program. The others named their last rounds anew in
 * each round, which took twice as many messages. */
Test(sim_vectors, programs_that_have_ended_name_no_end_in_every_round)
{
    static const char *const families[] = {"one-peer-exponential", "base"};
    for (size_t f = 0; f < 2; f++)
        for (uint32_t nodes = 8; nodes <= 16; nodes *= 2) {
            uint64_t together = messages_of(families[f], nodes, 0);
            uint64_t apart = messages_of(families[f], nodes, nodes - 1);
            cr_expect(le(u64, apart, together * 13 / 10), "%s of %u: %llu, together %llu",
                families[f], nodes, (unsigned long long)apart, (unsigned long long)together);
        }
}

static void expect_last(
    const char *family, uint32_t nodes, uint32_t early, sgp_round end, sgp_round last)
{
    struct fleet *fleet = run_programs(family, nodes, early, end);
    cr_expect(zero(u32, fleet->notes[SGP_NOTE_MIXES]), "%s of %u, %u early", family, nodes, early);
    for (uint32_t i = 0; i < nodes; i++) {
        struct sgp_node_status status;
        sgp_node_status(sgp_sim_node(fleet->sim, i), &status);
        cr_expect(eq(i64, status.round, last), "%s of %u, %u early", family, nodes, early);
    }
    fleet_destroy(fleet);
}

/* Programs with unlike numbers of batches end apart. None asks for more mixing. */
Test(sim_vectors, programs_that_end_apart_have_one_end)
{
    static const char *const families[] = {"one-peer-exponential", "base"};
    for (size_t f = 0; f < 2; f++) {
        expect_last(families[f], 4, 1, 13, 15);
        expect_last(families[f], 4, 3, 13, 15);
        expect_last(families[f], 4, 3, 20, 23);
        expect_last(families[f], 8, 1, 13, 15);
        expect_last(families[f], 8, 7, 13, 15);
        expect_last(families[f], 8, 1, 14, 18);
        expect_last(families[f], 8, 7, 14, 18);
        expect_last(families[f], 16, 1, 13, 16);
        expect_last(families[f], 16, 1, 20, 25);
    }
}

/* ---- the first parameters ---- */

#define FIRST_VALUES 10000 /* a vector takes 32 ms, and a message 1 ms */
#define FIRST_BANDWIDTH 1.25e6

struct first {
    bool own;                       /* node i begins with i; else all begin with 0 */
    uint32_t sent[FLEET_NODES_MAX]; /* vectors of each node that another one adopted */
    sgp_time last;                  /* when the last of them was adopted */
};

static int first_trainer(void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    const struct first *first = context;
    static float centre[FIRST_VALUES], start[FIRST_VALUES];
    for (uint32_t i = 0; i < FIRST_VALUES; i++)
        start[i] = first->own ? (float)node : 0;
    return sgp_quadratic_create(FIRST_VALUES, centre, start, 0, ret_trainer);
}

static void first_note(void *context, uint32_t node, sgp_time now, const struct sgp_effect *note)
{
    struct first *first = context;
    (void)node;
    if (note->note.what != SGP_NOTE_ADOPTED)
        return;
    first->sent[note->note.link.peer]++;
    first->last = now;
}

static void run_first(struct fleet *fleet, struct first *first)
{
    fleet->options.dimension = FIRST_VALUES;
    fleet->options.bandwidth = FIRST_BANDWIDTH;
    fleet->options.rounds = 1;
    fleet->options.one_beginning = fleet->options.through_wire = true;
    fleet->options.context = first;
    fleet->options.trainer = first_trainer;
    fleet->options.note = first_note;
    fleet->options.left = NULL;
    fleet->options.row = NULL;
    fleet_run(fleet);
    for (uint32_t i = 0; i < fleet->topology->node_count; i++) {
        static float estimate[FIRST_VALUES];
        sgp_sim_estimate(fleet->sim, i, estimate);
        cr_assert(zero(flt, estimate[0]));
        cr_assert(zero(flt, estimate[FIRST_VALUES - 1]));
    }
}

/* `most`: the vectors of the node that sends most of them. `times`: how long all take, in times of
 * one vector, rounded up. */
static void expect_first(
    const char *family, uint32_t nodes, bool own, uint32_t most, uint32_t times)
{
    struct first first = {.own = own};
    struct fleet *fleet = fleet_generate(family, nodes, 0);
    run_first(fleet, &first);
    uint32_t greatest = 0;
    for (uint32_t i = 0; i < nodes; i++)
        greatest = first.sent[i] > greatest ? first.sent[i] : greatest;
    double took = (double)first.last / (double)SGP_SECOND / (4 * FIRST_VALUES / FIRST_BANDWIDTH);
    cr_expect(eq(u32, greatest, most), "%s of %u", family, nodes);
    cr_expect(
        eq(u64, fleet_summary(fleet).adopted, own ? nodes - 1 : 0), "%s of %u", family, nodes);
    cr_expect(eq(dbl, ceil(took), times), "%s of %u: %g", family, nodes, took);
    fleet_destroy(fleet);
}

/* Without the plan by the file the first node of 8 sends 3 vectors in one-peer graphs, and 7 where
 * all are its targets. */
Test(sim_vectors, first_parameters_spread_along_the_graph)
{
    expect_first("one-peer-exponential", 4, true, 2, 3);
    expect_first("one-peer-exponential", 8, true, 2, 5);
    expect_first("base", 8, true, 2, 5);
    expect_first("complete", 8, true, 2, 5);
    expect_first("all-reduce-direct", 8, true, 2, 5);
    expect_first("complete", 16, true, 2, 6);
    expect_first("ring", 8, true, 1, 8);
    expect_first("star", 8, true, 7, 8);
}

Test(sim_vectors, equal_first_parameters_do_not_travel)
{
    expect_first("one-peer-exponential", 8, false, 0, 0);
    expect_first("base", 8, false, 0, 0);
    expect_first("complete", 8, false, 0, 0);
    expect_first("ring", 8, false, 0, 0);
}

/* n1 would serve n3 and n4. They do not wait for a node that is not there. */
Test(sim_vectors, first_parameters_come_without_a_planned_source_that_is_absent)
{
    struct first first = {.own = true};
    struct fleet *fleet = fleet_generate("complete", 8, 0);
    const struct sgp_sim_absence late = {.node = 1, .from = 0, .to = 20 * SGP_SECOND};
    fleet->options.absences = &late;
    fleet->options.absence_count = 1;
    fleet->options.start = 7;
    run_first(fleet, &first);
    cr_expect(zero(u32, first.sent[1]));
    fleet_destroy(fleet);
}
