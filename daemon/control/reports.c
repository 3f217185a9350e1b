/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/evaluate/fleet and GET /v1/report: the reports of all nodes as one answer.
 *
 * The reports are copied on the loop thread. They are added up and rendered off it (offload.h).
 *
 * Fails: without memory the request is answered with 500. */
#include "endpoints.h"

#include "render.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

struct fleet {
    struct http_job job; /* must be first */
    struct offload offload;
    struct view_model model;
    struct view_reports *reports; /* owned; NULL: not known yet */
    uint64_t seconds;             /* to wait for them */
    struct sgp_error error;
    char *text; /* the answer; NULL: no memory */
    size_t bytes;
};

static struct fleet *of_offload(struct offload *offload)
{
    return (struct fleet *)((char *)offload - offsetof(struct fleet, offload));
}

static void destroy(struct http_job *job)
{
    struct fleet *fleet = (struct fleet *)job;
    view_reports_free(fleet->reports);
    free(fleet->text);
    free(fleet);
}

static bool begin(struct offload *offload)
{
    const struct fleet *fleet = of_offload(offload);
    return fleet->job.request != NULL && fleet->reports != NULL;
}

static void run(struct offload *offload)
{
    struct fleet *fleet = of_offload(offload);
    fleet->text = http_dump(render_fleet(&fleet->model, fleet->reports), &fleet->bytes);
}

static void end(struct offload *offload)
{
    struct fleet *fleet = of_offload(offload);
    struct request *request = fleet->job.request;
    if (request && fleet->error.code < 0)
        http_fail_error(request, &fleet->error);
    else if (request && fleet->text)
        http_answer_text(request, fleet->text, fleet->bytes, "application/json");
    else if (request)
        http_fail_code(request, -ENOMEM);
    if (request)
        fleet->text = NULL; /* now owned by the answer, if there was a text */
    http_end_job(&fleet->job);
}

/* NULL: the request is answered. */
static struct fleet *create(struct request *request, bool waits)
{
    if ((waits && !http_room_to_wait(request)) || !http_room_for_answer(request))
        return NULL;
    struct fleet *fleet = calloc(1, sizeof *fleet);
    if (!fleet) {
        http_fail_code(request, -ENOMEM);
        return NULL;
    }
    *fleet = (struct fleet){.job = {.waits = waits, .destroy = destroy},
        .offload = {.begin = begin, .run = run, .end = end},
        .model = request->control->model,
        .seconds = VIEW_FLEET_SECONDS};
    return fleet;
}

static void fail(struct request *request, struct fleet *fleet, const struct sgp_error *error)
{
    destroy(&fleet->job);
    http_fail_error(request, error);
}

/* ---- the report of the final model ---- */

void reports_report(struct request *request)
{
    const struct view_actions *actions = &request->control->actions;
    struct fleet *fleet = create(request, false);
    struct sgp_error error = {0};
    if (!fleet)
        return;
    error.code = actions->report ? actions->report(actions->context, &fleet->reports, &error)
                                 : sgp_fail(&error, SGP_E_STATE, "%s", actions->no_model);
    if (error.code < 0) {
        fail(request, fleet, &error);
        return;
    }
    http_begin_job(request, &fleet->job);
    offloads_push(&request->control->offloads, &fleet->offload);
}

/* ---- an evaluation ---- */

static void on_reported(void *argument, const struct sgp_error *error, struct view_reports *reports)
{
    struct fleet *fleet = argument;
    struct control *control = fleet->job.control;
    fleet->reports = reports;
    fleet->error = *error;
    if (control == NULL) { /* the server has closed */
        http_end_job(&fleet->job);
        return;
    }
    offloads_push(&control->offloads, &fleet->offload);
    control->pump(control);
}

/* Sets fleet->seconds; to 0 for a query that is not understood. */
static enum MHD_Result read_argument(
    void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct fleet *fleet = context;
    char *rest = NULL;
    (void)kind;
    errno = 0;
    fleet->seconds = strcmp(name, "seconds") == 0 && value && value[0] >= '0' && value[0] <= '9'
                         ? strtoull(value, &rest, 10)
                         : 0;
    if (rest && (errno != 0 || *rest != '\0'))
        fleet->seconds = 0;
    return fleet->seconds > 0 ? MHD_YES : MHD_NO;
}

void reports_evaluate(struct request *request)
{
    const struct view_actions *actions = &request->control->actions;
    struct fleet *fleet = create(request, true);
    struct sgp_error error = {0};
    if (!fleet)
        return;
    (void)MHD_get_connection_values(
        request->connection, MHD_GET_ARGUMENT_KIND, read_argument, fleet);
    if (fleet->seconds < 1 || fleet->seconds > VIEW_FLEET_SECONDS_MAX) {
        destroy(&fleet->job);
        http_fail(request, MHD_HTTP_BAD_REQUEST, "give seconds=S with S from 1 to %u, or nothing",
            VIEW_FLEET_SECONDS_MAX);
        return;
    }
    error.code = actions->evaluate_fleet ? actions->evaluate_fleet(actions->context,
                                               (double)fleet->seconds, on_reported, fleet, &error)
                                         : sgp_fail(&error, SGP_E_STATE, "%s", actions->no_model);
    if (error.code < 0)
        fail(request, fleet, &error);
    else
        http_begin_job(request, &fleet->job);
}
