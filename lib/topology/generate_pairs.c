/* SPDX-License-Identifier: Apache-2.0 */
/* Random pairs. A phase is a random perfect matching, and the two nodes of a pair exchange halves.
 * If the number of nodes is odd, one node rests in each phase. NoLoCo (Kolehmainen et al. 2025,
 * arXiv 2506.10911) averages over such pairs. Any thread; pure except for memory. */
#include "topology/edges.h"

#include "sgp/random.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* A round of random pairs halves the mean square of what nodes disagree by, so two cycles of 16
 * divide the disagreement by 65536. More phases would make the final cycles longer than they need
 * to be. */
#define PHASES_DEFAULT_MAX 16u

struct draw {
    uint32_t nodes, phases;
    struct sgp_random random;
    uint32_t *orders;  /* phases x nodes: pairs next to each other, and the resting node last */
    uint32_t *rests;   /* node rests[p % nodes] rests in phase p, if the number of nodes is odd */
    uint32_t *parents; /* each node points toward the root of its connected component */
};

static uint32_t *order_of(const struct draw *draw, uint32_t phase)
{
    return draw->orders + (size_t)phase * draw->nodes;
}

static uint32_t rest_of(const struct draw *draw, uint32_t phase)
{
    return draw->nodes % 2 == 0 ? SGP_NODE_NONE : draw->rests[phase % draw->nodes];
}

/* A random order of all nodes, `last` at its end unless that is SGP_NODE_NONE. */
static void draw_order(struct draw *draw, uint32_t last, uint32_t *ret_order)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < draw->nodes; i++)
        if (i != last)
            ret_order[count++] = i;
    sgp_random_shuffle(&draw->random, ret_order, count);
    if (count < draw->nodes)
        ret_order[count] = last;
}

static uint32_t root_of(uint32_t *parents, uint32_t node)
{
    while (parents[node] != node)
        node = parents[node] = parents[parents[node]];
    return node;
}

/* Whether the pairs of all phases together connect all nodes. */
static bool is_connected(struct draw *draw)
{
    uint32_t components = draw->nodes;
    for (uint32_t i = 0; i < draw->nodes; i++)
        draw->parents[i] = i;
    for (uint32_t p = 0; p < draw->phases; p++)
        for (uint32_t i = 0; i + 1 < draw->nodes; i += 2) {
            uint32_t a = root_of(draw->parents, order_of(draw, p)[i]);
            uint32_t b = root_of(draw->parents, order_of(draw, p)[i + 1]);
            components -= a != b;
            draw->parents[a] = b;
        }
    return components == 1;
}

/* Draw the last two phases again, as every other edge of one random cycle through all nodes. If the
 * number of nodes is odd, it is a path. In each of the two phases the end whose turn it is
 * rests. */
static void redraw_last_two(struct draw *draw)
{
    uint32_t n = draw->nodes;
    uint32_t *before = order_of(draw, draw->phases - 2), *last = order_of(draw, draw->phases - 1);
    uint32_t end = rest_of(draw, draw->phases - 1);
    draw_order(draw, rest_of(draw, draw->phases - 2), before);
    for (uint32_t i = 1; i < n; i++)
        if (before[i] == end) {
            before[i] = before[0];
            before[0] = end;
        }
    for (uint32_t i = 0; i < n; i++)
        last[i] = before[(i + 1) % n];
}

static int add_phases(
    const struct draw *draw, struct sgp_topology *topology, bool outer, struct sgp_error *error)
{
    struct sgp_edges edges = {0};
    int code = 0;
    for (uint32_t p = 0; p < draw->phases && !code; p++) {
        const uint32_t *order = order_of(draw, p);
        char name[SGP_NAME_BYTES];
        for (uint32_t i = 0; i + 1 < draw->nodes; i += 2) {
            sgp_edges_push(&edges, order[i], order[i + 1], SGP_FRACTION_DEFAULT);
            sgp_edges_push(&edges, order[i + 1], order[i], SGP_FRACTION_DEFAULT);
        }
        (void)snprintf(name, sizeof name, "pairs%u", p);
        code = sgp_edges_flush_as(&edges, topology,
            &(struct sgp_phase_options){.name = name, .rounds = 1, .outer = outer}, error);
    }
    sgp_edges_finish(&edges);
    return code;
}

/* As many rounds as a round-robin tournament has. With an odd number of nodes each node rests
 * once. */
static uint32_t phases_default(uint32_t nodes)
{
    uint32_t phases = nodes - 1 + nodes % 2;
    return phases < PHASES_DEFAULT_MAX ? phases : PHASES_DEFAULT_MAX;
}

static int check_phases(uint32_t nodes, uint32_t phases, struct sgp_error *error)
{
    if (nodes > 2 && phases < 2)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "one phase of pairs does not connect %u nodes; take --phases 2 or more", nodes);
    if (phases > SGP_PHASES_MAX)
        return sgp_fail(
            error, SGP_E_LIMIT, "%u phases are too many; the limit is %u", phases, SGP_PHASES_MAX);
    uint32_t most = SGP_EDGES_MAX / (nodes - nodes % 2);
    if (phases > most)
        return sgp_fail(error, SGP_E_LIMIT,
            "%u phases of %u nodes have too many edges; take --phases %u or fewer", phases, nodes,
            most);
    return 0;
}

int sgp_generate_pairs(struct sgp_topology *topology, const struct sgp_generate_options *options,
    struct sgp_error *error)
{
    size_t n = options->nodes;
    struct draw draw = {.nodes = options->nodes,
        .phases = options->phases ? options->phases : phases_default(options->nodes)};
    int code = check_phases(draw.nodes, draw.phases, error);
    if (code)
        return code;
    draw.orders = calloc((draw.phases + (size_t)2) * n, sizeof *draw.orders);
    if (!draw.orders)
        return sgp_fail(error, -ENOMEM, "no memory for %u nodes", draw.nodes);
    draw.rests = draw.orders + draw.phases * n;
    draw.parents = draw.rests + n;
    sgp_random_init(&draw.random, options->seed, n);
    draw_order(&draw, SGP_NODE_NONE, draw.rests);
    for (uint32_t p = 0; p < draw.phases; p++)
        draw_order(&draw, rest_of(&draw, p), order_of(&draw, p));
    if (!is_connected(&draw))
        redraw_last_two(&draw);
    code = add_phases(&draw, topology, options->outer, error);
    free(draw.orders);
    return code;
}
