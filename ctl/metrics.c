/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl metrics`: prints the daemon's metrics, or serves them over HTTP to Prometheus.
 *
 * The server is this one thread. A client that reaches the address can only read, and costs little.
 * The number of clients is bounded, per address and in all. The duration of each connection and the
 * size of each request are bounded, too. The daemon is asked at most once a second, however many
 * clients ask.
 *
 * Fails: if the address is not available, the command ends with 1. If the daemon does not answer,
 * the client gets a 503, and the daemon is asked again next time. */
#include "ctl.h"

#include <microhttpd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLIENTS_MAX 32u            /* at one time: others wait in the kernel's queue */
#define CLIENTS_PER_ADDRESS_MAX 8u /* more are closed */
#define SILENCE_SECONDS 5u         /* without a byte in either direction; then closed */
#define REQUEST_BYTES_MAX 8192u    /* line and headers; 414 or 431 beyond */
#define FRESH_SECONDS 1.0          /* an answer is reused for this time */
#define ASK_SECONDS 5.0            /* then the daemon counts as silent */
#define TICK_MS 1000
#define PATH "/metrics"
#define TEXT "text/plain; version=0.0.4; charset=utf-8" /* Prometheus' text format */

static const struct ctl_request scrape = {
    .method = "GET", .path = PATH, .seconds = ASK_SECONDS, .quiet = true};

struct server {
    struct ctl *ctl;
    struct MHD_Daemon *http;
    struct ctl_clients clients;
    struct ctl_reply latest; /* the daemon's answer, or no text */
    double asked;            /* time of the answer */
};

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
    (void)number;
    ended = 1;
}

/* ---- clients ---- */

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
    enum MHD_ConnectionNotificationCode code)
{
    struct server *server = context;
    struct ctl_client *client = *socket_context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        int descriptor =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        *socket_context = ctl_clients_add(&server->clients, descriptor);
    } else if (client) {
        ctl_clients_remove(client);
    }
}

/* ---- answers ---- */

static void ask(struct server *server)
{
    if (server->asked > 0 && ctl_now() - server->asked < FRESH_SECONDS)
        return;
    free(server->latest.text);
    server->latest = (struct ctl_reply){0};
    (void)ctl_ask(server->ctl, &scrape, &server->latest);
    server->asked = ctl_now();
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *text)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO; /* out of memory: the connection ends */
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, TEXT);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

/* Answered as soon as the head has arrived: no body is read. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
    const char *method, const char *version, const char *data, size_t *data_bytes,
    void **request_context)
{
    (void)version;
    (void)data;
    (void)data_bytes;
    (void)request_context;
    struct server *server = context;
    if (strcmp(url, PATH) != 0)
        return answer(connection, MHD_HTTP_NOT_FOUND, "there is " PATH " and nothing else\n");
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return answer(
            connection, MHD_HTTP_METHOD_NOT_ALLOWED, PATH " can be read and nothing else\n");
    ask(server);
    if (!server->latest.text)
        return answer(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "the daemon does not answer\n");
    return answer(connection, MHD_HTTP_OK, server->latest.text);
}

/* ---- the server ---- */

static void run(struct server *server)
{
    const struct sigaction action = {.sa_handler = on_signal};
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    while (!ended) {
        (void)MHD_run_wait(server->http, TICK_MS);
        /* If clients came while one was closed, 0.9.75 admits them only in the next run. */
        (void)MHD_run(server->http);
        ctl_clients_sweep(&server->clients);
    }
    MHD_stop_daemon(server->http);
    free(server->latest.text);
}

static enum ctl_exit serve(struct ctl *ctl, const char *address)
{
    static struct server server;
    int listener;
    enum ctl_exit status = ctl_socket(ctl);
    if (status == CTL_DONE)
        status = ctl_listen(ctl, address, &listener);
    if (status != CTL_DONE)
        return status;
    server.ctl = ctl;
    ctl_clients_init(&server.clients);
    server.http = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, &server,
        MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT, CLIENTS_MAX,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, CLIENTS_PER_ADDRESS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
        SILENCE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES_MAX,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, &server, MHD_OPTION_END);
    if (!server.http)
        return ctl_fail(ctl, CTL_FAILED, "the HTTP server cannot start: out of memory");
    (void)fprintf(
        stderr, "sgpctl: http://%s" PATH " serves the figures of %s\n", address, ctl->socket);
    run(&server);
    return CTL_DONE;
}

/* ---- the command ---- */

/* Prometheus' text as an object: {"sgpd_link_up{peer=\"n1\",direction=\"out\"}": 1, ...}. */
static json_t *metrics_json(char *text)
{
    json_t *root = json_object();
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *value = strrchr(line, ' ');
        double number;
        if (line[0] == '#' || !value || !ctl_text_real(value + 1, &number))
            continue;
        *value = '\0';
        (void)json_object_set_new(root, line, json_real(number));
    }
    return root;
}

static enum ctl_exit print(struct ctl *ctl)
{
    const struct ctl_request request = {.method = "GET", .path = PATH};
    struct ctl_reply reply;
    enum ctl_exit code = ctl_ask(ctl, &request, &reply);
    if (code != CTL_DONE)
        return code;
    if (ctl->json && reply.text)
        code = ctl_print_json(metrics_json(reply.text));
    else if (reply.text)
        (void)fputs(reply.text, stdout);
    free(reply.text);
    return code;
}

static enum ctl_exit metrics(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given listen_at = {0};
    enum ctl_exit code = ctl_options_take(ctl, &argc, argv, &listen_at, 1, 0, 0);
    if (code != CTL_DONE)
        return code;
    return listen_at.given ? serve(ctl, listen_at.value) : print(ctl);
}

static const struct ctl_option options[] = {
    {"--listen", .value = "HOST:PORT",
        .summary = "serve them at http://HOST:PORT/metrics, until interrupted"},
    {0}};

const struct ctl_command ctl_metrics_command = {.words = "metrics",
    .operands = "",
    .options = options,
    .summary = "print the daemon's figures in Prometheus' text format, or serve them",
    .help =
        "With --listen, what Prometheus asks is answered as long as the daemon answers, and with\n"
        "503 while it does not. Whoever reaches the address may read; nobody can change anything.\n"
        "The daemon is asked once a second at most. At most 32 callers at a time, 8 of an\n"
        "address, have 10 s each. The unit sgpd-metrics@NAME runs this.\n",
    .run = metrics};
