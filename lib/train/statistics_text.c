/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics as one line of JSON, and back. Nothing in a text is trusted. Its numbers have bounds
 * that no sum over SGP_STATISTICS_NODES_MAX nodes exceeds. */
#include "statistics.h"

#include "counted.h"
#include "csv.h"
#include "measures/wide.h"
#include "target_scale.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_VERSION 1
/* SGP_ROWS_MAX numbers below 2^128, in multiples of 2^-192: 352 bits; their squares: 672 bits. */
#define SUM_DIGITS 88u
#define SQUARES_DIGITS 168u

/* ---- writing ---- */

static json_t *values_json(const struct sgp_statistics_column *column)
{
    const bool classes = column->kind == SGP_STATISTICS_CLASSES;
    json_t *values = classes ? json_object() : json_array();
    int code = 0;
    for (uint32_t i = 0; i < column->value_count && code == 0; i++)
        code = classes ? json_object_set_new(values, column->values[i].text,
                             json_integer((json_int_t)column->values[i].rows))
                       : json_array_append_new(values, json_string(column->values[i].text));
    if (code == 0)
        return values;
    json_decref(values);
    return NULL;
}

/* NULL: no memory, or a name or value that is not UTF-8. */
static json_t *column_json(const struct sgp_statistics_column *column)
{
    char sum[SGP_WIDE_TEXT_BYTES], squares[SGP_WIDE_TEXT_BYTES];
    const char *kind = sgp_statistics_kind_name(column->kind);
    switch (column->kind) {
    case SGP_STATISTICS_NUMBERS:
        sgp_wide_write(column->sum, SGP_WIDE_SUM_LIMBS, sum);
        sgp_wide_write(column->squares, SGP_WIDE_SQUARES_LIMBS, squares);
        return json_pack(
            "[s, s, I, s, s]", column->name, kind, (json_int_t)column->count, sum, squares);
    case SGP_STATISTICS_VALUES:
    case SGP_STATISTICS_CLASSES:
        return json_pack("[s, s, o]", column->name, kind, values_json(column));
    case SGP_STATISTICS_WORDS:
        break;
    }
    return json_pack("[s, s]", column->name, kind);
}

static int columns_json(const struct sgp_statistics_column *columns, uint32_t count,
    const char *path, struct sgp_error *error, json_t *list)
{
    for (uint32_t i = 0; i < count; i++)
        if (json_array_append_new(list, column_json(&columns[i])) < 0)
            return sgp_fail(error, SGP_E_DATA,
                "%s: column '%.80s' cannot be told: its name or a value is not UTF-8; convert the "
                "file, or name the column in ignore on every node",
                path, columns[i].name);
    return 0;
}

/* A DEL is ASCII that jansson does not escape. It is there only within strings. */
char *sgp_statistics_dump(const json_t *value)
{
    static const char escaped[] = "\\u007f";
    const size_t width = sizeof escaped - 1;
    char *text =
        json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(SGP_REAL_DIGITS));
    size_t bytes = 1;
    for (const char *c = text; c && *c; c++)
        bytes += *c == 0x7f ? width : 1;
    char *printable = text ? malloc(bytes) : NULL;
    char *to = printable;
    for (const char *c = text; printable && *c; c++) {
        if (*c == 0x7f)
            to = (char *)memcpy(to, escaped, width) + width;
        else
            *to++ = *c;
    }
    if (to)
        *to = '\0';
    free(text);
    return printable;
}

int sgp_statistics_text(const struct sgp_statistics *statistics, const char *path,
    struct sgp_error *error, char **ret_text)
{
    json_t *labels = json_array(), *columns = json_array();
    int code = columns_json(statistics->labels, statistics->label_count, path, error, labels);
    if (code == 0)
        code = columns_json(statistics->columns, statistics->column_count, path, error, columns);
    json_t *root = json_pack("{s:i, s:I, s:o, s:o}", "sgp_statistics", FORMAT_VERSION, "rows",
        (json_int_t)statistics->rows, "labels", labels, "columns", columns);
    char *text = code == 0 ? sgp_statistics_dump(root) : NULL;
    json_decref(root);
    if (code < 0)
        return code;
    if (!text)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", path);
    if (strlen(text) > SGP_STATISTICS_MAX) {
        free(text);
        return sgp_fail(error, SGP_E_LIMIT,
            "%s: the statistics are longer than %u bytes; name columns in ignore on every node",
            path, SGP_STATISTICS_MAX);
    }
    *ret_text = text;
    return 0;
}

/* ---- reading ---- */

/* The text that is read, for messages. */
struct place {
    const char *node;
    struct sgp_error *error;
};

static int malformed(const struct place *place, const char *column, const char *what)
{
    return sgp_fail(place->error, SGP_E_DATA,
        "the statistics of %s are malformed: %s%.80s%s%s; does %s run another version of sgpd?",
        place->node, column ? "column '" : "", column ? column : "", column ? "' " : "", what,
        place->node);
}

static int no_memory(const struct place *place)
{
    return sgp_fail(place->error, -ENOMEM, "the statistics of %s: out of memory", place->node);
}

/* An integer in least..most; false if the value is none. */
static bool read_count(const json_t *value, uint64_t least, uint64_t most, uint64_t *ret_count)
{
    const json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || (uint64_t)number < least ||
        (uint64_t)number > most)
        return false;
    *ret_count = (uint64_t)number;
    return true;
}

static bool read_wide(const json_t *value, uint32_t digits, uint32_t *limbs, uint32_t count)
{
    const char *text = json_string_value(value);
    return text && sgp_wide_read(text, digits, limbs, count);
}

static int read_numbers(const struct place *place, const json_t *list, uint64_t rows,
    struct sgp_statistics_column *column)
{
    if (json_array_size(list) != 5 ||
        !read_count(json_array_get(list, 2), 0, rows, &column->count) ||
        !read_wide(json_array_get(list, 3), SUM_DIGITS, column->sum, SGP_WIDE_SUM_LIMBS) ||
        !read_wide(
            json_array_get(list, 4), SQUARES_DIGITS, column->squares, SGP_WIDE_SQUARES_LIMBS))
        return malformed(place, column->name, "has no count, sum and sum of squares");
    if (!sgp_wide_is_possible(column->count, column->sum, column->squares))
        return malformed(place, column->name, "has sums that no numbers have");
    return 0;
}

/* Whether a table can have this value. A class that is a number is in its shortest form. */
static bool is_value(const char *text, enum sgp_statistics_kind kind)
{
    char shortest[SGP_NUMBER_BYTES];
    double number;
    if (strlen(text) > SGP_FIELD_BYTES_MAX || sgp_csv_missing(text))
        return false;
    if (kind != SGP_STATISTICS_CLASSES || !sgp_csv_number(text, &number))
        return true;
    sgp_number_text(number, shortest);
    return strcmp(text, shortest) == 0;
}

/* Add a value, which must come after the one before in the order of values. */
static int read_value(const struct place *place, const char *text, uint64_t rows,
    struct sgp_statistics_column *column)
{
    struct sgp_column_value *value = &column->values[column->value_count];
    if (!is_value(text, column->kind))
        return malformed(place, column->name, "has a value that no table has");
    value->text = strdup(text);
    value->rows = rows;
    if (!value->text)
        return no_memory(place);
    column->value_count++;
    column->count += rows;
    return column->value_count == 1 || sgp_statistics_order(column->kind)(value - 1, value) < 0
               ? 0
               : malformed(place, column->name, "has values that are not in order");
}

static int read_classes(
    const struct place *place, json_t *classes, uint64_t rows, struct sgp_statistics_column *column)
{
    const char *text;
    json_t *value;
    json_object_foreach(classes, text, value)
    {
        uint64_t count;
        if (!read_count(value, 1, rows - column->count, &count))
            return malformed(place, column->name, "has classes of too many rows");
        int code = read_value(place, text, count, column);
        if (code < 0)
            return code;
    }
    return 0;
}

static int read_values(const struct place *place, const json_t *list, uint64_t rows,
    struct sgp_statistics_column *column)
{
    const bool classes = column->kind == SGP_STATISTICS_CLASSES;
    json_t *values = json_array_get(list, 2);
    const size_t count = classes ? json_object_size(values) : json_array_size(values);
    if (json_array_size(list) != 3 || !(classes ? json_is_object(values) : json_is_array(values)) ||
        count > sgp_statistics_values_max(column->kind))
        return malformed(place, column->name, "has no list of values, or too long a one");
    column->values = calloc(count + 1, sizeof *column->values);
    if (!column->values)
        return no_memory(place);
    if (classes)
        return read_classes(place, values, rows, column);
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(values, i));
        int code = text ? read_value(place, text, 0, column)
                        : malformed(place, column->name, "has a value that is no text");
        if (code < 0)
            return code;
    }
    return 0;
}

/* The kind of a column; a feature never has classes, nor a label values. 0: none. */
static enum sgp_statistics_kind read_kind(const json_t *list, bool label)
{
    const char *word = json_string_value(json_array_get(list, 1));
    for (int kind = SGP_STATISTICS_NUMBERS; word && kind <= SGP_STATISTICS_WORDS; kind++)
        if (strcmp(word, sgp_statistics_kind_name((enum sgp_statistics_kind)kind)) == 0)
            return kind == (label ? SGP_STATISTICS_VALUES : SGP_STATISTICS_CLASSES)
                       ? 0
                       : (enum sgp_statistics_kind)kind;
    return 0;
}

static int read_column(const struct place *place, const json_t *list, bool label, uint64_t rows,
    struct sgp_statistics_column *column)
{
    const char *name = json_string_value(json_array_get(list, 0));
    if (!name || strlen(name) > SGP_FIELD_BYTES_MAX)
        return malformed(place, NULL, "a column has no name, or too long a one");
    column->name = strdup(name);
    if (!column->name)
        return no_memory(place);
    column->kind = read_kind(list, label);
    switch (column->kind) {
    case SGP_STATISTICS_NUMBERS:
        return read_numbers(place, list, rows, column);
    case SGP_STATISTICS_VALUES:
    case SGP_STATISTICS_CLASSES:
        return read_values(place, list, rows, column);
    case SGP_STATISTICS_WORDS:
        if (json_array_size(list) == 2)
            return 0;
    }
    return malformed(place, column->name, "is of an unknown kind");
}

/* Read a list of columns. On failure, too, *ret_columns and *ret_count hold what was allocated. */
static int read_columns(const struct place *place, const json_t *list, bool label, uint64_t rows,
    struct sgp_statistics_column **ret_columns, uint32_t *ret_count)
{
    const size_t count = json_array_size(list);
    if (!json_is_array(list) || count > SGP_COLUMNS_MAX || (count == 0 && !label))
        return malformed(
            place, NULL, label ? "too many labels, or no list" : "no columns, or too many");
    *ret_columns = calloc(count + 1, sizeof **ret_columns);
    if (!*ret_columns)
        return no_memory(place);
    *ret_count = (uint32_t)count;
    int code = 0;
    for (size_t i = 0; i < count && code == 0; i++)
        code = read_column(place, json_array_get(list, i), label, rows, &(*ret_columns)[i]);
    return code;
}

static int name_compare(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Refuse two columns of the same name, labels included. */
static int check_names(const struct place *place, const struct sgp_statistics *statistics)
{
    const uint32_t count = statistics->column_count + statistics->label_count;
    const char **names = malloc(count * sizeof *names);
    if (!names)
        return no_memory(place);
    for (uint32_t i = 0; i < count; i++)
        names[i] = i < statistics->column_count
                       ? statistics->columns[i].name
                       : statistics->labels[i - statistics->column_count].name;
    qsort(names, count, sizeof *names, name_compare);
    int code = 0;
    for (uint32_t i = 1; i < count && code == 0; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            code = malformed(place, names[i], "is there twice");
    free(names);
    return code;
}

static int read_root(
    const struct place *place, const json_t *root, struct sgp_statistics *statistics)
{
    uint64_t version;
    if (!read_count(
            json_object_get(root, "sgp_statistics"), FORMAT_VERSION, FORMAT_VERSION, &version) ||
        json_object_size(root) != 4)
        return malformed(place, NULL, "they are not of this format");
    if (!read_count(json_object_get(root, "rows"), 1, SGP_ROWS_MAX, &statistics->rows))
        return malformed(place, NULL, "there are no rows, or too many");
    int code = read_columns(place, json_object_get(root, "labels"), true, statistics->rows,
        &statistics->labels, &statistics->label_count);
    if (code == 0)
        code = read_columns(place, json_object_get(root, "columns"), false, statistics->rows,
            &statistics->columns, &statistics->column_count);
    for (uint32_t i = 0; code == 0 && statistics->label_count > 1 && i < statistics->label_count;
         i++)
        if (statistics->labels[i].kind == SGP_STATISTICS_CLASSES)
            code = malformed(place, statistics->labels[i].name, "has classes beside another label");
    return code < 0 ? code : check_names(place, statistics);
}

int sgp_statistics_parse(const char *text, const char *name, struct sgp_error *error,
    struct sgp_statistics **ret_statistics)
{
    const struct place place = {.node = name, .error = error};
    const size_t bytes = strnlen(text, SGP_STATISTICS_MAX + 1);
    if (bytes > SGP_STATISTICS_MAX)
        return malformed(&place, NULL, "they are too long");
    struct sgp_statistics *statistics = calloc(1, sizeof *statistics);
    if (!statistics)
        return no_memory(&place);
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    int code = json_is_object(root) ? read_root(&place, root, statistics)
                                    : malformed(&place, NULL, "they are not JSON");
    json_decref(root);
    if (code < 0)
        sgp_statistics_destroy(statistics);
    else
        *ret_statistics = statistics;
    return code;
}
