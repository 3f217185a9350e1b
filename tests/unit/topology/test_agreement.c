/* SPDX-License-Identifier: Apache-2.0 */
/* After how many rounds of averaging alone a file makes all estimates equal. */
#include "sgp/generate.h"
#include "sgp/method.h"
#include "sgp/topology.h"

#include <criterion/criterion.h>
#include <assertions.h>

static struct sgp_topology *generate(const char *family, uint32_t nodes)
{
    struct sgp_generate_options options = {.family = family, .nodes = nodes};
    struct sgp_topology *topology;
    struct sgp_error error = {.text = ""};
    cr_assert(zero(int, sgp_generate(&options, &error, &topology)), "%s", error.text);
    return topology;
}

/* Of a one-peer graph each round halves the nodes that differ. The order of hops does not
 * matter. */
Test(agreement, a_file_that_averages_exactly_agrees_from_each_round_on)
{
    static const struct {
        const char *family;
        uint32_t nodes;
        sgp_round rounds;
    } cases[] = {{"one-peer-exponential", 2, 1}, {"one-peer-exponential", 4, 2},
        {"one-peer-exponential", 8, 3}, {"one-peer-exponential", 16, 4}, {"base", 4, 2},
        {"base", 8, 3}, {"complete", 5, 1}, {"ring", 2, 1}, {"ring", 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sgp_topology *topology = generate(cases[i].family, cases[i].nodes);
        for (sgp_round round = 0; round < 2 * topology->rounds_per_cycle + 1; round++)
            cr_expect(eq(i64, sgp_topology_agrees_after(topology, round), cases[i].rounds),
                "%s of %u, from round %lld on", cases[i].family, cases[i].nodes, (long long)round);
        sgp_topology_destroy(topology);
    }
}

/* The graphs of `base` for 6 nodes average in the order of the file. So a window that begins in
 * the middle of a cycle contains the next cycle, unless it averages earlier. */
Test(agreement, a_window_that_begins_in_the_middle_of_a_cycle_may_be_longer)
{
    struct sgp_topology *topology = generate("base", 6);
    sgp_round cycle = topology->rounds_per_cycle, most = 0;
    cr_assert(eq(i64, sgp_topology_agrees_after(topology, 0), cycle));
    for (sgp_round round = 0; round < cycle; round++) {
        sgp_round rounds = sgp_topology_agrees_after(topology, round);
        cr_expect(le(i64, rounds, 2 * cycle - round), "from round %lld on", (long long)round);
        most = rounds > most ? rounds : most;
    }
    cr_expect(gt(i64, most, cycle));
    sgp_topology_destroy(topology);
}

Test(agreement, a_file_that_only_approaches_the_average_does_not_say_when)
{
    static const char *const families[] = {
        "ring", "bidirectional-ring", "star", "torus", "elastic"};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        struct sgp_topology *topology = generate(families[i], 6);
        cr_expect(
            eq(i64, sgp_topology_agrees_after(topology, 0), SGP_ROUND_NONE), "%s", families[i]);
        sgp_topology_destroy(topology);
    }
}

/* Owners and exact cycles do not agree by mixing, and of a prelude nothing is said. */
Test(agreement, of_other_files_nothing_is_said)
{
    static const char *const families[] = {"owner", "token", "all-reduce-ring"};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        struct sgp_topology *topology = generate(families[i], 4);
        cr_expect(
            eq(i64, sgp_topology_agrees_after(topology, 0), SGP_ROUND_NONE), "%s", families[i]);
        sgp_topology_destroy(topology);
    }
}

/* A prelude, a round in which both give, and one without edges. */
static struct sgp_topology *pair(uint32_t rounds_of_prelude)
{
    static const struct sgp_topology_node nodes[] = {{.name = "a"}, {.name = "b"}};
    static const struct sgp_edge both[] = {
        {.source = 0, .target = 1, .fraction = SGP_FRACTION_DEFAULT},
        {.source = 1, .target = 0, .fraction = SGP_FRACTION_DEFAULT}};
    struct sgp_topology *topology;
    cr_assert(zero(int, sgp_topology_create(nodes, 2, NULL, &topology)));
    if (rounds_of_prelude > 0)
        cr_assert(zero(int,
            sgp_topology_add_phase(topology, "begin", rounds_of_prelude, true, both, 2, NULL)));
    cr_assert(zero(int, sgp_topology_add_phase(topology, "both", 1, false, both, 2, NULL)));
    cr_assert(zero(int, sgp_topology_add_phase(topology, "rest", 1, false, both, 0, NULL)));
    cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
    return topology;
}

Test(agreement, the_rounds_of_a_prelude_are_left_out)
{
    struct sgp_topology *topology = pair(3);
    for (sgp_round round = 0; round < 3; round++)
        cr_expect(eq(i64, sgp_topology_agrees_after(topology, round), SGP_ROUND_NONE));
    cr_expect(eq(i64, sgp_topology_agrees_after(topology, 3), 1));
    cr_expect(eq(i64, sgp_topology_agrees_after(topology, 4), 2), "a round without edges first");
    cr_expect(eq(i64, sgp_topology_agrees_after(topology, 5), 1));
    sgp_topology_destroy(topology);
}

/* Metropolis weights of a pair are its default fractions. */
Test(agreement, it_is_found_again_when_fractions_change)
{
    struct sgp_topology *topology = pair(0);
    cr_assert(eq(i64, sgp_topology_agrees_after(topology, 0), 1));
    cr_assert(zero(int, sgp_topology_metropolis(topology, NULL, NULL)));
    cr_assert(eq(i64, sgp_topology_agrees_after(topology, 0), 1));
    sgp_topology_destroy(topology);
}
