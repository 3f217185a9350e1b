/* SPDX-License-Identifier: Apache-2.0 */
/* Exact cycles of a file: the published schedules by their tables, what is refused, and how rounds and turns are
 * counted. */
#include "sgp/analysis.h"
#include "sgp/dot.h"
#include "sgp/generate.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t sizes[] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 32};
#define SIZES (sizeof sizes / sizeof *sizes)

static struct sgp_topology *cut_family(const char *name, uint32_t nodes, uint32_t pieces)
{
    struct sgp_generate_options options = {.family = name, .nodes = nodes, .pieces = pieces};
    options.group = strcmp(name, "all-reduce-groups") == 0 ? 3 : 0;
    options.hubs = strcmp(name, "all-reduce-hubs") != 0 ? 0 : nodes < 3 ? nodes : 3;
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    cr_assert(
        zero(int, sgp_generate(&options, &error, &topology)), "%s %u: %s", name, nodes, error.text);
    return topology;
}

static struct sgp_topology *family(const char *name, uint32_t nodes)
{
    return cut_family(name, nodes, 0);
}

static struct sgp_topology *parse(const char *text)
{
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    cr_assert(
        zero(int, sgp_dot_parse(text, strlen(text), "t", &error, &topology)), "%s", error.text);
    return topology;
}

static void refused(const char *text, const char *expected)
{
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    cr_expect(zero(ptr, topology));
    cr_expect(lt(int, sgp_dot_parse(text, strlen(text), "t", &error, &topology), 0));
    cr_expect(eq(str, error.text, (char *)expected));
}

static uint32_t log2_of(uint32_t n)
{
    uint32_t bits = 0;
    while (2u << bits <= n)
        bits++;
    return bits;
}

/* ---- a part at a time, by what the edges say alone: another reckoning than the proof's ---- */

static double *mix(const struct sgp_topology *t, uint32_t part, const double *start)
{
    uint32_t n = t->node_count;
    double *x = calloc(2 * n, sizeof *x), *w = x + n;
    for (uint32_t i = 0; i < n; i++) {
        w[i] = sgp_topology_starts(t, i);
        x[i] = w[i] > 0 ? start[i] : 0;
    }
    for (sgp_round round = 0; round < t->rounds_per_cycle; round++) {
        const struct sgp_phase *phase = sgp_topology_phase(t, round);
        double next_x[64], next_w[64];
        memcpy(next_x, x, n * sizeof *x);
        memcpy(next_w, w, n * sizeof *w);
        for (uint32_t e = 0; e < phase->edge_count; e++) {
            const struct sgp_edge *edge = &phase->out[e];
            if (edge->part_count > 0 &&
                (part < edge->part || part >= edge->part + edge->part_count))
                continue;
            next_x[edge->source] -= edge->fraction * x[edge->source];
            next_w[edge->source] -= edge->fraction * w[edge->source];
            next_x[edge->target] += edge->fraction * x[edge->source];
            next_w[edge->target] += edge->fraction * w[edge->source];
        }
        memcpy(x, next_x, n * sizeof *x);
        memcpy(w, next_w, n * sizeof *w);
    }
    return x;
}

static void expect_mean(const struct sgp_topology *t)
{
    double start[64], mean = 0;
    uint32_t n = t->node_count;
    for (uint32_t i = 0; i < n; i++)
        mean += (start[i] = (double)(i * i) - 7) / n;
    for (uint32_t q = 0; q < t->slices; q++) {
        double *x = mix(t, q, start);
        for (uint32_t i = 0; i < n; i++)
            cr_assert(lt(dbl, fabs(x[i] / x[n + i] - mean), 1e-9), "part %u of node %u", q, i);
        free(x);
    }
}

static void expect_cost_cut(
    const char *name, uint32_t n, uint32_t pieces, sgp_round rounds, double mean)
{
    struct sgp_topology *t = cut_family(name, n, pieces);
    struct sgp_analysis a;
    cr_assert(zero(int, sgp_analyse(t, &a)));
    cr_assert(eq(i64, a.rounds_per_cycle, rounds), "%s %u", name, n);
    cr_assert(eq(i64, a.exact_average_rounds, rounds), "%s %u", name, n);
    cr_assert(eq(i64, a.turns_per_cycle, 1));
    cr_assert(lt(dbl, fabs(a.vectors_sent_mean - mean), 1e-12), "%s %u", name, n);
    cr_assert(zero(u32, a.warning_count), "%s", a.warnings[0]);
    cr_assert(zero(dbl, a.contraction_per_cycle));
    expect_mean(t);
    sgp_topology_destroy(t);
}

/* Cut in pieces it takes as many times the rounds, and the same bytes. */
static void expect_cost(const char *name, uint32_t n, sgp_round rounds, double mean)
{
    for (uint32_t pieces = 1; pieces <= 3; pieces++)
        expect_cost_cut(name, n, pieces, pieces * rounds, mean);
}

Test(exact, every_schedule_averages_in_the_rounds_and_bytes_of_its_table)
{
    for (size_t s = 0; s < SIZES; s++) {
        uint32_t n = sizes[s], bits = log2_of(n), core = 1u << bits;
        bool power = n == core;
        double least = 2.0 * (n - 1) / n;
        expect_cost("all-reduce-ring", n, 2 * (n - 1), least);
        expect_cost("all-reduce-direct", n, 2, least);
        expect_cost("all-reduce-doubling", n, bits + (power ? 0 : 2),
            (2.0 * (n - core) + (double)core * bits) / n);
        expect_cost("all-reduce-halving", n, 2 * bits + (power ? 0 : 2), least);
        expect_cost("all-reduce-blocks", n, 2 * bits + (power ? 0 : 2), least);
        expect_cost("all-reduce-tree", n, 2 * (bits + !power), least);
        expect_cost("all-reduce-groups", n, n <= 3 ? 2 : 4, least);
        expect_cost("all-reduce-hubs", n, 2, least);
    }
}

/* The mean of those that train; the hubs end with nothing. */
Test(exact, hubs_without_data_hand_on_the_mean_of_the_others)
{
    for (size_t s = 0; s < SIZES; s++)
        for (uint32_t hubs = 1, n = sizes[s]; hubs < n && hubs <= 5; hubs++) {
            struct sgp_generate_options options = {
                .family = "all-reduce-hubs", .nodes = n, .hubs = hubs, .relays = true};
            struct sgp_topology *t = NULL;
            struct sgp_error error = {0};
            cr_assert(zero(int, sgp_generate(&options, &error, &t)), "%s", error.text);
            struct sgp_analysis a;
            cr_assert(zero(int, sgp_analyse(t, &a)));
            cr_assert(eq(u32, sgp_topology_trainers(t), n - hubs));
            cr_assert(eq(i64, a.exact_average_rounds, 2));
            cr_assert(lt(dbl, fabs(a.vectors_sent_mean - 2.0 * (n - hubs) / n), 1e-12));
            cr_assert(
                lt(dbl, fabs(a.vectors_sent_most - fmax(1, (double)(n - hubs) / hubs)), 1e-12));
            double start[64], mean = 0;
            for (uint32_t i = 0; i < n; i++)
                start[i] = (double)(i * i) - 7;
            for (uint32_t i = hubs; i < n; i++)
                mean += start[i] / (n - hubs);
            for (uint32_t q = 0; q < t->slices; q++) {
                double *x = mix(t, q, start);
                for (uint32_t i = 0; i < n; i++) {
                    cr_assert(lt(dbl, fabs(x[n + i] - (i >= hubs)), 1e-12));
                    cr_assert(lt(dbl, fabs(x[i] - (i >= hubs ? mean : 0)), 1e-9));
                }
                free(x);
            }
            sgp_topology_destroy(t);
        }
}

/* ---- synchronous SGD in double precision ---- */

struct rule {
    double momentum, decay;
    bool nesterov;
};

/* One step on the loss (z - centre)^2 / 2, as sgp/optimizer.h has it. */
static void step(const struct rule *rule, double centre, double *z, double *velocity)
{
    double gradient = *z - centre + rule->decay * *z;
    *velocity = rule->momentum * *velocity + gradient;
    *z -= 0.05 * (rule->nesterov ? gradient + rule->momentum * *velocity : *velocity);
}

/* The nodes' own velocities differ, and only their mean is that of all the rows. */
static void expect_synchronous(const char *name, uint32_t n, const struct rule *rule)
{
    struct sgp_topology *t = family(name, n);
    double centre[32], velocity[32] = {0}, z[32] = {0}, pooled = 0, pooled_velocity = 0, mean = 0;
    for (uint32_t i = 0; i < n; i++)
        mean += (centre[i] = (double)((i + 1) * 5 % 7) - 3) / n;
    for (int turn = 0; turn < 200; turn++) {
        for (uint32_t i = 0; i < n; i++)
            step(rule, centre[i], &z[i], &velocity[i]);
        step(rule, mean, &pooled, &pooled_velocity);
        double *x = mix(t, (uint32_t)turn % t->slices, z);
        for (uint32_t i = 0; i < n; i++) {
            z[i] = x[i] / x[n + i];
            cr_assert(lt(dbl, fabs(z[i] - pooled), 1e-9), "%s %u, turn %d", name, n, turn);
        }
        free(x);
    }
    sgp_topology_destroy(t);
}

Test(exact, every_schedule_is_synchronous_sgd_with_momentum_and_decay)
{
    static const char *const names[] = {"all-reduce-ring", "all-reduce-direct",
        "all-reduce-doubling", "all-reduce-halving", "all-reduce-blocks", "all-reduce-tree",
        "all-reduce-groups", "all-reduce-hubs"};
    static const struct rule rules[] = {{0, 0, false}, {0.9, 1e-4, false}, {0.9, 1e-4, true}};
    for (size_t f = 0; f < sizeof names / sizeof *names; f++)
        for (size_t s = 0; s < SIZES; s++)
            for (size_t r = 0; r < sizeof rules / sizeof *rules; r++)
                expect_synchronous(names[f], sizes[s], &rules[r]);
}

Test(exact, only_what_empties_somebody_is_a_collective_act)
{
    for (uint32_t n = 2; n <= 17; n++) {
        struct sgp_topology *t = family("all-reduce-doubling", n);
        cr_assert(eq(int, sgp_topology_has_exact(t), (n & (n - 1)) != 0), "%u", n);
        sgp_topology_destroy(t);
    }
    struct sgp_topology *t = family("elastic", 5);
    cr_assert(not(sgp_topology_has_exact(t)));
    cr_assert(t->nodes[0].relay && sgp_topology_starts(t, 0) > 0);
    cr_assert(eq(u32, sgp_topology_trainers(t), 4));
    sgp_topology_destroy(t);
}

/* Of a folded pair each has half of the weight of the others in the end. */
Test(exact, the_weights_of_the_end_are_known)
{
    struct sgp_topology *t = family("all-reduce-doubling", 5);
    const double expected[] = {0.625, 1.25, 1.25, 1.25, 0.625};
    for (uint32_t i = 0; i < 5; i++)
        cr_assert(lt(dbl, fabs(sgp_topology_ends(t, 0, i)[0] - expected[i]), 1e-7));
    sgp_topology_destroy(t);
}

/* ---- what is refused, by name ---- */

Test(exact, a_file_that_does_not_average_exactly_is_refused)
{
    refused("digraph one { a -> b [fraction=1] }\ndigraph two { train=false; b -> a [fraction=1] }",
        "t:2: the cycle ends in digraph two, and node b has nothing of part 0 then; let it be "
        "given "
        "that part before");
    refused("digraph one { a -> b [fraction=1]; b -> a [fraction=1] }",
        "t:1: the cycle ends in digraph one, and part 0 of node a is not the mean of all nodes "
        "then; "
        "a cycle with fraction 1 or with parts must average exactly: see sgpctl topology generate, "
        "or "
        "use smaller fractions of the whole vector");
    refused("digraph g { slices=2; a -> b [slice=0, fraction=\"1/2\"]; b -> a [slice=0, "
            "fraction=\"1/2\"] }",
        "t:1: the cycle ends in digraph g, and part 1 of node a is not the mean of all nodes then; "
        "a "
        "cycle with fraction 1 or with parts must average exactly: see sgpctl topology generate, "
        "or "
        "use smaller fractions of the whole vector");
}

/* Also where every part has weight 1 then: the second file below averages exactly, but a node that trains in `up1` has
 * no estimate to take its steps from. */
Test(exact, training_after_the_first_exchange_of_a_cycle_is_refused)
{
    refused("digraph up { a -> b [fraction=1] }\ndigraph down {\n b -> a }",
        "t:2: digraph down trains, but the exchange of the exact cycle has begun in digraph up; "
        "write train=false in digraph down");
    refused("digraph up0 { slices=4; a; b; a -> b [slice=1, fraction=1]; b -> a [slice=0, "
            "fraction=1] }\ndigraph down0 { slices=4; train=false; a -> b [slice=0]; b -> a "
            "[slice=1] }\ndigraph up1 { slices=4; a -> b [slice=3, fraction=1]; b -> a [slice=2, "
            "fraction=1] }\ndigraph down1 { slices=4; train=false; a -> b [slice=2]; b -> a "
            "[slice=3] }",
        "t:3: digraph up1 trains, but the exchange of the exact cycle has begun in digraph up0; "
        "write train=false in digraph up1");
    refused("digraph swap { rounds=2; a -> b [fraction=1]; b -> a [fraction=1] }\n"
            "digraph mean { train=false; a -> b; b -> a }",
        "t:1: digraph swap trains in 2 rounds, but the exchange of the exact cycle begins in the "
        "first; write rounds=1, and its other rounds as a digraph with train=false");
}

/* Several local steps are rounds without edges before the exchange. */
Test(exact, training_before_the_first_exchange_is_fine)
{
    struct sgp_topology *t = parse("digraph steps { rounds=3; a; b }\n"
                                   "digraph swap { a -> b [fraction=1]; b -> a [fraction=1] }\n"
                                   "digraph mean { train=false; a -> b; b -> a }");
    cr_assert(sgp_topology_has_exact(t));
    cr_assert(eq(i64, t->cycle.turns, 4));
    sgp_topology_destroy(t);
}

Test(exact, what_an_attribute_cannot_say_is_refused)
{
    refused("digraph a { slices=0; x -> y }",
        "t:1: digraph a: slices=\"0\" is not usable; write a whole number from 1 to 256");
    refused("digraph a { slices=2; x -> y }\ndigraph b { slices=3; y -> x }",
        "t:2: digraph b: slices=3 here and 2 in a digraph before; the vector is cut in one way");
    refused("digraph a { slices=2;\n x -> y [slice=2] }",
        "t:2: digraph a: edge x -> y gives part 2; with slices=2 parts are 0 to 1");
    refused("digraph a { x -> y [slice=0] }", "t:1: digraph a: edge x -> y gives part 0, but the "
                                              "digraph does not say how many parts there "
                                              "are; write slices=N in it");
    refused("digraph a { slices=2; x -> y [slice=\"1-0\"] }",
        "t:1: digraph a: edge x -> y: slice \"1-0\" is no part; write one number from 0 on, or a "
        "range "
        "as \"0-3\"; at most 256 parts");
    refused("digraph a { x -> y [fraction=1] }\ndigraph b { train=false; outer=true; y -> x }\n"
            "digraph c { train=false; y -> x }",
        "t:2: digraph b: outer=true amid an exact cycle, where no node has an estimate; say it in "
        "its last digraph, c");
    refused("digraph a { train=no; x -> y }",
        "t:1: digraph a: train=\"no\" is neither true nor false; write train=false");
    refused("digraph a { train=false; x -> y; y -> x }",
        "t:1: no round of the cycle trains; at least one digraph must not say train=false");
    refused("digraph a {\n x [train=false]; y [train=false]; x -> y; y -> x }",
        "t:1: every node is a relay; at least one must not say train=false");
    refused("digraph a {\n x [starts=2]; x -> y; y -> x }",
        "t:2: node x: starts=\"2\" is no weight to start with; write starts=0 or starts=1");
    refused("digraph a { x -> y; y -> x }\ndigraph b { x -> y;\n x [train=false] }",
        "t:2: node x: train=false is not what the digraph says in which the node comes first; say "
        "it "
        "there");
    refused("digraph a { repeat=2; x -> y; y -> x }",
        "t:1: digraph a: repeat=2 is for digraphs with "
        "once=true; all others are repeated for ever");
    refused(
        "digraph a { once=true; x -> y; y -> x }\ndigraph b { slices=2; x -> y [slice=0, "
        "fraction=1]; y -> x [slice=1, fraction=1] }\ndigraph c { slices=2; train=false; x -> y "
        "[slice=1]; y -> x [slice=0] }",
        "t:1: the digraphs with once=true do not average exactly, and those after them begin with "
        "weight 1 everywhere; make the first ones exact, too, or leave them out");
    refused("digraph a { r [train=false, starts=1]; x -> r [fraction=1]; y -> r [fraction=1] }\n"
            "digraph b { train=false; r -> {x y} [fraction=\"1/2\"] }",
        "t:1: node r is a relay with starts=1, but an exact cycle is the mean of the nodes that "
        "train; "
        "leave starts out");
}

/* ---- rounds, turns and starts ---- */

Test(exact, turns_are_the_rounds_that_train)
{
    /* A prelude of 3 passes of 2 rounds, then cycles of 5 rounds with 3 turns. */
    struct sgp_topology *t = parse(
        "digraph p { once=true; repeat=3; slices=2; x -> y [slice=0, fraction=1]; y -> x [slice=1, "
        "fraction=1] } digraph q { once=true; repeat=3; slices=2; train=false; y -> x [slice=0]; x "
        "-> "
        "y [slice=1] } digraph r { rounds=3; x -> y; y -> x } digraph s { rounds=2; train=false; x "
        "-> "
        "y; y -> x }");
    sgp_round turns = 0;
    for (sgp_round round = 0; round < 60; round++) {
        cr_assert(eq(i64, sgp_topology_turns(t, round), turns), "%ld", (long)round);
        bool trains = !sgp_topology_phase(t, round)->exchanges;
        turns += trains;
        if (trains)
            cr_assert(eq(i64, sgp_topology_after_turns(t, turns), round + 1), "%ld", (long)round);
        sgp_round start = -1;
        cr_assert(eq(int, sgp_topology_is_exact(t, round, &start), round < 6));
        if (round < 6)
            cr_assert(eq(i64, start, round / 2 * 2));
        cr_assert(
            eq(i64, sgp_topology_start_from(t, round), round < 6 ? (round + 1) / 2 * 2 : round));
        cr_assert(eq(int, sgp_topology_opens(t, round), round < 6 && round % 2 == 0));
    }
    cr_assert(zero(i64, sgp_topology_after_turns(t, 0)));
    cr_assert(eq(i64, sgp_topology_next_round(t, 0, 1, 1), 1));
    cr_assert(eq(i64, t->prelude_rounds, 6));
    sgp_topology_destroy(t);
}

Test(exact, an_outer_step_follows_the_last_round_of_its_digraph)
{
    struct sgp_topology *t =
        parse("digraph p { once=true; repeat=2; outer=true; x -> y; y -> x } digraph q { rounds=3; "
              "outer=true; x -> y; y -> x } digraph r { x -> y; y -> x }");
    for (sgp_round round = 0; round < 20; round++) {
        bool expected = round < 2 || (round - 2) % 4 == 2;
        cr_assert(eq(int, sgp_topology_steps_after(t, round), expected), "%ld", (long)round);
    }
    cr_assert(eq(ptr, (void *)sgp_topology_outer(t), (void *)t->phases));
    struct sgp_topology *plain =
        parse("digraph p { once=true; repeat=2; x -> y; y -> x } digraph "
              "q { rounds=3; x -> y; y -> x } digraph r { x -> y; y -> x }");
    cr_assert_null(sgp_topology_outer(plain));
    cr_assert(ne(u64, t->digest, plain->digest));
    sgp_topology_destroy(plain);
    sgp_topology_destroy(t);
}

Test(exact, parts_are_as_equal_as_can_be)
{
    struct sgp_topology *t = family("all-reduce-ring", 4);
    uint64_t next = 0;
    for (uint32_t q = 0; q < 4; q++) {
        struct sgp_slice slice = sgp_topology_parts(t, q, 1, 10);
        cr_assert(eq(u64, slice.first, next));
        cr_assert(eq(u64, slice.count, q < 2 ? 3 : 2));
        next += slice.count;
    }
    struct sgp_slice two = sgp_topology_parts(t, 1, 2, 10);
    cr_assert(two.first == 3 && two.count == 5);
    cr_assert(zero(u64, sgp_topology_parts(t, 3, 1, 3).count)); /* fewer values than parts */
    sgp_topology_destroy(t);
}

/* 8193 values are 33 blocks, of which the last has one value. */
Test(exact, large_parts_are_whole_blocks)
{
    struct sgp_topology *t = family("all-reduce-ring", 4);
    static const uint64_t firsts[] = {0, 2304, 4352, 6400, 8193},
                          few[] = {0, 2048, 4096, 6144, 8191};
    cr_assert(sgp_topology_is_blocked(t, 8193));
    cr_assert(not(sgp_topology_is_blocked(t, 8191)));
    for (uint32_t q = 0; q < 4; q++) {
        struct sgp_slice slice = sgp_topology_parts(t, q, 1, 8193);
        cr_expect(eq(u64, slice.first, firsts[q]));
        cr_expect(eq(u64, slice.first + slice.count, firsts[q + 1]));
        slice = sgp_topology_parts(t, q, 1, 8191);
        cr_expect(eq(u64, slice.first, few[q]));
        cr_expect(eq(u64, slice.first + slice.count, few[q + 1]));
    }
    sgp_topology_destroy(t);
}

/* A file that says nothing of what came later has the digest that it had. */
Test(exact, old_files_keep_their_digest)
{
    struct sgp_topology *t = parse("digraph a { x -> y; y -> x }");
    cr_assert(eq(u64, t->digest, UINT64_C(0xfe98fb57c903cb8d)));
    struct sgp_topology *other = parse("digraph a { x -> y; y -> x; x [train=false] }");
    cr_assert(ne(u64, other->digest, t->digest));
    sgp_topology_destroy(other);
    sgp_topology_destroy(t);
}
