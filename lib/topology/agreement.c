/* SPDX-License-Identifier: Apache-2.0 */
/* Agreement: after how many rounds of averaging alone the estimates of all nodes are equal.
 *
 * A window of rounds averages if the product of their matrices has rank one: every node then has
 * the same mix of all vectors and weights, whatever these were. That holds if it holds for random
 * vectors with random weights, except for a set of measure zero. So each window is tried on two
 * random vectors, which costs two passes over its edges and not a product of matrices.
 *
 * Any thread; pure except for working memory. */
#include "topology/agreement.h"
#include "sgp/random.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { WEIGHT, COLUMNS = 3 }; /* of a row of mass: a weight, then two vectors */
#define ROUNDS_MAX 4096       /* of a cycle that is examined */
/* The part of their first distance that estimates may keep: the precision of a parameter. */
#define EQUAL 1e-7

struct window {
    const struct sgp_topology *topology;
    double *mass, *next; /* node_count x COLUMNS */
};

static void seed(struct window *window)
{
    struct sgp_random random;
    uint32_t count = window->topology->node_count;
    sgp_random_init(&random, 1, count);
    for (uint32_t i = 0; i < count; i++) {
        double *row = window->mass + (size_t)i * COLUMNS;
        row[WEIGHT] = 0.5 + sgp_random_double(&random);
        for (uint32_t c = WEIGHT + 1; c < COLUMNS; c++)
            row[c] = row[WEIGHT] * (2 * sgp_random_double(&random) - 1);
    }
}

/* Whether all nodes have nearly the same estimates. The first ones are of length 1. */
static bool agree(const struct window *window)
{
    for (uint32_t c = WEIGHT + 1; c < COLUMNS; c++) {
        double least = INFINITY, greatest = -INFINITY;
        for (uint32_t i = 0; i < window->topology->node_count; i++) {
            const double *row = window->mass + (size_t)i * COLUMNS;
            if (!(row[WEIGHT] > 0)) /* the node has given everything away */
                return false;
            least = fmin(least, row[c] / row[WEIGHT]);
            greatest = fmax(greatest, row[c] / row[WEIGHT]);
        }
        if (!(greatest - least <= EQUAL))
            return false;
    }
    return true;
}

/* The length of the least window that begins with `first` and averages; 0: none of two cycles
 * does. */
static uint32_t least_window(struct window *window, sgp_round first)
{
    const struct sgp_topology *topology = window->topology;
    sgp_round most = 2 * topology->rounds_per_cycle;
    seed(window);
    for (sgp_round rounds = 1; rounds <= most; rounds++) {
        const struct sgp_phase *phase = sgp_topology_phase(topology, first + rounds - 1);
        sgp_phase_mix(window->next, window->mass, phase, topology->node_count, COLUMNS);
        double *former = window->mass;
        window->mass = window->next;
        window->next = former;
        if (agree(window))
            return (uint32_t)rounds;
    }
    return 0;
}

static bool is_too_long(const struct sgp_topology *topology)
{
    if (topology->rounds_per_cycle > ROUNDS_MAX)
        return true;
    uint64_t cycle = 0, windows = (uint64_t)topology->rounds_per_cycle;
    for (uint32_t p = 0; p < topology->phase_count; p++)
        if (!topology->phases[p].once)
            cycle += ((uint64_t)topology->phases[p].edge_count + topology->node_count) *
                     topology->phases[p].rounds;
    return cycle > SGP_AGREES_WORK_MAX / (2 * windows);
}

/* Most files only approach the average: where the first window is not found, no other is sought. */
static void fill(const struct sgp_topology *topology, double *memory, uint32_t *agrees)
{
    struct window window = {.topology = topology,
        .mass = memory,
        .next = memory + (size_t)topology->node_count * COLUMNS};
    for (sgp_round r = 0; r < topology->rounds_per_cycle; r++) {
        agrees[r] = least_window(&window, topology->prelude_rounds + r);
        if (agrees[0] == 0)
            return;
    }
}

int sgp_agreement_find(struct sgp_topology *topology)
{
    free(topology->agrees);
    topology->agrees = NULL;
    if (topology->owner != SGP_NODE_NONE || topology->cycle.exact || is_too_long(topology))
        return 0;
    double *memory = calloc((size_t)topology->node_count * COLUMNS, 2 * sizeof *memory);
    uint32_t *agrees = calloc((size_t)topology->rounds_per_cycle, sizeof *agrees);
    int code = memory && agrees ? 0 : -ENOMEM;
    if (!code)
        fill(topology, memory, agrees);
    free(memory);
    if (code) {
        free(agrees);
        return code;
    }
    topology->agrees = agrees;
    return 0;
}

sgp_round sgp_topology_agrees_after(const struct sgp_topology *topology, sgp_round round)
{
    if (topology->agrees == NULL || round < topology->prelude_rounds)
        return SGP_ROUND_NONE;
    sgp_round within = (round - topology->prelude_rounds) % topology->rounds_per_cycle;
    return topology->agrees[within] > 0 ? (sgp_round)topology->agrees[within] : SGP_ROUND_NONE;
}
