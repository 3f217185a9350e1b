/* SPDX-License-Identifier: Apache-2.0 */
/* The measures of this node at a label, and its model as a file; see kept_inside.h. */
#include "kept_inside.h"

#include "background_jobs.h"
#include "store/export.h"
#include "task.h"

#include "sgp/measures.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct writing { /* what the job needs beside the vector */
    struct export export;
    char path[CONFIG_TEXT_BYTES];
    struct sgp_error error;
};

bool kept_is_new(const struct kept *kept, sgp_round label)
{
    const struct sgp_best *rule = &kept->rule;
    return label > rule->best.label && label > rule->last && label > rule->through;
}

/* ---- the counts ---- */

static double figure(enum sgp_best_measure measure, const struct sgp_measures *measures)
{
    double value = NAN;
    switch (measure) {
    case SGP_BEST_LOG_LOSS:
        (void)sgp_measures_log_loss(measures, &value);
        break;
    case SGP_BEST_ABSOLUTE_ERROR:
        (void)sgp_measures_absolute_error(measures, measures->outputs, &value);
        break;
    case SGP_BEST_SQUARED_ERROR:
        (void)sgp_measures_squared_error(measures, measures->outputs, &value);
        break;
    case SGP_BEST_ACCURACY:
        break;
    }
    return value;
}

/* The values that a measure is the mean of: one of a row, or one of each output of a row. */
static uint64_t values_of(const struct prepared *prepared, uint64_t rows)
{
    const bool one = prepared->data.train->classes > 0;
    return one ? rows : rows * prepared->model.outputs;
}

/* Few rows are not told of, since their counts would tell of the rows. */
static struct sgp_best_score score_of(const struct kept *kept, const struct task *task)
{
    const struct prepared *prepared = kept->daemon->prepared;
    const enum sgp_best_measure measure = kept->rule.settings.measure;
    const uint64_t rows = prepared->data.test != NULL ? prepared->data.test->rows : 0;
    struct sgp_best_score score = {.label = task->round};
    if (rows == 0 || rows < kept->daemon->config->min_count)
        return score;
    score.count = values_of(prepared, rows);
    if (task->code != 0)
        score.sum = NAN;
    else if (measure == SGP_BEST_ACCURACY)
        score.sum = round(task->evaluation.accuracy * (double)score.count);
    else
        score.sum = figure(measure, &task->measures) * (double)score.count;
    return score;
}

/* ---- the job ---- */

static void measure_now(struct task *task)
{
    const struct sgp_trainer_methods *methods = task->trainer->methods;
    task->trainer->cut = &task->daemon->hurry;
    if (task->measured)
        task->code =
            methods->measure(task->trainer, task->weight, &task->evaluation, &task->measures);
    else if (task->daemon->prepared->data.test != NULL)
        task->code = methods->evaluate(task->trainer, task->weight, &task->evaluation);
    methods->model(task->trainer, task->weight, task->vector);
}

static void run_measure(struct job *job)
{
    struct task *task = (struct task *)job;
    struct writing *writing = task->argument;
    background_jobs_look(task, measure_now);
    const struct sgp_model_contents contents = export_contents(&writing->export, task->vector);
    writing->error.code = sgp_safetensors_write(&contents, writing->path, &writing->error);
}

/* A model that diverges has a value, which is not a number. Without a measurement there is none. */
static bool is_measured(const struct task *task)
{
    return task->code == 0 || task->code == SGP_E_DIVERGED;
}

static void take(struct kept *kept, const struct task *task)
{
    const struct sgp_best_score score = score_of(kept, task);
    kept->models[kept->writing] = is_measured(task) ? task->round : SGP_ROUND_NONE;
    kept->writing = KEPT_MODELS;
    kept->news = events_now();
    if (!is_measured(task) || !kept_is_new(kept, task->round)) /* or a decision went past it */
        return;
    sgp_best_add(&kept->rule, &score);
    kept_write(kept);
}

static void done_measure(struct job *job, bool cancelled)
{
    struct task *task = (struct task *)job;
    struct kept *kept = task->daemon->kept;
    struct writing *writing = task->argument;
    const int code = cancelled ? -ECANCELED : writing->error.code;
    kept->measuring = false;
    if (code < 0)
        kept->writing = KEPT_MODELS;
    if (code < 0 && !cancelled)
        notes_error(kept->daemon, "the best model: that of round %lld is not kept: %s",
            (long long)task->round, writing->error.text);
    if (code == 0) {
        notes_mended(kept->daemon, "the best model");
        take(kept, task);
    }
    if (!cancelled && is_measured(task))
        background_jobs_measured(
            kept->daemon, task->code, &task->evaluation, task->round, task->weight);
    sgp_measures_finish(&task->measures);
    free(task->vector);
    free(writing);
    task_give(task);
    kept_wake(kept);
}

void kept_measure(struct kept *kept, sgp_round label, double weight, uint32_t slot)
{
    struct daemon *daemon = kept->daemon;
    const uint32_t model = kept->writing == KEPT_MODELS ? kept_free(kept) : KEPT_MODELS;
    struct writing *writing = model < KEPT_MODELS ? calloc(1, sizeof *writing) : NULL;
    float *vector = malloc(daemon->prepared->trainer->model_values * sizeof *vector);
    struct task *task =
        writing != NULL && vector != NULL ? task_take(daemon, run_measure, done_measure) : NULL;
    if (task == NULL) { /* the label is not told of */
        free(writing);
        free(vector);
        return;
    }
    struct view_model view;
    prepared_view_model(daemon->prepared, &view);
    export_init(&writing->export, &view,
        &(struct export_moment){.node = daemon->config->name,
            .round = label,
            .weight = weight,
            .training = daemon->figures.training,
            .test = {.loss = NAN}});
    kept_path(kept, model, writing->path);
    kept->writing = model;
    kept->measuring = true;
    task->round = label;
    task->entered = background_jobs_entered(daemon, slot);
    task->weight = task->entered != NULL ? 1 : weight;
    task->measured =
        kept->rule.settings.measure != SGP_BEST_ACCURACY && daemon->prepared->data.test != NULL;
    task->vector = vector;
    task->argument = writing;
    worker_push(&daemon->worker, &task->job);
}
