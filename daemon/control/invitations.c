/* SPDX-License-Identifier: Apache-2.0 */
/* Invitations to other machines: given, and listed; see endpoints.h. */
#include "endpoints.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS 86400.0
#define SECONDS_MAX (7 * SECONDS)

struct wishing {
    struct request *request;
    struct view_invitation wish;
};

static bool take(const char *value, char *into, size_t capacity)
{
    const size_t length = value != NULL ? strlen(value) : capacity;
    if (length >= capacity)
        return false;
    memcpy(into, value, length + 1);
    return true;
}

static bool take_seconds(const char *value, double *ret_seconds)
{
    char *end = NULL;
    const double seconds = value != NULL ? strtod(value, &end) : NAN;
    if (end == value || *end != '\0' || !(seconds >= 0.001 && seconds <= SECONDS_MAX))
        return false;
    *ret_seconds = seconds;
    return true;
}

static enum MHD_Result read_argument(
    void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct wishing *wishing = context;
    struct view_invitation *wish = &wishing->wish;
    (void)kind;
    if (strcmp(name, "name") == 0 && take(value, wish->name, sizeof wish->name) &&
        sgp_topology_name_is_good(wish->name))
        return MHD_YES;
    if (strcmp(name, "address") == 0 && take(value, wish->address, sizeof wish->address))
        return MHD_YES;
    if (strcmp(name, "seconds") == 0 && take_seconds(value, &wish->seconds))
        return MHD_YES;
    http_fail(wishing->request, MHD_HTTP_BAD_REQUEST,
        "'%.80s' is no %.40s of an invitation; /v1/invite takes name=NAME, seconds=S from 0.001 to "
        "%.0f, and address=HOST:PORT",
        value != NULL ? value : "", name, SECONDS_MAX);
    return MHD_NO;
}

void invitations_invite(struct request *request)
{
    const struct view_actions *actions = &request->control->actions;
    struct wishing wishing = {.request = request, .wish.seconds = SECONDS};
    char text[VIEW_INVITATION_BYTES];
    struct sgp_error error = {0};
    (void)MHD_get_connection_values(
        request->connection, MHD_GET_ARGUMENT_KIND, read_argument, &wishing);
    if (request->response != NULL)
        return;
    if (wishing.wish.name[0] == '\0') {
        http_fail(request, MHD_HTTP_BAD_REQUEST, "/v1/invite needs name=NAME, the node's name");
        return;
    }
    if (actions->invite == NULL) {
        http_fail_code(request, SGP_E_STATE);
        return;
    }
    error.code = actions->invite(actions->context, &wishing.wish, text, &error);
    if (error.code < 0) {
        http_fail(request, MHD_HTTP_CONFLICT, "%s",
            error.text[0] != '\0' ? error.text : sgp_strerror(error.code));
        return;
    }
    http_answer_json(request, json_pack("{s:s, s:s, s:f}", "name", wishing.wish.name, "invitation",
                                  text, "seconds", wishing.wish.seconds));
    explicit_bzero(text, sizeof text);
}

static json_t *text_or_null(const char *text)
{
    return text[0] != '\0' ? json_string(text) : json_null();
}

void invitations_list(struct request *request)
{
    static struct view_invitation list[VIEW_INVITATIONS_MAX]; /* of the loop thread */
    const struct view_actions *actions = &request->control->actions;
    const uint32_t count = actions->invitations != NULL
                               ? actions->invitations(actions->context, list, VIEW_INVITATIONS_MAX)
                               : 0;
    json_t *array = json_array();
    for (uint32_t i = 0; i < count; i++)
        (void)json_array_append_new(
            array, json_pack("{s:s, s:s, s:f, s:o, s:o}", "name", list[i].name, "state",
                       list[i].state, "seconds", list[i].seconds, "address",
                       text_or_null(list[i].address), "key", text_or_null(list[i].key)));
    http_answer_json(request, json_pack("{s:o}", "invitations", array));
}
