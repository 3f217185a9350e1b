/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of a wait; see awaiting.h. */
#include "awaiting.h"

#include "node/early_stop.h"

#include <math.h>
#include <signal.h>

int awaiting_open(
    struct awaiting *awaiting, const struct view_actions *actions, struct sgp_error *error)
{
    struct view_model model;
    awaiting->socket = -1;
    int code = uv_loop_init(&awaiting->loop);
    if (code < 0)
        return sgp_fail(error, code, "%s", uv_strerror(code));
    (void)signal(SIGPIPE, SIG_IGN);
    awaiting->started = (sgp_time)uv_hrtime();
    prepared_view_model(awaiting->prepared, &model);
    code = control_open(
        &awaiting->loop, awaiting->config->socket, actions, &model, error, &awaiting->control);
    if (code < 0) {
        (void)uv_run(&awaiting->loop, UV_RUN_DEFAULT);
        sgp_assert(uv_loop_close(&awaiting->loop) == 0);
    }
    return code;
}

static void on_signal(uv_signal_t *signal, int number)
{
    struct awaiting *awaiting = signal->data;
    if (number != SIGHUP)
        awaiting_end(awaiting, 1);
    else if (awaiting->hang_up != NULL)
        awaiting->hang_up(awaiting);
}

static void on_watchdog(uv_timer_t *timer)
{
    struct awaiting *awaiting = timer->data;
    (void)notify_watchdog(&awaiting->notify, true, 0);
}

void awaiting_start(struct awaiting *awaiting)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        (void)uv_signal_init(&awaiting->loop, &awaiting->signals[i]);
        awaiting->signals[i].data = awaiting;
        (void)uv_signal_start(&awaiting->signals[i], on_signal, numbers[i]);
    }
    const uint64_t pace = (uint64_t)(notify_watchdog_interval() / SGP_MILLISECOND);
    (void)uv_timer_init(&awaiting->loop, &awaiting->watchdog);
    awaiting->watchdog.data = awaiting;
    if (pace > 0)
        (void)uv_timer_start(&awaiting->watchdog, on_watchdog, pace, pace);
    notify_ready();
    early_stop_release();
}

void awaiting_end(struct awaiting *awaiting, int result)
{
    if (awaiting->ended)
        return;
    awaiting->ended = true;
    awaiting->result = result;
    awaiting->close(awaiting);
    if (result == 0)
        awaiting->socket = control_keep(awaiting->control);
    control_close(awaiting->control, NULL, NULL);
    uv_close((uv_handle_t *)&awaiting->watchdog, NULL);
    for (size_t i = 0; i < sizeof awaiting->signals / sizeof *awaiting->signals; i++)
        uv_close((uv_handle_t *)&awaiting->signals[i], NULL);
    early_stop_begin(true);        /* until the node's loop listens */
    (void)signal(SIGHUP, SIG_IGN); /* libuv has made it end the process */
}

int awaiting_stop(void *context)
{
    awaiting_end(context, 1);
    return 0;
}

int awaiting_run(struct awaiting *awaiting)
{
    (void)uv_run(&awaiting->loop, UV_RUN_DEFAULT);
    sgp_assert(uv_loop_close(&awaiting->loop) == 0);
    return awaiting->result;
}

double awaiting_seconds(const struct awaiting *awaiting)
{
    return (double)((sgp_time)uv_hrtime() - awaiting->started) / (double)SGP_SECOND;
}

void awaiting_status(const struct awaiting *awaiting, struct view_status *ret_status)
{
    *ret_status = (struct view_status){.name = awaiting->config->name,
        .algorithm = awaiting->prepared->method->name,
        .core = {.state = SGP_NODE_JOINING,
            .round = SGP_ROUND_NONE,
            .rounds = SGP_ROUND_NONE,
            .weight = NAN,
            .weight_in_flight = NAN},
        .awaiting = awaiting->state,
        .uptime_seconds = awaiting_seconds(awaiting),
        .privacy_epsilon = NAN,
        .training = {.epoch = NAN, .loss = NAN, .learning_rate = NAN},
        .test = {.loss = NAN, .accuracy = NAN},
        .epochs = NAN,
        .disagreement = NAN,
        .last_error_seconds = NAN,
        .best = {.round = SGP_ROUND_NONE, .value = NAN},
        .topology_file = prepared_file(awaiting->prepared)};
}
