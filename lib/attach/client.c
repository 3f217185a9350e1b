/* SPDX-License-Identifier: Apache-2.0 */
/* The program's side of an attachment; see sgp/attach.h. Owns the socket and the shared memory. It
 * waits in poll, which ends at any signal, and never in a read. So an interrupted wait can be
 * repeated. */
#include "answer.h"
#include "memory.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct sgp_attachment {
    int socket;
    struct sgp_memory memory;
    struct sgp_attach_welcome welcome;
    struct sgp_answers answers;
    uint64_t turn;  /* a turn of the program; 0: the memory belongs to the daemon */
    int64_t rounds; /* rounds that the program asks for; -1: no limit */
    sgp_round round;
    double weight;
    bool over;        /* training is over: z is the estimate, and no step counts */
    bool refused;     /* a step was not finite: no step counts until the next turn */
    bool finishing;   /* FINISH was sent */
    uint64_t claims;  /* of privacy, that were sent */
    uint64_t awaited; /* the claim whose answer is waited for; 0: none */
};

#define RETRY_MS 100 /* interval between two attempts to reach a daemon */

static int64_t now_ms(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* The time until `end` (INT64_MAX: never), as an argument of poll. */
static int left_ms(int64_t end)
{
    if (end == INT64_MAX)
        return -1;
    int64_t left = end - now_ms();
    return left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left;
}

/* ---- frames ---- */

static int fail_frame(struct sgp_error *error, int code)
{
    if (code == -EINTR)
        return sgp_fail(error, code, "attach: interrupted by a signal");
    if (code == SGP_E_CLOSED)
        return sgp_fail(error, code, "attach: the daemon is gone; start it and attach again");
    if (code == SGP_E_PROTOCOL)
        return sgp_fail(error, code,
            "attach: the daemon sent what version %u of this protocol does not know; are sgpd and "
            "libsgp of one release?",
            SGP_ATTACH_VERSION);
    return sgp_fail(error, code, "attach: %s", sgp_strerror(code));
}

static int send_frame(
    int socket, struct sgp_attach_frame *frame, int descriptor, struct sgp_error *error)
{
    int status = sgp_attach_send(socket, frame, descriptor);
    return status < 0 ? fail_frame(error, status) : 0;
}

/* Wait for one frame until `end`. *ret_descriptor is the descriptor that arrived with it, or -1.
 * The caller closes it. */
static int next_frame(int socket, int64_t end, struct sgp_error *error,
    struct sgp_attach_frame *ret_frame, int *ret_descriptor)
{
    struct pollfd ready = {.fd = socket, .events = POLLIN};
    int count = poll(&ready, 1, left_ms(end));
    if (count < 0)
        return fail_frame(error, -errno);
    if (count == 0)
        return sgp_fail(error, -ETIMEDOUT, "attach: the daemon does not answer");
    int status = sgp_attach_receive(socket, ret_frame, ret_descriptor);
    return status < 0 ? fail_frame(error, status) : 0;
}

/* ---- attaching ---- */

/* One attempt. Returns a descriptor or -errno. */
static int dial(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1);
    int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return -errno;
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0)
        return descriptor;
    int status = -errno;
    (void)close(descriptor);
    return status;
}

/* Wait until `end` for a daemon that is not running yet. */
static int connect_until(const char *path, int64_t end, struct sgp_error *error, int *ret_socket)
{
    for (;;) {
        int status = dial(path);
        if (status >= 0) {
            *ret_socket = status;
            return 0;
        }
        bool absent = status == -ENOENT || status == -ECONNREFUSED;
        if (!absent || left_ms(end) == 0)
            return sgp_fail(error, status, "attach: %s: %s%s", path, sgp_strerror(status),
                absent ? "; is sgpd running?" : "");
        if (poll(NULL, 0, RETRY_MS) < 0)
            return fail_frame(error, -errno);
    }
}

static int take_welcome(struct sgp_attachment *attachment, const struct sgp_attach_frame *frame,
    struct sgp_error *error)
{
    if (frame->type == SGP_ATTACH_REFUSED && frame->code < 0)
        return sgp_fail(error, frame->code, "attach: the daemon refused: %s", frame->text);
    struct sgp_attach_welcome *welcome = &attachment->welcome;
    int length = snprintf(
        welcome->node, sizeof welcome->node, "%.*s", (int)sizeof welcome->node - 1, frame->text);
    if (frame->type != SGP_ATTACH_WELCOME || length <= 0)
        return fail_frame(error, SGP_E_PROTOCOL);
    welcome->index = frame->index;
    welcome->size = frame->size;
    welcome->local_steps = frame->local_steps;
    welcome->seed = frame->seed;
    welcome->round = frame->round;
    welcome->rounds = frame->rounds;
    welcome->resumed = frame->flags & SGP_ATTACH_RESUMED;
    return 0;
}

/* Whether this answers a claim whose wait a signal has ended. */
static bool is_late_answer(
    const struct sgp_attachment *attachment, const struct sgp_attach_frame *frame)
{
    return frame->type == SGP_ATTACH_CLAIMED && frame->turn != attachment->awaited;
}

/* Wait for the expected frame. A question that arrives first is answered. */
static int next_answering(
    struct sgp_attachment *attachment, struct sgp_error *error, struct sgp_attach_frame *ret_frame)
{
    for (;;) {
        int rows = -1, outputs = -1;
        int status = next_frame(attachment->socket, INT64_MAX, error, ret_frame, &rows);
        bool asked = status == 0 && (ret_frame->type == SGP_ATTACH_EVALUATE ||
                                        ret_frame->type == SGP_ATTACH_PREDICT);
        struct sgp_attach_frame answer;
        if (asked) {
            sgp_answer(&attachment->answers, attachment->memory.values, ret_frame, rows, &answer,
                &outputs);
            do /* an unanswered question would delay every turn */
                status = sgp_attach_send(attachment->socket, &answer, outputs);
            while (status == -EINTR);
            status = status < 0 ? fail_frame(error, status) : 0;
        }
        if (rows >= 0)
            (void)close(rows);
        if (outputs >= 0)
            (void)close(outputs);
        if (status < 0 || !(asked || is_late_answer(attachment, ret_frame)))
            return status;
    }
}

/* Exchange HELLO and WELCOME. */
static int greet(struct sgp_attachment *attachment, const struct sgp_attach_options *options,
    int64_t end, struct sgp_error *error)
{
    struct sgp_attach_frame frame = {
        .type = SGP_ATTACH_HELLO, .flags = sgp_answers_flags(&options->answers)};
    int descriptor = -1;
    frame.parameters = attachment->memory.parameters;
    frame.rounds = options->rounds;
    if (options->program != NULL)
        snprintf(frame.text, sizeof frame.text, "%s", options->program);
    int status = send_frame(attachment->socket, &frame, attachment->memory.descriptor, error);
    if (status == 0)
        status = next_frame(attachment->socket, end, error, &frame, &descriptor);
    if (descriptor >= 0)
        (void)close(descriptor);
    return status < 0 ? status : take_welcome(attachment, &frame, error);
}

/* Whether the rounds that the program asked for are done, if the daemon has no limit. */
static bool is_last(const struct sgp_attachment *attachment, const struct sgp_attach_frame *turn)
{
    return turn->rounds < 0 && attachment->rounds >= 0 && turn->round >= attachment->rounds;
}

/* Wait for the next turn. *ret_mixed is the result of the previous one. */
static int await_turn(
    struct sgp_attachment *attachment, struct sgp_error *error, struct sgp_mixed *ret_mixed)
{
    struct sgp_attach_frame frame;
    int status = next_answering(attachment, error, &frame);
    if (status < 0)
        return status;
    if (frame.type == SGP_ATTACH_REFUSED && frame.code < 0)
        return sgp_fail(error, frame.code, "attach: the daemon refused: %s", frame.text);
    if (frame.type != SGP_ATTACH_TURN && frame.type != SGP_ATTACH_STOP)
        return fail_frame(error, SGP_E_PROTOCOL);
    attachment->over = frame.type == SGP_ATTACH_STOP;
    if (!attachment->over) {
        attachment->turn = frame.turn;
        attachment->round = frame.round;
        attachment->weight = frame.weight;
        if (frame.size > 0) { /* a reload may have changed it */
            attachment->welcome.index = frame.index;
            attachment->welcome.size = frame.size;
        }
        attachment->over = is_last(attachment, &frame);
    }
    if (frame.code < 0) {
        attachment->refused = true;
        return sgp_fail(error, frame.code,
            "attach: the step was not taken, for tensor %s is not finite; the node is paused",
            frame.text);
    }
    *ret_mixed = (struct sgp_mixed){.round = attachment->round,
        .weight = attachment->weight,
        .exchanged = frame.flags & SGP_ATTACH_EXCHANGED,
        .jumped = frame.flags & SGP_ATTACH_JUMPED,
        .same_updates = frame.flags & SGP_ATTACH_SAME_UPDATES,
        .skipped = attachment->refused || (frame.flags & SGP_ATTACH_SKIPPED),
        .stop = attachment->over};
    attachment->refused = false;
    return 0;
}

int sgp_attach(const struct sgp_attach_options *options, const float *initial,
    struct sgp_error *error, struct sgp_attachment **ret_attachment)
{
    sgp_assert(options->tensor_count >= 1 && options->tensor_count <= SGP_FILE_TENSORS_MAX);
    sgp_assert(options->answers.predict == NULL || options->answers.outputs >= 1);
    char path[SGP_ATTACH_PATH_BYTES];
    int status = sgp_attach_path(options->node, path);
    if (status < 0)
        return sgp_fail(error, status,
            status == SGP_E_STATE ? "attach: no node is named, and $SGP_SOCKET is not set"
                                  : "attach: the path of the socket is longer than 107 bytes");
    struct sgp_attachment *attachment = calloc(1, sizeof *attachment);
    if (attachment == NULL)
        return sgp_fail(error, -ENOMEM, "attach: out of memory");
    attachment->socket = -1;
    attachment->rounds = options->rounds;
    attachment->answers = options->answers;
    status = sgp_memory_create(options, initial, error, &attachment->memory);
    if (status < 0) {
        free(attachment);
        return status;
    }
    const int64_t end = options->timeout_ms < 0 ? INT64_MAX : now_ms() + options->timeout_ms;
    struct sgp_mixed mixed;
    status = connect_until(path, end, error, &attachment->socket);
    if (status == 0)
        status = greet(attachment, options, end, error);
    if (status == 0)
        status = await_turn(attachment, error, &mixed);
    if (status < 0) {
        sgp_attachment_detach(attachment);
        return status;
    }
    *ret_attachment = attachment;
    return 0;
}

void sgp_attachment_welcome(
    const struct sgp_attachment *attachment, struct sgp_attach_welcome *ret_welcome)
{
    *ret_welcome = attachment->welcome;
}

float *sgp_attachment_values(struct sgp_attachment *attachment)
{
    return attachment->memory.values;
}

/* ---- turns ---- */

int sgp_attachment_mix(struct sgp_attachment *attachment, const struct sgp_step *step,
    struct sgp_error *error, struct sgp_mixed *ret_mixed)
{
    if (attachment->over) { /* more steps than were asked for */
        *ret_mixed = (struct sgp_mixed){.round = attachment->round,
            .weight = attachment->weight,
            .skipped = true,
            .stop = true};
        return 0;
    }
    if (step != NULL && attachment->turn != 0) {
        struct sgp_attach_frame frame = {.type = SGP_ATTACH_DONE};
        frame.turn = attachment->turn;
        frame.rows = step->rows;
        frame.loss = step->loss;
        frame.epoch = step->epoch;
        frame.learning_rate = step->learning_rate;
        frame.flags = (step->assigned ? SGP_ATTACH_ASSIGNED : 0u) |
                      (step->overflowed ? SGP_ATTACH_OVERFLOWED : 0u);
        int status = send_frame(attachment->socket, &frame, -1, error);
        if (status < 0)
            return status;
        attachment->turn = 0;
    }
    if (attachment->turn != 0)
        return sgp_fail(
            error, SGP_E_STATE, "attach: the program has a turn; nothing is waited for");
    return await_turn(attachment, error, ret_mixed);
}

int sgp_attachment_report(struct sgp_attachment *attachment, double test_loss, double test_accuracy,
    double epoch, struct sgp_error *error)
{
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_REPORT};
    frame.test_loss = test_loss;
    frame.test_accuracy = test_accuracy;
    frame.epoch = epoch;
    return send_frame(attachment->socket, &frame, -1, error);
}

int sgp_attachment_claim(
    struct sgp_attachment *attachment, const struct sgp_claim *claim, struct sgp_error *error)
{
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_PRIVACY, .turn = ++attachment->claims};
    char text[SGP_CLAIM_TEXT_BYTES];
    struct sgp_claim read;
    if (attachment->turn == 0 && !attachment->over)
        return sgp_fail(
            error, SGP_E_STATE, "attach: the program has no turn, in which it could claim");
    sgp_claim_write(claim, text);
    int status = sgp_claim_read(text, error, &read);
    if (status < 0)
        return status;
    snprintf(frame.text, sizeof frame.text, "%s", text);
    status = send_frame(attachment->socket, &frame, -1, error);
    attachment->awaited = attachment->claims;
    if (status == 0)
        status = next_answering(attachment, error, &frame);
    attachment->awaited = 0;
    if (status < 0)
        return status;
    if (frame.type != SGP_ATTACH_CLAIMED)
        return fail_frame(error, SGP_E_PROTOCOL);
    return frame.code == 0 ? 0 : sgp_fail(error, frame.code, "attach: %s", frame.text);
}

int sgp_attachment_enough(
    struct sgp_attachment *attachment, const char *why, struct sgp_error *error)
{
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_ENOUGH};
    snprintf(frame.text, sizeof frame.text, "%s", why);
    return send_frame(attachment->socket, &frame, -1, error);
}

int sgp_attachment_finish(
    struct sgp_attachment *attachment, struct sgp_error *error, struct sgp_finished *ret_finished)
{
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_FINISH};
    int status = attachment->finishing ? 0 : send_frame(attachment->socket, &frame, -1, error);
    if (status < 0)
        return status;
    attachment->finishing = true;
    attachment->turn = 0;
    do { /* a turn or a stop may have been in transit */
        status = next_answering(attachment, error, &frame);
        if (status < 0)
            return status;
    } while (frame.type == SGP_ATTACH_TURN || frame.type == SGP_ATTACH_STOP);
    if (frame.type != SGP_ATTACH_FINISHED)
        return fail_frame(error, SGP_E_PROTOCOL);
    attachment->over = true;
    attachment->round = frame.round;
    *ret_finished = (struct sgp_finished){.round = frame.round,
        .disagrees = frame.flags & SGP_ATTACH_DISAGREES,
        .distance = frame.distance};
    return 0;
}

void sgp_attachment_detach(struct sgp_attachment *attachment)
{
    if (attachment == NULL)
        return;
    if (attachment->socket >= 0) {
        struct sgp_attach_frame frame = {.type = SGP_ATTACH_DETACH};
        /* a failure is ignored: a daemon that is gone knows */
        (void)sgp_attach_send(attachment->socket, &frame, -1);
        (void)close(attachment->socket);
    }
    sgp_memory_destroy(&attachment->memory);
    free(attachment);
}
