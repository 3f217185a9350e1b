/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for the first program; see awaiting_model.h. Thread: the loop thread, which is the only
 * thread. */
#include "awaiting_model.h"

#include "control/control.h"
#include "node/early_stop.h"
#include "node/program.h"
#include "util/notify.h"

#include "sgp/kernels.h"

#include <math.h>
#include <signal.h>
#include <string.h>

struct awaiting_model {
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

static void view_awaiting_model(void *context, struct view_status *ret_status)
{
    const struct awaiting_model *wait = context;
    double seconds = (double)((sgp_time)uv_hrtime() - wait->started) / (double)SGP_SECOND;
    *ret_status = (struct view_status){.name = wait->config->name,
        .algorithm = wait->prepared->method->name,
        .core = {.state = SGP_NODE_JOINING,
            .round = SGP_ROUND_NONE,
            .rounds = SGP_ROUND_NONE,
            .weight = NAN,
            .weight_in_flight = NAN},
        .awaiting_model = true,
        .uptime_seconds = seconds,
        .training = {.epoch = NAN, .loss = NAN, .learning_rate = NAN},
        .test = {.loss = NAN, .accuracy = NAN},
        .epochs = NAN,
        .disagreement = NAN,
        .topology_file = wait->config->topology,
        .program = {.wanted = true, .socket = wait->config->attach, .seconds = seconds}};
    sgp_blas_text(&wait->prepared->blas, ret_status->blas);
}

static const struct sgp_topology *view_topology(void *context)
{
    return ((const struct awaiting_model *)context)->prepared->topology;
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

static void end(struct awaiting_model *wait, int result)
{
    if (wait->ended)
        return;
    wait->ended = true;
    wait->result = result;
    door_close(wait->door);
    control_close(wait->control, NULL, NULL);
    uv_close((uv_handle_t *)&wait->watchdog, NULL);
    for (size_t i = 0; i < 2; i++)
        uv_close((uv_handle_t *)&wait->signals[i], NULL);
    early_stop_begin(true); /* until the node's loop listens */
}

static int stop(void *context)
{
    end(context, 1);
    return 0;
}

/* ---- the program ---- */

/* Take the program's layout and first parameters. The parameters are read last, because reading
 * allocates fresh memory. */
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
    struct awaiting_model *wait = context;
    struct sgp_error error = {0};
    int64_t rounds = guest->hello.rounds, own = wait->prepared->rounds;
    int code = 0;
    if (rounds >= 0 && own > 0 && rounds != own)
        code = sgp_fail(&error, SGP_E_CONFIG,
            "the program asks for %lld rounds, and [train] rounds is %lld; leave it out in one of "
            "the two",
            (long long)rounds, (long long)own);
    if (code == 0)
        code = take_model(wait->prepared, guest, &error);
    if (code == 0) {
        const struct prepared *prepared = wait->prepared;
        if (prepared_warn_of_parts(wait->prepared))
            sgp_log(&wait->log->sink, SGP_LEVEL_WARNING, "event=warning text=\"%s\"",
                prepared->warnings[prepared->warning_count - 1]);
        *wait->guest = *guest;
        end(wait, 0);
        return;
    }
    prepared_unlay(wait->prepared);
    sgp_log(&wait->log->sink, SGP_LEVEL_WARNING,
        "event=refused program=\"%.63s\" pid=%d reason=\"%s\"", guest->hello.text, guest->pid,
        error.text);
    door_refuse(guest, code, error.text);
}

static void identify(void *context, struct sgp_attach_frame *frame)
{
    const struct awaiting_model *wait = context;
    program_identify(wait->config, wait->prepared, frame);
}

static void on_watchdog(uv_timer_t *timer)
{
    struct awaiting_model *wait = timer->data;
    (void)notify_watchdog(&wait->notify, true, 0);
}

static void on_signal(uv_signal_t *signal, int number)
{
    (void)number;
    end(signal->data, 1);
}

/* ---- the wait ---- */

static int open_all(struct awaiting_model *wait, struct sgp_error *error)
{
    const struct config *config = wait->config;
    const struct view_actions actions = {.context = wait,
        .no_model = "no program has attached yet: there is no model",
        .status = view_awaiting_model,
        .topology = view_topology,
        .stop = stop,
        .leave_obstacle = leave_obstacle,
        .token_obstacle = leave_obstacle,
        .reload = reload};
    struct view_model model;
    prepared_view_model(wait->prepared, &model);
    const struct door_events events = {.entered = on_entered, .identify = identify};
    int code = door_open(&wait->loop, config->attach, &events, wait, error, &wait->door);
    if (code < 0)
        return code;
    code = control_open(&wait->loop, config->socket, &actions, &model, error, &wait->control);
    if (code < 0)
        door_close(wait->door);
    return code;
}

int awaiting_model_wait(const struct config *config, struct prepared *prepared, struct log *log,
    struct guest *ret_guest, struct sgp_error *error)
{
    struct awaiting_model wait = {.config = config,
        .prepared = prepared,
        .log = log,
        .guest = ret_guest,
        .started = (sgp_time)uv_hrtime()};
    int code = uv_loop_init(&wait.loop);
    if (code < 0)
        return sgp_fail(error, code, "%s", uv_strerror(code));
    (void)signal(SIGPIPE, SIG_IGN);
    code = open_all(&wait, error);
    if (code == 0) {
        static const int numbers[] = {SIGTERM, SIGINT};
        for (size_t i = 0; i < 2; i++) {
            (void)uv_signal_init(&wait.loop, &wait.signals[i]);
            wait.signals[i].data = &wait;
            (void)uv_signal_start(&wait.signals[i], on_signal, numbers[i]);
        }
        sgp_log(
            &log->sink, SGP_LEVEL_INFO, "event=waiting for=program socket=\"%s\"", config->attach);
        uint64_t pace = (uint64_t)(notify_watchdog_interval() / SGP_MILLISECOND);
        (void)uv_timer_init(&wait.loop, &wait.watchdog);
        wait.watchdog.data = &wait;
        if (pace > 0)
            (void)uv_timer_start(&wait.watchdog, on_watchdog, pace, pace);
        notify_ready();
        notify_status(&wait.notify, "waits for a program to attach and bring its model");
        early_stop_release();
    }
    (void)uv_run(&wait.loop, UV_RUN_DEFAULT);
    sgp_assert(uv_loop_close(&wait.loop) == 0);
    return code < 0 ? code : wait.result;
}
