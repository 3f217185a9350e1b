/* SPDX-License-Identifier: Apache-2.0 */
/* The core's effects in the real world: verbs that hand messages to links and jobs to the compute
 * thread, and the ends of these jobs, posted back to the core in the order in which they were done.
 *
 * Thread: the loop thread, but for the functions named run_*, which are the compute thread's, or run while that
 * has nothing to do, and touch nothing but their task, the trainer and the vectors named in the task. */
#include "performer.h"

#include "edges.h"
#include "events.h"
#include "inquiry.h"
#include "milestones.h"
#include "notes.h"
#include "program.h"
#include "task.h"

#include "sgp/copy.h"
#include "sgp/kernels.h"
#include "sgp/payload.h"
#include "sgp/update.h"

#include <string.h>

static struct task *must_take(struct daemon *daemon, struct job_kind *kind,
    void (*run)(struct job *), void (*done)(struct job *, bool))
{
    struct task *task = task_take(daemon, run, done);
    sgp_assert(task != NULL); /* the core has a bounded number of jobs under way: tasks_reserve */
    task->job.kind = kind;
    return task;
}

/* ---- links ---- */

static void verb_dial(void *context, uint32_t peer)
{
    struct daemon *daemon = context;
    if (!sgp_topology_is_dialled(daemon->prepared->topology, peer))
        return; /* it calls: calls.c */
    dialer_dial(&daemon->dialer, peer, &daemon->prepared->topology->nodes[peer]);
}

static void verb_send(
    void *context, struct sgp_link id, const struct sgp_message *message, uint32_t snapshot)
{
    struct daemon *daemon = context;
    bool share = message->type == SGP_SHARE;
    struct link *link = edges_link(daemon, &id);
    if (link == NULL)
        return;
    edges_will_flush(daemon, link);
    if (snapshot == SGP_SLOT_NONE)
        link_send(link, message);
    else
        link_send_payload(link, message,
            *sgp_pool_place(&daemon->snapshots, snapshot) +
                (share ? message->share.slice.first : message->estimate.slice.first),
            share ? message->share.payload_bytes : message->estimate.payload_bytes);
}

static void verb_hang_up(
    void *context, struct sgp_link id, int code, const struct sgp_message *goodbye)
{
    struct daemon *daemon = context;
    struct link *link = edges_link(daemon, &id);
    if (link == NULL)
        return;
    notes_hang_up(daemon, &id, code, goodbye->goodbye.reason);
    link_close(link, goodbye);
}

static void verb_receive(void *context, struct sgp_link id, uint32_t slot)
{
    struct daemon *daemon = context;
    struct link *link = edges_link(daemon, &id);
    if (link == NULL)
        return;
    daemon->incoming[slot] = link->share;
    daemon->folded = daemon->folded == slot ? SGP_SLOT_NONE : daemon->folded;
    link_receive(link, *sgp_pool_place(&daemon->receives, slot));
}

/* When x comes to rest while a share is on its way. If little of that is left to come, it is absorbed as others are. */
static bool is_late(const struct link *link, const struct sgp_share *share)
{
    return link->received > share->payload_bytes / 4 * 3;
}

/* The snapshot is the one that we published in this round: our own estimate, to measure theirs against. */
static void verb_fold(void *context, struct sgp_link id, uint32_t slot, const struct sgp_fold *how)
{
    struct daemon *daemon = context;
    struct link *link = edges_link(daemon, &id);
    if (link != NULL && how->snapshot == SGP_SLOT_NONE && daemon->folded == slot)
        link_fold(link, NULL);
    const struct sgp_share *share = &daemon->incoming[slot];
    if (link == NULL || how->snapshot == SGP_SLOT_NONE || is_late(link, share))
        return;
    bool own = daemon->own_slot == how->snapshot && daemon->own_round == share->round &&
               share->weight > 0; /* else it has no weight of its own to be measured at */
    daemon->folded = slot;
    daemon->fold = (struct link_fold){
        .source = *sgp_pool_place(&daemon->snapshots, how->snapshot),
        .keep = (float)how->keep,
        .fraction = (float)how->fraction,
        .stride = own ? sgp_kernels_stride(share->slice.count) : 0,
        .their_scale = own ? (float)(share->fraction / share->weight) : 0,
        .own_scale = (float)(1 / daemon->own_weight),
    };
    link_fold(link, &daemon->fold);
}

/* ---- jobs ---- */

static void post_done(struct task *task, enum sgp_event_type type, bool cancelled)
{
    struct daemon *daemon = task->daemon;
    struct sgp_event event = {.type = type, .code = task->code, .slot = task->slot};
    task_give(task);
    if (!cancelled)
        events_post(daemon, event);
}

/* One step after the other: a round of many may take minutes, and the model is in order after each. */
static void run_train(struct job *job)
{
    struct task *task = (struct task *)job;
    struct sgp_trainer *trainer = task->trainer;
    struct sgp_training *sum = &task->training, step;
    /* Schedules are functions of the turn: a node that has jumped goes on where the fleet is. */
    trainer->methods->go_to(trainer, (uint64_t)task->turn * task->steps);
    double loss = 0;
    for (uint32_t i = 0; i < task->steps && !(i > 0 && atomic_load(&task->enough)); i++) {
        if (i > 0)
            worker_let_in(&task->daemon->worker);
        task->code = trainer->methods->train(trainer, task->weight, 1, task->factor, &step);
        if (task->code < 0)
            return;
        step.samples += sum->samples;
        loss += step.loss * (double)(step.samples - sum->samples);
        step.update = sgp_update_chain(sum->update, step.update);
        *sum = step;
    }
    sum->loss = loss / (double)sum->samples;
}

void performer_yield(struct daemon *daemon)
{
    program_yield(daemon);
    if (daemon->training != NULL)
        atomic_store(&daemon->training->enough, true);
}

static void done_train(struct job *job, bool cancelled)
{
    struct task *task = (struct task *)job;
    struct daemon *daemon = task->daemon;
    daemon->training = NULL;
    daemon->figures.failed = task->code != 0;
    if (task->code == 0 && !cancelled &&
        figures_trained(&daemon->figures, &task->training, events_now()))
        daemon->measure_due = true;
    const struct sgp_training training = task->training;
    int code = task->code;
    uint32_t steps = task->steps;
    task_give(task);
    if (!cancelled)
        events_trained(daemon, code, &training, steps);
}

/* A new epoch shuffles all rows in one of many short steps: more than so many are not for the loop thread. */
#define SHUFFLED_ROWS_MAX 100000u

static void verb_train(void *context, sgp_round turn, double weight, uint32_t steps, double pace)
{
    struct daemon *daemon = context;
    daemon->weight = weight;
    daemon->changed = true;
    if (daemon->program != NULL) {
        program_train(daemon, steps, pace);
        return;
    }
    bool shuffles = daemon->prepared->data.train->rows > SHUFFLED_ROWS_MAX; /* no relay trains */
    struct task *task =
        must_take(daemon, shuffles ? NULL : &daemon->kinds.train, run_train, done_train);
    task->turn = turn;
    task->weight = weight;
    task->steps = steps;
    task->factor = pace;
    daemon->training = task;
    worker_push(&daemon->worker, &task->job);
}

static void verb_curtail(void *context)
{
    performer_yield(context);
}

/* x, or a range of it, becomes the snapshot. Now and then it is measured, which others' shares are judged by
 * (sgp/payload.h). */
static void run_publish(struct job *job)
{
    struct task *task = (struct task *)job;
    uint64_t count = task->trainer->parameters;
    if (task->purpose == SGP_PUBLISH_COPY)
        memcpy(*task->place, task->daemon->copy, count * sizeof **task->place);
    else if (task->purpose == SGP_PUBLISH_TOKEN)
        sgp_copy_give(task->daemon->copy, task->trainer, task->place, (float)task->factor);
    else if (task->purpose == SGP_PUBLISH_UPDATE && task->factor > 0)
        sgp_copy_tell(task->daemon->copy, task->trainer, *task->place);
    else if (task->purpose == SGP_PUBLISH_UPDATE || task->purpose == SGP_PUBLISH_NOTHING)
        sgp_copy_push(task->daemon->copy, task->trainer, task->place);
    else if (task->slice.count == count)
        task->trainer->methods->publish(task->trainer, task->place, (float)task->factor);
    else
        task->trainer->methods->copy(
            task->trainer, task->place, (float)task->factor, task->slice.first, task->slice.count);
    if (!task->looks)
        return;
    struct sgp_measure *own = &task->own_measure;
    own->largest = sgp_kernels_best()->measure(&own->squares, *task->place, count);
    own->unit = task->weight;
}

static void done_publish(struct job *job, bool cancelled)
{
    struct task *task = (struct task *)job;
    if (task->looks)
        sgp_lengths_look(&task->daemon->lengths, &task->own_measure);
    post_done(task, SGP_EVENT_PUBLISHED, cancelled);
}

/* Neighbours are measured against the whole of what was published, at the weight that it has. */
static void verb_publish(void *context, sgp_round round, uint32_t snapshot, double keep,
    enum sgp_publish purpose, struct sgp_slice slice)
{
    struct daemon *daemon = context;
    struct task *task = must_take(daemon, &daemon->kinds.publish, run_publish, done_publish);
    bool whole = slice.count == daemon->prepared->parameters && daemon->weight > 0;
    bool ours = purpose == SGP_PUBLISH_SHARES || purpose == SGP_PUBLISH_TOKEN;
    if (ours && whole) {
        daemon->own_slot = snapshot;
        daemon->own_round = round;
        daemon->own_weight = daemon->weight;
        task->looks = daemon->published++ % SGP_LOOK_ROUNDS == 0;
    } else if (daemon->own_slot == snapshot) {
        daemon->own_slot = SGP_SLOT_NONE;
    }
    task->round = round;
    task->slot = snapshot;
    task->purpose = purpose;
    task->place = sgp_pool_place(&daemon->snapshots, snapshot);
    task->factor = keep;
    task->slice = slice;
    task->weight = daemon->weight;
    daemon->changed = true;
    worker_push(&daemon->worker, &task->job);
}

/* x += fraction * share, and how far the share's estimate is from our own when we published. */
static void run_absorb(struct job *job)
{
    struct task *task = (struct task *)job;
    struct sgp_comparison *comparison = NULL;
    if (task->own != NULL) {
        comparison = &task->comparison;
        comparison->own = *task->own;
    }
    task->trainer->methods->absorb(task->trainer, task->place, (float)task->factor,
        task->slice.first, task->slice.count, comparison);
}

static void done_absorb(struct job *job, bool cancelled)
{
    struct task *task = (struct task *)job;
    const struct sgp_comparison *comparison = &task->comparison;
    if (task->compared && !cancelled)
        figures_distance(&task->daemon->figures, task->round,
            sgp_relative_difference(comparison->difference, comparison->norm));
    post_done(task, SGP_EVENT_ABSORBED, cancelled);
}

static void run_take(struct job *job)
{
    struct task *task = (struct task *)job;
    task->trainer->methods->take(task->trainer, task->place);
}

static void take_folded(struct daemon *daemon, uint32_t slot)
{
    const struct link_fold *fold = &daemon->fold;
    struct task *task = must_take(daemon, &daemon->kinds.take, run_take, done_absorb);
    task->slot = slot;
    task->place = sgp_pool_place(&daemon->receives, slot);
    task->round = daemon->incoming[slot].round;
    task->compared = fold->stride > 0;
    task->comparison = (struct sgp_comparison){.difference = fold->difference, .norm = fold->norm};
    worker_push(&daemon->worker, &task->job);
}

static void verb_absorb(
    void *context, uint32_t slot, double fraction, struct sgp_slice slice, bool folded)
{
    struct daemon *daemon = context;
    const struct sgp_share *share = &daemon->incoming[slot];
    daemon->weight += share->weight;
    daemon->changed = true;
    if (folded && daemon->folded == slot) {
        take_folded(daemon, slot);
        return;
    }
    struct task *task = must_take(daemon, &daemon->kinds.absorb, run_absorb, done_absorb);
    task->slot = slot;
    task->place = sgp_pool_place(&daemon->receives, slot);
    task->factor = fraction;
    task->slice = slice;
    task->round = share->round;
    if (daemon->own_slot != SGP_SLOT_NONE && share->round == daemon->own_round &&
        share->weight > 0) {
        task->own = sgp_pool_place(&daemon->snapshots, daemon->own_slot);
        task->comparison.own_weight = daemon->own_weight;
        task->comparison.their_weight = share->weight / share->fraction;
        task->compared = true;
    }
    worker_push(&daemon->worker, &task->job);
}

static void done_silently(struct job *job, bool cancelled)
{
    (void)cancelled;
    task_give((struct task *)job);
}

static void run_compensate(struct job *job)
{
    struct task *task = (struct task *)job;
    sgp_copy_compensate(*task->place, task->trainer, *task->own, (float)task->factor, task->slice);
}

/* The ABSORB that follows tells the core of both. */
static void verb_compensate(
    void *context, uint32_t slot, uint32_t snapshot, double factor, struct sgp_slice slice)
{
    struct daemon *daemon = context;
    struct task *task = must_take(daemon, &daemon->kinds.compensate, run_compensate, done_silently);
    task->place = sgp_pool_place(&daemon->receives, slot);
    task->own = sgp_pool_place(&daemon->snapshots, snapshot);
    task->factor = factor;
    task->slice = slice;
    worker_push(&daemon->worker, &task->job);
}

static void run_restore(struct job *job)
{
    struct task *task = (struct task *)job;
    task->trainer->methods->restore(task->trainer, *task->place + task->slice.first,
        (float)task->factor, task->slice.first, task->slice.count);
}

static void done_restore(struct job *job, bool cancelled)
{
    post_done((struct task *)job, SGP_EVENT_RESTORED, cancelled);
}

static void verb_restore(void *context, uint32_t snapshot, double fraction, struct sgp_slice slice)
{
    struct daemon *daemon = context;
    struct task *task = must_take(daemon, &daemon->kinds.restore, run_restore, done_restore);
    task->slot = snapshot;
    task->place = sgp_pool_place(&daemon->snapshots, snapshot);
    task->factor = fraction;
    task->slice = slice;
    daemon->changed = true;
    worker_push(&daemon->worker, &task->job);
}

static void run_adopt(struct job *job)
{
    struct task *task = (struct task *)job;
    sgp_copy_adopt(task->trainer, *task->place, task->factor, task->slice);
}

static void verb_adopt(void *context, uint32_t slot, double factor, struct sgp_slice slice)
{
    struct daemon *daemon = context;
    struct task *task = must_take(daemon, NULL, run_adopt, done_absorb);
    task->slot = slot;
    task->place = sgp_pool_place(&daemon->receives, slot);
    task->factor = factor;
    task->slice = slice;
    daemon->changed = true;
    worker_push(&daemon->worker, &task->job);
}

static void run_follow(struct job *job)
{
    struct task *task = (struct task *)job;
    sgp_copy_follow(task->daemon->copy, task->trainer, task->place, task->slice);
}

static void verb_follow(void *context, uint32_t slot, struct sgp_slice slice)
{
    struct daemon *daemon = context;
    struct task *task = must_take(daemon, NULL, run_follow, done_absorb);
    task->slot = slot;
    task->place = sgp_pool_place(&daemon->receives, slot);
    task->slice = slice;
    daemon->changed = true;
    worker_push(&daemon->worker, &task->job);
}

static void run_visit(struct job *job)
{
    struct task *task = (struct task *)job;
    sgp_copy_visit(task->daemon->copy, task->trainer, task->place, *task->own, (float)task->factor,
        task->computes);
}

/* The token takes up what was told where that lies, here and now: the compute thread may be in the middle of a step, and has
 * no business with either vector. */
static void verb_visit(
    void *context, uint32_t slot, uint32_t snapshot, double fraction, bool computes)
{
    struct daemon *daemon = context;
    struct task *task = must_take(daemon, NULL, run_visit, done_absorb);
    task->slot = slot;
    task->place = sgp_pool_place(&daemon->receives, slot);
    task->own = sgp_pool_place(&daemon->snapshots, snapshot);
    task->factor = fraction;
    task->computes = computes;
    sgp_copy_collect(*task->own, *task->place, (float)fraction, daemon->prepared->parameters);
    if (daemon->own_slot == snapshot)
        daemon->own_slot = SGP_SLOT_NONE;
    daemon->changed = true;
    worker_push(&daemon->worker, &task->job);
}

static void run_scale(struct job *job)
{
    struct task *task = (struct task *)job;
    task->trainer->methods->scale(
        task->trainer, task->factor, task->slice.first, task->slice.count);
}

static void run_outer(struct job *job)
{
    struct task *task = (struct task *)job;
    task->trainer->methods->outer(task->trainer, task->weight);
}

/* Mostly it is but remembered, at the opening of a cycle. So much at most is not too long for the loop thread if it is not. */
#define SCALED_VALUES_MAX 65536u

static void verb_scale(void *context, double factor, struct sgp_slice slice)
{
    struct daemon *daemon = context;
    struct job_kind *kind = slice.count <= SCALED_VALUES_MAX ? &daemon->kinds.scale : NULL;
    struct task *task = must_take(daemon, kind, run_scale, done_silently);
    task->factor = factor;
    task->slice = slice;
    daemon->changed = true;
    worker_push(&daemon->worker, &task->job);
}

static void verb_outer(void *context, double weight)
{
    struct daemon *daemon = context;
    struct task *task = must_take(daemon, &daemon->kinds.outer, run_outer, done_silently);
    task->weight = weight;
    daemon->changed = true;
    worker_push(&daemon->worker, &task->job);
}

static void run_sketch(struct job *job)
{
    struct task *task = (struct task *)job;
    task->trainer->methods->sketch(task->trainer, task->weight, &task->sketch);
}

static void done_sketch(struct job *job, bool cancelled)
{
    struct task task = *(struct task *)job;
    task_give((struct task *)job);
    if (!cancelled)
        events_post(
            task.daemon, (struct sgp_event){.type = SGP_EVENT_SKETCHED, .sketch = &task.sketch});
}

static void verb_sketch(void *context, double weight)
{
    struct daemon *daemon = context;
    struct task *task = must_take(daemon, &daemon->kinds.sketch, run_sketch, done_sketch);
    task->weight = weight;
    worker_push(&daemon->worker, &task->job);
}

static void verb_inquire(void *context, uint32_t peer, const struct sgp_inquire *question)
{
    inquiry_ask(context, peer, question);
}

static void verb_commit(void *context, const struct sgp_node *node)
{
    struct daemon *daemon = context;
    ledger_commit(&daemon->ledger, node);
}

static void verb_note(void *context, const struct sgp_effect *note)
{
    struct daemon *daemon = context;
    if (note->weight > 0 || !sgp_topology_has_exact(daemon->prepared->topology))
        daemon->weight = note->weight;
    notes_note(daemon, note);
    milestones_reached(daemon, note);
}

const struct sgp_driver_verbs performer_verbs = {
    .commit = verb_commit,
    .dial = verb_dial,
    .send = verb_send,
    .hang_up = verb_hang_up,
    .receive = verb_receive,
    .fold = verb_fold,
    .train = verb_train,
    .curtail = verb_curtail,
    .publish = verb_publish,
    .absorb = verb_absorb,
    .compensate = verb_compensate,
    .restore = verb_restore,
    .adopt = verb_adopt,
    .follow = verb_follow,
    .visit = verb_visit,
    .scale = verb_scale,
    .outer = verb_outer,
    .sketch = verb_sketch,
    .inquire = verb_inquire,
    .note = verb_note,
};
