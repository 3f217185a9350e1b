/* SPDX-License-Identifier: Apache-2.0 */
/* CSV and scaling files: what the rows become, and one clear line for everything else. */
#include "train/csv.h"
#include "train/scaling.h"

#include "sgp/random.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct sgp_error error;
static const char *const colours[] = {"red", "green", "blue"};

static int read_text(
    const char *text, const struct sgp_csv_options *options, struct sgp_dataset **ret_dataset)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "rb");
    error = (struct sgp_error){.code = 0};
    int status = sgp_csv_read_dataset(file, "t.csv", options, &error, ret_dataset);
    fclose(file);
    return status;
}

static void expect_error(
    const char *text, const struct sgp_csv_options *options, int code, const char *message)
{
    struct sgp_dataset *dataset = NULL;
    cr_assert(eq(int, read_text(text, options, &dataset), code), "%s", error.text);
    cr_assert(eq(ptr, dataset, NULL));
    cr_assert(eq(str, error.text, (char *)(uintptr_t)message));
}

static struct sgp_dataset *expect_rows(
    const char *text, const struct sgp_csv_options *options, uint64_t rows, uint32_t features)
{
    struct sgp_dataset *dataset = NULL;
    cr_assert(eq(int, read_text(text, options, &dataset), 0), "%s", error.text);
    cr_assert(eq(u64, dataset->rows, rows));
    cr_assert(eq(u32, dataset->features, features));
    return dataset;
}

static void expect_floats(const float *got, const float *expected, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cr_assert(eq(flt, got[i], expected[i]), "number %zu", i);
}

static struct sgp_scaling *scaling_of(const char *json)
{
    struct sgp_scaling *scaling = NULL;
    error = (struct sgp_error){.code = 0};
    int status = sgp_scaling_parse(json, strlen(json), "s.json", &error, &scaling);
    cr_assert(eq(int, status, 0), "%s", error.text);
    return scaling;
}

static const struct sgp_csv_options plain = {.label = "y", .missing = SGP_MISSING_ERROR};
static const struct sgp_csv_options classed = {
    .label = "y", .class_names = colours, .class_count = 3, .missing = SGP_MISSING_ERROR};

Test(csv, reads_numbers_for_regression)
{
    struct sgp_dataset *dataset = expect_rows("a,y,b\n1,-2.5,3e2\n 4 ,+5,.5", &plain, 2, 2);
    cr_assert(eq(u32, dataset->classes, 0));
    cr_assert(eq(u32, dataset->targets, 1));
    expect_floats(dataset->floats, (float[]){1, 300, 4, 0.5f}, 4);
    expect_floats(dataset->values, (float[]){-2.5f, 5}, 2);
    sgp_dataset_destroy(dataset);
}

Test(csv, class_order_numbers_the_labels)
{
    struct sgp_dataset *dataset = expect_rows("y,a\nblue,1\nred,2\n\"green\",3\n", &classed, 3, 1);
    cr_assert(eq(u32, dataset->classes, 3));
    cr_assert(eq(u32, dataset->labels[0], 2));
    cr_assert(eq(u32, dataset->labels[1], 0));
    cr_assert(eq(u32, dataset->labels[2], 1));
    sgp_dataset_destroy(dataset);
}

Test(csv, classes_that_are_numbers_are_compared_as_numbers)
{
    static const char *const mixed[] = {"1", "0", "-2.50", "many"};
    struct sgp_csv_options options = {
        .label = "y", .class_names = mixed, .class_count = 4, .missing = SGP_MISSING_ERROR};
    struct sgp_dataset *dataset =
        expect_rows("y,a\n0.0,1\n1,2\n1.00,3\n -2.5,4\n1e0,5\nmany,6\n-0,7\n", &options, 7, 1);
    static const uint32_t labels[] = {1, 0, 0, 2, 0, 3, 1};
    for (size_t i = 0; i < 7; i++)
        cr_assert(eq(u32, dataset->labels[i], labels[i]), "row %zu", i);
    sgp_dataset_destroy(dataset);
    expect_error("a,y\n1,2\n", &options, SGP_E_DATA,
        "t.csv:2: column 'y': '2' is not among the classes; list every class in classes = ...");
    expect_error("a,y\n1,many \n", &options, SGP_E_DATA,
        "t.csv:2: column 'y': 'many ' is not among the classes; list every class in classes = ...");
    static const char *const twice[] = {"0", "1", "0.0"};
    options.class_names = twice;
    options.class_count = 3;
    expect_error("a,y\n1,1\n", &options, SGP_E_CONFIG,
        "classes: '0' and '0.0' are one number; name each class once");
}

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

Test(csv, says_which_value_is_wrong)
{
    expect_error("a,y\n1,2\nred,3\n", &plain, SGP_E_DATA,
        "t.csv:3: column 'a': 'red' is not a number; a column of words needs its values in a "
        "scaling "
        "file");
    expect_error("a,y\n1,two\n", &plain, SGP_E_DATA,
        "t.csv:2: column 'y': 'two' is not a number; labels that are words need classes = ...");
    expect_error("a,y\n1,pink\n", &classed, SGP_E_DATA,
        "t.csv:2: column 'y': 'pink' is not among the classes; list every class in classes = ...");
    expect_error("a,y\n1, red\n", &classed, SGP_E_DATA,
        "t.csv:2: column 'y': ' red' is not among the classes; list every class in classes = ...");
    static const char *const numbers[] = {
        "0x10", "inf", "1e400", "1e39", "1,5", "--1", "1 2", "1e"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char text[64];
        struct sgp_dataset *dataset = NULL;
        snprintf(text, sizeof text, "a,y\n\"%s\",1\n", numbers[i]);
        cr_assert(eq(int, read_text(text, &plain, &dataset), SGP_E_DATA), "%s", numbers[i]);
        cr_assert(ne(ptr, strstr(error.text, "is not a number"), NULL));
    }
    static const char *const twice[] = {"a", "b", "a"};
    const struct sgp_csv_options repeated = {
        .label = "y", .class_names = twice, .class_count = 3, .missing = SGP_MISSING_ERROR};
    expect_error(
        "a,y\n1,a\n", &repeated, SGP_E_CONFIG, "classes: 'a' is there twice; name each once");
}

Test(csv, several_label_columns_make_as_many_values)
{
    struct sgp_csv_options options = {
        .label = " y , \"z, \"\"w\"\"\",x x", .missing = SGP_MISSING_ERROR};
    struct sgp_dataset *numbers =
        expect_rows("x x,a,\"z, \"\"w\"\"\",y\n1,2,3,4\n5,6,7,8e-1\n", &options, 2, 1);
    cr_assert(eq(u32, numbers->targets, 3));
    cr_assert(eq(u32, numbers->classes, 0));
    expect_floats(numbers->floats, (float[]){2, 6}, 2);
    expect_floats(numbers->values, (float[]){4, 3, 1, 0.8f, 7, 5}, 6);
    options.label = "x x, y, \"z, \"\"w\"\"\"";
    struct sgp_dataset *other = expect_rows("x x,a,\"z, \"\"w\"\"\",y\n1,2,3,4\n", &options, 1, 1);
    cr_assert(ne(u64, sgp_dataset_classes_digest(numbers), sgp_dataset_classes_digest(other)));
    sgp_dataset_destroy(numbers);
    sgp_dataset_destroy(other);
}

Test(csv, label_columns_of_bits)
{
    struct sgp_csv_options options = {.label = "y, z", .bits = true, .missing = SGP_MISSING_ERROR};
    struct sgp_dataset *bits = expect_rows("a,y,z\n2,1,0\n6, 0.0,1e0\n", &options, 2, 1);
    expect_floats(bits->values, (float[]){1, 0, 0, 1}, 4);
    sgp_dataset_destroy(bits);
    expect_error("a,y,z\n2,1,0\n6,0,0.5\n", &options, SGP_E_DATA,
        "t.csv:3: column 'z': '0.5' is neither 0 nor 1; the loss takes label columns of 0 and 1");
    expect_error("a,y,z\n2,1,\n", &options, SGP_E_DATA,
        "t.csv:2: column 'z': '' is a missing label; give it, or set missing = drop");
    options.missing = SGP_MISSING_DROP;
    sgp_dataset_destroy(expect_rows("a,y,z\n2,1,\n3,0,1\n", &options, 1, 1));
}

Test(csv, label_columns_that_are_wrong)
{
    struct sgp_csv_options options = {.label = "y, y", .missing = SGP_MISSING_ERROR};
    expect_error(
        "a,y\n2,1\n", &options, SGP_E_CONFIG, "label: column 'y' is named twice; name it once");
    options.label = "y, w";
    expect_error("a,y\n2,1\n", &options, SGP_E_DATA,
        "t.csv:1: there is no column 'w'; the columns are a, y");
    options.label = " , ";
    expect_error("a,y\n2,1\n", &options, SGP_E_CONFIG, "label: it names no column");
    options.label = "\"y";
    expect_error("a,y\n2,1\n", &options, SGP_E_CONFIG,
        "label: the quote before 'y' is never closed; close it, and mind that a blank and # or ; "
        "begin a comment");
    options = classed;
    options.label = "y, a";
    expect_error("a,y\n2,red\n", &options, SGP_E_CONFIG,
        "label: 2 columns, and classes are the values of one; leave classes out, or put a name "
        "with a comma in it in \"quotes\"");
}

#define SCALING                                                                                    \
    "{\"sgp_scaling\": 1, \"columns\": ["                                                          \
    "{\"name\": \"c\", \"values\": [\"u\", \"v\"]},"                                               \
    "{\"name\": \"a\", \"mean\": 10, \"deviation\": 4}]}"

Test(csv, scaling_orders_scales_and_spreads)
{
    struct sgp_scaling *scaling = scaling_of(SCALING);
    cr_assert(eq(u32, sgp_scaling_features(scaling), 3));
    struct sgp_csv_options options = plain;
    options.scaling = scaling;
    struct sgp_dataset *one = expect_rows("a,ignored,c,y\n12,x,v,1\n4,y,u,2\n", &options, 2, 3);
    expect_floats(one->floats, (float[]){0, 1, 0.5f, 1, 0, -1.5f}, 6);
    struct sgp_dataset *two = expect_rows("y,c,a\n1,v,12\n", &options, 1, 3);
    expect_floats(two->floats, (float[]){0, 1, 0.5f}, 3);
    cr_assert(eq(u64, sgp_dataset_scaling_digest(one), sgp_dataset_scaling_digest(two)));
    expect_error("c,y\nu,1\n", &options, SGP_E_DATA,
        "t.csv:1: there is no column 'a', which the scaling file s.json names (c, a); the columns "
        "are "
        "c, y; write a scaling file of this table, or correct [data] scale");
    expect_error("a,c,y\n1,w,1\n", &options, SGP_E_DATA,
        "t.csv:2: column 'c': 'w' is not among the values of the scaling file; add it there on "
        "every "
        "node");
    options.label = "a";
    expect_error("a,c\n1,u\n", &options, SGP_E_DATA,
        "t.csv:1: column 'a' is the label and cannot be a feature; take it out of the scaling file "
        "s.json (sgpctl scaling --label a leaves it out)");
    sgp_dataset_destroy(one);
    sgp_dataset_destroy(two);
    sgp_scaling_destroy(scaling);
}

#define TARGETS(format, targets)                                                                   \
    "{\"sgp_scaling\": " format                                                                    \
    ", \"columns\": [{\"name\": \"a\", \"mean\": 0, \"deviation\": 1}],"                           \
    "\"targets\": [" targets "]}"
#define TARGET(name, mean, deviation)                                                              \
    "{\"name\": \"" name "\", \"mean\": " mean ", \"deviation\": " deviation "}"

/* The first label of `text`, read with a scaling; *ret_digest tells how its rows are scaled. */
static float first_value(
    const char *json, const char *text, struct sgp_csv_options options, uint64_t *ret_digest)
{
    struct sgp_scaling *scaling = scaling_of(json);
    options.scaling = scaling;
    struct sgp_dataset *dataset = expect_rows(text, &options, 2, 1);
    const float value = dataset->values ? dataset->values[0] : (float)dataset->labels[0];
    *ret_digest = sgp_dataset_scaling_digest(dataset);
    sgp_dataset_destroy(dataset);
    sgp_scaling_destroy(scaling);
    return value;
}

Test(csv, label_columns_of_numbers_are_scaled)
{
    static const char *const digits[] = {"0", "1"};
    static const char scaled[] = TARGETS("2", TARGET("y", "152.25", "77"));
    static const char text[] = "a,y\n1,229.25\n2,75.25\n", bits[] = "a,y\n1,1\n2,0\n";
    struct sgp_csv_options options = plain;
    uint64_t digest, plain_digest, other;
    cr_assert(eq(flt, first_value(scaled, text, options, &digest), 1));
    /* Format 1 has its former meaning, also with targets that somebody computed. */
    cr_assert(eq(flt,
        first_value(TARGETS("1", TARGET("y", "152.25", "77")), text, options, &plain_digest),
        229.25f));
    cr_assert(ne(u64, digest, plain_digest), "two nodes must see that they scale differently");
    first_value(TARGETS("2", TARGET("y", "152.25", "78")), text, options, &other);
    cr_assert(ne(u64, digest, other));
    /* One label column may have another name. */
    cr_assert(
        eq(flt, first_value(TARGETS("2", TARGET("z", "152.25", "77")), text, options, &other), 1));
    cr_assert(eq(u64, digest, other));
    /* Classes, and columns of 0 and 1, are not scaled. */
    options.bits = true;
    cr_assert(eq(flt, first_value(scaled, bits, options, &other), 1));
    cr_assert(eq(u64, plain_digest, other));
    options = (struct sgp_csv_options){
        .label = "y", .class_names = digits, .class_count = 2, .missing = SGP_MISSING_ERROR};
    cr_assert(eq(flt, first_value(scaled, bits, options, &other), 1));
    cr_assert(eq(u64, plain_digest, other));
}

Test(csv, constant_and_distant_labels_are_scaled_exactly)
{
    uint64_t digest;
    cr_assert(eq(flt,
        first_value(TARGETS("2", TARGET("y", "1e9", "1")), "a,y\n1,1e9\n2,1e9\n", plain, &digest),
        0));
    /* 1e12 + 3 is no 32-bit number, and what is left of it when it is scaled is one. */
    cr_assert(eq(flt,
        first_value(TARGETS("2", TARGET("y", "1e12", "2")), "a,y\n1,1000000000003\n2,1e12\n", plain,
            &digest),
        1.5f));
}

Test(csv, several_label_columns_are_those_of_the_scaling)
{
    struct sgp_scaling *scaling =
        scaling_of(TARGETS("2", TARGET("y", "1", "2") "," TARGET("z", "-1", "4")));
    struct sgp_csv_options options = plain;
    options.scaling = scaling;
    options.label = "y, z";
    struct sgp_dataset *dataset = expect_rows("z,a,y\n3,0,3\n", &options, 1, 1);
    expect_floats(dataset->values, (float[]){1, 1}, 2);
    sgp_dataset_destroy(dataset);
    options.label = "z, y";
    expect_error("z,a,y\n3,0,3\n", &options, SGP_E_DATA,
        "t.csv:1: label = z, y, but the targets of the scaling file s.json are y, z; write a "
        "scaling file with this label (sgpctl scaling --label z, y)");
    options.label = "y";
    expect_error("z,a,y\n3,0,3\n", &options, SGP_E_DATA,
        "t.csv:1: label = y, but the targets of the scaling file s.json are y, z; write a scaling "
        "file with this label (sgpctl scaling --label y)");
    sgp_scaling_destroy(scaling);
}

Test(csv, a_label_that_is_too_large_once_scaled_is_refused)
{
    struct sgp_scaling *scaling = scaling_of(TARGETS("2", TARGET("y", "0", "1e-10")));
    struct sgp_csv_options options = plain;
    options.scaling = scaling;
    expect_error("a,y\n1,1e30\n", &options, SGP_E_DATA,
        "t.csv:2: column 'y': '1e30' is too large once scaled; look at the targets of the scaling "
        "file");
    sgp_scaling_destroy(scaling);
}

Test(csv, a_row_of_a_class_that_nobody_told_is_left_out)
{
    static const char *const names[] = {"0", "1"}, *const told[] = {"0", "1", "2", "many"};
    struct sgp_csv_agreed agreed = {.classes = told, .class_count = 4};
    struct sgp_csv_options options = {.label = "y",
        .class_names = names,
        .class_count = 2,
        .missing = SGP_MISSING_ERROR,
        .agreed = &agreed};
    struct sgp_dataset *dataset = expect_rows("a,y\n1,0\n2,7\n3,1.0\n4,few\n5,7\n", &options, 2, 1);
    cr_assert(eq(u64, agreed.left_out, 3));
    cr_assert(eq(u64, agreed.left_out_line, 3));
    expect_floats(dataset->floats, (float[]){1, 3}, 2);
    sgp_dataset_destroy(dataset);
    /* A class that some node has told needs an output. */
    expect_error("a,y\n1,0\n2,2.0\n", &options, SGP_E_DATA,
        "t.csv:3: column 'y': '2.0' is not among the classes; list every class in classes = ...");
    expect_error("a,y\n1,many\n", &options, SGP_E_DATA,
        "t.csv:2: column 'y': 'many' is not among the classes; list every class in classes = ...");
    agreed.class_count = 0;
    expect_error("a,y\n2,7\n", &options, SGP_E_DATA,
        "t.csv:2: column 'y': '7' is not among the classes; list every class in classes = ...");
}

Test(csv, other_columns_than_the_nodes_agreed_on)
{
    struct sgp_csv_agreed agreed = {.class_count = 0};
    struct sgp_scaling *scaling = scaling_of(SCALING);
    struct sgp_csv_options options = plain;
    options.scaling = scaling;
    options.agreed = &agreed;
    expect_error("c,y\nu,1\n", &options, SGP_E_DATA,
        "t.csv:1: there is no column 'a', on which the nodes have agreed (c, a); the columns are "
        "c, y; correct the table, or, to agree on other columns, stop all nodes, remove s.json on "
        "each, and start them");
    options.label = "a";
    expect_error("a,c\n1,u\n", &options, SGP_E_DATA,
        "t.csv:1: column 'a' is the label, and the nodes have agreed on it as a feature; correct "
        "[data] label, or, to agree on other columns, stop all nodes, remove s.json on each, and "
        "start them");
    sgp_scaling_destroy(scaling);
}

Test(csv, a_value_of_the_scaling_may_be_called_as_a_missing_one)
{
    struct sgp_scaling *scaling = scaling_of(
        "{\"sgp_scaling\": 1, \"columns\": [{\"name\": \"c\", \"values\": [\"?\", \"v\"]}]}");
    struct sgp_csv_options options = plain;
    options.scaling = scaling;
    struct sgp_dataset *dataset = expect_rows("c,y\n?,1\nv,2\n", &options, 2, 2);
    expect_floats(dataset->floats, (float[]){1, 0, 0, 1}, 4);
    expect_error("c,y\nNA,1\n", &options, SGP_E_DATA,
        "t.csv:2: column 'c': 'NA' is a missing value; give it, or set missing = drop or mean");
    sgp_dataset_destroy(dataset);
    sgp_scaling_destroy(scaling);
}

Test(csv, missing_values_are_refused_dropped_or_filled)
{
    const char *text = "a,c,y\n12,u,1\nNA,v,2\n4, ? ,3\n4,u,\n";
    struct sgp_scaling *scaling = scaling_of(SCALING);
    struct sgp_csv_options options = plain;
    options.scaling = scaling;
    expect_error(text, &options, SGP_E_DATA,
        "t.csv:3: column 'a': 'NA' is a missing value; give it, or set missing = drop or mean");
    options.missing = SGP_MISSING_DROP;
    struct sgp_dataset *dropped = expect_rows(text, &options, 1, 3);
    expect_floats(dropped->floats, (float[]){1, 0, 0.5f}, 3);
    sgp_dataset_destroy(dropped);
    expect_error("a,c,y\n,u,1\n", &options, SGP_E_DATA,
        "t.csv:3: no rows without missing values; at least one is needed");
    options.missing = SGP_MISSING_MEAN;
    expect_error(text, &options, SGP_E_DATA,
        "t.csv:5: column 'y': '' is a missing label; give it, or set missing = drop");
    struct sgp_dataset *filled = expect_rows("a,c,y\n12,u,1\nNA,v,2\n4, ? ,3\n", &options, 3, 3);
    expect_floats(filled->floats, (float[]){1, 0, 0.5f, 0, 1, 0, 0, 0, -1.5f}, 9);
    sgp_dataset_destroy(filled);
    options.scaling = NULL;
    expect_error(text, &options, SGP_E_CONFIG,
        "t.csv: missing = mean takes the means from a scaling file; set scale = FILE");
    sgp_scaling_destroy(scaling);
}

Test(csv, a_class_may_be_called_like_a_missing_value)
{
    static const char *const names[] = {"EU", "NA"};
    const struct sgp_csv_options options = {
        .label = "y", .class_names = names, .class_count = 2, .missing = SGP_MISSING_DROP};
    struct sgp_dataset *dataset = expect_rows("a,y\n1,NA\n2,EU\n3,?\n", &options, 2, 1);
    cr_assert(eq(u32, dataset->labels[0], 1));
    sgp_dataset_destroy(dataset);
}

Test(csv, digests_tell_what_parts_nodes)
{
    static const char *const other[] = {"green", "red", "blue"};
    struct sgp_csv_options reordered = classed;
    reordered.class_names = other;
    struct sgp_csv_options fewer = classed;
    fewer.class_count = 2;
    struct sgp_dataset *base = expect_rows("a,b,y\n1,2,red\n", &classed, 1, 2);
    struct sgp_dataset *same = expect_rows("a,b,y\n7,8,green\n1,1,red\n", &classed, 2, 2);
    struct sgp_dataset *order = expect_rows("a,b,y\n1,2,red\n", &reordered, 1, 2);
    struct sgp_dataset *count = expect_rows("a,b,y\n1,2,red\n", &fewer, 1, 2);
    struct sgp_dataset *columns = expect_rows("b,a,y\n1,2,red\n", &classed, 1, 2);
    cr_assert(eq(u64, sgp_dataset_classes_digest(base), sgp_dataset_classes_digest(same)));
    cr_assert(eq(u64, sgp_dataset_scaling_digest(base), sgp_dataset_scaling_digest(same)));
    cr_assert(ne(u64, sgp_dataset_classes_digest(base), sgp_dataset_classes_digest(order)));
    cr_assert(ne(u64, sgp_dataset_classes_digest(base), sgp_dataset_classes_digest(count)));
    cr_assert(ne(u64, sgp_dataset_scaling_digest(base), sgp_dataset_scaling_digest(columns)));
    sgp_dataset_destroy(base);
    sgp_dataset_destroy(same);
    sgp_dataset_destroy(order);
    sgp_dataset_destroy(count);
    sgp_dataset_destroy(columns);

    static const char *const texts[] = {SCALING,
        "{\"sgp_scaling\": 1, \"columns\": [{\"name\": \"c\", \"values\": [\"v\", \"u\"]},"
        "{\"name\": \"a\", \"mean\": 10, \"deviation\": 4}]}",
        "{\"sgp_scaling\": 1, \"columns\": [{\"name\": \"c\", \"values\": [\"u\", \"v\"]},"
        "{\"name\": \"a\", \"mean\": 10.000000000000002, \"deviation\": 4}]}",
        "{\"sgp_scaling\": 1, \"columns\": [{\"name\": \"a\", \"mean\": 10, \"deviation\": 4},"
        "{\"name\": \"c\", \"values\": [\"u\", \"v\"]}]}"};
    uint64_t digests[4];
    for (int i = 0; i < 4; i++) {
        struct sgp_scaling *scaling = scaling_of(texts[i]);
        digests[i] = sgp_scaling_digest(scaling);
        sgp_scaling_destroy(scaling);
        for (int j = 0; j < i; j++)
            cr_assert(ne(u64, digests[i], digests[j]));
    }
}

Test(scaling, is_computed_written_and_read_back)
{
    const char *text = "n,c,same,y\n1,b,7,1\n2,a,7,2\nNA,b,7,3\n6,,7,4\n";
    char directory[] = "/tmp/sgp-scaling-XXXXXX";
    char path[64];
    char csv_path[64];
    cr_assert(ne(ptr, mkdtemp(directory), NULL));
    snprintf(path, sizeof path, "%s/s.json", directory);
    snprintf(csv_path, sizeof csv_path, "%s/t.csv", directory);
    FILE *file = fopen(csv_path, "wb");
    fputs(text, file);
    fclose(file);
    struct sgp_scaling *made = NULL;
    struct sgp_scaling *read = NULL;
    error = (struct sgp_error){.code = 0};
    cr_assert(
        eq(int, sgp_scaling_compute(csv_path, "y", NULL, &error, &made), 0), "%s", error.text);
    cr_assert(eq(u32, made->column_count, 3));
    cr_assert(eq(dbl, made->columns[0].mean, 3));
    cr_assert(epsilon_eq(dbl, made->columns[0].deviation, sqrt(14.0 / 3), 1e-15));
    cr_assert(eq(u32, made->columns[1].value_count, 2));
    cr_assert(eq(str, made->columns[1].values[0], "a"));
    cr_assert(eq(dbl, made->columns[2].deviation, 1));
    uint32_t targets;
    const struct sgp_target_scale *target = sgp_scaling_targets(made, &targets);
    cr_assert(eq(u32, targets, 1));
    cr_assert(eq(str, target->name, "y"));
    cr_assert(eq(dbl, target->mean, 2.5));
    cr_assert(epsilon_eq(dbl, target->deviation, sqrt(1.25), 1e-15));
    cr_assert(eq(int, sgp_scaling_write(made, path, &error), 0), "%s", error.text);
    cr_assert(eq(int, sgp_scaling_read(path, &error, &read), 0), "%s", error.text);
    cr_assert(eq(u64, sgp_scaling_digest(made), sgp_scaling_digest(read)));
    cr_assert(eq(dbl, sgp_scaling_targets(read, &targets)->deviation, target->deviation));
    struct sgp_dataset *dataset = NULL;
    const struct sgp_csv_options options = {
        .label = "y", .scaling = read, .missing = SGP_MISSING_MEAN};
    cr_assert(
        eq(int, sgp_dataset_read_csv(csv_path, &options, &error, &dataset), 0), "%s", error.text);
    cr_assert(eq(u32, dataset->features, 4));
    sgp_dataset_destroy(dataset);
    sgp_scaling_destroy(made);
    sgp_scaling_destroy(read);
    unlink(path);
    unlink(csv_path);
    cr_assert(eq(int, rmdir(directory), 0)); /* and no temporary file is left */
}

static void expect_scaling_error(const char *json, int code, const char *message)
{
    struct sgp_scaling *scaling = NULL;
    error = (struct sgp_error){.code = 0};
    int status = sgp_scaling_parse(json, strlen(json), "s.json", &error, &scaling);
    cr_assert(eq(int, status, code), "%s", error.text);
    cr_assert(eq(ptr, scaling, NULL));
    cr_assert(eq(str, error.text, (char *)(uintptr_t)message));
}

#define COLUMN(text) "{\"sgp_scaling\": 1, \"columns\": [" text "]}"

Test(scaling, says_what_is_wrong)
{
    expect_scaling_error("[]", SGP_E_DATA,
        "s.json: not a scaling file; {\"sgp_scaling\": 1, \"columns\": [...]} would be right");
    expect_scaling_error("{\n\"sgp_scaling\" 1}", SGP_E_DATA,
        "s.json:2: ':' expected near '1'; a scaling file is JSON");
    expect_scaling_error(TARGETS("2", ""), SGP_E_DATA,
        "s.json: \"targets\" must be an array of 1 to 65536 label columns");
    expect_scaling_error(TARGETS("3", TARGET("y", "0", "1")), SGP_E_DATA,
        "s.json: not a scaling file; {\"sgp_scaling\": 1, \"columns\": [...]} would be right");
    expect_scaling_error(TARGETS("2", TARGET("y", "0", "0")), SGP_E_DATA,
        "s.json: target 'y' has mean 0 and deviation 0; a finite mean and a deviation above 0 "
        "would be right");
    expect_scaling_error(TARGETS("2", "{\"mean\": 1, \"deviation\": 2}"), SGP_E_DATA,
        "s.json: target 1 is not right; {\"name\": \"...\", \"mean\": M, \"deviation\": D} would "
        "be");
    expect_scaling_error(COLUMN(""), SGP_E_LIMIT, "s.json: 0 columns; 1 to 65536 would be right");
    expect_scaling_error(COLUMN("{\"mean\": 1}"), SGP_E_DATA,
        "s.json: column 1 has no name; {\"name\": \"...\", \"mean\": M, \"deviation\": D} or "
        "{\"name\": \"...\", \"values\": [...]} would be right");
    expect_scaling_error(COLUMN("{\"name\": \"a\", \"mean\": 1, \"deviation\": 0}"), SGP_E_DATA,
        "s.json: column 'a' has mean 1 and deviation 0; a finite mean and a deviation above 0 "
        "would "
        "be right");
    expect_scaling_error(COLUMN("{\"name\": \"a\", \"mean\": 1, \"deviaton\": 2}"), SGP_E_DATA,
        "s.json: column 'a' needs the numbers \"mean\" and \"deviation\", or \"values\", and "
        "nothing "
        "else");
    expect_scaling_error(COLUMN("{\"name\": \"a\", \"values\": []}"), SGP_E_DATA,
        "s.json: column 'a': \"values\" must be an array of 1 to 4096 strings");
    expect_scaling_error(COLUMN("{\"name\": \"a\", \"values\": [\"x\", 1]}"), SGP_E_DATA,
        "s.json: column 'a': value 2 is not a string");
    expect_scaling_error(COLUMN("{\"name\": \"a\", \"values\": [\"x\", \"y\", \"x\"]}"), SGP_E_DATA,
        "s.json: column 'a' lists the value 'x' twice; list each once");
    expect_scaling_error(
        COLUMN("{\"name\": \"a\", \"values\": [\"x\"]}, {\"name\": \"a\", \"values\": [\"y\"]}"),
        SGP_E_DATA, "s.json: column 'a' is named twice; name each once");
}

Test(data, options_that_do_not_go_together)
{
    struct sgp_scaling *scaling = scaling_of(SCALING);
    const struct {
        struct sgp_data_options options;
        const char *message;
    } cases[] = {
        {{.node_count = 1}, "[data] train is missing; name the file of rows"},
        {{.train = "x", .node_count = 1},
            "[data] says neither labels = FILE (IDX) nor label = COLUMN (CSV)"},
        {{.train = "x", .label = "y", .labels = "z", .node_count = 1},
            "[data] label (a column of CSV) and labels (a file of IDX) exclude each other"},
        {{.train = "x", .labels = "z", .test = "t", .node_count = 1},
            "[data] test needs test_labels too"},
        {{.train = "x", .label = "z", .test_labels = "t", .node_count = 1},
            "[data] test_labels goes with test and labels (IDX)"},
        {{.train = "x", .labels = "z", .scaling = scaling, .node_count = 1},
            "[data] scale is for CSV; bytes of IDX are always divided by 255"},
        {{.train = "x", .label = "z", .class_count = 3, .node_count = 1},
            "[data] classes must name the values of a CSV label"},
        {{.train = "x", .label = "z", .holdout = 1, .node_count = 1},
            "[data] holdout = 1: from 0 to less than 1 would be right"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sgp_data data = {.train = NULL};
        error = (struct sgp_error){.code = 0};
        int status = sgp_data_load(&cases[i].options, &error, &data);
        cr_assert(eq(int, status, SGP_E_CONFIG));
        cr_assert(eq(str, error.text, (char *)(uintptr_t)cases[i].message));
    }
    sgp_scaling_destroy(scaling);
}

/* What neighbours compare: the rows, and neither how they are written nor which part is whose. */
Test(data, the_digest_is_of_the_whole_table_and_only_of_one_that_is_cut)
{
    static const char *const texts[] = {"a,y\n1,red\n2,blue\n", "y,a\r\nred,1.0\r\n\"blue\",2",
        "a,y\n2,blue\n1,red\n", "a,y\n1,red\n2,green\n"};
    uint64_t digests[4][2];
    for (uint32_t i = 0; i < 8; i++) {
        char path[] = "/tmp/sgp-data-XXXXXX";
        FILE *file = fdopen(mkstemp(path), "wb");
        fputs(texts[i / 2], file);
        fclose(file);
        struct sgp_data_options options = {.train = path,
            .label = "y",
            .class_names = colours,
            .class_count = 3,
            .node_index = i % 2,
            .node_count = 2};
        struct sgp_data data;
        cr_assert(eq(int, sgp_data_load(&options, &error, &data), 0), "%s", error.text);
        digests[i / 2][i % 2] = data.digest;
        sgp_dataset_destroy(data.train);
        options.shards.kind = SGP_SHARD_NONE;
        cr_assert(eq(int, sgp_data_load(&options, &error, &data), 0), "%s", error.text);
        cr_assert(eq(u64, data.digest, 0));
        sgp_dataset_destroy(data.train);
        unlink(path);
    }
    for (int i = 0; i < 4; i++) {
        cr_assert(eq(u64, digests[i][0], digests[i][1]));
        cr_assert(eq(int, digests[i][0] == digests[0][0], i < 2), "text %d", i);
    }
}

static void write_rows(char *path, const char *text)
{
    FILE *file = fdopen(mkstemp(path), "wb");
    fputs(text, file);
    fclose(file);
}

/* Nodes tell the classes of training rows, so an unnamed class of a test table is a slip. */
Test(data, a_test_table_has_no_class_that_is_not_named)
{
    static const char *const told[] = {"red", "green", "blue"};
    struct sgp_csv_agreed agreed = {.classes = told, .class_count = 3};
    char train[] = "/tmp/sgp-data-XXXXXX", test[] = "/tmp/sgp-data-XXXXXX";
    write_rows(train, "a,y\n1,red\n2,Red\n3,blue\n");
    write_rows(test, "a,y\n1,red\n2,blue\n3,Red\n");
    struct sgp_data_options options = {.train = train,
        .test = test,
        .label = "y",
        .class_names = colours,
        .class_count = 3,
        .agreed = &agreed,
        .shards = {.kind = SGP_SHARD_NONE},
        .node_count = 1};
    struct sgp_data data;
    char text[128];
    error = (struct sgp_error){.code = 0};
    cr_assert(eq(int, sgp_data_load(&options, &error, &data), SGP_E_DATA));
    (void)snprintf(text, sizeof text, "%s:4: column 'y': 'Red' is not among the classes", test);
    cr_assert(strstr(error.text, text) == error.text, "%s", error.text);
    cr_assert(eq(u64, agreed.left_out, 1));
    cr_assert(eq(u64, agreed.left_out_line, 3));
    unlink(train);
    unlink(test);
}

Test(data, loads_shards_and_holds_out)
{
    char path[] = "/tmp/sgp-data-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "wb");
    fputs("a,y\n", file);
    for (int i = 0; i < 40; i++)
        fprintf(file, "%d,%s\n", i, colours[i % 3]);
    fclose(file);
    struct sgp_data_options options = {.train = path,
        .label = "y",
        .class_names = colours,
        .class_count = 3,
        .holdout = 0.25,
        .shards = {.kind = SGP_SHARD_ROUND_ROBIN},
        .node_index = 1,
        .node_count = 4};
    struct sgp_data data;
    error = (struct sgp_error){.code = 0};
    cr_assert(eq(int, sgp_data_load(&options, &error, &data), 0), "%s", error.text);
    struct sgp_dataset *train = data.train;
    struct sgp_dataset *test = data.test;
    cr_assert(eq(u64, data.file_rows, 40));
    cr_assert(eq(u64, data.own_rows, 10));
    cr_assert(eq(u64, train->rows, 8));
    cr_assert(eq(u64, test->rows, 2));
    for (int i = 0; i < 8; i++) {
        const int row = (int)train->floats[i];
        cr_assert(eq(int, row % 4, 1));
        cr_assert(eq(u32, train->labels[i], (uint32_t)row % 3));
    }
    cr_assert(eq(int, (int)test->floats[0] % 4, 1));
    sgp_dataset_destroy(train);
    sgp_dataset_destroy(test);
    unlink(path);
}
