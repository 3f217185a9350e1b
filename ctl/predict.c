/* SPDX-License-Identifier: Apache-2.0 */
/* The predictions of a running daemon, or of a model file. */
#include "ctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_BYTES_MAX (4u << 20) /* the daemon accepts no larger body */

/* All of a stream, at most ROWS_BYTES_MAX bytes; the caller frees *ret_bytes. */
static int read_all(FILE *file, char **ret_bytes, size_t *ret_count)
{
    char *bytes = malloc(ROWS_BYTES_MAX + 1);
    if (!bytes)
        return -ENOMEM;
    errno = 0;
    size_t count = fread(bytes, 1, ROWS_BYTES_MAX + 1, file);
    int code = ferror(file)             ? -(errno != 0 ? errno : EIO)
               : count > ROWS_BYTES_MAX ? SGP_E_LIMIT
                                        : 0;
    if (code < 0) {
        free(bytes);
        return code;
    }
    *ret_bytes = bytes;
    *ret_count = count;
    return 0;
}

static enum ctl_exit read_rows(
    struct ctl *ctl, const char *path, char **ret_bytes, size_t *ret_count)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "rb");
    int code = file ? read_all(file, ret_bytes, ret_count) : -errno;
    if (file && !standard)
        (void)fclose(file);
    if (code == SGP_E_LIMIT)
        return ctl_fail(ctl, CTL_INVALID, "%s: larger than %u MiB; send fewer rows at a time", path,
            ROWS_BYTES_MAX >> 20);
    if (code < 0)
        return ctl_fail(ctl, CTL_INVALID, "%s: %s", path, sgp_strerror(code));
    return CTL_DONE;
}

/* One line a row: its class with the output that selected the class, or all its outputs. */
static json_t *prediction_rows(const json_t *answer)
{
    const json_t *labels = json_object_get(answer, "labels");
    json_t *rows = json_array(), *outputs;
    size_t index, column;
    json_t *output;
    json_array_foreach(json_object_get(answer, "outputs"), index, outputs)
    {
        json_t *row = json_pack("{s:I}", "row", (json_int_t)index + 1);
        json_t *greatest = NULL;
        json_array_foreach(outputs, column, output)
        {
            char key[32];
            (void)snprintf(key, sizeof key, "output%zu", column);
            if (!json_is_array(labels))
                (void)json_object_set(row, key, output);
            else if (!greatest || json_number_value(output) > json_number_value(greatest))
                greatest = output;
        }
        if (json_is_array(labels)) {
            (void)json_object_set(row, "label", json_array_get(labels, index));
            (void)json_object_set(row, "output", greatest);
        }
        (void)json_array_append_new(rows, row);
    }
    return rows;
}

static void print_predictions(const struct ctl *ctl, const json_t *answer)
{
    const char *keys[CTL_COLUMNS_MAX];
    size_t count = 0;
    json_t *rows = prediction_rows(answer);
    const char *key;
    json_t *value;
    json_object_foreach(json_array_get(rows, 0), key, value) if (count < CTL_COLUMNS_MAX)
        keys[count++] = key;
    ctl_print_table(ctl, rows, keys, count);
    json_decref(rows);
}

static enum ctl_exit predict(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_request request = {
        .method = "POST", .path = "/v1/predict", .content_type = "text/csv", .patient = true};
    char *body = NULL;
    json_t *answer;
    struct ctl_given model = {0};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, &model, 1, 1, 1);
    if (status == CTL_DONE && model.given && (ctl->name || ctl->socket))
        return ctl_usage(ctl, "--model asks no daemon; leave it out, or -n and -s");
    if (status == CTL_DONE && model.given)
        return ctl_predict_file(ctl, model.value, argv[0]);
    if (status == CTL_DONE)
        status = read_rows(ctl, argv[0], &body, &request.body_bytes);
    if (status != CTL_DONE)
        return status;
    request.body = body;
    request.body_path = strcmp(argv[0], "-") == 0 ? "standard input" : argv[0];
    status = ctl_ask_json(ctl, &request, &answer);
    free(body);
    if (status != CTL_DONE)
        return status;
    if (ctl->json)
        return ctl_print_json(answer);
    print_predictions(ctl, answer);
    json_decref(answer);
    return CTL_DONE;
}

static const struct ctl_option predict_options[] = {
    {"--model", .value = "FILE",
        .summary = "a model.safetensors in the place of a daemon, which is not needed then"},
    {0}};

const struct ctl_command ctl_predict_command = {.words = "predict",
    .operands = "FILE",
    .options = predict_options,
    .summary = "what the model says of the rows in FILE",
    .help =
        "FILE is CSV as the training data is, a line of column names and rows without the label,\n"
        "scaled as the daemon's configuration says; or JSON, {\"rows\": [[...], ...]}, features\n"
        "as the model takes them. `-` is standard input. At most 4 MiB.\n"
        "A classifier answers with the class and its output (a probability for cross-entropy),\n"
        "other models with their outputs; of more than 31 outputs a row --json has all. A program\n"
        "that has the model answers between two of its steps, if it was attached with "
        "on_predict.\n"
        "\n"
        "With --model, FILE is CSV, plain or gzip, of any size, with the columns as they were\n"
        "before scaling. They are found by name; other columns are not used. The answer is CSV:\n"
        "the class and the probability of each class; or each label column, with its probability\n"
        "if it is 0 or 1. With --json it is one object a row. If the label columns are there, the\n"
        "predictions are measured: accuracy, log loss, F1, AUC and calibration; precision and\n"
        "recall of each class, and the confusion matrix; of numbers R2, mean absolute and squared\n"
        "error. That is on standard error, or with --json a last object. A row that the model\n"
        "cannot take ends the command with 6; the rows before it have been printed.\n",
    .run = predict};
