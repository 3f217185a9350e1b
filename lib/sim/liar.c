/* SPDX-License-Identifier: Apache-2.0 */
/* Liars: hosts whose shares or estimates carry other values than they have. Rounds and all messages
 * are honest, and so are weights, except for one lie. What a share says too much or too little is
 * counted when it is accepted: the sum of x over all hosts changes by that. */
#include "sim/world.h"

/* One of so many shares of a liar has no weight. If all had none, its fleet would starve. */
#define WEIGHTLESS_EVERY 16
#define WEIGHTLESS_SCALE 10 /* and its values are so many times too large for each node */
#define UNGUARDED_REACH 2   /* of a drift, where no guard bounds it: usual distances */

static const struct sgp_sim_liar *liar_of(const struct sgp_sim *sim, uint32_t host)
{
    for (uint32_t i = 0; i < sim->options.liar_count; i++)
        if (sim->options.liars[i].node == host)
            return &sim->options.liars[i];
    return NULL;
}

/* ---- what liars know ---- */

int sgp_sim_create_liars(struct sgp_sim *sim)
{
    bool needs = false;
    for (uint32_t i = 0; i < sim->options.liar_count; i++) {
        const enum sgp_sim_lie lie = sim->options.liars[i].lie;
        sim->lies = sim->lies || lie == SGP_SIM_LIE_WEIGHTLESS;
        needs = needs || sgp_sim_needs_knowledge(lie);
    }
    return needs ? sgp_sim_knowledge_init(&sim->knowledge, sim->host_count, sim->options.dimension)
                 : 0;
}

void sgp_sim_overhear(const struct sgp_sim_host *host, const struct sgp_work *work)
{
    struct sgp_sim *sim = host->sim;
    struct sgp_sim_knowledge *knowledge = &sim->knowledge;
    if (knowledge->node_count == 0 || liar_of(sim, host->index) != NULL)
        return;
    if (work->type == SGP_EFFECT_TRAIN && !sim->overflown)
        sgp_sim_know_step(knowledge, sim->before, sim->after);
    if (work->type == SGP_EFFECT_PUBLISH && work->purpose == SGP_PUBLISH_SHARES &&
        work->slice.count == knowledge->dimension && work->weight > 0)
        sgp_sim_know_model(knowledge, host->index, *work->place, work->weight);
}

/* ---- lies about estimates and weights ---- */

bool sgp_sim_lies_of_estimate(const struct sgp_sim *sim, uint32_t host)
{
    const struct sgp_sim_liar *liar = liar_of(sim, host);
    return liar != NULL && liar->lie == SGP_SIM_LIE_ESTIMATE;
}

void sgp_sim_lie_of_estimate(
    const struct sgp_sim *sim, uint32_t source, float *values, uint64_t count)
{
    for (uint64_t i = 0; i < count && sgp_sim_lies_of_estimate(sim, source); i++)
        values[i] = -values[i];
}

/* Whether the lie is about the weight of this share. */
static bool is_weightless(const struct sgp_sim_liar *liar, const struct sgp_share *share)
{
    return liar != NULL && liar->lie == SGP_SIM_LIE_WEIGHTLESS && share->fraction > 0 &&
           share->bequest <= 0 && share->number % WEIGHTLESS_EVERY == 0;
}

void sgp_sim_lie_of_weight(const struct sgp_sim *sim, uint32_t source, struct sgp_share *share)
{
    if (is_weightless(liar_of(sim, source), share))
        share->weight = 0;
}

bool sgp_sim_lies_of_weight(
    const struct sgp_sim *sim, uint32_t source, const struct sgp_share *share)
{
    return is_weightless(liar_of(sim, source), share);
}

/* ---- lies about shares ---- */

/* How far a drift may take the target. */
static double reach_of(const struct sgp_sim *sim, const struct sgp_sim_host *target)
{
    const struct sgp_guard *guard = target->performer.guard;
    return guard != NULL ? sgp_guard_bound(guard)
                         : UNGUARDED_REACH * sgp_sim_usual_distance(&sim->knowledge, target->index);
}

void sgp_sim_lie(struct sgp_sim *sim, uint32_t source, const struct sgp_sim_host *target,
    const struct sgp_share *share, float *values)
{
    const struct sgp_sim_liar *liar = liar_of(sim, source);
    if (liar == NULL || !(share->fraction > 0))
        return;
    if (is_weightless(liar, share)) /* its length is measured by the number of nodes */
        for (uint64_t i = 0; i < share->slice.count; i++)
            values[i] *= WEIGHTLESS_SCALE * (float)sim->host_count;
    struct sgp_sim_telling telling = {.random = &sim->random,
        .target = target->index,
        .scale = share->weight / share->fraction,
        .slice = share->slice};
    if (sgp_sim_needs_knowledge(liar->lie)) {
        if (!sgp_sim_know_round(&sim->knowledge, share->round) ||
            !sim->knowledge.known[target->index])
            return;
        telling.knowledge = &sim->knowledge;
        telling.reach = liar->lie == SGP_SIM_LIE_DRIFT ? reach_of(sim, target) : 0;
    }
    sgp_sim_tell(liar->lie, &telling, values);
}

void sgp_sim_count_lie(struct sgp_sim *sim, const struct sgp_sim_host *source, uint32_t snapshot,
    const struct sgp_sim_host *target, uint32_t slot)
{
    if (liar_of(sim, source->index) == NULL)
        return;
    const struct sgp_share *share = &target->receives[slot].share;
    double fraction = (double)(float)share->fraction;
    const float *given = sgp_sim_given(source, snapshot) + share->slice.first;
    const float *said = sgp_sim_received(target, slot);
    for (uint64_t i = 0; i < share->slice.count; i++)
        sim->moved[share->slice.first + i] += fraction * ((double)said[i] - (double)given[i]);
}
