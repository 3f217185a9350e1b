/* SPDX-License-Identifier: Apache-2.0 */
/* Exact cycles. A pass of their rounds is a linear map of each part. The map is run here on seeded
 * random vectors, together with the weights. A map that is not the mean differs from it on at least
 * one of them, except with probability zero.
 *
 * Any thread; pure except for memory. */
#include "topology/exact.h"

#include "sgp/random.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PROBES 4u
#define SLACK 1e-9                   /* of a weight, and of a mean of values within 1 */
#define WORK_MAX UINT64_C(400000000) /* number of edges that are examined */

/* One part in a pass. A node's row has its probes, its weight, and its weight by the float32
 * fractions with which trainers compute. */
#define WEIGHT PROBES
#define ROUNDED (PROBES + 1u)
#define COLUMNS (PROBES + 2u)

struct proof {
    struct sgp_topology *topology;
    const struct sgp_cycle *cycle;
    struct sgp_error *error;
    uint32_t *phase;     /* the phase that is checked */
    uint32_t begin, end; /* the phases of the cycle */
    double *rows;        /* node_count x COLUMNS */
    double *given;       /* for each edge of a phase: what is in transit, in the same columns */
    /* node_count x 2: the part of each row that is left, in double, and by float32 fractions */
    double *keeps;
    double means[PROBES];
    uint64_t work;
};

static bool concerns(const struct sgp_edge *edge, uint32_t part)
{
    return edge->part_count == 0 ||
           (part >= edge->part && part < (uint32_t)edge->part + edge->part_count);
}

/* ---- which cycles are exact ---- */

static bool must_be_exact(const struct proof *proof)
{
    if (proof->topology->owner != SGP_NODE_NONE) /* with an owner nothing is averaged */
        return false;
    for (uint32_t p = proof->begin; p < proof->end; p++)
        for (uint32_t e = 0; e < proof->topology->phases[p].edge_count; e++) {
            const struct sgp_edge *edge = &proof->topology->phases[p].out[e];
            if (edge->fraction >= 1 - SGP_FRACTION_SLACK || edge->part_count > 0)
                return true;
        }
    return false;
}

static sgp_round find_opening(const struct proof *proof)
{
    sgp_round round = 0;
    for (uint32_t p = proof->begin; p < proof->end; p++) {
        if (proof->topology->phases[p].edge_count > 0)
            break;
        round += proof->topology->phases[p].rounds;
    }
    return round;
}

/* ---- one part ---- */

static void begin_part(struct proof *proof, uint32_t part)
{
    const struct sgp_topology *topology = proof->topology;
    struct sgp_random random;
    sgp_random_init(&random, 1, part);
    memset(proof->means, 0, sizeof proof->means);
    for (uint32_t i = 0; i < topology->node_count; i++) {
        double *row = proof->rows + (size_t)i * COLUMNS;
        row[WEIGHT] = row[ROUNDED] = sgp_topology_starts(topology, i);
        for (uint32_t c = 0; c < PROBES; c++) {
            row[c] = row[WEIGHT] * (2 * sgp_random_double(&random) - 1);
            proof->means[c] += row[c] / sgp_topology_trainers(topology);
        }
    }
}

static void give(struct proof *proof, const struct sgp_phase *phase, uint32_t part)
{
    uint32_t n = proof->topology->node_count;
    for (size_t i = 0; i < 2 * (size_t)n; i++)
        proof->keeps[i] = 1;
    for (uint32_t e = 0; e < phase->edge_count; e++) {
        const struct sgp_edge *edge = &phase->out[e];
        const double *row = proof->rows + (size_t)edge->source * COLUMNS;
        double *given = proof->given + (size_t)e * COLUMNS;
        if (!concerns(edge, part))
            continue;
        proof->keeps[2 * edge->source] -= edge->fraction;
        proof->keeps[2 * edge->source + 1] -= (double)(float)edge->fraction;
        for (uint32_t c = 0; c < COLUMNS; c++)
            given[c] = (c == ROUNDED ? (double)(float)edge->fraction : edge->fraction) * row[c];
    }
    for (uint32_t i = 0; i < n; i++) {
        bool all = proof->keeps[2 * i] <= SGP_FRACTION_SLACK;
        for (uint32_t c = 0; c < COLUMNS; c++)
            proof->rows[(size_t)i * COLUMNS + c] *= all ? 0 : proof->keeps[2 * i + (c == ROUNDED)];
    }
    for (uint32_t e = 0; e < phase->edge_count; e++)
        for (uint32_t c = 0; concerns(&phase->out[e], part) && c < COLUMNS; c++)
            proof->rows[(size_t)phase->out[e].target * COLUMNS + c] +=
                proof->given[(size_t)e * COLUMNS + c];
    proof->work += phase->edge_count + n;
}

static int run_phase(struct proof *proof, const struct sgp_phase *phase, uint32_t part)
{
    for (uint32_t r = 0; r < phase->rounds; r++) {
        if (phase->edge_count == 0)
            break;
        give(proof, phase, part);
        if (proof->work > WORK_MAX)
            return sgp_fail(proof->error, SGP_E_LIMIT,
                "the cycle is too long to prove that it averages exactly; take fewer rounds");
    }
    return 0;
}

static int check_end(struct proof *proof, uint32_t part)
{
    for (uint32_t i = 0; i < proof->topology->node_count; i++) {
        const double *row = proof->rows + (size_t)i * COLUMNS;
        const char *name = proof->topology->nodes[i].name;
        if (proof->topology->nodes[i].relay)
            continue;
        if (row[WEIGHT] <= SLACK)
            return sgp_fail(proof->error, SGP_E_TOPOLOGY,
                "the cycle ends in digraph %s, and node %s has nothing of part %u then; let it be "
                "given that part before",
                proof->topology->phases[*proof->phase].name, name, part);
        for (uint32_t c = 0; c < PROBES; c++)
            if (!(fabs(row[c] / row[WEIGHT] - proof->means[c]) <= SLACK))
                return sgp_fail(proof->error, SGP_E_TOPOLOGY,
                    "the cycle ends in digraph %s, and part %u of node %s is not the mean of all "
                    "nodes then; a cycle with fraction 1 or with parts must average exactly: see "
                    "sgpctl topology generate, or use smaller fractions of the whole vector",
                    proof->topology->phases[*proof->phase].name, part, name);
    }
    return 0;
}

static int prove_part(struct proof *proof, uint32_t part, double *ends)
{
    uint32_t slices = proof->topology->slices;
    begin_part(proof, part);
    for (uint32_t p = proof->begin; p < proof->end; p++) {
        *proof->phase = p;
        int code = run_phase(proof, &proof->topology->phases[p], part);
        if (code)
            return code;
    }
    for (uint32_t i = 0; i < proof->topology->node_count; i++)
        ends[(size_t)i * slices + part] = proof->rows[(size_t)i * COLUMNS + ROUNDED];
    return check_end(proof, part);
}

/* ---- a cycle ---- */

static int check_starts(struct proof *proof)
{
    const struct sgp_topology *topology = proof->topology;
    for (uint32_t i = 0; i < topology->node_count; i++) {
        bool relay = topology->nodes[i].relay, begins = sgp_topology_starts(topology, i) > 0;
        if (relay == begins)
            return sgp_fail(proof->error, SGP_E_TOPOLOGY,
                relay ? "node %s is a relay with starts=1, but an exact cycle is the mean of the "
                        "nodes "
                        "that train; leave starts out"
                      : "node %s trains and says starts=0, but an exact cycle begins with weight 1 "
                        "at "
                        "every node that trains; leave starts out",
                topology->nodes[i].name);
    }
    return 0;
}

static int check_outer(struct proof *proof)
{
    for (uint32_t p = proof->begin; p + 1 < proof->end; p++) {
        if (!proof->topology->phases[p].outer)
            continue;
        *proof->phase = p;
        return sgp_fail(proof->error, SGP_E_TOPOLOGY,
            "digraph %s: outer=true amid an exact cycle, where no node has an estimate; say it in "
            "its last "
            "digraph, %s",
            proof->topology->phases[p].name, proof->topology->phases[proof->end - 1].name);
    }
    return 0;
}

/* A local step needs an estimate. From the first exchange of a cycle on no node has one, because
 * `x` is then a sum of parts (docs/rules/cycle.md). If the cycle were renewed, the steps after its
 * input vector would be lost, too. */
static int check_training(struct proof *proof)
{
    const struct sgp_phase *phases = proof->topology->phases, *opening = NULL;
    for (uint32_t p = proof->begin; p < proof->end; p++) {
        const struct sgp_phase *phase = &phases[p];
        *proof->phase = p;
        if (opening != NULL && !phase->exchanges)
            return sgp_fail(proof->error, SGP_E_TOPOLOGY,
                "digraph %s trains, but the exchange of the exact cycle has begun in digraph %s; "
                "write train=false in digraph %s",
                phase->name, opening->name, phase->name);
        if (opening == NULL && phase->edge_count > 0)
            opening = phase;
        if (opening == phase && !phase->exchanges && phase->rounds > 1)
            return sgp_fail(proof->error, SGP_E_TOPOLOGY,
                "digraph %s trains in %u rounds, but the exchange of the exact cycle begins in the "
                "first; write rounds=1, and its other rounds as a digraph with train=false",
                phase->name, phase->rounds);
    }
    return 0;
}

static int prove_cycle(struct proof *proof, struct sgp_cycle *cycle)
{
    struct sgp_topology *topology = proof->topology;
    uint32_t edges = 0;
    int code = check_starts(proof);
    if (!code)
        code = check_training(proof);
    if (!code)
        code = check_outer(proof);
    if (code)
        return code;
    for (uint32_t p = proof->begin; p < proof->end; p++)
        edges = topology->phases[p].edge_count > edges ? topology->phases[p].edge_count : edges;
    sgp_assert(edges > 0); /* see must_be_exact */
    size_t nodes = topology->node_count;
    proof->rows = calloc(nodes, COLUMNS * sizeof *proof->rows);
    proof->given = calloc(edges, COLUMNS * sizeof *proof->given);
    proof->keeps = calloc(nodes, 2 * sizeof *proof->keeps);
    cycle->ends = calloc(nodes * topology->slices, sizeof *cycle->ends);
    if (!proof->rows || !proof->given || !proof->keeps || !cycle->ends)
        code = sgp_fail(proof->error, -ENOMEM, "no memory to prove that the cycle is exact");
    for (uint32_t q = 0; q < topology->slices && !code; q++)
        code = prove_part(proof, q, cycle->ends);
    free(proof->rows);
    free(proof->given);
    free(proof->keeps);
    cycle->exact = true;
    cycle->opening = find_opening(proof);
    return code;
}

int sgp_exact_prove(struct sgp_topology *topology, struct sgp_error *error, uint32_t *ret_phase)
{
    uint32_t split = 0;
    while (topology->phases[split].once)
        split++;
    struct proof prelude = {
        .topology = topology, .error = error, .phase = ret_phase, .begin = 0, .end = split};
    struct proof cycle = {.topology = topology,
        .error = error,
        .phase = ret_phase,
        .begin = split,
        .end = topology->phase_count};
    int code = must_be_exact(&prelude) ? prove_cycle(&prelude, &topology->prelude) : 0;
    if (code || !must_be_exact(&cycle))
        return code;
    *ret_phase = 0;
    if (split > 0 && !topology->prelude.exact)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "the digraphs with once=true do not average exactly, and those after them begin with "
            "weight 1 everywhere; make the first ones exact, too, or leave them out");
    return prove_cycle(&cycle, &topology->cycle);
}
