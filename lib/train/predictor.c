/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a model file, the content of its tags, and the memory of a block of rows in the model; see
 * sgp/predictor.h. The tags are untrusted: a file's digest detects damage, not intent. */
#include "sgp/predictor.h"

#include "csv.h"
#include "loss.h"
#include "names.h"
#include "network.h"
#include "scaling.h"
#include "target_scale.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_ROWS 256u
#define BLOCK_FLOATS (1u << 22) /* of the widest layer, for a block */

struct sgp_predictor {
    struct sgp_model_file *file;
    char *name; /* of the file, for messages */
    struct sgp_model model;
    struct sgp_network network;
    struct sgp_scaling *scaling;            /* NULL: the file names no columns */
    struct sgp_target_scale *target_scales; /* of the outputs; NULL: they are numbers as they are */
    uint32_t target_scale_count;
    char **classes;
    uint32_t class_count;
    char **labels;
    uint32_t label_count;
    enum sgp_missing missing;
    float *predictions; /* of a block */
};

/* ---- the tags ---- */

static int fail_tag(const struct sgp_predictor *predictor, const char *tag, const char *what,
    struct sgp_error *error)
{
    return sgp_fail(error, SGP_E_FILE, "%s: tag '%s' %s", predictor->name, tag, what);
}

/* Read the number of inputs. A file of an earlier build does not state it; then the first matrix
 * gives it. */
static int read_inputs(
    const struct sgp_predictor *predictor, struct sgp_error *error, uint32_t *ret_inputs)
{
    const char *text = sgp_model_file_tag(predictor->file, "inputs");
    char *end = NULL;
    uint64_t inputs = text ? strtoull(text, &end, 10) : predictor->file->tensors[0].shape[1];
    if (inputs == 0 || inputs > SGP_INPUTS_MAX || (end && (*end || end == text)))
        return fail_tag(predictor, "inputs", "is no number of inputs", error);
    *ret_inputs = (uint32_t)inputs;
    return 0;
}

/* Check that the tensors of the file are those of the model. */
static int check_tensors(const struct sgp_predictor *predictor, struct sgp_error *error)
{
    struct sgp_tensor_end own[SGP_MODEL_TENSORS_MAX];
    const struct sgp_model_file *file = predictor->file;
    const uint32_t count = sgp_model_ends(&predictor->model, false, own);
    bool same = count == file->tensor_count && file->value_count == predictor->model.parameters;
    for (uint32_t i = 0; same && i < count; i++)
        same = own[i].end == file->tensors[i].first + file->tensors[i].count;
    return same ? 0
                : sgp_fail(error, SGP_E_FILE,
                      "%s: its %llu values in %u tensors do not fit its layers, which take %llu in "
                      "%u",
                      predictor->name, (unsigned long long)file->value_count, file->tensor_count,
                      (unsigned long long)predictor->model.parameters, count);
}

static int read_model(struct sgp_predictor *predictor, struct sgp_error *error)
{
    const char *layers = sgp_model_file_tag(predictor->file, "layers");
    const char *loss = sgp_model_file_tag(predictor->file, "loss");
    struct sgp_error why = {0};
    uint32_t inputs = 0;
    if (!layers)
        return sgp_fail(error, SGP_E_FILE,
            "%s: it has no tag 'layers': the model is a program's, which alone can use it",
            predictor->name);
    if (!loss || !sgp_loss_find(loss))
        return fail_tag(predictor, "loss", "is missing, or no loss of this build", error);
    int code = read_inputs(predictor, error, &inputs);
    if (code < 0)
        return code;
    code = sgp_model_init(&predictor->model, layers, sgp_loss_find(loss), inputs, &why);
    if (code < 0)
        return sgp_fail(error, code, "%s: tag 'layers': %s", predictor->name, why.text);
    return check_tensors(predictor, error);
}

static int read_names(const struct sgp_predictor *predictor, const char *tag,
    const char *separators, struct sgp_error *error, char ***ret_names, uint32_t *ret_count)
{
    const char *text = sgp_model_file_tag(predictor->file, tag);
    struct sgp_error why = {0};
    int code = text ? sgp_names_split(text, separators, &why, ret_names, ret_count) : 0;
    if (code < 0)
        return sgp_fail(error, SGP_E_FILE, "%s: tag '%s': %s", predictor->name, tag, why.text);
    return 0;
}

/* Read the meaning of the outputs. */
static int read_outputs(struct sgp_predictor *predictor, struct sgp_error *error)
{
    const uint32_t outputs = predictor->model.outputs;
    const unsigned takes = sgp_loss_takes(predictor->model.loss);
    int code = read_names(predictor, "classes", SGP_NAMES_CLASSES, error, &predictor->classes,
        &predictor->class_count);
    if (code == 0)
        code = read_names(predictor, "label", SGP_NAMES_COLUMNS, error, &predictor->labels,
            &predictor->label_count);
    if (code < 0)
        return code;
    if (predictor->classes &&
        (predictor->class_count != outputs || !(takes & SGP_LOSS_TAKES_CLASS)))
        return fail_tag(predictor, "classes", "does not name one class for each output", error);
    if (predictor->labels && predictor->label_count != (predictor->classes ? 1 : outputs))
        return fail_tag(predictor, "label", "does not name a column for each output", error);
    return 0;
}

/* Read how outputs become numbers of the label columns. */
static int read_targets(struct sgp_predictor *predictor, struct sgp_error *error)
{
    const char *text = sgp_model_file_tag(predictor->file, "targets");
    struct sgp_error why = {0};
    if (!text)
        return 0;
    if (predictor->classes)
        return fail_tag(predictor, "targets", "does not go with classes", error);
    json_t *list = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    int code = sgp_target_scales_parse(
        list, "tag 'targets'", &why, &predictor->target_scales, &predictor->target_scale_count);
    json_decref(list);
    if (code < 0)
        return sgp_fail(error, SGP_E_FILE, "%s: %s", predictor->name, why.text);
    struct sgp_loss_settings settings = predictor->model.loss_settings;
    settings.target_scales = predictor->target_scales;
    settings.target_scale_count = predictor->target_scale_count;
    code = sgp_model_set_loss(&predictor->model, &settings, &why);
    return code < 0
               ? sgp_fail(error, SGP_E_FILE, "%s: tag 'targets': %s", predictor->name, why.text)
               : 0;
}

static int read_columns(struct sgp_predictor *predictor, struct sgp_error *error)
{
    const char *text = sgp_model_file_tag(predictor->file, "columns");
    const char *missing = sgp_model_file_tag(predictor->file, "missing");
    struct sgp_error why = {0};
    predictor->missing =
        missing && strcmp(missing, "mean") == 0 ? SGP_MISSING_MEAN : SGP_MISSING_ERROR;
    if (!text) {
        predictor->missing = SGP_MISSING_ERROR;
        return 0;
    }
    int code = sgp_scaling_parse(text, strlen(text), "columns", &why, &predictor->scaling);
    if (code < 0)
        return sgp_fail(error, SGP_E_FILE, "%s: tag '%s'", predictor->name, why.text);
    if (predictor->scaling->targets) /* rows would be scored in other units */
        return fail_tag(predictor, "columns", "has targets, which the tag 'targets' tells", error);
    if (sgp_scaling_features(predictor->scaling) != predictor->model.inputs)
        return fail_tag(
            predictor, "columns", "does not make as many features as the model takes", error);
    return 0;
}

/* ---- life ---- */

static int allocate(struct sgp_predictor *predictor, struct sgp_error *error)
{
    const struct sgp_model *model = &predictor->model;
    if (sgp_network_load(model, SGP_PRECISION_FLOAT32, error) < 0)
        return SGP_E_CONFIG;
    uint32_t widest = model->inputs;
    for (uint32_t l = 0; l < model->layer_count; l++)
        if (model->layers[l].outputs > widest)
            widest = model->layers[l].outputs;
    const uint32_t fit = BLOCK_FLOATS / widest > 0 ? BLOCK_FLOATS / widest : 1;
    const uint32_t rows = fit < BLOCK_ROWS ? fit : BLOCK_ROWS;
    int code = sgp_network_init(&predictor->network, model, SGP_PRECISION_FLOAT32, rows, 0, 1);
    predictor->predictions =
        code == 0 ? calloc((size_t)rows * model->outputs, sizeof(float)) : NULL;
    if (code == 0 && !predictor->predictions)
        code = -ENOMEM;
    return code < 0 ? sgp_fail(error, code, "%s: the model does not fit in memory", predictor->name)
                    : 0;
}

void sgp_predictor_destroy(struct sgp_predictor *predictor)
{
    if (!predictor)
        return;
    sgp_network_finish(&predictor->network);
    sgp_scaling_destroy(predictor->scaling);
    sgp_target_scales_free(predictor->target_scales, predictor->target_scale_count);
    sgp_names_free(predictor->classes, predictor->class_count);
    sgp_names_free(predictor->labels, predictor->label_count);
    sgp_model_file_destroy(predictor->file);
    free(predictor->predictions);
    free(predictor->name);
    free(predictor);
}

int sgp_predictor_create(struct sgp_model_file *file, const char *name, struct sgp_error *error,
    struct sgp_predictor **ret_predictor)
{
    struct sgp_predictor *predictor = calloc(1, sizeof *predictor);
    if (!predictor) {
        sgp_model_file_destroy(file);
        return sgp_fail(error, -ENOMEM, "%s: out of memory", name);
    }
    predictor->file = file;
    predictor->name = strdup(name);
    int code = predictor->name ? 0 : sgp_fail(error, -ENOMEM, "%s: out of memory", name);
    if (code == 0)
        code = read_model(predictor, error);
    if (code == 0)
        code = read_outputs(predictor, error);
    if (code == 0)
        code = read_targets(predictor, error);
    if (code == 0)
        code = read_columns(predictor, error);
    if (code == 0)
        code = allocate(predictor, error);
    if (code < 0) {
        sgp_predictor_destroy(predictor);
        return code;
    }
    *ret_predictor = predictor;
    return 0;
}

int sgp_predictor_open(
    const char *path, struct sgp_error *error, struct sgp_predictor **ret_predictor)
{
    struct sgp_model_file *file = NULL;
    int code = sgp_safetensors_read(path, error, &file);
    return code < 0 ? code : sgp_predictor_create(file, path, error, ret_predictor);
}

struct sgp_predictor_view sgp_predictor_view(const struct sgp_predictor *predictor)
{
    const unsigned takes = sgp_loss_takes(predictor->model.loss);
    return (struct sgp_predictor_view){.file = predictor->file,
        .model = &predictor->model,
        .classes = (const char *const *)predictor->classes,
        .labels = (const char *const *)predictor->labels,
        .label_count = predictor->label_count,
        .scaling = predictor->scaling,
        .missing = predictor->missing,
        .classifies = predictor->classes || takes == SGP_LOSS_TAKES_CLASS,
        .bits = takes & SGP_LOSS_TAKES_BITS};
}

/* ---- rows ---- */

struct run {
    struct sgp_predictor *predictor;
    const char *name;
    sgp_predictor_take *take;
    void *context;
    uint64_t rows; /* so far */
    struct sgp_measures *measures;
};

/* Lower *rows to the number before the first output that is not finite, if there is one. */
static int check_outputs(const struct run *run, const float *outputs, uint32_t width,
    struct sgp_error *error, uint64_t *rows)
{
    for (uint64_t i = 0; i < *rows * width; i++) {
        if (isfinite(outputs[i]))
            continue;
        *rows = i / width;
        return sgp_fail(error, SGP_E_NOT_FINITE,
            "%s: row %llu: output %llu of the model is not a finite number; the features are "
            "too large, or the model has diverged",
            run->name, (unsigned long long)(run->rows + i / width + 1),
            (unsigned long long)(i % width + 1));
    }
    return 0;
}

/* Likewise for the first feature that is not in the vocabulary. */
static int check_vocabulary(
    const struct run *run, const struct sgp_dataset *block, struct sgp_error *error, uint64_t *rows)
{
    const uint32_t vocabulary = sgp_model_vocabulary(&run->predictor->model);
    float value;
    if (vocabulary == 0 || sgp_dataset_is_whole(block, vocabulary, rows, &value))
        return 0;
    return sgp_fail(error, SGP_E_DATA,
        "%s: row %llu has the feature %g, and the model takes whole numbers from 0 to %u",
        run->name, (unsigned long long)(run->rows + *rows + 1), (double)value, vocabulary - 1);
}

/* Predict the rows before the first wrong one, and return their number. *ret_outputs is what the
 * network gives, and *wrong the error of that row. */
static uint64_t predict(const struct run *run, const struct sgp_dataset *block,
    struct sgp_error *wrong, const float **ret_outputs)
{
    struct sgp_predictor *predictor = run->predictor;
    const struct sgp_model *model = &predictor->model;
    uint64_t rows = block->rows;
    (void)check_vocabulary(run, block, wrong, &rows);
    if (rows == 0)
        return 0;
    memcpy(predictor->network.activations[0], block->floats, rows * model->inputs * sizeof(float));
    *ret_outputs = sgp_network_forward(&predictor->network, predictor->file->values, 1.0, rows);
    sgp_loss_predict(model->loss, &model->loss_settings, predictor->predictions, *ret_outputs, rows,
        model->outputs);
    /* numbers may be far greater in the units of their columns */
    const float *const checked[] = {*ret_outputs, predictor->predictions};
    for (size_t i = 0; i < 2; i++) {
        struct sgp_error earlier = {0};
        if (check_outputs(run, checked[i], model->outputs, &earlier, &rows) < 0)
            *wrong = earlier;
    }
    return rows;
}

static int take_block(
    void *context, const struct sgp_dataset *block, uint64_t line, struct sgp_error *error)
{
    (void)line;
    struct run *run = context;
    const struct sgp_predictor *predictor = run->predictor;
    const struct sgp_model *model = &predictor->model;
    if (block->features != model->inputs)
        return sgp_fail(error, SGP_E_DATA,
            "%s:1: %u columns, and the model takes %u; give the features alone", run->name,
            block->features, model->inputs);
    const float *outputs = NULL;
    struct sgp_error wrong = {0};
    const struct sgp_predictions predictions = {.first = run->rows,
        .rows = predict(run, block, &wrong, &outputs),
        .outputs = predictor->predictions};
    int code = 0;
    if (predictions.rows > 0) {
        sgp_loss_measure(run->measures, &model->loss_settings, outputs, block->labels,
            block->values, predictions.rows);
        run->rows += predictions.rows;
        code = run->take(run->context, &predictions, error);
    }
    return code == 0 && wrong.code < 0 ? sgp_fail(error, wrong.code, "%s", wrong.text) : code;
}

int sgp_predictor_measures(const struct sgp_predictor *predictor, struct sgp_measures *ret_measures)
{
    const struct sgp_predictor_view view = sgp_predictor_view(predictor);
    return sgp_measures_init(
        ret_measures, sgp_loss_measures(view.model->loss, view.classifies), view.model->outputs);
}

int sgp_predictor_run(struct sgp_predictor *predictor, FILE *file, const char *name,
    sgp_predictor_take *take, void *context, struct sgp_error *error, struct sgp_measures *measures)
{
    const struct sgp_predictor_view view = sgp_predictor_view(predictor);
    /* Classes without names belong to images, whose labels are in a separate file. */
    const bool labelled = view.labels && (view.classes || !view.classifies);
    const struct sgp_csv_options options = {
        .label = labelled ? sgp_model_file_tag(predictor->file, "label") : NULL,
        .class_names = labelled ? view.classes : NULL,
        .class_count = labelled ? predictor->class_count : 0,
        .bits = view.bits,
        .scaling = predictor->scaling,
        .target_scales = predictor->target_scales,
        .missing = predictor->missing,
        .for_model = true};
    struct run run = {.predictor = predictor,
        .name = name,
        .take = take,
        .context = context,
        .measures = measures};
    return sgp_csv_read_blocks(
        file, name, &options, predictor->network.rows_max, take_block, &run, error);
}
