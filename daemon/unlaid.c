/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for the first program; see unlaid.h. Thread: the loop thread, the only one. */
#include "unlaid.h"

#include "control/control.h"
#include "node/early_stop.h"
#include "node/program.h"
#include "util/notify.h"

#include "sgp/kernels.h"

#include <math.h>
#include <signal.h>
#include <string.h>

struct unlaid {
    uv_loop_t loop;
    const struct config *config;
    struct prepared *prepared;
    struct log *log;
    struct door *door;
    struct control *control;
    uv_signal_t signals[2];
    uv_timer_t watchdog;
    struct notify notify;
    sgp_time started;
    struct guest *guest;
    bool ended;
    int result;
};

/* ---- onlookers ---- */

static void view_unlaid(void *context, struct view_status *ret_status)
{
    const struct unlaid *unlaid = context;
    double seconds = (double)((sgp_time)uv_hrtime() - unlaid->started) / (double)SGP_SECOND;
    *ret_status = (struct view_status){.name = unlaid->config->name,
        .algorithm = unlaid->prepared->method->name,
        .core = {.state = SGP_NODE_JOINING,
            .round = SGP_ROUND_NONE,
            .rounds = SGP_ROUND_NONE,
            .weight = NAN,
            .weight_in_flight = NAN},
        .unlaid = true,
        .uptime_seconds = seconds,
        .training = {.epoch = NAN, .loss = NAN, .learning_rate = NAN},
        .test = {.loss = NAN, .accuracy = NAN},
        .epochs = NAN,
        .disagreement = NAN,
        .topology_file = unlaid->config->topology,
        .program = {.wanted = true, .socket = unlaid->config->attach, .seconds = seconds}};
    sgp_blas_text(&unlaid->prepared->blas, ret_status->blas);
}

static const struct sgp_topology *view_topology(void *context)
{
    return ((const struct unlaid *)context)->prepared->topology;
}

static const char *leave_obstacle(void *context)
{
    (void)context;
    return "no program has attached yet; stop it";
}

static int reload(void *context, struct view_reload *ret_reload, struct sgp_error *error)
{
    (void)context;
    (void)ret_reload;
    return sgp_fail(
        error, SGP_E_STATE, "no program has attached yet; start it again to read the file again");
}

static void end(struct unlaid *unlaid, int result)
{
    if (unlaid->ended)
        return;
    unlaid->ended = true;
    unlaid->result = result;
    door_close(unlaid->door);
    control_close(unlaid->control, NULL, NULL);
    uv_close((uv_handle_t *)&unlaid->watchdog, NULL);
    for (size_t i = 0; i < 2; i++)
        uv_close((uv_handle_t *)&unlaid->signals[i], NULL);
    early_stop_begin(true); /* until the node's loop listens */
}

static int stop(void *context)
{
    end(context, 1);
    return 0;
}

/* ---- the program ---- */

/* Take the program's layout and first parameters; these last, for to read fresh memory makes it. */
static int take_model(struct prepared *prepared, const struct guest *guest, struct sgp_error *error)
{
    struct sgp_model_file *layout = NULL;
    int code = sgp_safetensors_layout(guest->shared.head, guest->shared.head_bytes,
        guest->shared.bytes - guest->shared.head_bytes, "the program's memory", error, &layout);
    if (code == 0)
        code = prepared_lay(prepared, layout, error);
    if (code == 0)
        code = prepared_learn(prepared, error);
    if (code == 0 &&
        !isfinite(sgp_kernels_best()->largest(guest->shared.values, prepared->parameters)))
        code = sgp_fail(error, SGP_E_DIVERGED, "the program's first parameters are not finite");
    if (code < 0)
        return code;
    prepared->trainer->methods->resume(
        prepared->trainer, &(struct sgp_trainer_state){.x = guest->shared.values});
    prepared->begins = true;
    return 0;
}

static void on_entered(void *context, struct guest *guest)
{
    struct unlaid *unlaid = context;
    struct sgp_error error = {0};
    int64_t rounds = guest->hello.rounds, own = unlaid->prepared->rounds;
    int code = 0;
    if (rounds >= 0 && own > 0 && rounds != own)
        code = sgp_fail(&error, SGP_E_CONFIG,
            "the program asks for %lld rounds, and [train] rounds is %lld; leave it out in one of "
            "the two",
            (long long)rounds, (long long)own);
    if (code == 0)
        code = take_model(unlaid->prepared, guest, &error);
    if (code == 0) {
        const struct prepared *prepared = unlaid->prepared;
        if (prepared_warn_of_parts(unlaid->prepared))
            sgp_log(&unlaid->log->sink, SGP_LEVEL_WARNING, "event=warning text=\"%s\"",
                prepared->warnings[prepared->warning_count - 1]);
        *unlaid->guest = *guest;
        end(unlaid, 0);
        return;
    }
    prepared_unlay(unlaid->prepared);
    sgp_log(&unlaid->log->sink, SGP_LEVEL_WARNING,
        "event=refused program=\"%.63s\" pid=%d reason=\"%s\"", guest->hello.text, guest->pid,
        error.text);
    door_refuse(guest, code, error.text);
}

static void identify(void *context, struct sgp_attach_frame *frame)
{
    const struct unlaid *unlaid = context;
    program_identify(unlaid->config, unlaid->prepared, frame);
}

static void on_watchdog(uv_timer_t *timer)
{
    struct unlaid *unlaid = timer->data;
    (void)notify_watchdog(&unlaid->notify, true, 0);
}

static void on_signal(uv_signal_t *signal, int number)
{
    (void)number;
    end(signal->data, 1);
}

/* ---- the wait ---- */

static int open_all(struct unlaid *unlaid, struct sgp_error *error)
{
    const struct config *config = unlaid->config;
    const struct view_actions actions = {.context = unlaid,
        .no_model = "no program has attached yet: there is no model",
        .status = view_unlaid,
        .topology = view_topology,
        .stop = stop,
        .leave_obstacle = leave_obstacle,
        .token_obstacle = leave_obstacle,
        .reload = reload};
    struct view_model model;
    prepared_view_model(unlaid->prepared, &model);
    const struct door_events events = {.entered = on_entered, .identify = identify};
    int code = door_open(&unlaid->loop, config->attach, &events, unlaid, error, &unlaid->door);
    if (code < 0)
        return code;
    code = control_open(&unlaid->loop, config->socket, &actions, &model, error, &unlaid->control);
    if (code < 0)
        door_close(unlaid->door);
    return code;
}

int unlaid_wait(const struct config *config, struct prepared *prepared, struct log *log,
    struct guest *ret_guest, struct sgp_error *error)
{
    struct unlaid unlaid = {.config = config,
        .prepared = prepared,
        .log = log,
        .guest = ret_guest,
        .started = (sgp_time)uv_hrtime()};
    int code = uv_loop_init(&unlaid.loop);
    if (code < 0)
        return sgp_fail(error, code, "%s", uv_strerror(code));
    (void)signal(SIGPIPE, SIG_IGN);
    code = open_all(&unlaid, error);
    if (code == 0) {
        static const int numbers[] = {SIGTERM, SIGINT};
        for (size_t i = 0; i < 2; i++) {
            (void)uv_signal_init(&unlaid.loop, &unlaid.signals[i]);
            unlaid.signals[i].data = &unlaid;
            (void)uv_signal_start(&unlaid.signals[i], on_signal, numbers[i]);
        }
        sgp_log(
            &log->sink, SGP_LEVEL_INFO, "event=waiting for=program socket=\"%s\"", config->attach);
        uint64_t pace = (uint64_t)(notify_watchdog_interval() / SGP_MILLISECOND);
        (void)uv_timer_init(&unlaid.loop, &unlaid.watchdog);
        unlaid.watchdog.data = &unlaid;
        if (pace > 0)
            (void)uv_timer_start(&unlaid.watchdog, on_watchdog, pace, pace);
        notify_ready();
        notify_status(&unlaid.notify, "waits for a program to attach and bring its model");
        early_stop_release();
    }
    (void)uv_run(&unlaid.loop, UV_RUN_DEFAULT);
    sgp_assert(uv_loop_close(&unlaid.loop) == 0);
    return code < 0 ? code : unlaid.result;
}
