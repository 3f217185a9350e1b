/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a model file, and any tags with any rows: an input is lines KEY=VALUE, which
 * become the tags of a file whose digest is right, an empty line, and a CSV file that this model
 * predicts. The tensors are those that layers and inputs name, if these are small and right,
 * else one of a single value. */
#include "sgp/predictor.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TAGS_MAX 16u
#define PARAMETERS_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The raw bytes: refused with one line, but for a real file. */
static void decode(const uint8_t *data, size_t size)
{
    struct sgp_error error = {.code = 0};
    struct sgp_model_file *file = NULL;
    int status = sgp_safetensors_decode(data, size, "model", &error, &file);
    sgp_assert(status <= 0 && (status == 0) == (file != NULL) && error.code == status);
    sgp_model_file_destroy(file);
}

static const char *find(const struct sgp_file_tag *tags, uint32_t count, const char *key)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(tags[i].key, key) == 0)
            return tags[i].value;
    return NULL;
}

/* Lines of *text up to an empty one; *text is what follows. */
static uint32_t take_tags(char **text, struct sgp_file_tag tags[TAGS_MAX])
{
    uint32_t count = 0;
    while (**text) {
        char *line = *text;
        char *end = strchr(line, '\n');
        *text = end ? end + 1 : line + strlen(line);
        if (end)
            *end = '\0';
        char *equals = strchr(line, '=');
        if (!*line)
            break;
        if (!equals || count == TAGS_MAX)
            continue;
        *equals = '\0';
        if (find(tags, count, line) || strcmp(line, "xxh3") == 0)
            continue; /* of a writer these are errors of its own */
        tags[count++] = (struct sgp_file_tag){line, equals + 1};
    }
    return count;
}

static const char *text_of(const struct sgp_file_tag *tags, uint32_t count, const char *key)
{
    const char *text = find(tags, count, key);
    return text ? text : "";
}

/* One tensor for each of the model's; returns how many. */
static uint32_t lay(const struct sgp_file_tag *tags, uint32_t count,
    struct sgp_file_tensor tensors[SGP_MODEL_TENSORS_MAX])
{
    struct sgp_model model;
    struct sgp_tensor_end ends[SGP_MODEL_TENSORS_MAX];
    uint64_t inputs = strtoull(text_of(tags, count, "inputs"), NULL, 10);
    if (inputs > PARAMETERS_MAX ||
        sgp_model_init(
            &model, text_of(tags, count, "layers"), SGP_LOSS_MSE, (uint32_t)inputs, NULL) < 0 ||
        model.parameters > PARAMETERS_MAX) {
        tensors[0] = (struct sgp_file_tensor){.name = "one", .shape = {1}, .count = 1};
        return 1;
    }
    uint32_t tensor_count = sgp_model_ends(&model, false, ends);
    for (uint32_t i = 0; i < tensor_count; i++) {
        uint64_t first = i > 0 ? ends[i - 1].end : 0;
        tensors[i] = (struct sgp_file_tensor){
            .shape = {ends[i].end - first}, .first = first, .count = ends[i].end - first};
        (void)snprintf(tensors[i].name, sizeof tensors[i].name, "t%u", i);
    }
    return tensor_count;
}

static int take(void *context, const struct sgp_predictions *block, struct sgp_error *error)
{
    const struct sgp_predictor_view *view = context;
    (void)error;
    sgp_assert(block->rows > 0);
    for (uint64_t i = 0; i < block->rows * view->model->outputs; i++)
        sgp_assert(isfinite(block->outputs[i]));
    return 0;
}

static void predict(struct sgp_model_file *file, char *rows)
{
    struct sgp_error error = {.code = 0};
    struct sgp_predictor *predictor = NULL;
    int status = sgp_predictor_create(file, "model", &error, &predictor);
    sgp_assert(status <= 0 && (status == 0) == (predictor != NULL) && error.code == status);
    if (!predictor || !*rows) {
        sgp_predictor_destroy(predictor);
        return;
    }
    struct sgp_predictor_view view = sgp_predictor_view(predictor);
    struct sgp_measures measures;
    sgp_assert(sgp_predictor_measures(predictor, &measures) == 0);
    FILE *stream = fmemopen(rows, strlen(rows), "rb");
    sgp_assert(stream != NULL);
    status = sgp_predictor_run(predictor, stream, "rows", take, &view, &error, &measures);
    sgp_assert(status <= 0 && error.code == status);
    (void)fclose(stream);
    sgp_measures_finish(&measures);
    sgp_predictor_destroy(predictor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static float values[PARAMETERS_MAX];
    struct sgp_file_tag tags[TAGS_MAX];
    struct sgp_file_tensor tensors[SGP_MODEL_TENSORS_MAX];
    decode(data, size);
    char *text = calloc(size + 1, 1);
    sgp_assert(text != NULL);
    memcpy(text, data, size);
    char *rows = text;
    for (size_t i = 0; i < PARAMETERS_MAX; i++)
        values[i] = 0.25f * (float)(i % 7) - 0.75f;
    struct sgp_model_contents contents = {.values = values, .tensors = tensors, .tags = tags};
    contents.tag_count = take_tags(&rows, tags);
    contents.tensor_count = lay(tags, contents.tag_count, tensors);
    void *bytes = NULL;
    size_t count = 0;
    struct sgp_model_file *file = NULL;
    /* Tags that are not UTF-8 are refused. */
    if (sgp_safetensors_encode(&contents, NULL, &bytes, &count) == 0) {
        if (sgp_safetensors_decode(bytes, count, "model", NULL, &file) == 0)
            predict(file, rows);
        free(bytes);
    }
    free(text);
    return 0;
}
