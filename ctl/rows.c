/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a node and their section [data]; see rows.h. */
#include "rows.h"

#include "line.h"

#include "train/names.h"

#include "sgp/statistics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_BYTES_MAX 160u /* of a value in one line of a configuration */
#define LIST_COLUMN 76u      /* where a line of names ends */

/* ---- reading ---- */

static int read_description(
    const char *file, struct sgp_error *error, struct sgp_description **ret_description)
{
    FILE *stream = fopen(file, "rb");
    if (!stream)
        return sgp_fail(error, -errno, "%s: %s", file, strerror(errno));
    int code = sgp_description_read(stream, file, error, ret_description);
    (void)fclose(stream);
    return code;
}

/* The column of that name; else an error that lists the columns. */
static const struct sgp_column *find(
    const struct ctl_rows *rows, const char *name, struct sgp_error *error)
{
    char list[SGP_TEXT_BYTES / 4] = "";
    const struct sgp_column *column = sgp_description_find(rows->description, name);
    for (uint32_t i = 0; !column && i < rows->description->column_count; i++)
        (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i > 0 ? ", " : "",
            rows->description->columns[i].name);
    if (!column)
        (void)sgp_fail(error, SGP_E_DATA, "%s:1: there is no column '%.80s'; the columns are %s",
            rows->file, name, list);
    return column;
}

static int read_names(
    struct ctl_rows *rows, const char *label, const char *ignore, struct sgp_error *error)
{
    struct sgp_error why = {0};
    if (label && !(rows->label = find(rows, label, error)))
        return SGP_E_DATA;
    if (!ignore)
        return 0;
    int code =
        sgp_names_split(ignore, SGP_NAMES_COLUMNS, &why, &rows->ignored, &rows->ignored_count);
    if (code < 0)
        return sgp_fail(error, code, "--ignore: %s", why.text);
    for (uint32_t i = 0; i < rows->ignored_count; i++) {
        const struct sgp_column *column = find(rows, rows->ignored[i], error);
        if (!column)
            return SGP_E_DATA;
        if (column == rows->label)
            return sgp_fail(error, SGP_E_CONFIG,
                "--ignore: '%.80s' is the label; ignore other columns", rows->ignored[i]);
    }
    return 0;
}

enum ctl_exit ctl_rows_read(struct ctl *ctl, const char *file, const char *label,
    const char *ignore, struct ctl_rows *ret_rows)
{
    struct sgp_error error = {0};
    *ret_rows = (struct ctl_rows){.file = file};
    int code = read_description(file, &error, &ret_rows->description);
    if (code == 0 && !realpath(file, ret_rows->path))
        code = sgp_fail(&error, -errno, "%s: %s", file, strerror(errno));
    if (code == 0)
        code = read_names(ret_rows, label, ignore, &error);
    if (code == 0)
        return CTL_DONE;
    ctl_rows_finish(ret_rows);
    return ctl_fail(ctl, CTL_INVALID, "%s", error.text);
}

void ctl_rows_finish(struct ctl_rows *rows)
{
    sgp_names_free(rows->ignored, rows->ignored_count);
    sgp_names_free(rows->classes, rows->class_count);
    sgp_description_destroy(rows->description);
    *rows = (struct ctl_rows){0};
}

/* ---- questions ---- */

static bool is_ignored(const struct ctl_rows *rows, const struct sgp_column *column)
{
    for (uint32_t i = 0; i < rows->ignored_count; i++)
        if (strcmp(rows->ignored[i], column->name) == 0)
            return true;
    return false;
}

bool ctl_rows_uses(const struct ctl_rows *rows, const struct sgp_column *column)
{
    const bool may_vary = column->kind == SGP_COLUMN_CONSTANT || column->kind == SGP_COLUMN_EMPTY;
    const bool useless = sgp_column_is_useless(column) && !(rows->common && may_vary);
    return column != rows->label && !useless && !is_ignored(rows, column);
}

bool ctl_rows_classify(const struct ctl_rows *rows)
{
    return rows->class_count > 0 || sgp_column_is_classes(rows->label);
}

uint32_t ctl_rows_outputs(const struct ctl_rows *rows)
{
    return rows->class_count > 0     ? rows->class_count
           : ctl_rows_classify(rows) ? rows->label->value_count
                                     : 1;
}

static bool is_class(const struct ctl_rows *rows, const char *value)
{
    for (uint32_t i = 0; i < rows->class_count; i++)
        if (strcmp(rows->classes[i], value) == 0)
            return true;
    return false;
}

/* Whether the rows of a class are left out if no node has more of them. */
static bool is_untold(const struct ctl_rows *rows, const struct sgp_column_value *value)
{
    return rows->common && value->rows < SGP_STATISTICS_MIN_COUNT;
}

int ctl_rows_name_classes(struct ctl_rows *rows, const char *names, struct sgp_error *error)
{
    struct sgp_error why = {0};
    const struct sgp_column *label = rows->label;
    int code = sgp_names_split(names, SGP_NAMES_CLASSES, &why, &rows->classes, &rows->class_count);
    if (code < 0)
        return sgp_fail(error, code, "--classes: %s", why.text);
    for (uint32_t i = 0; i < label->value_count; i++)
        if (!is_class(rows, label->values[i].text) && !is_untold(rows, &label->values[i]))
            return sgp_fail(error, SGP_E_CONFIG,
                "--classes: %s has rows of the class '%.80s' in column '%.80s'; name it, too",
                rows->file, label->values[i].text, label->name);
    return 0;
}

/* Whether it fits also beside a key, and in quotes. */
static bool fits_a_line(const char *value)
{
    return strlen(value) <= VALUE_BYTES_MAX && ctl_line_holds("", value);
}

static bool refuse_label(const struct ctl_rows *rows, struct sgp_error *why)
{
    const struct sgp_column *label = rows->label;
    if (!label)
        return sgp_fail(why, SGP_E_DATA, "%s: name the column to predict with --label", rows->file);
    const bool one_class = label->kind == SGP_COLUMN_CONSTANT && rows->class_count > 0;
    if (sgp_column_is_useless(label) && !one_class)
        return sgp_fail(why, SGP_E_DATA,
            "%s: column '%.80s' cannot be the label, because it is of kind %s; name another with "
            "--label",
            rows->file, label->name, sgp_column_kind_name(label->kind));
    if (!fits_a_line(label->name))
        return sgp_fail(why, SGP_E_DATA,
            "%s:1: the name of column '%.80s' cannot be written into a configuration; rename it",
            rows->file, label->name);
    for (uint32_t i = 0; sgp_column_is_classes(label) && i < label->value_count; i++)
        if (!fits_a_line(label->values[i].text))
            return sgp_fail(why, SGP_E_DATA,
                "%s: column '%.80s': the class '%.80s' cannot be written into a configuration; "
                "rename it",
                rows->file, label->name, label->values[i].text);
    return false;
}

/* Numbers among which there is text would become a column of words. */
static bool refuse_stray(
    const struct ctl_rows *rows, const struct sgp_column *column, struct sgp_error *why)
{
    if (column->stray == 0)
        return false;
    return sgp_fail(why, SGP_E_DATA,
        "%s:%llu: column '%.80s': '%s' is no number, but %llu values are; correct it%s", rows->file,
        (unsigned long long)column->stray_line, column->name, column->stray_text,
        (unsigned long long)column->numbers,
        column == rows->label ? "" : ", or leave the column out with --ignore");
}

bool ctl_rows_refuse(const struct ctl_rows *rows, struct sgp_error *ret_why)
{
    uint32_t features = 0;
    if (!ctl_line_holds("train", rows->path))
        return sgp_fail(ret_why, SGP_E_DATA,
            "%s: this path cannot be written into a configuration; rename it", rows->path);
    if (refuse_label(rows, ret_why) || refuse_stray(rows, rows->label, ret_why))
        return true;
    for (uint32_t i = 0; i < rows->description->column_count; i++) {
        const struct sgp_column *column = &rows->description->columns[i];
        if (!ctl_rows_uses(rows, column))
            continue;
        features++;
        if (refuse_stray(rows, column, ret_why))
            return true;
    }
    return features > 0 ? false
                        : sgp_fail(ret_why, SGP_E_DATA,
                              "%s: no column is left as a feature; rows need features beside the "
                              "label",
                              rows->file);
}

/* A feature of words. */
static bool is_category(const struct ctl_rows *rows, const struct sgp_column *column)
{
    const bool word = column->kind == SGP_COLUMN_CONSTANT && column->numbers == 0;
    return ctl_rows_uses(rows, column) && (word || column->kind == SGP_COLUMN_CATEGORY);
}

/* A column that is neither a feature nor the label. */
static bool is_left_out(const struct ctl_rows *rows, const struct sgp_column *column)
{
    return column != rows->label && !ctl_rows_uses(rows, column);
}

bool ctl_rows_refuse_fleet(const struct ctl_rows *rows, struct sgp_error *ret_why)
{
    for (uint32_t i = 0; i < rows->description->column_count; i++) {
        const struct sgp_column *column = &rows->description->columns[i];
        if ((is_category(rows, column) || is_left_out(rows, column)) && !fits_a_line(column->name))
            return sgp_fail(ret_why, SGP_E_DATA,
                "%s:1: the name of column '%.80s' cannot be written into a configuration; rename "
                "it",
                rows->file, column->name);
    }
    return false;
}

/* ---- texts ---- */

/* A name as lists of names take it: in quotes if it must be. The caller frees the text; NULL: no
 * memory. */
static char *name_text(const char *name)
{
    char *const names[] = {(char *)(uintptr_t)name};
    const size_t capacity = 2 * strlen(name) + 3;
    char *text = malloc(capacity);
    if (text)
        (void)sgp_names_join(names, 1, text, capacity);
    return text;
}

static void put_name(const char *name, FILE *file)
{
    char *text = name_text(name);
    (void)fputs(text ? text : "", file);
    free(text);
}

char *ctl_rows_label(const struct ctl_rows *rows)
{
    return name_text(rows->label->name);
}

void ctl_rows_put_label(const struct ctl_rows *rows, FILE *file)
{
    char *text = ctl_rows_label(rows);
    ctl_put_word(text ? text : "", file);
    free(text);
}

char *ctl_rows_left_out(const struct ctl_rows *rows, bool with_label)
{
    char *text = NULL;
    size_t bytes = 0;
    const char *before = "";
    FILE *file = open_memstream(&text, &bytes);
    for (uint32_t i = 0; file && i < rows->description->column_count; i++) {
        const struct sgp_column *column = &rows->description->columns[i];
        if (ctl_rows_uses(rows, column) || (column == rows->label && !with_label))
            continue;
        (void)fputs(before, file);
        put_name(column->name, file);
        before = ",";
    }
    if (file)
        (void)fclose(file);
    return text;
}

/* A key whose value is names, in lines that a configuration takes. */
struct list {
    const char *key, *separator;
    uint32_t count;
    size_t column; /* where the line ends */
};

static void list_add(struct list *list, const char *name, FILE *file)
{
    const size_t length = strlen(name) + 1;
    if (list->count++ == 0)
        list->column = (size_t)fprintf(file, "%s =", list->key);
    else
        list->column += (size_t)fprintf(file, "%s", list->separator);
    if (list->count > 1 && list->column + length > LIST_COLUMN)
        list->column = (size_t)fprintf(file, "\n   ") - 1;
    (void)fputc(' ', file);
    put_name(name, file);
    list->column += length;
}

static void put_classes(const struct ctl_rows *rows, FILE *file)
{
    struct list list = {.key = "classes", .separator = ""};
    for (uint32_t i = 0; i < ctl_rows_outputs(rows); i++)
        list_add(&list, rows->classes ? rows->classes[i] : rows->label->values[i].text, file);
    (void)fputc('\n', file);
}

/* The columns of which `belongs` is true, if there are any. */
static void put_columns(const struct ctl_rows *rows,
    bool (*belongs)(const struct ctl_rows *rows, const struct sgp_column *column), const char *key,
    const char *comment, FILE *file)
{
    struct list list = {.key = key, .separator = ","};
    for (uint32_t i = 0; i < rows->description->column_count; i++) {
        const struct sgp_column *column = &rows->description->columns[i];
        if (!belongs(rows, column))
            continue;
        if (list.count == 0)
            (void)fprintf(file, "; %s\n", comment);
        list_add(&list, column->name, file);
    }
    if (list.count > 0)
        (void)fputc('\n', file);
}

/* How columns become features. */
static void put_scale(const struct ctl_rows *rows, const char *scale, FILE *file)
{
    if (strcmp(scale, CTL_SCALE_FLEET) != 0) {
        (void)fprintf(file,
            "; how columns become features; the same file on every node\nscale = %s\n", scale);
        return;
    }
    (void)fprintf(file,
        "; how columns become features: all nodes agree on it before they train\nscale = %s\n",
        scale);
    put_columns(rows, is_category, "categories", "columns of words; the same on every node", file);
    put_columns(
        rows, is_left_out, "ignore", "columns that are not used; the same on every node", file);
}

/* What to do with rows that lack a value, if there are any. */
static void put_missing(const struct ctl_rows *rows, bool scaled, FILE *file)
{
    uint64_t features = 0;
    for (uint32_t i = 0; i < rows->description->column_count; i++)
        if (ctl_rows_uses(rows, &rows->description->columns[i]))
            features += rows->description->columns[i].missing;
    if (rows->label->missing > 0)
        (void)fprintf(file,
            "; %llu rows lack the label; drop leaves out each row that lacks a value\n"
            "missing = drop\n",
            (unsigned long long)rows->label->missing);
    else if (features > 0 && scaled)
        (void)fprintf(file,
            "; %llu values are missing; mean replaces a number by its column's mean, a word by no "
            "category\n"
            "missing = mean\n",
            (unsigned long long)features);
    else if (features > 0)
        (void)fprintf(file,
            "; %llu values are missing; drop leaves their rows out, mean needs a scaling file\n"
            "missing = drop\n",
            (unsigned long long)features);
}

void ctl_rows_put_data(
    const struct ctl_rows *rows, const struct ctl_data_options *options, FILE *file)
{
    const bool scaled = strcmp(options->scale, "none") != 0;
    (void)fprintf(
        file, "[data]\n; the rows of this node; they never leave it\ntrain = %s\n", rows->path);
    (void)fprintf(file, "; the column to predict\nlabel = ");
    put_name(rows->label->name, file);
    (void)fputc('\n', file);
    if (ctl_rows_classify(rows)) {
        (void)fprintf(file, "; its values, in the order of the outputs; the same on every node\n");
        put_classes(rows, file);
    }
    put_scale(rows, options->scale, file);
    put_missing(rows, scaled, file);
    (void)fprintf(file,
        "; none: all rows of the file are this node's; round-robin: all nodes share one file\n"
        "shards = %s\n",
        options->shards);
    (void)fprintf(
        file, "; part of the rows that is kept for testing\nholdout = %g\n", options->holdout);
}
