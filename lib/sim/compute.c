/* SPDX-License-Identifier: Apache-2.0 */
/* Each host's compute thread. The performer (sgp/perform.h) does the jobs in the order of the
 * queue. Jobs are checked here on both sides: when the core asks for one, and before and after it
 * is done. */
#include "sim/world.h"

#include "sgp/kernels.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- the core asks for a job ---- */

/* Note the job's place in an exact cycle, by the present state of the node. A job that leaves a
 * cycle opens none. */
static void note_cycle(const struct sgp_sim_host *host, sgp_round round, struct sgp_sim_job *job)
{
    if (!sgp_topology_has_exact(host->file->topology))
        return;
    struct sgp_node_status status;
    sgp_node_status(host->node, &status);
    job->epoch = status.epoch;
    job->of_cycle = job->of_cycle && status.state != SGP_NODE_DRAINING;
    (void)sgp_topology_is_exact(host->file->topology, round, &job->start);
}

static void ask_train(struct sgp_sim_host *host, const struct sgp_effect *effect)
{
    struct sgp_sim *sim = host->sim;
    double weight = effect->weight;
    long long turn = effect->train.turn;
    if (!(weight >= host->weight_floor * (1 - SGP_SIM_MASS_SLACK) && weight > 0))
        sgp_sim_fail(sim, SGP_E_STATE,
            "%s trains turn %lld at weight %.17g, below its weight floor %.17g",
            sgp_sim_name(sim, host->index), turn, weight, host->weight_floor);
    if (sgp_topology_is_exact(host->file->topology, sgp_node_round(host->node), NULL) &&
        weight != 1)
        sgp_sim_fail(sim, SGP_E_STATE, "%s trains turn %lld at weight %.17g, not 1",
            sgp_sim_name(sim, host->index), turn, weight);
    sgp_sim_check_turn(host, effect->train.turn);
    if (weight < sim->summary.weight_least)
        sim->summary.weight_least = weight;
}

static void ask_publish(
    struct sgp_sim_host *host, const struct sgp_effect *effect, struct sgp_sim_job *job)
{
    enum sgp_publish purpose = effect->publish.purpose;
    job->of_cycle = purpose == SGP_PUBLISH_SHARES &&
                    effect->publish.slice.count == host->sim->options.dimension &&
                    sgp_topology_opens(host->file->topology, effect->round);
    note_cycle(host, effect->round, job);
    if (purpose == SGP_PUBLISH_UPDATE && !sgp_sim_has_token(host))
        sgp_sim_update_given(host);
    else if (purpose == SGP_PUBLISH_ESTIMATE || sgp_sim_hands_copy(host, purpose))
        sgp_sim_copy_made(host, effect->publish.slot);
}

static void ask_absorb(
    struct sgp_sim_host *host, const struct sgp_effect *effect, struct sgp_sim_job *job)
{
    uint32_t slot = effect->absorb.slot;
    struct sgp_sim_receive *receive = &host->receives[slot];
    struct sgp_slice slice = effect->absorb.slice;
    double fraction = effect->absorb.fraction;
    if (sgp_sim_is_owner(host))
        sgp_sim_update_taken(host, fraction, slice);
    else if (receive->share.fraction != fraction)
        sgp_sim_fail(host->sim, SGP_E_STATE, "%s absorbs %.17g of slot %u instead of %.17g",
            sgp_sim_name(host->sim, host->index), fraction, slot, receive->share.fraction);
    if (receive->state != SGP_SIM_RECEIVE_HELD || receive->share.slice.first != slice.first ||
        receive->share.slice.count != slice.count || effect->absorb.folded != receive->told)
        sgp_sim_fail(host->sim, SGP_E_STATE,
            "%s absorbs slot %u, which holds another share or none",
            sgp_sim_name(host->sim, host->index), slot);
    receive->state = SGP_SIM_RECEIVE_TAKEN;
    if (sgp_sim_adds_each(host))
        sgp_sim_update_next(host, fraction, job);
}

static void take_estimate(struct sgp_sim_host *host, uint32_t slot, struct sgp_slice slice)
{
    const struct sgp_share *estimate = &host->receives[slot].share;
    if (host->receives[slot].state != SGP_SIM_RECEIVE_HELD || estimate->number != 0 ||
        estimate->slice.first != slice.first || estimate->slice.count != slice.count)
        sgp_sim_fail(host->sim, SGP_E_STATE, "%s adopts slot %u, which holds no estimate",
            sgp_sim_name(host->sim, host->index), slot);
    host->receives[slot].state = SGP_SIM_RECEIVE_TAKEN;
}

static void ask(struct sgp_sim_host *host, const struct sgp_effect *effect, struct sgp_sim_job *job)
{
    switch (effect->type) {
    case SGP_EFFECT_TRAIN:
        ask_train(host, effect);
        break;
    case SGP_EFFECT_PUBLISH:
        ask_publish(host, effect, job);
        break;
    case SGP_EFFECT_ABSORB:
        ask_absorb(host, effect, job);
        break;
    case SGP_EFFECT_COMPENSATE:
        host->step.compensates = true;
        break;
    case SGP_EFFECT_RECEIVE_TOKEN:
        sgp_sim_check_receive_token(host, sgp_sim_received(host, effect->receive_token.slot));
        host->receives[effect->receive_token.slot].state = SGP_SIM_RECEIVE_TAKEN;
        break;
    case SGP_EFFECT_ADOPT:
        for (uint32_t i = 0; i < effect->adopt.count; i++)
            take_estimate(host, effect->adopt.candidates[i].slot, effect->adopt.slice);
        break;
    case SGP_EFFECT_FOLLOW:
        if (effect->follow.slot == SGP_SLOT_NONE)
            break;
        take_estimate(host, effect->follow.slot, effect->follow.slice);
        if (!sgp_sim_has_token(host))
            sgp_sim_copy_taken(host, effect->follow.slice);
        job->label = host->receives[effect->follow.slot].share.round;
        break;
    default:
        break;
    }
}

/* What was published for a token has been collected with it. */
static void collected(struct sgp_sim_host *host, uint32_t snapshot)
{
    const float *values = sgp_sim_snapshot(host, snapshot);
    host->digests[snapshot] = XXH3_64bits(values, host->sim->options.dimension * sizeof *values);
    sgp_sim_check_token_received(host, values);
}

void sgp_sim_work(void *context, const struct sgp_effect *effect)
{
    struct sgp_sim_host *host = context;
    struct sgp_sim_job *job = sgp_sim_new_job(host, SGP_SIM_WORK);
    if (!job)
        return;
    ask(host, effect, job);
    sgp_perform_begin(&host->performer, effect, &job->work);
    job->steps = job->work.steps;
    if (effect->type == SGP_EFFECT_RECEIVE_TOKEN)
        collected(host, effect->receive_token.snapshot);
    sgp_sim_append(host, job);
}

void sgp_sim_measure(struct sgp_sim_host *host, sgp_round round, double weight)
{
    const struct sgp_topology *topology = host->file->topology;
    struct sgp_sim_job *job = sgp_sim_new_job(host, SGP_SIM_MEASURE);
    if (!job)
        return;
    job->measured.round = round;
    job->measured.weight = weight;
    job->of_cycle = sgp_topology_is_exact(topology, round, NULL) &&
                    sgp_topology_start_from(topology, round + 1) == round + 1;
    note_cycle(host, round, job);
    sgp_sim_append(host, job);
}

/* ---- before a job ---- */

static void before_publish(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    double outstanding = host->outstanding[job->work.slot];
    if (job->work.purpose == SGP_PUBLISH_CHOSEN) {
        sgp_sim_before_choosing(host, &job->work);
        return;
    }
    if (job->work.purpose == SGP_PUBLISH_CHANGE)
        sgp_sim_before_change(host, &job->work);
    if (outstanding > SGP_SIM_MASS_SLACK)
        sgp_sim_fail(host->sim, SGP_E_STATE, "%s overwrites snapshot %u while %.17g of it is owed",
            sgp_sim_name(host->sim, host->index), job->work.slot, outstanding);
    if (job->of_cycle)
        sgp_sim_enter_cycle(host, job, host->sim->before);
    if (job->work.purpose == SGP_PUBLISH_UPDATE && !sgp_sim_has_token(host))
        sgp_sim_update_leaves(host);
}

/* The folded x must equal what absorbing the share would have made of it, to the bit. */
static void check_folded(struct sgp_sim_host *host, const struct sgp_work *work)
{
    struct sgp_sim *sim = host->sim;
    uint64_t dimension = sim->options.dimension;
    memcpy(sim->after, sim->before, dimension * sizeof *sim->after);
    sgp_kernels_best()->absorb(sim->after, sim->share, (float)work->factor, dimension);
    if (memcmp(sim->after, *work->place, dimension * sizeof *sim->after) != 0)
        sgp_sim_fail(sim, SGP_E_STATE, "%s has folded a share into another x than it has",
            sgp_sim_name(sim, host->index));
    sim->summary.shares_folded++;
}

static void before_absorb(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    float *share = host->sim->share;
    struct sgp_slice slice = job->work.slice;
    memcpy(share, sgp_sim_received(host, job->work.slot), slice.count * sizeof *share);
    if (sgp_sim_adds_each(host) && !job->compensated)
        sgp_sim_keep_update(host, share, slice);
    if (job->work.folded)
        check_folded(host, &job->work);
}

static void before(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    host->trainer->methods->estimate(host->trainer, 1.0, host->sim->before);
    if (job->work.type == SGP_EFFECT_PUBLISH)
        before_publish(host, job);
    else if (job->work.type == SGP_EFFECT_ABSORB)
        before_absorb(host, job);
    else if (job->work.type == SGP_EFFECT_COMPENSATE)
        sgp_sim_keep_update(host, *job->work.place, job->work.slice);
}

/* ---- after a job ---- */

/* A change by the host itself, like training. */
static void check_own(struct sgp_sim_host *host)
{
    sgp_sim_check_job(host, NULL, 0, (struct sgp_slice){0, host->sim->options.dimension});
}

static void after_publish(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    const struct sgp_work *work = &job->work;
    const float *snapshot = *work->place;
    if (work->purpose == SGP_PUBLISH_CHOSEN) {
        sgp_sim_check_chosen(host, work);
        return;
    }
    bool tells = work->purpose == SGP_PUBLISH_UPDATE && sgp_sim_has_token(host);
    if (work->purpose == SGP_PUBLISH_TOKEN)
        sgp_sim_check_token(host, snapshot);
    else if (tells)
        sgp_sim_count_offered(host);
    if (work->purpose == SGP_PUBLISH_ESTIMATE && sgp_sim_is_owner(host))
        sgp_sim_check_label(host, work->round, snapshot, work->slice, false);
    if (sgp_sim_hands_copy(host, work->purpose))
        sgp_sim_check_label(host, work->round, host->performer.copy, work->slice, false);
    if (work->purpose == SGP_PUBLISH_CHANGE)
        sgp_sim_check_change(host, work);
    bool given = !host->sim->apart && work->purpose != SGP_PUBLISH_NOTHING;
    host->outstanding[work->slot] = given ? 1 - work->factor : 0;
    host->digests[work->slot] =
        XXH3_64bits(snapshot, host->sim->options.dimension * sizeof *snapshot);
    host->compressors[work->slot] = work->compressor;
    const float *left = sgp_sim_given(host, work->slot) + work->slice.first;
    bool own = work->purpose == SGP_PUBLISH_TOKEN || work->purpose == SGP_PUBLISH_NOTHING;
    sgp_sim_check_job(host, own ? NULL : left, tells ? 0 : work->factor - 1, work->slice);
}

/* Check the reported distance of a share's estimate from the node's own, in double precision. Only
 * where that is cheap, and where float32, in which kernels have the squares, holds them. */
#define COMPARED_MOST 64u
#define NORM_LEAST (COMPARED_MOST * (double)FLT_MIN / (double)FLT_EPSILON)
static void check_distance(struct sgp_sim_host *host, const struct sgp_work *work)
{
    const struct sgp_sim *sim = host->sim;
    const struct sgp_fold_work *folding = &host->performer.folding;
    const struct sgp_comparison *comparison = &work->comparison;
    double told, difference = 0, norm = 0;
    if (!sgp_perform_distance(work, &told) || work->slice.count > COMPARED_MOST)
        return;
    const float *own = work->folded ? folding->source : comparison->own + work->slice.first;
    double ours = work->folded ? (double)folding->own_scale : 1 / comparison->own_weight;
    double theirs = work->folded ? (double)folding->their_scale : 1 / comparison->their_weight;
    for (uint64_t i = 0; i < work->slice.count; i++) {
        double z = ours * (double)own[i], apart = theirs * (double)sim->share[i] - z;
        difference += apart * apart;
        norm += z * z;
    }
    if (norm < NORM_LEAST || fmax(norm, difference) > (double)FLT_MAX)
        return;
    double expected = sqrt(difference / norm);
    if (isfinite(expected) && fabs(told - expected) > 1e-3 * expected + 1e-5)
        sgp_sim_fail(host->sim, SGP_E_STATE, "%s finds a share %.9g away that is %.9g away",
            sgp_sim_name(sim, host->index), told, expected);
}

static void after_absorb(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    const struct sgp_work *work = &job->work;
    const float *share = host->sim->share;
    host->receives[work->slot].state = SGP_SIM_RECEIVE_FREE;
    if (sgp_sim_is_owner(host))
        sgp_sim_update_added(host, job, share);
    if (sgp_sim_adds_each(host))
        sgp_sim_check_added(host, job);
    if (sgp_sim_is_judged(host, work))
        sgp_sim_check_guarded(host, work, &host->receives[work->slot].share);
    else
        sgp_sim_check_job(host, share, (double)(float)work->factor, work->slice);
    check_distance(host, work);
}

static void after_adopting(struct sgp_sim_host *host, const struct sgp_adoption *adoption)
{
    for (uint32_t i = 0; i < adoption->count; i++)
        host->receives[adoption->candidates[i].slot].state = SGP_SIM_RECEIVE_FREE;
    sgp_sim_check_choice(host, adoption);
}

/* x was replaced. */
static void after_replacing(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    if (job->work.slot == SGP_SLOT_NONE) { /* an owner that ends */
        sgp_sim_check_returned(host, &job->work);
        check_own(host);
        return;
    }
    host->receives[job->work.slot].state = SGP_SIM_RECEIVE_FREE;
    if (job->work.type == SGP_EFFECT_ADOPT)
        after_adopting(host, &job->work.adoption);
    if (job->work.type == SGP_EFFECT_RECEIVE_TOKEN)
        sgp_sim_check_stands(host);
    else if (sgp_sim_has_token(host))
        sgp_sim_forget_moved(host);
    else if (job->work.type == SGP_EFFECT_FOLLOW)
        sgp_sim_check_label(host, job->label, host->performer.copy, job->work.slice, true);
    check_own(host);
}

/* What was given returns as a target would have decoded it. The vector that entered an exact cycle
 * returns unchanged. */
static void after_restore(struct sgp_sim_host *host, const struct sgp_work *work)
{
    bool enters =
        work->factor >= 1 && sgp_topology_is_exact(host->file->topology, work->round, NULL);
    const float *home =
        enters ? sgp_sim_snapshot(host, work->slot) : sgp_sim_given(host, work->slot);
    host->outstanding[work->slot] -= host->sim->apart ? 0 : (double)(float)work->factor;
    sgp_sim_check_job(host, home + work->slice.first, (double)(float)work->factor, work->slice);
}

static void after(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    const struct sgp_work *work = &job->work;
    switch (work->type) {
    case SGP_EFFECT_TRAIN:
        check_own(host);
        if (sgp_sim_has_token(host) && work->code == 0)
            sgp_sim_count_moved(host);
        break;
    case SGP_EFFECT_PUBLISH:
        after_publish(host, job);
        break;
    case SGP_EFFECT_ABSORB:
        after_absorb(host, job);
        break;
    case SGP_EFFECT_COMPENSATE:
        sgp_sim_count_compensated(host, *work->place, work->slice);
        break;
    case SGP_EFFECT_RESTORE:
        after_restore(host, work);
        break;
    case SGP_EFFECT_SCALE:
        sgp_sim_check_job(host, NULL, 0, work->slice);
        break;
    case SGP_EFFECT_OUTER:
        check_own(host);
        break;
    default:
        after_replacing(host, job);
    }
}

/* ---- the job itself ---- */

static void run(struct sgp_sim_host *host, struct sgp_sim_job *job)
{
    struct sgp_work *work = &job->work;
    if (job->steps > 0 && job->taken == 0)
        work->code = -ECANCELED;
    for (uint32_t left = job->taken; left > 0 && sgp_perform_run(&host->performer, work);)
        left--;
}

static void do_work(struct sgp_sim_host *host, struct sgp_sim_job *job)
{
    enum sgp_effect_type type = job->work.type;
    bool checks = type != SGP_EFFECT_SKETCH; /* a sketch changes nothing */
    if (checks)
        before(host, job);
    run(host, job);
    if (checks)
        after(host, job);
    sgp_sim_overhear(host, &job->work);
    if (checks && type != SGP_EFFECT_ABSORB && type != SGP_EFFECT_PUBLISH)
        sgp_sim_begin_step(host);
    struct sgp_event event;
    if (sgp_perform_end(&host->performer, &job->work, &event))
        sgp_sim_post(host->sim, host, &event);
}

void sgp_sim_job_done(struct sgp_sim_host *host)
{
    if (sgp_sim_job_goes_on(host))
        return;
    struct sgp_sim_job *job = sgp_sim_take_job(host);
    if (job->kind == SGP_SIM_WORK) {
        do_work(host, job);
    } else if (job->kind == SGP_SIM_CHECKPOINTED) {
        sgp_sim_checkpointed(host, job);
    } else {
        if (job->of_cycle)
            sgp_sim_leave_cycle(host, job);
        if (sgp_sim_is_owner(host))
            sgp_sim_check_mean(host);
        sgp_sim_rows_leave(host->sim, host, job->measured.round, job->measured.weight);
    }
    sgp_sim_end_job(host, job);
}
