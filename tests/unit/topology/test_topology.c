/* SPDX-License-Identifier: Apache-2.0 */
/* Topologies once built: rounds to phases, edges, weights; and everything the builder refuses. */
#include "sgp/random.h"
#include "sgp/topology.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT SGP_FRACTION_DEFAULT
#define COUNT(array) ((uint32_t)(sizeof array / sizeof *(array)))

static struct sgp_topology *fleet(uint32_t n)
{
    static struct sgp_topology_node nodes[64];
    for (uint32_t i = 0; i < n; i++) {
        memset(&nodes[i], 0, sizeof nodes[i]);
        (void)snprintf(nodes[i].name, sizeof nodes[i].name, "n%u", i);
    }
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    cr_assert(zero(int, sgp_topology_create(nodes, n, &error, &topology)), "%s", error.text);
    return topology;
}

static void add(struct sgp_topology *topology, const char *name, uint32_t rounds, bool once,
    const struct sgp_edge *edges, uint32_t count)
{
    struct sgp_error error = {0};
    cr_assert(zero(int, sgp_topology_add_phase(topology, name, rounds, once, edges, count, &error)),
        "%s", error.text);
}

/* Prelude p of 2 rounds (0->1), cycle a of 1 round (1->2), b of 3 rounds (0->2, 2->0). */
static struct sgp_topology *example(void)
{
    struct sgp_topology *topology = fleet(3);
    add(topology, "p", 2, true, (struct sgp_edge[]){{0, 1, DEFAULT}}, 1);
    add(topology, "a", 1, false, (struct sgp_edge[]){{1, 2, 0.25}}, 1);
    add(topology, "b", 3, false, (struct sgp_edge[]){{2, 0, DEFAULT}, {0, 2, DEFAULT}}, 2);
    cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
    return topology;
}

Test(topology, rounds_run_through_the_prelude_once_and_then_cycle)
{
    struct sgp_topology *topology = example();
    cr_assert(eq(i64, topology->prelude_rounds, 2));
    cr_assert(eq(i64, topology->rounds_per_cycle, 4));
    static const uint32_t expected[] = {0, 0, 1, 2, 2, 2, 1, 2, 2, 2, 1, 2};
    for (sgp_round round = 0; round < COUNT(expected); round++)
        cr_assert(eq(u32, sgp_topology_phase_index(topology, round), expected[round]));
    sgp_round far = (sgp_round)4 * 1000000000000;
    cr_assert(eq(str, (char *)sgp_topology_phase(topology, 2 + far)->name, "a"));
    cr_assert(eq(str, (char *)sgp_topology_phase(topology, 1 + far)->name, "b"));
    sgp_topology_destroy(topology);
    sgp_topology_destroy(NULL);
}

Test(topology, next_round_agrees_with_walking)
{
    struct sgp_topology *topology = example();
    for (uint32_t s = 0; s < 3; s++)
        for (uint32_t t = 0; t < 3; t++)
            for (sgp_round from = 0; from < 12; from++) {
                sgp_round expected = SGP_ROUND_NONE;
                for (sgp_round r = from; r < from + 12 && expected == SGP_ROUND_NONE; r++) {
                    uint32_t count;
                    const struct sgp_edge *out =
                        sgp_phase_out(sgp_topology_phase(topology, r), s, &count);
                    for (uint32_t e = 0; e < count; e++)
                        if (out[e].target == t)
                            expected = r;
                }
                cr_assert(eq(i64, sgp_topology_next_round(topology, s, t, from), expected),
                    "%u -> %u from %d", s, t, (int)from);
            }
    cr_assert(eq(i64, sgp_topology_next_round(topology, 0, 1, 2), SGP_ROUND_NONE));
    cr_assert(eq(i64, sgp_topology_next_round(topology, 0, 2, SGP_ROUND_MAX + 1), SGP_ROUND_NONE));
    sgp_topology_destroy(topology);
}

Test(topology, edges_are_ordered_both_ways)
{
    struct sgp_topology *topology = fleet(5);
    struct sgp_edge edges[20];
    uint32_t count = 0;
    for (uint32_t s = 0; s < 5; s++)
        for (uint32_t t = 0; t < 5; t++)
            if (s != t)
                edges[count++] = (struct sgp_edge){s, t, DEFAULT};
    struct sgp_random random;
    sgp_random_init(&random, 5, 0);
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = (uint32_t)sgp_random_below(&random, i);
        struct sgp_edge kept = edges[j];
        edges[j] = edges[i - 1];
        edges[i - 1] = kept;
    }
    add(topology, "all", 1, false, edges, count);
    for (uint32_t i = 0; i < 5; i++) {
        const struct sgp_edge *out = sgp_phase_out(&topology->phases[0], i, &count);
        cr_assert(eq(u32, count, 4));
        const struct sgp_edge *in = sgp_phase_in(&topology->phases[0], i, &count);
        cr_assert(eq(u32, count, 4));
        for (uint32_t e = 0; e < 4; e++) {
            uint32_t other = e < i ? e : e + 1;
            cr_assert(out[e].source == i && out[e].target == other && out[e].fraction == 0.2);
            cr_assert(in[e].target == i && in[e].source == other && in[e].fraction == 0.2);
        }
        cr_assert(ieee_ulp_eq(dbl, sgp_phase_keep(&topology->phases[0], i), 0.2, 4));
    }
    sgp_topology_destroy(topology);
}

Test(topology, find_knows_every_name_and_no_other)
{
    struct sgp_topology *topology = fleet(23);
    for (uint32_t i = 0; i < 23; i++)
        cr_assert(eq(i64, sgp_topology_find(topology, topology->nodes[i].name), i));
    cr_assert(eq(i64, sgp_topology_find(topology, "n23"), -ENOENT));
    cr_assert(eq(i64, sgp_topology_find(topology, ""), -ENOENT));
    sgp_topology_destroy(topology);
}

Test(topology, digest_covers_everything_but_addresses)
{
    static struct sgp_topology_node nodes[2] = {{"a", "h:1"}, {"b", "h:2"}};
    uint64_t digests[6];
    for (int variant = 0; variant < 6; variant++) {
        struct sgp_topology *topology = NULL;
        (void)strcpy(nodes[0].address, variant == 1 ? "elsewhere:9" : "h:1");
        (void)strcpy(nodes[1].name, variant == 2 ? "c" : "b");
        cr_assert(zero(int, sgp_topology_create(nodes, 2, NULL, &topology)));
        struct sgp_edge edge = {0, 1, variant == 3 ? 0.25 : DEFAULT};
        add(topology, "p", variant == 4 ? 2 : 1, false, &edge, 1);
        if (variant == 5)
            add(topology, "q", 1, false, NULL, 0);
        cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
        digests[variant] = topology->digest;
        sgp_topology_destroy(topology);
    }
    cr_assert(eq(u64, digests[1], digests[0]));
    for (int variant = 2; variant < 6; variant++)
        cr_assert(ne(u64, digests[variant], digests[0]));
}

/* The irregular digraph: from all ones its weights end at (24, 12, 18, 18, 18, 24) / 19. */
static const struct sgp_edge irregular[] = {{0, 1, DEFAULT}, {0, 2, DEFAULT}, {0, 3, DEFAULT},
    {1, 2, DEFAULT}, {2, 3, DEFAULT}, {2, 4, DEFAULT}, {3, 4, DEFAULT}, {3, 5, DEFAULT},
    {4, 5, DEFAULT}, {4, 0, DEFAULT}, {5, 0, DEFAULT}};

Test(topology, mixing_the_irregular_digraph_ends_at_its_known_weights)
{
    struct sgp_topology *topology = fleet(6);
    add(topology, "g", 1, false, irregular, COUNT(irregular));
    double w[6] = {1, 1, 1, 1, 1, 1}, next[6], total = 0;
    for (int round = 0; round < 200; round++) {
        sgp_phase_mix(next, w, &topology->phases[0], 6, 1);
        memcpy(w, next, sizeof w);
    }
    static const double expected[] = {24, 12, 18, 18, 18, 24};
    for (int i = 0; i < 6; i++) {
        cr_assert(epsilon_eq(dbl, w[i], expected[i] / 19, 1e-12));
        total += w[i];
    }
    cr_assert(epsilon_eq(dbl, total, 6, 1e-12));
    sgp_topology_destroy(topology);
}

Test(topology, mixing_columns_is_mixing_each_alone)
{
    struct sgp_topology *topology = fleet(6);
    add(topology, "g", 1, false, irregular, COUNT(irregular));
    double wide[6 * 3], next[6 * 3], alone[6], alone_next[6];
    for (int i = 0; i < 18; i++)
        wide[i] = i * i - 40;
    sgp_phase_mix(next, wide, &topology->phases[0], 6, 3);
    for (int c = 0; c < 3; c++) {
        for (int i = 0; i < 6; i++)
            alone[i] = wide[i * 3 + c];
        sgp_phase_mix(alone_next, alone, &topology->phases[0], 6, 1);
        for (int i = 0; i < 6; i++)
            cr_assert(alone_next[i] == next[i * 3 + c]);
    }
    sgp_topology_destroy(topology);
}

Test(topology, least_weights_count_the_prelude_and_ten_cycles_before_giving)
{
    /* 0 gives half to 1 in each round and hears nothing: 1, 1/2, ... 2^-11 before the 12th round,
     * the prelude's 2 and ten cycles of 1. */
    struct sgp_topology *topology = fleet(2);
    struct sgp_edge edge = {0, 1, DEFAULT};
    add(topology, "prelude", 2, true, &edge, 1);
    add(topology, "cycle", 1, false, &edge, 1);
    cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
    double least[2], greatest[2];
    cr_assert(zero(int, sgp_topology_weight_range(topology, least, greatest)));
    cr_assert(least[0] == 0x1p-11 && least[1] == 1.0);
    cr_assert(greatest[0] == 1.0 && greatest[1] == 2.0 - 0x1p-11);
    double again[2];
    cr_assert(zero(int, sgp_topology_weight_least(topology, again)));
    cr_assert(zero(int, memcmp(again, least, sizeof least)));
    sgp_topology_destroy(topology);
}

Test(topology, a_very_long_phase_does_not_take_long)
{
    struct sgp_topology *topology = fleet(64);
    for (uint32_t p = 0; p < 200; p++)
        add(topology, "idle", SGP_PHASE_ROUNDS_MAX, false, NULL, 0);
    cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
    double least[64];
    cr_assert(zero(int, sgp_topology_weight_least(topology, least)));
    cr_assert(least[63] == 1.0);
    sgp_topology_destroy(topology);
}

struct refusal {
    const char *text;
    int code;
    uint32_t count;
    struct sgp_edge edges[4];
};

Test(topology, bad_edges_are_refused_with_the_reason_and_change_nothing)
{
    static const struct refusal refusals[] = {
        {"edge n1 -> n1 is a self-loop; what is not given away stays, so leave it out",
            SGP_E_TOPOLOGY, 2, {{0, 1, DEFAULT}, {1, 1, DEFAULT}}},
        {"edge n0 -> n2 is repeated; write it once, with the sum as its fraction", SGP_E_TOPOLOGY,
            3, {{0, 2, 0.1}, {0, 1, 0.1}, {0, 2, 0.1}}},
        {"edge n0 -> n1 gives the fraction 1.5; a fraction is above 0 and at most 1",
            SGP_E_TOPOLOGY, 1, {{0, 1, 1.5}}},
        {"edge n0 -> n1 gives the fraction nan; a fraction is above 0 and at most 1",
            SGP_E_TOPOLOGY, 1, {{0, 1, (double)NAN}}},
        {"node n2 gives away 1.25 in all (column above 1); its fractions must add up to at most 1",
            SGP_E_TOPOLOGY, 2, {{2, 0, 0.5}, {2, 1, 0.75}}},
    };
    struct sgp_topology *topology = fleet(3);
    for (size_t i = 0; i < COUNT(refusals); i++) {
        const struct refusal *r = &refusals[i];
        struct sgp_error error = {0};
        cr_assert(eq(int,
            sgp_topology_add_phase(topology, "p", 1, false, r->edges, r->count, &error), r->code));
        cr_assert(eq(str, error.text, (char *)r->text));
        cr_assert(zero(u32, topology->phase_count));
    }
    sgp_topology_destroy(topology);
}

Test(topology, two_thirds_and_a_third_are_one)
{
    struct sgp_topology *topology = fleet(8);
    struct sgp_edge edges[] = {{0, 1, 2.0 / 3}, {0, 2, 1.0 / 3}, {1, 2, 0.1}, {1, 3, 0.2},
        {1, 4, 0.7}, {2, 3, 1.0 / 3}, {2, 4, 1.0 / 3}, {2, 5, 1.0 / 3}};
    add(topology, "p", 1, false, edges, COUNT(edges));
    for (uint32_t i = 0; i < 3; i++) {
        double keep = sgp_phase_keep(&topology->phases[0], i);
        cr_assert(keep >= 0.0 && keep < 1e-15);
    }
    sgp_topology_destroy(topology);
}

Test(topology, bad_phases_are_refused)
{
    struct sgp_topology *topology = fleet(2);
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_topology_seal(topology, &error), SGP_E_TOPOLOGY));
    cr_assert(eq(str, error.text,
        "there is no phase in the cycle; at least one phase must not be marked once"));
    add(topology, "start", 1, true, NULL, 0);
    error = (struct sgp_error){0};
    cr_assert(eq(int, sgp_topology_seal(topology, &error), SGP_E_TOPOLOGY));
    add(topology, "cycle", 1, false, NULL, 0);
    error = (struct sgp_error){0};
    cr_assert(eq(
        int, sgp_topology_add_phase(topology, "late", 1, true, NULL, 0, &error), SGP_E_TOPOLOGY));
    cr_assert(eq(str, error.text,
        "phase late is marked once but stands after phase cycle, which is not; "
        "put the phases with once=true first"));
    error = (struct sgp_error){0};
    cr_assert(
        eq(int, sgp_topology_add_phase(topology, "x", 0, false, NULL, 0, &error), SGP_E_TOPOLOGY));
    cr_assert(eq(str, error.text, "rounds=0 is out of range; a phase holds for 1 to 1048576"));
    error = (struct sgp_error){0};
    cr_assert(eq(
        int, sgp_topology_add_phase(topology, "a b", 1, false, NULL, 0, &error), SGP_E_TOPOLOGY));
    cr_assert(eq(str, error.text,
        "phase name \"a b\" cannot be used; "
        "a name has 1 to 63 letters, digits, '_', '-' or '.'"));
    for (uint32_t p = 2; p < SGP_PHASES_MAX; p++)
        add(topology, "p", 1, false, NULL, 0);
    error = (struct sgp_error){0};
    cr_assert(
        eq(int, sgp_topology_add_phase(topology, "p", 1, false, NULL, 0, &error), SGP_E_LIMIT));
    cr_assert(eq(str, error.text, "there are too many phases; the limit is 4096"));
    cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
    sgp_topology_destroy(topology);
}

static void refused_nodes(const struct sgp_topology_node *nodes, uint32_t count, const char *text)
{
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    cr_assert(ne(int, sgp_topology_create(nodes, count, &error, &topology), 0));
    cr_assert(eq(str, error.text, (char *)text));
    cr_assert(zero(ptr, topology));
}

Test(topology, bad_fleets_are_refused)
{
    static struct sgp_topology_node nodes[3] = {{"a", "h:1"}, {"b", "h:2"}, {"c", "h:1"}};
    refused_nodes(nodes, 0, "there is no node; a topology has at least one");
    refused_nodes(nodes, SGP_NODES_MAX + 1, "65537 nodes are too many; the limit is 65536");
    refused_nodes(
        nodes, 3, "nodes a and c have the same address h:1; every node needs one of its own");
    strcpy(nodes[2].address, "");
    strcpy(nodes[1].address, "");
    strcpy(nodes[2].name, "b");
    refused_nodes(nodes, 3, "two nodes are named b; every node needs a name of its own");
    strcpy(nodes[2].name, "");
    refused_nodes(nodes, 3,
        "node name \"\" cannot be used; "
        "a name has 1 to 63 letters, digits, '_', '-' or '.'");
    strcpy(nodes[2].name, "x\ny");
    refused_nodes(nodes, 3,
        "node name \"x?y\" cannot be used; "
        "a name has 1 to 63 letters, digits, '_', '-' or '.'");
}

Test(topology, an_edge_out_of_range_is_a_programmers_error, .signal = SIGABRT)
{
    struct sgp_topology *topology = fleet(2);
    add(topology, "p", 1, false, (struct sgp_edge[]){{0, 2, DEFAULT}}, 1);
}

static void splits(const char *address, const char *host, uint16_t port)
{
    char got[SGP_ADDRESS_BYTES];
    uint16_t got_port = 0;
    struct sgp_error error = {0};
    cr_assert(zero(int, sgp_address_split(address, &error, got, &got_port)), "%s", error.text);
    cr_assert(eq(str, got, (char *)host));
    cr_assert(eq(u16, got_port, port));
}

static void refused_address(const char *address, const char *text)
{
    char host[SGP_ADDRESS_BYTES] = "untouched";
    uint16_t port = 5;
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_address_split(address, &error, host, &port), SGP_E_TOPOLOGY));
    if (text)
        cr_assert(eq(str, error.text, (char *)text));
    cr_assert(eq(str, host, "untouched"));
    cr_assert(eq(u16, port, 5));
}

Test(address, hosts_and_ports_are_split)
{
    splits("10.0.0.1:7400", "10.0.0.1", 7400);
    splits("10.0.0.1", "10.0.0.1", 7311);
    splits("box-3.example.org:1", "box-3.example.org", 1);
    splits("[fd00::1]:65535", "fd00::1", 65535);
    splits("[fe80::1%eth0]", "fe80::1%eth0", 7311);
}

Test(address, bad_addresses_are_refused)
{
    refused_address("", "address \"\" has no usable host; "
                        "write HOST:PORT, 10.0.0.1:7311 or [fd00::1]:7311");
    refused_address("fd00::1", "address \"fd00::1\" has more than one colon; "
                               "an IPv6 address is written in brackets, [fd00::1]:7311");
    refused_address(
        "h:70000", "address \"h:70000\" has a bad port; a port is a number from 1 to 65535");
    static const char *const bad[] = {":7311", "h:", "h:0", "h:65536", "h:7x", "h:-1", "h:000080",
        "[fd00::1", "[]:1", "[box-2]:1", "[eth0%1]:7", "[fd00::1]7311", "a b:1", "h/x:1", "\xff:1"};
    for (size_t i = 0; i < COUNT(bad); i++)
        refused_address(bad[i], NULL);
    char longest[SGP_ADDRESS_BYTES + 10];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    refused_address(longest, NULL);
}

/* ---- Metropolis weights ---- */

static struct sgp_topology *path_of_three(double middle, bool reverse)
{
    struct sgp_topology_node names[3] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    const struct sgp_edge edges[] = {{.source = 0, .target = 1, .fraction = SGP_FRACTION_DEFAULT},
        {.source = 1, .target = 0, .fraction = SGP_FRACTION_DEFAULT},
        {.source = 1, .target = 2, .fraction = middle},
        {.source = 2, .target = 1, .fraction = middle}};
    struct sgp_topology *topology = NULL;
    cr_assert(eq(int, sgp_topology_create(names, 3, NULL, &topology), 0));
    cr_assert(
        eq(int, sgp_topology_add_phase(topology, "p", 1, false, edges, reverse ? 4 : 3, NULL), 0));
    cr_assert(eq(int, sgp_topology_seal(topology, NULL), 0));
    return topology;
}

Test(metropolis, unequal_degrees_get_the_fraction_of_the_greater)
{
    struct sgp_topology *topology = path_of_three(SGP_FRACTION_DEFAULT, true);
    cr_assert(eq(dbl, topology->phases[0].out[0].fraction, 1.0 / 2), "the default of one edge");
    cr_assert(eq(int, sgp_topology_metropolis(topology, NULL, NULL), 0));
    for (int e = 0; e < 4; e++) {
        cr_assert(eq(dbl, topology->phases[0].out[e].fraction, 1.0 / 3));
        cr_assert(eq(dbl, topology->phases[0].in[e].fraction, 1.0 / 3));
    }
    sgp_topology_destroy(topology);
}

Test(metropolis, a_fraction_that_is_written_stays)
{
    struct sgp_topology *topology = path_of_three(0.25, true);
    cr_assert(eq(int, sgp_topology_metropolis(topology, NULL, NULL), 0));
    cr_assert(eq(dbl, topology->phases[0].out[0].fraction, 1.0 / 3));
    cr_assert(eq(dbl, topology->phases[0].out[2].fraction, 0.25));
    sgp_topology_destroy(topology);
}

Test(metropolis, what_cannot_be_symmetric_is_refused)
{
    struct sgp_error error = {0};
    struct sgp_topology *topology = path_of_three(SGP_FRACTION_DEFAULT, false);
    struct sgp_edge_place culprit;
    cr_assert(eq(int, sgp_topology_metropolis(topology, &error, &culprit), SGP_E_TOPOLOGY));
    cr_assert(eq(u32, culprit.phase, 0));
    cr_assert(eq(u32, culprit.source, 1));
    cr_assert(eq(u32, culprit.target, 2));
    cr_assert(eq(str, error.text,
        "digraph p: edge b -> c has no reverse of the same fraction; this method wants a symmetric "
        "topology, such as bidirectional-ring, or choose sgp"));
    sgp_topology_destroy(topology);
}

/* a <-> b in one digraph; b -> c in one and c -> b in another, by other fractions. */
Test(reverses, every_edge_may_have_its_reverse_in_another_digraph)
{
    static const struct sgp_topology_node names[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    static const struct sgp_edge first[] = {{0, 1, 0.5}, {1, 0, 0.25}, {1, 2, 0.25}};
    static const struct sgp_edge second[] = {{2, 1, 0.75}};
    struct sgp_error error = {0};
    struct sgp_edge_place culprit = {0};
    for (uint32_t phases = 1; phases <= 2; phases++) {
        struct sgp_topology *topology;
        cr_assert(zero(int, sgp_topology_create(names, 3, NULL, &topology)));
        cr_assert(zero(int, sgp_topology_add_phase(topology, "p", 1, false, first, 3, NULL)));
        if (phases == 2)
            cr_assert(zero(int, sgp_topology_add_phase(topology, "q", 1, false, second, 1, NULL)));
        cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
        cr_assert(eq(int, sgp_topology_reverses(topology, &error, &culprit),
            phases == 2 ? 0 : SGP_E_TOPOLOGY));
        sgp_topology_destroy(topology);
    }
    cr_assert(eq(u32, culprit.source, 1));
    cr_assert(eq(u32, culprit.target, 2));
    cr_assert(eq(str, error.text,
        "digraph p: edge b -> c has no reverse in any digraph of the file; this method wants every "
        "neighbour to answer: add c -> b, or choose agp"));
}

/* ---- how a vector spreads ---- */

static void expect_sources(struct sgp_topology *topology, const uint32_t *expected)
{
    uint32_t sources[64];
    cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
    cr_assert(zero(int, sgp_topology_spread(topology, 0, sources)));
    for (uint32_t i = 0; i < topology->node_count; i++)
        cr_expect(eq(u32, sources[i], expected[i]), "node %u", i);
    sgp_topology_destroy(topology);
}

/* In the first turn n0 serves n1, in the second n0 serves n2 and n1 n3, in the third n2 serves n4,
 * n1 n5 and n3 n6, and in the fourth n2 serves n7. */
Test(spread, nodes_that_have_the_vector_serve_two_each_in_turn)
{
    struct sgp_topology *topology = fleet(8);
    struct sgp_edge edges[56];
    uint32_t count = 0;
    for (uint32_t i = 0; i < 8; i++)
        for (uint32_t j = 0; j < 8; j++)
            if (i != j)
                edges[count++] = (struct sgp_edge){i, j, DEFAULT};
    add(topology, "all", 1, false, edges, count);
    expect_sources(topology, (uint32_t[]){SGP_NODE_NONE, 0, 0, 1, 2, 1, 3, 2});
}

/* n0 alone reaches n3 and n4; n5 is reached by nobody. Edges of all phases count. */
Test(spread, a_node_serves_more_than_two_where_edges_leave_no_other_way)
{
    struct sgp_topology *topology = fleet(6);
    const struct sgp_edge first[] = {{0, 1, 0.1}, {0, 2, 0.1}, {0, 3, 0.1}, {5, 0, 0.1}};
    const struct sgp_edge second[] = {{0, 4, 0.1}, {1, 2, 0.1}};
    add(topology, "p", 1, false, first, 4);
    add(topology, "q", 1, false, second, 2);
    expect_sources(topology, (uint32_t[]){SGP_NODE_NONE, 0, 0, 0, 0, SGP_NODE_NONE});
}

Test(spread, a_relay_serves_nobody)
{
    const struct sgp_topology_node nodes[] = {
        {.name = "a"}, {.name = "r", .relay = true}, {.name = "b"}, {.name = "c"}};
    struct sgp_topology *topology;
    const struct sgp_edge edges[] = {{0, 1, 0.1}, {1, 2, 0.1}, {1, 3, 0.1}, {0, 3, 0.1}};
    cr_assert(zero(int, sgp_topology_create(nodes, 4, NULL, &topology)));
    add(topology, "p", 1, false, edges, 4);
    expect_sources(topology, (uint32_t[]){SGP_NODE_NONE, 0, SGP_NODE_NONE, 0});
}
