/* SPDX-License-Identifier: Apache-2.0 */
/* Where programs attach; see attach_socket.h. */
#include "attach_socket.h"

#include "util/socket_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

struct stranger {
    struct attach_socket *attach_socket;
    TAILQ_ENTRY(stranger) next;
    uv_poll_t poll;
    int socket;
};

struct attach_socket {
    uv_loop_t *loop;
    char *path;
    int listener;
    uv_poll_t accepting;
    uint32_t handles;
    bool closing;
    struct attach_socket_events events;
    void *context;
    TAILQ_HEAD(, stranger) strangers; /* oldest first */
    uint32_t count;
};

/* ---- strangers ---- */

static void free_if_closed(struct attach_socket *attach_socket)
{
    if (!attach_socket->closing || attach_socket->handles > 0)
        return;
    free(attach_socket->path);
    free(attach_socket);
}

static void on_stranger_closed(uv_handle_t *handle)
{
    struct stranger *stranger = handle->data;
    struct attach_socket *attach_socket = stranger->attach_socket;
    free(stranger);
    attach_socket->handles--;
    free_if_closed(attach_socket);
}

/* Forget the stranger. The socket is the caller's. */
static int let_go(struct stranger *stranger)
{
    int socket = stranger->socket;
    TAILQ_REMOVE(&stranger->attach_socket->strangers, stranger, next);
    stranger->attach_socket->count--;
    (void)uv_poll_stop(&stranger->poll);
    uv_close((uv_handle_t *)&stranger->poll, on_stranger_closed);
    return socket;
}

void attach_socket_refuse(struct attachment *attachment, int code, const char *why)
{
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_REFUSED, .code = code};
    (void)snprintf(frame.text, sizeof frame.text, "%.375s", why);
    (void)sgp_attach_send(attachment->socket, &frame, -1);
    (void)close(attachment->socket);
    shared_close(&attachment->shared);
}

static int read_hello(struct attachment *attachment, struct sgp_error *error)
{
    int descriptor = -1;
    int code = sgp_attach_receive(attachment->socket, &attachment->hello, &descriptor);
    if (code == 0 && attachment->hello.type == SGP_ATTACH_IDENTIFY) {
        if (descriptor >= 0)
            (void)close(descriptor);
        return 0;
    }
    if (code == 0 && (attachment->hello.type != SGP_ATTACH_HELLO || descriptor < 0))
        code = sgp_fail(
            error, SGP_E_PROTOCOL, "a program says HELLO first, with the descriptor of its memory");
    else if (code < 0)
        (void)sgp_fail(
            error, code, "no frame of version %u: %s", SGP_ATTACH_VERSION, sgp_strerror(code));
    if (code == 0)
        code = shared_open(descriptor, error, &attachment->shared);
    if (code == 0 && attachment->hello.parameters != attachment->shared.layout->value_count) {
        uint64_t there = attachment->shared.layout->value_count;
        shared_close(&attachment->shared);
        code = sgp_fail(error, SGP_E_PROTOCOL,
            "HELLO says %" PRIu64 " parameters, and the program's memory has %" PRIu64
            "; the same number is right",
            attachment->hello.parameters, there);
    }
    if (descriptor >= 0)
        (void)close(descriptor);
    return code;
}

/* Tell a program that has no model yet which node this is. */
static void answer(struct attach_socket *attach_socket, int socket)
{
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_IDENTITY};
    attach_socket->events.identify(attach_socket->context, &frame);
    (void)sgp_attach_send(socket, &frame, -1);
    (void)close(socket);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct stranger *stranger = poll->data;
    struct attach_socket *attach_socket = stranger->attach_socket;
    struct sgp_error error = {0};
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    struct attachment attachment = {.socket = stranger->socket};
    int code = read_hello(&attachment, &error);
    if (code == -EAGAIN || code == -EINTR)
        return;
    (void)let_go(stranger);
    if (getsockopt(attachment.socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
        attachment.pid = peer.pid;
    if (code < 0)
        attach_socket_refuse(&attachment, code, error.text);
    else if (attachment.hello.type == SGP_ATTACH_IDENTIFY)
        answer(attach_socket, attachment.socket);
    else
        attach_socket->events.entered(attach_socket->context, &attachment);
}

static void on_acceptable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct attach_socket *attach_socket = poll->data;
    int socket = accept4(attach_socket->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0)
        return;
    struct stranger *stranger = calloc(1, sizeof *stranger);
    if (stranger == NULL || uv_poll_init(attach_socket->loop, &stranger->poll, socket) < 0) {
        free(stranger);
        (void)close(socket);
        return;
    }
    stranger->attach_socket = attach_socket;
    stranger->socket = socket;
    stranger->poll.data = stranger;
    TAILQ_INSERT_TAIL(&attach_socket->strangers, stranger, next);
    attach_socket->handles++;
    if (++attach_socket->count > ATTACH_STRANGERS_MAX) /* the oldest had time for one frame */
        (void)close(let_go(TAILQ_FIRST(&attach_socket->strangers)));
    (void)uv_poll_start(&stranger->poll, UV_READABLE, on_readable);
}

/* ---- life ---- */

static void on_closed(uv_handle_t *handle)
{
    struct attach_socket *attach_socket = handle->data;
    attach_socket->handles--;
    free_if_closed(attach_socket);
}

int attach_socket_open(uv_loop_t *loop, const char *path, const struct attach_socket_events *events,
    void *context, struct sgp_error *error, struct attach_socket **ret_attach_socket)
{
    struct attach_socket *attach_socket = calloc(1, sizeof *attach_socket);
    char *copy = strdup(path);
    int listener = attach_socket != NULL && copy != NULL
                       ? socket_file_listen(path, SOCK_SEQPACKET, "[control] attach", error)
                       : sgp_fail(error, -ENOMEM, "%s: out of memory", path);
    if (listener < 0) {
        free(attach_socket);
        free(copy);
        return listener;
    }
    *attach_socket = (struct attach_socket){.loop = loop,
        .path = copy,
        .listener = listener,
        .events = *events,
        .context = context,
        .handles = 1};
    TAILQ_INIT(&attach_socket->strangers);
    int code = uv_poll_init(loop, &attach_socket->accepting, listener);
    sgp_assert(code == 0); /* a fresh descriptor of a pollable kind */
    attach_socket->accepting.data = attach_socket;
    (void)uv_poll_start(&attach_socket->accepting, UV_READABLE, on_acceptable);
    *ret_attach_socket = attach_socket;
    return 0;
}

void attach_socket_close(struct attach_socket *attach_socket)
{
    if (attach_socket == NULL)
        return;
    attach_socket->closing = true;
    while (!TAILQ_EMPTY(&attach_socket->strangers))
        (void)close(let_go(TAILQ_FIRST(&attach_socket->strangers)));
    (void)uv_poll_stop(&attach_socket->accepting);
    (void)close(attach_socket->listener);
    (void)unlink(attach_socket->path);
    uv_close((uv_handle_t *)&attach_socket->accepting, on_closed);
}
