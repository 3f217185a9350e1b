/* SPDX-License-Identifier: Apache-2.0 */
/* The best model: what the rest of the daemon calls, and what is due now; see kept.h and
 * kept_inside.h. */
#include "kept_inside.h"

#include "background_jobs.h"
#include "facts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool kept_is_quiet(const struct daemon *daemon, sgp_round round)
{
    const struct sgp_best_times times = prepared_best_times(daemon->prepared);
    return daemon->kept != NULL && sgp_best_is_quiet(&times, round);
}

/* A relay has no rows, and no word: it passes the words of others on, and takes the copy. */
static bool is_relay(const struct daemon *daemon)
{
    return daemon->prepared->topology->nodes[daemon->prepared->self].relay;
}

/* ---- what is due ---- */

/* All nodes come to this by the same words, and the least round that one of them asks for counts
 * for all. */
static void stop(struct kept *kept)
{
    const struct sgp_node_status status = daemon_status(kept->daemon);
    if (!kept->stops || (status.state != SGP_NODE_TRAINING && status.state != SGP_NODE_SETTLING))
        return;
    kept->stops = false;
    events_post(kept->daemon, (struct sgp_event){.type = SGP_EVENT_ENOUGH});
}

/* The final model is measured as a label of its own, once no other measurement is under way. */
static void measure_last(struct kept *kept)
{
    const struct sgp_node_status status = daemon_status(kept->daemon);
    const sgp_round label = kept->final_label;
    if (label != SGP_ROUND_NONE && kept->writing == KEPT_MODELS) {
        kept->final_label = SGP_ROUND_NONE;
        if (kept_is_new(kept, label) && status.weight_estimate > 0)
            kept_measure(kept, label, status.weight_estimate, status.estimate_slot);
    }
    if (kept->final_label == SGP_ROUND_NONE && !kept->measuring)
        sgp_best_finish(&kept->rule);
}

/* After training the best model takes the place of the last one. */
static void replace(struct kept *kept)
{
    struct daemon *daemon = kept->daemon;
    struct kept_model *model = &daemon->kept_model;
    const uint32_t best = kept_find(kept, kept->rule.best.label);
    char path[CONFIG_TEXT_BYTES];
    model->ready = best < KEPT_MODELS;
    if (!model->ready)
        return;
    kept_path(kept, best, path);
    model->version += kept->shown != kept->rule.best.label || strcmp(path, model->path) != 0;
    kept->shown = kept->rule.best.label;
    (void)strcpy(model->path, path);
    const bool saved = kept->saved == kept->rule.best.label && kept->saved_digest == kept->digest;
    if (saved || kept->copying || daemon->model_file == MODEL_WRITING)
        return;
    kept->saved = kept->rule.best.label;
    kept->saved_digest = kept->digest;
    background_jobs_save(daemon, kept->rule.best.label, 1);
}

static void look(uv_timer_t *timer)
{
    struct kept *kept = timer->data;
    if (kept->closing || kept->daemon->ending)
        return;
    kept->rule.settings.run = kept->daemon->run.number; /* a neighbour may have told it */
    kept_view(kept->daemon, &kept->daemon->kept_model.best);
    kept_write_again(kept);
    if (kept->has_finished)
        measure_last(kept);
    if (!is_relay(kept->daemon))
        kept_tell(kept);
    stop(kept);
    if (!kept->has_finished || kept->daemon->ending)
        return;
    kept_copy(kept);
    replace(kept);
}

void kept_settle(struct daemon *daemon)
{
    if (daemon->kept != NULL)
        kept_wake(daemon->kept);
}

void kept_changed(struct daemon *daemon)
{
    daemon->kept->news = events_now();
    kept_wake(daemon->kept);
}

/* ---- the core's notes ---- */

bool kept_round(struct daemon *daemon, const struct sgp_effect *effect)
{
    struct kept *kept = daemon->kept;
    const struct sgp_best_times times = prepared_best_times(daemon->prepared);
    const sgp_round label = effect->round + 1;
    if (kept == NULL)
        return false;
    kept->rule.settings.run = daemon->run.number;
    if (sgp_best_is_label(&times, label) && kept_is_new(kept, label) && effect->weight > 0 &&
        !is_relay(daemon))
        kept_measure(kept, label, effect->weight, SGP_SLOT_NONE);
    return true;
}

bool kept_finished(struct daemon *daemon, const struct sgp_effect *effect)
{
    struct kept *kept = daemon->kept;
    if (kept == NULL)
        return false;
    const bool first = !kept->has_finished;
    const sgp_round label = daemon_status(daemon).rounds;
    const bool measures =
        first && kept_is_new(kept, label) && effect->weight > 0 && !is_relay(daemon);
    kept->final_label = measures ? label : kept->final_label;
    kept->has_finished = true;
    kept->news = events_now();
    kept->saved = SGP_ROUND_NONE; /* the model file is the last model's, or soon will be */
    kept_wake(kept);
    return measures;
}

bool kept_is_awaited(const struct daemon *daemon)
{
    const struct kept *kept = daemon->kept;
    const bool nothing =
        kept != NULL && kept->rule.settled && kept->rule.best.label == SGP_ROUND_NONE;
    return kept != NULL && !nothing && !daemon->kept_model.ready;
}

/* Whether this node has work of its own to do before the best model is in its model file. */
static bool is_busy(const struct kept *kept)
{
    const bool kept_here = kept_find(kept, kept->rule.best.label) < KEPT_MODELS;
    return kept->final_label != SGP_ROUND_NONE || kept->writing < KEPT_MODELS || kept->copying ||
           (kept_here && kept->saved != kept->rule.best.label);
}

bool kept_hold(const struct daemon *daemon)
{
    const struct kept *kept = daemon->kept;
    const sgp_time now = events_now();
    if (kept == NULL || daemon->model_file == MODEL_FAILED)
        return false;
    const bool waits = (!kept->rule.settled && !is_relay(daemon)) ||
                       kept->saved != kept->rule.best.label ||
                       now - kept->news < 2 * STATE_LASTS_NS;
    return is_busy(kept) || (waits && now - kept->news < KEPT_LASTS_NS);
}

void kept_end(struct daemon *daemon)
{
    const struct kept *kept = daemon->kept;
    char names[SGP_TEXT_BYTES / 2];
    if (kept == NULL || daemon->model_file == MODEL_FAILED)
        return;
    const bool agreed = kept->rule.settled || is_relay(daemon);
    if (agreed && kept->saved == kept->rule.best.label)
        return;
    const bool asks = facts_missing(daemon, names, sizeof names);
    notes_error(daemon,
        "keep_best: %s%s%s; other nodes may keep a better model than this one in "
        "model.safetensors: start this node again while one of them runs, or take its file",
        agreed ? "no copy of the best model has come"
        : asks ? "no counts have come of "
               : "this node could not tell its counts",
        agreed ? "" : names, asks ? " for 10 s" : "");
    daemon->exit_status = EXIT_STATUS_OUTDATED;
}

/* ---- the life of it ---- */

static void set_times(struct kept *kept)
{
    const struct sgp_best_times times = prepared_best_times(kept->daemon->prepared);
    kept->rule.settings.every = sgp_best_period(&times);
}

void kept_reload(struct daemon *daemon)
{
    if (daemon->kept == NULL)
        return;
    set_times(daemon->kept);
    kept_wake(daemon->kept);
}

static int open_survey(struct kept *kept)
{
    const struct daemon *daemon = kept->daemon;
    const uint64_t parameters = daemon->prepared->parameters;
    if (!prepared_copies_best(daemon->prepared))
        return 0;
    kept->survey = sgp_survey_create(daemon->config->name, SGP_SUBJECT_BEST);
    if (kept->survey == NULL)
        return -ENOMEM;
    const struct sgp_survey_judge judges = {
        .context = kept, .bytes_max = (uint32_t)(8 * parameters + 128), .judge = kept_judge};
    sgp_survey_judge(kept->survey, &judges);
    return 0;
}

int kept_open(struct daemon *daemon, struct sgp_error *error)
{
    const struct config *config = daemon->config;
    if (prepared_keeps_best(daemon->prepared) == 0)
        return 0;
    struct kept *kept = calloc(1, sizeof *kept);
    if (kept == NULL)
        return sgp_fail(error, -ENOMEM, "out of memory");
    *kept = (struct kept){.daemon = daemon,
        .writing = KEPT_MODELS,
        .look = look,
        .news = events_now(),
        .final_label = SGP_ROUND_NONE,
        .shown = SGP_ROUND_NONE,
        .saved = SGP_ROUND_NONE};
    for (uint32_t i = 0; i < KEPT_MODELS; i++)
        kept->models[i] = SGP_ROUND_NONE;
    const struct sgp_best_settings settings = {.measure = prepared_keeps_best(daemon->prepared),
        .run = daemon->run.number,
        .patience = config->best_patience};
    sgp_best_begin(&kept->rule, &settings);
    set_times(kept);
    (void)uv_timer_init(&daemon->loop, &kept->timer);
    kept->timer.data = kept;
    daemon->kept = kept;
    if (open_survey(kept) < 0)
        return sgp_fail(error, -ENOMEM, "out of memory");
    kept_read(kept);
    kept_listen(kept);
    return 0;
}

struct sgp_survey *kept_survey(const struct daemon *daemon)
{
    return daemon->kept != NULL ? daemon->kept->survey : NULL;
}

void kept_view(const struct daemon *daemon, struct view_best *ret_best)
{
    const struct kept *kept = daemon->kept;
    *ret_best = (struct view_best){.round = SGP_ROUND_NONE, .value = NAN};
    if (kept == NULL)
        return;
    const struct sgp_best *rule = &kept->rule;
    ret_best->measure = sgp_best_measure_name(rule->settings.measure);
    ret_best->round = rule->best.label;
    ret_best->value = sgp_best_value(&rule->best);
    ret_best->count = rule->best.count;
    (void)facts_missing(daemon, ret_best->waits, sizeof ret_best->waits);
}

void kept_close(struct daemon *daemon)
{
    struct kept *kept = daemon->kept;
    if (kept == NULL || kept->closing)
        return;
    kept->closing = true;
    uv_close((uv_handle_t *)&kept->timer, NULL);
}

void kept_finish(struct daemon *daemon)
{
    struct kept *kept = daemon->kept;
    if (kept == NULL)
        return;
    sgp_survey_destroy(kept->survey);
    kept_drop_words(kept);
    free(kept);
    daemon->kept = NULL;
}
