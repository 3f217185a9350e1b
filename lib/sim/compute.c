/* SPDX-License-Identifier: Apache-2.0 */
/* Each host's compute thread: the verbs that queue its jobs, and what the jobs do to the parameters. */
#include "sim/world.h"

#include "sgp/copy.h"
#include "sgp/kernels.h"
#include "sgp/payload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- verbs ---- */

/* What of an exact cycle a job is, as the node stands now. What one leaves opens none. */
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

void sgp_sim_train(void *context, sgp_round turn, double weight, uint32_t steps, double pace)
{
    struct sgp_sim_host *host = context;
    struct sgp_sim *sim = host->sim;
    if (!(weight >= host->guard * (1 - SGP_SIM_MASS_SLACK) && weight > 0))
        sgp_sim_fail(sim, SGP_E_STATE, "%s trains turn %lld at weight %.17g, below its guard %.17g",
            sgp_sim_name(sim, host->index), (long long)turn, weight, host->guard);
    if (sgp_topology_is_exact(host->file->topology, sgp_node_round(host->node), NULL) &&
        weight != 1)
        sgp_sim_fail(sim, SGP_E_STATE, "%s trains turn %lld at weight %.17g, not 1",
            sgp_sim_name(sim, host->index), (long long)turn, weight);
    sgp_sim_check_turn(host, turn);
    if (weight < sim->summary.weight_least)
        sim->summary.weight_least = weight;
    host->own_weight = weight;
    sgp_sim_append(host, (struct sgp_sim_job){.work = SGP_SIM_TRAIN,
                             .round = turn,
                             .weight = weight,
                             .steps = steps,
                             .factor = pace});
}

/* As the daemon does, it looks at itself now and then: others' shares are judged by that. */
void sgp_sim_publish(void *context, sgp_round round, uint32_t snapshot, double keep,
    enum sgp_publish purpose, struct sgp_slice slice)
{
    struct sgp_sim_host *host = context;
    sgp_assert(snapshot < host->snapshot_count);
    bool whole = slice.count == host->sim->options.dimension;
    bool looks = purpose == SGP_PUBLISH_SHARES && whole && host->published++ % SGP_LOOK_ROUNDS == 0;
    struct sgp_sim_job job = {.work = SGP_SIM_PUBLISH,
        .round = round,
        .slot = snapshot,
        .slice = slice,
        .weight = looks ? host->own_weight : 0,
        .factor = keep,
        .purpose = purpose};
    job.of_cycle = purpose == SGP_PUBLISH_SHARES && slice.first == 0 &&
                   sgp_topology_opens(host->file->topology, round);
    note_cycle(host, round, &job);
    if (purpose == SGP_PUBLISH_UPDATE && !sgp_sim_has_token(host))
        sgp_sim_update_given(host);
    else if (purpose == SGP_PUBLISH_ESTIMATE)
        sgp_sim_copy_made(host, snapshot);
    sgp_sim_append(host, job);
}

void sgp_sim_absorb(
    void *context, uint32_t slot, double fraction, struct sgp_slice slice, bool folded)
{
    struct sgp_sim_host *host = context;
    sgp_assert(slot < host->receive_count);
    struct sgp_sim_receive *receive = &host->receives[slot];
    struct sgp_sim_job job = {.work = SGP_SIM_ABSORB,
        .slot = slot,
        .factor = fraction,
        .slice = slice,
        .folded = receive->folds};
    if (sgp_sim_is_owner(host))
        sgp_sim_update_taken(host, fraction, slice);
    else if (receive->share.fraction != fraction)
        sgp_sim_fail(host->sim, SGP_E_STATE, "%s absorbs %.17g of slot %u instead of %.17g",
            sgp_sim_name(host->sim, host->index), fraction, slot, receive->share.fraction);
    if (receive->state != SGP_SIM_RECEIVE_HELD || receive->share.slice.first != slice.first ||
        receive->share.slice.count != slice.count || folded != receive->told)
        sgp_sim_fail(host->sim, SGP_E_STATE,
            "%s absorbs slot %u, which holds another share or none",
            sgp_sim_name(host->sim, host->index), slot);
    receive->state = SGP_SIM_RECEIVE_TAKEN;
    if (sgp_sim_adds_each(host))
        sgp_sim_update_next(host, fraction, &job);
    sgp_sim_append(host, job);
}

void sgp_sim_compensate(
    void *context, uint32_t slot, uint32_t snapshot, double factor, struct sgp_slice slice)
{
    struct sgp_sim_host *host = context;
    sgp_assert(slot < host->receive_count && snapshot < host->snapshot_count);
    host->step.compensates = true;
    sgp_sim_append(host, (struct sgp_sim_job){.work = SGP_SIM_COMPENSATE,
                             .slot = slot,
                             .base = snapshot,
                             .factor = factor,
                             .slice = slice});
}

void sgp_sim_visit(void *context, uint32_t slot, uint32_t snapshot, double fraction, bool computes)
{
    struct sgp_sim_host *host = context;
    uint64_t dimension = host->sim->options.dimension;
    sgp_assert(slot < host->receive_count && snapshot < host->snapshot_count);
    const float *token = host->received + slot * dimension;
    float *collected = host->snapshots + snapshot * dimension;
    sgp_sim_check_visit(host, token);
    sgp_copy_collect(collected, token, (float)fraction, dimension);
    host->digests[snapshot] = XXH3_64bits(collected, dimension * sizeof *collected);
    sgp_sim_check_visited(host, collected);
    host->receives[slot].state = SGP_SIM_RECEIVE_TAKEN;
    sgp_sim_append(host, (struct sgp_sim_job){.work = SGP_SIM_VISIT,
                             .slot = slot,
                             .base = snapshot,
                             .factor = fraction,
                             .computes = computes});
}

void sgp_sim_restore(void *context, uint32_t snapshot, double fraction, struct sgp_slice slice)
{
    struct sgp_sim_host *host = context;
    sgp_assert(snapshot < host->snapshot_count);
    sgp_sim_append(
        host, (struct sgp_sim_job){
                  .work = SGP_SIM_RESTORE, .slot = snapshot, .factor = fraction, .slice = slice});
}

static void take_estimate(struct sgp_sim_host *host, uint32_t slot, struct sgp_slice slice)
{
    sgp_assert(slot < host->receive_count);
    const struct sgp_share *estimate = &host->receives[slot].share;
    if (host->receives[slot].state != SGP_SIM_RECEIVE_HELD || estimate->number != 0 ||
        estimate->slice.first != slice.first || estimate->slice.count != slice.count)
        sgp_sim_fail(host->sim, SGP_E_STATE, "%s adopts slot %u, which holds no estimate",
            sgp_sim_name(host->sim, host->index), slot);
    host->receives[slot].state = SGP_SIM_RECEIVE_TAKEN;
}

void sgp_sim_follow(void *context, uint32_t slot, struct sgp_slice slice)
{
    const struct sgp_sim_host *host = context;
    take_estimate(context, slot, slice);
    if (!sgp_sim_has_token(host))
        sgp_sim_copy_taken(context, slice);
    sgp_sim_append(context, (struct sgp_sim_job){.work = SGP_SIM_FOLLOW,
                                .slot = slot,
                                .slice = slice,
                                .round = host->receives[slot].share.round});
}

void sgp_sim_adopt(void *context, uint32_t slot, double factor, struct sgp_slice slice)
{
    struct sgp_sim_host *host = context;
    take_estimate(host, slot, slice);
    sgp_sim_append(
        host, (struct sgp_sim_job){
                  .work = SGP_SIM_ADOPT, .slot = slot, .factor = factor, .slice = slice});
}

void sgp_sim_scale(void *context, double factor, struct sgp_slice slice)
{
    sgp_sim_append(
        context, (struct sgp_sim_job){.work = SGP_SIM_SCALE, .factor = factor, .slice = slice});
}

void sgp_sim_outer(void *context, double weight)
{
    sgp_sim_append(context, (struct sgp_sim_job){.work = SGP_SIM_OUTER, .weight = weight});
}

void sgp_sim_sketch(void *context, double weight)
{
    sgp_sim_append(context, (struct sgp_sim_job){.work = SGP_SIM_SKETCH, .weight = weight});
}

void sgp_sim_measure(struct sgp_sim_host *host, sgp_round round, double weight)
{
    const struct sgp_topology *topology = host->file->topology;
    struct sgp_sim_job job = {.work = SGP_SIM_MEASURE, .round = round, .weight = weight};
    job.of_cycle = sgp_topology_is_exact(topology, round, NULL) &&
                   sgp_topology_start_from(topology, round + 1) == round + 1;
    note_cycle(host, round, &job);
    sgp_sim_append(host, job);
}

/* ---- what the jobs do ---- */

static int train(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    struct sgp_training training;
    return host->trainer->methods->train(
        host->trainer, job->weight, job->steps, job->factor, &training);
}

static void publish(struct sgp_sim_host *host, const struct sgp_sim_job *job, float *snapshot)
{
    double *outstanding = &host->outstanding[job->slot];
    if (*outstanding > SGP_SIM_MASS_SLACK)
        sgp_sim_fail(host->sim, SGP_E_STATE, "%s overwrites snapshot %u while %.17g of it is owed",
            sgp_sim_name(host->sim, host->index), job->slot, *outstanding);
    uint64_t dimension = host->sim->options.dimension;
    size_t bytes = dimension * sizeof *snapshot;
    if (job->of_cycle)
        sgp_sim_enter_cycle(host, job, host->sim->before);
    if (job->purpose == SGP_PUBLISH_COPY) {
        memcpy(snapshot, host->copy, bytes);
    } else if (job->purpose == SGP_PUBLISH_TOKEN) {
        sgp_copy_give(host->copy, host->trainer, &host->lent, (float)job->factor);
        memcpy(snapshot, host->copy, bytes);
        sgp_sim_check_token(host, snapshot);
    } else if (sgp_sim_has_token(host)) {
        sgp_copy_tell(host->copy, host->trainer, snapshot);
        sgp_sim_count_told(host);
    } else if (job->purpose == SGP_PUBLISH_UPDATE || job->purpose == SGP_PUBLISH_NOTHING) {
        if (job->purpose == SGP_PUBLISH_UPDATE)
            sgp_sim_update_leaves(host);
        sgp_copy_push(host->copy, host->trainer, &host->lent);
        memcpy(snapshot, host->lent, bytes);
    } else if (job->slice.count == dimension) {
        host->trainer->methods->publish(host->trainer, &host->lent, (float)job->factor);
        memcpy(snapshot, host->lent, bytes);
    } else {
        host->trainer->methods->copy(
            host->trainer, &snapshot, (float)job->factor, job->slice.first, job->slice.count);
    }
    if (job->weight > 0) {
        struct sgp_measure own = {.unit = job->weight};
        own.largest = sgp_kernels_best()->measure(&own.squares, snapshot, dimension);
        sgp_lengths_look(&host->lengths, &own);
    }
    if (job->purpose == SGP_PUBLISH_ESTIMATE && sgp_sim_is_owner(host))
        sgp_sim_check_label(host, job->round, snapshot, job->slice, false);
    bool given = !host->sim->apart && job->purpose != SGP_PUBLISH_NOTHING;
    *outstanding = given ? 1 - job->factor : 0;
    host->digests[job->slot] = XXH3_64bits(snapshot, bytes);
}

static void absorb(struct sgp_sim_host *host, const struct sgp_sim_job *job, const float *share)
{
    memcpy(host->sim->lent, share, job->slice.count * sizeof *share);
    host->trainer->methods->absorb(host->trainer, &host->sim->lent, (float)job->factor,
        job->slice.first, job->slice.count, NULL);
}

/* x has been made the long way: what came of folding must be the same to the bit, and takes its place. */
static void take_folded(struct sgp_sim_host *host)
{
    struct sgp_sim *sim = host->sim;
    size_t bytes = sim->options.dimension * sizeof *host->folded;
    host->trainer->methods->estimate(host->trainer, 1.0, sim->after);
    if (memcmp(sim->after, host->folded, bytes) != 0)
        sgp_sim_fail(sim, SGP_E_STATE, "%s has folded a share into another x than it has",
            sgp_sim_name(sim, host->index));
    memcpy(sim->lent, host->folded, bytes);
    host->trainer->methods->take(host->trainer, &sim->lent);
    sim->summary.shares_folded++;
}

static float *received(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    return host->received + job->slot * host->sim->options.dimension;
}

static void done_with(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    host->receives[job->slot].state = SGP_SIM_RECEIVE_FREE;
}

/* A change of its own, as training is. */
static void check_own(struct sgp_sim_host *host, struct sgp_slice slice)
{
    sgp_sim_check_job(host, NULL, 0, slice);
}

static void work_publish(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    float *snapshot = host->snapshots + job->slot * host->sim->options.dimension;
    publish(host, job, snapshot);
    bool own = job->purpose == SGP_PUBLISH_TOKEN || job->purpose == SGP_PUBLISH_NOTHING;
    sgp_sim_check_job(host, own ? NULL : snapshot + job->slice.first,
        job->purpose == SGP_PUBLISH_UPDATE && sgp_sim_has_token(host) ? 0 : job->factor - 1,
        job->slice);
}

static void work_absorb(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    const float *share = received(host, job);
    if (sgp_sim_adds_each(host) && !job->compensated)
        sgp_sim_keep_update(host, share, job->slice);
    absorb(host, job, share);
    done_with(host, job);
    if (sgp_sim_is_owner(host))
        sgp_sim_update_added(host, job, share);
    if (sgp_sim_adds_each(host))
        sgp_sim_check_added(host, job);
    sgp_sim_check_job(host, share, (double)(float)job->factor, job->slice);
    if (job->folded)
        take_folded(host);
}

static void work_compensate(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    float *update = received(host, job);
    sgp_sim_keep_update(host, update, job->slice);
    sgp_copy_compensate(update, host->trainer,
        host->snapshots + job->base * host->sim->options.dimension, (float)job->factor, job->slice);
    sgp_sim_count_compensated(host, update, job->slice);
}

static void work_visit(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    struct sgp_sim *sim = host->sim;
    uint64_t dimension = sim->options.dimension;
    memcpy(sim->lent, received(host, job), dimension * sizeof *sim->lent);
    sgp_copy_visit(host->copy, host->trainer, &sim->lent, host->snapshots + job->base * dimension,
        (float)job->factor, job->computes);
    done_with(host, job);
    sgp_sim_check_stands(host);
}

static void work_follow(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    struct sgp_sim *sim = host->sim;
    memcpy(sim->lent, received(host, job), job->slice.count * sizeof *sim->lent);
    sgp_copy_follow(host->copy, host->trainer, &sim->lent, job->slice);
    if (sgp_sim_has_token(host))
        sgp_sim_forget_moved(host);
    else
        sgp_sim_check_label(host, job->round, host->copy, job->slice, true);
    done_with(host, job);
}

static void work_adopt(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    sgp_copy_adopt(host->trainer, received(host, job), job->factor, job->slice);
    if (sgp_sim_has_token(host))
        sgp_sim_forget_moved(host);
    done_with(host, job);
}

static void work_restore(struct sgp_sim_host *host, const struct sgp_sim_job *job)
{
    struct sgp_sim *sim = host->sim;
    const float *snapshot = host->snapshots + job->slot * sim->options.dimension + job->slice.first;
    host->trainer->methods->restore(
        host->trainer, snapshot, (float)job->factor, job->slice.first, job->slice.count);
    host->outstanding[job->slot] -= sim->apart ? 0 : (double)(float)job->factor;
    sgp_sim_check_job(host, snapshot, (double)(float)job->factor, job->slice);
}

/* Do the job, fill in the event that tells the core, and check what has become of x. */
static void work(struct sgp_sim_host *host, const struct sgp_sim_job *job, struct sgp_event *event)
{
    struct sgp_sim *sim = host->sim;
    struct sgp_slice all = {0, sim->options.dimension};
    event->slot = job->slot;
    host->trainer->methods->estimate(host->trainer, 1.0, sim->before);
    if (job->work == SGP_SIM_TRAIN) {
        event->type = SGP_EVENT_TRAINED;
        event->code = train(host, job);
        check_own(host, all);
        if (sgp_sim_has_token(host) && event->code == 0)
            sgp_sim_count_moved(host);
    } else if (job->work == SGP_SIM_PUBLISH) {
        event->type = SGP_EVENT_PUBLISHED;
        work_publish(host, job);
    } else if (job->work == SGP_SIM_ABSORB) {
        event->type = SGP_EVENT_ABSORBED;
        work_absorb(host, job);
    } else if (job->work == SGP_SIM_COMPENSATE) {
        work_compensate(host, job);
    } else if (job->work == SGP_SIM_VISIT || job->work == SGP_SIM_ADOPT ||
               job->work == SGP_SIM_FOLLOW) {
        event->type = SGP_EVENT_ABSORBED;
        (job->work == SGP_SIM_VISIT      ? work_visit
            : job->work == SGP_SIM_ADOPT ? work_adopt
                                         : work_follow)(host, job);
        check_own(host, all);
    } else if (job->work == SGP_SIM_SCALE) {
        host->trainer->methods->scale(
            host->trainer, job->factor, job->slice.first, job->slice.count);
        check_own(host, job->slice);
    } else if (job->work == SGP_SIM_OUTER) {
        host->trainer->methods->outer(host->trainer, job->weight);
        check_own(host, all);
    } else {
        event->type = SGP_EVENT_RESTORED;
        work_restore(host, job);
    }
}

void sgp_sim_job_done(struct sgp_sim_host *host)
{
    if (sgp_sim_job_goes_on(host))
        return;
    struct sgp_sim_job *job = sgp_sim_take_job(host);
    if (job->work == SGP_SIM_MEASURE) {
        if (job->of_cycle)
            sgp_sim_leave_cycle(host, job);
        if (sgp_sim_is_owner(host))
            sgp_sim_check_mean(host);
        sgp_sim_rows_leave(host->sim, host, job->round, job->weight);
    } else if (job->work == SGP_SIM_CHECKPOINTED) {
        sgp_sim_checkpointed(host, job);
    } else if (job->work == SGP_SIM_SKETCH) {
        struct sgp_sketch sketch;
        host->trainer->methods->sketch(host->trainer, job->weight, &sketch);
        struct sgp_event event = {.type = SGP_EVENT_SKETCHED, .sketch = &sketch};
        sgp_sim_post(host->sim, host, &event);
    } else {
        struct sgp_event event = {.type = SGP_EVENT_TICK};
        work(host, job, &event);
        if (job->work != SGP_SIM_ABSORB && job->work != SGP_SIM_PUBLISH)
            sgp_sim_begin_step(host);
        if (job->work != SGP_SIM_SCALE && job->work != SGP_SIM_COMPENSATE &&
            job->work != SGP_SIM_OUTER) /* no core waits for their end */
            sgp_sim_post(host->sim, host, &event);
    }
    free(job);
}
