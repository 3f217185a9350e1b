/* SPDX-License-Identifier: Apache-2.0 */
/* Computes a scaling from a CSV file in two passes. So memory holds only a few numbers per column,
 * and the values of the categorical columns. Fails as the CSV reader. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "names.h"
#include "scaling.h"
#include "table.h"
#include "target_scale.h"

/* The survey of a column. While all values are numbers, it holds Welford's running moments.
 * Otherwise it holds the distinct values in order. */
struct survey {
    bool used;
    bool category;
    uint64_t count;
    double mean;
    double squares; /* sum of squared differences from the mean */
    char **values;
    size_t value_count;
    size_t value_capacity;
};

static void number_add(struct survey *survey, double number)
{
    survey->count++;
    const double before = number - survey->mean;
    survey->mean += before / (double)survey->count;
    survey->squares += before * (number - survey->mean);
}

/* First pass: compute the moments, and find the columns that do not hold only numbers. */
static int pass_numbers(struct sgp_csv *csv, const struct sgp_csv_header *header,
    struct survey *surveys, struct sgp_error *error)
{
    int status;
    while ((status = sgp_csv_row(csv, header, error)) > 0) {
        for (uint32_t i = 0; i < header->count; i++) {
            double number;
            const char *field = sgp_csv_field(csv, i);
            if (sgp_csv_missing(field))
                continue;
            if (sgp_csv_number(field, &number))
                number_add(&surveys[i], number);
            else
                surveys[i].category = true;
        }
    }
    return status;
}

/* Insert a value into the sorted distinct values. */
static int value_add(struct survey *survey, const char *field, const struct sgp_csv *csv,
    const char *column, struct sgp_error *error)
{
    size_t low = 0;
    size_t high = survey->value_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const int order = strcmp(survey->values[middle], field);
        if (order == 0)
            return 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (survey->value_count == SGP_CATEGORIES_MAX)
        return sgp_fail(error, SGP_E_LIMIT,
            "%s:%llu: column '%s' holds text of more than %u different values; leave it out",
            csv->source.name, (unsigned long long)csv->line, column, SGP_CATEGORIES_MAX);
    char **values = sgp_grow(survey->values, &survey->value_capacity, sizeof *values,
        survey->value_count + 1, SGP_CATEGORIES_MAX);
    char *copy = strdup(field);
    if (values)
        survey->values = values;
    if (!values || !copy) {
        free(copy);
        return sgp_fail(error, -ENOMEM, "%s: out of memory", csv->source.name);
    }
    memmove(values + low + 1, values + low, (survey->value_count - low) * sizeof *values);
    values[low] = copy;
    survey->value_count++;
    return 0;
}

/* Second pass: collect the values of the categorical columns. */
static int pass_values(struct sgp_csv *csv, const struct sgp_csv_header *header,
    struct survey *surveys, struct sgp_error *error)
{
    int status;
    while ((status = sgp_csv_row(csv, header, error)) > 0) {
        for (uint32_t i = 0; i < header->count; i++) {
            const char *field = sgp_csv_field(csv, i);
            if (!surveys[i].used || !surveys[i].category || sgp_csv_missing(field))
                continue;
            int added = value_add(&surveys[i], field, csv, header->names[i], error);
            if (added < 0)
                return added;
        }
    }
    return status;
}

static double deviation_of(const struct survey *survey)
{
    const double deviation = sqrt(survey->squares / (double)survey->count);
    return deviation > 0 ? deviation : 1;
}

/* Convert surveys to columns. Memory that moves to the columns no longer belongs to the surveys. */
static int columns_make(const struct sgp_csv_header *header, struct survey *surveys,
    const char *name, struct sgp_error *error, struct sgp_scaling **ret_scaling)
{
    struct sgp_scaling_column *columns = calloc(header->count, sizeof *columns);
    uint32_t count = 0;
    int status = columns ? 0 : sgp_fail(error, -ENOMEM, "%s: out of memory", name);
    for (uint32_t i = 0; i < header->count && status == 0; i++) {
        struct survey *survey = &surveys[i];
        if (!survey->used)
            continue;
        if (!survey->category && survey->count == 0) {
            status = sgp_fail(error, SGP_E_DATA,
                "%s: column '%s' has no value in any line; leave it "
                "out of the file",
                name, header->names[i]);
            continue;
        }
        struct sgp_scaling_column *column = &columns[count++];
        column->name = header->names[i];
        header->names[i] = NULL;
        if (survey->category) {
            column->values = survey->values;
            column->value_count = (uint32_t)survey->value_count;
            survey->values = NULL;
            survey->value_count = 0;
        } else {
            column->mean = survey->mean;
            column->deviation = deviation_of(survey);
        }
    }
    if (status < 0) {
        sgp_scaling_columns_free(columns, count);
        return status;
    }
    return sgp_scaling_create(columns, count, name, error, ret_scaling);
}

/* What one reading is for. */
struct task {
    const char *label, *ignore; /* lists of columns; NULL: none */
    uint32_t *targets;          /* the label columns, in the order of `label` */
    uint32_t target_count;
};

/* Find the columns that a list names, which are no features. The caller frees *ret_fields. */
static int leave_out(const struct sgp_csv *csv, const struct sgp_csv_header *header,
    struct survey *surveys, const char *list, struct sgp_error *error, uint32_t **ret_fields,
    uint32_t *ret_count)
{
    char **names = NULL;
    uint32_t count = 0;
    int status = list ? sgp_names_split(list, SGP_NAMES_COLUMNS, error, &names, &count) : 0;
    uint32_t *fields = calloc(count + 1, sizeof *fields);
    if (status == 0 && !fields)
        status = sgp_fail(error, -ENOMEM, "%s: out of memory", csv->source.name);
    for (uint32_t i = 0; fields && i < count && status == 0; i++) {
        int64_t found = sgp_csv_header_find(header, csv, names[i], error);
        if (found < 0) {
            status = (int)found;
            continue;
        }
        surveys[found].used = false;
        fields[i] = (uint32_t)found;
    }
    sgp_names_free(names, count);
    *ret_fields = fields;
    *ret_count = count;
    return status;
}

/* Leave out the label columns and the ignored ones. */
static int leave_out_all(const struct sgp_csv *csv, const struct sgp_csv_header *header,
    struct survey *surveys, struct task *task, struct sgp_error *error)
{
    uint32_t *ignored = NULL;
    uint32_t count;
    int status = leave_out(csv, header, surveys, task->ignore, error, &ignored, &count);
    free(ignored);
    return status < 0 ? status
                      : leave_out(csv, header, surveys, task->label, error, &task->targets,
                            &task->target_count);
}

/* Add the label columns as targets, if they hold numbers alone. */
static int targets_make(const struct sgp_csv_header *header, const struct survey *surveys,
    const struct task *task, const char *name, struct sgp_error *error, struct sgp_scaling *scaling)
{
    bool numbers = task->target_count > 0;
    for (uint32_t i = 0; i < task->target_count; i++)
        numbers =
            numbers && !surveys[task->targets[i]].category && surveys[task->targets[i]].count > 0;
    if (!numbers)
        return 0;
    struct sgp_target_scale *scales = calloc(task->target_count, sizeof *scales);
    int status = scales ? 0 : sgp_fail(error, -ENOMEM, "%s: out of memory", name);
    for (uint32_t i = 0; i < task->target_count && status == 0; i++) {
        const struct survey *survey = &surveys[task->targets[i]];
        scales[i] = (struct sgp_target_scale){.name = strdup(header->names[task->targets[i]]),
            .mean = survey->mean,
            .deviation = deviation_of(survey)};
        status = scales[i].name ? sgp_target_scale_check(&scales[i], name, error)
                                : sgp_fail(error, -ENOMEM, "%s: out of memory", name);
    }
    if (status == 0)
        sgp_scaling_take_targets(scaling, scales, task->target_count);
    else
        sgp_target_scales_free(scales, task->target_count);
    return status;
}

/* Read the whole file once with one of the passes. The header is read only the first time. */
static int pass_run(FILE *file, const char *name, struct sgp_csv_header *header,
    struct survey **surveys, struct task *task, struct sgp_error *error)
{
    struct sgp_csv csv;
    struct sgp_csv_header first;
    rewind(file);
    int status = sgp_csv_init(&csv, file, name, error);
    if (status == 0)
        status = sgp_csv_header_read(&csv, error, &first);
    if (status == 0 && *surveys) {
        /* If the file changed between the passes, it may have fewer columns now. */
        bool same = first.count == header->count;
        sgp_csv_header_finish(&first);
        status = same ? pass_values(&csv, header, *surveys, error)
                      : sgp_fail(error, SGP_E_DATA, "%s: changed while it was read", name);
    } else if (status == 0) {
        *header = first;
        *surveys = calloc(first.count, sizeof **surveys);
        if (!*surveys)
            status = sgp_fail(error, -ENOMEM, "%s: out of memory", name);
        for (uint32_t i = 0; i < first.count && status == 0; i++)
            (*surveys)[i].used = true;
        if (status == 0)
            status = leave_out_all(&csv, header, *surveys, task, error);
        if (status == 0)
            status = pass_numbers(&csv, header, *surveys, error);
    }
    sgp_csv_finish(&csv);
    return status;
}

int sgp_csv_compute_scaling(FILE *file, const char *name, const char *label, const char *ignore,
    struct sgp_error *error, struct sgp_scaling **ret_scaling)
{
    struct sgp_csv_header header = {.count = 0};
    struct survey *surveys = NULL;
    struct task task = {.label = label, .ignore = ignore};
    struct sgp_scaling *scaling = NULL;
    int status = pass_run(file, name, &header, &surveys, &task, error);
    if (status == 0)
        status = pass_run(file, name, &header, &surveys, &task, error);
    if (status == 0)
        status = columns_make(&header, surveys, name, error, &scaling);
    if (status == 0)
        status = targets_make(&header, surveys, &task, name, error, scaling);
    if (status < 0)
        sgp_scaling_destroy(scaling);
    else
        *ret_scaling = scaling;
    free(task.targets);
    for (uint32_t i = 0; surveys && i < header.count; i++) {
        for (size_t v = 0; v < surveys[i].value_count; v++)
            free(surveys[i].values[v]);
        free(surveys[i].values);
    }
    free(surveys);
    sgp_csv_header_finish(&header);
    return status;
}

int sgp_scaling_compute(const char *csv_path, const char *label, const char *ignore,
    struct sgp_error *error, struct sgp_scaling **ret_scaling)
{
    FILE *file = NULL;
    int status = sgp_source_open(csv_path, error, &file);
    if (status < 0)
        return status;
    status = sgp_csv_compute_scaling(file, csv_path, label, ignore, error, ret_scaling);
    fclose(file);
    return status;
}
