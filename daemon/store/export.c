/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors and tags of a model file; see export.h. */
#include "export.h"

#include "train/names.h"

#include "sgp/version.h"

#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

static void add_tensors(struct export *export, const struct sgp_model *model)
{
    struct sgp_model_tensor tensors[SGP_MODEL_TENSORS_MAX];
    uint32_t count = model->layer_count > 0 ? sgp_model_tensors(model, tensors) : 0;
    uint64_t first = 0;
    for (uint32_t i = 0; i < count; first += tensors[i++].count) {
        const struct sgp_model_tensor *from = &tensors[i];
        struct sgp_file_tensor *tensor = &export->own[export->tensor_count++];
        *tensor = (struct sgp_file_tensor){.first = first, .count = from->count};
        memcpy(tensor->shape, from->shape, from->dimensions * sizeof *from->shape);
        (void)snprintf(
            tensor->name, sizeof tensor->name, "layers.%" PRIu32 ".%s", from->layer, from->name);
    }
}

static void add_tag(struct export *export, const char *key, const char *value)
{
    sgp_assert(export->tag_count < EXPORT_TAGS_MAX);
    export->tags[export->tag_count++] = (struct sgp_file_tag){key, value};
}

/* A number, unless it is unknown. */
static void add_number(struct export *export, const char *key, double number, int digits)
{
    char *text = export->numbers[export->number_count++];
    if (!isfinite(number))
        return;
    (void)snprintf(text, EXPORT_NUMBER_BYTES, "%.*g", digits, number);
    add_tag(export, key, text);
}

/* The origin of the model. Nodes with equal fingerprints may train together on this model. */
static void add_provenance(
    struct export *export, const struct view_model *model, const struct export_moment *moment)
{
    const struct sgp_fingerprint *print = model->fingerprint;
    const time_t now = time(NULL);
    struct tm calendar;
    (void)snprintf(export->node, sizeof export->node, "%s", moment->node);
    add_tag(export, "node", export->node);
    add_number(export, "round", (double)moment->round, 15);
    add_number(export, "weight", moment->weight, 17);
    add_tag(export, "version", sgp_version());
    (void)strftime(
        export->created, sizeof export->created, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &calendar));
    add_tag(export, "created", export->created);
    if (!print)
        return;
    const uint64_t parts[] = {print->shape, print->loss, print->classes, print->scaling};
    (void)snprintf(export->fingerprint, sizeof export->fingerprint, "%016" PRIx64,
        XXH3_64bits(parts, sizeof parts));
    add_tag(export, "fingerprint", export->fingerprint);
}

/* How far the model was trained, and its test results on the rows of this node. */
static void add_measures(struct export *export, const struct export_moment *moment)
{
    add_number(export, "epoch", isnan(moment->training.loss) ? NAN : moment->training.epoch, 6);
    add_number(export, "train_loss", moment->training.loss, 9);
    if (moment->test.samples > 0 && isfinite(moment->test.loss)) {
        add_number(export, "test_rows", (double)moment->test.samples, 15);
        add_number(export, "test_loss", moment->test.loss, 9);
        add_number(export, "test_accuracy", moment->test.accuracy, 9);
    }
}

/* What all nodes have measured of a model that they keep, on their held-out rows. */
static void add_best(struct export *export, const struct view_best *best)
{
    add_tag(export, "fleet_measure", best->measure);
    add_number(export, "fleet_value", best->value, 9);
    add_number(export, "fleet_count", (double)best->count, 15);
}

/* The loss, with the settings that it uses. Class weights matter for training alone, and stay in
 * the configuration. */
static void add_loss(struct export *export, const struct sgp_model *model)
{
    const unsigned uses = sgp_loss_uses(model->loss);
    add_tag(export, "loss", sgp_loss_name(model->loss));
    if (uses & SGP_LOSS_USES_SMOOTHING)
        add_number(export, "label_smoothing", model->loss_settings.label_smoothing, 9);
    if (uses & SGP_LOSS_USES_DELTA)
        add_number(export, "huber_delta", model->loss_settings.huber_delta, 9);
}

/* The columns that a row must have, and what the outputs mean. */
static void add_columns(struct export *export, const struct view_model *model)
{
    add_number(export, "inputs", model->model->inputs, 15);
    if (model->columns_text)
        add_tag(export, "columns", model->columns_text);
    if (model->columns_text)
        add_tag(export, "missing", model->missing == SGP_MISSING_MEAN ? "mean" : "error");
    if (model->label)
        add_tag(export, "label", model->label);
    if (model->targets_text)
        add_tag(export, "targets", model->targets_text);
}

void export_init(
    struct export *export, const struct view_model *view, const struct export_moment *moment)
{
    const struct sgp_model *model = view->model;
    const struct sgp_model_file *layout = view->layout;
    *export = (struct export){.tensors = layout ? layout->tensors : export->own,
        .tensor_count = layout ? layout->tensor_count : 0};
    add_tensors(export, model);
    add_provenance(export, view, moment);
    if (moment->best != NULL)
        add_best(export, moment->best);
    else if (!moment->private_steps)
        add_measures(export, moment);
    if (layout)
        return;
    sgp_model_text(model, export->layers);
    add_tag(export, "layers", export->layers);
    sgp_model_local_text(model, export->local);
    if (export->local[0] != '\0')
        add_tag(export, "local", export->local);
    add_loss(export, model);
    add_columns(export, view);
    if (view->class_names) {
        (void)sgp_names_join(
            view->class_names, model->outputs, export->classes, sizeof export->classes);
        add_tag(export, "classes", export->classes);
    }
}

/* The head of a file, with its length in front. NULL: there is none. */
static void *read_head(int fd, size_t *ret_bytes)
{
    uint64_t length;
    if (pread(fd, &length, sizeof length, 0) != (ssize_t)sizeof length ||
        (length = le64toh(length)) > SGP_FILE_HEADER_BYTES_MAX)
        return NULL;
    *ret_bytes = sizeof length + (size_t)length;
    void *head = malloc(*ret_bytes);
    if (head != NULL && pread(fd, head, *ret_bytes, 0) == (ssize_t)*ret_bytes)
        return head;
    free(head);
    return NULL;
}

sgp_round export_round_of(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    struct sgp_model_file *file = NULL;
    struct sgp_error error = {0};
    struct stat status;
    size_t bytes = 0;
    const bool plain = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    void *head = plain ? read_head(fd, &bytes) : NULL;
    if (fd >= 0)
        (void)close(fd);
    if (head != NULL && (uint64_t)status.st_size >= bytes)
        (void)sgp_safetensors_layout(
            head, bytes, (uint64_t)status.st_size - bytes, path, &error, &file);
    const char *round = file != NULL ? sgp_model_file_tag(file, "round") : NULL;
    const sgp_round found = round != NULL ? (sgp_round)strtoll(round, NULL, 10) : SGP_ROUND_NONE;
    sgp_model_file_destroy(file);
    free(head);
    return found;
}

struct sgp_model_contents export_contents(const struct export *export, const float *values)
{
    return (struct sgp_model_contents){.values = values,
        .tensors = export->tensors,
        .tensor_count = export->tensor_count,
        .tags = export->tags,
        .tag_count = export->tag_count};
}
