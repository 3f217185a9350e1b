/* SPDX-License-Identifier: Apache-2.0 */
/* Rows through a model file: blocks, scores by hand, and files that say too little. The tests of
 * sgpctl compare predictions with a daemon's. */
#include "sgp/predictor.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS                                                                                    \
    "{\"sgp_scaling\":1,\"columns\":[{\"name\":\"a\",\"mean\":1,\"deviation\":2},"                 \
    "{\"name\":\"c\",\"values\":[\"u\",\"v\"]}]}"

/* A file of one layer with these weights, opened; tags are pairs, ended by NULL. */
static int open_model(const char *const *tags, const float *values, uint64_t outputs,
    uint64_t inputs, struct sgp_error *error, struct sgp_predictor **ret_predictor)
{
    struct sgp_file_tag list[10];
    uint32_t count = 0;
    for (; tags[2 * count]; count++)
        list[count] = (struct sgp_file_tag){tags[2 * count], tags[2 * count + 1]};
    const struct sgp_file_tensor tensors[] = {
        {.name = "layers.0.weight", .shape = {outputs, inputs}, .count = outputs * inputs},
        {.name = "layers.0.bias", .shape = {outputs}, .first = outputs * inputs, .count = outputs}};
    const struct sgp_model_contents contents = {
        .values = values, .tensors = tensors, .tensor_count = 2, .tags = list, .tag_count = count};
    void *bytes;
    size_t size;
    struct sgp_model_file *file;
    cr_assert(eq(int, sgp_safetensors_encode(&contents, NULL, &bytes, &size), 0));
    cr_assert(eq(int, sgp_safetensors_decode(bytes, size, "m", NULL, &file), 0));
    free(bytes);
    return sgp_predictor_create(file, "m", error, ret_predictor);
}

struct seen {
    uint64_t rows, blocks;
    float outputs[4096];
    uint64_t give_up; /* the block after which it does; 0: never */
};

static int take(void *context, const struct sgp_predictions *block, struct sgp_error *error)
{
    struct seen *seen = context;
    cr_assert(eq(u64, block->first, seen->rows));
    memcpy(seen->outputs + 2 * seen->rows, block->outputs, 2 * block->rows * sizeof(float));
    seen->rows += block->rows;
    seen->blocks++;
    return seen->blocks == seen->give_up ? sgp_fail(error, SGP_E_STATE, "enough") : 0;
}

static int run(struct sgp_predictor *predictor, const char *text, struct seen *seen,
    struct sgp_error *error, struct sgp_measures *measures)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "rb");
    cr_assert(ne(ptr, file, NULL));
    sgp_measures_finish(measures);
    cr_assert(eq(int, sgp_predictor_measures(predictor, measures), 0));
    int code = sgp_predictor_run(predictor, file, "t.csv", take, seen, error, measures);
    (void)fclose(file);
    return code;
}

Test(predictor, numbers_are_scored_column_by_column)
{
    static const char *const tags[] = {"layers", "dense 2", "loss", "huber", "inputs", "3",
        "columns", COLUMNS, "label", "y, z", NULL, NULL};
    /* output 0: scaled a + 1; output 1: 10 for u, 20 for v */
    const float values[] = {1, 0, 0, 0, 10, 20, 1, 0};
    struct sgp_predictor *predictor = NULL;
    struct sgp_error error = {0};
    struct sgp_measures measures = {0};
    double value = 7;
    struct seen seen = {0};
    cr_assert(eq(int, open_model(tags, values, 2, 3, &error, &predictor), 0), "%s", error.text);
    const char *text = "z,c,y,a\n11,u,1,1\n18,v,1,3\n13,u,4,5\n";
    cr_assert(eq(int, run(predictor, text, &seen, &error, &measures), 0), "%s", error.text);
    cr_assert(eq(u64, seen.rows, 3));
    const float expected[] = {1, 10, 2, 20, 3, 10};
    for (size_t i = 0; i < 6; i++)
        cr_assert(eq(flt, seen.outputs[i], expected[i]));
    /* y: 1, 1, 4: errors 0, 1, -1, deviations 6. z: 11, 18, 13: errors -1, 2, -3, deviations 26 */
    cr_assert(eq(u64, measures.rows, 3));
    cr_assert(sgp_measures_r2(&measures, 2, &value));
    cr_assert(epsilon_eq(dbl, value, (1 - 2.0 / 6 + 1 - 14.0 / 26) / 2, 1e-12));
    cr_assert(sgp_measures_absolute_error(&measures, 2, &value));
    cr_assert(epsilon_eq(dbl, value, (2.0 / 3 + 6.0 / 3) / 2, 1e-12));
    cr_assert_not(sgp_measures_accuracy(&measures, &value));
    seen = (struct seen){0};
    cr_assert(eq(int, run(predictor, "c,y,a\nu,1,1\n", &seen, &error, &measures), 0));
    cr_assert(eq(u64, measures.rows, 0), "one of two label columns is none");
    sgp_measures_finish(&measures);
    sgp_predictor_destroy(predictor);
}

#define TARGETS                                                                                    \
    "[{\"name\":\"y\",\"mean\":100,\"deviation\":8},"                                              \
    "{\"name\":\"z\",\"mean\":-1,\"deviation\":0.5}]"

/* Predictions have seven digits, and so few are left for the errors; the measures have all. */
Test(predictor, measures_of_a_label_with_a_large_mean_are_not_rounded)
{
    static const char *const tags[] = {"layers", "dense 1", "loss", "mse", "inputs", "3", "columns",
        COLUMNS, "label", "y", "targets", "[{\"name\":\"y\",\"mean\":1e8,\"deviation\":1}]", NULL,
        NULL};
    const float values[] = {0.5f, 0, 0, 0}; /* half of scaled a */
    struct sgp_predictor *predictor = NULL;
    struct sgp_error error = {0};
    struct sgp_measures measures = {0};
    double value;
    struct seen seen = {0};
    cr_assert(eq(int, open_model(tags, values, 1, 3, &error, &predictor), 0), "%s", error.text);
    const char *text = "c,y,a\nu,100000000.25,1\nv,99999999.75,5\n";
    cr_assert(eq(int, run(predictor, text, &seen, &error, &measures), 0), "%s", error.text);
    cr_assert(eq(u64, measures.rows, 2));
    cr_assert(sgp_measures_absolute_error(&measures, 0, &value));
    cr_assert(eq(dbl, value, (0.25 + 1.25) / 2));
    sgp_measures_finish(&measures);
    sgp_predictor_destroy(predictor);
}

Test(predictor, scaled_outputs_are_numbers_of_their_columns)
{
    static const char *const tags[] = {"layers", "dense 2", "loss", "mse", "inputs", "3", "columns",
        COLUMNS, "label", "y, z", "targets", TARGETS, NULL, NULL};
    const float values[] = {1, 0, 0, 0, 10, 20, 1, 0};
    struct sgp_predictor *predictor = NULL;
    struct sgp_error error = {0};
    struct sgp_measures measures = {0};
    double value;
    struct seen seen = {0};
    cr_assert(eq(int, open_model(tags, values, 2, 3, &error, &predictor), 0), "%s", error.text);
    const char *text = "z,c,y,a\n4,u,109,1\n8,v,116,3\n";
    cr_assert(eq(int, run(predictor, text, &seen, &error, &measures), 0), "%s", error.text);
    const float expected[] = {108, 4, 116, 9};
    for (size_t i = 0; i < 4; i++)
        cr_assert(eq(flt, seen.outputs[i], expected[i]));
    cr_assert(sgp_measures_squared_error(&measures, 0, &value));
    cr_assert(eq(dbl, value, 0.5));
    cr_assert(sgp_measures_absolute_error(&measures, 1, &value));
    cr_assert(eq(dbl, value, 0.5));
    sgp_measures_finish(&measures);
    sgp_predictor_destroy(predictor);
}

static void expect_targets_refused(const char *tag, const char *text, const char *message)
{
    const bool columns = strcmp(tag, "columns") == 0;
    const char *const tags[] = {"layers", "dense 2", "loss", "mse", "inputs", "3", tag, text,
        columns ? NULL : "columns", COLUMNS, NULL, NULL};
    const float values[8] = {0};
    struct sgp_predictor *predictor = NULL;
    struct sgp_error error = {0};
    cr_assert(eq(int, open_model(tags, values, 2, 3, &error, &predictor), SGP_E_FILE));
    cr_assert(eq(str, error.text, (char *)(uintptr_t)message));
}

Test(predictor, targets_that_do_not_fit_are_refused)
{
    expect_targets_refused("targets", "[{\"name\":\"y\",\"mean\":1,\"deviation\":8}]",
        "m: tag 'targets': 1 label columns are scaled, but the model ends in 2 outputs; end the "
        "layers with 'dense 1'");
    expect_targets_refused("targets", "1",
        "m: tag 'targets': \"targets\" must be an array of 1 to 65536 label columns");
    expect_targets_refused("columns",
        "{\"sgp_scaling\":2,\"columns\":[{\"name\":\"a\",\"mean\":1,\"deviation\":2},"
        "{\"name\":\"c\",\"values\":[\"u\",\"v\"]}],\"targets\":" TARGETS "}",
        "m: tag 'columns' has targets, which the tag 'targets' tells");
}

Test(predictor, a_number_beyond_floats_is_refused)
{
    static const char *const tags[] = {"layers", "dense 1", "loss", "mse", "inputs", "1", "targets",
        "[{\"name\":\"y\",\"mean\":0,\"deviation\":1e38}]", NULL, NULL};
    const float values[] = {1, 0};
    struct sgp_predictor *predictor = NULL;
    struct sgp_error error = {0};
    struct sgp_measures measures = {0};
    struct seen seen = {0};
    cr_assert(eq(int, open_model(tags, values, 1, 1, &error, &predictor), 0), "%s", error.text);
    cr_assert(eq(int, run(predictor, "a\n7\n", &seen, &error, &measures), SGP_E_NOT_FINITE));
    sgp_measures_finish(&measures);
    sgp_predictor_destroy(predictor);
}

Test(predictor, bits_are_scored_without_weights)
{
    static const char *const tags[] = {"layers", "dense 2", "loss", "binary-cross-entropy",
        "inputs", "3", "columns", COLUMNS, "label", "y, z", NULL, NULL};
    const float values[] = {0, 0, 0, 0, 2, -2, 0, 0};
    struct sgp_predictor *predictor = NULL;
    struct sgp_error error = {0};
    struct sgp_measures measures = {0};
    double value = 7;
    struct seen seen = {0};
    cr_assert(eq(int, open_model(tags, values, 2, 3, &error, &predictor), 0), "%s", error.text);
    const char *text = "a,c,y,z\n1,u,0,1\n1,v,1,1\n";
    cr_assert(eq(int, run(predictor, text, &seen, &error, &measures), 0), "%s", error.text);
    double loss = (2 * log(2.0) + log1p(exp(-2.0)) + log1p(exp(-2.0)) + 2) / 4;
    cr_assert(sgp_measures_log_loss(&measures, &value));
    cr_assert(epsilon_eq(dbl, value, loss, 1e-12));
    cr_assert(sgp_measures_accuracy(&measures, &value));
    cr_assert(epsilon_eq(dbl, value, 0.5, 1e-12)); /* 0, 1 found; 1, 1 missed */
    cr_assert_not(sgp_measures_r2(&measures, 0, &value));
    sgp_measures_finish(&measures);
    sgp_predictor_destroy(predictor);
}

/* Rows of many blocks come in order, each once. A callback can end the run early. */
Test(predictor, rows_come_in_blocks)
{
    static const char *const tags[] = {
        "layers", "dense 2", "loss", "mse", "inputs", "1", NULL, NULL};
    const float values[] = {1, -1, 0, 0};
    char text[16384] = "x\n";
    struct sgp_predictor *predictor = NULL;
    struct sgp_error error = {0};
    struct sgp_measures measures = {0};
    struct seen seen = {0};
    cr_assert(eq(int, open_model(tags, values, 2, 1, &error, &predictor), 0), "%s", error.text);
    for (int i = 0; i < 1000; i++)
        (void)snprintf(text + strlen(text), 8, "%d\n", i);
    cr_assert(eq(int, run(predictor, text, &seen, &error, &measures), 0), "%s", error.text);
    cr_assert(eq(u64, seen.rows, 1000));
    cr_assert(gt(u64, seen.blocks, 1));
    for (int i = 0; i < 1000; i++)
        cr_assert(eq(flt, seen.outputs[2 * i + 1], (float)-i));
    seen = (struct seen){.give_up = 2};
    cr_assert(eq(int, run(predictor, text, &seen, &error, &measures), SGP_E_STATE));
    cr_assert(eq(str, error.text, "enough"));
    cr_assert(eq(u64, seen.blocks, 2));
    error = (struct sgp_error){0};
    cr_assert(eq(int, run(predictor, "x,y\n1,2\n", &seen, &error, &measures), SGP_E_DATA));
    cr_assert(
        eq(str, error.text, "t.csv:1: 2 columns, and the model takes 1; give the features alone"));
    sgp_measures_finish(&measures);
    sgp_predictor_destroy(predictor);
}

/* `text` of 1 column has a wrong row after `rows` good ones. */
static void expect_rows_before(
    struct sgp_predictor *predictor, const char *text, uint64_t rows, int code, const char *message)
{
    struct sgp_error error = {0};
    struct sgp_measures measures = {0};
    struct seen seen = {0};
    cr_assert(eq(int, run(predictor, text, &seen, &error, &measures), code));
    cr_assert(eq(u64, seen.rows, rows), "%s", error.text);
    cr_assert(eq(int, error.code, code));
    cr_assert(eq(int, strncmp(error.text, message, strlen(message)), 0), "%s", error.text);
    for (uint64_t i = 0; i < rows; i++)
        cr_assert(eq(flt, seen.outputs[2 * i], 2));
    sgp_measures_finish(&measures);
}

Test(predictor, rows_before_a_wrong_row_are_handed_over)
{
    static const char *const tags[] = {
        "layers", "dense 2", "loss", "mse", "inputs", "1", NULL, NULL};
    const float values[] = {2, -2, 0, 0};
    char text[4096] = "x\n";
    struct sgp_predictor *predictor = NULL;
    struct sgp_error error = {0};
    cr_assert(eq(int, open_model(tags, values, 2, 1, &error, &predictor), 0), "%s", error.text);
    expect_rows_before(predictor, "x\n1\n1\npink\n1\n", 2, SGP_E_DATA, "t.csv:4: column");
    expect_rows_before(
        predictor, "x\n1\n3e38\n1\n", 1, SGP_E_NOT_FINITE, "t.csv: row 2: output 1 ");
    expect_rows_before(predictor, "x\n3e38\n1\n", 0, SGP_E_NOT_FINITE, "t.csv: row 1: output 1 ");
    expect_rows_before(predictor, "x\n1\n3e38\npink\n", 1, SGP_E_NOT_FINITE, "t.csv: row 2: ");
    for (int i = 0; i < 600; i++)
        (void)strcat(text, "1\n");
    (void)strcat(text, "pink\n");
    expect_rows_before(predictor, text, 600, SGP_E_DATA, "t.csv:602: column");
    sgp_predictor_destroy(predictor);
}

Test(predictor, rows_before_a_number_outside_the_vocabulary_are_handed_over)
{
    /* the vectors (1, 2) and (2, 2) of two numbers; a row of one feature */
    static const char *const tags[] = {
        "layers", "embedding 2 x 2", "loss", "mse", "inputs", "1", NULL, NULL};
    const float values[] = {2, 1, 2, 2};
    const struct sgp_file_tag list[] = {{tags[0], tags[1]}, {tags[2], tags[3]}, {tags[4], tags[5]}};
    const struct sgp_file_tensor tensor = {.name = "layers.0.weight", .shape = {2, 2}, .count = 4};
    const struct sgp_model_contents contents = {
        .values = values, .tensors = &tensor, .tensor_count = 1, .tags = list, .tag_count = 3};
    void *bytes;
    size_t size;
    struct sgp_model_file *file;
    struct sgp_predictor *predictor = NULL;
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_safetensors_encode(&contents, NULL, &bytes, &size), 0));
    cr_assert(eq(int, sgp_safetensors_decode(bytes, size, "m", NULL, &file), 0));
    free(bytes);
    cr_assert(eq(int, sgp_predictor_create(file, "m", &error, &predictor), 0), "%s", error.text);
    expect_rows_before(predictor, "x\n0\n1\n0\n2\n1\n", 3, SGP_E_DATA,
        "t.csv: row 4 has the feature 2, and the model takes whole numbers from 0 to 1");
    sgp_predictor_destroy(predictor);
}

Test(predictor, layers_that_no_build_has_are_refused)
{
    static const char *const tags[] = {
        "layers", "dense 2, frob", "loss", "mse", "inputs", "3", NULL, NULL};
    static const float values[8] = {0};
    struct sgp_predictor *predictor = NULL;
    struct sgp_error error = {0};
    cr_assert(lt(int, open_model(tags, values, 2, 3, &error, &predictor), 0));
    cr_assert(ne(ptr, strstr(error.text, "m: tag 'layers': "), NULL), "%s", error.text);
    cr_assert(ne(ptr, strstr(error.text, "frob"), NULL), "%s", error.text);
    cr_assert(eq(ptr, predictor, NULL));
}

Test(predictor, a_file_without_layers_is_a_programs)
{
    static const char *const tags[] = {"node", "n0", NULL, NULL};
    const float values[] = {1, 0};
    struct sgp_predictor *predictor = NULL;
    struct sgp_error error = {0};
    cr_assert(eq(int, open_model(tags, values, 1, 1, &error, &predictor), SGP_E_FILE));
    cr_assert(eq(str, error.text,
        "m: it has no tag 'layers': the model is a program's, which alone can use it"));
    cr_assert(eq(ptr, predictor, NULL));
}
