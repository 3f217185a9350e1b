/* SPDX-License-Identifier: Apache-2.0 */
/* What a liar knows of the other nodes: their latest models, and where training takes them. */
#include "sim/lies.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Of the sum of steps, from round to round: about ten rounds count, in which the noise of batches
 * averages out. */
#define STEPS_KEPT 0.9

int sgp_sim_knowledge_init(
    struct sgp_sim_knowledge *knowledge, uint32_t node_count, uint64_t dimension)
{
    *knowledge = (struct sgp_sim_knowledge){
        .node_count = node_count, .dimension = dimension, .round = SGP_ROUND_NONE};
    knowledge->models = calloc(node_count * dimension, sizeof *knowledge->models);
    knowledge->known = calloc(node_count, sizeof *knowledge->known);
    knowledge->mean = calloc(5 * dimension, sizeof *knowledge->mean);
    if (!knowledge->models || !knowledge->known || !knowledge->mean)
        return -ENOMEM;
    knowledge->deviation = knowledge->mean + dimension;
    knowledge->moved = knowledge->deviation + dimension;
    knowledge->ascent = knowledge->moved + dimension;
    knowledge->steps = knowledge->ascent + dimension;
    return 0;
}

void sgp_sim_knowledge_finish(struct sgp_sim_knowledge *knowledge)
{
    free(knowledge->models);
    free(knowledge->known);
    free(knowledge->mean);
    *knowledge = (struct sgp_sim_knowledge){0};
}

void sgp_sim_know_model(
    struct sgp_sim_knowledge *knowledge, uint32_t node, const float *values, double weight)
{
    if (node >= knowledge->node_count)
        return;
    float *model = knowledge->models + node * knowledge->dimension;
    for (uint64_t i = 0; i < knowledge->dimension; i++)
        model[i] = (float)((double)values[i] / weight);
    knowledge->known[node] = true;
}

void sgp_sim_know_step(struct sgp_sim_knowledge *knowledge, const float *before, const float *after)
{
    for (uint64_t i = 0; i < knowledge->dimension; i++)
        knowledge->steps[i] += (double)after[i] - (double)before[i];
}

/* ---- once a round ---- */

static uint32_t count_known(const struct sgp_sim_knowledge *knowledge)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < knowledge->node_count; n++)
        count += knowledge->known[n];
    return count;
}

/* The mean and the deviation of coordinate i. */
static void sum_up(struct sgp_sim_knowledge *knowledge, uint64_t i, uint32_t count)
{
    const float *models = knowledge->models + i;
    double mean = 0, squares = 0;
    for (uint32_t n = 0; n < knowledge->node_count; n++)
        mean += knowledge->known[n] ? (double)models[n * knowledge->dimension] / count : 0;
    for (uint32_t n = 0; n < knowledge->node_count; n++)
        if (knowledge->known[n])
            squares += pow((double)models[n * knowledge->dimension] - mean, 2) / count;
    knowledge->mean[i] = mean;
    knowledge->deviation[i] = sqrt(squares);
}

/* Where no steps are taken the direction stays. */
static void turn_against_steps(struct sgp_sim_knowledge *knowledge)
{
    double squares = 0;
    for (uint64_t i = 0; i < knowledge->dimension; i++)
        squares += knowledge->steps[i] * knowledge->steps[i];
    for (uint64_t i = 0; i < knowledge->dimension && squares > 0; i++)
        knowledge->ascent[i] = -knowledge->steps[i] / sqrt(squares);
    for (uint64_t i = 0; i < knowledge->dimension; i++)
        knowledge->steps[i] *= STEPS_KEPT;
}

bool sgp_sim_know_round(struct sgp_sim_knowledge *knowledge, sgp_round round)
{
    const uint32_t count = count_known(knowledge);
    const bool first = knowledge->round == SGP_ROUND_NONE;
    if (count == 0 || (!first && round <= knowledge->round))
        return count > 0;
    for (uint64_t i = 0; i < knowledge->dimension; i++) {
        const double before = knowledge->mean[i];
        sum_up(knowledge, i, count);
        knowledge->moved[i] = first ? 0 : knowledge->mean[i] - before;
    }
    turn_against_steps(knowledge);
    knowledge->round = round;
    return true;
}

/* ---- distances ---- */

static double distance_between(const struct sgp_sim_knowledge *knowledge, uint32_t a, uint32_t b)
{
    const float *first = knowledge->models + a * knowledge->dimension;
    const float *second = knowledge->models + b * knowledge->dimension;
    double squares = 0;
    for (uint64_t i = 0; i < knowledge->dimension; i++)
        squares += pow((double)first[i] - (double)second[i], 2);
    return sqrt(squares);
}

/* The k-th least of distances in ascending order has k others before it. */
double sgp_sim_usual_distance(const struct sgp_sim_knowledge *knowledge, uint32_t node)
{
    double sorted[SGP_GUARD_SOURCES_MOST];
    uint32_t count = 0;
    for (uint32_t n = 0; n < knowledge->node_count && count < SGP_GUARD_SOURCES_MOST; n++) {
        if (n == node || !knowledge->known[n])
            continue;
        const double distance = distance_between(knowledge, node, n);
        uint32_t at = count++;
        for (; at > 0 && sorted[at - 1] > distance; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = distance;
    }
    return count == 0 ? 0 : (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}
