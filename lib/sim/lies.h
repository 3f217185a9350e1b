/* SPDX-License-Identifier: Apache-2.0 */
/* What a liar says in the place of its model, and what it knows of the other nodes.
 *
 * The liars of a simulation are omniscient: they know the model that each honest node gave last,
 * all training steps, and the bound of their target's guard. A real attacker knows less, so these
 * figures are a worst case.
 *
 * Thread: one at a time. */
#ifndef SGP_SIM_LIES_H
#define SGP_SIM_LIES_H

#include "sgp/random.h"
#include "sgp/sim.h"

/* ---- knowledge.c ---- */

/* All zero: nothing is known, and nothing is ever noted. */
struct sgp_sim_knowledge {
    uint32_t node_count;
    uint64_t dimension;
    float *models; /* node_count times `dimension`: the model that each node gave last */
    bool *known;   /* for each node: whether it has given a model */
    /* `dimension` values each, of the known models when this round began: */
    double *mean, *deviation;
    double *moved;  /* the change of the mean since the round before */
    double *ascent; /* of length 1, against the latest training steps; all 0 before the first */
    double *steps;  /* the sum of the training steps; each round forgets a tenth of it */
    sgp_round round;
};

/* Know nothing of so many nodes. Returns 0 or -ENOMEM; call finish in any case. */
int sgp_sim_knowledge_init(
    struct sgp_sim_knowledge *knowledge, uint32_t node_count, uint64_t dimension);
void sgp_sim_knowledge_finish(struct sgp_sim_knowledge *knowledge);

/* A node has given the model values / weight, weight > 0. */
void sgp_sim_know_model(
    struct sgp_sim_knowledge *knowledge, uint32_t node, const float *values, double weight);
/* A training step has changed `dimension` values. */
void sgp_sim_know_step(
    struct sgp_sim_knowledge *knowledge, const float *before, const float *after);
/* Sum up what is known, if the round is later than the present one. Returns whether any model is
 * known. */
bool sgp_sim_know_round(struct sgp_sim_knowledge *knowledge, sgp_round round);

/* The median of the distances from the model of one node to those of the other known ones; 0 if
 * none is known. */
double sgp_sim_usual_distance(const struct sgp_sim_knowledge *knowledge, uint32_t node);

/* ---- lies.c ---- */

/* A share about which a node lies. Its values are `scale` times a model. */
struct sgp_sim_telling {
    const struct sgp_sim_knowledge *knowledge; /* NULL for a lie that needs none */
    struct sgp_random *random;
    uint32_t target; /* a node whose model is known, or which takes its place */
    double reach;    /* of SGP_SIM_LIE_DRIFT: how far the target lets itself be moved */
    double scale;
    struct sgp_slice slice;
};

/* Whether the lie is made of the models of other nodes. */
bool sgp_sim_needs_knowledge(enum sgp_sim_lie lie);

/* Replace the slice.count values of a share by the lie. A lie about estimates or weights changes
 * nothing here. */
void sgp_sim_tell(enum sgp_sim_lie lie, const struct sgp_sim_telling *telling, float *values);

#endif
