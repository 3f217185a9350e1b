/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of CSV files: kinds of columns, counted values, and bounded memory. */
#include "sgp/description.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct sgp_error error;

static int read_text(const char *text, struct sgp_description **ret_description)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "rb");
    error = (struct sgp_error){.code = 0};
    int status = sgp_description_read(file, "t.csv", &error, ret_description);
    fclose(file);
    return status;
}

static struct sgp_description *described(const char *text)
{
    struct sgp_description *description = NULL;
    cr_assert(eq(int, read_text(text, &description), 0), "%s", error.text);
    return description;
}

static void expect_error(const char *text, int code, const char *message)
{
    struct sgp_description *description = NULL;
    cr_assert(eq(int, read_text(text, &description), code), "%s", error.text);
    cr_assert(eq(ptr, description, NULL));
    cr_assert(eq(str, error.text, (char *)(uintptr_t)message));
}

/* A table of one column, by a function of the row. */
static char *table(uint32_t rows, void (*value)(FILE *file, uint32_t row))
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    fprintf(file, "c\n");
    for (uint32_t row = 0; row < rows; row++)
        value(file, row);
    fclose(file);
    return text;
}

static void expect_kind(
    uint32_t rows, void (*value)(FILE *file, uint32_t row), enum sgp_column_kind kind)
{
    char *text = table(rows, value);
    struct sgp_description *description = described(text);
    cr_assert(eq(str, (char *)(uintptr_t)sgp_column_kind_name(description->columns[0].kind),
        (char *)(uintptr_t)sgp_column_kind_name(kind)));
    sgp_description_destroy(description);
    free(text);
}

static void number_of_row(FILE *file, uint32_t row)
{
    fprintf(file, "%u\n", row + 7);
}

static void text_of_row(FILE *file, uint32_t row)
{
    fprintf(file, "P-%u\n", row * 2654435761u);
}

static void text_twice(FILE *file, uint32_t row)
{
    fprintf(file, "P-%u\n", row / 2);
}

static void number_twice(FILE *file, uint32_t row)
{
    fprintf(file, "%u\n", row / 2);
}

static void fraction(FILE *file, uint32_t row)
{
    fprintf(file, "%.9f\n", sin(row));
}

Test(description, kinds_follow_from_the_values)
{
    expect_kind(100, number_of_row, SGP_COLUMN_IDENTIFIER);
    expect_kind(9, number_of_row, SGP_COLUMN_NUMBER); /* too few to say */
    expect_kind(100, number_twice, SGP_COLUMN_NUMBER);
    expect_kind(100, fraction, SGP_COLUMN_NUMBER);
    expect_kind(100, text_of_row, SGP_COLUMN_IDENTIFIER);
    expect_kind(9, text_of_row, SGP_COLUMN_CATEGORY);
    expect_kind(100, text_twice, SGP_COLUMN_CATEGORY);
    expect_kind(2 * SGP_CATEGORIES_MAX, text_twice, SGP_COLUMN_CATEGORY);
    expect_kind(2 * SGP_CATEGORIES_MAX + 1, text_twice, SGP_COLUMN_TEXT);
    expect_kind(3 * SGP_CATEGORIES_MAX, text_of_row, SGP_COLUMN_IDENTIFIER);
    expect_kind(3 * SGP_CATEGORIES_MAX, number_of_row, SGP_COLUMN_IDENTIFIER);
    expect_kind(3 * SGP_CATEGORIES_MAX, fraction, SGP_COLUMN_NUMBER);
}

Test(description, counts_what_is_missing_constant_and_empty)
{
    struct sgp_description *d = described("a,b,c\n1,x,\n1,,NA\n1.0, NA ,?\n");
    cr_assert(eq(u64, d->rows, 3));
    cr_assert(eq(u32, d->column_count, 3));
    const struct sgp_column *a = &d->columns[0], *b = &d->columns[1], *c = &d->columns[2];
    cr_assert(eq(int, (int)a->kind, (int)SGP_COLUMN_CONSTANT));
    cr_assert(eq(u32, a->value_count, 1));
    cr_assert(eq(str, a->values[0].text, "1"));
    cr_assert(eq(u64, a->values[0].rows, 3));
    cr_assert(eq(int, (int)b->kind, (int)SGP_COLUMN_CONSTANT));
    cr_assert(eq(u64, b->present, 1));
    cr_assert(eq(u64, b->missing, 2));
    cr_assert(eq(u64, b->missing_line, 3));
    cr_assert(eq(int, (int)c->kind, (int)SGP_COLUMN_EMPTY));
    cr_assert(eq(u64, c->missing, 3));
    cr_assert(eq(ptr, (void *)(uintptr_t)sgp_description_find(d, "b"), (void *)(uintptr_t)b));
    cr_assert(eq(ptr, (void *)(uintptr_t)sgp_description_find(d, "z"), NULL));
    sgp_description_destroy(d);
}

Test(description, moments_are_exact_beside_a_great_mean)
{
    struct sgp_description *d = described("a\n100000001\n99999999\n100000001\n99999999\n");
    const struct sgp_column *a = &d->columns[0];
    cr_assert(eq(dbl, a->least, 99999999));
    cr_assert(eq(dbl, a->most, 100000001));
    cr_assert(eq(dbl, a->mean, 1e8));
    cr_assert(eq(dbl, a->deviation, 1));
    sgp_description_destroy(d);
}

Test(description, one_number_has_one_text)
{
    struct sgp_description *d = described("a\n0.1\n-0\n10\n0.10\n1e1\n0\n2\n");
    const struct sgp_column *a = &d->columns[0];
    static const char *const texts[] = {"0", "0.1", "2", "10"}; /* in the order of numbers */
    static const uint64_t rows[] = {2, 2, 1, 2};
    cr_assert(eq(u32, a->value_count, 4));
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert(eq(str, a->values[i].text, (char *)(uintptr_t)texts[i]));
        cr_assert(eq(u64, a->values[i].rows, rows[i]));
    }
    sgp_description_destroy(d);
}

static void number_with_text(FILE *file, uint32_t row)
{
    if (row == 30)
        fprintf(file, "\"12\n mm\"\n");
    else
        fprintf(file, "%s\n", row == 50 ? "tall" : row % 2 ? "1" : "2");
}

Test(description, stray_text_among_numbers_has_a_line)
{
    char *text = table(100, number_with_text);
    struct sgp_description *d = described(text);
    const struct sgp_column *c = &d->columns[0];
    cr_assert(eq(int, (int)c->kind, (int)SGP_COLUMN_NUMBER));
    cr_assert(eq(u64, c->numbers, 98));
    cr_assert(eq(u64, c->stray, 2));
    cr_assert(eq(u64, c->stray_line, 32));
    cr_assert(eq(str, (char *)(uintptr_t)c->stray_text, "12\n mm"));
    sgp_description_destroy(d);
    free(text);
}

static void class_of_row(FILE *file, uint32_t row)
{
    fprintf(file, "%u\n", row % 20);
}

static void expect_classes(uint32_t rows, void (*value)(FILE *file, uint32_t row), bool classes)
{
    char *text = table(rows, value);
    struct sgp_description *d = described(text);
    cr_assert(eq(int, sgp_column_is_classes(&d->columns[0]), classes));
    sgp_description_destroy(d);
    free(text);
}

Test(description, few_whole_numbers_are_classes)
{
    expect_classes(100, class_of_row, true);
    expect_classes(99, class_of_row, false);
    expect_classes(100, number_twice, false);
    expect_classes(100, text_twice, true);
    expect_classes(100, fraction, false);
    expect_classes(100, text_of_row, false); /* identifiers */
}

/* Many columns share the memory, and a later column has the same part as the first. */
Test(description, memory_of_values_is_bounded)
{
    char *text = NULL;
    size_t bytes = 0;
    const uint32_t columns = 2000, rows = 1000;
    FILE *file = open_memstream(&text, &bytes);
    for (uint32_t c = 0; c < columns; c++)
        fprintf(file, "%sc%u", c ? "," : "", c);
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < columns; c++)
            fprintf(file, "%s%c%u", c ? "," : "\n", c % 2 ? 'v' : 'w', c % 2 ? r % 3 : r / 2);
    fclose(file);
    struct sgp_description *d = described(text);
    uint64_t kept = 0;
    for (uint32_t c = 0; c < columns; c++)
        for (uint32_t i = 0; i < d->columns[c].value_count; i++)
            kept += strlen(d->columns[c].values[i].text) + 1 + sizeof(struct sgp_column_value);
    cr_assert(lt(u64, kept, SGP_DESCRIPTION_BYTES_MAX));
    cr_assert(eq(int, (int)d->columns[columns - 1].kind, (int)SGP_COLUMN_CATEGORY));
    cr_assert(eq(u32, d->columns[columns - 1].value_count, 3));
    sgp_description_destroy(d);
    free(text);
}

Test(description, bad_files_have_one_line)
{
    expect_error("", SGP_E_DATA, "t.csv:1: the file is empty; the first line names the columns");
    expect_error("a,b\n", SGP_E_DATA, "t.csv:2: no rows; at least one is needed");
    expect_error(
        "a,b\n1,2\n3\n", SGP_E_DATA, "t.csv:3: 1 fields, but the first line names 2 columns");
    expect_error("a,b\n1,2\n3,\"4\n", SGP_E_DATA,
        "t.csv:3: the quote opened in field 2 is never closed; a quote inside a quoted field is "
        "written twice");
}
