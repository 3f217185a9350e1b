/* SPDX-License-Identifier: Apache-2.0 */
/* The figures that Stochastic Gradient Push is known by, on the real core in virtual time: the
 * irregular digraph with its ablations, exact averaging, and the fleet that a partition must not
 * starve. The numbers were computed independently, with rational arithmetic or a plain script. */
#include "sim_fleet.h"

#include "sgp/topology.h"

/* ---- the irregular digraph: six scalar objectives, optimum 4.5 ---- */

static const float centres[] = {1, 2, 3, 4, 5, 12};
static const struct sgp_edge irregular[] = {{0, 1, -1}, {0, 2, -1}, {0, 3, -1}, {1, 2, -1},
    {2, 3, -1}, {2, 4, -1}, {3, 4, -1}, {3, 5, -1}, {4, 5, -1}, {4, 0, -1}, {5, 0, -1}};
#define IRREGULAR_EDGES (sizeof irregular / sizeof irregular[0])

static struct fleet *irregular_fleet(double eta, sgp_round rounds)
{
    struct fleet *fleet = fleet_of_edges(6, irregular, IRREGULAR_EDGES);
    fleet->eta = eta;
    fleet->options.rounds = rounds;
    fleet->options.compute_ns = SGP_MILLISECOND;
    for (int i = 0; i < 6; i++)
        fleet->centre[i][0] = centres[i];
    return fleet;
}

static void assert_between(const struct fleet *fleet, double least, double greatest)
{
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < 6; i++) {
        low = fmin(low, (double)fleet->estimate[i][0]);
        high = fmax(high, (double)fleet->estimate[i][0]);
    }
    cr_assert(epsilon_eq(dbl, low, least, 1e-4));
    cr_assert(epsilon_eq(dbl, high, greatest, 1e-4));
}

Test(figures, debiasing_brings_an_irregular_digraph_to_the_optimum)
{
    static const double expected[] = {4.5484, 4.4810, 4.4732, 4.4864, 4.4723, 4.5386};
    static const double weights[] = {24, 12, 18, 18, 18, 24};
    struct fleet *fleet = irregular_fleet(0.01, 4000);
    fleet_run(fleet);
    for (int i = 0; i < 6; i++) {
        cr_assert(epsilon_eq(dbl, (double)fleet->estimate[i][0], expected[i], 1e-4), "node %d", i);
        cr_assert(epsilon_eq(dbl, fleet->weight[i], weights[i] / 19, 1e-12), "node %d", i);
    }
    cr_assert(le(dbl, fleet_summary(fleet).mass_error, 1e-12));
    fleet_destroy(fleet);
}

Test(figures, a_tenfold_step_leaves_a_wider_disagreement)
{
    struct fleet *fleet = irregular_fleet(0.1, 1000);
    fleet_run(fleet);
    assert_between(fleet, 4.2304, 4.9733);
    cr_assert(le(dbl, fleet_summary(fleet).mass_error, 1e-12));
    fleet_destroy(fleet);
}

/* A trainer that ignores the weight: what is lost without de-biasing. Everything else of it is the
 * quadratic's own. */
static int biased_train(struct sgp_trainer *trainer, double weight, uint32_t steps, double pace,
    struct sgp_training *ret_training);
static struct sgp_trainer_methods biased_methods;
static const struct sgp_trainer_methods *quadratic_methods;

static int biased_train(struct sgp_trainer *trainer, double weight, uint32_t steps, double pace,
    struct sgp_training *ret_training)
{
    (void)weight;
    return quadratic_methods->train(trainer, 1.0, steps, pace, ret_training);
}

static int biased_trainer(void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    int status = fleet_trainer(context, node, ret_trainer);
    if (status < 0)
        return status;
    quadratic_methods = (*ret_trainer)->methods;
    biased_methods = *quadratic_methods;
    biased_methods.train = biased_train;
    (*ret_trainer)->methods = &biased_methods;
    return 0;
}

Test(figures, without_debiasing_it_misses_the_optimum)
{
    static const double expected[] = {5.7266, 2.8314, 4.2408, 4.2428, 4.2382, 5.7202};
    struct fleet *fleet = irregular_fleet(0.01, 4000);
    fleet->options.trainer = biased_trainer;
    fleet_run(fleet);
    for (int i = 0; i < 6; i++) {
        double x = (double)fleet->estimate[i][0] * fleet->weight[i];
        cr_assert(epsilon_eq(dbl, x, expected[i], 1e-4), "node %d", i);
    }
    fleet_destroy(fleet);
}

/* Shares two rounds late. The core is synchronous, so the delay is put into the digraph, as the
 * analysis of delayed push-sum does: every edge becomes a chain of two nodes that train nothing and
 * pass all but a trace on in the next round (all of it would make the file a collective act), so what is given in round k is absorbed in round k + 2. The
 * relays' own weight of 1 stays in the fleet: all weights, and with them eta, scale by 28/6. */
Test(figures, shares_two_rounds_late_still_reach_the_optimum)
{
    static const double default_fraction[] = {1.0 / 4, 1.0 / 2, 1.0 / 3, 1.0 / 3, 1.0 / 3, 1.0 / 2};
    struct sgp_edge edges[3 * IRREGULAR_EDGES];
    uint32_t nodes = 6, count = 0;
    for (uint32_t e = 0; e < IRREGULAR_EDGES; e++, nodes += 2) {
        uint32_t source = irregular[e].source;
        edges[count++] = (struct sgp_edge){source, nodes, default_fraction[source]};
        edges[count++] = (struct sgp_edge){nodes, nodes + 1, 0.9999};
        edges[count++] = (struct sgp_edge){nodes + 1, irregular[e].target, 0.9999};
    }
    struct fleet *fleet = fleet_of_edges(nodes, edges, count);
    fleet->options.rounds = 4000;
    fleet->options.compute_ns = SGP_MILLISECOND;
    fleet->eta = 0.01 * nodes / 6;
    for (uint32_t i = 0; i < nodes; i++) {
        fleet->idle[i] = i >= 6;
        fleet->centre[i][0] = i < 6 ? centres[i] : 0;
    }
    fleet_run(fleet);
    assert_between(fleet, 4.4382, 4.6092);
    fleet_destroy(fleet);
}

/* ---- averaging alone ---- */

static void spread(struct fleet *fleet)
{
    struct sgp_random random;
    sgp_random_init(&random, 5, 0);
    for (uint32_t i = 0; i < fleet->topology->node_count; i++)
        fleet->start[i][0] = (float)sgp_random_below(&random, 4096);
}

/* How far apart the nodes are after `rounds` rounds of averaging. */
static double disagreement_after(const char *family, uint32_t nodes, uint32_t peers, int rounds)
{
    struct fleet *fleet = fleet_generate(family, nodes, peers);
    spread(fleet);
    fleet->options.rounds = rounds;
    fleet->options.final_cycles = 0;
    fleet_run(fleet);
    cr_assert(eq(u32, fleet->row_count, (uint32_t)rounds));
    double disagreement = fleet->rows[rounds - 1].disagreement;
    fleet_destroy(fleet);
    return disagreement;
}

Test(averaging, one_peer_exponential_is_exact_after_log2_n_rounds_only_for_powers_of_two)
{
    for (uint32_t nodes = 2; nodes <= 33; nodes++) {
        int rounds = 0;
        while ((1u << rounds) < nodes)
            rounds++;
        double disagreement = disagreement_after("one-peer-exponential", nodes, 0, rounds);
        if ((nodes & (nodes - 1)) == 0)
            cr_assert(eq(dbl, disagreement, 0.0), "%u nodes", nodes);
        else
            cr_assert(gt(dbl, disagreement, 0.01), "%u nodes", nodes);
    }
}

Test(averaging, base_graphs_are_exact_after_their_published_rounds)
{
    static const struct {
        uint32_t peers, nodes;
        int rounds;
    } published[] = {{1, 2, 1}, {1, 3, 3}, {1, 4, 2}, {1, 5, 5}, {1, 6, 4}, {1, 7, 5}, {1, 8, 3},
        {1, 9, 7}, {1, 10, 6}, {1, 11, 7}, {1, 12, 5}, {1, 13, 7}, {1, 14, 6}, {1, 15, 7},
        {1, 16, 4}, {1, 17, 9}, {1, 24, 6}, {1, 32, 5}, {1, 33, 11}, {2, 3, 1}, {2, 5, 3},
        {2, 6, 2}, {2, 7, 4}, {2, 9, 2}, {2, 10, 4}, {2, 27, 3}, {3, 4, 1}, {3, 5, 3}, {3, 8, 2},
        {3, 16, 2}, {3, 32, 3}};
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        uint32_t nodes = published[i].nodes, peers = published[i].peers;
        int rounds = published[i].rounds;
        cr_assert(lt(dbl, disagreement_after("base", nodes, peers, rounds), 1e-3), "%u nodes, m=%u",
            nodes, peers);
        if (rounds > 1)
            cr_assert(gt(dbl, disagreement_after("base", nodes, peers, rounds - 1), 1),
                "%u nodes, m=%u", nodes, peers);
    }
}

/* Every float of every node in every round, beside a product of matrices in float64. */
static void assert_as_analysed(const char *family, uint32_t nodes, uint32_t peers, int rounds)
{
    double mass[2][FLEET_NODES_MAX];
    for (int watched = 0; watched < rounds; watched++) {
        struct fleet *fleet = fleet_generate(family, nodes, peers);
        spread(fleet);
        for (uint32_t i = 0; i < nodes; i++)
            mass[0][i] = (double)fleet->start[i][0];
        for (int k = 0; k <= watched; k++) {
            const struct sgp_phase *phase = sgp_topology_phase(fleet->topology, k);
            sgp_phase_mix(mass[1], mass[0], phase, nodes, 1);
            memcpy(mass[0], mass[1], sizeof mass[1]);
        }
        fleet->options.rounds = rounds;
        fleet->watched = watched;
        fleet_run(fleet);
        for (uint32_t i = 0; i < nodes && fleet->watched == watched; i++) {
            cr_assert(eq(dbl, fleet->weight[i], 1.0));
            cr_assert(eq(dbl, (double)fleet->estimate[i][0], mass[0][i]), "%s, round %d, node %u",
                family, watched, i);
        }
        fleet_destroy(fleet);
    }
}

Test(averaging, simulated_rounds_are_the_analysis_bit_for_bit_where_dyadic)
{
    assert_as_analysed("one-peer-exponential", 8, 0, 6);
    assert_as_analysed("one-peer-exponential", 32, 0, 6);
    assert_as_analysed("base", 16, 1, 5);
    assert_as_analysed("base", 16, 3, 4);
}

/* ---- no node may starve ---- */

static struct fleet *quadratic_fleet(const char *family, uint32_t nodes, double eta)
{
    struct fleet *fleet = fleet_generate(family, nodes, 0);
    fleet->eta = eta;
    for (uint32_t i = 0; i < nodes; i++)
        fleet->centre[i][0] = (float)i;
    return fleet;
}

/* The fleet of eight after `rounds` rounds, never harmed: what the harmed one is compared with. */
static void assert_as_if_unharmed(const struct fleet *fleet)
{
    struct fleet *other = quadratic_fleet("one-peer-exponential", 8, fleet->eta);
    other->options.rounds = fleet->options.rounds;
    fleet_run(other);
    for (uint32_t i = 0; i < 8; i++) {
        cr_assert(eq(dbl, fleet->weight[i], 1.0), "node %u", i);
        cr_assert(
            epsilon_eq(dbl, (double)fleet->estimate[i][0], (double)other->estimate[i][0], 1e-4),
            "node %u", i);
    }
    fleet_destroy(other);
}

Test(starving, a_fleet_cut_in_halves_for_300_rounds_heals)
{
    static const uint32_t half[] = {0, 1, 2, 3};
    struct sgp_sim_cut cut = {half, 4, SGP_SECOND, 8 * SGP_SECOND};
    struct fleet *fleet = quadratic_fleet("one-peer-exponential", 8, 0.1);
    fleet->options.rounds = 1201;
    fleet->options.cuts = &cut;
    fleet->options.cut_count = 1;
    fleet_open(fleet);
    sgp_round before[8];
    struct sgp_node_status status;
    for (int stop = 0; stop < 2; stop++) { /* both halves train on while they are apart */
        sgp_time until = stop == 0 ? cut.from : cut.to;
        int reached = sgp_sim_run(fleet->sim, until, &fleet->error);
        cr_assert(eq(int, reached, 0), "%s", fleet->error.text);
        for (uint32_t i = 0; i < 8; i++) {
            sgp_node_status(sgp_sim_node(fleet->sim, i), &status);
            if (stop == 0)
                before[i] = status.round;
            else
                cr_assert(ge(i64, status.round - before[i], 300), "node %u", i);
        }
    }
    int ended = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
    cr_assert(eq(int, ended, 0), "%s", fleet->error.text);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(ge(dbl, summary.weight_least, 0.3));
    cr_assert(eq(u32, summary.finished, 8));
    cr_assert(eq(dbl, summary.weight, 8));
    cr_assert(le(dbl, summary.disagreement, 1e-6)); /* the last cycle averages but for rounding */
    cr_assert(gt(u32, fleet->notes[SGP_NOTE_STARVING], 0));
    assert_as_if_unharmed(fleet);
    fleet_destroy(fleet);
}

Test(starving, a_ring_with_one_dead_node_stays_finite_and_names_it)
{
    struct fleet *fleet = quadratic_fleet("ring", 8, 0.1);
    struct sgp_sim_absence death = {3, SGP_SECOND, SGP_TIME_NEVER};
    fleet->options.rounds = 800;
    fleet->options.absences = &death;
    fleet->options.absence_count = 1;
    fleet_run(fleet);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, 7));
    cr_assert(ge(dbl, summary.weight_least, 0.3));
    cr_assert(epsilon_eq(dbl, summary.weight, 8, 1e-12));
    for (uint32_t i = 0; i < 8; i++) {
        if (i == 3)
            continue;
        cr_assert(fabs((double)fleet->estimate[i][0]) < 8, "node %u", i);
        const struct sgp_node *node = sgp_sim_node(fleet->sim, i);
        for (uint32_t l = 0; l < sgp_node_link_count(node); l++) {
            struct sgp_peer_status peer;
            sgp_node_link_status(node, l, &peer);
            cr_assert(eq(int, peer.absent, peer.peer == 3), "node %u about %u", i, peer.peer);
        }
    }
    fleet_destroy(fleet);
}
