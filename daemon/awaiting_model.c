/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for the first program; see awaiting_model.h. Thread: the loop thread, which is the only
 * thread. */
#include "awaiting_model.h"

#include "awaiting.h"
#include "node/program.h"

#include "sgp/kernels.h"

#include <math.h>
#include <string.h>

struct awaiting_model {
    struct awaiting wait; /* first */
    struct prepared *prepared;
    struct attach_socket *attach_socket;
    struct attachment *attachment;
};

/* ---- onlookers ---- */

static void view_status(void *context, struct view_status *ret_status)
{
    const struct awaiting_model *awaiting = context;
    awaiting_status(&awaiting->wait, ret_status);
    ret_status->program = (struct view_program){.wanted = true,
        .socket = awaiting->wait.config->attach,
        .seconds = awaiting_seconds(&awaiting->wait)};
    sgp_blas_text(&awaiting->prepared->blas, ret_status->blas);
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

static void close_attach_socket(struct awaiting *wait)
{
    attach_socket_close(((struct awaiting_model *)wait)->attach_socket);
}

/* ---- the program ---- */

/* Take the program's layout and first parameters. The parameters are read last, because reading
 * allocates fresh memory. */
static int take_model(
    struct prepared *prepared, const struct attachment *attachment, struct sgp_error *error)
{
    struct sgp_model_file *layout = NULL;
    int code = sgp_safetensors_layout(attachment->shared.head, attachment->shared.head_bytes,
        attachment->shared.bytes - attachment->shared.head_bytes, "the program's memory", error,
        &layout);
    if (code == 0)
        code = prepared_lay(prepared, layout, error);
    if (code == 0)
        code = prepared_learn(prepared, error);
    if (code == 0 &&
        !isfinite(sgp_kernels_best()->largest(attachment->shared.values, prepared->parameters)))
        code = sgp_fail(error, SGP_E_DIVERGED, "the program's first parameters are not finite");
    if (code < 0)
        return code;
    prepared->trainer->methods->resume(
        prepared->trainer, &(struct sgp_trainer_state){.x = attachment->shared.values});
    prepared->begins = true;
    return 0;
}

static void on_entered(void *context, struct attachment *attachment)
{
    struct awaiting_model *awaiting = context;
    struct sgp_error error = {0};
    int64_t rounds = attachment->hello.rounds, own = awaiting->prepared->rounds;
    int code = 0;
    if (rounds >= 0 && own > 0 && rounds != own)
        code = sgp_fail(&error, SGP_E_CONFIG,
            "the program asks for %lld rounds, and [train] rounds is %lld; leave it out in one of "
            "the two",
            (long long)rounds, (long long)own);
    if (code == 0)
        code = take_model(awaiting->prepared, attachment, &error);
    if (code == 0) {
        const struct prepared *prepared = awaiting->prepared;
        if (prepared_warn_of_parts(awaiting->prepared))
            sgp_log(&awaiting->wait.log->sink, SGP_LEVEL_WARNING, "event=warning text=\"%s\"",
                prepared->warnings[prepared->warning_count - 1]);
        *awaiting->attachment = *attachment;
        awaiting_end(&awaiting->wait, 0);
        return;
    }
    prepared_unlay(awaiting->prepared);
    sgp_log(&awaiting->wait.log->sink, SGP_LEVEL_WARNING,
        "event=refused program=\"%.63s\" pid=%d reason=\"%s\"", attachment->hello.text,
        attachment->pid, error.text);
    attach_socket_refuse(attachment, code, error.text);
}

static void identify(void *context, struct sgp_attach_frame *frame)
{
    const struct awaiting_model *awaiting = context;
    program_identify(awaiting->wait.config, awaiting->prepared, frame);
}

/* ---- the wait ---- */

static int open_all(struct awaiting_model *awaiting, struct sgp_error *error)
{
    const struct view_actions actions = {.context = awaiting,
        .no_model = "no program has attached yet: there is no model",
        .status = view_status,
        .topology = view_topology,
        .stop = awaiting_stop,
        .leave_obstacle = leave_obstacle,
        .token_obstacle = leave_obstacle,
        .reload = reload};
    const struct attach_socket_events events = {.entered = on_entered, .identify = identify};
    struct awaiting *wait = &awaiting->wait;
    int code = awaiting_open(wait, &actions, error);
    if (code < 0)
        return code;
    code = attach_socket_open(
        &wait->loop, wait->config->attach, &events, awaiting, error, &awaiting->attach_socket);
    if (code == 0)
        return 0;
    control_close(wait->control, NULL, NULL);
    (void)awaiting_run(wait);
    return code;
}

int awaiting_model_wait(const struct config *config, struct prepared *prepared, struct log *log,
    struct attachment *ret_attachment, int *ret_socket, struct sgp_error *error)
{
    struct awaiting_model awaiting = {.wait = {.config = config,
                                          .prepared = prepared,
                                          .log = log,
                                          .state = "awaiting_model",
                                          .close = close_attach_socket},
        .prepared = prepared,
        .attachment = ret_attachment};
    int code = open_all(&awaiting, error);
    if (code < 0)
        return code;
    sgp_log(&log->sink, SGP_LEVEL_INFO, "event=waiting for=program socket=\"%s\"", config->attach);
    awaiting_start(&awaiting.wait);
    notify_status(&awaiting.wait.notify, "waits for a program to attach and bring its model");
    code = awaiting_run(&awaiting.wait);
    *ret_socket = awaiting.wait.socket;
    return code;
}
