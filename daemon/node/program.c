/* SPDX-License-Identifier: Apache-2.0 */
/* What the rest of the daemon asks of the program that trains through it; see program.h. */
#include "program_inside.h"

#include <math.h>
#include <stdlib.h>

void program_same_updates(struct daemon *daemon)
{
    if (daemon->program != NULL)
        daemon->program->same = true;
}

void program_train(struct daemon *daemon, uint32_t steps, double pace)
{
    daemon->program->steps = steps;
    daemon->program->taken = 0;
    daemon->program->training = (struct sgp_training){.samples = 0};
    daemon->program->pace = pace;
    turns_give(daemon->program); /* without a program there, program_settle does it */
}

void program_holds(struct daemon *daemon, bool paused)
{
    if (daemon->program != NULL)
        daemon->program->holds = paused;
}

bool program_is_busy(const struct daemon *daemon)
{
    const struct program *program = daemon->program;
    return program != NULL && program->present && !program->answered;
}

void program_view(const struct daemon *daemon, struct view_program *ret_view)
{
    const struct program *program = daemon->program;
    *ret_view = (struct view_program){.wanted = program != NULL, .socket = daemon->config->attach};
    if (program == NULL)
        return;
    ret_view->attached = program->present && !program->dead;
    ret_view->turn = program->turn_out;
    ret_view->overflows = program->overflows;
    ret_view->pid = ret_view->attached ? program->attachment.pid : 0;
    ret_view->seconds = program->turn_out || program->daemon->programless
                            ? (double)(events_now() - program->since) / (double)SGP_SECOND
                            : NAN;
    (void)snprintf(
        ret_view->name, sizeof ret_view->name, "%s", ret_view->attached ? program->name : "");
}

static int ask(struct daemon *daemon, uint32_t offer, const char *what,
    const struct question *question, struct sgp_error *error)
{
    struct program *program = daemon->program;
    if (daemon->ending)
        return SGP_E_STATE;
    if (!program->present || program->dead)
        return sgp_fail(
            error, SGP_E_STATE, "the model is a program's, and none is attached; start it");
    if (!(program->attachment.hello.flags & offer))
        return sgp_fail(error, SGP_E_STATE, "program '%s' was attached without on_%s: it cannot",
            program->name, what);
    if (program->answered)
        return sgp_fail(
            error, SGP_E_STATE, "program '%s' has finished: it answers no more", program->name);
    int code = questions_add(&program->questions, question);
    if (code == 0)
        turns_give(program);
    return code;
}

static int evaluate(void *context, view_evaluated done, void *argument, struct sgp_error *error)
{
    const struct question question = {.evaluated = done, .argument = argument};
    return ask(context, SGP_ATTACH_EVALUATES, "evaluate", &question, error);
}

static int predict(void *context, const float *features, uint64_t rows, uint32_t columns,
    view_predicted done, void *argument, struct sgp_error *error)
{
    const struct question question = {.predicted = done,
        .argument = argument,
        .features = features,
        .rows = rows,
        .columns = columns};
    return ask(context, SGP_ATTACH_PREDICTS, "predict", &question, error);
}

void program_offer(const struct prepared *prepared, struct view_actions *actions)
{
    if (prepared->attached == NULL)
        return;
    actions->evaluate = evaluate;
    actions->predict = predict;
}

int program_open(struct daemon *daemon, struct attachment *attachment, struct sgp_error *error)
{
    if (daemon->prepared->attached == NULL)
        return 0;
    struct program *program = calloc(1, sizeof *program);
    if (program == NULL)
        return sgp_fail(error, -ENOMEM, "out of memory");
    *program = (struct program){.daemon = daemon,
        .told = SGP_ROUND_NONE,
        .timers = 3,
        .questions.figures = &daemon->figures,
        .lose = attachments_lose,
        .bury = attachments_bury};
    const struct attach_socket_events events = {
        .entered = attachments_on_entered, .identify = attachments_identify};
    int code = attach_socket_open(
        &daemon->loop, daemon->config->attach, &events, program, error, &program->attach_socket);
    if (code < 0) {
        free(program);
        return code;
    }
    (void)uv_timer_init(&daemon->loop, &program->patience);
    program->patience.data = program;
    (void)uv_timer_init(&daemon->loop, &program->decision);
    program->decision.data = program;
    (void)uv_timer_init(&daemon->loop, &program->forgets);
    program->forgets.data = program;
    daemon->program = program;
    if (attachment != NULL)
        attachments_take_in(program, attachment, false);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct program *program = handle->data;
    if (--program->timers == 0)
        free(program);
}

void program_close(struct daemon *daemon)
{
    struct program *program = daemon->program;
    if (program == NULL)
        return;
    attachments_lose(program, "the daemon ends");
    if (program->waits)
        attach_socket_refuse(&program->next, SGP_E_STATE, "the daemon ends");
    attach_socket_close(program->attach_socket);
    daemon->program = NULL;
    uv_close((uv_handle_t *)&program->patience, on_closed);
    uv_close((uv_handle_t *)&program->decision, on_closed);
    uv_close((uv_handle_t *)&program->forgets, on_closed);
}
