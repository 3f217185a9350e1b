/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's suites share: scalar objectives, topologies from a list of edges, and a record
 * of what every node left its last rounds with. Plain functions, one fleet a test. */
#ifndef SIM_FLEET_H
#define SIM_FLEET_H

#include "sgp/generate.h"
#include "sgp/method.h"
#include "sgp/quadratic.h"
#include "sgp/sim.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLEET_NODES_MAX 64
#define FLEET_DIMENSION_MAX 4
#define FLEET_ROWS_MAX 4096

struct fleet {
    struct sgp_topology *topology;
    struct sgp_sim_options options;
    struct sgp_sim *sim;
    double eta;
    struct sgp_outer_settings outer;
    float centre[FLEET_NODES_MAX][FLEET_DIMENSION_MAX];
    float start[FLEET_NODES_MAX][FLEET_DIMENSION_MAX];
    bool idle[FLEET_NODES_MAX]; /* trains nothing */
    sgp_round watched;          /* the round recorded below */
    double weight[FLEET_NODES_MAX];
    float estimate[FLEET_NODES_MAX][FLEET_DIMENSION_MAX];
    uint32_t row_count;
    struct sgp_sim_row rows[FLEET_ROWS_MAX];
    uint32_t notes[SGP_NOTE_COUNT];
    struct sgp_error error;
};

static int fleet_trainer(void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    const struct fleet *fleet = context;
    int status = sgp_quadratic_create(fleet->options.dimension, fleet->centre[node],
        fleet->start[node], fleet->idle[node] ? 0 : fleet->eta, ret_trainer);
    return status < 0 ? status : sgp_quadratic_begin_outer(*ret_trainer, &fleet->outer);
}

/* For fleets larger than the tables above: node i starts at i. */
static __attribute__((unused)) int fleet_counting_trainer(
    void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    const struct fleet *fleet = context;
    float centre = 0, start = (float)node;
    return sgp_quadratic_create(1, &centre, &start, fleet->eta, ret_trainer);
}

/* How much of a campaign is run: all with scripts/check --long (SGP_LONG), an eighth of it on a submission. Under a
 * sanitizer (SGP_FEW) a submission runs `few`, and --long a quarter: a sanitizer makes a simulation several times as
 * slow, and looks for something else. */
static __attribute__((unused)) uint32_t fleet_many(uint32_t all, uint32_t few)
{
    bool is_long = getenv("SGP_LONG") != NULL, is_few = getenv("SGP_FEW") != NULL;
    if (is_long && !is_few)
        return all;
    if (is_long)
        return all / 4;
    return is_few ? few : (all + 7) / 8;
}

/* The same, and with SGP_LONG still more where no sanitizer makes each several times as slow. */
static __attribute__((unused)) uint32_t fleet_most(uint32_t most, uint32_t all, uint32_t few)
{
    bool at_length = getenv("SGP_LONG") != NULL && getenv("SGP_FEW") == NULL;
    return at_length ? most : fleet_many(all, few);
}

static void fleet_row(void *context, const struct sgp_sim_row *row)
{
    struct fleet *fleet = context;
    if (fleet->row_count < FLEET_ROWS_MAX)
        fleet->rows[fleet->row_count++] = *row;
}

static void fleet_left(
    void *context, uint32_t node, sgp_round round, double weight, const float *estimate)
{
    struct fleet *fleet = context;
    if (round != fleet->watched)
        return;
    fleet->weight[node] = weight;
    memcpy(fleet->estimate[node], estimate, fleet->options.dimension * sizeof *estimate);
}

static void fleet_note(void *context, uint32_t node, sgp_time now, const struct sgp_effect *note)
{
    struct fleet *fleet = context;
    (void)node;
    (void)now;
    fleet->notes[note->note.what]++;
}

/* A fleet that only averages, of dimension 1, without edges yet. */
static struct fleet *fleet_create(void)
{
    struct fleet *fleet = calloc(1, sizeof *fleet);
    cr_assert(fleet != NULL);
    sgp_sim_options_init(&fleet->options);
    fleet->options.dimension = 1;
    fleet->options.context = fleet;
    fleet->options.trainer = fleet_trainer;
    fleet->options.row = fleet_row;
    fleet->options.left = fleet_left;
    fleet->options.note = fleet_note;
    return fleet;
}

static __attribute__((unused)) struct fleet *fleet_generate(
    const char *family, uint32_t nodes, uint32_t peers)
{
    struct fleet *fleet = fleet_create();
    struct sgp_generate_options options = {.family = family, .nodes = nodes, .peers = peers};
    cr_assert(eq(int, sgp_generate(&options, &fleet->error, &fleet->topology), 0), "%s",
        fleet->error.text);
    return fleet;
}

/* One phase of one round; sources and targets by index, fractions as given (negative: the default). */
static __attribute__((unused)) struct fleet *fleet_of_edges(
    uint32_t nodes, const struct sgp_edge *edges, uint32_t count)
{
    struct fleet *fleet = fleet_create();
    struct sgp_topology_node names[FLEET_NODES_MAX] = {0};
    for (uint32_t i = 0; i < nodes; i++)
        (void)snprintf(names[i].name, sizeof names[i].name, "n%u", i);
    cr_assert(eq(int, sgp_topology_create(names, nodes, &fleet->error, &fleet->topology), 0));
    cr_assert(
        eq(int, sgp_topology_add_phase(fleet->topology, "p", 1, false, edges, count, &fleet->error),
            0),
        "%s", fleet->error.text);
    cr_assert(eq(int, sgp_topology_seal(fleet->topology, &fleet->error), 0));
    return fleet;
}

/* Owners, of which those that train, from node `first` on, begin at one place: so it does not matter who owns what. */
static __attribute__((unused)) struct fleet *fleet_of_owners(
    const char *method, const struct sgp_generate_options *options, uint32_t first)
{
    struct fleet *fleet = fleet_create();
    cr_assert(
        zero(int, sgp_generate(options, &fleet->error, &fleet->topology)), "%s", fleet->error.text);
    fleet->options.method = sgp_method_find(method);
    fleet->options.dimension = FLEET_DIMENSION_MAX;
    fleet->options.rounds = 60;
    fleet->options.bandwidth = 0;
    fleet->eta = 0.1;
    for (uint32_t i = 0; i < fleet->topology->node_count; i++)
        for (uint32_t c = 0; c < FLEET_DIMENSION_MAX; c++) {
            uint32_t worker = i < first ? 0 : i - first;
            fleet->centre[i][c] = (float)((worker + 2) * (c + 2) % 7) - 3;
            fleet->start[i][c] = (float)c - 2;
        }
    return fleet;
}

/* Create the simulation and run it until everybody has finished; watches the last training round
 * unless told otherwise. No invariant may break. */
static void fleet_open(struct fleet *fleet)
{
    if (fleet->watched == 0)
        fleet->watched = fleet->options.rounds - 1;
    cr_assert(
        eq(int, sgp_sim_create(fleet->topology, &fleet->options, &fleet->error, &fleet->sim), 0),
        "%s", fleet->error.text);
}

static __attribute__((unused)) void fleet_run(struct fleet *fleet)
{
    fleet_open(fleet);
    int status = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
    cr_assert(eq(int, status, 0), "%s", fleet->error.text);
    cr_assert(sgp_sim_done(fleet->sim));
}

static __attribute__((unused)) struct sgp_sim_summary fleet_summary(const struct fleet *fleet)
{
    struct sgp_sim_summary summary;
    sgp_sim_summary(fleet->sim, &summary);
    return summary;
}

static void fleet_destroy(struct fleet *fleet)
{
    sgp_sim_destroy(fleet->sim);
    sgp_topology_destroy(fleet->topology);
    free(fleet);
}

#endif
