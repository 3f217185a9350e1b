/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that the core does not know: evaluate, hand out the estimate, predict, save the model. They
 * are in the one job queue. So each sees x as the jobs before it left it, and is given the w of
 * that place in the queue.
 *
 * Fails: no memory for an estimate, or a file that cannot be written. The client is told, or the
 * failure is logged. Thread: the loop thread, except for the functions named run_*. */
#include "background_jobs.h"

#include "edges.h"
#include "events.h"
#include "store/export.h"
#include "notes.h"
#include "privacy.h"
#include "task.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAVE_PATH_BYTES 4096u

struct save { /* what a save needs beside the vector */
    struct export export;
    char path[SAVE_PATH_BYTES];
    struct view_best best; /* of a kept model */
    struct sgp_error error;
};

/* ---- the kept model, which takes the place of the last one after training ---- */

int background_jobs_read(const char *path, float *values, uint64_t count, struct sgp_error *error)
{
    struct sgp_model_file *file = NULL;
    int code = sgp_safetensors_read(path, error, &file);
    if (code == 0 && file->value_count != count)
        code = sgp_fail(error, SGP_E_FILE, "%s: it is another model", path);
    if (code == 0)
        memcpy(values, file->values, count * sizeof *values);
    sgp_model_file_destroy(file);
    return code;
}

/* The path that a job reads; NULL: it takes the estimate. */
static char *kept_of(const struct daemon *daemon)
{
    return daemon->kept_model.ready ? strdup(daemon->kept_model.path) : NULL;
}

/* ---- measuring, at the end of an epoch ---- */

/* During an exact cycle x is not an estimate, but the snapshot with which the node entered the
 * cycle is one. It takes the place of x, and x is put back. Other code may read the location of the
 * snapshot, so that is not exchanged. */
void background_jobs_look(struct task *task, void (*at)(struct task *))
{
    const struct sgp_trainer_methods *methods = task->trainer->methods;
    float *held = task->entered != NULL ? *task->entered : NULL;
    if (held != NULL)
        methods->exchange(task->trainer, &held);
    at(task);
    if (held != NULL)
        methods->exchange(task->trainer, &held);
}

/* The same, or at the kept model if the task has its file. A program's model is not kept. */
static void look(struct task *task, void (*at)(struct task *))
{
    struct sgp_learner *learner = task->daemon->prepared->learner;
    const uint64_t count = task->trainer->model_values;
    struct sgp_error error = {0};
    float *values = NULL;
    if (task->file == NULL) {
        background_jobs_look(task, at);
        return;
    }
    task->code = sgp_vector_create(count, &values);
    if (task->code == 0)
        task->code = background_jobs_read(task->file, values, count, &error);
    if (task->code == 0) {
        sgp_learner_exchange(learner, values);
        at(task);
        sgp_learner_exchange(learner, values);
    }
    sgp_vector_destroy(values);
}

float **background_jobs_entered(struct daemon *daemon, uint32_t estimate_slot)
{
    return estimate_slot == SGP_SLOT_NONE
               ? NULL
               : sgp_pool_place(&daemon->performer.snapshots, estimate_slot);
}

/* A node that stops does not keep its caller waiting for an evaluation that somebody asked for; the
 * rows of the history are complete. */
static void evaluate_now(struct task *task)
{
    const struct sgp_trainer_methods *methods = task->trainer->methods;
    task->trainer->cut = task->job.reads ? &task->daemon->hurry : NULL;
    if (task->measured)
        task->code =
            methods->measure(task->trainer, task->weight, &task->evaluation, &task->measures);
    else
        task->code = methods->evaluate(task->trainer, task->weight, &task->evaluation);
}

static void run_evaluate(struct job *job)
{
    look((struct task *)job, evaluate_now);
}

static void model_now(struct task *task)
{
    task->trainer->methods->model(task->trainer, task->weight, task->vector);
}

static int find_values(struct task *task, struct sgp_error *error)
{
    if (task->file != NULL)
        return background_jobs_read(task->file, task->vector, task->trainer->model_values, error);
    background_jobs_look(task, model_now);
    return 0;
}

static void tell_row(
    struct daemon *daemon, const struct view_history_row *row, enum sgp_level level)
{
    char disagreement[40] = ""; /* a single node has none, and neither has an owner's worker */
    if (!isnan(row->disagreement))
        (void)snprintf(disagreement, sizeof disagreement, " disagreement=%.3g", row->disagreement);
    if (isnan(row->loss)) /* this process has not trained: training was already complete */
        sgp_log(&daemon->log->sink, level,
            "event=measured round=%" PRId64 " test_loss=%.6g test_accuracy=%.6g weight=%.17g",
            row->round, row->test_loss, row->test_accuracy, row->weight);
    else
        sgp_log(&daemon->log->sink, level,
            "event=epoch epoch=%.3f round=%" PRId64 " loss=%.6g test_loss=%.6g "
            "test_accuracy=%.6g weight=%.17g%s",
            row->epoch, row->round, row->loss, row->test_loss, row->test_accuracy, row->weight,
            disagreement);
}

/* A failure is reported once, when it begins. */
static void keep_row(struct daemon *daemon, const struct view_history_row *row)
{
    struct sgp_error error = {0};
    if (history_add(&daemon->history, row, &error) < 0)
        notes_error(daemon, "the history goes on in memory alone: %s", error.text);
    else if (!daemon->history.failed)
        notes_mended(daemon, "the history ");
    if (scalars_add(&daemon->scalars, row, &error) < 0)
        notes_error(daemon, "the event file lacks rows: %s", error.text);
    else if (!daemon->scalars.failed)
        notes_mended(daemon, "the event file ");
}

static void add_row(struct daemon *daemon, sgp_round round, double weight)
{
    const struct sgp_node_status status = daemon_status(daemon);
    const struct figures *figures = &daemon->figures;
    bool ended = status.state == SGP_NODE_FINISHED;
    struct view_history_row row = {
        .round = round,
        .seconds = (double)(events_now() - daemon->started) / (double)SGP_SECOND,
        .epoch = figures->training.epoch,
        .loss = figures->training.loss,
        .test_loss = figures->test.loss,
        .test_accuracy = figures->test.accuracy,
        .disagreement = figures_disagreement(figures, ended, ended ? edges_distance(daemon) : NAN),
        .weight = weight,
        .compression_error = daemon->performer.lost,
        .bytes_spared = daemon->performer.spared_bytes,
        .best_value = daemon->kept_model.best.value,
    };
    for (uint32_t i = 0; i < daemon->edge_count; i++) {
        uint64_t sent, received;
        edges_bytes(&daemon->edges[i], &sent, &received);
        row.bytes_sent += sent;
        row.bytes_received += received;
    }
    keep_row(daemon, &row);
    notes_divergence(daemon);
    /* Epochs of a tiny model may take a millisecond. So at most one line a second is logged, except
     * the last. */
    sgp_time now = events_now();
    bool told = ended || now - daemon->row_told >= SGP_SECOND;
    if (told)
        daemon->row_told = now;
    enum sgp_level level = told ? SGP_LEVEL_INFO : SGP_LEVEL_DEBUG;
    tell_row(daemon, &row, level);
}

/* The test result of a round's estimate, for status and history. It may reach the goal of
 * training. */
static void take_figures(struct daemon *daemon, int code, const struct sgp_evaluation *evaluation,
    sgp_round round, double weight, bool row)
{
    figures_tested(&daemon->figures, code, evaluation);
    if (code != 0 && row)
        notes_error(daemon, "evaluation: %s", sgp_strerror(code));
    if (row)
        add_row(daemon, round, weight);
    double goal = daemon->config->stop_at_accuracy; /* NaN: no goal; compares false */
    if (code == 0 && evaluation->samples > 0 && evaluation->accuracy >= goal)
        events_post(daemon, (struct sgp_event){.type = SGP_EVENT_ENOUGH});
}

static void done_measure(struct job *job, bool cancelled)
{
    struct task task = *(struct task *)job;
    task_give((struct task *)job);
    if (!cancelled)
        take_figures(task.daemon, task.code, &task.evaluation, task.round, task.weight, true);
}

/* A program may report as often as it likes. The history must keep room for other rows, so it gets
 * one row a second of the same round. */
static bool is_news(const struct daemon *daemon, sgp_round round)
{
    const struct history *history = &daemon->history;
    const struct view_history_row *last =
        history->count > 0 ? history_row(history, history->count - 1) : NULL;
    double seconds = (double)(events_now() - daemon->started) / (double)SGP_SECOND;
    return last == NULL || last->round != round || seconds - last->seconds >= 1;
}

void background_jobs_reported(struct daemon *daemon, const struct sgp_evaluation *evaluation)
{
    const struct sgp_node_status status = daemon_status(daemon);
    int code = isinf(evaluation->loss) ? SGP_E_DIVERGED : 0;
    bool row = is_news(daemon, status.round);
    take_figures(daemon, code, evaluation, status.round, status.weight_estimate, row);
}

void background_jobs_measured(struct daemon *daemon, int code,
    const struct sgp_evaluation *evaluation, sgp_round round, double weight)
{
    take_figures(daemon, code, evaluation, round, weight, true);
}

void background_jobs_measure(struct daemon *daemon, sgp_round round, double weight)
{
    struct task *task = weight > 0 ? task_take(daemon, run_evaluate, done_measure) : NULL;
    if (task == NULL)
        return;
    task->round = round;
    task->weight = weight;
    worker_push(&daemon->worker, &task->job);
}

/* ---- saving ---- */

static void run_save(struct job *job)
{
    struct task *task = (struct task *)job;
    task->code = find_values(task, &task->save->error);
    if (task->code < 0)
        return;
    struct sgp_model_contents contents = export_contents(&task->save->export, task->vector);
    task->code = sgp_safetensors_write(&contents, task->save->path, &task->save->error);
}

static void done_save(struct job *job, bool cancelled)
{
    struct task *task = (struct task *)job;
    struct daemon *daemon = task->daemon;
    if (cancelled)
        notes_error(daemon, "the model was not saved: sgpd was told to end at once");
    else if (task->code != 0)
        notes_error(daemon, "the model was not saved: %s", task->save->error.text);
    else
        sgp_log(&daemon->log->sink, SGP_LEVEL_INFO, "event=saved round=%" PRId64 " file=\"%s\"",
            task->round, task->save->path);
    bool failed = cancelled || task->code != 0;
    daemon->model_file = failed ? MODEL_FAILED : MODEL_WRITTEN;
    if (!failed)
        notes_mended(daemon, "the model ");
    daemon->changed = daemon->changed || failed; /* a checkpoint, or the end, retries */
    free(task->vector);
    free(task->save);
    free(task->file);
    task_give(task);
    daemon->saves--;
    if (!cancelled)
        events_settle(daemon);
}

void background_jobs_save(struct daemon *daemon, sgp_round round, double weight)
{
    float **entered =
        weight > 0 ? NULL : background_jobs_entered(daemon, daemon_status(daemon).estimate_slot);
    const struct sgp_topology *topology = daemon->prepared->topology;
    bool owned = topology->owner != SGP_NODE_NONE;
    if (weight <= 0 && entered == NULL && (owned || topology->nodes[daemon->prepared->self].relay))
        /* no estimate: a relay between cycles, a part's owner, or a worker without a copy */
        return;
    weight = entered != NULL ? 1 : weight;
    struct task *task = weight > 0 ? task_take(daemon, run_save, done_save) : NULL;
    struct save *save = calloc(1, sizeof *save);
    float *vector = malloc(daemon->prepared->trainer->model_values * sizeof *vector);
    if (task == NULL || save == NULL || vector == NULL) {
        notes_error(daemon, weight > 0 ? "the model was not saved: no memory"
                                       : "all mass is given away; there is no model to save");
        if (weight > 0)
            daemon->model_file = MODEL_FAILED;
        if (task != NULL)
            task_give(task);
        free(save);
        free(vector);
        return;
    }
    (void)snprintf(
        save->path, sizeof save->path, "%s/model.safetensors", daemon->config->state_directory);
    struct view_model view;
    prepared_view_model(daemon->prepared, &view);
    task->file = kept_of(daemon);
    save->best = daemon->kept_model.best;
    export_init(&save->export, &view,
        &(struct export_moment){.node = daemon->config->name,
            .round = task->file != NULL ? save->best.round : round,
            .weight = task->file != NULL ? 1 : weight,
            .training = daemon->figures.training,
            .test = daemon->figures.test,
            .private_steps = privacy_withholds(daemon),
            .best = task->file != NULL ? &save->best : NULL});
    task->round = task->file != NULL ? save->best.round : round;
    task->weight = weight;
    task->entered = entered;
    task->vector = vector;
    task->save = save;
    daemon->model_file = MODEL_WRITING;
    daemon->saves++;
    daemon->changed = false;
    notify_extend(30 * SGP_SECOND);
    worker_push(&daemon->worker, &task->job);
}

/* ---- for clients ---- */

/* Begin a task for the kept model, if there is one, or else with the present weight and round.
 * Returns 0, SGP_E_STATE, -EBUSY or -ENOMEM. */
static int begin(struct daemon *daemon, void (*run)(struct job *), void (*done)(struct job *, bool),
    struct task **ret_task, struct sgp_error *error)
{
    *ret_task = NULL;
    const struct sgp_node_status status = daemon_status(daemon);
    if (sgp_topology_owns_parts(daemon->prepared->topology, daemon->prepared->self))
        return sgp_fail(error, SGP_E_STATE,
            "%s owns a part of the vector, and has no model; ask a node that trains",
            daemon->config->name);
    if (daemon->ending || !(status.weight_estimate > 0))
        return SGP_E_STATE;
    struct task *task =
        daemon->background_jobs < TASK_BACKGROUND_MAX ? task_take(daemon, run, done) : NULL;
    if (task == NULL)
        return -EBUSY;
    const bool kept = daemon->kept_model.ready;
    task->file = kept_of(daemon);
    if (kept && task->file == NULL) {
        task_give(task);
        return -ENOMEM;
    }
    daemon->background_jobs++;
    task->job.reads = true;
    task->round = kept ? daemon->kept_model.best.round : status.round;
    task->weight = kept ? 1 : status.weight_estimate;
    task->entered = background_jobs_entered(daemon, status.estimate_slot);
    *ret_task = task;
    return 0;
}

/* The end of a background job. Returns a copy of the task, which is free again before the client is
 * called, and so is its file. */
static struct task end(struct job *job, bool cancelled)
{
    struct task task = *(struct task *)job;
    task.daemon->background_jobs--;
    task_give((struct task *)job);
    free(task.file); /* the pointer still says that there was one */
    if (cancelled)
        task.code = -ECANCELED;
    return task;
}

static void done_evaluate(struct job *job, bool cancelled)
{
    struct task task = end(job, cancelled);
    struct sgp_error error = {.code = task.code};
    task.daemon->evaluation_took = (sgp_time)task.job.took;
    if (task.file == NULL || task.code == 0) /* else the file could not be read */
        figures_tested(&task.daemon->figures, task.code, &task.evaluation);
    if (task.code == 0 && task.evaluation.samples == 0)
        (void)sgp_fail(
            &error, SGP_E_STATE, "there is nothing to test on; give [data] test or holdout");
    const bool good = error.code == 0;
    task.evaluated(task.argument, &error, good ? &task.evaluation : NULL,
        good && task.measured ? &task.measures : NULL, task.round, task.file != NULL);
    sgp_measures_finish(&task.measures);
}

int background_jobs_evaluate(
    struct daemon *daemon, view_evaluated done, void *argument, struct sgp_error *error)
{
    struct task *task;
    int code = begin(daemon, run_evaluate, done_evaluate, &task, error);
    if (code < 0)
        return code;
    task->measured = daemon->prepared->model.outputs <= VIEW_MEASURED_OUTPUTS &&
                     task->trainer->methods->measure != NULL;
    task->evaluated = done;
    task->argument = argument;
    worker_push(&daemon->worker, &task->job);
    return 0;
}

static int evaluate(void *context, view_evaluated done, void *argument, struct sgp_error *error)
{
    return background_jobs_evaluate(context, done, argument, error);
}

static void run_estimate(struct job *job)
{
    struct task *task = (struct task *)job;
    struct sgp_error error = {0};
    task->code = find_values(task, &error);
}

static void done_estimate(struct job *job, bool cancelled)
{
    struct task task = end(job, cancelled);
    uint64_t values = task.trainer->model_values;
    if (task.code != 0)
        free(task.vector);
    task.estimated(task.argument, task.code, task.code == 0 ? task.vector : NULL, values,
        task.round, task.weight);
}

static int estimate(void *context, view_estimated done, void *argument, struct sgp_error *error)
{
    struct daemon *daemon = context;
    struct task *task;
    float *vector = malloc(daemon->prepared->trainer->model_values * sizeof *vector);
    if (vector == NULL)
        return -ENOMEM;
    int code = begin(daemon, run_estimate, done_estimate, &task, error);
    if (code < 0) {
        free(vector);
        return code;
    }
    task->vector = vector;
    task->estimated = done;
    task->argument = argument;
    worker_push(&daemon->worker, &task->job);
    return 0;
}

static void predict_now(struct task *task)
{
    sgp_learner_predict(
        task->daemon->prepared->learner, task->weight, task->features, task->rows, task->vector);
}

static void run_predict(struct job *job)
{
    look((struct task *)job, predict_now);
}

static void done_predict(struct job *job, bool cancelled)
{
    struct task task = end(job, cancelled);
    const struct sgp_error error = {.code = task.code};
    task.predicted(task.argument, &error, task.code == 0 ? task.vector : NULL, task.rows,
        task.daemon->prepared->model.outputs);
    free(task.vector);
}

static int predict(void *context, const float *features, uint64_t rows, uint32_t columns,
    view_predicted done, void *argument, struct sgp_error *error)
{
    struct daemon *daemon = context;
    sgp_assert(columns == daemon->prepared->model.inputs);
    struct task *task;
    float *outputs = calloc(rows * daemon->prepared->model.outputs, sizeof *outputs);
    if (outputs == NULL)
        return -ENOMEM;
    int code = begin(daemon, run_predict, done_predict, &task, error);
    if (code < 0) {
        free(outputs);
        return code;
    }
    task->vector = outputs;
    task->features = features;
    task->rows = rows;
    task->predicted = done;
    task->argument = argument;
    worker_push(&daemon->worker, &task->job);
    return 0;
}

void background_jobs_offer(struct view_actions *actions)
{
    actions->evaluate = evaluate;
    actions->estimate = estimate;
    actions->predict = predict;
}
