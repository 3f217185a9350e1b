/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/predict: rows from a body, through the model, to labels and outputs.
 *
 * A body that begins with { or [ is JSON: {"rows": [[...], ...]} or the array alone. Its features
 * are as the model takes them (image bytes divided by 255, columns scaled). Any other body is CSV
 * like the training data: a line of names, then rows, scaled as configured. A program takes numbers
 * unchanged.
 *
 * Parsing and rendering run off the loop thread (offload.h). They touch only their own struct and
 * constants. The rest runs on the loop thread. The body is untrusted input: an invalid body fails
 * with 400 and the line. */
#include "endpoints.h"

#include "render.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct predict {
    struct http_job job;
    struct offload offload; /* to parse the body, then to render the outputs */
    struct view_actions actions;
    struct view_model model;
    char *body; /* owned; zero-terminated */
    size_t body_bytes;
    float *features; /* rows x inputs, owned */
    uint64_t rows;
    uint32_t inputs; /* of a row: the model's; 0: a program's, as many as the first row has */
    float *outputs;  /* rows x output_count, owned; NULL until the model has answered */
    uint64_t output_count;
    char *text; /* the answer; NULL: no memory, or it failed */
    size_t bytes;
    unsigned status; /* of the answer if parsing or rendering failed, else 0 */
    struct sgp_error error;
};

static void destroy_predict(struct http_job *job)
{
    struct predict *predict = (struct predict *)job;
    free(predict->body);
    free(predict->features);
    free(predict->outputs);
    free(predict->text);
    free(predict);
}

static void __attribute__((format(printf, 3, 4)))
refuse(struct predict *predict, unsigned status, const char *format, ...)
{
    va_list arguments;
    char text[SGP_TEXT_BYTES];
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    predict->status = status;
    (void)sgp_fail(&predict->error, SGP_E_DATA, "%s", text);
}

/* Whether `rows` rows are allowed, and memory for them. */
static bool make_room(struct predict *predict, uint64_t rows)
{
    uint64_t inputs = predict->inputs;
    if (rows == 0)
        refuse(predict, MHD_HTTP_BAD_REQUEST, "the body has no rows; send at least one");
    else if (inputs == 0)
        refuse(predict, MHD_HTTP_BAD_REQUEST, "row 1 has no features; send arrays of numbers");
    else if (rows > CONTROL_ROWS_MAX || rows * inputs * sizeof(float) > CONTROL_FEATURE_BYTES_MAX)
        refuse(predict, MHD_HTTP_CONTENT_TOO_LARGE,
            "%llu rows are more than %u, or than %u MiB of features; send fewer at a time",
            (unsigned long long)rows, CONTROL_ROWS_MAX, CONTROL_FEATURE_BYTES_MAX >> 20);
    else if (rows * predict->model.model->outputs > CONTROL_OUTPUTS_MAX)
        refuse(predict, MHD_HTTP_CONTENT_TOO_LARGE,
            "%llu rows of %u outputs are more than %u in all; send fewer at a time",
            (unsigned long long)rows, predict->model.model->outputs, CONTROL_OUTPUTS_MAX);
    if (predict->status)
        return false;
    sgp_assert(rows > 0 && inputs > 0);
    predict->features = malloc(rows * inputs * sizeof(float));
    if (!predict->features)
        refuse(predict, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory; send fewer rows");
    predict->rows = rows;
    return predict->features != NULL;
}

/* JSON (off the loop thread). */

static bool parse_row(struct predict *predict, size_t index, const json_t *row)
{
    uint32_t inputs = predict->inputs;
    float *features = predict->features + index * inputs;
    if (!json_is_array(row) || json_array_size(row) != inputs) {
        refuse(predict, MHD_HTTP_BAD_REQUEST,
            "row %zu has %zu features; the model takes arrays of %u numbers", index + 1,
            json_array_size(row), inputs);
        return false;
    }
    for (uint32_t i = 0; i < inputs; i++) {
        const json_t *value = json_array_get(row, i);
        features[i] = (float)json_number_value(value);
        if (json_is_number(value) && isfinite(features[i]))
            continue;
        refuse(predict, MHD_HTTP_BAD_REQUEST,
            "row %zu, feature %u is not a number that a float32 can hold", index + 1, i + 1);
        return false;
    }
    return true;
}

static void parse_json(struct predict *predict)
{
    json_error_t why;
    json_t *root = json_loadb(predict->body, predict->body_bytes, JSON_REJECT_DUPLICATES, &why);
    const json_t *rows = json_is_object(root) ? json_object_get(root, "rows") : root;
    if (predict->inputs == 0)
        predict->inputs = (uint32_t)json_array_size(json_array_get(rows, 0));
    if (!root)
        refuse(predict, MHD_HTTP_BAD_REQUEST, "body:%d: %s; send {\"rows\": [[...], ...]}",
            why.line, why.text);
    else if (!json_is_array(rows))
        refuse(predict, MHD_HTTP_BAD_REQUEST,
            "the body has no array of rows; send {\"rows\": [[...], ...]}");
    else if (make_room(predict, json_array_size(rows)))
        for (size_t i = 0; i < json_array_size(rows); i++)
            if (!parse_row(predict, i, json_array_get(rows, i)))
                break;
    json_decref(root);
}

/* CSV (off the loop thread). The reader takes files, so the body becomes a file in memory. */

static int body_as_file(const struct predict *predict)
{
    int descriptor = memfd_create("predict", MFD_CLOEXEC);
    size_t written = 0;
    while (descriptor >= 0 && written < predict->body_bytes) {
        ssize_t bytes = write(descriptor, predict->body + written, predict->body_bytes - written);
        if (bytes < 0) {
            (void)close(descriptor);
            return -1;
        }
        written += (size_t)bytes;
    }
    return descriptor;
}

static uint64_t count_lines(const struct predict *predict)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < predict->body_bytes; i++)
        lines += predict->body[i] == '\n';
    return lines + (predict->body[predict->body_bytes - 1] != '\n');
}

static void take_dataset(struct predict *predict, const struct sgp_dataset *dataset)
{
    if (predict->inputs == 0)
        predict->inputs = dataset->features;
    if (dataset->features != predict->inputs) {
        refuse(predict, MHD_HTTP_BAD_REQUEST,
            "the rows have %u features and the model takes %u; send the feature columns alone",
            dataset->features, predict->inputs);
        return;
    }
    if (predict->model.columns != 0 &&
        predict->model.columns != sgp_dataset_scaling_digest(dataset)) {
        refuse(predict, MHD_HTTP_BAD_REQUEST,
            "body:1: other columns than the training data has, or in another order; send its line "
            "of names without the label");
        return;
    }
    if (!make_room(predict, dataset->rows))
        return;
    for (uint32_t i = 0; i < dataset->rows; i++)
        sgp_dataset_gather(
            dataset, predict->features + (uint64_t)i * dataset->features, NULL, NULL, &i, 1, 0);
}

static void parse_csv(struct predict *predict)
{
    /* A body that could hold too many features is refused before it is read. The first line has the
     * names. */
    uint64_t lines = count_lines(predict);
    if (lines - 1 > CONTROL_ROWS_MAX ||
        lines * predict->inputs * sizeof(float) > CONTROL_FEATURE_BYTES_MAX) {
        (void)make_room(predict, CONTROL_ROWS_MAX + 1);
        return;
    }
    int descriptor = body_as_file(predict);
    if (descriptor < 0) {
        refuse(predict, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory; send fewer rows");
        return;
    }
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    const struct sgp_csv_options options = {.scaling = predict->model.scaling,
        .missing =
            predict->model.missing == SGP_MISSING_MEAN ? SGP_MISSING_MEAN : SGP_MISSING_ERROR};
    struct sgp_error why = {0};
    struct sgp_dataset *dataset = NULL;
    int code = sgp_dataset_read_csv(path, &options, &why, &dataset);
    if (code < 0) {
        size_t prefix = strlen(path);
        bool named = strncmp(why.text, path, prefix) == 0;
        bool starved = code == -ENOMEM || code == -EMFILE || code == -ENFILE;
        refuse(predict, starved ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_BAD_REQUEST, "body%s%s",
            named ? "" : ": ", named ? why.text + prefix : why.text);
    } else {
        take_dataset(predict, dataset);
    }
    sgp_dataset_destroy(dataset);
    (void)close(descriptor);
}

static struct predict *of_offload(struct offload *offload)
{
    return (struct predict *)((char *)offload - offsetof(struct predict, offload));
}

static void parse_body(struct offload *offload)
{
    struct predict *predict = of_offload(offload);
    const unsigned char *body = (const unsigned char *)predict->body;
    size_t blanks = strspn(predict->body, " \t\r\n");
    if (blanks == predict->body_bytes)
        refuse(predict, MHD_HTTP_BAD_REQUEST,
            "the body is empty; send {\"rows\": [[...], ...]}, or CSV with a line of names");
    else if (predict->body_bytes >= 2 && body[0] == 0x1f && body[1] == 0x8b)
        refuse(predict, MHD_HTTP_BAD_REQUEST, "the body is compressed; send it unpacked");
    else if (body[blanks] == '{' || body[blanks] == '[')
        parse_json(predict);
    else
        parse_csv(predict);
}

/* Outputs (off the loop thread). JSON cannot represent an infinity. */

static bool are_finite(struct predict *predict)
{
    uint64_t width = predict->output_count;
    for (uint64_t i = 0; i < predict->rows * width; i++) {
        if (isfinite(predict->outputs[i]))
            continue;
        refuse(predict, MHD_HTTP_BAD_REQUEST,
            "row %llu: output %llu of the model is not a finite number; the features are too "
            "large, or the model has diverged",
            (unsigned long long)(i / width + 1), (unsigned long long)(i % width + 1));
        return false;
    }
    return true;
}

static void render(struct offload *offload)
{
    struct predict *predict = of_offload(offload);
    if (are_finite(predict))
        predict->text = http_dump(render_prediction(&predict->model, predict->outputs,
                                      predict->rows, predict->output_count),
            &predict->bytes);
}

/* The steps of a request, on the loop thread. */

static bool is_wanted(struct offload *offload)
{
    return of_offload(offload)->job.request != NULL;
}

static void on_rendered(struct offload *offload)
{
    struct predict *predict = of_offload(offload);
    struct request *request = predict->job.request;
    if (request && predict->status) {
        http_fail(request, predict->status, "%s", predict->error.text);
    } else if (request && predict->text) {
        http_answer_text(request, predict->text, predict->bytes, "application/json");
        predict->text = NULL;
    } else if (request) {
        http_fail_code(request, -ENOMEM);
    }
    http_end_job(&predict->job);
}

static void push(struct predict *predict, void (*run)(struct offload *offload),
    void (*end)(struct offload *offload))
{
    struct control *control = predict->job.control;
    predict->offload = (struct offload){.begin = is_wanted, .run = run, .end = end};
    offloads_push(&control->offloads, &predict->offload);
}

static void on_predicted(void *argument, const struct sgp_error *error, const float *outputs,
    uint64_t rows, uint64_t output_count)
{
    struct predict *predict = argument;
    struct request *request = predict->job.request;
    sgp_assert(error->code < 0 || rows == predict->rows);
    if (request && error->code == 0)
        predict->outputs = malloc(rows * output_count * sizeof *outputs + 1);
    if (predict->outputs) {
        memcpy(predict->outputs, outputs, rows * output_count * sizeof *outputs);
        predict->output_count = output_count;
        push(predict, render, on_rendered);
        predict->job.control->pump(predict->job.control);
        return;
    }
    if (request && error->code < 0)
        http_fail_error(request, error);
    else if (request)
        http_fail_code(request, -ENOMEM);
    http_end_job(&predict->job);
}

static void on_parsed(struct offload *offload)
{
    struct predict *predict = of_offload(offload);
    struct request *request = predict->job.request;
    struct sgp_error error = {0};
    if (request && predict->status == 0) {
        error.code = predict->actions.predict(predict->actions.context, predict->features,
            predict->rows, predict->inputs, on_predicted, predict, &error);
        if (error.code == 0)
            return;
    }
    if (request && predict->status)
        http_fail(request, predict->status, "%s", predict->error.text);
    else if (request)
        http_fail_error(request, &error);
    http_end_job(&predict->job);
}

void predict_serve(struct request *request)
{
    const struct view_actions *actions = &request->control->actions;
    struct sgp_error error = {0};
    if (!actions->predict) {
        (void)sgp_fail(&error, SGP_E_STATE, "%s", actions->no_model);
        http_fail_error(request, &error);
        return;
    }
    if (!http_room_for_job(request, 0) || !http_room_for_answer(request))
        return;
    struct predict *predict = calloc(1, sizeof *predict);
    /* A request without a body has none to hand over. */
    char *body = request->body ? request->body : calloc(1, 1);
    request->body = NULL;
    if (!predict || !body) {
        free(predict);
        free(body);
        http_fail_code(request, -ENOMEM);
        return;
    }
    *predict = (struct predict){.job = {.heavy = true, .destroy = destroy_predict},
        .actions = *actions,
        .model = request->control->model,
        .inputs = request->control->model.model->inputs,
        .body = body,
        .body_bytes = request->body_bytes};
    http_begin_job(request, &predict->job);
    push(predict, parse_body, on_parsed);
}
