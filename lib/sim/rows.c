/* SPDX-License-Identifier: Apache-2.0 */
/* The report of every round: how far the estimates of the nodes are apart when they complete it.
 *
 * Nodes complete a round at different times. So each open round keeps, for each coordinate, the
 * sum, the minimum and the maximum of the estimates so far. That is enough for max |z_i - mean|
 * without keeping any z_i. A row is reported when every present node has completed its round. */
#include "sim/world.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An empty tally; without coordinates if `dimension` is 0. */
static int tally_open(struct sgp_sim_tally *tally, uint64_t dimension)
{
    *tally = (struct sgp_sim_tally){.weight_least = INFINITY};
    if (dimension == 0)
        return 0;
    tally->sum = malloc(3 * dimension * sizeof *tally->sum);
    if (!tally->sum)
        return -ENOMEM;
    tally->least = tally->sum + dimension;
    tally->greatest = tally->least + dimension;
    for (uint64_t c = 0; c < dimension; c++) {
        tally->sum[c] = 0;
        tally->least[c] = INFINITY;
        tally->greatest[c] = -INFINITY;
    }
    return 0;
}

static void tally_add(
    struct sgp_sim_tally *tally, uint64_t dimension, double weight, const float *estimate)
{
    tally->nodes++;
    tally->weight_least = fmin(tally->weight_least, weight);
    for (uint64_t c = 0; c < dimension; c++) {
        double value = (double)estimate[c];
        tally->sum[c] += value;
        if (value < tally->least[c])
            tally->least[c] = value;
        if (value > tally->greatest[c])
            tally->greatest[c] = value;
    }
}

static double tally_disagreement(const struct sgp_sim_tally *tally, uint64_t dimension)
{
    double most = 0;
    for (uint64_t c = 0; c < dimension && tally->nodes > 0; c++) {
        double mean = tally->sum[c] / tally->nodes;
        if (!isfinite(mean))
            return INFINITY;
        most = fmax(most, fmax(tally->greatest[c] - mean, mean - tally->least[c]));
    }
    return most;
}

/* How many coordinates are summed up: without a caller for rows, none. */
static uint64_t tallied(const struct sgp_sim *sim)
{
    return sim->options.row ? sim->options.dimension : 0;
}

/* The tally of a round that is still open, or NULL without memory. */
static struct sgp_sim_tally *tally_of(struct sgp_sim *sim, sgp_round round)
{
    uint64_t index = (uint64_t)(round - sim->row_next);
    if (index >= sim->tally_capacity) {
        uint64_t capacity = 2 * index + 16;
        void *tallies =
            capacity <= UINT32_MAX ? realloc(sim->tallies, capacity * sizeof *sim->tallies) : NULL;
        if (!tallies)
            return NULL;
        sim->tallies = tallies;
        sim->tally_capacity = (uint32_t)capacity;
    }
    while (sim->tally_count <= index) {
        if (tally_open(&sim->tallies[sim->tally_count], tallied(sim)) < 0)
            return NULL;
        sim->tally_count++;
    }
    return &sim->tallies[index];
}

/* Every present node has completed the oldest open round: report it and close it. */
static void tell(struct sgp_sim *sim)
{
    struct sgp_sim_tally *tally = tally_of(sim, sim->row_next);
    if (!tally) {
        sgp_sim_fail(sim, -ENOMEM, "out of memory");
        return;
    }
    sgp_sim_check_all(sim);
    struct sgp_sim_row row = {
        .round = sim->row_next,
        .time = sim->now,
        .nodes = tally->nodes,
        .disagreement = tally_disagreement(tally, tallied(sim)),
        .least = tally->least,
        .greatest = tally->greatest,
        .weight = sgp_sim_weight(sim),
        .weight_least = tally->weight_least,
        .bytes = sim->summary.bytes,
        .shares = sim->summary.shares,
    };
    if (sim->options.row && tally->nodes > 0)
        sim->options.row(sim->options.context, &row);
    free(tally->sum);
    memmove(sim->tallies, sim->tallies + 1, --sim->tally_count * sizeof *sim->tallies);
    sim->row_next++;
}

void sgp_sim_rows_recount(struct sgp_sim *sim)
{
    for (;;) {
        uint32_t present = 0;
        sim->behind = 0;
        for (uint32_t i = 0; i < sim->host_count; i++) {
            const struct sgp_sim_host *host = &sim->hosts[i];
            bool counts = !host->gone && !host->diverged && !host->drained;
            present += counts;
            sim->behind += counts && host->left <= sim->row_next;
        }
        if (sim->behind > 0 || present == 0 || sim->error.code != 0)
            return;
        tell(sim);
    }
}

void sgp_sim_rows_leave(
    struct sgp_sim *sim, struct sgp_sim_host *host, sgp_round round, double weight)
{
    bool was_behind = host->left <= sim->row_next;
    sim->progressed = sim->now;
    if (round < host->left) /* for the second time, after a crash */
        return;
    host->left = round + 1;
    if (round >= sim->row_next && weight > 0) {
        struct sgp_sim_tally *tally = tally_of(sim, round);
        if (!tally) {
            sgp_sim_fail(sim, -ENOMEM, "out of memory");
            return;
        }
        if (sim->options.row || sim->options.left)
            host->trainer->methods->estimate(host->trainer, weight, sim->after);
        tally_add(tally, tallied(sim), weight, sim->after);
        if (sim->options.left)
            sim->options.left(sim->options.context, host->index, round, weight, sim->after);
    }
    if (was_behind && host->left > sim->row_next && --sim->behind == 0)
        sgp_sim_rows_recount(sim);
}

double sgp_sim_rows_disagreement(const struct sgp_sim *sim)
{
    uint64_t dimension = sim->options.dimension;
    struct sgp_sim_tally tally;
    float *estimate = malloc(dimension * sizeof *estimate);
    if (!estimate || tally_open(&tally, dimension) < 0) {
        free(estimate);
        return NAN;
    }
    for (uint32_t i = 0; i < sim->host_count; i++) {
        const struct sgp_sim_host *host = &sim->hosts[i];
        struct sgp_node_status status;
        sgp_node_status(host->node, &status);
        if (host->gone || host->dead || host->drained || host->diverged ||
            status.weight_estimate <= 0)
            continue;
        sgp_sim_estimate(sim, i, estimate);
        tally_add(&tally, dimension, 1, estimate);
    }
    double disagreement = tally_disagreement(&tally, dimension);
    free(tally.sum);
    free(estimate);
    return disagreement;
}

void sgp_sim_rows_finish(struct sgp_sim *sim)
{
    for (uint32_t i = 0; i < sim->tally_count; i++)
        free(sim->tallies[i].sum);
    free(sim->tallies);
}
