/* SPDX-License-Identifier: Apache-2.0 */
/* The job ABSORB: a share goes into x, as far as the guard admits it; see absorb.h.
 *
 * The rule: docs/rules/guard.md */
#include "absorb.h"

#include "sgp/guard.h"
#include "sgp/kernels.h"

#include <float.h>
#include <math.h>

void sgp_absorb_begin(
    struct sgp_performer *performer, const struct sgp_effect *effect, struct sgp_work *work)
{
    const struct sgp_fold_work *folding = &performer->folding;
    work->place = sgp_pool_place(&performer->receives, effect->absorb.slot);
    work->factor = effect->absorb.fraction;
    work->slice = effect->absorb.slice;
    work->round = effect->absorb.round;
    work->folded = effect->absorb.folded && performer->folded == effect->absorb.slot;
    work->compares = work->folded
                         ? folding->stride > 0
                         : performer->own_slot != SGP_SLOT_NONE &&
                               work->round == performer->own_round && effect->absorb.weight > 0;
    if (work->folded)
        work->comparison =
            (struct sgp_comparison){.difference = folding->difference, .norm = folding->norm};
    else if (work->compares)
        work->comparison = (struct sgp_comparison){.own_weight = performer->own_weight,
            .their_weight = effect->absorb.weight / effect->absorb.fraction};
    if (work->compares)
        work->other = sgp_pool_place(&performer->snapshots, performer->own_slot);
    work->admission = (struct sgp_admission){.judged = performer->guard != NULL,
        .keep = folding->keep,
        .distance = work->folded ? sqrt(folding->distance_squared) : 0,
        .peer = effect->absorb.peer,
        .files = performer->files,
        .weight = effect->absorb.weight,
        .part = 1};
}

/* The distance of what the share says from z = x / own. It was measured already if the share was
 * folded. */
static double distance_from_own(
    struct sgp_trainer *trainer, const struct sgp_work *work, double own)
{
    struct sgp_slice slice = work->slice;
    struct sgp_trainer_state state;
    double difference, norm;
    if (work->folded)
        return work->admission.distance;
    trainer->methods->state(trainer, &state);
    sgp_kernels_best()->distance(&difference, &norm, *work->place,
        (float)(work->factor / work->admission.weight), state.x + slice.first, (float)(1 / own),
        slice.count);
    return sqrt(difference);
}

/* Decide by the guard how far the share counts. A node without weight has no estimate, and takes
 * the share whole. A share without weight says no estimate, and none of it is taken. With z = x /
 * w the node adds dw * z for the part that is not taken: returns the factor of x that does this. */
static double admit(struct sgp_guard *guard, struct sgp_trainer *trainer, struct sgp_work *work)
{
    struct sgp_admission *admission = &work->admission;
    double own = work->weight - admission->weight;
    if (!(admission->weight > 0)) {
        admission->part = 0;
        return 1;
    }
    admission->judged = own >= (double)FLT_MIN;
    if (!admission->judged)
        return 1;
    if (guard->files != admission->files)
        sgp_guard_begin(guard, guard->multiple);
    guard->files = admission->files;
    double distance = distance_from_own(trainer, work, own);
    admission->part = sgp_guard_part(sgp_guard_bound(guard), distance);
    sgp_guard_hear(guard, admission->peer, distance);
    return 1 + admission->weight * (1 - admission->part) / own;
}

/* The share was folded: with f for its fraction, the place holds y = x + f * share, and the result
 * is `scale` * x + part * f * share = (scale - part) * x + part * y. With a part of 0, y may be
 * infinite. */
static void take(struct sgp_trainer *trainer, struct sgp_work *work, double scale)
{
    const struct sgp_admission *admission = &work->admission;
    double squares;
    if (admission->part <= 0) {
        trainer->methods->scale(trainer, scale, 0, work->slice.count);
        return;
    }
    if (admission->part < 1)
        (void)sgp_kernels_best()->fold(&squares, *work->place, *work->other,
            (float)((scale - admission->part) * admission->keep), (float)admission->part,
            work->slice.count);
    trainer->methods->take(trainer, work->place);
}

/* x += fraction * share, as far as the guard admits it. Records the distance of the share's
 * estimate from this node's own when it published. */
void sgp_absorb_run(const struct sgp_performer *performer, struct sgp_work *work)
{
    struct sgp_trainer *trainer = performer->trainer;
    struct sgp_slice slice = work->slice;
    bool judged = work->admission.judged;
    double scale = judged ? admit(performer->guard, trainer, work) : 1;
    if (work->folded) {
        take(trainer, work, scale);
        return;
    }
    if (work->admission.part < 1)
        trainer->methods->scale(trainer, scale, slice.first, slice.count);
    if (work->compares)
        work->comparison.own = *work->other;
    trainer->methods->absorb(trainer, work->place, (float)(work->factor * work->admission.part),
        slice.first, slice.count, work->compares ? &work->comparison : NULL);
}

bool sgp_perform_distance(const struct sgp_work *work, double *ret_distance)
{
    const struct sgp_comparison *comparison = &work->comparison;
    if (!work->compares)
        return false;
    *ret_distance = sgp_relative_difference(comparison->difference, comparison->norm);
    return true;
}

bool sgp_perform_admission(const struct sgp_performer *performer, const struct sgp_work *work,
    uint32_t *ret_peer, double *ret_part)
{
    const struct sgp_admission *admission = &work->admission;
    if (work->type != SGP_EFFECT_ABSORB || !admission->judged ||
        admission->files != performer->files)
        return false;
    *ret_peer = admission->peer;
    *ret_part = admission->part;
    return true;
}

bool sgp_perform_clips(const struct sgp_performer *performer, const struct sgp_work *work)
{
    const struct sgp_admission *admission = &work->admission;
    const struct sgp_guard *guard = performer->guard;
    bool judged = admission->judged && work->weight - admission->weight >= (double)FLT_MIN;
    if (!work->folded || !judged)
        return false;
    double bound = guard->files == admission->files ? sgp_guard_bound(guard) : 0;
    return sgp_guard_part(bound, admission->distance) < 1;
}
