/* SPDX-License-Identifier: Apache-2.0 */
/* Owns scalings: the JSON file that fixes features, their order and their numbers for all nodes.
 * Reading and writing block on the file, and fail with one line that names it. */
#include "scaling.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "atomic_file.h"
#include "source.h"
#include "table.h"
#include "target_scale.h"

#define FORMAT_COLUMNS 1
#define FORMAT_TARGETS 2 /* columns and targets */

void sgp_scaling_columns_free(struct sgp_scaling_column *columns, uint32_t column_count)
{
    for (uint32_t i = 0; i < column_count; i++) {
        free(columns[i].name);
        for (uint32_t v = 0; columns[i].values && v < columns[i].value_count; v++)
            free(columns[i].values[v]);
        free(columns[i].values);
    }
    free(columns);
}

void sgp_scaling_destroy(struct sgp_scaling *scaling)
{
    if (!scaling)
        return;
    sgp_scaling_columns_free(scaling->columns, scaling->column_count);
    sgp_target_scales_free(scaling->targets, scaling->target_count);
    free(scaling->name);
    free(scaling);
}

void sgp_list_add(char *list, size_t bytes, const char *name)
{
    const size_t used = strlen(list);
    const int more = snprintf(list + used, bytes - used, "%s%s", used > 0 ? ", " : "", name);
    if ((size_t)more >= bytes - used)
        memcpy(list + bytes - sizeof "...", "...", sizeof "...");
}

void sgp_scaling_columns(const struct sgp_scaling *scaling, char *ret_text, size_t bytes)
{
    ret_text[0] = '\0';
    for (uint32_t i = 0; i < scaling->column_count; i++)
        sgp_list_add(ret_text, bytes, scaling->columns[i].name);
}

uint32_t sgp_scaling_features(const struct sgp_scaling *scaling)
{
    return scaling->features;
}

const struct sgp_target_scale *sgp_scaling_targets(
    const struct sgp_scaling *scaling, uint32_t *ret_count)
{
    *ret_count = scaling->target_count;
    return scaling->targets;
}

void sgp_scaling_take_targets(
    struct sgp_scaling *scaling, struct sgp_target_scale *targets, uint32_t target_count)
{
    sgp_assert(!scaling->targets);
    scaling->targets = targets;
    scaling->target_count = target_count;
}

uint64_t sgp_scaling_digest(const struct sgp_scaling *scaling)
{
    uint64_t digest = XXH3_64bits_withSeed("scaling", 7, scaling->column_count);
    for (uint32_t i = 0; i < scaling->column_count; i++) {
        const struct sgp_scaling_column *column = &scaling->columns[i];
        const double numbers[2] = {column->mean, column->deviation};
        sgp_assert(column->values != NULL || column->value_count == 0);
        digest = XXH3_64bits_withSeed(column->name, strlen(column->name) + 1, digest);
        digest = XXH3_64bits_withSeed(
            numbers, column->values ? 0 : sizeof numbers, digest + column->value_count);
        for (uint32_t v = 0; v < column->value_count; v++)
            digest = XXH3_64bits_withSeed(column->values[v], strlen(column->values[v]) + 1, digest);
    }
    return digest;
}

int sgp_values_compare(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The first of two equal strings; NULL if all are distinct. Sets *failed without memory. */
static const char *repeated(char *const *values, uint32_t count, bool *failed)
{
    char **sorted = malloc((count ? count : 1) * sizeof *sorted);
    if (!sorted) {
        *failed = true;
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = values[i];
    qsort(sorted, count, sizeof *sorted, sgp_values_compare);
    const char *found = NULL;
    for (uint32_t i = 1; i < count && !found; i++) {
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            found = sorted[i];
    }
    free(sorted);
    return found;
}

static int column_check(
    const struct sgp_scaling_column *column, const char *where, struct sgp_error *error)
{
    if (!column->values) {
        if (!isfinite(column->mean) || !isfinite(column->deviation) || column->deviation <= 0)
            return sgp_fail(error, SGP_E_DATA,
                "%s: column '%s' has mean %g and deviation %g; a finite mean and a deviation above "
                "0 would be right",
                where, column->name, column->mean, column->deviation);
        return 0;
    }
    if (column->value_count == 0 || column->value_count > SGP_CATEGORIES_MAX)
        return sgp_fail(error, SGP_E_LIMIT, "%s: column '%s' has %u values; 1 to %u would be right",
            where, column->name, column->value_count, SGP_CATEGORIES_MAX);
    bool failed = false;
    const char *twice = repeated(column->values, column->value_count, &failed);
    if (failed)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", where);
    if (twice)
        return sgp_fail(error, SGP_E_DATA,
            "%s: column '%s' lists the value '%s' twice; list each once", where, column->name,
            twice);
    return 0;
}

static int columns_check(struct sgp_scaling_column *columns, uint32_t column_count,
    const char *where, struct sgp_error *error, uint32_t *ret_features)
{
    uint32_t features = 0;
    char **names = malloc((column_count ? column_count : 1) * sizeof *names);
    if (!names)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", where);
    int status = 0;
    for (uint32_t i = 0; i < column_count && status == 0; i++) {
        names[i] = columns[i].name;
        status = column_check(&columns[i], where, error);
        features += columns[i].values ? columns[i].value_count : 1;
        if (status == 0 && features > SGP_FEATURES_MAX)
            status = sgp_fail(error, SGP_E_LIMIT,
                "%s: more than %u features; columns or values "
                "must be fewer",
                where, SGP_FEATURES_MAX);
    }
    bool failed = false;
    const char *twice = status == 0 ? repeated(names, column_count, &failed) : NULL;
    free(names);
    if (failed)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", where);
    if (twice)
        return sgp_fail(
            error, SGP_E_DATA, "%s: column '%s' is named twice; name each once", where, twice);
    if (status == 0)
        *ret_features = features;
    return status;
}

int sgp_scaling_create(struct sgp_scaling_column *columns, uint32_t column_count, const char *where,
    struct sgp_error *error, struct sgp_scaling **ret_scaling)
{
    uint32_t features = 0;
    int status = columns_check(columns, column_count, where, error, &features);
    if (status == 0 && features == 0)
        status = sgp_fail(error, SGP_E_DATA, "%s: no columns; name at least one", where);
    struct sgp_scaling *scaling = status == 0 ? malloc(sizeof *scaling) : NULL;
    char *name = scaling ? strdup(where) : NULL;
    if (!name) {
        free(scaling);
        sgp_scaling_columns_free(columns, column_count);
        return status < 0 ? status : sgp_fail(error, -ENOMEM, "%s: out of memory", where);
    }
    *scaling = (struct sgp_scaling){
        .name = name, .columns = columns, .column_count = column_count, .features = features};
    *ret_scaling = scaling;
    return 0;
}

/* Convert the "values" of a column to strings. */
static int values_parse(const json_t *values, const char *where, struct sgp_error *error,
    struct sgp_scaling_column *column)
{
    const size_t count = json_array_size(values);
    if (!json_is_array(values) || count == 0 || count > SGP_CATEGORIES_MAX)
        return sgp_fail(error, SGP_E_DATA,
            "%s: column '%s': \"values\" must be an array of 1 to %u strings", where, column->name,
            SGP_CATEGORIES_MAX);
    column->values = calloc(count, sizeof *column->values);
    if (!column->values)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", where);
    column->value_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(values, i));
        if (!text)
            return sgp_fail(error, SGP_E_DATA, "%s: column '%s': value %zu is not a string", where,
                column->name, i + 1);
        column->values[i] = strdup(text);
        if (!column->values[i])
            return sgp_fail(error, -ENOMEM, "%s: out of memory", where);
    }
    return 0;
}

/* Read one element of "columns". On failure, too, *column holds what was allocated. */
static int column_parse(const json_t *object, size_t number, const char *where,
    struct sgp_error *error, struct sgp_scaling_column *column)
{
    const char *name = json_string_value(json_object_get(object, "name"));
    const json_t *mean = json_object_get(object, "mean");
    const json_t *deviation = json_object_get(object, "deviation");
    const json_t *values = json_object_get(object, "values");
    if (!name)
        return sgp_fail(error, SGP_E_DATA,
            "%s: column %zu has no name; {\"name\": \"...\", \"mean\": M, \"deviation\": D} or "
            "{\"name\": \"...\", \"values\": [...]} would be right",
            where, number);
    column->name = strdup(name);
    if (!column->name)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", where);
    const size_t keys = json_object_size(object);
    if (values && keys == 2)
        return values_parse(values, where, error, column);
    if (values || keys != 3 || !json_is_number(mean) || !json_is_number(deviation))
        return sgp_fail(error, SGP_E_DATA,
            "%s: column '%s' needs the numbers \"mean\" and \"deviation\", or \"values\", and "
            "nothing else",
            where, name);
    column->mean = json_number_value(mean);
    column->deviation = json_number_value(deviation);
    return 0;
}

/* Read the array "columns". */
static int columns_parse(
    const json_t *list, const char *name, struct sgp_error *error, struct sgp_scaling **ret_scaling)
{
    const size_t count = json_array_size(list);
    if (count == 0 || count > SGP_COLUMNS_MAX)
        return sgp_fail(error, SGP_E_LIMIT, "%s: %zu columns; 1 to %u would be right", name, count,
            SGP_COLUMNS_MAX);
    struct sgp_scaling_column *columns = calloc(count, sizeof *columns);
    if (!columns)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", name);
    for (size_t i = 0; i < count; i++) {
        int status = column_parse(json_array_get(list, i), i + 1, name, error, &columns[i]);
        if (status < 0) {
            sgp_scaling_columns_free(columns, (uint32_t)count);
            return status;
        }
    }
    return sgp_scaling_create(columns, (uint32_t)count, name, error, ret_scaling);
}

/* Format 1 may have "targets" that were computed, but by which nothing was scaled. */
bool sgp_scaling_scales_targets(const json_t *root)
{
    return json_integer_value(json_object_get(root, "sgp_scaling")) == FORMAT_TARGETS;
}

static int root_parse(
    const json_t *root, const char *name, struct sgp_error *error, struct sgp_scaling **ret_scaling)
{
    const json_t *list = json_object_get(root, "columns");
    const json_int_t format = json_integer_value(json_object_get(root, "sgp_scaling"));
    struct sgp_target_scale *targets = NULL;
    uint32_t target_count = 0;
    if ((format != FORMAT_COLUMNS && format != FORMAT_TARGETS) || !json_is_array(list))
        return sgp_fail(error, SGP_E_DATA,
            "%s: not a scaling file; {\"sgp_scaling\": %d, \"columns\": [...]} would be right",
            name, FORMAT_COLUMNS);
    int status = columns_parse(list, name, error, ret_scaling);
    if (status < 0 || !sgp_scaling_scales_targets(root))
        return status;
    status = sgp_target_scales_parse(
        json_object_get(root, "targets"), name, error, &targets, &target_count);
    if (status == 0) {
        sgp_scaling_take_targets(*ret_scaling, targets, target_count);
        return 0;
    }
    sgp_scaling_destroy(*ret_scaling);
    *ret_scaling = NULL;
    return status;
}

int sgp_scaling_parse(const char *text, size_t size, const char *name, struct sgp_error *error,
    struct sgp_scaling **ret_scaling)
{
    json_error_t where;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
    if (!root)
        return sgp_fail(
            error, SGP_E_DATA, "%s:%d: %s; a scaling file is JSON", name, where.line, where.text);
    int status = root_parse(root, name, error, ret_scaling);
    json_decref(root);
    return status;
}

int sgp_scaling_read(const char *path, struct sgp_error *error, struct sgp_scaling **ret_scaling)
{
    FILE *file = NULL;
    int status = sgp_source_open(path, error, &file);
    if (status < 0)
        return status;
    struct sgp_source source;
    status = sgp_source_init(&source, file, path, error);
    char *text = NULL;
    size_t capacity = 0;
    size_t size = 0;
    size_t got = status == 0;
    while (status == 0 && got > 0) {
        if (size + SGP_SOURCE_BUFFER_BYTES > SGP_SCALING_BYTES_MAX) {
            status = sgp_fail(
                error, SGP_E_LIMIT, "%s: larger than %u bytes", path, SGP_SCALING_BYTES_MAX);
            break;
        }
        char *grown =
            sgp_grow(text, &capacity, 1, size + SGP_SOURCE_BUFFER_BYTES, SGP_SCALING_BYTES_MAX);
        if (!grown) {
            status = sgp_fail(error, -ENOMEM, "%s: out of memory", path);
            break;
        }
        text = grown;
        status = sgp_source_read(&source, text + size, SGP_SOURCE_BUFFER_BYTES, error, &got);
        size += status == 0 ? got : 0;
    }
    if (status == 0)
        status = sgp_scaling_parse(text, size, path, error, ret_scaling);
    free(text);
    sgp_source_finish(&source);
    fclose(file);
    return status;
}

/* One column as JSON; NULL without memory or with a name that is not UTF-8. */
static json_t *column_json(const struct sgp_scaling_column *column)
{
    if (!column->values)
        return json_pack("{s:s, s:f, s:f}", "name", column->name, "mean", column->mean, "deviation",
            column->deviation);
    json_t *values = json_array();
    for (uint32_t v = 0; v < column->value_count; v++) {
        if (json_array_append_new(values, json_string(column->values[v])) < 0) {
            json_decref(values);
            return NULL;
        }
    }
    return json_pack("{s:s, s:o}", "name", column->name, "values", values);
}

/* The columns as an array. */
static json_t *columns_json(
    const struct sgp_scaling *scaling, const char *where, struct sgp_error *error)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < scaling->column_count; i++) {
        if (json_array_append_new(list, column_json(&scaling->columns[i])) < 0) {
            json_decref(list);
            (void)sgp_fail(error, SGP_E_DATA,
                "%s: column '%s' cannot be written: a name or value is not UTF-8", where,
                scaling->columns[i].name);
            return NULL;
        }
    }
    return list;
}

static json_t *root_json(
    const struct sgp_scaling *scaling, bool targets, const char *where, struct sgp_error *error)
{
    json_t *columns = columns_json(scaling, where, error);
    if (!columns)
        return NULL;
    json_t *root = json_pack(
        "{s:i, s:o}", "sgp_scaling", targets ? FORMAT_TARGETS : FORMAT_COLUMNS, "columns", columns);
    if (!root) {
        (void)sgp_fail(error, -ENOMEM, "%s: out of memory", where);
    } else if (targets &&
               json_object_set_new(root, "targets",
                   sgp_target_scales_json(scaling->targets, scaling->target_count)) < 0) {
        json_decref(root);
        root = NULL;
        (void)sgp_fail(error, SGP_E_DATA,
            "%s: the targets cannot be written: the name of a label column is not UTF-8", where);
    }
    return root;
}

json_t *sgp_scaling_json(
    const struct sgp_scaling *scaling, const char *where, struct sgp_error *error)
{
    return root_json(scaling, scaling->target_count > 0, where, error);
}

/* The text of a root, which is released. */
static int root_text(
    json_t *root, size_t flags, const char *where, struct sgp_error *error, char **ret_text)
{
    char *text = json_dumps(root, flags | JSON_REAL_PRECISION(SGP_REAL_DIGITS));
    json_decref(root);
    if (!text)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", where);
    *ret_text = text;
    return 0;
}

int sgp_scaling_columns_text(
    const struct sgp_scaling *scaling, const char *where, struct sgp_error *error, char **ret_text)
{
    struct sgp_error why = {0};
    json_t *root = root_json(scaling, false, where, &why);
    return root ? root_text(root, JSON_COMPACT, where, error, ret_text)
                : sgp_fail(error, why.code, "%s", why.text);
}

int sgp_dataset_columns(
    const struct sgp_dataset *dataset, struct sgp_error *error, struct sgp_scaling **ret_scaling)
{
    static const char where[] = "columns";
    const char *name = dataset->names;
    const uint32_t count = name ? dataset->features : 0;
    *ret_scaling = NULL;
    if (count == 0)
        return 0;
    struct sgp_scaling_column *columns = calloc(count, sizeof *columns);
    if (!columns)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", where);
    for (uint32_t i = 0; i < count; i++, name += strlen(name) + 1) {
        columns[i] = (struct sgp_scaling_column){.name = strdup(name), .deviation = 1};
        if (!columns[i].name) {
            sgp_scaling_columns_free(columns, count);
            return sgp_fail(error, -ENOMEM, "%s: out of memory", where);
        }
    }
    return sgp_scaling_create(columns, count, where, error, ret_scaling);
}

int sgp_scaling_write(const struct sgp_scaling *scaling, const char *path, struct sgp_error *error)
{
    char *text = NULL;
    struct sgp_atomic_file file;
    struct sgp_error why = {0};
    json_t *root = sgp_scaling_json(scaling, path, &why);
    if (!root)
        return sgp_fail(error, why.code, "%s", why.text);
    int status = root_text(root, JSON_INDENT(1), path, error, &text);
    if (status < 0)
        return status;
    status = sgp_atomic_open(&file, path, SGP_ATOMIC_PUBLIC, error);
    if (status == 0) {
        sgp_atomic_write(&file, text, strlen(text));
        sgp_atomic_write(&file, "\n", 1);
        status = sgp_atomic_commit(&file, error);
    }
    free(text);
    return status;
}
