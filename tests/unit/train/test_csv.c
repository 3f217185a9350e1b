/* SPDX-License-Identifier: Apache-2.0 */
/* CSV: its fields and numbers, and one clear line for each error of syntax. */
#include "csv_rows.h"

#include "sgp/random.h"

#include <math.h>
#include <stdlib.h>

/* The reference for numbers: strtod alone, slowly. */
static bool number_by_strtod(const char *field, double *ret_number)
{
    const char *begin = field + strspn(field, " \t");
    const size_t length = strspn(begin, "+-.0123456789eE");
    const char *rest = begin + length;
    char *end;
    *ret_number = strtod(begin, &end);
    return length > 0 && rest[strspn(rest, " \t")] == '\0' && end == rest &&
           isfinite(*ret_number) && fabs(*ret_number) <= 3e38;
}

static void expect_as_strtod(const char *field)
{
    double got = 0, expected = 0;
    const bool is_number = number_by_strtod(field, &expected);
    cr_assert(eq(int, sgp_csv_number(field, &got), is_number), "'%s'", field);
    const bool same = !is_number || memcmp(&got, &expected, sizeof got) == 0;
    cr_assert(same, "'%s': %a, and strtod says %a", field, got, expected);
}

Test(csv, numbers_have_the_bits_of_strtod)
{
    static const char *const fields[] = {"0", "-0", "+0.0", ".5", "5.", ".", "-", "+", "", "e5",
        ".e5", "1e", "1e+", "1e5", "1E-5", "1e22", "1e23", "1e-22", "1e-23", "1e38", "3e38",
        "3.1e38", "1e400", "1e-400", "-1e-320", "9007199254740992", "9007199254740993",
        "9007199254740992e22", "1234567890123456789", "12345678901234567890", "0.1",
        "0.30000000000000004", "1e005", "1e999", "0000000000000000000000001",
        "0.0000000000000000000000001", "1.7976931348623157e308", "1 2", " 1", "1\t", "\t -1.5e3 ",
        "0x10", "inf", "nan", "1e1e1", "1..2", "--1", "1-", "1e5.", "+-1", "123456.7890123e-7",
        "99999999999999999999", "18446744073709551616", "5e-324", "1e99999999999999999999", "0e99",
        "0.000000000000000000000000000000e5"};
    static const char letters[] = "0123456789012345678901234567890123456789.....e-+ E";
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        expect_as_strtod(fields[i]);
    struct sgp_random random;
    sgp_random_init(&random, 7, 1);
    for (unsigned draw = 0; draw < 400000; draw++) {
        char field[40];
        const double number = sgp_random_normal(&random) * pow(10, (double)(draw % 60) - 30);
        (void)snprintf(field, sizeof field, draw & 1 ? "%.*g" : "%.*f",
            (int)sgp_random_below(&random, 20), draw & 1 ? number : fmod(number, 1e15));
        expect_as_strtod(field);
        const size_t length = 1 + sgp_random_below(&random, 24);
        for (size_t i = 0; i < length; i++)
            field[i] = letters[sgp_random_below(&random, sizeof letters - 1)];
        field[length] = '\0';
        expect_as_strtod(field);
    }
}

/* Fields of all lengths, so that each begins and ends on both sides of the end of a buffer. */
Test(csv, fields_are_the_same_across_buffers)
{
    enum { ROWS = 12000 };
    char *text = malloc(ROWS * 64);
    size_t size = 0;
    for (unsigned i = 0; i < ROWS; i++)
        size += (size_t)sprintf(text + size, "%.*s,\"a\"\"%.*s\",%u%s", (int)(i % 13),
            "abcdefghijklm", (int)(i % 7), ",\n,x,yz", i, i % 3 ? "\r\n" : "\n");
    FILE *file = fmemopen(text, size, "rb");
    struct sgp_csv csv;
    cr_assert(eq(int, sgp_csv_init(&csv, file, "t", &error), 0));
    for (unsigned i = 0; i < ROWS; i++) {
        char fields[3][32];
        cr_assert(eq(int, sgp_csv_next(&csv, &error), 1), "%s", error.text);
        cr_assert(eq(sz, csv.field_count, 3));
        (void)sprintf(fields[0], "%.*s", (int)(i % 13), "abcdefghijklm");
        (void)sprintf(fields[1], "a\"%.*s", (int)(i % 7), ",\n,x,yz");
        (void)sprintf(fields[2], "%u", i);
        for (size_t f = 0; f < 3; f++)
            cr_assert(eq(str, (char *)(uintptr_t)sgp_csv_field(&csv, f), fields[f]), "row %u", i);
    }
    cr_assert(eq(int, sgp_csv_next(&csv, &error), 0));
    sgp_csv_finish(&csv);
    fclose(file);
    free(text);
}

Test(csv, follows_rfc_4180)
{
    const char *text = "\xef\xbb\xbf\"a, \"\"1\"\"\r\nx\",y\r\n\"2\",red\r\n\r\n3,\"blue\"";
    struct sgp_dataset *dataset = expect_rows(text, &classed, 2, 1);
    expect_floats(dataset->floats, (float[]){2, 3}, 2);
    sgp_dataset_destroy(dataset);
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "rb");
    struct sgp_csv csv;
    cr_assert(eq(int, sgp_csv_init(&csv, file, "t", &error), 0));
    cr_assert(eq(int, sgp_csv_next(&csv, &error), 1));
    cr_assert(eq(str, (char *)(uintptr_t)sgp_csv_field(&csv, 0), "a, \"1\"\nx"));
    cr_assert(eq(int, sgp_csv_next(&csv, &error), 1));
    cr_assert(eq(u64, csv.line, 3)); /* the quoted name took two lines */
    cr_assert(eq(int, sgp_csv_next(&csv, &error), 1));
    cr_assert(eq(u64, csv.line, 5));
    cr_assert(eq(int, sgp_csv_next(&csv, &error), 0));
    sgp_csv_finish(&csv);
    fclose(file);
}

Test(csv, says_where_the_syntax_is_wrong)
{
    expect_error("a,y\n1,2\n3\n", &plain, SGP_E_DATA,
        "t.csv:3: 1 fields, but the first line names 2 columns");
    expect_error("a,y\n1,2\n\"3,4\n5,6\n", &plain, SGP_E_DATA,
        "t.csv:3: the quote opened in field 1 is never closed; a quote inside a quoted field is "
        "written twice");
    expect_error("a,y\n1,2\"\n", &plain, SGP_E_DATA,
        "t.csv:2: a quote inside field 2; quote the whole field and write the quote twice");
    expect_error("a,y\n\"1\"2,3\n", &plain, SGP_E_DATA,
        "t.csv:2: text after the closing quote of field 1; a comma or the end of the line would be "
        "right");
    expect_error("a,y\n1,2\r3,4\r", &plain, SGP_E_DATA,
        "t.csv:2: a carriage return without line feed in field 2; lines end with LF or CRLF");
    expect_error("a,b,a\n1,2,3\n", &plain, SGP_E_DATA,
        "t.csv:1: two columns are named 'a'; the first line gives every column its own name");
    expect_error(
        "a,b\n1,2\n", &plain, SGP_E_DATA, "t.csv:1: there is no column 'y'; the columns are a, b");
    expect_error("y\n1\n", &plain, SGP_E_DATA,
        "t.csv:1: the label 'y' is the only column; rows need features too");
    expect_error("a;b;y\n1;2;3\n", &plain, SGP_E_DATA,
        "t.csv:1: one column, called 'a;b;y'; write the file with commas between the fields "
        "instead of semicolons");
    expect_error("a\ty\n1,5\t2\n", &plain, SGP_E_DATA,
        "t.csv:1: one column, called 'a?y'; write the file with commas between the fields "
        "instead of tabs");
    expect_error("a,y\n", &plain, SGP_E_DATA, "t.csv:2: no rows; at least one is needed");
    expect_error(
        "\n\n", &plain, SGP_E_DATA, "t.csv:1: the file is empty; the first line names the columns");
}

Test(csv, refuses_zero_bytes_and_long_fields)
{
    static const char zero[] = "a,y\n1,\0\n";
    FILE *file = fmemopen((void *)(uintptr_t)zero, sizeof zero - 1, "rb");
    struct sgp_dataset *dataset = NULL;
    error = (struct sgp_error){.code = 0};
    int status = sgp_csv_read_dataset(file, "t.csv", &plain, &error, &dataset);
    fclose(file);
    cr_assert(eq(int, status, SGP_E_DATA));
    cr_assert(
        eq(str, error.text, "t.csv:2: a zero byte in field 2; CSV is text (is the file UTF-16?)"));
    char *text = malloc(SGP_FIELD_BYTES_MAX + 16);
    memset(text, '1', SGP_FIELD_BYTES_MAX + 16);
    memcpy(text, "a,y\n", 4);
    text[SGP_FIELD_BYTES_MAX + 15] = '\0';
    expect_error(text, &plain, SGP_E_LIMIT, "t.csv:2: field 1 is longer than 65536 bytes");
    free(text);
}

/* A line of so many fields of so many bytes, which the caller frees. */
static char *long_line(size_t fields, size_t bytes)
{
    const size_t size = fields * (bytes + 1);
    char *text = malloc(size);
    cr_assert(text != NULL);
    memset(text, 'a', size);
    for (size_t i = 1; i < fields; i++)
        text[i * (bytes + 1) - 1] = ',';
    text[size - 1] = '\0';
    return text;
}

Test(csv, refuses_lines_that_are_too_long)
{
    char *text = long_line(SGP_COLUMNS_MAX + 1, 1);
    expect_error(text, &plain, SGP_E_LIMIT, "t.csv:1: more than 65536 fields in a line");
    free(text);
    text = long_line(SGP_CSV_RECORD_BYTES_MAX / SGP_FIELD_BYTES_MAX + 1, SGP_FIELD_BYTES_MAX - 1);
    expect_error(text, &plain, SGP_E_LIMIT, "t.csv:1: a record is longer than 67108864 bytes");
    free(text);
}
