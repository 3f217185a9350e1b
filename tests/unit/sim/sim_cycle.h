/* SPDX-License-Identifier: Apache-2.0 */
/* Fleets on files of exact cycles, for the suites that try them in the simulator. */
#ifndef SIM_CYCLE_H
#define SIM_CYCLE_H

#include "sim_fleet.h"

#include "sgp/random.h"

struct schedule {
    const char *family; /* "drawn": none, see draw_exact */
    uint32_t nodes;
    uint32_t hubs;   /* of all-reduce-hubs, without data */
    uint32_t pieces; /* of one that is drawn: the seed */
};
static const struct schedule schedules[] = {{"all-reduce-ring", 4}, {"all-reduce-ring", 5},
    {"all-reduce-direct", 4}, {"all-reduce-halving", 8}, {"all-reduce-tree", 6},
    {"all-reduce-groups", 7}, {"all-reduce-doubling", 5}, {"all-reduce-blocks", 7},
    {"all-reduce-hubs", 6, 2}, {"all-reduce-ring", 4, 0, 2}, {"all-reduce-direct", 5, 0, 3},
    {"all-reduce-tree", 6, 0, 2}, {"drawn", 5, 0, 1}};
#define SCHEDULES (sizeof schedules / sizeof *schedules)

/* ---- a file that nobody would write ---- */

#define DRAWN_PARTS 3u

/* One part's way: summed up along a tree, and back down it. */
struct drawn {
    uint32_t parent[FLEET_NODES_MAX], depth[FLEET_NODES_MAX], size[FLEET_NODES_MAX], deepest;
};

static void draw_tree(struct drawn *tree, uint32_t nodes, struct sgp_random *random)
{
    uint32_t order[FLEET_NODES_MAX];
    *tree = (struct drawn){0};
    for (uint32_t i = 0; i < nodes; i++)
        order[i] = i;
    sgp_random_shuffle(random, order, nodes);
    for (uint32_t k = 0; k < nodes; k++) {
        uint32_t parent = k > 0 ? order[sgp_random_below(random, k)] : order[0];
        tree->parent[order[k]] = parent;
        tree->depth[order[k]] = k > 0 ? tree->depth[parent] + 1 : 0;
        tree->size[order[k]] = 1;
        if (tree->depth[order[k]] > tree->deepest)
            tree->deepest = tree->depth[order[k]];
    }
    for (uint32_t k = nodes; --k > 0;)
        tree->size[tree->parent[order[k]]] += tree->size[order[k]];
}

/* The edges of a part in one of 2 * depth rounds; false if there is one between the same nodes. */
static bool draw_edges(struct sgp_edge *edges, uint32_t *count, const struct drawn *tree,
    uint32_t part, uint32_t nodes, uint32_t round, uint32_t depth)
{
    for (uint32_t i = 0; i < nodes; i++) {
        uint32_t p = tree->parent[i];
        bool up = tree->depth[i] > 0 && round == depth - tree->depth[i];
        bool down = tree->depth[i] > 0 && round == depth + tree->depth[p];
        struct sgp_edge edge = {.source = up ? i : p,
            .target = up ? p : i,
            .fraction = up ? 1 : (double)tree->size[i] / tree->size[p],
            .part = (uint16_t)part,
            .part_count = 1};
        for (uint32_t e = 0; (up || down) && e < *count; e++)
            if (edges[e].source == edge.source && edges[e].target == edge.target)
                return false;
        if (up || down)
            edges[(*count)++] = edge;
    }
    return true;
}

static struct sgp_topology *draw_rounds(
    const struct drawn trees[DRAWN_PARTS], uint32_t nodes, uint32_t depth)
{
    static struct sgp_topology_node names[FLEET_NODES_MAX];
    struct sgp_edge edges[DRAWN_PARTS * FLEET_NODES_MAX];
    struct sgp_topology *topology;
    struct sgp_error error = {0};
    for (uint32_t i = 0; i < nodes; i++)
        (void)snprintf(names[i].name, sizeof names[i].name, "n%u", i);
    cr_assert(zero(int, sgp_topology_create(names, nodes, NULL, &topology)));
    for (uint32_t round = 0; round < 2 * depth; round++) {
        uint32_t count = 0;
        char name[16];
        bool fits = true;
        for (uint32_t q = 0; q < DRAWN_PARTS && fits; q++)
            fits = draw_edges(edges, &count, &trees[q], q, nodes, round, depth);
        if (!fits) {
            sgp_topology_destroy(topology);
            return NULL;
        }
        (void)snprintf(name, sizeof name, "r%u", round);
        struct sgp_phase_options options = {
            .name = name, .rounds = 1, .exchanges = round > 0, .slices = DRAWN_PARTS};
        cr_assert(zero(int, sgp_topology_add(topology, &options, edges, count, &error)), "%s",
            error.text);
    }
    cr_assert(zero(int, sgp_topology_seal(topology, &error)), "%s", error.text);
    return topology;
}

/* Each part has a tree by chance, of whatever depth and root: an exact cycle with unlike fractions, idle rounds, and nodes that
 * give several parts in a round. */
static struct sgp_topology *draw_exact(uint32_t nodes, uint64_t seed)
{
    struct sgp_topology *topology = NULL;
    struct sgp_random random;
    sgp_random_init(&random, seed, 23);
    while (topology == NULL) {
        struct drawn trees[DRAWN_PARTS];
        uint32_t depth = 0;
        for (uint32_t q = 0; q < DRAWN_PARTS; q++) {
            draw_tree(&trees[q], nodes, &random);
            depth = trees[q].deepest > depth ? trees[q].deepest : depth;
        }
        topology = draw_rounds(trees, nodes, depth);
    }
    return topology;
}

/* ---- fleets ---- */

static struct sgp_topology *make_cut(
    const char *family, uint32_t nodes, uint32_t relays, uint32_t pieces)
{
    if (strcmp(family, "drawn") == 0)
        return draw_exact(nodes, pieces);
    struct sgp_generate_options options = {.family = family, .nodes = nodes, .pieces = pieces};
    if (strcmp(family, "all-reduce-hubs") == 0) {
        options.hubs = relays > 0 ? relays : 2;
        options.relays = relays > 0;
    }
    options.group = strcmp(family, "all-reduce-groups") == 0 ? 3 : 0;
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    cr_assert(zero(int, sgp_generate(&options, &error, &topology)), "%s", error.text);
    return topology;
}

static __attribute__((unused)) struct sgp_topology *make(
    const char *family, uint32_t nodes, uint32_t relays)
{
    return make_cut(family, nodes, relays, 0);
}

/* Quadratics with minima of their own, all of which begin at one place. */
static struct fleet *fleet_of(const struct schedule *schedule)
{
    struct fleet *fleet = fleet_create();
    uint32_t nodes = schedule->nodes;
    fleet->topology = make_cut(schedule->family, nodes, schedule->hubs, schedule->pieces);
    fleet->options.dimension = FLEET_DIMENSION_MAX;
    fleet->options.rounds = 30;
    fleet->options.final_cycles = 1;
    fleet->eta = 0.1;
    for (uint32_t i = 0; i < nodes; i++)
        for (uint32_t c = 0; c < FLEET_DIMENSION_MAX; c++) {
            fleet->centre[i][c] = (float)((i + 1) * (c + 2) % 7) - 3;
            fleet->start[i][c] = 1;
        }
    return fleet;
}

/* The same; each seed draws a file of its own, where one is drawn. */
static __attribute__((unused)) struct fleet *fleet_by_seed(
    const struct schedule *schedule, uint64_t seed)
{
    struct schedule own = *schedule;
    if (strcmp(own.family, "drawn") == 0)
        own.pieces = (uint32_t)seed;
    return fleet_of(&own);
}

static __attribute__((unused)) struct fleet *fleet_that_trains(const char *family, uint32_t nodes)
{
    return fleet_of(&(struct schedule){family, nodes, 0, 0});
}

static bool reaches_nobody(const struct sgp_node *node)
{
    struct sgp_peer_status link;
    for (uint32_t k = 0; k < sgp_node_link_count(node); k++) {
        sgp_node_link_status(node, k, &link);
        if (link.state == SGP_LINK_UP)
            return false;
    }
    return true;
}

/* The greatest difference between values of two nodes. A run may end while a node that was away is still alone: it compares, and
 * mixes, when it meets the others. */
static double apart_of_those_that_meet(const struct fleet *fleet)
{
    uint64_t d = fleet->options.dimension;
    float *values = calloc(3 * d, sizeof *values), *least = values + d, *greatest = least + d;
    double apart = 0;
    bool none = true;
    cr_assert_not_null(values);
    for (uint32_t i = 0; i < fleet->topology->node_count; i++) {
        const struct sgp_node *node = sgp_sim_node(fleet->sim, i);
        struct sgp_node_status status;
        sgp_node_status(node, &status);
        if (!(status.weight_estimate > 0) || reaches_nobody(node))
            continue;
        sgp_sim_estimate(fleet->sim, i, values);
        for (uint64_t c = 0; c < d; c++) {
            least[c] = none ? values[c] : fminf(least[c], values[c]);
            greatest[c] = none ? values[c] : fmaxf(greatest[c], values[c]);
            apart = fmax(apart, (double)(greatest[c] - least[c]));
        }
        none = false;
    }
    free(values);
    return apart;
}

static void expect_all(const struct fleet *fleet, uint32_t finished, double weight)
{
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, finished));
    cr_assert(epsilon_eq(dbl, summary.weight, weight, 1e-11));
    cr_assert(zero(dbl, summary.weight_in_flight));
    cr_assert(lt(dbl, apart_of_those_that_meet(fleet), 1e-4));
}

#endif
