/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of the control server, and their table; see http.h. */
#include "endpoints.h"

#include "store/export.h"
#include "render.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static struct view_status ask_status(const struct control *control)
{
    struct view_status status = {0};
    control->actions.status(control->actions.context, &status);
    return status;
}

/* Reading. */

static json_t *told_name(const struct view_peer *peer)
{
    return json_string(peer->name);
}

static json_t *told_distance(const struct view_peer *peer)
{
    return json_pack("{s:s, s:f, s:f}", "peer", peer->name, "distance", peer->core.distance,
        "relative", peer->core.distance_relative);
}

static json_t *list_of(json_t *by_name)
{
    json_t *list = json_array(), *entry;
    const char *name;
    json_object_foreach(by_name, name, entry)(void) json_array_append(list, entry);
    return list;
}

/* Which neighbours have a problem: sorted by name first, so that each is named once. */
static void remark_on_peers(const struct view_actions *actions, json_t *root)
{
#define X(key, kind, holds, place, shown) (void)json_object_set_new(root, #key, json_object());
    NEIGHBOUR_FIELDS(X)
#undef X
    uint32_t count = actions->peer_count ? actions->peer_count(actions->context) : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct view_peer peer = {0}, *view = &peer;
        actions->peer(actions->context, i, view);
#define X(key, kind, holds, place, shown)                                                          \
    if (holds)                                                                                     \
        (void)json_object_set_new(json_object_get(root, #key), view->name, told_##kind(view));
        NEIGHBOUR_FIELDS(X)
#undef X
    }
#define X(key, kind, holds, place, shown)                                                          \
    (void)json_object_set_new(root, #key, list_of(json_object_get(root, #key)));
    NEIGHBOUR_FIELDS(X)
#undef X
}

static void serve_status(struct request *request)
{
    const struct view_actions *actions = &request->control->actions;
    struct view_status status = ask_status(request->control);
    json_t *root = render_status(&status, actions->topology(actions->context));
    remark_on_peers(actions, root);
    http_answer_json(request, root);
}

/* The scaling does not change while the daemon runs. */
static void serve_scaling(struct request *request)
{
    const char *agreed = request->control->model.agreed;
    char *text = agreed ? strdup(agreed) : NULL;
    if (!agreed)
        http_fail(request, MHD_HTTP_CONFLICT,
            "the nodes have not agreed on a scaling; with [data] scale = fleet they do so before "
            "they "
            "train");
    else if (!text)
        http_fail_code(request, -ENOMEM);
    else
        http_answer_text(request, text, strlen(text), "application/json");
}

/* Orders. The answer names the state after the order, as far as the state has changed at once. */

static void obey(struct request *request, int (*order)(void *context))
{
    int code = order ? order(request->control->actions.context) : SGP_E_STATE;
    if (code < 0) {
        http_fail_code(request, code);
        return;
    }
    struct view_status status = ask_status(request->control);
    http_answer_json(request, json_pack("{s:s}", "state", sgp_node_state_name(status.core.state)));
}

#define ORDER(name)                                                                                \
    static void serve_##name(struct request *request)                                              \
    {                                                                                              \
        obey(request, request->control->actions.name);                                             \
    }
ORDER(pause)
ORDER(resume)
ORDER(checkpoint)
ORDER(stop)
ORDER(reset)
ORDER(join)

static void serve_reload(struct request *request)
{
    const struct view_actions *actions = &request->control->actions;
    struct view_reload reload;
    struct sgp_error error = {0};
    int code = actions->reload(actions->context, &reload, &error);
    if (code == 0)
        http_answer_json(request, render_reload(&reload));
    else if (code == SGP_E_STATE)
        http_fail_error(request, &error);
    else if (code == -ENOMEM)
        http_fail_code(request, code);
    else
        http_fail(request, MHD_HTTP_UNPROCESSABLE_CONTENT, "%s", error.text);
}

/* Jobs. */

static void destroy_job(struct http_job *job)
{
    free(job);
}

/* An empty job, or NULL with the request answered. */
static struct http_job *create_job(struct request *request, uint32_t others)
{
    if (!http_room_for_job(request, others))
        return NULL;
    struct http_job *job = calloc(1, sizeof *job);
    if (!job)
        http_fail_code(request, -ENOMEM);
    else
        *job = (struct http_job){.heavy = true, .destroy = destroy_job};
    return job;
}

static void begin_or_fail(
    struct request *request, struct http_job *job, const struct sgp_error *error)
{
    if (error->code == 0) {
        http_begin_job(request, job);
        return;
    }
    job->destroy(job);
    http_fail_error(request, error);
}

static void on_evaluated(void *argument, const struct sgp_error *error,
    const struct sgp_evaluation *evaluation, const struct sgp_measures *measures, sgp_round round,
    bool best)
{
    struct http_job *job = argument;
    if (job->request && error->code < 0)
        http_fail_error(job->request, error);
    else if (job->request)
        http_answer_json(job->request,
            render_evaluation(&job->request->control->model, evaluation, measures, round, best));
    http_end_job(job);
}

static void serve_evaluate(struct request *request)
{
    const struct view_actions *actions = &request->control->actions;
    struct http_job *job = create_job(request, 0);
    struct sgp_error error = {0};
    if (!job)
        return;
    error.code = actions->evaluate ? actions->evaluate(actions->context, on_evaluated, job, &error)
                                   : sgp_fail(&error, SGP_E_STATE, "%s", actions->no_model);
    begin_or_fail(request, job, &error);
}

static void on_left(void *argument, int code, const char *heir, double weight, double owed)
{
    struct http_job *job = argument;
    if (job->request && code < 0)
        http_fail_code(job->request, code);
    else if (job->request)
        http_answer_json(job->request, render_left(heir, weight, owed));
    http_end_job(job);
}

/* Answered when the node has left. A client does not have to wait for that. */
static void serve_leave(struct request *request)
{
    const struct view_actions *actions = &request->control->actions;
    const char *obstacle = actions->leave_obstacle(actions->context);
    if (obstacle) {
        http_fail(request, MHD_HTTP_CONFLICT, "the node cannot leave: %s", obstacle);
        return;
    }
    struct http_job *job = create_job(request, 0);
    struct sgp_error error = {0};
    if (!job)
        return;
    error.code = actions->leave(actions->context, on_left, job);
    begin_or_fail(request, job, &error);
}

static void serve_restore(struct request *request)
{
    const struct view_actions *actions = &request->control->actions;
    const char *obstacle = actions->token_obstacle(actions->context);
    if (obstacle)
        http_fail(request, MHD_HTTP_CONFLICT, "the token cannot be restored here: %s", obstacle);
    else
        obey(request, actions->restore_token);
}

/* A model that is being downloaded: the head of the file, then the values from where they are
 * stored. */
struct download {
    struct control *control;
    void *head;
    size_t head_bytes;
    float *values;
    uint64_t bytes; /* of the whole file */
};

static void destroy_download(void *context)
{
    struct download *download = context;
    download->control->download_count--;
    free(download->head);
    free(download->values);
    free(download);
}

static ssize_t read_download(void *context, uint64_t position, char *buffer, size_t most)
{
    const struct download *download = context;
    bool in_head = position < download->head_bytes;
    uint64_t end = in_head ? download->head_bytes : download->bytes;
    const char *source = in_head
                             ? (const char *)download->head + position
                             : (const char *)download->values + (position - download->head_bytes);
    size_t bytes = end - position < most ? (size_t)(end - position) : most;
    memcpy(buffer, source, bytes);
    return bytes > 0 ? (ssize_t)bytes : MHD_CONTENT_READER_END_OF_STREAM;
}

#define DOWNLOAD_BLOCK_BYTES 65536u /* copied at a time, so that a download does not own the loop */

/* Takes ownership of the values. */
static void answer_model(struct request *request, float *values, sgp_round round, double weight)
{
    const struct view_model *model = &request->control->model;
    struct view_status status = ask_status(request->control);
    const bool is_best = status.best_exported && round == status.best.round;
    struct export *export = malloc(sizeof *export);
    struct download *download = calloc(1, sizeof *download);
    struct MHD_Response *response = NULL;
    int code = export && download ? 0 : -ENOMEM;
    if (code == 0) {
        export_init(export, model,
            &(struct export_moment){.node = status.name,
                .round = round,
                .weight = weight,
                .training = status.training,
                .test = status.test,
                .private_steps = status.private_steps,
                .best = is_best ? &status.best : NULL});
        struct sgp_model_contents contents = export_contents(export, values);
        code = sgp_safetensors_head(&contents, NULL, &download->head, &download->head_bytes);
    }
    if (code == 0) {
        download->control = request->control;
        download->values = values;
        download->bytes = download->head_bytes + sgp_model_values(model->model) * sizeof(float);
        response = MHD_create_response_from_callback(
            download->bytes, DOWNLOAD_BLOCK_BYTES, read_download, download, destroy_download);
    }
    if (response) {
        request->control->download_count++;
        http_answer(request, MHD_HTTP_OK, response, download->bytes, "application/octet-stream");
    } else {
        free(download ? download->head : NULL);
        free(download);
        free(values);
        http_fail_code(request, code < 0 ? code : -ENOMEM);
    }
    free(export);
}

static void on_estimated(
    void *argument, int code, float *estimate, uint64_t values, sgp_round round, double weight)
{
    struct http_job *job = argument;
    if (!job->request) {
        free(estimate);
    } else if (code < 0) {
        http_fail_code(job->request, code);
    } else {
        sgp_assert(values == sgp_model_values(job->request->control->model.model));
        answer_model(job->request, estimate, round, weight);
    }
    http_end_job(job);
}

/* A model that is being fetched takes as much memory as a model that is being prepared. */
static void serve_model(struct request *request)
{
    const struct view_actions *actions = &request->control->actions;
    struct http_job *job = create_job(request, request->control->download_count);
    struct sgp_error error = {0};
    if (!job)
        return;
    error.code = actions->estimate ? actions->estimate(actions->context, on_estimated, job, &error)
                                   : SGP_E_STATE;
    begin_or_fail(request, job, &error);
}

const struct endpoint endpoints[] = {
    {"GET", "/v1/status", false, false, serve_status},
    {"GET", "/v1/peers", false, false, readers_peers},
    {"GET", "/v1/topology", false, false, readers_topology},
    {"GET", "/v1/history", false, false, readers_history},
    {"GET", "/v1/scaling", false, false, serve_scaling},
    {"GET", "/v1/model", false, false, serve_model},
    {"GET", "/v1/fleet", false, false, readers_fleet},
    {"GET", "/v1/report", false, false, reports_report},
    {"GET", "/v1/invitations", false, false, invitations_list},
    {"GET", "/v1/rollout", false, false, rollouts_show},
    {"GET", "/v1/rollout/log", false, false, rollouts_log},
    {"GET", "/v1/rollout/document", false, false, rollouts_document},
    {"GET", "/metrics", false, false, readers_metrics},
    {"POST", "/v1/predict", false, true, predict_serve},
    {"POST", "/v1/evaluate", false, false, serve_evaluate},
    {"POST", "/v1/evaluate/fleet", false, false, reports_evaluate},
    {"POST", "/v1/pause", true, false, serve_pause},
    {"POST", "/v1/resume", true, false, serve_resume},
    {"POST", "/v1/checkpoint", true, false, serve_checkpoint},
    {"POST", "/v1/reload", true, false, serve_reload},
    {"POST", "/v1/rollout", true, true, rollouts_push},
    {"POST", "/v1/stop", true, false, serve_stop},
    {"POST", "/v1/reset", true, false, serve_reset},
    {"POST", "/v1/reset/join", true, false, serve_join},
    {"POST", "/v1/invite", true, false, invitations_invite},
    {"POST", "/v1/leave", true, false, serve_leave},
    {"POST", "/v1/restore", true, false, serve_restore},
};
const size_t endpoint_count = sizeof endpoints / sizeof endpoints[0];
