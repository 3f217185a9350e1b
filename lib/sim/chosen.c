/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of coded updates and differences. What a worker gives plus its residual must equal its
 * update plus its earlier residual, unless rounding is random. An owner's difference is the change
 * of its copy. Both are packed without loss, so a repeated payload has the same bytes. */
#include "sim/world.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

void sgp_sim_before_choosing(struct sgp_sim_host *host, const struct sgp_work *work)
{
    struct sgp_sim *sim = host->sim;
    size_t bytes = work->slice.count * sizeof *sim->share;
    memcpy(sim->share, *work->place + work->slice.first, bytes);
    memcpy(sim->given, host->performer.rest + work->slice.first, bytes);
}

static void check_packed(
    struct sgp_sim_host *host, const struct sgp_work *work, const float *chosen)
{
    struct sgp_sim *sim = host->sim;
    struct sgp_codec codec = sgp_perform_codec(&host->performer, work->compressor);
    (void)sgp_codec_project(&codec, sim->share, chosen, work->slice.first, work->slice.count);
    if (memcmp(sim->share, chosen, work->slice.count * sizeof *chosen) != 0)
        sgp_sim_fail(sim, SGP_E_STATE, "%s gives values that lose something when they are packed",
            sgp_sim_name(sim, host->index));
}

void sgp_sim_check_chosen(struct sgp_sim_host *host, const struct sgp_work *work)
{
    struct sgp_sim *sim = host->sim;
    const float *chosen = *work->place + work->slice.first;
    const float *rest = host->performer.rest + work->slice.first;
    for (uint64_t i = 0; i < work->slice.count; i++) {
        double update = (double)sim->share[i], before = (double)sim->given[i];
        double gives = (double)chosen[i], leaves = (double)rest[i];
        double size = fabs(update) + fabs(before) + fabs(gives);
        sim->overflown = sim->overflown || !isfinite(size);
        sim->moved[work->slice.first + i] += host->outstanding[work->slot] * (gives - update);
        bool by_chance = host->performer.chooser.choice == SGP_CHOICE_CHANCE && rest[i] == 0;
        double lost = by_chance ? 0 : update + before - gives - leaves;
        if (isfinite(size) && fabs(lost) > FLT_EPSILON * size)
            sgp_sim_fail(sim, SGP_E_STATE,
                "%s gives %.9g and leaves out %.9g in [%llu] of an update of %.9g, after %.9g",
                sgp_sim_name(sim, host->index), gives, leaves,
                (unsigned long long)(work->slice.first + i), update, before);
    }
    if (!sim->overflown)
        check_packed(host, work, chosen);
    if (work->compressor != SGP_COMPRESSOR_NONE)
        host->compressors[work->slot] = work->compressor;
    host->digests[work->slot] = XXH3_64bits(*work->place, sim->options.dimension * sizeof *chosen);
}

bool sgp_sim_hands_copy(const struct sgp_sim_host *host, enum sgp_publish purpose)
{
    return sgp_sim_is_owner(host) && (purpose == SGP_PUBLISH_COPY || purpose == SGP_PUBLISH_CHANGE);
}

void sgp_sim_before_change(struct sgp_sim_host *host, const struct sgp_work *work)
{
    memcpy(host->sim->given, host->performer.copy + work->slice.first,
        work->slice.count * sizeof *host->sim->given);
}

void sgp_sim_check_change(struct sgp_sim_host *host, const struct sgp_work *work)
{
    struct sgp_sim *sim = host->sim;
    const float *values = *work->place + work->slice.first;
    const float *copy = host->performer.copy + work->slice.first;
    bool coded = work->compressor != SGP_COMPRESSOR_NONE;
    for (uint64_t i = 0; i < work->slice.count; i++) {
        float expected = coded ? sim->given[i] + values[i] : sim->before[work->slice.first + i];
        sim->overflown = sim->overflown || !isfinite(expected);
        if (copy[i] != expected && isfinite(expected))
            sgp_sim_fail(sim, SGP_E_STATE, "%s has a copy with %.9g in [%llu]; %.9g was due",
                sgp_sim_name(sim, host->index), (double)copy[i],
                (unsigned long long)(work->slice.first + i), (double)expected);
    }
    if (coded && !sim->overflown)
        check_packed(host, work, values);
    sim->summary.changes += coded;
}

void sgp_sim_check_returned(struct sgp_sim_host *host, const struct sgp_work *work)
{
    struct sgp_sim *sim = host->sim;
    host->trainer->methods->estimate(host->trainer, 1.0, sim->after);
    for (uint64_t i = work->slice.first; i < work->slice.first + work->slice.count; i++)
        if (sim->after[i] != host->performer.copy[i] && isfinite(sim->after[i]))
            sgp_sim_fail(sim, SGP_E_STATE, "%s ends with %.9g in [%llu], and its copy has %.9g",
                sgp_sim_name(sim, host->index), (double)sim->after[i], (unsigned long long)i,
                (double)host->performer.copy[i]);
}
