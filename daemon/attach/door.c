/* SPDX-License-Identifier: Apache-2.0 */
/* Where programs attach; see door.h. */
#include "door.h"

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
    struct door *door;
    TAILQ_ENTRY(stranger) next;
    uv_poll_t poll;
    int socket;
};

struct door {
    uv_loop_t *loop;
    char *path;
    int listener;
    uv_poll_t accepting;
    uint32_t handles;
    bool closing;
    struct door_events events;
    void *context;
    TAILQ_HEAD(, stranger) strangers; /* oldest first */
    uint32_t count;
};

/* ---- strangers ---- */

static void free_if_closed(struct door *door)
{
    if (!door->closing || door->handles > 0)
        return;
    free(door->path);
    free(door);
}

static void on_stranger_closed(uv_handle_t *handle)
{
    struct stranger *stranger = handle->data;
    struct door *door = stranger->door;
    free(stranger);
    door->handles--;
    free_if_closed(door);
}

/* Forget the stranger. The socket is the caller's. */
static int let_go(struct stranger *stranger)
{
    int socket = stranger->socket;
    TAILQ_REMOVE(&stranger->door->strangers, stranger, next);
    stranger->door->count--;
    (void)uv_poll_stop(&stranger->poll);
    uv_close((uv_handle_t *)&stranger->poll, on_stranger_closed);
    return socket;
}

void door_refuse(struct guest *guest, int code, const char *why)
{
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_REFUSED, .code = code};
    (void)snprintf(frame.text, sizeof frame.text, "%.375s", why);
    (void)sgp_attach_send(guest->socket, &frame, -1);
    (void)close(guest->socket);
    shared_close(&guest->shared);
}

static int read_hello(struct guest *guest, struct sgp_error *error)
{
    int descriptor = -1;
    int code = sgp_attach_receive(guest->socket, &guest->hello, &descriptor);
    if (code == 0 && guest->hello.type == SGP_ATTACH_IDENTIFY) {
        if (descriptor >= 0)
            (void)close(descriptor);
        return 0;
    }
    if (code == 0 && (guest->hello.type != SGP_ATTACH_HELLO || descriptor < 0))
        code = sgp_fail(
            error, SGP_E_PROTOCOL, "a program says HELLO first, with the descriptor of its memory");
    else if (code < 0)
        (void)sgp_fail(
            error, code, "no frame of version %u: %s", SGP_ATTACH_VERSION, sgp_strerror(code));
    if (code == 0)
        code = shared_open(descriptor, error, &guest->shared);
    if (code == 0 && guest->hello.parameters != guest->shared.layout->value_count) {
        uint64_t there = guest->shared.layout->value_count;
        shared_close(&guest->shared);
        code = sgp_fail(error, SGP_E_PROTOCOL,
            "HELLO says %" PRIu64 " parameters, and the program's memory has %" PRIu64
            "; the same number is right",
            guest->hello.parameters, there);
    }
    if (descriptor >= 0)
        (void)close(descriptor);
    return code;
}

/* Tell a program that has no model yet which node this is. */
static void answer(struct door *door, int socket)
{
    struct sgp_attach_frame frame = {.type = SGP_ATTACH_IDENTITY};
    door->events.identify(door->context, &frame);
    (void)sgp_attach_send(socket, &frame, -1);
    (void)close(socket);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct stranger *stranger = poll->data;
    struct door *door = stranger->door;
    struct sgp_error error = {0};
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    struct guest guest = {.socket = stranger->socket};
    int code = read_hello(&guest, &error);
    if (code == -EAGAIN || code == -EINTR)
        return;
    (void)let_go(stranger);
    if (getsockopt(guest.socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
        guest.pid = peer.pid;
    if (code < 0)
        door_refuse(&guest, code, error.text);
    else if (guest.hello.type == SGP_ATTACH_IDENTIFY)
        answer(door, guest.socket);
    else
        door->events.entered(door->context, &guest);
}

static void on_acceptable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct door *door = poll->data;
    int socket = accept4(door->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0)
        return;
    struct stranger *stranger = calloc(1, sizeof *stranger);
    if (stranger == NULL || uv_poll_init(door->loop, &stranger->poll, socket) < 0) {
        free(stranger);
        (void)close(socket);
        return;
    }
    stranger->door = door;
    stranger->socket = socket;
    stranger->poll.data = stranger;
    TAILQ_INSERT_TAIL(&door->strangers, stranger, next);
    door->handles++;
    if (++door->count > DOOR_STRANGERS_MAX) /* the oldest had time for one frame */
        (void)close(let_go(TAILQ_FIRST(&door->strangers)));
    (void)uv_poll_start(&stranger->poll, UV_READABLE, on_readable);
}

/* ---- life ---- */

static void on_closed(uv_handle_t *handle)
{
    struct door *door = handle->data;
    door->handles--;
    free_if_closed(door);
}

int door_open(uv_loop_t *loop, const char *path, const struct door_events *events, void *context,
    struct sgp_error *error, struct door **ret_door)
{
    struct door *door = calloc(1, sizeof *door);
    char *copy = strdup(path);
    int listener = door != NULL && copy != NULL
                       ? socket_file_listen(path, SOCK_SEQPACKET, "[control] attach", error)
                       : sgp_fail(error, -ENOMEM, "%s: out of memory", path);
    if (listener < 0) {
        free(door);
        free(copy);
        return listener;
    }
    *door = (struct door){.loop = loop,
        .path = copy,
        .listener = listener,
        .events = *events,
        .context = context,
        .handles = 1};
    TAILQ_INIT(&door->strangers);
    int code = uv_poll_init(loop, &door->accepting, listener);
    sgp_assert(code == 0); /* a fresh descriptor of a pollable kind */
    door->accepting.data = door;
    (void)uv_poll_start(&door->accepting, UV_READABLE, on_acceptable);
    *ret_door = door;
    return 0;
}

void door_close(struct door *door)
{
    if (door == NULL)
        return;
    door->closing = true;
    while (!TAILQ_EMPTY(&door->strangers))
        (void)close(let_go(TAILQ_FIRST(&door->strangers)));
    (void)uv_poll_stop(&door->accepting);
    (void)close(door->listener);
    (void)unlink(door->path);
    uv_close((uv_handle_t *)&door->accepting, on_closed);
}
