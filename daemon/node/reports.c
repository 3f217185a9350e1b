/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of all nodes: clients and the life; see reports.h and reports_inside.h. */
#include "reports_inside.h"

#include "setup/members.h"
#include "store/report_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- what comes from others ---- */

void reports_wished(struct daemon *daemon, uint32_t peer, const struct sgp_pull *pull)
{
    if (daemon->reports != NULL)
        reports_hear_of_peer(daemon->reports, peer, pull);
}

/* Ask this peer first. */
void reports_ahead(struct daemon *daemon, uint32_t peer)
{
    struct reports *reports = daemon->reports;
    if (reports == NULL || peer >= reports->peer_count)
        return;
    reports->peers[peer].next = 0;
    for (uint32_t i = 0; i < daemon->edge_count; i++)
        if (daemon->edges[i].peer == peer)
            reports->turn = i;
    reports_stir(reports);
}

void reports_changed(struct daemon *daemon)
{
    reports_note(daemon->reports);
}

/* ---- clients ---- */

static void end_waiter(struct waiter *waiter, int code, struct view_reports *copy)
{
    const struct sgp_error error = {.code = code};
    LIST_REMOVE(waiter, next);
    waiter->done(waiter->argument, &error, copy);
    free(waiter);
}

static void answer_waiters(struct reports *reports)
{
    struct waiter *waiter = LIST_FIRST(&reports->waiters), *next;
    for (; waiter != NULL; waiter = next) {
        const struct choice choice = {.wish = waiter->wish};
        next = LIST_NEXT(waiter, next);
        if (events_now() < waiter->deadline && !reports_all_chosen(reports, &choice))
            continue;
        struct view_reports *copy = reports_copy(reports, &choice);
        end_waiter(waiter, copy != NULL ? 0 : -ENOMEM, copy);
    }
}

/* ---- the life of the reports ---- */

static void look(struct reports *reports)
{
    struct daemon *daemon = reports->daemon;
    if (reports->closing || daemon->ending)
        return;
    const struct moment moment = reports_moment(daemon);
    reports_tell(reports, &moment);
    answer_waiters(reports);
    const bool missing = reports_ask(reports, &moment);
    reports_save(reports, &moment);
    /* later the daemon's own second is often enough */
    const bool fast = missing && events_now() - reports->news < 8 * SGP_SECOND;
    if (!fast && LIST_EMPTY(&reports->waiters))
        (void)uv_timer_stop(&reports->timer);
    else if (!uv_is_active((uv_handle_t *)&reports->timer))
        (void)uv_timer_start(&reports->timer, reports->look, REPORTS_PACE_NS / SGP_MILLISECOND,
            REPORTS_PACE_NS / SGP_MILLISECOND);
}

static void on_timer(uv_timer_t *timer)
{
    look(timer->data);
}

void reports_settle(struct daemon *daemon)
{
    if (daemon->reports != NULL)
        look(daemon->reports);
}

bool reports_hold(const struct daemon *daemon)
{
    const struct reports *reports = daemon->reports;
    const sgp_time now = events_now();
    if (reports == NULL || now - daemon->finished_since >= REPORTS_LASTS_NS)
        return false;
    const struct moment moment = reports_moment(daemon);
    return !reports_complete(reports, &moment) || reports->unsaved || reports->saving != NULL ||
           now - reports->news < STATE_LASTS_NS;
}

/* The members and peers of the present file. 0 or -ENOMEM. */
static int use_file(struct reports *reports)
{
    const struct sgp_topology *topology = reports->daemon->prepared->topology;
    struct report_peer *peers = calloc(topology->node_count, sizeof *peers);
    const int code = peers != NULL ? members_use(reports->survey, topology) : -ENOMEM;
    if (code < 0) {
        free(peers);
        return code;
    }
    free(reports->peers);
    reports->peers = peers;
    reports->peer_count = topology->node_count;
    return 0;
}

void reports_reload(struct daemon *daemon)
{
    struct reports *reports = daemon->reports;
    pulls_use(&daemon->pulls, daemon->prepared->topology);
    if (reports == NULL)
        return;
    if (use_file(reports) < 0) {
        reports->peer_count =
            0; /* the survey keeps the former members, and this node asks nobody */
        notes_error(daemon, "reports: no memory for the nodes of the new file");
    }
    look(reports);
}

int reports_open(struct daemon *daemon, struct sgp_error *error)
{
    const uint32_t bytes = prepared_report_bytes(daemon->prepared);
    if (bytes == 0)
        return 0;
    struct reports *reports = calloc(1, sizeof *reports);
    if (reports == NULL)
        return sgp_fail(error, -ENOMEM, "out of memory");
    *reports = (struct reports){.daemon = daemon, .look = on_timer, .news = events_now()};
    const struct sgp_survey_judge judges = {
        .context = reports, .bytes_max = bytes, .judge = reports_judge};
    (void)snprintf(
        reports->path, sizeof reports->path, "%s/" REPORT_FILE, daemon->config->state_directory);
    (void)uv_timer_init(&daemon->loop, &reports->timer);
    reports->timer.data = reports;
    daemon->reports = reports;
    reports_draw(reports);
    reports->survey = sgp_survey_create(daemon->config->name, SGP_SUBJECT_MEASURES);
    int code = reports->survey != NULL ? use_file(reports) : -ENOMEM;
    if (code < 0)
        return sgp_fail(error, code, "out of memory");
    sgp_survey_judge(reports->survey, &judges);
    reports_restore(reports);
    return 0;
}

struct sgp_survey *reports_survey(const struct daemon *daemon)
{
    return daemon->reports != NULL ? daemon->reports->survey : NULL;
}

void reports_close(struct daemon *daemon)
{
    struct reports *reports = daemon->reports;
    if (reports == NULL || reports->closing)
        return;
    reports->closing = true;
    struct waiter *waiter = LIST_FIRST(&reports->waiters), *next;
    for (; waiter != NULL; waiter = next) {
        next = LIST_NEXT(waiter, next);
        end_waiter(waiter, -ECANCELED, NULL);
    }
    uv_close((uv_handle_t *)&reports->timer, NULL);
    if (daemon->node != NULL && reports->survey != NULL)
        reports_save_last(reports);
}

void reports_finish(struct daemon *daemon)
{
    struct reports *reports = daemon->reports;
    if (reports == NULL)
        return;
    sgp_survey_destroy(reports->survey);
    free(reports->peers);
    free(reports);
    daemon->reports = NULL;
}

/* ---- what clients ask for ---- */

static int refuse(const struct daemon *daemon, struct sgp_error *error)
{
    if (daemon->config->kind == CONFIG_ATTACHED)
        return sgp_fail(error, SGP_E_STATE,
            "the model is a program's, which alone knows the labels; let it report its measures");
    return sgp_fail(error, SGP_E_STATE,
        "the model has %u outputs, and measures of the fleet are of at most %u",
        daemon->prepared->model.outputs, SGP_REPORT_OUTPUTS_MAX);
}

static int evaluate_fleet(
    void *context, double seconds, view_reported done, void *argument, struct sgp_error *error)
{
    struct daemon *daemon = context;
    struct reports *reports = daemon->reports;
    if (reports == NULL)
        return refuse(daemon, error);
    if (daemon->ending || daemon->stopping)
        return SGP_E_STATE;
    struct waiter *waiter = calloc(1, sizeof *waiter);
    if (waiter == NULL)
        return -ENOMEM;
    *waiter = (struct waiter){.deadline = events_now() + (sgp_time)(seconds * (double)SGP_SECOND),
        .done = done,
        .argument = argument};
    LIST_INSERT_HEAD(&reports->waiters, waiter, next);
    waiter->wish = reports_wish_of_clients(reports);
    return 0;
}

static int report(void *context, struct view_reports **ret_reports, struct sgp_error *error)
{
    const struct daemon *daemon = context;
    const struct reports *reports = daemon->reports;
    if (reports == NULL)
        return refuse(daemon, error);
    const struct choice choice = {.final = true, .label = reports_last_label(reports)};
    if (choice.label == SGP_ROUND_NONE)
        return sgp_fail(error, SGP_E_STATE,
            "no node has told its measures of the final model yet; `sgpctl evaluate --fleet` "
            "measures the present ones");
    *ret_reports = reports_copy(reports, &choice);
    return *ret_reports != NULL ? 0 : -ENOMEM;
}

void reports_offer(struct view_actions *actions)
{
    actions->evaluate_fleet = evaluate_fleet;
    actions->report = report;
}
