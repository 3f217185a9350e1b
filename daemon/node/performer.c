/* SPDX-License-Identifier: Apache-2.0 */
/* The effects of the core in the real world. Operations pass messages to links, and jobs to the
 * compute thread. The end of each job is posted to the core, in the order in which the jobs were
 * done.
 *
 * Thread: the loop thread, except run_work: see sgp/perform.h. */
#include "performer.h"

#include "edges.h"
#include "events.h"
#include "inquiry.h"
#include "kept.h"
#include "milestones.h"
#include "notes.h"
#include "privacy.h"
#include "program.h"
#include "task.h"

#include <errno.h>

/* ---- links ---- */

static void op_dial(void *context, uint32_t peer)
{
    struct daemon *daemon = context;
    if (!sgp_topology_is_dialled(daemon->prepared->topology, peer))
        return; /* the node calls instead (calls.c) */
    if (dialer_dial(&daemon->dialer, peer, &daemon->prepared->topology->nodes[peer]))
        return;
    edges_find(daemon, peer, SGP_OUT)->undialled = true;
    daemon->undialled = true;
}

static void op_send(
    void *context, struct sgp_link id, const struct sgp_message *message, uint32_t snapshot)
{
    struct daemon *daemon = context;
    struct link *link = edges_link(daemon, &id);
    if (link == NULL)
        return;
    edges_will_flush(daemon, link);
    if (snapshot == SGP_SLOT_NONE) {
        link_send(link, message);
        return;
    }
    struct sgp_message packed = *message;
    const float *values = sgp_perform_send(&daemon->performer, &packed, snapshot);
    enum sgp_compressor compressor = sgp_message_cargo(message).compressor;
    link_send_payload(link, &packed, values, sgp_perform_codec(&daemon->performer, compressor));
}

static void op_hang_up(
    void *context, struct sgp_link id, int code, const struct sgp_message *goodbye)
{
    struct daemon *daemon = context;
    struct link *link = edges_link(daemon, &id);
    if (link == NULL)
        return;
    notes_hang_up(daemon, &id, code, goodbye->goodbye.reason);
    link_close(link, goodbye);
}

static void op_receive(void *context, struct sgp_link id, uint32_t slot)
{
    struct daemon *daemon = context;
    struct link *link = edges_link(daemon, &id);
    if (link != NULL)
        link_receive(link, sgp_perform_receive(&daemon->performer, slot));
}

static void op_fold(void *context, const struct sgp_effect *effect)
{
    struct daemon *daemon = context;
    struct sgp_performer *performer = &daemon->performer;
    struct link *link = edges_link(daemon, &effect->fold.link);
    bool ends = effect->fold.how.snapshot == SGP_SLOT_NONE;
    if (link != NULL && sgp_perform_fold(performer, effect, link->received, link->expected))
        link_fold(link, ends ? NULL : &performer->folding);
}

/* ---- jobs ---- */

static void run_work(struct job *job)
{
    struct task *task = (struct task *)job;
    while (sgp_perform_run(&task->daemon->performer, &task->work) && !atomic_load(&task->enough))
        worker_let_in(&task->daemon->worker);
}

static void end_training(struct daemon *daemon, const struct sgp_work *work, bool cancelled)
{
    daemon->training = NULL;
    daemon->figures.failed = work->code != 0;
    if (work->code == 0 && !cancelled &&
        figures_trained(&daemon->figures, &work->training, events_now()))
        daemon->measure_due = true;
}

/* What a finished job says to figures, journal and edges. */
static void report_work(struct daemon *daemon, const struct sgp_work *work)
{
    double distance, part;
    uint32_t source;
    if (sgp_perform_distance(work, &distance))
        figures_distance(&daemon->figures, work->round, distance);
    if (sgp_perform_admission(&daemon->performer, work, &source, &part) &&
        edges_count_clip(daemon, source, part))
        notes_clipped(daemon, source);
    const struct sgp_adoption *adoption = sgp_perform_adoption(&daemon->performer, work);
    if (adoption != NULL)
        notes_compared(daemon, adoption);
}

static void done_work(struct job *job, bool cancelled)
{
    struct task *task = (struct task *)job;
    struct daemon *daemon = task->daemon;
    const struct sgp_work *work = &task->work;
    struct sgp_event event;
    if (work->type == SGP_EFFECT_TRAIN)
        end_training(daemon, work, cancelled);
    bool answers = !cancelled && sgp_perform_end(&daemon->performer, work, &event);
    if (!cancelled)
        report_work(daemon, work);
    task_give(task); /* what the event borrows of it stays until the core has read the event */
    if (answers)
        events_post(daemon, event);
}

/* A new epoch shuffles all rows, in one of many short steps. With more rows, such a step does not
 * run on the loop thread. */
#define SHUFFLED_ROWS_MAX 100000u
/* Usually scaling is only remembered, in the first round of a cycle. Behind other jobs it is not
 * known yet whether the guard clips a folded share. A pass over this number of values is still
 * short enough for the loop thread. */
#define PASSED_VALUES_MAX 65536u

/* NULL: the job is not short. */
static struct job_kind *kind_of(struct daemon *daemon, const struct sgp_work *work)
{
    enum sgp_effect_type type = work->type;
    bool replaces =
        type == SGP_EFFECT_ADOPT || type == SGP_EFFECT_FOLLOW || type == SGP_EFFECT_RECEIVE_TOKEN;
    bool guarded = work->folded && work->admission.judged, behind = daemon->worker.pending > 0;
    bool clips = guarded && (behind || sgp_perform_clips(&daemon->performer, work));
    bool passes =
        (type == SGP_EFFECT_SCALE || (guarded && behind)) && work->slice.count > PASSED_VALUES_MAX;
    bool shuffles = type == SGP_EFFECT_TRAIN &&
                    /* a relay never trains */
                    daemon->prepared->data.train->rows > SHUFFLED_ROWS_MAX;
    if (replaces || passes || shuffles)
        return NULL;
    if (work->folded)
        return clips ? &daemon->kinds.clip : &daemon->kinds.take;
    return &daemon->kinds.work[type];
}

/* No step is taken in a quiet round. */
static void run_quiet(struct job *job)
{
    (void)job;
}

static void done_quiet(struct job *job, bool cancelled)
{
    struct task *task = (struct task *)job;
    struct daemon *daemon = task->daemon;
    task_give(task);
    if (!cancelled)
        events_post(daemon, (struct sgp_event){.type = SGP_EVENT_TRAINED, .code = -ECANCELED});
}

/* Whether the effect is a step of the node, or an outer step, in a quiet round; or a step that
 * privacy does not allow. A step has an answer. */
static bool rests(struct daemon *daemon, const struct sgp_effect *effect)
{
    const bool trains = effect->type == SGP_EFFECT_TRAIN;
    const bool steps = trains || effect->type == SGP_EFFECT_OUTER;
    const bool quiet = steps && kept_is_quiet(daemon, effect->round);
    if (!quiet && !(trains && !privacy_may_step(daemon, effect->train.steps)))
        return false;
    struct task *task = trains ? task_take(daemon, run_quiet, done_quiet) : NULL;
    sgp_assert(!trains || task != NULL);
    if (trains)
        worker_push(&daemon->worker, &task->job);
    return true;
}

static void op_work(void *context, const struct sgp_effect *effect)
{
    struct daemon *daemon = context;
    bool trains = effect->type == SGP_EFFECT_TRAIN;
    bool keeps = effect->type == SGP_EFFECT_COMPENSATE || effect->type == SGP_EFFECT_SKETCH;
    if (rests(daemon, effect))
        return;
    daemon->changed = daemon->changed || !keeps;
    if (trains && daemon->program != NULL) {
        program_train(daemon, effect->train.steps, effect->train.pace);
        return;
    }
    struct task *task = task_take_work(daemon, run_work, done_work);
    sgp_assert(task != NULL); /* the core has a bounded number of pending jobs: tasks_reserve */
    sgp_perform_begin(&daemon->performer, effect, &task->work);
    task->job.kind = kind_of(daemon, &task->work);
    daemon->training = trains ? task : daemon->training;
    worker_push(&daemon->worker, &task->job);
}

void performer_yield(struct daemon *daemon)
{
    program_yield(daemon);
    if (daemon->training != NULL)
        atomic_store(&daemon->training->enough, true);
}

static void op_curtail(void *context)
{
    performer_yield(context);
}

/* ---- other operations ---- */

static void op_inquire(void *context, uint32_t peer, const struct sgp_inquire *question)
{
    inquiry_ask(context, peer, question);
}

static void op_commit(void *context, const struct sgp_node *node)
{
    struct daemon *daemon = context;
    ledger_commit(&daemon->ledger, node);
}

static void op_note(void *context, const struct sgp_effect *note)
{
    struct daemon *daemon = context;
    notes_note(daemon, note);
    milestones_reached(daemon, note);
}

const struct sgp_driver_ops performer_ops = {
    .commit = op_commit,
    .dial = op_dial,
    .send = op_send,
    .hang_up = op_hang_up,
    .receive = op_receive,
    .fold = op_fold,
    .curtail = op_curtail,
    .work = op_work,
    .inquire = op_inquire,
    .note = op_note,
};
