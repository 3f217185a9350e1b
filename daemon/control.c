/* SPDX-License-Identifier: Apache-2.0 */
/* The socket of the control server and its place in the loop; see control.h and http.h.
 *
 * Thread: the loop thread. Fails at open with one line; afterwards a client at worst loses its own
 * connection. */
#include "endpoints.h"
#include "socket_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define TICK_MS 1000u       /* while any connection is open: libmicrohttpd's time-outs */
#define REFUSED_MS 1000u    /* a refused client has this long to read its answer */
#define ACCEPTS_PER_WAKE 64 /* so that a flood of clients does not own the loop */

static void pump(struct control *control);

/* Clients. */

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
    enum MHD_ConnectionNotificationCode code)
{
    struct control *control = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct client *client = calloc(1, sizeof *client);
        if (!client)
            return; /* its requests are refused for want of a context */
        client->descriptor =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        client->since = uv_now(control->loop);
        client->next = control->clients;
        control->clients = client;
        control->client_count++;
        *socket_context = client;
        return;
    }
    struct client **link = &control->clients;
    while (*link && *link != *socket_context)
        link = &(*link)->next;
    if (!*link)
        return;
    struct client *client = *link;
    *link = client->next;
    control->client_count--;
    free(client);
}

/* A full house: whoever has been silent longest, and long enough, makes room. */
static void evict(struct control *control)
{
    struct client *oldest = NULL;
    for (struct client *client = control->clients; client; client = client->next)
        if (!client->busy && (!oldest || client->since < oldest->since))
            oldest = client;
    if (!oldest || uv_now(control->loop) - oldest->since < CONTROL_EVICT_MS)
        return;
    (void)shutdown(oldest->descriptor, SHUT_RDWR);
    pump(control);
}

/* Say 503 and close a second later: closed at once, most clients would see a broken pipe instead. */
static void refuse(struct control *control, int descriptor)
{
    static const char body[] = "{\"error\":{\"status\":503,\"code\":\"busy\",\"message\":\"too "
                               "many clients; try again\"}}\n";
    char text[sizeof body + 200];
    int length = snprintf(text, sizeof text,
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
        "Content-Length: %zu\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%s",
        sizeof body - 1, body);
    bool sent = send(descriptor, text, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT) == length;
    if (!sent || control->refused_count == CONTROL_REFUSED_MAX) {
        (void)close(descriptor);
        return;
    }
    control->refused[control->refused_count++] =
        (struct refused){descriptor, uv_now(control->loop)};
}

static void admit(struct control *control, int descriptor)
{
    if (control->client_count >= CONTROL_CONNECTIONS_MAX)
        evict(control);
    if (control->closing) {
        (void)close(descriptor);
        return;
    }
    if (control->client_count >= CONTROL_CONNECTIONS_MAX) {
        refuse(control, descriptor);
        return;
    }
    const struct sockaddr_un address = {.sun_family = AF_UNIX};
    /* On failure libmicrohttpd has closed the descriptor. */
    (void)MHD_add_connection(
        control->server, descriptor, (const struct sockaddr *)&address, sizeof address);
}

static void on_acceptable(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    struct control *control = handle->data;
    for (int i = 0; i < ACCEPTS_PER_WAKE; i++) {
        int descriptor = accept4(control->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (descriptor >= 0) {
            admit(control, descriptor);
            if (control->closing)
                return;
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            /* The client stays in the queue and would wake the loop again at once. */
            control->accepting_paused = true;
            (void)uv_poll_stop(&control->accepting);
        }
        break;
    }
    pump(control);
}

/* The loop. */

static void on_pollable(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    pump(handle->data);
}

static void sweep(struct control *control)
{
    uint64_t now = uv_now(control->loop);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < control->refused_count; i++) {
        if (now - control->refused[i].since >= REFUSED_MS)
            (void)close(control->refused[i].descriptor);
        else
            control->refused[kept++] = control->refused[i];
    }
    control->refused_count = kept;
    for (struct client *client = control->clients; client; client = client->next) {
        uint64_t most = 1000u * (client->busy ? CONTROL_ANSWER_SECONDS : CONTROL_REQUEST_SECONDS);
        if (!client->waiting && now - client->since > most)
            (void)shutdown(client->descriptor, SHUT_RDWR);
    }
}

static void on_tick(uv_timer_t *handle)
{
    struct control *control = handle->data;
    sweep(control);
    if (control->accepting_paused) {
        control->accepting_paused = false;
        (void)uv_poll_start(&control->accepting, UV_READABLE, on_acceptable);
    }
    pump(control);
}

static void shut_down(struct control *control);

static void run_server(struct control *control)
{
    control->pumping = true;
    /* Twice: libmicrohttpd 0.9.75 closes in one run what it frees, and lets in, only in the next. */
    (void)MHD_run(control->server);
    (void)MHD_run(control->server);
    control->pumping = false;
}

static void pump(struct control *control)
{
    if (control->pumping)
        return;
    run_server(control);
    if (control->closing) {
        shut_down(control);
        return;
    }
    if (control->client_count == 0 && control->refused_count == 0 && !control->accepting_paused) {
        (void)uv_timer_stop(&control->timer);
        return;
    }
    unsigned long long delay = TICK_MS;
    unsigned long long wanted;
    if (MHD_get_timeout(control->server, &wanted) == MHD_YES && wanted < delay)
        delay = wanted;
    /* Only ever sooner: clients that come more often than the tick must not put it off for ever. */
    if (!uv_is_active((uv_handle_t *)&control->timer) ||
        delay < uv_timer_get_due_in(&control->timer))
        (void)uv_timer_start(&control->timer, on_tick, delay, 0);
}

/* Life. */

static int start_server(struct control *control, struct sgp_error *error)
{
    control->server =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0,
            NULL, NULL, http_handle, control, MHD_OPTION_CONNECTION_LIMIT,
            (unsigned)CONTROL_CONNECTIONS_MAX + 1, MHD_OPTION_CONNECTION_TIMEOUT,
            (unsigned)CONTROL_SILENCE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
            (size_t)CONTROL_HEADER_BYTES_MAX, MHD_OPTION_NOTIFY_COMPLETED, http_completed, NULL,
            MHD_OPTION_NOTIFY_CONNECTION, on_connection, control, MHD_OPTION_END);
    if (!control->server)
        return sgp_fail(error, -ENOMEM, "%s: the HTTP server cannot start", control->path);
    return 0;
}

static void join_loop(struct control *control)
{
    int epoll = MHD_get_daemon_info(control->server, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    int code = uv_timer_init(control->loop, &control->timer);
    code |= uv_poll_init(control->loop, &control->accepting, control->listener);
    code |= uv_poll_init(control->loop, &control->polling, epoll);
    sgp_assert(code == 0); /* fresh descriptors of a pollable kind */
    control->handles = 3;
    control->timer.data = control->accepting.data = control->polling.data = control;
    (void)uv_poll_start(&control->accepting, UV_READABLE, on_acceptable);
    (void)uv_poll_start(&control->polling, UV_READABLE, on_pollable);
}

int control_open(uv_loop_t *loop, const char *path, const struct view_actions *actions,
    const struct control_model *model, struct sgp_error *error, struct control **ret_control)
{
    struct control *control = calloc(1, sizeof *control);
    char *copy = strdup(path);
    if (!control || !copy) {
        free(control);
        free(copy);
        return sgp_fail(error, -ENOMEM, "%s: out of memory", path);
    }
    *control = (struct control){.loop = loop,
        .path = copy,
        .actions = *actions,
        .model = *model,
        .endpoints = endpoints,
        .endpoint_count = endpoint_count,
        .pump = pump,
        .listener = -1};
    int code = socket_file_listen(path, SOCK_STREAM, "[control] socket", error);
    if (code >= 0) {
        control->listener = code;
        code = start_server(control, error);
        if (code < 0) {
            (void)unlink(path);
            (void)close(control->listener);
        }
    }
    if (code < 0) {
        free(control->path);
        free(control);
        return code;
    }
    join_loop(control);
    *ret_control = control;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct control *control = handle->data;
    if (--control->handles > 0)
        return;
    void (*closed)(void *) = control->closed;
    void *argument = control->closed_argument;
    free(control->path);
    free(control);
    if (closed)
        closed(argument);
}

/* Answer everybody who waits for a job; the jobs go on alone and free themselves. */
static void orphan_jobs(struct control *control)
{
    for (struct http_job *job = control->jobs; job; job = job->next) {
        struct request *request = job->request;
        job->control = NULL;
        job->request = NULL;
        if (!request)
            continue;
        request->job = NULL;
        http_fail_code(request, -ECANCELED);
        MHD_resume_connection(request->connection);
    }
    control->jobs = NULL;
}

static void shut_down(struct control *control)
{
    orphan_jobs(control);
    run_server(control); /* sends what has been answered */
    uv_close((uv_handle_t *)&control->accepting, on_closed);
    uv_close((uv_handle_t *)&control->polling, on_closed);
    uv_close((uv_handle_t *)&control->timer, on_closed);
    (void)close(control->listener);
    MHD_stop_daemon(control->server);
    for (uint32_t i = 0; i < control->refused_count; i++)
        (void)close(control->refused[i].descriptor);
}

void control_close(struct control *control, void (*closed)(void *argument), void *argument)
{
    sgp_assert(!control->closing);
    control->closing = true;
    control->closed = closed;
    control->closed_argument = argument;
    (void)unlink(control->path);
    /* An order (stop) may close the server whose handler it came from: then the pump does the rest. */
    if (!control->pumping)
        shut_down(control);
}
