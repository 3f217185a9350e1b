/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the reports of all nodes; see reports_inside.h. */
#include "reports_inside.h"

#include "kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The model of a node that has finished is that of the last label, on which all agree; or the best
 * one, once the nodes have agreed on that. */
struct moment reports_moment(const struct daemon *daemon)
{
    const struct sgp_node_status status = daemon_status(daemon);
    const struct kept_model *kept = &daemon->kept_model;
    const bool finished = status.state == SGP_NODE_FINISHED && status.round >= status.last_round &&
                          !kept_is_awaited(daemon);
    const sgp_round last = kept->ready ? kept->best.round : status.last_round;
    return (struct moment){
        .finished = finished, .run = daemon->run.number, .label = finished ? last : status.round};
}

bool reports_chosen(const struct reports *reports, uint32_t member, const struct choice *choice)
{
    const char *text = sgp_survey_figures(reports->survey, member);
    struct sgp_report head;
    return text != NULL && sgp_report_head(text, &head) == 0 &&
           head.run == reports->daemon->run.number &&
           (choice->wish == 0 || sgp_report_answers(&head, choice->wish)) &&
           (!choice->final || (head.final && head.label == choice->label));
}

bool reports_all_chosen(const struct reports *reports, const struct choice *choice)
{
    for (uint32_t i = 0; i < sgp_survey_members(reports->survey); i++)
        if (!reports_chosen(reports, i, choice))
            return false;
    return true;
}

/* A node that has finished knows the last label. Who tells another is another run, or lies. */
sgp_round reports_last_label(const struct reports *reports)
{
    const struct moment moment = reports_moment(reports->daemon);
    sgp_round last = SGP_ROUND_NONE;
    struct sgp_report head;
    for (uint32_t i = 0; i < sgp_survey_members(reports->survey); i++) {
        const char *text = sgp_survey_figures(reports->survey, i);
        if (text != NULL && sgp_report_head(text, &head) == 0 && head.final &&
            head.run == reports->daemon->run.number && head.label > last &&
            (!moment.finished || head.label == moment.label))
            last = head.label;
    }
    return last;
}

bool reports_complete(const struct reports *reports, const struct moment *moment)
{
    const struct choice choice = {.final = true, .label = moment->label};
    return reports_all_chosen(reports, &choice);
}

struct view_reports *reports_copy(const struct reports *reports, const struct choice *choice)
{
    const uint32_t count = sgp_survey_members(reports->survey);
    struct view_reports *copy = calloc(1, sizeof *copy + count * sizeof *copy->reports);
    if (copy != NULL)
        copy->best = reports->daemon->kept_model.ready ? reports->daemon->kept_model.best.round
                                                       : SGP_ROUND_NONE;
    for (uint32_t i = 0; copy != NULL && i < count; i++) {
        struct view_report *report = &copy->reports[copy->count++];
        const bool chosen = reports_chosen(reports, i, choice);
        (void)snprintf(
            report->name, sizeof report->name, "%s", sgp_survey_name(reports->survey, i));
        report->stamp = sgp_survey_stamp(reports->survey, i);
        report->text = chosen ? strdup(sgp_survey_figures(reports->survey, i)) : NULL;
        if (chosen && report->text == NULL) {
            view_reports_free(copy);
            return NULL;
        }
    }
    return copy;
}

void reports_stir(struct reports *reports)
{
    reports->news = events_now();
    if (!reports->closing)
        (void)uv_timer_start(&reports->timer, reports->look, 0, REPORTS_PACE_NS / SGP_MILLISECOND);
}

void reports_note(struct reports *reports)
{
    reports->unsaved = true;
    reports_stir(reports);
}
