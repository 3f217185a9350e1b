/* SPDX-License-Identifier: Apache-2.0 */
/* The report of this node; see reports_inside.h. */
#include "reports_inside.h"

#include "background_jobs.h"
#include "privacy.h"

#include <errno.h>
#include <stdlib.h>

/* With the next stamp: no clock orders the reports of one node. */
static void tell(struct reports *reports, const struct sgp_report *report)
{
    char *text = NULL;
    int code = sgp_report_write(report, &text);
    reports->told_version = reports->measured_version;
    if (code == 0 && sgp_survey_self(reports->survey) != SGP_NODES_MAX)
        code = sgp_survey_tell(reports->survey, 0, text);
    free(text);
    if (code < 0)
        notes_error(reports->daemon, "the report of this node: %s", sgp_strerror(code));
    reports_note(reports);
}

/* What is told of so few rows would tell the rows. */
static enum sgp_report_state state_of(
    const struct daemon *daemon, const struct sgp_error *error, const struct sgp_measures *measures)
{
    if (error->code < 0 && error->code != SGP_E_STATE)
        return SGP_REPORT_NOT_FINITE;
    if (measures == NULL || measures->rows == 0)
        return SGP_REPORT_NO_ROWS;
    return measures->rows < daemon->config->min_count ? SGP_REPORT_FEW_ROWS : SGP_REPORT_MEASURED;
}

static void on_measured(void *argument, const struct sgp_error *error,
    const struct sgp_evaluation *evaluation, const struct sgp_measures *measures, sgp_round round,
    bool best)
{
    struct reports *reports = argument;
    struct sgp_report report = reports->measured;
    (void)evaluation;
    (void)best;
    reports->measuring = false;
    reports->earliest = events_now() + (REPORTS_PART - 1) * reports->daemon->evaluation_took;
    if (error->code == -ECANCELED || error->code == -ENOMEM || error->code == SGP_E_FILE)
        return; /* nothing was measured */
    report.state = state_of(reports->daemon, error, measures);
    if (report.state == SGP_REPORT_MEASURED)
        report.measures = *measures; /* borrowed */
    if (!report.final)
        report.label = round;
    tell(reports, &report);
}

static void measure(struct reports *reports, const struct moment *moment)
{
    struct daemon *daemon = reports->daemon;
    struct sgp_error error = {0};
    reports->measured =
        (struct sgp_report){.run = moment->run, .label = moment->label, .final = moment->finished};
    reports->measured_version = daemon->kept_model.version;
    reports_name_wishes(reports, &reports->measured);
    /* measures of rows would tell the rows of a node whose steps are private */
    if (daemon->prepared->data.test == NULL || privacy_withholds(daemon)) {
        reports->measured.state = SGP_REPORT_NO_ROWS;
        tell(reports, &reports->measured);
        return;
    }
    /* if it cannot begin, it is tried again */
    reports->measuring = background_jobs_evaluate(daemon, on_measured, reports, &error) == 0;
}

/* The report of a final model, which others want again. */
static void tell_again(struct reports *reports, const char *text)
{
    struct sgp_report report;
    if (sgp_report_read(text, &report) < 0)
        return;
    reports_name_wishes(reports, &report);
    tell(reports, &report);
    sgp_measures_finish(&report.measures);
}

void reports_tell(struct reports *reports, const struct moment *moment)
{
    const uint32_t self = sgp_survey_self(reports->survey);
    const struct choice final = {.final = true, .label = moment->label};
    if (self == SGP_NODES_MAX || reports->measuring || reports->daemon->stopping)
        return;
    const bool told = moment->finished && reports_chosen(reports, self, &final) &&
                      reports->told_version == reports->daemon->kept_model.version;
    const bool asked = reports_owe(reports);
    const bool early = events_now() < reports->earliest;
    if (told && asked)
        tell_again(reports, sgp_survey_figures(reports->survey, self));
    else if ((moment->finished && !told) || (asked && !early))
        measure(reports, moment);
}
