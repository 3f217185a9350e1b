/* SPDX-License-Identifier: Apache-2.0 */
/* sgpctl data describe: what a CSV file holds, what looks wrong, and the section [data] for it.
 *
 * The answer is one JSON object. For a person, the parts of that object are printed in turn. */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

#define VALUES_SHOWN 100u /* of a feature, in JSON */
#define VALUES_TOLD 4u    /* of a column, for a person */
#define RARE_ROWS 10u     /* a class with fewer rows is an oddity */
#define HOLDOUT 0.2
#define SCALE "scale.json"

/* ---- columns ---- */

static json_t *values_json(const struct sgp_column *column, uint32_t most)
{
    json_t *values = json_array();
    for (uint32_t i = 0; i < column->value_count && i < most; i++)
        (void)json_array_append_new(
            values, json_pack("{s:o, s:I}", "value", ctl_json_text(column->values[i].text), "rows",
                        (json_int_t)column->values[i].rows));
    return values;
}

/* Whether the values are worth listing, and their rows are counted to the end. */
static bool has_values(const struct sgp_column *column)
{
    return !column->many &&
           (column->kind == SGP_COLUMN_CATEGORY || column->kind == SGP_COLUMN_CONSTANT ||
               sgp_column_is_classes(column));
}

static json_t *column_json(const struct ctl_rows *rows, const struct sgp_column *column)
{
    json_t *json =
        json_pack("{s:o, s:s, s:b, s:I, s:I, s:I, s:b}", "name", ctl_json_text(column->name),
            "kind", sgp_column_kind_name(column->kind), "feature", (int)ctl_rows_uses(rows, column),
            "present", (json_int_t)column->present, "missing", (json_int_t)column->missing,
            "different", (json_int_t)column->value_count, "more", (int)column->many);
    if (column->kind == SGP_COLUMN_NUMBER ||
        (column->numbers > 0 && column->stray == 0 && column->kind == SGP_COLUMN_IDENTIFIER)) {
        (void)json_object_set_new(json, "least", ctl_json_real(column->least));
        (void)json_object_set_new(json, "most", ctl_json_real(column->most));
        (void)json_object_set_new(json, "mean", ctl_json_real(column->mean));
        (void)json_object_set_new(json, "deviation", ctl_json_real(column->deviation));
    }
    if (has_values(column))
        (void)json_object_set_new(json, "values",
            values_json(column, column == rows->label ? column->value_count : VALUES_SHOWN));
    return json;
}

/* ---- oddities ---- */

static void add_oddity(
    json_t *oddities, const struct sgp_column *column, uint64_t line, const char *text)
{
    json_t *oddity = json_pack("{s:o, s:o, s:o}", "column",
        column ? ctl_json_text(column->name) : json_null(), "line",
        line > 0 ? json_integer((json_int_t)line) : json_null(), "text", ctl_json_text(text));
    (void)json_array_append_new(oddities, oddity);
}

/* What the kind of a column says against it. */
static void add_kind(json_t *oddities, const struct sgp_column *column)
{
    char text[SGP_TEXT_BYTES];
    switch (column->kind) {
    case SGP_COLUMN_EMPTY:
        add_oddity(oddities, column, 0, "it has no value in any row");
        break;
    case SGP_COLUMN_CONSTANT:
        (void)snprintf(
            text, sizeof text, "it holds one value alone, '%.80s'", column->values[0].text);
        add_oddity(oddities, column, 0, text);
        break;
    case SGP_COLUMN_IDENTIFIER:
        add_oddity(oddities, column, 0,
            column->numbers > 0 ? "it numbers the rows" : "no text in it occurs twice");
        break;
    case SGP_COLUMN_TEXT:
        (void)snprintf(
            text, sizeof text, "it holds more than %u different texts", column->value_count);
        add_oddity(oddities, column, 0, text);
        break;
    case SGP_COLUMN_NUMBER:
    case SGP_COLUMN_CATEGORY:
        break;
    }
}

static void add_of_column(json_t *oddities, const struct sgp_column *column)
{
    char text[SGP_TEXT_BYTES];
    add_kind(oddities, column);
    if (column->stray > 0) {
        (void)snprintf(text, sizeof text, "'%s' is the first of %llu texts among %llu numbers",
            column->stray_text, (unsigned long long)column->stray,
            (unsigned long long)column->numbers);
        add_oddity(oddities, column, column->stray_line, text);
    }
    if (column->kind == SGP_COLUMN_NUMBER && !column->repeats &&
        column->wholes == column->present && column->present >= SGP_IDENTIFIER_ROWS)
        add_oddity(oddities, column, 0,
            "no whole number in it occurs twice; if it is an identifier, ignore it");
    if (column->present > 0 && column->missing > column->present)
        add_oddity(
            oddities, column, column->missing_line, "more than half of its values are missing");
}

static void add_of_label(json_t *oddities, const struct sgp_column *label)
{
    char text[SGP_TEXT_BYTES];
    if (label->missing > 0) {
        (void)snprintf(
            text, sizeof text, "%llu rows lack the label", (unsigned long long)label->missing);
        add_oddity(oddities, label, label->missing_line, text);
    }
    for (uint32_t i = 0; sgp_column_is_classes(label) && i < label->value_count; i++) {
        if (label->values[i].rows >= RARE_ROWS)
            continue;
        (void)snprintf(text, sizeof text, "the class '%.80s' has only %llu rows",
            label->values[i].text, (unsigned long long)label->values[i].rows);
        add_oddity(oddities, label, 0, text);
    }
}

static json_t *oddities_json(const struct ctl_rows *rows)
{
    json_t *oddities = json_array();
    uint32_t numbers = 0;
    double number;
    for (uint32_t i = 0; i < rows->description->column_count; i++) {
        add_of_column(oddities, &rows->description->columns[i]);
        numbers += ctl_text_real(rows->description->columns[i].name, &number);
    }
    if (numbers == rows->description->column_count)
        add_oddity(
            oddities, NULL, 1, "the first line holds numbers; it must hold the columns' names");
    if (rows->label)
        add_of_label(oddities, rows->label);
    return oddities;
}

/* ---- the section [data] ---- */

static void write_data(const struct ctl_rows *rows, FILE *file)
{
    const struct ctl_data_options options = {.scale = SCALE, .shards = "none", .holdout = HOLDOUT};
    ctl_rows_put_data(rows, &options, file);
}

/* The command that makes the scaling file. */
static void write_command(const struct ctl_rows *rows, FILE *file)
{
    char *left_out = ctl_rows_left_out(rows, false);
    (void)fprintf(file, "sgpctl scaling ");
    ctl_put_word(rows->path, file);
    (void)fprintf(file, " %s --label ", SCALE);
    ctl_rows_put_label(rows, file);
    if (left_out && left_out[0] != '\0') {
        (void)fprintf(file, " --ignore ");
        ctl_put_word(left_out, file);
    }
    free(left_out);
}

/* What a function writes, as JSON. */
static json_t *text_json(
    void (*write)(const struct ctl_rows *rows, FILE *file), const struct ctl_rows *rows)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    if (!file)
        return json_null();
    write(rows, file);
    (void)fclose(file);
    json_t *json = text ? ctl_json_text(text) : json_null();
    free(text);
    return json;
}

/* The section and the command; or why there is none. */
static void add_data(const struct ctl_rows *rows, json_t *json)
{
    struct sgp_error why = {0};
    const bool refused = ctl_rows_refuse(rows, &why);
    (void)json_object_set_new(json, "data", refused ? json_null() : text_json(write_data, rows));
    (void)json_object_set_new(
        json, "scaling_command", refused ? json_null() : text_json(write_command, rows));
    (void)json_object_set_new(json, "refused", refused ? ctl_json_text(why.text) : json_null());
}

static json_t *description_json(const struct ctl_rows *rows)
{
    json_t *columns = json_array();
    for (uint32_t i = 0; i < rows->description->column_count; i++)
        (void)json_array_append_new(columns, column_json(rows, &rows->description->columns[i]));
    json_t *json = json_pack("{s:o, s:I, s:o, s:o, s:o, s:o}", "file", ctl_json_text(rows->file),
        "rows", (json_int_t)rows->description->rows, "label",
        rows->label ? ctl_json_text(rows->label->name) : json_null(), "outputs",
        rows->label && !sgp_column_is_useless(rows->label) ? json_integer(ctl_rows_outputs(rows))
                                                           : json_null(),
        "columns", columns, "oddities", oddities_json(rows));
    add_data(rows, json);
    return json;
}

/* ---- for a person ---- */

static int by_rows(const void *left, const void *right)
{
    const uint64_t a = ((const struct sgp_column_value *)left)->rows;
    const uint64_t b = ((const struct sgp_column_value *)right)->rows;
    return (a < b) - (a > b);
}

/* The most frequent values, the most frequent first: "no 400, yes 100". */
static void tell_values(const struct sgp_column *column, uint32_t most, char *text, size_t bytes)
{
    struct sgp_column_value *values = calloc(column->value_count, sizeof *values);
    size_t used = 0;
    if (!values)
        return;
    memcpy(values, column->values, column->value_count * sizeof *values);
    qsort(values, column->value_count, sizeof *values, by_rows);
    for (uint32_t i = 0; i < column->value_count && i < most && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%.40s %llu", i > 0 ? ", " : "",
            values[i].text, (unsigned long long)values[i].rows);
    if (column->value_count > most && used < bytes)
        (void)snprintf(text + used, bytes - used, " and %u more", column->value_count - most);
    free(values);
}

/* What a column holds, in a few words. */
static void tell_content(const struct sgp_column *column, char text[CTL_CELL_BYTES])
{
    text[0] = '\0';
    if (has_values(column))
        tell_values(column, VALUES_TOLD, text, CTL_CELL_BYTES);
    else if (column->kind == SGP_COLUMN_NUMBER)
        (void)snprintf(text, CTL_CELL_BYTES, "%.6g to %.6g, mean %.6g, deviation %.6g",
            column->least, column->most, column->mean, column->deviation);
    else if (column->kind == SGP_COLUMN_IDENTIFIER)
        (void)snprintf(text, CTL_CELL_BYTES, "a value of its own in each row");
    else if (column->kind == SGP_COLUMN_TEXT)
        (void)snprintf(text, CTL_CELL_BYTES, "text of many values");
}

static void print_columns(const struct ctl *ctl, const struct ctl_rows *rows)
{
    static const char *const keys[] = {"column", "kind", "missing", "different", "holds"};
    json_t *table = json_array();
    for (uint32_t i = 0; i < rows->description->column_count; i++) {
        const struct sgp_column *column = &rows->description->columns[i];
        char holds[CTL_CELL_BYTES], different[32];
        tell_content(column, holds);
        (void)snprintf(
            different, sizeof different, column->many ? "over %u" : "%u", column->value_count);
        (void)json_array_append_new(table,
            json_pack("{s:o, s:s, s:I, s:s, s:o}", keys[0], ctl_json_text(column->name), keys[1],
                sgp_column_kind_name(column->kind), keys[2], (json_int_t)column->missing, keys[3],
                different, keys[4], ctl_json_text(holds)));
    }
    ctl_print_aligned(ctl, table, keys, sizeof keys / sizeof *keys);
    json_decref(table);
}

static void print_label(const struct ctl_rows *rows)
{
    if (!rows->label || sgp_column_is_useless(rows->label))
        return;
    if (!sgp_column_is_classes(rows->label)) {
        (void)printf("\nThe label is a number: a model has 1 output and loss = mse.\n");
        return;
    }
    (void)printf("\nThe label has %u classes:\n", rows->label->value_count);
    for (uint32_t i = 0; i < rows->label->value_count; i++) {
        struct sgp_error clean = {0}; /* removes control characters */
        (void)sgp_fail(&clean, SGP_E_DATA, "%.80s", rows->label->values[i].text);
        (void)printf("  %s: %llu rows, %.1f %%\n", clean.text,
            (unsigned long long)rows->label->values[i].rows,
            100 * (double)rows->label->values[i].rows / (double)rows->label->present);
    }
}

static void print_oddities(const json_t *oddities)
{
    size_t index;
    json_t *oddity;
    if (json_array_size(oddities) > 0)
        (void)printf("\nLook at:\n");
    json_array_foreach(oddities, index, oddity)
    {
        const json_t *column = json_object_get(oddity, "column");
        const json_t *line = json_object_get(oddity, "line");
        struct sgp_error clean = {0};
        (void)sgp_fail(&clean, SGP_E_DATA, "%s%.80s%s%s", json_is_null(column) ? "" : "column '",
            json_is_null(column) ? "" : json_string_value(column),
            json_is_null(column) ? "" : "': ", json_string_value(json_object_get(oddity, "text")));
        (void)printf("  ");
        if (json_is_integer(line))
            (void)printf("line %lld: ", (long long)json_integer_value(line));
        (void)printf("%s\n", clean.text);
    }
}

static void print_description(const struct ctl *ctl, const struct ctl_rows *rows)
{
    json_t *json = description_json(rows);
    const json_t *refused = json_object_get(json, "refused");
    (void)printf("%s: %llu rows, %u columns\n\n", rows->file,
        (unsigned long long)rows->description->rows, rows->description->column_count);
    print_columns(ctl, rows);
    print_label(rows);
    print_oddities(json_object_get(json, "oddities"));
    if (json_is_string(refused))
        (void)printf("\nNo section [data] yet: %s\n", json_string_value(refused));
    else
        (void)printf("\nFor the configuration, after %s:\n\n%s",
            json_string_value(json_object_get(json, "scaling_command")),
            json_string_value(json_object_get(json, "data")));
    json_decref(json);
}

static enum ctl_exit describe(struct ctl *ctl, int argc, char **argv)
{
    enum { LABEL, IGNORE, COUNT };
    struct ctl_given given[COUNT] = {0};
    struct ctl_rows rows;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, COUNT, 1, 1);
    if (status == CTL_DONE)
        status = ctl_rows_read(ctl, argv[0], given[LABEL].value, given[IGNORE].value, &rows);
    if (status != CTL_DONE)
        return status;
    if (ctl->json)
        status = ctl_print_json(description_json(&rows));
    else
        print_description(ctl, &rows);
    ctl_rows_finish(&rows);
    return status;
}

static const struct ctl_option describe_options[] = {
    {"--label", .value = "COLUMN", .summary = "the column to predict"},
    {"--ignore", .value = "COLUMNS",
        .summary = "columns that are to be no features, separated by commas"},
    {0}};

const struct ctl_command ctl_data_describe_command = {.words = "data describe",
    .operands = "FILE",
    .options = describe_options,
    .summary = "what a CSV file holds, what looks wrong, and the section [data] for it",
    .help =
        "FILE is CSV, plain or gzip, and is read once. No daemon is needed. The kinds of columns\n"
        "are\n"
        "\n"
        "  empty       no row has a value\n"
        "  constant    all rows have one value\n"
        "  identifier  numbers that count the rows, or text that never repeats\n"
        "  number      numbers; at most one value in ten is other text\n"
        "  category    text of at most 4096 different values\n"
        "  text        text of more values\n"
        "\n"
        "Features are made of numbers and categories alone. With --label, the answer ends with\n"
        "the section [data] for the configuration, and with the command for its scaling file.\n"
        "Text is a class. Whole numbers are classes if there are at most 20, each in five rows\n"
        "on average; else the label is a number. A file that is no CSV ends the command with 6\n"
        "and one line: FILE:LINE: what is wrong.\n",
    .run = describe};
