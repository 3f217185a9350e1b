/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon says. Only these paths are forwarded, always with GET, and each is asked once a
 * second at most, however many callers ask. The exception is the history, whose answer depends on
 * its arguments; the daemon bounds the time that it takes for that.
 *
 * Fails: while the daemon does not answer, callers get 503, and it is asked again after a rest. So
 * a daemon that is stopped blocks the loop for DASHBOARD_ASK_SECONDS at a time. */
#include "dashboard.h"

#include <stdlib.h>
#include <string.h>

#define NUMBER_BYTES 20u /* digits of an argument */

enum { STATUS, PEERS, TOPOLOGY, FLEET, ROLLOUT, VERSIONS };
static const char *const paths[DASHBOARD_PATHS] = {[STATUS] = "/v1/status",
    [PEERS] = "/v1/peers",
    [TOPOLOGY] = "/v1/topology",
    [FLEET] = "/v1/fleet",
    [ROLLOUT] = "/v1/rollout",
    [VERSIONS] = "/v1/rollout/log"};
static const char history[] = "/v1/history";

/* Ask the daemon for a path, and keep its answer. */
static void ask(struct dashboard_source *source, const char *path, struct dashboard_answer *answer)
{
    const struct ctl_request request = {
        .method = "GET", .path = path, .seconds = DASHBOARD_ASK_SECONDS, .quiet = true};
    free(answer->reply.text);
    *answer = (struct dashboard_answer){.asked = ctl_now(), .status = 503};
    if (ctl_now() < source->silent_until)
        return;
    enum ctl_exit code = ctl_ask(source->ctl, &request, &answer->reply);
    answer->asked = ctl_now();
    if (code == CTL_DONE && answer->reply.text)
        answer->status = MHD_HTTP_OK;
    else if (code == CTL_FAILED) /* it answered, and does not have this */
        answer->status = MHD_HTTP_NOT_FOUND;
    else
        source->silent_until = ctl_now() + DASHBOARD_SILENT_SECONDS;
}

static const struct dashboard_answer *fresh(struct dashboard_source *source, size_t path)
{
    struct dashboard_answer *answer = &source->answers[path];
    if (answer->asked == 0 || ctl_now() - answer->asked >= DASHBOARD_FRESH_SECONDS)
        ask(source, paths[path], answer);
    return answer;
}

/* ---- the query of a request ---- */

struct query {
    char path[128];
    bool wrong;
};

static enum MHD_Result read_argument(
    void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    struct query *query = context;
    size_t used = strlen(query->path), digits = value ? strspn(value, "0123456789") : 0;
    bool known = strcmp(name, "since") == 0 || strcmp(name, "limit") == 0;
    if (!known || digits == 0 || digits > NUMBER_BYTES || value[digits] != '\0')
        query->wrong = true;
    else if (used + digits + 8 < sizeof query->path)
        (void)snprintf(query->path + used, sizeof query->path - used, "%c%s=%s",
            strchr(query->path, '?') ? '&' : '?', name, value);
    else
        query->wrong = true;
    return query->wrong ? MHD_NO : MHD_YES;
}

static enum MHD_Result refuse_argument(
    void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    (void)name;
    (void)value;
    *(bool *)context = true;
    return MHD_NO;
}

/* The latest answer of the history stays until the next one. */
static const struct dashboard_answer *ask_history(
    struct dashboard_source *source, struct MHD_Connection *connection)
{
    static struct dashboard_answer answer;
    struct query query = {0};
    (void)snprintf(query.path, sizeof query.path, "%s", history);
    (void)MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, read_argument, &query);
    if (!query.wrong) {
        ask(source, query.path, &answer);
        return &answer;
    }
    static const struct dashboard_answer wrong = {.status = MHD_HTTP_BAD_REQUEST};
    return &wrong;
}

unsigned dashboard_source_ask(struct dashboard_source *source, struct MHD_Connection *connection,
    const char *path, const struct ctl_reply **ret_reply)
{
    const struct dashboard_answer *answer = NULL;
    bool has_query = false;
    if (strcmp(path, history + 1) == 0)
        answer = ask_history(source, connection);
    else
        (void)MHD_get_connection_values(
            connection, MHD_GET_ARGUMENT_KIND, refuse_argument, &has_query);
    for (size_t i = 0; i < DASHBOARD_PATHS && !answer; i++)
        if (strcmp(path, paths[i] + 1) == 0 && !has_query)
            answer = fresh(source, i);
    if (answer)
        *ret_reply = &answer->reply;
    return answer ? answer->status : has_query ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_NOT_FOUND;
}

/* ---- the state ---- */

/* JSON has line feeds between values only, and a blank means the same. */
static const char *without_lines(const struct dashboard_answer *answer)
{
    if (answer->status != MHD_HTTP_OK)
        return "null";
    for (char *c = answer->reply.text; *c != '\0'; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    return answer->reply.text;
}

char *dashboard_source_state(struct dashboard_source *source, uint64_t log_total, size_t *ret_bytes)
{
    char *text = NULL;
    const char *status = without_lines(fresh(source, STATUS));
    const char *peers = without_lines(fresh(source, PEERS));
    int bytes = asprintf(&text, "{\"status\":%s,\"peers\":%s,\"log\":%llu}", status, peers,
        (unsigned long long)log_total);
    if (bytes < 0)
        return NULL;
    *ret_bytes = (size_t)bytes;
    return text;
}
