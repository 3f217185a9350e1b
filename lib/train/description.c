/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a CSV file once and describes its columns; see sgp/description.h. A column counts its
 * different values in a hash table, until it has too many of them. */
#include "sgp/description.h"

#include "counted.h"
#include "csv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The survey of one column. */
struct survey {
    struct sgp_column *column;
    struct sgp_counted counted; /* its different values */
    double squares;             /* sum of squared differences from the mean */
    double last;                /* the number before */
    bool numbered;              /* each whole number was one above the one before */
};

struct reading {
    struct sgp_csv csv;
    struct sgp_csv_header header;
    struct sgp_description *description;
    struct survey *surveys;
    size_t bytes_most; /* of the kept values of a column */
};

/* ---- different values ---- */

/* Count a value. Once there are too many, values are looked up only to find a repetition. */
static int value_count(struct survey *survey, const char *text, size_t bytes_most)
{
    struct sgp_column *column = survey->column;
    if (column->many && column->repeats)
        return 0;
    const int added = sgp_counted_add(
        &survey->counted, text, 1, column->many ? 0 : SGP_CATEGORIES_MAX, bytes_most);
    column->repeats = column->repeats || added == SGP_COUNTED_AGAIN;
    column->many = column->many || added == SGP_COUNTED_FULL;
    return added < 0 ? added : 0;
}

/* ---- one field ---- */

/* Add a number to the moments, by Welford's recurrence. */
static void number_add(struct survey *survey, double number)
{
    struct sgp_column *column = survey->column;
    column->numbers++;
    column->wholes += number == floor(number);
    if (column->numbers == 1) {
        column->least = column->most = number;
        survey->numbered = true;
    } else {
        column->least = fmin(column->least, number);
        column->most = fmax(column->most, number);
        survey->numbered = survey->numbered && number == survey->last + 1;
    }
    survey->last = number;
    const double before = number - column->mean;
    column->mean += before / (double)column->numbers;
    survey->squares += before * (number - column->mean);
}

static int field_add(struct reading *reading, uint32_t index)
{
    struct survey *survey = &reading->surveys[index];
    struct sgp_column *column = survey->column;
    const char *field = sgp_csv_field(&reading->csv, index);
    char text[SGP_NUMBER_BYTES];
    double number;
    if (sgp_csv_missing(field)) {
        if (column->missing++ == 0)
            column->missing_line = reading->csv.line;
        return 0;
    }
    column->present++;
    if (sgp_csv_number(field, &number)) {
        number_add(survey, number);
        if (column->many && column->repeats)
            return 0;
        sgp_number_text(number, text);
        return value_count(survey, text, reading->bytes_most);
    }
    if (column->stray++ == 0) {
        column->stray_line = reading->csv.line;
        (void)snprintf(column->stray_text, sizeof column->stray_text, "%s", field);
    }
    return value_count(survey, field, reading->bytes_most);
}

/* ---- the whole file ---- */

static int rows_read(struct reading *reading, struct sgp_error *error)
{
    int status;
    while ((status = sgp_csv_row(&reading->csv, &reading->header, error)) > 0) {
        reading->description->rows++;
        for (uint32_t i = 0; i < reading->header.count; i++)
            if (field_add(reading, i) < 0)
                return sgp_fail(error, -ENOMEM, "%s:%llu: out of memory", reading->csv.source.name,
                    (unsigned long long)reading->csv.line);
    }
    if (status == 0 && reading->description->rows == 0)
        return sgp_fail(error, SGP_E_DATA, "%s:%llu: no rows; at least one is needed",
            reading->csv.source.name, (unsigned long long)reading->csv.line);
    return status;
}

static enum sgp_column_kind kind_of(const struct survey *survey)
{
    const struct sgp_column *column = survey->column;
    if (column->present == 0)
        return SGP_COLUMN_EMPTY;
    if (column->value_count == 1 && !column->many)
        return SGP_COLUMN_CONSTANT;
    if (column->present >= SGP_IDENTIFIER_ROWS && !column->repeats &&
        (column->numbers == 0 || (survey->numbered && column->wholes == column->present)))
        return SGP_COLUMN_IDENTIFIER;
    if (column->stray <= column->present / 10)
        return SGP_COLUMN_NUMBER;
    return column->many ? SGP_COLUMN_TEXT : SGP_COLUMN_CATEGORY;
}

static void column_end(struct survey *survey)
{
    struct sgp_column *column = survey->column;
    column->value_count = survey->counted.count;
    column->values = sgp_counted_take(&survey->counted);
    column->kind = kind_of(survey);
    if (column->numbers > 0)
        column->deviation = sqrt(survey->squares / (double)column->numbers);
    if (column->kind != SGP_COLUMN_NUMBER) {
        column->stray = column->stray_line = 0;
        column->stray_text[0] = '\0';
    }
    if (column->value_count > 0)
        qsort(
            column->values, column->value_count, sizeof *column->values, sgp_column_value_compare);
}

/* Create the columns of the description, which take over the names of the header. */
static int columns_create(struct reading *reading)
{
    const uint32_t count = reading->header.count;
    reading->description->columns = calloc(count, sizeof *reading->description->columns);
    reading->surveys = calloc(count, sizeof *reading->surveys);
    if (!reading->description->columns || !reading->surveys)
        return -ENOMEM;
    reading->description->column_count = count;
    reading->bytes_most = SGP_DESCRIPTION_BYTES_MAX / count;
    for (uint32_t i = 0; i < count; i++) {
        reading->surveys[i].column = &reading->description->columns[i];
        reading->surveys[i].column->name = reading->header.names[i];
        reading->header.names[i] = NULL;
    }
    return 0;
}

static int reading_run(struct reading *reading, struct sgp_error *error)
{
    int status = sgp_csv_header_read(&reading->csv, error, &reading->header);
    if (status < 0)
        return status;
    reading->description = calloc(1, sizeof *reading->description);
    if (!reading->description || columns_create(reading) < 0)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", reading->csv.source.name);
    status = rows_read(reading, error);
    for (uint32_t i = 0; i < reading->header.count && status == 0; i++)
        column_end(&reading->surveys[i]);
    return status;
}

int sgp_description_read(
    FILE *file, const char *name, struct sgp_error *error, struct sgp_description **ret_description)
{
    struct reading reading = {.description = NULL};
    int status = sgp_csv_init(&reading.csv, file, name, error);
    if (status == 0)
        status = reading_run(&reading, error);
    for (uint32_t i = 0; reading.surveys && i < reading.header.count; i++)
        sgp_counted_finish(&reading.surveys[i].counted);
    free(reading.surveys);
    sgp_csv_header_finish(&reading.header);
    sgp_csv_finish(&reading.csv);
    if (status < 0)
        sgp_description_destroy(reading.description);
    else
        *ret_description = reading.description;
    return status;
}

void sgp_description_destroy(struct sgp_description *description)
{
    if (!description)
        return;
    for (uint32_t i = 0; i < description->column_count; i++) {
        struct sgp_column *column = &description->columns[i];
        sgp_column_values_free(column->values, column->value_count);
        free(column->name);
    }
    free(description->columns);
    free(description);
}

/* ---- questions ---- */

const char *sgp_column_kind_name(enum sgp_column_kind kind)
{
    static const char *const names[] = {
        "empty", "constant", "identifier", "number", "category", "text"};
    return names[kind - SGP_COLUMN_EMPTY];
}

const struct sgp_column *sgp_description_find(
    const struct sgp_description *description, const char *name)
{
    for (uint32_t i = 0; i < description->column_count; i++)
        if (strcmp(description->columns[i].name, name) == 0)
            return &description->columns[i];
    return NULL;
}

bool sgp_column_is_classes(const struct sgp_column *column)
{
    if (column->kind != SGP_COLUMN_NUMBER)
        return column->kind == SGP_COLUMN_CATEGORY;
    return !column->many && column->wholes == column->present &&
           column->value_count <= SGP_NUMBER_CLASSES && column->present / 5 >= column->value_count;
}

bool sgp_column_is_useless(const struct sgp_column *column)
{
    return column->kind != SGP_COLUMN_NUMBER && column->kind != SGP_COLUMN_CATEGORY;
}
