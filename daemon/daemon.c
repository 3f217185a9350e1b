/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the daemon: opening, the loop, timers and signals, closing; see daemon.h. */
#include "daemon.h"

#include "node/colocated_owner.h"
#include "node/bulletins.h"
#include "node/calls.h"
#include "node/background_jobs.h"
#include "node/early_stop.h"
#include "node/edges.h"
#include "node/events.h"
#include "node/fleet_own.h"
#include "node/fleet_rows.h"
#include "node/formers.h"
#include "node/guests.h"
#include "node/inquiry.h"
#include "node/inspect.h"
#include "node/kept.h"
#include "node/neighbours.h"
#include "node/notes.h"
#include "node/orders.h"
#include "node/performer.h"
#include "node/privacy.h"
#include "node/program.h"
#include "node/reload.h"
#include "node/reports.h"
#include "node/rollouts.h"
#include "node/runs.h"
#include "node/survive.h"
#include "node/task.h"
#include "node/trust.h"

#include "sgp/random.h"
#include "sgp/version.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FETCHED_NS (60 * SGP_SECOND) /* for a program to fetch the model */

/* ---- the end ---- */

/* The node has ended: answer a client that ordered it to leave. The process may still wait for the
 * colocated owner. */
static void part(struct daemon *daemon)
{
    if (daemon->parted)
        return;
    daemon->parted = true;
    (void)uv_timer_stop(&daemon->checkpoint_timer);
    const struct sgp_node_status status = daemon_status(daemon);
    if (status.left)
        survive_retire(daemon);
    orders_answer_leaver(daemon, &status);
}

static void end(struct daemon *daemon)
{
    if (daemon->ending)
        return;
    daemon->ending = true;
    orders_tell_stopping(daemon);
    worker_stop(&daemon->worker);
    program_close(daemon);
    part(daemon);
    if (daemon->control != NULL)
        control_close(daemon->control, NULL, NULL);
    listener_close(&daemon->listener);
    callers_close(&daemon->callers);
    dialer_give_up(&daemon->dialer);
    inquiry_close(daemon);
    calls_close(daemon);
    bulletins_close(daemon);
    guests_close(daemon);
    fleet_own_close(daemon);
    colocated_owner_close(daemon);
    edges_close(daemon);
    events_close(daemon);
    uv_close((uv_handle_t *)&daemon->checkpoint_timer, NULL);
    uv_close((uv_handle_t *)&daemon->second, NULL);
    uv_close((uv_handle_t *)&daemon->watchdog, NULL);
    for (size_t i = 0; i < sizeof daemon->signals / sizeof daemon->signals[0]; i++)
        uv_close((uv_handle_t *)&daemon->signals[i], NULL);
}

/* A finished node exits only after a while. A neighbour may still disagree; then all continue
 * averaging. */
static bool work_is_done(const struct daemon *daemon)
{
    if (daemon->config->when_done != CONFIG_EXIT || daemon->saves > 0 || daemon->stopping)
        return false;
    sgp_time lasts = program_is_busy(daemon) ? FETCHED_NS : STATE_LASTS_NS;
    return sgp_node_state(daemon->node) == SGP_NODE_FINISHED &&
           events_now() - daemon->finished_since >= lasts && !reports_hold(daemon) &&
           !kept_hold(daemon);
}

static void on_turned(struct daemon *daemon)
{
    fleet_own_turn(daemon);
    facts_send(daemon);
}

/* After each event: check whether the node should end. */
static void on_settled(struct daemon *daemon)
{
    runs_settle(daemon);
    if (daemon->resets && !daemon->stopping)
        orders_reset(daemon, daemon->joins);
    program_settle(daemon);
    if (daemon->ending)
        return;
    sgp_round stop = daemon->asks_stop;
    daemon->asks_stop = 0;
    if (stop > 0)
        statements_ask_stop(daemon, stop);
    if (daemon->ending) /* an event followed */
        return;
    const bool done = work_is_done(daemon);
    if (done)
        kept_end(daemon);
    const bool ends = daemon->struck || colocated_owner_is_missed(daemon);
    if (done || (ends && !daemon->stopping))
        orders_stop(daemon);
    else if (daemon->drained && daemon->saves == 0) {
        part(daemon);
        if (!colocated_owner_runs(daemon))
            end(daemon);
    }
}

/* ---- signals and timers ---- */

static void on_signal(uv_signal_t *signal, int number)
{
    struct daemon *daemon = signal->data;
    bool again = daemon->signalled;
    daemon->signalled = true;
    sgp_log(&daemon->log->sink, SGP_LEVEL_INFO, "event=signal number=%d%s", number,
        again ? " at_once=1" : "");
    colocated_owner_stop(daemon);
    if (again)
        end(daemon);
    else if (!daemon->stopping)
        orders_stop(daemon);
}

/* No client waits for an answer: reload_topology has written to the journal. */
static void on_hangup(uv_signal_t *signal, int number)
{
    (void)number;
    struct view_reload reload;
    struct sgp_error error = {0};
    (void)reload_topology(signal->data, SIGNED_FILE_PATH, &reload, &error);
}

static void on_second(uv_timer_t *timer)
{
    notes_lines_dropped(timer->data);
    notes_status_line(timer->data);
    reports_settle(timer->data);
    kept_settle(timer->data);
    events_settle(timer->data); /* the end may have lasted long enough */
}

static void on_watchdog(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    bool alive =
        colocated_owner_is_alive(daemon) &&
        notify_watchdog(&daemon->notify, daemon->worker.away == 0, worker_spent(&daemon->worker));
    if (alive && daemon->stopping) /* writing a large model takes long */
        notify_extend(30 * SGP_SECOND);
}

/* ---- the beginning ---- */

static int cannot(struct sgp_error *error, int code, const char *what)
{
    return sgp_fail(error, code, "%s: %s", what, sgp_strerror(code));
}

static int create_node(struct daemon *daemon, struct sgp_error *error)
{
    const struct prepared *prepared = daemon->prepared;
    struct sgp_node_config config;
    prepared_node_config(prepared, &config);
    int code = survive_open(daemon, &config, error);
    if (code < 0)
        return code;
    if (prepared->attached != NULL && !prepared->begins && daemon->found.memory == NULL &&
        !daemon->found.exact)
        return sgp_fail(error, SGP_E_DATA,
            "%s/checkpoint cannot be read, and a program's model has no other beginning here; "
            "remove "
            "%s/layout, and the next program brings its parameters",
            daemon->config->state_directory, daemon->config->state_directory);
    bool begun = config.record != NULL && (config.record->round > 0 || config.record->trained);
    config.one_beginning = prepared->attached != NULL && !begun;
    config.seeks = config.seeks || (config.one_beginning && prepared->self > 0);
    config.x_digest =
        config.one_beginning ? prepared->trainer->methods->digest(prepared->trainer) : 0;
    daemon->incarnation = config.incarnation;
    daemon->seed = config.seed;
    code = sgp_node_create(&config, &daemon->node);
    if (code < 0)
        return cannot(error, code, "the node cannot be made");
    code = recorder_open(
        &daemon->recorder, daemon->config, &config, events_now(), &daemon->log->sink, error);
    if (code < 0)
        return code;
    struct sgp_node_needs needs;
    sgp_node_counts(daemon->node, &needs);
    daemon->effects.items = calloc(needs.effects, sizeof *daemon->effects.items);
    daemon->effects.capacity = needs.effects;
    daemon->driver = (struct sgp_driver){.node = daemon->node,
        .ops = &performer_ops,
        .context = daemon,
        .sink = &daemon->recorder.trace,
        .name = daemon->config->name,
        .effects = &daemon->effects};
    code = daemon->effects.items != NULL ? edges_init(daemon) : -ENOMEM;
    if (code == 0)
        code = tasks_reserve(daemon, &needs);
    if (code == 0)
        code = sgp_performer_reserve(
            &daemon->performer, &needs, prepared->parameters, prepared_keeps_copy(prepared));
    const struct sgp_chooser *chooser = &daemon->config->compression;
    sgp_performer_choose_copies(&daemon->performer, &daemon->config->copies);
    if (code == 0 && prepared_gives_updates(prepared) && chooser->compressor != SGP_COMPRESSOR_NONE)
        code = sgp_performer_choose(&daemon->performer, chooser,
            sgp_random_at(daemon->config->seed, prepared->self), prepared->parameters);
    if (code == 0 && daemon->config->guard > 0)
        code = sgp_performer_guard(&daemon->performer, daemon->config->guard);
    if (code < 0)
        return cannot(error, code, "the buffers cannot be made");
    sgp_performer_begin(&daemon->performer, prepared->trainer);
    survive_restore(daemon);
    return 0;
}

static int open_sockets(
    struct daemon *daemon, const struct daemon_extras *extras, struct sgp_error *error)
{
    const struct prepared *prepared = daemon->prepared;
    const struct listener_events events = {.context = daemon,
        .hello = neighbours_on_hello,
        .inquire = inquiry_answer,
        .call = calls_on_call,
        .pull = bulletins_on_pull,
        .guest = guests_has,
        .former = formers_have,
        .join = guests_on_join,
        .tls = trust_listening,
        .expects = trust_expects,
        .pulse = inquiry_pulse};
    int code = guests_open(daemon, error);
    if (code < 0)
        return code;
    code = bulletins_open(daemon, error);
    if (code == 0 && rollouts_open(daemon) < 0)
        code = sgp_fail(error, -ENOMEM, "out of memory");
    if (code == 0)
        code = listener_open(&daemon->listener, &daemon->loop, daemon->config->listen, &events,
            &daemon->log->sink, error);
    if (code < 0) {
        bulletins_close(daemon);
        guests_close(daemon);
        return code;
    }
    callers_open(&daemon->callers, &daemon->loop);
    callers_resolve(&daemon->callers, prepared->topology, prepared->self);
    const struct dialer_events dials = {
        .context = daemon, .tls = trust_dialling, .dialled = neighbours_on_dialled};
    dialer_init(&daemon->dialer, &daemon->loop, &dials);
    inquiry_init(daemon);
    calls_open(daemon);
    struct view_actions actions = {.context = daemon};
    inspect_offer(&actions);
    orders_offer(&actions);
    background_jobs_offer(&actions);
    reports_offer(&actions);
    fleet_rows_offer(&actions);
    guests_offer(&actions);
    rollouts_offer(&actions);
    program_offer(prepared, &actions);
    struct view_model model;
    prepared_view_model(prepared, &model);
    model.agreed = bulletins_result(daemon);
    code = extras->socket < 0
               ? control_open(&daemon->loop, daemon->config->socket, &actions, &model, error,
                     &daemon->control)
               : control_open_on(extras->socket, &daemon->loop, daemon->config->socket, &actions,
                     &model, error, &daemon->control);
    if (code == 0 && (code = program_open(daemon, extras->attachment, error)) < 0)
        control_close(daemon->control, NULL, NULL);
    if (code < 0) {
        listener_close(&daemon->listener);
        callers_close(&daemon->callers);
        calls_close(daemon);
        bulletins_close(daemon);
        guests_close(daemon);
    }
    return code;
}

static void start_timers(struct daemon *daemon, const struct daemon_extras *extras)
{
    const struct {
        int number;
        void (*act)(uv_signal_t *signal, int number);
    } signals[] = {{SIGTERM, on_signal}, {SIGINT, on_signal}, {SIGHUP, on_hangup}};
    (void)uv_timer_init(&daemon->loop, &daemon->second);
    (void)uv_timer_init(&daemon->loop, &daemon->watchdog);
    daemon->second.data = daemon;
    daemon->watchdog.data = daemon;
    events_open(daemon);
    fleet_own_open(daemon, !extras->without_rows);
    survive_start_timer(daemon);
    (void)uv_timer_start(&daemon->second, on_second, 1000, 1000);
    uint64_t pace = (uint64_t)(notify_watchdog_interval() / SGP_MILLISECOND);
    if (pace > 0)
        (void)uv_timer_start(&daemon->watchdog, on_watchdog, pace, pace);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        (void)uv_signal_init(&daemon->loop, &daemon->signals[i]);
        daemon->signals[i].data = daemon;
        (void)uv_signal_start(&daemon->signals[i], signals[i].act, signals[i].number);
    }
}

/* All steps that can fail. On failure no handle is open except those that the loop will still
 * close. */
static int open_all(
    struct daemon *daemon, const struct daemon_extras *extras, struct sgp_error *error)
{
    char layout[CONFIG_TEXT_BYTES];
    prepared_layout_path(daemon->config, layout);
    int code = privacy_open(daemon, error);
    if (code == 0)
        code = history_open(&daemon->history, daemon->config->state_directory, error);
    if (code == 0)
        code = scalars_open(&daemon->scalars, daemon->config, error);
    if (code == 0)
        code = runs_open(daemon, error);
    if (code == 0)
        code = privacy_recall(daemon, error);
    if (code == 0 && extras->attachment != NULL)
        code = shared_write_layout(layout, &extras->attachment->shared, error);
    if (code == 0)
        code = create_node(daemon, error);
    if (code < 0)
        return code;
    privacy_begin(daemon);
    code = fleet_rows_open(daemon);
    if (code < 0)
        return cannot(error, code, "the rows of the fleet cannot be kept");
    code = worker_start(&daemon->worker, &daemon->loop);
    if (code < 0)
        return cannot(error, code, "the compute thread cannot be started");
    code = open_sockets(daemon, extras, error);
    if (code < 0)
        worker_stop(&daemon->worker);
    return code;
}

static void free_all(struct daemon *daemon)
{
    sgp_performer_finish(&daemon->performer);
    tasks_finish(daemon);
    facts_finish(daemon);
    fleet_rows_finish(daemon);
    edges_finish(daemon);
    callers_finish(&daemon->callers);
    bulletins_finish(daemon);
    rollouts_finish(daemon);
    guests_finish(daemon);
    free(daemon->effects.items);
    sgp_node_destroy(daemon->node);
    free(daemon->found.memory);
    ledger_close(&daemon->ledger);
    privacy_close(daemon);
    history_close(&daemon->history);
    scalars_close(&daemon->scalars);
    recorder_close(&daemon->recorder);
}

/* DAEMON_AGAIN, or the exit status. */
static int end_run(struct daemon *daemon)
{
    struct sgp_error error = {0};
    if (runs_end(daemon, &error) == 0)
        return DAEMON_AGAIN;
    sgp_log(&daemon->log->sink, SGP_LEVEL_ERROR, "event=error error=\"%s\"", error.text);
    return EXIT_STATUS_FAILED;
}

int daemon_run(const struct config *config, struct prepared *prepared, struct log *log,
    const struct daemon_extras *extras)
{
    struct daemon daemon = {
        .config = config,
        .colocated_owner = extras->colocated,
        .prepared = prepared,
        .log = log,
        .found.older = SGP_ROUND_NONE,
        .kept_model.best = {.round = SGP_ROUND_NONE, .value = NAN},
        .changed = true,
        .started = events_now(),
        .settled = on_settled,
        .turned = on_turned,
    };
    struct sgp_error error = {0};
    int code = uv_loop_init(&daemon.loop);
    if (code < 0) {
        sgp_log(&log->sink, SGP_LEVEL_ERROR, "event=error error=\"%s\"", uv_strerror(code));
        return EXIT_STATUS_FAILED;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    const struct sgp_dataset *judge =
        prepared->data.test != NULL ? prepared->data.test : prepared->data.train;
    figures_init(&daemon.figures, prepared->topology,
        judge != NULL ? figures_zero_loss(&prepared->model, judge) : NAN, daemon.started);
    code = open_all(&daemon, extras, &error);
    if (code == 0) {
        start_timers(&daemon, extras);
        colocated_owner_open(&daemon);
        char rows[SGP_TEXT_BYTES], blas[SGP_BLAS_TEXT_BYTES];
        prepared_rows_text(prepared, rows);
        sgp_blas_text(&prepared->blas, blas);
        sgp_log(&log->sink, SGP_LEVEL_INFO,
            "event=start listen=%s control=\"%s\" parameters=%llu data=\"%s\" blas=\"%s\" "
            "version=%s seed=%llu",
            config->listen, config->socket, (unsigned long long)prepared->parameters, rows, blas,
            sgp_version(), (unsigned long long)daemon.seed);
        events_post(&daemon, (struct sgp_event){.type = SGP_EVENT_START});
        if (extras->attachment !=
            NULL) /* the node restarts from this model, for whatever reason it ends */
            (void)survive_checkpoint(&daemon);
        if (colocated_owner_is_ready(&daemon))
            notify_ready();
        notes_status_line(&daemon);
        early_stop_release();
    } else {
        sgp_log(&log->sink, SGP_LEVEL_ERROR, "event=error error=\"%s\"", error.text);
        daemon.exit_status = EXIT_STATUS_FAILED;
    }
    (void)uv_run(&daemon.loop, UV_RUN_DEFAULT);
    sgp_assert(uv_loop_close(&daemon.loop) == 0);
    if (daemon.model_file == MODEL_FAILED)
        daemon.exit_status = EXIT_STATUS_FAILED;
    if (daemon.resets && daemon.exit_status == EXIT_STATUS_DONE && !daemon.signalled)
        daemon.exit_status = end_run(&daemon);
    if (daemon.struck && daemon.exit_status == EXIT_STATUS_DONE && !daemon.signalled)
        daemon.exit_status = DAEMON_STRUCK;
    free_all(&daemon);
    if (code == 0 && daemon.exit_status >= 0)
        sgp_log(&log->sink, SGP_LEVEL_INFO, "event=end status=%d", daemon.exit_status);
    return daemon.exit_status;
}
