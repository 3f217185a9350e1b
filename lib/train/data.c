/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out the section [data]: reads files, keeps this node's rows, and finds the evaluation
 * rows. Blocks on files. Owns the whole training table only until the node's part has been
 * copied. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "csv_cache.h"

static int options_check(const struct sgp_data_options *options, struct sgp_error *error)
{
    if (!options->train)
        return sgp_fail(error, SGP_E_CONFIG, "[data] train is missing; name the file of rows");
    if (options->label && options->labels)
        return sgp_fail(error, SGP_E_CONFIG,
            "[data] label (a column of CSV) and labels (a file of IDX) exclude each other");
    if (!options->label && !options->labels)
        return sgp_fail(error, SGP_E_CONFIG,
            "[data] says neither labels = FILE (IDX) nor label = COLUMN (CSV)");
    if (options->labels && options->test && !options->test_labels)
        return sgp_fail(error, SGP_E_CONFIG, "[data] test needs test_labels too");
    if (options->test_labels && (options->label || !options->test))
        return sgp_fail(error, SGP_E_CONFIG, "[data] test_labels goes with test and labels (IDX)");
    if (options->labels && options->scaling)
        return sgp_fail(
            error, SGP_E_CONFIG, "[data] scale is for CSV; bytes of IDX are always divided by 255");
    if (options->label && options->class_count > 0 && !options->class_names)
        return sgp_fail(error, SGP_E_CONFIG, "[data] classes must name the values of a CSV label");
    if (options->labels && options->bits)
        return sgp_fail(error, SGP_E_CONFIG,
            "[data] labels (a file of IDX) holds classes, where columns of 0 and 1 are needed; "
            "those are columns of CSV, label = COLUMN, COLUMN");
    if (!(options->holdout >= 0 && options->holdout < 1))
        return sgp_fail(error, SGP_E_CONFIG,
            "[data] holdout = %g: from 0 to less than 1 would be right", options->holdout);
    return 0;
}

/* Read one table, called `name`. For IDX, class_count may already be known from the training
 * labels. */
static int table_read(const struct sgp_data_options *options, const char *name, const char *path,
    const char *label_path, uint32_t class_count, struct sgp_error *error,
    struct sgp_dataset **ret_dataset)
{
    if (options->labels)
        return sgp_dataset_read_idx(
            path, label_path, options->class_names, class_count, error, ret_dataset);
    const struct sgp_csv_options csv = {.label = options->label,
        .bits = options->bits,
        .class_names = options->class_names,
        .class_count = options->class_count,
        .scaling = options->scaling,
        .agreed = options->agreed,
        .missing = options->missing ? options->missing : SGP_MISSING_ERROR};
    return sgp_csv_cache_read(options->cache, name, path, &csv, error, ret_dataset);
}

/* Replace the whole table with this node's rows. */
static int keep_own(
    const struct sgp_data_options *options, struct sgp_error *error, struct sgp_data *data)
{
    const struct sgp_dataset *whole = data->train;
    struct sgp_shards shards = options->shards;
    data->file_rows = data->own_rows = whole->rows;
    if (!shards.kind)
        shards.kind = SGP_SHARD_ROUND_ROBIN;
    if (shards.kind == SGP_SHARD_NONE || options->node_count == 1)
        return 0;
    uint32_t *rows = NULL;
    int status = sgp_shard_rows(&shards, whole->labels, whole->rows, whole->classes,
        options->node_index, options->node_count, options->seed, error, &rows, &data->own_rows);
    if (status < 0)
        return status;
    struct sgp_dataset *own = NULL;
    status = sgp_dataset_subset(whole, rows, data->own_rows, &own);
    free(rows);
    if (status < 0)
        return sgp_fail(error, status, "%s: out of memory", options->train);
    data->digest = sgp_dataset_digest(whole);
    sgp_dataset_destroy(data->train);
    data->train = own;
    return 0;
}

/* Nodes tell of their training rows alone, so each class of a test table must be named. */
static int read_test(const struct sgp_data_options *options, uint32_t classes,
    struct sgp_error *error, struct sgp_dataset **ret_test)
{
    struct sgp_csv_agreed *agreed = options->agreed;
    const uint32_t told = agreed ? agreed->class_count : 0;
    if (agreed)
        agreed->class_count = 0;
    int status =
        table_read(options, "test", options->test, options->test_labels, classes, error, ret_test);
    if (agreed)
        agreed->class_count = told;
    return status;
}

/* Read the test table, which must be like the training table, or hold out training rows. */
static int find_test(
    const struct sgp_data_options *options, struct sgp_error *error, struct sgp_data *data)
{
    struct sgp_dataset *train = data->train;
    if (!options->test) {
        if (options->holdout <= 0)
            return 0;
        int status = sgp_dataset_split(
            train, options->holdout, options->seed, options->node_index, &data->train, &data->test);
        if (status < 0)
            return sgp_fail(error, status, "%s: out of memory", options->train);
        sgp_dataset_destroy(train);
        return 0;
    }
    int status = read_test(options, train->classes, error, &data->test);
    if (status < 0)
        return status;
    const struct sgp_dataset *test = data->test;
    data->cache_bytes += sgp_dataset_mapped(test);
    if (test->features != train->features || test->scaling_digest != train->scaling_digest)
        return sgp_fail(error, SGP_E_DATA,
            "%s: other columns (%u features) than %s (%u features); both must have the same, in "
            "the same order",
            options->test, test->features, options->train, train->features);
    if (!sgp_shape_equal(test->shape, train->shape))
        return sgp_fail(error, SGP_E_DATA,
            "%s: images of %ux%ux%u, and those of %s have %ux%ux%u; both must have the same shape",
            options->test, test->shape.channels, test->shape.height, test->shape.width,
            options->train, train->shape.channels, train->shape.height, train->shape.width);
    return 0;
}

int sgp_data_load(
    const struct sgp_data_options *options, struct sgp_error *error, struct sgp_data *ret_data)
{
    sgp_assert(options->node_index < options->node_count);
    int status = options_check(options, error);
    if (status < 0)
        return status;
    struct sgp_data data = {.train = NULL};
    status = table_read(options, "train", options->train, options->labels, options->class_count,
        error, &data.train);
    if (status == 0)
        data.cache_bytes = sgp_dataset_mapped(data.train);
    if (status == 0)
        status = keep_own(options, error, &data);
    if (status == 0)
        status = find_test(options, error, &data);
    if (status < 0) {
        sgp_dataset_destroy(data.train);
        sgp_dataset_destroy(data.test);
        return status;
    }
    *ret_data = data;
    return 0;
}
