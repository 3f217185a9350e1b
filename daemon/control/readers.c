/* SPDX-License-Identifier: Apache-2.0 */
/* What onlookers read, copied and then rendered; see endpoints.h.
 *
 * Fails: if there is no memory for a copy or an answer, the request is answered with 500. */
#include "endpoints.h"

#include "render.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define JSON_TYPE "application/json"

/* A copy of the node at one moment, and the answer that is rendered from it. */
struct reading {
    struct http_job job; /* must be first */
    struct offload offload;
    const struct reader *reader;
    uint64_t since; /* of the history: as requested */
    uint64_t limit;
    struct view_status status;
    struct sgp_topology *topology; /* with its edges, unless there are too many; or NULL */
    struct view_peer *peers;
    uint32_t peer_count;
    struct view_node *nodes; /* of the fleet */
    uint32_t node_count;
    struct sgp_fleet_counts refused;
    struct page page;
    struct view_history_row *rows;
    char *text; /* NULL: no memory */
    size_t bytes;
};

struct reader {
    const char *type;
    /* False: no memory. */
    bool (*copy)(struct reading *reading, const struct view_actions *actions);
    char *(*render)(const struct reading *reading, size_t *ret_bytes);
};

/* ---- copying, on the loop thread ---- */

static bool copy_peers(struct reading *reading, const struct view_actions *actions)
{
    reading->peer_count = actions->peer_count ? actions->peer_count(actions->context) : 0;
    reading->peers = calloc(reading->peer_count + 1u, sizeof *reading->peers);
    for (uint32_t i = 0; reading->peers && i < reading->peer_count; i++)
        actions->peer(actions->context, i, &reading->peers[i]);
    return reading->peers != NULL;
}

static bool copy_nodes(struct reading *reading, const struct view_actions *actions)
{
    actions->status(actions->context, &reading->status);
    reading->node_count = actions->node_count ? actions->node_count(actions->context) : 0;
    reading->nodes = calloc(reading->node_count + 1u, sizeof *reading->nodes);
    for (uint32_t i = 0; reading->nodes && i < reading->node_count; i++)
        actions->node(actions->context, i, &reading->nodes[i]);
    if (actions->rows_refused)
        reading->refused = actions->rows_refused(actions->context);
    return reading->nodes != NULL;
}

static bool copy_metrics(struct reading *reading, const struct view_actions *actions)
{
    return copy_nodes(reading, actions) && copy_peers(reading, actions);
}

static bool copy_history(struct reading *reading, const struct view_actions *actions)
{
    uint64_t total = actions->history_total ? actions->history_total(actions->context) : 0;
    struct page page = page_of(total, reading->since, (uint32_t)reading->limit);
    reading->page = page;
    reading->rows = calloc(page.count + 1u, sizeof *reading->rows);
    for (uint32_t i = 0; reading->rows && i < page.count; i++)
        actions->history(actions->context, page_row(&page, i), &reading->rows[i]);
    return reading->rows != NULL;
}

static void *copy_of(const void *memory, size_t bytes)
{
    void *copy = malloc(bytes + 1);
    return copy ? memcpy(copy, memory, bytes) : NULL;
}

static void free_topology(struct sgp_topology *topology)
{
    for (uint32_t i = 0; topology && topology->phases && i < topology->phase_count; i++)
        free(topology->phases[i].out);
    if (topology)
        free(topology->phases);
    if (topology)
        free(topology->nodes);
    free(topology);
}

/* What render_topology reads is copied, because a reload may destroy the original meanwhile. */
static bool copy_topology(struct reading *reading, const struct view_actions *actions)
{
    const struct sgp_topology *original = actions->topology(actions->context);
    actions->status(actions->context, &reading->status);
    struct sgp_topology *topology = copy_of(original, sizeof *original);
    reading->topology = topology;
    if (!topology)
        return false;
    topology->nodes = copy_of(original->nodes, original->node_count * sizeof *original->nodes);
    topology->phases = calloc(original->phase_count, sizeof *original->phases);
    bool whole = render_has_edges(original), good = topology->nodes && topology->phases;
    for (uint32_t i = 0; good && i < original->phase_count; i++) {
        const struct sgp_phase *phase = &original->phases[i];
        topology->phases[i] = *phase;
        topology->phases[i].out =
            whole ? copy_of(phase->out, phase->edge_count * sizeof *phase->out) : NULL;
        good = !whole || topology->phases[i].out;
    }
    return good;
}

/* ---- rendering, off it ---- */

static char *show_peers(const struct reading *reading, size_t *ret_bytes)
{
    json_t *peers = json_array();
    for (uint32_t i = 0; i < reading->peer_count; i++)
        (void)json_array_append_new(peers, render_peer(&reading->peers[i]));
    return http_dump(peers, ret_bytes);
}

static char *show_topology(const struct reading *reading, size_t *ret_bytes)
{
    return http_dump(render_topology(&reading->status, reading->topology), ret_bytes);
}

static char *show_history(const struct reading *reading, size_t *ret_bytes)
{
    return http_dump(render_history(&reading->page, reading->rows), ret_bytes);
}

static struct render_nodes nodes_of(const struct reading *reading)
{
    return (struct render_nodes){.name = reading->status.name,
        .nodes = reading->nodes,
        .count = reading->node_count,
        .refused = reading->refused};
}

static char *show_nodes(const struct reading *reading, size_t *ret_bytes)
{
    const struct render_nodes nodes = nodes_of(reading);
    return http_dump(render_nodes(&nodes), ret_bytes);
}

static char *show_metrics(const struct reading *reading, size_t *ret_bytes)
{
    const struct render_nodes nodes = nodes_of(reading);
    char *text = NULL;
    (void)render_metrics(
        &reading->status, reading->peers, reading->peer_count, &nodes, &text, ret_bytes);
    return text;
}

/* ---- the steps of a reading ---- */

static struct reading *of_offload(struct offload *offload)
{
    return (struct reading *)((char *)offload - offsetof(struct reading, offload));
}

static void destroy(struct http_job *job)
{
    struct reading *reading = (struct reading *)job;
    free_topology(reading->topology);
    free(reading->peers);
    free(reading->nodes);
    free(reading->rows);
    free(reading->text);
    free(reading);
}

static bool begin(struct offload *offload)
{
    struct reading *reading = of_offload(offload);
    return reading->job.request && reading->reader->copy(reading, &reading->job.control->actions);
}

static void run(struct offload *offload)
{
    struct reading *reading = of_offload(offload);
    reading->text = reading->reader->render(reading, &reading->bytes);
}

static void end(struct offload *offload)
{
    struct reading *reading = of_offload(offload);
    struct request *request = reading->job.request;
    if (request && reading->text)
        http_answer_text(request, reading->text, reading->bytes, reading->reader->type);
    else if (request)
        http_fail_code(request, -ENOMEM);
    if (request)
        reading->text = NULL; /* now owned by the answer, if there was a text */
    http_end_job(&reading->job);
}

static struct reading *create(struct request *request, const struct reader *reader)
{
    if (!http_room_for_answer(request))
        return NULL;
    struct reading *reading = calloc(1, sizeof *reading);
    if (!reading) {
        http_fail_code(request, -ENOMEM);
        return NULL;
    }
    reading->job.destroy = destroy;
    reading->offload = (struct offload){.begin = begin, .run = run, .end = end};
    reading->reader = reader;
    return reading;
}

static void start(struct request *request, struct reading *reading)
{
    http_begin_job(request, &reading->job);
    offloads_push(&request->control->offloads, &reading->offload);
}

static void read_by(struct request *request, const struct reader *reader)
{
    struct reading *reading = create(request, reader);
    if (reading)
        start(request, reading);
}

void readers_peers(struct request *request)
{
    static const struct reader reader = {JSON_TYPE, copy_peers, show_peers};
    read_by(request, &reader);
}

void readers_topology(struct request *request)
{
    static const struct reader reader = {JSON_TYPE, copy_topology, show_topology};
    read_by(request, &reader);
}

void readers_fleet(struct request *request)
{
    static const struct reader reader = {JSON_TYPE, copy_nodes, show_nodes};
    read_by(request, &reader);
}

void readers_metrics(struct request *request)
{
    static const struct reader reader = {
        "text/plain; version=0.0.4; charset=utf-8", copy_metrics, show_metrics};
    read_by(request, &reader);
}

/* ---- the query of the history ---- */

/* A whole decimal number, or false. */
static bool read_number(const char *text, uint64_t *ret_number)
{
    char *end = NULL;
    if (!text || text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    *ret_number = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

static enum MHD_Result read_argument(
    void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    struct reading *reading = context;
    struct request *request = reading->job.request;
    uint64_t *number = strcmp(name, "since") == 0   ? &reading->since
                       : strcmp(name, "limit") == 0 ? &reading->limit
                                                    : NULL;
    bool good = number && read_number(value, number) && *number < PAGE_OVERVIEW &&
                (number != &reading->limit || (*number >= 1 && *number <= PAGE_ROWS_MAX));
    if (good)
        return MHD_YES;
    if (!number)
        http_fail(request, MHD_HTTP_BAD_REQUEST,
            "/v1/history has no argument '%.40s'; give since=NUMBER or limit=ROWS", name);
    else if (number == &reading->since)
        http_fail(request, MHD_HTTP_BAD_REQUEST,
            "since=%.40s is not the number of a row; give 0, or `next` of an earlier answer",
            value ? value : "");
    else
        http_fail(request, MHD_HTTP_BAD_REQUEST, "limit=%.40s is not a number from 1 to %u",
            value ? value : "", PAGE_ROWS_MAX);
    return MHD_NO;
}

void readers_history(struct request *request)
{
    static const struct reader reader = {JSON_TYPE, copy_history, show_history};
    struct reading *reading = create(request, &reader);
    if (!reading)
        return;
    reading->since = PAGE_OVERVIEW;
    reading->limit = PAGE_ROWS_DEFAULT;
    reading->job.request = request;
    (void)MHD_get_connection_values(
        request->connection, MHD_GET_ARGUMENT_KIND, read_argument, reading);
    if (request->response)
        destroy(&reading->job);
    else
        start(request, reading);
}
