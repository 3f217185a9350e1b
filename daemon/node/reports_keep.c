/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of others as they come, those of an earlier life, and the file; see reports_inside.h. */
#include "reports_inside.h"

#include "store/report_file.h"

#include "sgp/loss.h"

#include <stdlib.h>
#include <string.h>

struct saving { /* a file that is being written in libuv's pool */
    uv_work_t work;
    struct reports *reports;
    struct view_reports *copy;
    struct sgp_error error;
};

/* Whether measures are of this kind. A relay has no rows to know it by. */
static bool is_kind(const struct daemon *daemon, enum sgp_measures_kind kind)
{
    const struct prepared *prepared = daemon->prepared;
    const struct sgp_dataset *rows = prepared->data.train;
    const enum sgp_loss loss = prepared->model.loss;
    return (kind == sgp_loss_measures(loss, false) && (rows == NULL || rows->classes == 0)) ||
           (kind == sgp_loss_measures(loss, true) && (rows == NULL || rows->classes > 0));
}

/* A report of a later form, or with a stamp far ahead of the clock, is left. */
int reports_judge(void *context, const struct sgp_bulletin *bulletin)
{
    const struct reports *reports = context;
    const struct sgp_model *model = &reports->daemon->prepared->model;
    struct sgp_report report;
    if (bulletin->stamp > pulls_stamp() + REPORTS_CLOCK_MS)
        return 0;
    const int code = sgp_report_read(bulletin->text, &report);
    if (code < 0)
        return code == SGP_E_DATA ? SGP_E_PROTOCOL : 0;
    const struct sgp_measures *measures = &report.measures;
    const bool fits =
        report.state != SGP_REPORT_MEASURED ||
        (measures->outputs == model->outputs && is_kind(reports->daemon, measures->kind));
    sgp_measures_finish(&report.measures);
    return fits ? 1 : SGP_E_PROTOCOL;
}

/* Of the counts, without the wishes, which say nothing of the final model. Never 0. */
static uint64_t digest_of(const struct view_reports *reports)
{
    uint64_t digest = 1;
    for (uint32_t i = 0; i < reports->count; i++) {
        const struct view_report *report = &reports->reports[i];
        if (report->text == NULL)
            continue;
        const char *body = sgp_report_body(report->text);
        digest = 31 * digest + sgp_bulletin_digest(report->name, (uint32_t)strlen(report->name));
        digest = 31 * digest + sgp_bulletin_digest(body, (uint32_t)strlen(body));
    }
    return digest + (digest == 0);
}

/* The report of this node is measured again, since its rows may be others now. */
void reports_restore(struct reports *reports)
{
    const char *self = reports->daemon->config->name;
    const struct sgp_sink *sink = &reports->daemon->log->sink;
    struct sgp_error error = {0};
    struct view_reports *kept = NULL;
    if (report_file_read(reports->path, &error, &kept) < 0)
        sgp_log(sink, SGP_LEVEL_WARNING, "event=warning text=\"%s\"", error.text);
    for (uint32_t i = 0; kept != NULL && i < kept->count; i++) {
        const struct view_report *report = &kept->reports[i];
        const struct sgp_bulletin bulletin = {.stamp = report->stamp, .text = report->text};
        if (strcmp(report->name, self) != 0 && reports_judge(reports, &bulletin) > 0)
            (void)sgp_survey_restore(reports->survey, report->name, report->stamp, report->text);
    }
    reports->saved = kept != NULL ? digest_of(kept) : 0;
    view_reports_free(kept);
}

static void run_save(uv_work_t *work)
{
    struct saving *saving = work->data;
    (void)report_file_write(saving->reports->path, saving->copy, &saving->error);
}

static void after_save(uv_work_t *work, int status)
{
    struct saving *saving = work->data;
    struct reports *reports = saving->reports;
    (void)status;
    if (saving->error.code < 0)
        reports->saved = 0;
    if (saving->error.code < 0 && !reports->closing)
        notes_error(reports->daemon, "the report was not saved: %s", saving->error.text);
    view_reports_free(saving->copy);
    free(saving);
    reports->saving = NULL;
}

/* The final reports, if this node has finished and holds any that the file does not say. Others
 * than its own that are lost come again from the neighbours. */
static struct view_reports *copy_for_file(struct reports *reports, const struct moment *moment)
{
    const struct choice choice = {.final = true, .label = reports_last_label(reports)};
    if (!reports->unsaved || !moment->finished || choice.label == SGP_ROUND_NONE)
        return NULL;
    struct view_reports *copy = reports_copy(reports, &choice);
    const uint64_t digest = copy != NULL ? digest_of(copy) : 0;
    const bool same = digest == reports->saved;
    reports->unsaved = false;
    reports->saved = digest;
    reports->saved_at = events_now();
    if (!same)
        return copy;
    view_reports_free(copy);
    return NULL;
}

void reports_save(struct reports *reports, const struct moment *moment)
{
    const bool rests = events_now() - reports->news >= REPORTS_LASTS_NS / 2;
    if (!reports->unsaved || reports->saving != NULL || !moment->finished ||
        events_now() - reports->saved_at < REPORTS_SAVE_NS ||
        (!rests && !reports_complete(reports, moment)))
        return;
    struct view_reports *copy = copy_for_file(reports, moment);
    struct saving *saving = copy != NULL ? calloc(1, sizeof *saving) : NULL;
    if (copy == NULL || saving == NULL) {
        view_reports_free(copy);
        free(saving);
        return;
    }
    *saving = (struct saving){.work = {.data = saving}, .reports = reports, .copy = copy};
    reports->saving = saving;
    if (uv_queue_work(&reports->daemon->loop, &saving->work, run_save, after_save) < 0)
        after_save(&saving->work, 0);
}

void reports_save_last(struct reports *reports)
{
    const struct moment moment = reports_moment(reports->daemon);
    struct sgp_error error = {0};
    struct view_reports *copy = reports->saving == NULL ? copy_for_file(reports, &moment) : NULL;
    if (copy != NULL && report_file_write(reports->path, copy, &error) < 0)
        notes_error(reports->daemon, "the report was not saved: %s", error.text);
    view_reports_free(copy);
}
