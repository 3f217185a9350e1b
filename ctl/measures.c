/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the measures of `predict --model` and of `evaluate`; see measures.h. */
#include "measures.h"

#include <stdlib.h>
#include <string.h>

#define NAME_WIDTH_MAX 24

/* A cell as text: names without control characters, six digits of other numbers. */
static void cell(const json_t *value, char text[64])
{
    struct sgp_error clean = {0};
    if (json_is_string(value)) {
        (void)sgp_fail(&clean, SGP_E_DATA, "%.60s", json_string_value(value));
        (void)snprintf(text, 64, "%.60s", clean.text);
    } else if (json_is_integer(value)) {
        (void)snprintf(text, 64, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        (void)snprintf(text, 64, "%.6g", json_real_value(value));
    } else {
        (void)snprintf(text, 64, "-");
    }
}

/* Objects as a table: the first key to the left, the others to the right. */
static void print_table(const json_t *rows, const char *const *keys, FILE *file)
{
    char text[64];
    size_t index;
    json_t *row;
    int width = (int)strlen(keys[0]);
    json_array_foreach((json_t *)(uintptr_t)rows, index, row)
    {
        cell(json_object_get(row, keys[0]), text);
        width = (int)strlen(text) > width ? (int)strlen(text) : width;
    }
    width = width < NAME_WIDTH_MAX ? width : NAME_WIDTH_MAX;
    (void)fprintf(file, "%-*s", width, keys[0]);
    for (size_t k = 1; keys[k]; k++)
        (void)fprintf(file, "  %14s", keys[k]);
    (void)fputc('\n', file);
    json_array_foreach((json_t *)(uintptr_t)rows, index, row)
    {
        for (size_t k = 0; keys[k]; k++) {
            cell(json_object_get(row, keys[k]), text);
            (void)fprintf(file, k == 0 ? "%-*s" : "  %*s", k == 0 ? width : 14, text);
        }
        (void)fputc('\n', file);
    }
}

/* A line for each true class, a column for each class that the model says. */
static void print_confusion(const json_t *classes, const json_t *confusion, FILE *file)
{
    char text[64];
    size_t i, j;
    json_t *row, *count;
    (void)fprintf(file, "rows of a class, by the class that the model says, in the same order\n");
    json_array_foreach((json_t *)(uintptr_t)confusion, i, row)
    {
        cell(json_object_get(json_array_get(classes, i), "class"), text);
        (void)fprintf(file, "%-*.*s", NAME_WIDTH_MAX, NAME_WIDTH_MAX, text);
        json_array_foreach(row, j, count)(void)
            fprintf(file, " %7lld", (long long)json_integer_value(count));
        (void)fputc('\n', file);
    }
}

void ctl_measures_print(const json_t *measures, FILE *file)
{
    static const char *const class_keys[] = {
        "class", "rows", "said", "correct", "precision", "recall", "f1", "auc", NULL};
    static const char *const column_keys[] = {
        "column", "r2", "absolute_error", "squared_error", NULL};
    const json_t *classes = json_object_get(measures, "classes");
    const json_t *columns = json_object_get(measures, "columns");
    const json_t *confusion = json_object_get(measures, "confusion");
    if (json_array_size(classes) > 0)
        print_table(classes, class_keys, file);
    if (json_array_size(columns) > 1)
        print_table(columns, column_keys, file);
    if (confusion && json_array_size(confusion) <= CTL_CONFUSION_CLASSES)
        print_confusion(classes, confusion, file);
}
