/* SPDX-License-Identifier: Apache-2.0 */
/* The socket of the control server and its place in the loop; see control.h and http.h.
 *
 * Thread: the loop thread. Fails at open with one line; afterwards a client at worst loses its own
 * connection. */
#include "endpoints.h"
#include "util/socket_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define TICK_MS 1000u       /* while any connection is open: libmicrohttpd's time-outs */
#define WAKE_NS 10000u      /* the cost of a wakeup of the loop, beside what is measured */
#define REFUSED_MS 1000u    /* a refused client has this long to read its answer */
#define QUEUE 256           /* clients not accepted yet; a shorter queue shortens the wait */
#define ACCEPTS_PER_WAKE 16 /* so that a flood of clients does not occupy the loop */

/* Only the loop thread calls libmicrohttpd. A version that is not told so begins a new connection
 * later, in MHD_run, and not in MHD_add_connection as admit() expects. */
#if MHD_VERSION >= 0x00097707
#define ONE_THREAD MHD_USE_NO_THREAD_SAFETY
#else
#define ONE_THREAD 0
#endif

static void pump(struct control *control);

/* Clients. */

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
    enum MHD_ConnectionNotificationCode code)
{
    (void)connection;
    struct control *control = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct client *client = control->entering;
        control->entering = NULL;
        LIST_INSERT_HEAD(&control->clients, client, next);
        control->client_count++;
        *socket_context = client;
        return;
    }
    struct client *client = *socket_context;
    if (!client)
        return;
    LIST_REMOVE(client, next);
    control->client_count--;
    free(client);
}

/* Places. */

static bool is_any(const struct client *client, const struct client *newcomer)
{
    (void)client;
    (void)newcomer;
    return true;
}

static bool is_other(const struct client *client, const struct client *newcomer)
{
    (void)newcomer;
    return !http_is_privileged(client);
}

static bool is_of_user(const struct client *client, const struct client *newcomer)
{
    return client->uid == newcomer->uid;
}

/* How many places the clients of a kind have. */
static uint32_t count(const struct control *control, const struct client *newcomer,
    bool (*is_of_kind)(const struct client *client, const struct client *newcomer))
{
    uint32_t taken = 0;
    const struct client *client;
    LIST_FOREACH (client, &control->clients, next)
        taken += !client->leaving && is_of_kind(client, newcomer);
    return taken;
}

/* Close the client of a kind that was silent longest. Returns false if none is silent. */
static bool evict(struct control *control, const struct client *newcomer,
    bool (*is_of_kind)(const struct client *client, const struct client *newcomer))
{
    struct client *oldest = NULL;
    struct client *client;
    LIST_FOREACH (client, &control->clients, next)
        if (!client->busy && !client->leaving && is_of_kind(client, newcomer) &&
            (!oldest || client->since <= oldest->since)) /* the latest comes first in the list */
            oldest = client;
    if (!oldest)
        return false;
    oldest->leaving = true;
    (void)shutdown(oldest->descriptor, SHUT_RDWR);
    return true;
}

/* Find a place for a new client; another client may have to be closed for it. */
static bool has_place(struct control *control, const struct client *newcomer)
{
    bool privileged = http_is_privileged(newcomer);
    if (!privileged && count(control, newcomer, is_of_user) >= CONTROL_USER_MAX)
        return evict(control, newcomer, is_of_user);
    if (!privileged && count(control, newcomer, is_other) >= CONTROL_OTHERS_MAX)
        return evict(control, newcomer, is_other);
    if (count(control, newcomer, is_any) >= CONTROL_CONNECTIONS_MAX)
        return evict(control, newcomer, is_other) || evict(control, newcomer, is_any);
    return true;
}

/* Say 503 and close a second later. If the socket were closed at once, most clients would see a
 * broken pipe instead. */
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

/* Whether the client has dropped its connection. Such a client costs little more than this call. */
static bool has_gone(int descriptor)
{
    char byte;
    return recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void admit(struct control *control, int descriptor)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    struct client *client = has_gone(descriptor) ? NULL : calloc(1, sizeof *client);
    if (!client || getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) < 0) {
        free(client);
        (void)close(descriptor);
        return;
    }
    *client =
        (struct client){.descriptor = descriptor, .uid = peer.uid, .since = uv_now(control->loop)};
    if (!has_place(control, client)) {
        free(client);
        refuse(control, descriptor);
        return;
    }
    control->entering = client;
    const struct sockaddr_un address = {.sun_family = AF_UNIX};
    /* On failure libmicrohttpd has closed the descriptor. */
    (void)MHD_add_connection(
        control->server, descriptor, (const struct sockaddr *)&address, sizeof address);
    free(control->entering);
    control->entering = NULL;
}

static void accept_some(struct control *control)
{
    for (int i = 0; i < ACCEPTS_PER_WAKE && !control->accepting_paused; i++) {
        int descriptor = accept4(control->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (descriptor >= 0) {
            admit(control, descriptor);
            continue;
        }
        if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS)
            return;
        /* The client stays in the queue and would wake the loop again at once. */
        control->accepting_paused = true;
        (void)uv_poll_stop(&control->accepting);
    }
}

/* The loop. */

static void on_pollable(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    pump(handle->data);
}

static void listen_to(struct control *control)
{
    if (!control->accepting_paused)
        (void)uv_poll_start(&control->accepting, UV_READABLE, on_pollable);
    (void)uv_poll_start(&control->polling, UV_READABLE, on_pollable);
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
    struct client *client;
    LIST_FOREACH (client, &control->clients, next) {
        uint64_t most =
            1000u * (client->busy       ? CONTROL_ANSWER_SECONDS + (client->answer_bytes >> 20)
                        : client->spoke ? CONTROL_REQUEST_SECONDS
                                        : CONTROL_HEAD_SECONDS);
        if (!client->waiting && now - client->since > most)
            (void)shutdown(client->descriptor, SHUT_RDWR);
    }
}

static void on_tick(uv_timer_t *handle)
{
    struct control *control = handle->data;
    sweep(control);
    control->accepting_paused = false;
    pump(control);
}

static void shut_down(struct control *control);

static void run_server(struct control *control)
{
    control->pumping = true;
    if (!control->closing)
        accept_some(control);
    /* Run twice: what libmicrohttpd 0.9.75 closes in one run, it frees only in the next, as it
     * admits new connections only then. */
    (void)MHD_run(control->server);
    (void)MHD_run(control->server);
    control->pumping = false;
}

/* Accept and serve, unless serving has used up its processor time. Then nothing is read before the
 * allowance has recovered. */
static uint64_t serve(struct control *control)
{
    uint64_t wait = allowance_wait(&control->allowance, uv_hrtime());
    if (wait == 0) {
        uint64_t before = allowance_spent_by_thread();
        run_server(control);
        uint64_t spent = allowance_spent_by_thread() - before;
        allowance_charge(&control->allowance, uv_hrtime(), spent + WAKE_NS);
        wait = allowance_wait(&control->allowance, uv_hrtime());
    }
    return wait;
}

static void rest_or_listen(struct control *control, bool rest)
{
    if (rest) {
        (void)uv_poll_stop(&control->accepting);
        (void)uv_poll_stop(&control->polling);
    } else if (control->resting) {
        listen_to(control);
    }
    control->resting = rest;
}

static unsigned long long least(unsigned long long a, unsigned long long b)
{
    return a < b ? a : b;
}

static void pump(struct control *control)
{
    if (control->pumping)
        return;
    uint64_t rest = serve(control);
    if (control->closing) {
        shut_down(control);
        return;
    }
    rest_or_listen(control, rest > 0);
    uint64_t wait = offloads_turn(&control->offloads);
    if (control->client_count == 0 && control->refused_count == 0 && !control->accepting_paused &&
        rest == 0 && wait == UINT64_MAX) {
        (void)uv_timer_stop(&control->timer);
        return;
    }
    unsigned long long delay = TICK_MS;
    unsigned long long wanted;
    if (rest == 0 && MHD_get_timeout(control->server, &wanted) == MHD_YES)
        delay = least(delay, wanted);
    if (rest > 0)
        delay = least(delay, rest / 1000000u + 1);
    if (wait != UINT64_MAX)
        delay = least(delay, wait / 1000000u + 1);
    /* The timer is only moved forward: clients that come more often than the tick must not postpone
     * it without end. */
    if (!uv_is_active((uv_handle_t *)&control->timer) ||
        delay < uv_timer_get_due_in(&control->timer))
        (void)uv_timer_start(&control->timer, on_tick, delay, 0);
}

/* Life. */

static int start_server(struct control *control, struct sgp_error *error)
{
    control->server = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | ONE_THREAD, 0, NULL,
        NULL, http_handle, control, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONTROL_CONNECTIONS_MAX + ACCEPTS_PER_WAKE + 1, MHD_OPTION_CONNECTION_TIMEOUT,
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
    listen_to(control);
    offloads_open(&control->offloads, control->loop);
    allowance_init(&control->allowance, uv_hrtime(), CONTROL_PART, CONTROL_MOST_NS);
}

static int give_up(int listener, const char *path, int code)
{
    (void)unlink(path);
    (void)close(listener);
    return code;
}

int control_open_on(int listener, uv_loop_t *loop, const char *path,
    const struct view_actions *actions, const struct view_model *model, struct sgp_error *error,
    struct control **ret_control)
{
    struct control *control = calloc(1, sizeof *control);
    char *copy = strdup(path);
    if (!control || !copy) {
        free(control);
        free(copy);
        return give_up(listener, path, sgp_fail(error, -ENOMEM, "[control] socket: out of memory"));
    }
    *control = (struct control){.loop = loop,
        .path = copy,
        .actions = *actions,
        .model = *model,
        .endpoints = endpoints,
        .endpoint_count = endpoint_count,
        .pump = pump,
        .listener = listener};
    (void)listen(listener, QUEUE); /* already listening: this shortens the queue */
    int code = start_server(control, error);
    if (code < 0) {
        free(control->path);
        free(control);
        return give_up(listener, path, code);
    }
    join_loop(control);
    *ret_control = control;
    return 0;
}

int control_open(uv_loop_t *loop, const char *path, const struct view_actions *actions,
    const struct view_model *model, struct sgp_error *error, struct control **ret_control)
{
    const int listener = socket_file_listen(path, SOCK_STREAM, "[control] socket", error);
    return listener < 0 ? listener
                        : control_open_on(listener, loop, path, actions, model, error, ret_control);
}

int control_keep(struct control *control)
{
    const int listener = fcntl(control->listener, F_DUPFD_CLOEXEC, 0);
    control->kept = listener >= 0;
    return listener;
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

/* Answer all clients that wait for a job. The jobs continue without a request and free
 * themselves. */
static void orphan_jobs(struct control *control)
{
    struct http_job *job;
    LIST_FOREACH (job, &control->jobs, next) {
        struct request *request = job->request;
        job->control = NULL;
        job->request = NULL;
        if (!request)
            continue;
        request->job = NULL;
        http_fail_code(request, -ECANCELED);
        MHD_resume_connection(request->connection);
    }
    LIST_INIT(&control->jobs);
}

static void shut_down(struct control *control)
{
    orphan_jobs(control);
    offloads_close(&control->offloads);
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
    if (!control->kept)
        (void)unlink(control->path);
    /* An order (stop) may close the server whose handler it came from. Then the pump does
     * the rest. */
    if (!control->pumping)
        shut_down(control);
}
