/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl dashboard`: serves the page, its files and what it reads (dashboard.h).
 *
 * Callers that have not shown the token cost little. There are few places for them, the oldest
 * makes room for the latest, and they are closed in time. So strangers do not keep the page's
 * reader from a place.
 *
 * Fails: if the address is not available or a file of the page is missing, the command ends with 1.
 * If the daemon does not answer, the page says so, and the daemon is asked again. */
#include "dashboard.h"

#include "sgp/topology.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define STRANGERS_MAX 16u        /* of these, without the token so far */
#define SILENCE_SECONDS 5u       /* without a byte in either direction; then closed */
#define REQUEST_BYTES_MAX 16384u /* line and headers; 414 or 431 beyond */
#define TELL_SECONDS 1.0         /* between two events */
#define TICK_MS 250

struct server {
    struct ctl *ctl;
    struct MHD_Daemon *http;
    struct ctl_clients clients;
    struct dashboard_origin origin;
    struct dashboard_files files;
    struct dashboard_source source;
    struct dashboard_streams streams;
    struct dashboard_log log;
    double told; /* when the latest event was made */
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
        ctl_clients_limit_strangers(&server->clients, STRANGERS_MAX);
    } else if (client) {
        ctl_clients_remove(client);
    }
}

/* ---- answers ---- */

/* The page needs nothing from elsewhere, and nobody else needs anything of it. */
static const char *const protections[][2] = {
    {"Content-Security-Policy",
        "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"},
    {"Cross-Origin-Opener-Policy", "same-origin"}, {"Cross-Origin-Resource-Policy", "same-origin"},
    {"X-Content-Type-Options", "nosniff"}, {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"}, {"Cache-Control", "no-store"},
    {MHD_HTTP_HEADER_CONNECTION, "close"}};

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status,
    struct MHD_Response *response, const char *type)
{
    if (!response)
        return MHD_NO; /* out of memory: the connection ends */
    for (size_t i = 0; i < sizeof protections / sizeof *protections; i++)
        (void)MHD_add_response_header(response, protections[i][0], protections[i][1]);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET");
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "5");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer_bytes(struct MHD_Connection *connection, unsigned status,
    const char *text, size_t bytes, const char *type)
{
    return answer(connection, status,
        MHD_create_response_from_buffer(bytes, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY),
        type);
}

static enum MHD_Result answer_line(
    struct MHD_Connection *connection, unsigned status, const char *text)
{
    return answer_bytes(connection, status, text, strlen(text), "text/plain; charset=utf-8");
}

/* Takes ownership of the text; NULL: no memory. */
static enum MHD_Result answer_json(struct MHD_Connection *connection, char *text)
{
    struct MHD_Response *response =
        text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE) : NULL;
    if (!response)
        free(text);
    return answer(connection, MHD_HTTP_OK, response, "application/json");
}

static enum MHD_Result answer_log(struct server *server, struct MHD_Connection *connection)
{
    json_t *json = dashboard_log_json(&server->log);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return answer_json(connection, text);
}

static enum MHD_Result answer_stream(
    struct server *server, struct MHD_Connection *connection, struct ctl_client *client)
{
    struct MHD_Response *response = dashboard_streams_open(&server->streams, connection);
    if (!response)
        return answer_line(
            connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too many pages are open; poll `state`\n");
    client->streaming = true;
    return answer(connection, MHD_HTTP_OK, response, "text/event-stream");
}

static enum MHD_Result answer_of_daemon(
    struct server *server, struct MHD_Connection *connection, const char *path)
{
    const struct ctl_reply *reply = NULL;
    unsigned status = dashboard_source_ask(&server->source, connection, path, &reply);
    if (status == MHD_HTTP_OK)
        return answer_bytes(connection, status, reply->text, reply->bytes, "application/json");
    return answer_line(connection, status,
        status == MHD_HTTP_SERVICE_UNAVAILABLE ? "the daemon does not answer\n"
        : status == MHD_HTTP_BAD_REQUEST       ? "these arguments are not accepted\n"
                                               : "there is no such thing\n");
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
    struct ctl_client *client =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    unsigned status = 0;
    const char *path = NULL;
    if (!client)
        return MHD_NO;
    const char *refusal =
        dashboard_origin_refusal(&server->origin, connection, method, url, &status, &path);
    if (refusal)
        return answer_line(connection, status, refusal);
    client->known = true;
    const struct dashboard_file *file = dashboard_files_find(&server->files, path);
    if (file)
        return answer_bytes(connection, MHD_HTTP_OK, file->text, file->bytes, file->type);
    size_t bytes;
    if (strcmp(path, "events") == 0)
        return answer_stream(server, connection, client);
    if (strcmp(path, "state") == 0)
        return answer_json(
            connection, dashboard_source_state(&server->source, server->log.total, &bytes));
    if (strcmp(path, "log") == 0)
        return answer_log(server, connection);
    return answer_of_daemon(server, connection, path);
}

/* ---- the server ---- */

/* Once a second while a page is open. */
static void tell(struct server *server)
{
    double now = ctl_now();
    size_t bytes = 0;
    if (server->streams.count == 0 || now - server->told < TELL_SECONDS)
        return;
    char *text = dashboard_source_state(&server->source, server->log.total, &bytes);
    if (text)
        dashboard_streams_tell(&server->streams, text, bytes);
    free(text);
    server->told = now;
}

static void run(struct server *server)
{
    const struct sigaction action = {.sa_handler = on_signal};
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    while (!ended) {
        (void)MHD_run_wait(server->http, TICK_MS);
        /* If clients came while one was closed, 0.9.75 admits them only in the next run. */
        (void)MHD_run(server->http);
        dashboard_log_take(&server->log);
        tell(server);
        ctl_clients_sweep(&server->clients);
        dashboard_streams_sweep(&server->streams);
    }
    /* No connection may be suspended when libmicrohttpd stops; it resumes them in a run. */
    dashboard_streams_close(&server->streams);
    (void)MHD_run(server->http);
    (void)MHD_run(server->http);
    MHD_stop_daemon(server->http);
    dashboard_log_close(&server->log);
}

/* The host of HOST:PORT, with the brackets of an address of IPv6. */
static void print_host(const char *address, char *host, size_t capacity)
{
    const char *end = strrchr(address, ':');
    (void)snprintf(host, capacity, "%.*s", (int)(end - address), address);
}

/* Where a person on this machine finds the page; the header Host names it so. */
static bool accept_host(struct server *server, const char *address, char *host, size_t capacity)
{
    if (address)
        print_host(address, host, capacity);
    bool any = !address || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "[::]") == 0;
    if (any)
        (void)snprintf(host, capacity, "%s", address ? "localhost" : "127.0.0.1");
    return any || dashboard_origin_add(&server->origin, host);
}

static uint16_t port_of(int listener)
{
    struct sockaddr_in6 address = {0}; /* an address of IPv4 has its port in the same place */
    socklen_t bytes = sizeof address;
    return getsockname(listener, (struct sockaddr *)&address, &bytes) < 0
               ? 0
               : ntohs(address.sin6_port);
}

/* The address has the token: it is for the person who runs the command. */
static enum ctl_exit announce(struct server *server, const char *host, int listener)
{
    char url[SGP_TEXT_BYTES];
    (void)snprintf(
        url, sizeof url, "http://%s:%u/%s/", host, port_of(listener), server->origin.token);
    (void)fprintf(stderr,
        "sgpctl: the page of %s until interrupted; its address is for you alone:\n",
        server->ctl->socket);
    if (server->ctl->json)
        (void)ctl_print_json(json_pack("{s:s}", "url", url));
    else
        (void)printf("%s\n", url);
    return fflush(stdout) == 0 ? CTL_DONE : CTL_FAILED;
}

static enum ctl_exit start_server(struct server *server, int listener)
{
    ctl_clients_init(&server->clients);
    server->http = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        on_request, server, MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT,
        CTL_CLIENTS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, SILENCE_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES_MAX, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, server, MHD_OPTION_END);
    return server->http
               ? CTL_DONE
               : ctl_fail(server->ctl, CTL_FAILED, "the HTTP server cannot start: out of memory");
}

/* ---- the command ---- */

enum { LISTEN, HOST, LOG, GIVEN };
static const struct ctl_option options[GIVEN + 1] = {
    [LISTEN] = {"--listen", .value = "HOST:PORT",
        .summary = "where the page is served. Default: a free port of 127.0.0.1"},
    [HOST] = {"--host", .value = "NAMES",
        .summary = "accept also these names of the host in a browser's address, separated by "
                   "commas: those of a tunnel or of a proxy"},
    [LOG] = {"--log", .value = "FILE",
        .summary = "the daemon's log. Default: the journal of the unit sgpd@NAME, if the socket is "
                   "that of a unit"},
};

/* Accept the names of --host; the text must outlive the server. */
static bool accept_names(struct dashboard_origin *origin, char *names)
{
    char *rest = NULL;
    for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        if (!dashboard_origin_add(origin, name))
            return false;
    return true;
}

static enum ctl_exit prepare(
    struct server *server, const struct ctl_given *given, char *host, size_t capacity)
{
    struct ctl *ctl = server->ctl;
    static char names[SGP_TEXT_BYTES];
    char node[SGP_NAME_BYTES];
    int code = dashboard_origin_init(&server->origin);
    if (code < 0)
        return ctl_fail(ctl, CTL_FAILED, "no random numbers: %s", sgp_strerror(code));
    (void)snprintf(names, sizeof names, "%s", given[HOST].given ? given[HOST].value : "");
    if (!accept_host(server, given[LISTEN].given ? given[LISTEN].value : NULL, host, capacity) ||
        !accept_names(&server->origin, names))
        return ctl_usage(ctl, "--host has too many names");
    ctl_socket_name(ctl, node);
    code = dashboard_log_open(&server->log, given[LOG].given ? given[LOG].value : NULL, node);
    if (code < 0)
        return ctl_fail(ctl, CTL_FAILED, "the log cannot be followed: %s", sgp_strerror(code));
    return dashboard_files_read(ctl, &server->files);
}

static enum ctl_exit dashboard(struct ctl *ctl, int argc, char **argv)
{
    static struct server server;
    static char host[SGP_ADDRESS_BYTES];
    struct ctl_given given[GIVEN] = {0};
    int listener = -1;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, GIVEN, 0, 0);
    server.ctl = server.source.ctl = ctl;
    if (status == CTL_DONE)
        status = ctl_socket(ctl);
    if (status == CTL_DONE)
        status = ctl_listen(ctl, given[LISTEN].given ? given[LISTEN].value : NULL, &listener);
    if (status == CTL_DONE)
        status = prepare(&server, given, host, sizeof host);
    if (status == CTL_DONE)
        status = start_server(&server, listener);
    if (status == CTL_DONE)
        status = announce(&server, host, listener);
    if (status == CTL_DONE)
        run(&server);
    return status;
}

const struct ctl_command ctl_dashboard_command = {.words = "dashboard",
    .operands = "",
    .options = options,
    .summary = "serve a page that shows the node and its fleet in a browser",
    .help =
        "Prints the page's address, and serves it until interrupted. The address has a word that "
        "is\n"
        "chosen anew at each start; a caller without that word gets nothing. The page shows the\n"
        "graph, the fleet, the links, curves, the log, the topology and its signed versions. It\n"
        "changes nothing.\n"
        "\n"
        "From another machine, forward a port:\n"
        "\n"
        "  ssh -L 9312:127.0.0.1:9312 n0.example sgpctl dashboard --listen 127.0.0.1:9312\n",
    .run = dashboard};
