/* SPDX-License-Identifier: Apache-2.0 */
/* sgpctl data statistics: what a node tells the others of its rows for [data] scale = fleet. */
#include "ctl.h"

#include "measures/wide.h"

#include "sgp/statistics.h"

#include <stdlib.h>
#include <string.h>

/* ---- as JSON ---- */

/* What the table holds and the node does not tell. */
static void add_held(json_t *list, const struct sgp_statistics_column *columns, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (columns[i].held_rows > 0)
            (void)json_array_append_new(list,
                json_pack("{s:o, s:I, s:I}", "column", ctl_json_text(columns[i].name), "values",
                    (json_int_t)columns[i].held_values, "rows", (json_int_t)columns[i].held_rows));
}

static void add_words(json_t *list, const struct sgp_statistics_column *columns, uint32_t count,
    bool label, const char *path)
{
    for (uint32_t i = 0; i < count; i++) {
        struct sgp_error line = {0};
        if (columns[i].kind != SGP_STATISTICS_WORDS)
            continue;
        sgp_statistics_explain(&columns[i], label, path, &line);
        (void)json_array_append_new(list, ctl_json_text(line.text));
    }
}

static json_t *words_json(const struct sgp_statistics *statistics, const char *path)
{
    json_t *words = json_array();
    add_words(words, statistics->columns, statistics->column_count, false, path);
    add_words(words, statistics->labels, statistics->label_count, true, path);
    return words;
}

static enum ctl_exit print_json(
    const struct sgp_statistics *statistics, const char *path, const char *text)
{
    json_t *held = json_array();
    add_held(held, statistics->columns, statistics->column_count);
    add_held(held, statistics->labels, statistics->label_count);
    return ctl_print_json(json_pack("{s:o, s:I, s:o, s:o, s:o}", "file", ctl_json_text(path),
        "bytes", (json_int_t)strlen(text), "told", json_loads(text, 0, NULL), "held_back", held,
        "words", words_json(statistics, path)));
}

/* ---- for a person ---- */

/* "no 171, yes 129"; of values that are no classes the names alone. */
static void tell_values(const struct sgp_statistics_column *column, char text[CTL_CELL_BYTES])
{
    size_t used = 0;
    for (uint32_t i = 0; i < column->value_count; i++) {
        char rows[24] = "";
        if (column->kind == SGP_STATISTICS_CLASSES)
            (void)snprintf(rows, sizeof rows, " %llu", (unsigned long long)column->values[i].rows);
        if (used > CTL_CELL_BYTES - 100) {
            (void)snprintf(
                text + used, CTL_CELL_BYTES - used, " and %u more", column->value_count - i);
            return;
        }
        used += (size_t)snprintf(text + used, CTL_CELL_BYTES - used, "%s%.40s%s", i > 0 ? ", " : "",
            column->values[i].text, rows);
    }
    if (used == 0)
        (void)snprintf(text, CTL_CELL_BYTES, "no value");
}

static void tell(const struct sgp_statistics_column *column, char text[CTL_CELL_BYTES])
{
    if (column->kind == SGP_STATISTICS_NUMBERS)
        (void)snprintf(text, CTL_CELL_BYTES, "%s",
            column->count > 0 ? "count, sum, sum of squares" : "count 0");
    else if (column->kind == SGP_STATISTICS_WORDS)
        (void)snprintf(text, CTL_CELL_BYTES, "that it holds words");
    else
        tell_values(column, text);
}

static void tell_held(const struct sgp_statistics_column *column, char text[CTL_CELL_BYTES])
{
    text[0] = '\0';
    if (column->held_values > 0)
        (void)snprintf(text, CTL_CELL_BYTES, "%u value%s of %llu row%s", column->held_values,
            column->held_values == 1 ? "" : "s", (unsigned long long)column->held_rows,
            column->held_rows == 1 ? "" : "s");
    else if (column->held_rows > 0)
        (void)snprintf(text, CTL_CELL_BYTES, "%llu number%s", (unsigned long long)column->held_rows,
            column->held_rows == 1 ? "" : "s");
}

static void add_line(
    json_t *table, const struct sgp_statistics_column *column, const char *const *keys, bool label)
{
    char kind[32], count[32] = "", mean[32] = "", deviation[32] = "";
    char told[CTL_CELL_BYTES], held[CTL_CELL_BYTES];
    (void)snprintf(
        kind, sizeof kind, "%s%s", sgp_statistics_kind_name(column->kind), label ? " (label)" : "");
    if (column->kind == SGP_STATISTICS_NUMBERS && column->count > 0) {
        (void)snprintf(count, sizeof count, "%llu", (unsigned long long)column->count);
        (void)snprintf(mean, sizeof mean, "%.6g", sgp_wide_mean(column->count, column->sum));
        (void)snprintf(deviation, sizeof deviation, "%.6g",
            sgp_wide_deviation(column->count, column->sum, column->squares));
    }
    tell(column, told);
    tell_held(column, held);
    (void)json_array_append_new(
        table, json_pack("{s:o, s:s, s:s, s:s, s:s, s:o, s:s}", keys[0],
                   ctl_json_text(column->name), keys[1], kind, keys[2], count, keys[3], mean,
                   keys[4], deviation, keys[5], ctl_json_text(told), keys[6], held));
}

static void print_table(const struct ctl *ctl, const struct sgp_statistics *statistics)
{
    static const char *const keys[] = {
        "column", "kind", "count", "mean", "deviation", "told", "held back"};
    json_t *table = json_array();
    for (uint32_t i = 0; i < statistics->column_count; i++)
        add_line(table, &statistics->columns[i], keys, false);
    for (uint32_t i = 0; i < statistics->label_count; i++)
        add_line(table, &statistics->labels[i], keys, true);
    ctl_print_aligned(ctl, table, keys, sizeof keys / sizeof *keys);
    json_decref(table);
}

static void print_words(const struct sgp_statistics *statistics, const char *path)
{
    json_t *words = words_json(statistics, path);
    size_t index;
    json_t *line;
    if (json_array_size(words) > 0)
        (void)printf("\nNo scaling follows from columns of words:\n");
    json_array_foreach(words, index, line)(void) printf("  %s\n", json_string_value(line));
    json_decref(words);
}

static enum ctl_exit statistics(struct ctl *ctl, int argc, char **argv)
{
    enum { LABEL, CLASSES, CATEGORIES, IGNORE, MIN_COUNT, COUNT };
    struct ctl_given given[COUNT] = {0};
    struct sgp_statistics *read = NULL;
    struct sgp_error error = {0};
    uint64_t min_count = SGP_STATISTICS_MIN_COUNT;
    char *text = NULL;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, COUNT, 1, 1);
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &given[MIN_COUNT], 1, UINT32_MAX, &min_count);
    if (status != CTL_DONE)
        return status;
    const struct sgp_statistics_options options = {.label = given[LABEL].value,
        .classes = given[CLASSES].given,
        .categories = given[CATEGORIES].value,
        .ignore = given[IGNORE].value,
        .min_count = (uint32_t)min_count};
    if (options.classes && !options.label)
        return ctl_usage(ctl, "--classes needs --label");
    int code = sgp_statistics_read(argv[0], &options, &error, &read);
    if (code >= 0)
        code = sgp_statistics_text(read, argv[0], &error, &text);
    if (code < 0) {
        sgp_statistics_destroy(read);
        return ctl_fail(ctl, CTL_INVALID, "%s", error.text);
    }
    if (ctl->json) {
        status = print_json(read, argv[0], text);
    } else {
        (void)printf("%s: of %llu rows this is told, in %zu bytes:\n\n", argv[0],
            (unsigned long long)read->rows, strlen(text));
        print_table(ctl, read);
        print_words(read, argv[0]);
    }
    free(text);
    sgp_statistics_destroy(read);
    return status;
}

static const struct ctl_option statistics_options[] = {
    {"--label", .value = "COLUMNS", .summary = "what is to be predicted, separated by commas"},
    {"--classes", .summary = "the label names classes; without it, label columns hold numbers"},
    {"--categories", .value = "COLUMNS",
        .summary = "columns of words that are to be features, separated by commas"},
    {"--ignore", .value = "COLUMNS",
        .summary = "columns that are neither told nor features, separated by commas"},
    {"--min-count", .value = "ROWS",
        .summary = "fewer numbers of a column, or fewer rows with a value, are not told; 10 if not "
                   "given"},
    {0}};

const struct ctl_command ctl_data_statistics_command = {.words = "data statistics",
    .operands = "FILE",
    .options = statistics_options,
    .summary = "what the scaling by all nodes would tell them of the rows of a CSV file",
    .help =
        "FILE is CSV, plain or gzip, and is read once. No daemon is needed, and nothing leaves\n"
        "this machine. For a common scaling a node tells all other nodes of its fleet the number\n"
        "of its rows and, of each column,\n"
        "\n"
        "  numbers  count, sum and sum of squares\n"
        "  values   of --categories: the values that at least --min-count rows have\n"
        "  classes  of the label: the same, and the rows of each class\n"
        "  words    that the column holds words; no scaling is possible then\n"
        "\n"
        "and the names of the columns. With --json, `told` is the message itself; its sums are\n"
        "hexadecimal, in multiples of 2^-192 and 2^-384. A file that is no CSV ends the command\n"
        "with 6 and one line: FILE:LINE: what is wrong.\n",
    .run = statistics};
