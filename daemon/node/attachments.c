/* SPDX-License-Identifier: Apache-2.0 */
/* Programs attach and leave, one at a time, and send frames; see program_inside.h. A program may
 * leave while a job uses its memory. Then the daemon releases the program when that job is done. */
#include "program_inside.h"

#include "background_jobs.h"
#include "edges.h"
#include "privacy.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static void welcome(struct program *program, bool resumed)
{
    const struct prepared *prepared = program->daemon->prepared;
    bool over = resumed && program_state(program) == SGP_NODE_FINISHED;
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_WELCOME,
        .flags = (resumed ? SGP_ATTACH_RESUMED : 0u) | (over ? SGP_ATTACH_OVER : 0u),
        .parameters = prepared->parameters};
    program_identify(program->daemon->config, prepared, &frame);
    program_say(program, &frame);
}

void attachments_bury(struct program *program)
{
    if (!program->dead || program->job)
        return;
    shared_close(&program->attachment.shared);
    program->dead = program->present = false;
    if (!program->waits)
        return;
    program->waits = false;
    struct attachment next = program->next;
    attachments_on_entered(program, &next);
}

static void on_poll_closed(uv_handle_t *handle)
{
    free(handle);
}

void attachments_lose(struct program *program, const char *why)
{
    if (program->dead || !program->present)
        return;
    sgp_log(&program->daemon->log->sink, program->answered ? SGP_LEVEL_INFO : SGP_LEVEL_WARNING,
        "event=detached program=\"%s\" pid=%d reason=\"%s\"", program->name,
        program->attachment.pid, why);
    (void)uv_poll_stop(program->poll);
    uv_close((uv_handle_t *)program->poll, on_poll_closed);
    program->poll = NULL;
    (void)close(program->attachment.socket);
    program->dead = true;
    program->finishing = false;
    program->words[0] = '\0';
    program->daemon->facts.asks = false;
    decision_end(program);
    attachments_bury(program);
    questions_fail(&program->questions, program->daemon->ending ? -ECANCELED : SGP_E_STATE,
        program->daemon->ending ? "" : "the program has gone, so nobody can answer");
    if (program->daemon->ending)
        return;
    program->skipped = program->skipped || program->turn_out;
    program->turn_out = program->late = false;
    if (program->steps > 0) /* else the next due steps will find no program */
        turns_wait(program);
}

static void on_readable(uv_poll_t *poll, int status, int events);

void attachments_take_in(struct program *program, struct attachment *attachment, bool resumed)
{
    struct daemon *daemon = program->daemon;
    program->poll = calloc(1, sizeof *program->poll);
    if (program->poll == NULL ||
        uv_poll_init(&daemon->loop, program->poll, attachment->socket) < 0) {
        free(program->poll);
        attach_socket_refuse(attachment, -ENOMEM, "out of memory");
        return;
    }
    program->attachment = *attachment;
    program->present = true;
    program->turn_out = program->late = program->finishing = program->ended = false;
    program->stopped = program->answered = program->enough = false;
    program->overflows = 0;
    program->same = true; /* an earlier program may have been told already */
    program->skipped = program->skipped && program->turn > 0;
    (void)snprintf(program->name, sizeof program->name, "%.63s", attachment->hello.text);
    program->poll->data = program;
    (void)uv_poll_start(program->poll, UV_READABLE | UV_DISCONNECT, on_readable);
    sgp_log(&daemon->log->sink, SGP_LEVEL_INFO,
        "event=attached program=\"%s\" pid=%d parameters=%" PRIu64 " resumed=%d", program->name,
        attachment->pid, daemon->prepared->parameters, resumed);
    welcome(program, resumed);
    if (!program->present || program->dead || !program->daemon->programless)
        return;
    program->daemon->programless = false;
    if (!program->holds && !program_is_over(program_state(program)))
        program_post(program, SGP_EVENT_RESUME, 0);
}

static void forget_model(struct program *program)
{
    (void)uv_timer_stop(&program->forgets);
    program->daemon->resets = true;
}

static void on_forgets(uv_timer_t *timer)
{
    struct program *program = timer->data;
    if (program->daemon->run.begun || program->daemon->ending || program->daemon->stopping)
        return;
    forget_model(program);
    events_settle(program->daemon); /* daemon.c orders the end */
}

void program_mismatch(struct daemon *daemon, const char *text)
{
    struct program *program = daemon->program;
    if (program == NULL || !program->present || program->dead ||
        program_state(program) != SGP_NODE_JOINING)
        return;
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_REFUSED, .code = SGP_E_MODEL};
    (void)snprintf(frame.text, sizeof frame.text, "%.375s", text);
    program_say(program, &frame);
    attachments_lose(program, "a neighbour trains another model");
    if (!daemon->run.begun)
        (void)uv_timer_start(&program->forgets, on_forgets, PROGRAM_FORGET_MS, 0);
}

static int check_attachment(
    const struct program *program, const struct attachment *attachment, struct sgp_error *error)
{
    const struct daemon *daemon = program->daemon;
    if (program->present)
        return sgp_fail(error, -EBUSY, "%s: program '%s' (pid %d) is attached; one at a time",
            daemon->config->name, program->name, program->attachment.pid);
    if (daemon->resets)
        return sgp_fail(
            error, -EAGAIN, "%s: the node begins another run; attach again", daemon->config->name);
    if (daemon->stopping || daemon->ending)
        return sgp_fail(error, SGP_E_STATE, "%s: the node stops", daemon->config->name);
    int64_t rounds = attachment->hello.rounds, own = daemon->prepared->rounds;
    /* open: the program counts rounds */
    if (rounds >= 0 && !daemon->prepared->open && rounds != own)
        return sgp_fail(error, SGP_E_CONFIG,
            "%s: the program asks for %" PRId64 " rounds, and [train] rounds is %" PRId64
            "; leave it out in one of the two",
            daemon->config->name, rounds, own);
    return shared_compare(daemon->prepared->layout, attachment->shared.layout, error);
}

/* Whether the program wants another run than this node has trained, or is about to train. */
static bool asks_for_reset(const struct program *program, const struct attachment *attachment)
{
    const struct daemon *daemon = program->daemon;
    struct sgp_error ignored = {0};
    bool fresh = (attachment->hello.flags & SGP_ATTACH_FRESH) != 0 && !program->present;
    if (uv_is_active((const uv_handle_t *)&program->forgets) && !daemon->stopping)
        return true;
    return fresh && !daemon->stopping && !daemon->ending &&
           (daemon->run.begun ||
               shared_compare(daemon->prepared->layout, attachment->shared.layout, &ignored) < 0);
}

void attachments_on_entered(void *context, struct attachment *attachment)
{
    struct program *program = context;
    struct sgp_error error = {0};
    if (program->dead && !program->waits) {
        program->next = *attachment;
        program->waits = true;
        return;
    }
    if (asks_for_reset(program, attachment)) {
        forget_model(program);
        sgp_log(&program->daemon->log->sink, SGP_LEVEL_INFO, "event=anew program=\"%.63s\" pid=%d",
            attachment->hello.text, attachment->pid);
    }
    int code = check_attachment(program, attachment, &error);
    if (code == 0) {
        attachments_take_in(program, attachment, true);
        program_settle(program->daemon);
        return;
    }
    sgp_log(&program->daemon->log->sink, SGP_LEVEL_WARNING,
        "event=refused program=\"%.63s\" pid=%d reason=\"%s\"", attachment->hello.text,
        attachment->pid, error.text);
    attach_socket_refuse(attachment, code, error.text);
    if (program->daemon->resets)
        events_settle(program->daemon); /* daemon.c orders the end */
}

void attachments_identify(void *context, struct sgp_attach_frame *frame)
{
    const struct program *program = context;
    bool over = program_state(program) == SGP_NODE_FINISHED;
    frame->flags = over ? SGP_ATTACH_OVER : 0u;
    program_identify(program->daemon->config, program->daemon->prepared, frame);
}

static void on_report(struct program *program, const struct sgp_attach_frame *frame)
{
    if (frame->text[0] != '\0')
        sgp_log(&program->daemon->log->sink, SGP_LEVEL_INFO,
            "event=report program=\"%s\" epoch=%.6g figures=\"%s\"", program->name, frame->epoch,
            frame->text);
    if (isnan(frame->test_loss) && isnan(frame->test_accuracy))
        return;
    background_jobs_reported(program->daemon,
        &(struct sgp_evaluation){
            .samples = 1, .loss = frame->test_loss, .accuracy = frame->test_accuracy});
}

static void on_claim(struct program *program, const struct sgp_attach_frame *frame)
{
    struct sgp_error error = {0};
    struct sgp_attach_frame answer = {.type = SGP_ATTACH_CLAIMED, .turn = frame->turn};
    answer.code = privacy_claim(program->daemon, program->name, frame->text, &error);
    (void)snprintf(answer.text, sizeof answer.text, "%.375s", error.text);
    program_say(program, &answer);
}

/* Tell the program for which neighbours a node that has not begun waits. */
static void say_awaited(struct program *program)
{
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_AWAITED};
    edges_awaited(program->daemon, frame.text, sizeof frame.text);
    program_say(program, &frame);
}

static void on_frame(struct program *program, const struct sgp_attach_frame *frame, int descriptor)
{
    switch (frame->type) {
    case SGP_ATTACH_DONE:
        turns_on_done(program, frame);
        break;
    case SGP_ATTACH_FINISH:
        program->finishing = true;
        program->late = false;
        /* program_settle continues */
        break;
    case SGP_ATTACH_REPORT:
        on_report(program, frame);
        break;
    case SGP_ATTACH_ENOUGH:
        if (!program->enough) /* it can say that only once */
            sgp_log(&program->daemon->log->sink, SGP_LEVEL_INFO,
                "event=enough program=\"%s\" reason=\"%.200s\"", program->name, frame->text);
        program->enough = true;
        program_post(program, SGP_EVENT_ENOUGH, 0);
        break;
    case SGP_ATTACH_PRIVACY:
        on_claim(program, frame);
        break;
    case SGP_ATTACH_TELL:
        decision_on_tell(program, frame);
        break;
    case SGP_ATTACH_AWAITS:
        say_awaited(program);
        break;
    case SGP_ATTACH_KEEP:
        program->keeps = true; /* program_settle writes it */
        break;
    case SGP_ATTACH_EVALUATED:
    case SGP_ATTACH_PREDICTED:
        if (questions_take(&program->questions, frame, descriptor) < 0)
            attachments_lose(program, "it answered what it was not asked");
        break;
    case SGP_ATTACH_DETACH:
        attachments_lose(program, "it detached");
        break;
    default:
        attachments_lose(program, "it said what a program does not say");
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct program *program = poll->data;
    struct sgp_attach_frame frame;
    int descriptor = -1;
    int code = sgp_attach_receive(program->attachment.socket, &frame, &descriptor);
    if (code == -EAGAIN || code == -EINTR)
        return;
    if (code < 0)
        attachments_lose(program, code == SGP_E_CLOSED ? "its end" : sgp_strerror(code));
    else
        on_frame(program, &frame, descriptor);
    if (descriptor >= 0)
        (void)close(descriptor);
    program_settle(program->daemon);
}
