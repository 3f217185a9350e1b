/* SPDX-License-Identifier: Apache-2.0 */
/* A request from its first line to its answer; see http.h. A failure is answered with an error. */
#include "http.h"
#include "render.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Answers. */

void http_answer(struct request *request, unsigned status, struct MHD_Response *response,
    uint64_t bytes, const char *content_type)
{
    sgp_assert(!request->response);
    if (response)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    request->response = response;
    request->status = status;
    request->client->answer_bytes = response ? bytes : 0;
}

static void answer_text(
    struct request *request, unsigned status, char *text, size_t bytes, const char *content_type)
{
    struct MHD_Response *response = NULL;
    if (text)
        response = MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE);
    if (!response)
        free(text);
    http_answer(request, status, response, bytes, content_type);
}

void http_answer_text(struct request *request, char *text, size_t bytes, const char *content_type)
{
    answer_text(request, MHD_HTTP_OK, text, bytes, content_type);
}

char *http_dump(json_t *root, size_t *ret_bytes)
{
    char *text = root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(root);
    size_t bytes = text ? strlen(text) : 0;
    char *line = text ? realloc(text, bytes + 2) : NULL;
    if (!line) {
        free(text);
        return NULL;
    }
    memcpy(line + bytes, "\n", 2);
    *ret_bytes = bytes + 1;
    return line;
}

static void answer_json(struct request *request, unsigned status, json_t *root)
{
    size_t bytes = 0;
    char *text = http_dump(root, &bytes);
    answer_text(request, status, text, bytes, "application/json");
}

void http_answer_json(struct request *request, json_t *root)
{
    answer_json(request, MHD_HTTP_OK, root);
}

static const char *code_word(unsigned status)
{
    static const struct {
        unsigned status;
        const char *word;
    } words[] = {{MHD_HTTP_BAD_REQUEST, "bad_request"}, {MHD_HTTP_FORBIDDEN, "not_permitted"},
        {MHD_HTTP_NOT_FOUND, "not_found"}, {MHD_HTTP_METHOD_NOT_ALLOWED, "method_not_allowed"},
        {MHD_HTTP_CONFLICT, "conflict"}, {MHD_HTTP_CONTENT_TOO_LARGE, "too_large"},
        {MHD_HTTP_UNPROCESSABLE_CONTENT, "invalid_file"}, {MHD_HTTP_SERVICE_UNAVAILABLE, "busy"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (words[i].status == status)
            return words[i].word;
    return "failed";
}

static json_t *list_paths(const struct control *control)
{
    json_t *paths = json_array();
    for (size_t i = 0; i < control->endpoint_count; i++) {
        const struct endpoint *endpoint = &control->endpoints[i];
        char line[64];
        (void)snprintf(line, sizeof line, "%s %s", endpoint->method, endpoint->path);
        json_array_append_new(paths, json_string(line));
    }
    return json_pack("{s:o}", "paths", paths);
}

void http_fail(struct request *request, unsigned status, const char *format, ...)
{
    char text[SGP_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    bool lost = request->endpoint == NULL &&
                (status == MHD_HTTP_NOT_FOUND || status == MHD_HTTP_METHOD_NOT_ALLOWED);
    json_t *hints = lost ? list_paths(request->control) : NULL;
    answer_json(request, status, render_error(status, code_word(status), text, hints));
}

void http_fail_code(struct request *request, int code)
{
    switch (code) {
    case SGP_E_STATE:
        http_fail(request, MHD_HTTP_CONFLICT, "%s", sgp_strerror(code));
        break;
    case -EBUSY:
        http_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, "too many jobs wait; try again");
        break;
    case -ECANCELED:
        http_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, "the daemon is stopping");
        break;
    default:
        http_fail(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "%s", sgp_strerror(code));
        break;
    }
}

void http_fail_error(struct request *request, const struct sgp_error *error)
{
    if (error->text[0] != '\0')
        http_fail(request, MHD_HTTP_CONFLICT, "%s", error->text);
    else
        http_fail_code(request, error->code);
}

/* Jobs. */

bool http_is_privileged(const struct client *client)
{
    return client->uid == 0 || client->uid == geteuid();
}

bool http_room_for_job(struct request *request, uint32_t others)
{
    uint32_t most = CONTROL_JOBS_MAX;
    if (http_is_privileged(request->client))
        most += CONTROL_JOBS_KEPT;
    if (request->control->job_count + others < most)
        return true;
    http_fail_code(request, -EBUSY);
    return false;
}

/* Also a job whose client has gone waits to its end. */
bool http_room_to_wait(struct request *request)
{
    uint32_t waiting = 0;
    const struct http_job *job;
    LIST_FOREACH (job, &request->control->jobs, next)
        waiting += job->waits && job->uid == request->client->uid;
    if (waiting < CONTROL_WAITS_MAX)
        return true;
    http_fail_code(request, -EBUSY);
    return false;
}

bool http_room_for_answer(struct request *request)
{
    uint64_t held = 0;
    const struct client *client;
    LIST_FOREACH (client, &request->control->clients, next)
        held += client->uid == request->client->uid ? client->answer_bytes : 0;
    if (held <= CONTROL_HELD_BYTES_MAX)
        return true;
    http_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE,
        "answers of more than %u MiB wait for this user; fetch them first",
        CONTROL_HELD_BYTES_MAX >> 20);
    return false;
}

void http_begin_job(struct request *request, struct http_job *job)
{
    struct control *control = request->control;
    job->control = control;
    job->request = request;
    job->uid = request->client->uid;
    LIST_INSERT_HEAD(&control->jobs, job, next);
    control->job_count += job->heavy;
    request->job = job;
    request->client->waiting = true;
    MHD_suspend_connection(request->connection);
}

void http_end_job(struct http_job *job)
{
    struct control *control = job->control;
    struct request *request = job->request;
    if (control) {
        LIST_REMOVE(job, next);
        control->job_count -= job->heavy;
    }
    if (request) {
        request->job = NULL;
        request->client->waiting = false;
        MHD_resume_connection(request->connection);
    }
    job->destroy(job);
    if (control)
        control->pump(control);
}

/* Requests. */

/* What the head says about the length of the body. libmicrohttpd has refused a length that is not a
 * number. */
struct framing {
    unsigned fields; /* that give the length */
    /* a coding other than chunked, or a name that other parsers read differently */
    bool odd;
    unsigned long long bytes;
};

static enum MHD_Result read_framing(
    void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    struct framing *framing = context;
    bool length = strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    bool coding = strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0;
    framing->fields += length || coding;
    framing->odd = framing->odd || strpbrk(name, " \t") != NULL ||
                   (coding && (value == NULL || strcasecmp(value, "chunked") != 0));
    if (length && value != NULL)
        framing->bytes = strtoull(value, NULL, 10);
    return MHD_YES;
}

/* Find the endpoint. Refuse before the body arrives if the request will be refused anyway. */
static void begin_request(struct request *request, const char *url, const char *method)
{
    const struct control *control = request->control;
    bool path_exists = false;
    for (size_t i = 0; i < control->endpoint_count && !request->endpoint; i++) {
        const struct endpoint *endpoint = &control->endpoints[i];
        bool same = strcmp(endpoint->path, url) == 0;
        path_exists = path_exists || same;
        if (same && strcmp(endpoint->method, method) == 0)
            request->endpoint = endpoint;
    }
    struct framing framing = {0};
    (void)MHD_get_connection_values(request->connection, MHD_HEADER_KIND, read_framing, &framing);
    unsigned long long most =
        request->endpoint && request->endpoint->body ? CONTROL_BODY_BYTES_MAX : 0;
    if (framing.odd || framing.fields > 1) /* the start of the next request is ambiguous */
        http_fail(request, MHD_HTTP_BAD_REQUEST,
            "the length of the body is not plain; give one Content-Length, or Transfer-Encoding: "
            "chunked, and not both");
    else if (!request->endpoint && path_exists)
        http_fail(request, MHD_HTTP_METHOD_NOT_ALLOWED, "%.10s is not for %s", method, url);
    else if (!request->endpoint)
        http_fail(request, MHD_HTTP_NOT_FOUND, "there is no %.10s %.100s", method, url);
    else if (request->endpoint->changes && !http_is_privileged(request->client))
        http_fail(request, MHD_HTTP_FORBIDDEN,
            "only root and the user of the daemon may %s it; reading is for the whole group",
            request->endpoint->path + strlen("/v1/"));
    else if (framing.bytes > most)
        http_fail(request, MHD_HTTP_CONTENT_TOO_LARGE,
            "the body is larger than the %llu bytes that %s takes", most, url);
}

/* A piece of the body. Excess bytes are read and dropped, so that the client can read the
 * answer. */
static void take_body(struct request *request, const char *data, size_t bytes)
{
    size_t most = request->endpoint->body ? CONTROL_BODY_BYTES_MAX : 0;
    if (bytes > most - request->body_bytes)
        request->body_status = MHD_HTTP_CONTENT_TOO_LARGE;
    if (request->body_status)
        return;
    char *body = realloc(request->body, request->body_bytes + bytes + 1);
    if (!body) {
        request->body_status = MHD_HTTP_SERVICE_UNAVAILABLE;
        return;
    }
    memcpy(body + request->body_bytes, data, bytes);
    request->body = body;
    request->body_bytes += bytes;
    body[request->body_bytes] = '\0';
}

static enum MHD_Result send_answer(struct request *request)
{
    request->client->busy = true;
    request->client->since = uv_now(request->control->loop);
    if (!request->response)
        return MHD_NO; /* out of memory: the connection ends */
    return MHD_queue_response(request->connection, request->status, request->response);
}

static struct request *create_request(struct control *control, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct request *request = calloc(1, sizeof *request);
    if (!request || !info || !info->socket_context) {
        free(request);
        return NULL;
    }
    *request = (struct request){
        .control = control, .connection = connection, .client = info->socket_context};
    request->client->spoke = true;
    return request;
}

enum MHD_Result http_handle(void *context, struct MHD_Connection *connection, const char *url,
    const char *method, const char *version, const char *data, size_t *data_bytes,
    void **request_context)
{
    (void)version;
    struct request *request = *request_context;
    if (!request) {
        request = create_request(context, connection);
        *request_context = request;
        if (!request)
            return MHD_NO;
        begin_request(request, url, method);
        return request->response ? send_answer(request) : MHD_YES;
    }
    if (*data_bytes > 0) {
        take_body(request, data, *data_bytes);
        *data_bytes = 0;
        return MHD_YES;
    }
    if (!request->response && request->body_status == MHD_HTTP_SERVICE_UNAVAILABLE)
        http_fail_code(request, -ENOMEM);
    else if (!request->response && request->body_status)
        http_fail(request, MHD_HTTP_CONTENT_TOO_LARGE, "the body is larger than %u bytes",
            request->endpoint->body ? CONTROL_BODY_BYTES_MAX : 0);
    else if (!request->response && request->control->closing)
        http_fail_code(request, -ECANCELED);
    else if (!request->response && !request->job) {
        request->client->busy = true;
        request->endpoint->serve(request);
    }
    return request->job ? MHD_YES : send_answer(request);
}

void http_completed(void *context, struct MHD_Connection *connection, void **request_context,
    enum MHD_RequestTerminationCode code)
{
    (void)context;
    (void)connection;
    (void)code;
    struct request *request = *request_context;
    if (!request)
        return;
    if (request->job)
        request->job->request = NULL;
    request->client->busy = false;
    request->client->answer_bytes = 0;
    request->client->since = uv_now(request->control->loop);
    if (request->response)
        MHD_destroy_response(request->response);
    free(request->body);
    free(request);
    *request_context = NULL;
}
