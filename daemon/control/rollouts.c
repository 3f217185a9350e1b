/* SPDX-License-Identifier: Apache-2.0 */
/* Signed topology files: a document that is pushed, the state of its rollout, and the versions that
 * this node has used; see endpoints.h. */
#include "endpoints.h"

#include "render.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Without a node there is none of it. */
static void fail(struct request *request, int code, const struct sgp_error *error)
{
    const unsigned status = code == SGP_E_DATA || code == SGP_E_LIMIT ? MHD_HTTP_BAD_REQUEST
                            : code == -ENOENT                         ? MHD_HTTP_NOT_FOUND
                            : code == SGP_E_STATE                     ? MHD_HTTP_CONFLICT
                                                  : MHD_HTTP_INTERNAL_SERVER_ERROR;
    if (error->text[0] != '\0')
        http_fail(request, status, "%s", error->text);
    else
        http_fail_code(request, code);
}

/* The body without the newline at its end, which a file has. */
static const char *line_of(struct request *request)
{
    char *body = request->body;
    const size_t bytes = request->body_bytes;
    if (bytes == 0 || strlen(body) != bytes)
        return NULL;
    if (body[bytes - 1] == '\n')
        body[bytes - 1] = '\0';
    return body;
}

void rollouts_push(struct request *request)
{
    const struct view_actions *actions = &request->control->actions;
    struct view_rollout rollout;
    struct sgp_error error = {0};
    const char *text = line_of(request);
    if (text == NULL) {
        http_fail(request, MHD_HTTP_BAD_REQUEST,
            "the body is no signed document; sgpctl topology sign writes one");
        return;
    }
    const int code = actions->push != NULL ? actions->push(actions->context, text, &rollout, &error)
                                           : SGP_E_STATE;
    if (code < 0) {
        fail(request, code, &error);
        return;
    }
    const bool active = strcmp(rollout.said, "active") == 0;
    http_answer_json(request,
        json_pack("{s:I, s:s, s:s}", "version",
            (json_int_t)(active ? rollout.active : rollout.proposed), "identity",
            active ? rollout.active_identity : rollout.proposed_identity, "state", rollout.said));
}

/* ---- the state ---- */

static json_t *render_node(const struct view_rollout_node *node)
{
    char mark[17] = "";
    if (node->mark != 0)
        (void)snprintf(mark, sizeof mark, "%016llx", (unsigned long long)node->mark);
    return json_pack("{s:s, s:I, s:s, s:s, s:o}", "name", node->name, "active",
        (json_int_t)node->active, "mark", mark, "vote", node->vote, "why", render_text(node->why));
}

static json_t *render_version(uint64_t version, const char *identity)
{
    return json_pack("{s:I, s:s}", "version", (json_int_t)version, "identity", identity);
}

void rollouts_show(struct request *request)
{
    const struct view_actions *actions = &request->control->actions;
    struct view_rollout view;
    struct sgp_error error = {0};
    const int code =
        actions->rollout != NULL ? actions->rollout(actions->context, &view, &error) : SGP_E_STATE;
    if (code < 0) {
        fail(request, code, &error);
        return;
    }
    json_t *nodes = json_array();
    const uint32_t count = actions->topology(actions->context)->node_count;
    for (uint32_t i = 0; i < count; i++) {
        struct view_rollout_node node;
        actions->rollout_node(actions->context, i, &node);
        (void)json_array_append_new(nodes, render_node(&node));
    }
    http_answer_json(request,
        json_pack("{s:s, s:o, s:o, s:b, s:s, s:o, s:I, s:I, s:I, s:s, s:b, s:o, s:o}", "fleet",
            view.fleet, "active", render_version(view.active, view.active_identity), "proposed",
            view.proposed != 0 ? render_version(view.proposed, view.proposed_identity)
                               : json_null(),
            "fork", view.fork, "vote", view.vote, "why", render_text(view.why), "accepted",
            (json_int_t)view.accepted, "missing", (json_int_t)view.missing, "refused",
            (json_int_t)view.refused, "waits_for", view.waits_for, "ready", view.ready,
            "refused_last", render_text(view.refused_last), "nodes", nodes));
}

/* ---- versions that were used ---- */

static json_t *render_used(const struct view_version *version)
{
    char used[32] = "";
    struct tm utc;
    const time_t seconds = (time_t)version->seconds;
    json_t *signers = json_array(), *despite = json_array();
    for (uint32_t i = 0; i < version->signer_count; i++)
        (void)json_array_append_new(signers, json_string(version->signers[i]));
    for (uint32_t i = 0; i < version->despite_count; i++)
        (void)json_array_append_new(despite, json_string(version->despite[i]));
    if (gmtime_r(&seconds, &utc) != NULL)
        (void)strftime(used, sizeof used, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return json_pack("{s:I, s:s, s:s, s:s, s:I, s:o, s:b, s:o, s:s}", "version",
        (json_int_t)version->version, "identity", version->identity, "predecessor",
        version->predecessor, "file", version->file, "bytes", (json_int_t)version->bytes, "signers",
        signers, "recovered", version->recovered, "despite", despite, "used_at", used);
}

void rollouts_log(struct request *request)
{
    static struct view_version list[VIEW_VERSIONS_MAX]; /* of the loop thread */
    const struct view_actions *actions = &request->control->actions;
    struct sgp_error error = {0};
    uint32_t count = 0;
    const int code = actions->versions != NULL
                         ? actions->versions(actions->context, list, &count, &error)
                         : SGP_E_STATE;
    if (code < 0) {
        fail(request, code, &error);
        return;
    }
    json_t *versions = json_array();
    for (uint32_t i = 0; i < count; i++)
        (void)json_array_append_new(versions, render_used(&list[i]));
    http_answer_json(request, json_pack("{s:o}", "versions", versions));
}

struct wanted {
    enum view_document which; /* 0: nothing that is understood */
    uint64_t version;
};

static enum MHD_Result read_argument(
    void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct wanted *wanted = context;
    char *end = NULL;
    (void)kind;
    *wanted = (struct wanted){.which = 0};
    if (strcmp(name, "version") != 0 || value == NULL)
        return MHD_NO;
    if (strcmp(value, "active") == 0)
        wanted->which = VIEW_DOCUMENT_ACTIVE;
    else if (strcmp(value, "proposed") == 0)
        wanted->which = VIEW_DOCUMENT_PROPOSED;
    errno = 0;
    if (value[0] >= '0' && value[0] <= '9') {
        wanted->version = strtoull(value, &end, 10);
        wanted->which = errno == 0 && *end == '\0' ? VIEW_DOCUMENT_VERSION : 0;
    }
    return wanted->which != 0 ? MHD_YES : MHD_NO;
}

void rollouts_document(struct request *request)
{
    const struct view_actions *actions = &request->control->actions;
    struct wanted wanted = {.which = VIEW_DOCUMENT_ACTIVE};
    struct sgp_error error = {0};
    char *text = NULL;
    (void)MHD_get_connection_values(
        request->connection, MHD_GET_ARGUMENT_KIND, read_argument, &wanted);
    if (wanted.which == 0) {
        http_fail(request, MHD_HTTP_BAD_REQUEST,
            "give version=NUMBER, version=active or version=proposed");
        return;
    }
    const int code = actions->document != NULL ? actions->document(actions->context, wanted.which,
                                                     wanted.version, &text, &error)
                                               : SGP_E_STATE;
    if (code < 0)
        fail(request, code, &error);
    else
        http_answer_text(request, text, strlen(text), "text/plain");
}
