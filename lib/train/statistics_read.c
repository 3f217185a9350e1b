/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the statistics of a CSV file in one pass. Memory holds the sums of each column of numbers,
 * and the different values of each column of words. Fails as the CSV reader. */
#include "statistics.h"

#include "counted.h"
#include "csv.h"
#include "measures/wide.h"
#include "names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DIFFERENT_MAX (1u << 20) /* different values of a column, told or not */

/* What a field of each record is. */
enum role { ROLE_NUMBERS = 0, ROLE_CATEGORY, ROLE_IGNORED, ROLE_LABEL };

/* A field of the record that is counted. */
struct tally {
    struct sgp_statistics_column *column;
    uint32_t field;
    struct sgp_counted counted; /* of VALUES and CLASSES */
};

struct reading {
    struct sgp_csv csv;
    struct sgp_csv_header header;
    const struct sgp_statistics_options *options;
    uint64_t min_count;
    enum role *roles;       /* by field */
    uint32_t *label_fields; /* in the order of `label` */
    struct sgp_statistics *statistics;
    struct tally *tallies;
    uint32_t tally_count;
    size_t bytes_most; /* of the different values of a column */
};

static int no_memory(const struct reading *reading, struct sgp_error *error)
{
    return sgp_fail(error, -ENOMEM, "%s:%llu: out of memory", reading->csv.source.name,
        (unsigned long long)reading->csv.line);
}

/* ---- which column is what ---- */

/* Give a role to the columns that a list names. */
static int bind_list(struct reading *reading, const char *list, const char *option, enum role role,
    struct sgp_error *error)
{
    struct sgp_error why = {0};
    char **names = NULL;
    uint32_t count = 0;
    int code = list ? sgp_names_split(list, SGP_NAMES_COLUMNS, &why, &names, &count) : 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t field = 0; field < reading->header.count; field++)
            if (strcmp(reading->header.names[field], names[i]) == 0)
                reading->roles[field] = role;
    sgp_names_free(names, count);
    return code < 0 ? sgp_fail(error, code, "%s: %s", option, why.text) : 0;
}

static int bind_label(
    struct reading *reading, char *const *names, uint32_t count, struct sgp_error *error)
{
    if (count == 0)
        return sgp_fail(error, SGP_E_CONFIG, "label: it names no column");
    if (count > 1 && reading->options->classes)
        return sgp_fail(error, SGP_E_CONFIG,
            "label: %u columns, and classes are the values of one; leave classes out, or put a "
            "name with a comma in it in \"quotes\"",
            count);
    reading->label_fields = calloc(count, sizeof *reading->label_fields);
    if (!reading->label_fields)
        return no_memory(reading, error);
    for (uint32_t i = 0; i < count; i++) {
        const int64_t field = sgp_csv_header_find(&reading->header, &reading->csv, names[i], error);
        if (field < 0)
            return (int)field;
        if (reading->roles[field] == ROLE_LABEL)
            return sgp_fail(error, SGP_E_CONFIG,
                "label: column '%.80s' is named twice; name it once", names[i]);
        if (reading->roles[field] == ROLE_IGNORED)
            return sgp_fail(error, SGP_E_CONFIG,
                "ignore: '%.80s' is the label; ignore other columns", names[i]);
        reading->roles[field] = ROLE_LABEL;
        reading->label_fields[i] = (uint32_t)field;
    }
    reading->statistics->label_count = count;
    return 0;
}

static int bind_roles(struct reading *reading, struct sgp_error *error)
{
    const struct sgp_statistics_options *options = reading->options;
    struct sgp_error why = {0};
    char **names = NULL;
    uint32_t count = 0;
    int code = bind_list(reading, options->categories, "categories", ROLE_CATEGORY, error);
    if (code == 0)
        code = bind_list(reading, options->ignore, "ignore", ROLE_IGNORED, error);
    if (code < 0 || !options->label)
        return code;
    code = sgp_names_split(options->label, SGP_NAMES_COLUMNS, &why, &names, &count);
    code = code < 0 ? sgp_fail(error, code, "label: %s", why.text)
                    : bind_label(reading, names, count, error);
    sgp_names_free(names, count);
    return code;
}

/* Count a field as a column, which takes over its name. */
static void tally_begin(struct reading *reading, uint32_t field,
    struct sgp_statistics_column *column, enum sgp_statistics_kind kind)
{
    column->name = reading->header.names[field];
    reading->header.names[field] = NULL;
    column->kind = kind;
    reading->tallies[reading->tally_count++] = (struct tally){.column = column, .field = field};
}

static int begin(struct reading *reading, struct sgp_error *error)
{
    struct sgp_statistics *statistics = reading->statistics;
    const uint32_t fields = reading->header.count;
    uint32_t counted = reading->options->classes;
    statistics->columns = calloc(fields, sizeof *statistics->columns);
    statistics->labels = calloc(fields, sizeof *statistics->labels);
    reading->roles = calloc(fields, sizeof *reading->roles);
    reading->tallies = calloc(fields, sizeof *reading->tallies);
    if (!statistics->columns || !statistics->labels || !reading->roles || !reading->tallies)
        return no_memory(reading, error);
    int code = bind_roles(reading, error);
    if (code < 0)
        return code;
    for (uint32_t i = 0; i < statistics->label_count; i++)
        tally_begin(reading, reading->label_fields[i], &statistics->labels[i],
            reading->options->classes ? SGP_STATISTICS_CLASSES : SGP_STATISTICS_NUMBERS);
    for (uint32_t field = 0; field < fields; field++) {
        const enum role role = reading->roles[field];
        if (role == ROLE_NUMBERS || role == ROLE_CATEGORY)
            tally_begin(reading, field, &statistics->columns[statistics->column_count++],
                role == ROLE_CATEGORY ? SGP_STATISTICS_VALUES : SGP_STATISTICS_NUMBERS);
        counted += role == ROLE_CATEGORY;
    }
    reading->bytes_most = SGP_STATISTICS_BYTES_MAX / (counted > 0 ? counted : 1);
    return statistics->column_count > 0
               ? 0
               : sgp_fail(error, SGP_E_DATA,
                     "%s:1: no column is left as a feature; rows need features beside the label",
                     reading->csv.source.name);
}

/* ---- rows ---- */

static void number_add(const struct reading *reading, struct tally *tally, const char *field)
{
    struct sgp_statistics_column *column = tally->column;
    double number;
    if (sgp_csv_number(field, &number)) {
        column->count++;
        sgp_wide_add(column->sum, number);
        sgp_wide_add_square(column->squares, number);
        return;
    }
    column->kind = SGP_STATISTICS_WORDS;
    column->stray_line = reading->csv.line;
    (void)snprintf(column->stray_text, sizeof column->stray_text, "%s", field);
}

static int value_add(
    const struct reading *reading, struct tally *tally, const char *field, struct sgp_error *error)
{
    char text[SGP_NUMBER_BYTES];
    double number;
    if (tally->column->kind == SGP_STATISTICS_CLASSES && sgp_csv_number(field, &number)) {
        sgp_number_text(number, text);
        field = text;
    }
    const int added =
        sgp_counted_add(&tally->counted, field, 1, DIFFERENT_MAX, reading->bytes_most);
    if (added == SGP_COUNTED_FULL)
        return sgp_fail(error, SGP_E_LIMIT,
            "%s:%llu: column '%.80s' holds more different values than %zu bytes or %u values; name "
            "it in ignore",
            reading->csv.source.name, (unsigned long long)reading->csv.line, tally->column->name,
            reading->bytes_most, DIFFERENT_MAX);
    return added < 0 ? no_memory(reading, error) : 0;
}

static int row_add(struct reading *reading, struct sgp_error *error)
{
    int code = 0;
    if (reading->statistics->rows++ == SGP_ROWS_MAX)
        return sgp_fail(error, SGP_E_LIMIT,
            "%s:%llu: more than %u rows; split the table, and give each node one part",
            reading->csv.source.name, (unsigned long long)reading->csv.line, SGP_ROWS_MAX);
    for (uint32_t i = 0; i < reading->tally_count && code == 0; i++) {
        struct tally *tally = &reading->tallies[i];
        const char *field = sgp_csv_field(&reading->csv, tally->field);
        if (sgp_csv_missing(field))
            continue;
        tally->column->present++;
        if (tally->column->kind == SGP_STATISTICS_NUMBERS)
            number_add(reading, tally, field);
        else if (tally->column->kind != SGP_STATISTICS_WORDS)
            code = value_add(reading, tally, field, error);
    }
    return code;
}

/* ---- what is told ---- */

static void forget_numbers(struct sgp_statistics_column *column)
{
    column->count = 0;
    memset(column->sum, 0, sizeof column->sum);
    memset(column->squares, 0, sizeof column->squares);
}

/* Keep the values that enough rows have. */
static void values_end(const struct reading *reading, struct tally *tally)
{
    struct sgp_statistics_column *column = tally->column;
    const uint32_t different = tally->counted.count;
    column->values = sgp_counted_take(&tally->counted);
    for (uint32_t i = 0; i < different; i++) {
        const struct sgp_column_value value = column->values[i];
        if (value.rows >= reading->min_count) {
            column->values[column->value_count++] = value;
            column->count += value.rows;
            continue;
        }
        free(value.text);
        column->held_values++;
        column->held_rows += value.rows;
    }
    if (column->value_count > 0)
        qsort(column->values, column->value_count, sizeof *column->values,
            sgp_statistics_order(column->kind));
}

static int tally_end(const struct reading *reading, struct tally *tally, struct sgp_error *error)
{
    struct sgp_statistics_column *column = tally->column;
    if (column->kind == SGP_STATISTICS_WORDS) {
        forget_numbers(column);
    } else if (column->kind != SGP_STATISTICS_NUMBERS) {
        values_end(reading, tally);
    } else if (column->count < reading->min_count) {
        column->held_rows = column->count;
        forget_numbers(column);
    }
    if (column->value_count <= sgp_statistics_values_max(column->kind))
        return 0;
    return sgp_fail(error, SGP_E_LIMIT,
        "%s: column '%.80s' has %u values of at least %llu rows each, and at most %u can be told; "
        "name it in ignore on every node",
        reading->csv.source.name, column->name, column->value_count,
        (unsigned long long)reading->min_count, sgp_statistics_values_max(column->kind));
}

static int run(struct reading *reading, struct sgp_error *error)
{
    int code = sgp_csv_header_read(&reading->csv, error, &reading->header);
    if (code < 0)
        return code;
    reading->statistics = calloc(1, sizeof *reading->statistics);
    code = reading->statistics ? begin(reading, error) : no_memory(reading, error);
    int more = code == 0;
    while (code == 0 && (more = sgp_csv_row(&reading->csv, &reading->header, error)) > 0)
        code = row_add(reading, error);
    code = more < 0 ? more : code;
    if (code == 0 && reading->statistics->rows == 0)
        return sgp_fail(error, SGP_E_DATA, "%s:%llu: no rows; at least one is needed",
            reading->csv.source.name, (unsigned long long)reading->csv.line);
    for (uint32_t i = 0; i < reading->tally_count && code == 0; i++)
        code = tally_end(reading, &reading->tallies[i], error);
    return code;
}

int sgp_statistics_read_file(FILE *file, const char *name,
    const struct sgp_statistics_options *options, struct sgp_error *error,
    struct sgp_statistics **ret_statistics)
{
    struct reading reading = {.options = options,
        .min_count = options->min_count > 0 ? options->min_count : SGP_STATISTICS_MIN_COUNT};
    int code = sgp_csv_init(&reading.csv, file, name, error);
    if (code == 0)
        code = run(&reading, error);
    for (uint32_t i = 0; i < reading.tally_count; i++)
        sgp_counted_finish(&reading.tallies[i].counted);
    free(reading.tallies);
    free(reading.label_fields);
    free(reading.roles);
    sgp_csv_header_finish(&reading.header);
    sgp_csv_finish(&reading.csv);
    if (code < 0)
        sgp_statistics_destroy(reading.statistics);
    else
        *ret_statistics = reading.statistics;
    return code;
}

int sgp_statistics_read(const char *path, const struct sgp_statistics_options *options,
    struct sgp_error *error, struct sgp_statistics **ret_statistics)
{
    FILE *file = NULL;
    int code = sgp_source_open(path, error, &file);
    if (code < 0)
        return code;
    code = sgp_statistics_read_file(file, path, options, error, ret_statistics);
    (void)fclose(file);
    return code;
}
