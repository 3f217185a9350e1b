/* SPDX-License-Identifier: Apache-2.0 */
/* Liars: hosts whose shares or estimates carry other values than they have. Rounds and all messages
 * are honest, and so are weights, except for one lie. What a share says too much or too little is
 * counted when it is accepted: the sum of x over all hosts changes by that. */
#include "sim/world.h"

#include "sgp/kernels.h"

#include <math.h>

#define SCALE 10 /* of SGP_SIM_LIE_SCALE */
/* One of so many shares of a liar has no weight. If all had none, its fleet would starve. */
#define WEIGHTLESS_EVERY 16

static const struct sgp_sim_liar *liar_of(const struct sgp_sim *sim, uint32_t host)
{
    for (uint32_t i = 0; i < sim->options.liar_count; i++)
        if (sim->options.liars[i].node == host)
            return &sim->options.liars[i];
    return NULL;
}

static void add_noise(struct sgp_random *random, float *values, uint64_t count)
{
    double squares;
    (void)sgp_kernels_best()->measure(&squares, values, count);
    double deviation = sqrt(squares / (double)count);
    for (uint64_t i = 0; i < count; i++)
        values[i] += (float)(deviation * sgp_random_normal(random));
}

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

void sgp_sim_lie(struct sgp_sim *sim, uint32_t source, const struct sgp_share *share, float *values)
{
    const struct sgp_sim_liar *liar = liar_of(sim, source);
    float factor = 1;
    if (liar != NULL && liar->lie == SGP_SIM_LIE_NOISE)
        add_noise(&sim->random, values, share->slice.count);
    else if (liar != NULL && liar->lie == SGP_SIM_LIE_FLIP)
        factor = -1;
    else if (liar != NULL && liar->lie == SGP_SIM_LIE_SCALE)
        factor = SCALE;
    else if (is_weightless(liar, share)) /* its length is measured by the number of nodes */
        factor = SCALE * (float)sim->host_count;
    for (uint64_t i = 0; i < share->slice.count && factor != 1; i++)
        values[i] *= factor;
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
