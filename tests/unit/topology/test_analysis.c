/* SPDX-License-Identifier: Apache-2.0 */
/* What `topology check` says, against closed forms and the numbers that are known exactly. */
#include "sgp/analysis.h"
#include "sgp/dot.h"
#include "sgp/generate.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <string.h>

#define COUNT(array) ((uint32_t)(sizeof array / sizeof *(array)))

static struct sgp_analysis of_family(const char *name, uint32_t nodes, uint32_t peers)
{
    struct sgp_topology *topology = NULL;
    struct sgp_analysis analysis;
    struct sgp_generate_options options = {.family = name, .nodes = nodes, .peers = peers};
    cr_assert(zero(int, sgp_generate(&options, NULL, &topology)));
    cr_assert(zero(int, sgp_analyse(topology, &analysis)));
    sgp_topology_destroy(topology);
    return analysis;
}

static struct sgp_analysis of_text(const char *text)
{
    struct sgp_topology *topology = NULL;
    struct sgp_analysis analysis;
    struct sgp_error error = {0};
    cr_assert(
        zero(int, sgp_dot_parse(text, strlen(text), "t", &error, &topology)), "%s", error.text);
    cr_assert(zero(int, sgp_analyse(topology, &analysis)));
    sgp_topology_destroy(topology);
    return analysis;
}

Test(analysis, one_peer_exponential_is_exact_for_powers_of_two)
{
    for (uint32_t n = 2, rounds = 1; n <= 64; n *= 2, rounds++) {
        struct sgp_analysis a = of_family("one-peer-exponential", n, 0);
        cr_assert(eq(i64, a.exact_average_rounds, rounds));
        cr_assert(a.contraction_per_cycle == 0.0);
        cr_assert(zero(u32, a.warning_count), "%s", a.warnings[0]);
        cr_assert(a.doubly_stochastic && a.strongly_connected && !a.diverges);
        cr_assert(eq(u64, a.shares_per_cycle, n * rounds));
        cr_assert(a.weight_min == 1.0 && a.weight_max == 1.0);
    }
    static const uint32_t others[] = {3, 5, 6, 7, 12};
    for (size_t i = 0; i < COUNT(others); i++) {
        struct sgp_analysis a = of_family("one-peer-exponential", others[i], 0);
        cr_assert(eq(i64, a.exact_average_rounds, SGP_ROUND_NONE));
        cr_assert(a.contraction_per_cycle > 0.01 && a.contraction_per_cycle < 0.9);
    }
}

struct base_rounds {
    uint32_t peers, nodes, rounds;
};

static const struct base_rounds published[] = {{1, 2, 1}, {1, 3, 3}, {1, 4, 2}, {1, 5, 5},
    {1, 6, 4}, {1, 7, 5}, {1, 8, 3}, {1, 9, 7}, {1, 10, 6}, {1, 11, 7}, {1, 12, 5}, {1, 13, 7},
    {1, 14, 6}, {1, 15, 7}, {1, 16, 4}, {1, 17, 9}, {1, 24, 6}, {1, 32, 5}, {1, 33, 11}, {2, 3, 1},
    {2, 5, 3}, {2, 7, 4}, {2, 9, 2}, {2, 10, 4}, {2, 27, 3}, {3, 4, 1}, {3, 5, 3}, {3, 8, 2},
    {3, 16, 2}, {3, 32, 3}};

Test(analysis, base_is_exact_after_the_published_rounds)
{
    for (size_t i = 0; i < COUNT(published); i++) {
        const struct base_rounds *b = &published[i];
        struct sgp_analysis a = of_family("base", b->nodes, b->peers);
        cr_assert(eq(i64, a.exact_average_rounds, b->rounds), "peers %u n %u", b->peers, b->nodes);
        cr_assert(a.contraction_per_cycle == 0.0 && a.symmetric && a.doubly_stochastic);
        cr_assert(zero(u32, a.warning_count), "%s", a.warnings[0]);
    }
}

/* Lazy bidirectional ring: second eigenvalue (1 + 2 cos(2 pi / n)) / 3. Directed ring: modulus
 * cos(pi / n). Two peers of six nodes: see the product of both rounds' circulants. */
Test(analysis, contraction_is_the_second_eigenvalue)
{
    for (uint32_t n = 4; n <= 12; n++) {
        struct sgp_analysis a = of_family("bidirectional-ring", n, 0);
        double expected = (1 + 2 * cos(2 * M_PI / n)) / 3;
        cr_assert(epsilon_eq(dbl, a.contraction_per_cycle, expected, 2e-3), "n = %u", n);
        cr_assert(a.symmetric && a.doubly_stochastic && a.window_rounds == 1);
        a = of_family("ring", n, 0);
        cr_assert(epsilon_eq(dbl, a.contraction_per_cycle, cos(M_PI / n), 2e-2), "n = %u", n);
        cr_assert(not(a.symmetric));
    }
    struct sgp_analysis a = of_family("one-peer-exponential", 6, 0);
    double expected = 0;
    for (int j = 1; j < 6; j++)
        expected =
            fmax(expected, fabs(cos(M_PI * j / 6) * cos(M_PI * 2 * j / 6) * cos(M_PI * 4 * j / 6)));
    cr_assert(epsilon_eq(dbl, a.contraction_per_cycle, expected, 1e-2));
}

/* However fast it shrinks: keep 1 - 2^-20 of the way to the average in each round. */
Test(analysis, strong_contraction_is_measured_not_called_exact)
{
    struct sgp_analysis a = of_text("digraph g { a -> b [fraction=0.49999952316284180]; b -> a "
                                    "[fraction=0.49999952316284180] }");
    cr_assert(epsilon_eq(dbl, a.contraction_per_cycle / 0x1p-20, 1.0, 1e-6));
    cr_assert(eq(i64, a.exact_average_rounds, SGP_ROUND_NONE));
}

Test(analysis, one_node_needs_nobody)
{
    for (const struct sgp_generate_family *f = sgp_generate_families; f->name; f++) {
        struct sgp_analysis a = of_family(f->name, 1, 0);
        cr_assert(zero(i64, a.exact_average_rounds));
        cr_assert(a.contraction_per_cycle == 0.0 && a.strongly_connected && a.window_rounds == 1);
        cr_assert(zero(u32, a.warning_count));
    }
}

/* De Bruijn's graph of 8 nodes: one phase, no cycle shorter than needed, exact after 3 rounds. */
Test(analysis, a_static_graph_can_be_exact_after_several_cycles)
{
    struct sgp_analysis a = of_text(
        "digraph g { 0 -> 1 [fraction=0.5]; 1 -> {2 3} [fraction=0.5]; 2 -> {4 5} [fraction=0.5];"
        "3 -> {6 7} [fraction=0.5]; 4 -> {0 1} [fraction=0.5]; 5 -> {2 3} [fraction=0.5];"
        "6 -> {4 5} [fraction=0.5]; 7 -> 6 [fraction=0.5] }");
    cr_assert(eq(i64, a.exact_average_rounds, 3));
    cr_assert(eq(i64, a.rounds_per_cycle, 1));
    cr_assert(a.contraction_per_cycle == 0.0);
}

Test(analysis, the_prelude_counts_for_exactness_only)
{
    struct sgp_analysis a = of_text("digraph p { once=true; rounds=2; a -> {b c}; b -> {a c};"
                                    "c -> {a b} } digraph ring { a -> b -> c -> a }");
    cr_assert(eq(i64, a.exact_average_rounds, 1));
    cr_assert(eq(u64, a.shares_per_cycle, 3));
    cr_assert(eq(i64, a.rounds_per_cycle, 1));
    cr_assert(epsilon_eq(dbl, a.contraction_per_cycle, 0.5, 1e-2));
    cr_assert(eq(u32, a.out_degree_max, 2));
}

Test(analysis, windows_count_rounds_from_the_worst_beginning)
{
    cr_assert(eq(i64, of_family("one-peer-exponential", 8, 0).window_rounds, 3));
    cr_assert(eq(i64, of_family("one-peer-exponential", 7, 0).window_rounds, 1));
    struct sgp_analysis a = of_text(
        "digraph x { rounds=3; a -> b; c } digraph y { b -> c } digraph z { rounds=5; c -> a }");
    cr_assert(eq(i64, a.rounds_per_cycle, 9));
    cr_assert(eq(i64, a.window_rounds, 9)); /* zzzzz xxx y */
    a = of_text("digraph x { rounds=3; a -> b } digraph y { rounds=2; b -> a }");
    cr_assert(eq(i64, a.window_rounds, 4)); /* xxx y */
}

Test(analysis, the_irregular_digraph_has_its_weights)
{
    struct sgp_analysis a = of_text("digraph g { 0 -> {1 2 3}; 1 -> 2; 2 -> {3 4}; 3 -> {4 5};"
                                    "4 -> {5 0}; 5 -> 0 }");
    cr_assert(lt(dbl, a.weight_min, 12.0 / 19 + 0.02));
    cr_assert(gt(dbl, a.weight_max, 24.0 / 19 - 0.02));
    cr_assert(a.strongly_connected && !a.doubly_stochastic && !a.symmetric);
    cr_assert(eq(u32, a.out_degree_max, 3));
    cr_assert(eq(u32, a.in_degree_max, 2));
    cr_assert(eq(u32, a.guard_liars, 0)); /* node 0 has 2 sources */
    cr_assert(eq(u32, a.warning_count, 1));
    cr_assert(
        zero(int, strncmp(a.warnings[0], "not doubly stochastic: weights stray from 1 (", 45)));
}

Test(analysis, unreachable_nodes_are_named)
{
    struct sgp_analysis a =
        of_text("digraph g { a -> b -> c -> a; c -> d; e -> a; a -> f; f -> d }");
    cr_assert(not(a.strongly_connected));
    cr_assert(a.diverges);
    cr_assert(eq(i64, a.window_rounds, SGP_ROUND_NONE));
    cr_assert(isnan(a.contraction_per_cycle));
    cr_assert(eq(i64, a.exact_average_rounds, SGP_ROUND_NONE));
    cr_assert(eq(str, a.warnings[0],
        "cannot converge: e cannot be reached from a; add an edge towards them"));
    cr_assert(eq(str, a.warnings[1],
        "cannot converge: a cannot be reached from d, f; add an edge from them"));
    a = of_text("digraph g { lonely; a -> b; b -> a }");
    cr_assert(eq(str, a.warnings[0],
        "cannot converge: lonely cannot be reached from a; add an edge towards them"));
    a = of_text("digraph g { a; b; c; d; e; f; g; h; i; j; k }");
    cr_assert(eq(str, a.warnings[0],
        "cannot converge: b, c, d, e, f, g, h, i and 2 more cannot be reached from a; "
        "add an edge towards them"));
}

Test(analysis, values_that_only_move_about_do_not_converge)
{
    struct sgp_analysis a = of_text(
        "digraph g { a -> {c d} [fraction=\"1/2\"]; b -> {c d} [fraction=\"1/2\"]; c -> {a b} "
        "[fraction=\"1/2\"]; d -> {a b} [fraction=\"1/2\"] }");
    cr_assert(a.strongly_connected && a.diverges && isnan(a.contraction_per_cycle));
    cr_assert(eq(i64, a.exact_average_rounds, SGP_ROUND_NONE));
    cr_assert(eq(str, a.warnings[0],
        "cannot converge: the cycle moves values about without mixing them; "
        "let every node keep a part (fractions of a node that add up to less than 1)"));
}

Test(analysis, low_weights_are_warned_about)
{
    struct sgp_analysis a = of_text("digraph g { a -> b [fraction=0.9]; b -> a [fraction=0.1] }");
    cr_assert(lt(dbl, a.weight_min, 0.25));
    cr_assert(eq(str, a.warnings[0],
        "the weight of a falls to 0.2, below 0.25, and its steps grow "
        "to the inverse of that; let it keep more or receive more"));
}

Test(analysis, loopback_among_real_addresses_is_warned_about)
{
    struct sgp_analysis a =
        of_text("digraph g { a [address=\"10.0.0.1\"]; b [address=\"127.0.0.1\"];"
                "a -> b -> a }");
    cr_assert(eq(str, a.warnings[0],
        "node b has the loopback address 127.0.0.1:7311, which no other machine reaches, beside a "
        "at "
        "10.0.0.1:7311; give it the address of its machine"));
    cr_assert(zero(u32, of_text("digraph g { a [address=\"[::1]:1\"]; b [address=\"[::1]:2\"];"
                                "a -> b -> a }")
                            .warning_count));
}

Test(analysis, keys_that_cipher_nothing_are_warned_about)
{
    static const char key[] = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    const char *const modes[] = {"", "tls=off;", "tls=offer;", "tls=require;"};
    for (size_t i = 0; i < 4; i++) {
        char text[500];
        (void)snprintf(text, sizeof text,
            "digraph p { %s a [key=\"%s\"]; b [key=\"%.49sE\"]; a -> b; b -> a }", modes[i], key,
            key);
        struct sgp_analysis a = of_text(text);
        cr_expect(eq(u32, a.warning_count, i < 2));
        if (i < 2)
            cr_expect(eq(str, a.warnings[0],
                "nodes have keys, and links are plain all the same (tls=off); write tls=require, "
                "or tls=offer while a fleet that trains goes over to ciphers"));
    }
}

Test(analysis, large_fleets_are_probed)
{
    cr_assert(eq(i64, of_family("one-peer-exponential", 1024, 0).exact_average_rounds, 10));
    cr_assert(
        eq(i64, of_family("one-peer-exponential", 1000, 0).exact_average_rounds, SGP_ROUND_NONE));
    struct sgp_analysis a = of_family("base", 1000, 1);
    cr_assert(eq(i64, a.exact_average_rounds, a.rounds_per_cycle));
    cr_assert(a.contraction_per_cycle == 0.0);
    a = of_family("complete", 300, 0);
    cr_assert(eq(i64, a.exact_average_rounds, 1));
}

Test(analysis, a_node_without_mass_does_not_converge)
{
    struct sgp_analysis a = of_text("digraph y { a -> b } digraph x { rounds=2000; b -> a } ");
    cr_assert(isnan(a.contraction_per_cycle));
    cr_assert(eq(str, a.warnings[0],
        "cannot converge: b gives away all of its mass before it receives any; "
        "let it keep a part, or give in fewer rounds"));
}

Test(analysis, what_is_too_dear_stays_open_with_a_warning)
{
    struct sgp_analysis a = of_text("digraph x { rounds=1000000; a -> {b c d e f g h i j k l}}"
                                    "digraph y { rounds=1000000; {b c d e f g h i j k l} -> a }");
    cr_assert(isnan(a.contraction_per_cycle));
    cr_assert(eq(str, a.warnings[0], "the cycle is too long to find how fast it converges"));
    cr_assert(a.strongly_connected && !a.diverges && a.window_rounds == 1000001);
}
