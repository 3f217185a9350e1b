/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of tables, and the scaling of all of them: known figures, cuts, refusals, and texts
 * that no node writes. tests/system/test_statistics.py compares them with exact arithmetic. */
#include "train/statistics.h"

#include "train/csv.h"
#include "train/scaling.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct sgp_error error;

static const struct sgp_statistics_options plain = {.min_count = 1};
static const struct sgp_statistics_options classed = {
    .label = "y", .classes = true, .categories = "sex,zip", .min_count = 5};

static int read_table(const char *table, const struct sgp_statistics_options *options,
    struct sgp_statistics **ret_statistics)
{
    FILE *file = fmemopen((void *)(uintptr_t)table, strlen(table), "rb");
    error = (struct sgp_error){.code = 0};
    const int code = sgp_statistics_read_file(file, "t.csv", options, &error, ret_statistics);
    fclose(file);
    return code;
}

/* The text that a table tells; the caller frees it. */
static char *told(const char *table, const struct sgp_statistics_options *options)
{
    struct sgp_statistics *statistics = NULL;
    char *text = NULL;
    cr_assert(eq(int, read_table(table, options, &statistics), 0), "%s", error.text);
    cr_assert(eq(int, sgp_statistics_text(statistics, "t.csv", &error, &text), 0));
    sgp_statistics_destroy(statistics);
    return text;
}

static void expect_told(
    const char *table, const struct sgp_statistics_options *options, const char *expected)
{
    char *text = told(table, options);
    cr_assert(eq(str, text, (char *)(uintptr_t)expected));
    free(text);
}

static void expect_error(
    const char *table, const struct sgp_statistics_options *options, int code, const char *message)
{
    struct sgp_statistics *statistics = NULL;
    cr_assert(eq(int, read_table(table, options, &statistics), code), "%s", error.text);
    cr_assert(eq(ptr, statistics, NULL));
    cr_assert(eq(str, error.text, (char *)(uintptr_t)message));
}

static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};

/* The scaling of texts, and its text; NULL: *error says why there is none. */
static char *combined(const char *const *texts, uint32_t count, struct sgp_scaling **ret_scaling)
{
    char *text = NULL;
    *ret_scaling = NULL;
    error = (struct sgp_error){.code = 0};
    const int code = sgp_statistics_combine(texts, names, count, &error, ret_scaling, &text);
    cr_assert(eq(int, code, error.code));
    cr_assert(eq(int, code == 0, text != NULL));
    cr_assert(eq(int, code == 0, *ret_scaling != NULL));
    return text;
}

static void expect_combined(const char *const *texts, uint32_t count, const char *expected)
{
    struct sgp_scaling *scaling, *again = NULL;
    char *text = combined(texts, count, &scaling);
    cr_assert(ne(ptr, text, NULL), "%s", error.text);
    cr_assert(eq(str, text, (char *)(uintptr_t)expected));
    /* The text is a scaling file. */
    cr_assert(eq(int, sgp_scaling_parse(text, strlen(text), "s", &error, &again), 0));
    cr_assert(eq(u64, sgp_scaling_digest(scaling), sgp_scaling_digest(again)));
    sgp_scaling_destroy(scaling);
    sgp_scaling_destroy(again);
    free(text);
}

static void expect_refused(const char *const *texts, uint32_t count, const char *message)
{
    struct sgp_scaling *scaling;
    char *text = combined(texts, count, &scaling);
    cr_assert(eq(ptr, text, NULL), "%s", text);
    cr_assert(eq(str, error.text, (char *)(uintptr_t)message));
}

/* The scaling of tables, all read with the same options. */
static void expect_tables(const char *const *tables, uint32_t count,
    const struct sgp_statistics_options *options, const char *expected, const char *message)
{
    char *texts[7];
    for (uint32_t i = 0; i < count; i++)
        texts[i] = told(tables[i], options);
    if (expected)
        expect_combined((const char *const *)texts, count, expected);
    else
        expect_refused((const char *const *)texts, count, message);
    for (uint32_t i = 0; i < count; i++)
        free(texts[i]);
}

/* ---- what is told ---- */

Test(statistics, numbers_are_told_as_exact_sums)
{
    expect_told("x,y\n1,-0.5\n 3 ,NA\n,?\n", &plain,
        "{\"sgp_statistics\":1,\"rows\":3,\"labels\":[],\"columns\":["
        "[\"x\",\"numbers\",2,\"4000000000000000000000000000000000000000000000000\","
        "\"a000000000000000000000000000000000000000000000000"
        "000000000000000000000000000000000000000000000000\"],"
        "[\"y\",\"numbers\",1,\"-800000000000000000000000000000000000000000000000\","
        "\"400000000000000000000000000000000000000000000000"
        "000000000000000000000000000000000000000000000000\"]]}");
}

#define ROWS_5(row) row row row row row

Test(statistics, values_and_classes_are_told_if_enough_rows_have_them)
{
    expect_told("id,sex,y,zip\n" ROWS_5("7,f,0.0,\"a\nb\"\n") ROWS_5("8,m,yes,NA\n") "9,x,1,\n",
        &(struct sgp_statistics_options){.label = "y",
            .classes = true,
            .categories = "zip, sex, absent",
            .ignore = "id, gone",
            .min_count = 5},
        "{\"sgp_statistics\":1,\"rows\":11,"
        "\"labels\":[[\"y\",\"classes\",{\"0\":5,\"yes\":5}]],"
        "\"columns\":[[\"sex\",\"values\",[\"f\",\"m\"]],[\"zip\",\"values\",[\"a\\nb\"]]]}");
}

Test(statistics, fewer_numbers_than_min_count_are_not_told)
{
    struct sgp_statistics *statistics = NULL;
    const char table[] = "x,y\n" ROWS_5("3,1\n") "NA,2\n";
    const struct sgp_statistics_options six = {.label = "y", .min_count = 6};
    cr_assert(eq(int, read_table(table, &six, &statistics), 0));
    cr_assert(eq(u64, statistics->columns[0].present, 5));
    cr_assert(eq(u64, statistics->columns[0].held_rows, 5));
    cr_assert(eq(u64, statistics->labels[0].held_rows, 0));
    sgp_statistics_destroy(statistics);
    char *text = told(table, &six);
    cr_assert(ne(ptr, strstr(text, "[\"x\",\"numbers\",0,\"0\",\"0\"]"), NULL));
    free(text);
    text = told(table, &(struct sgp_statistics_options){.label = "y"}); /* 10 */
    cr_assert(ne(ptr, strstr(text, "[\"y\",\"numbers\",0,\"0\",\"0\"]"), NULL));
    free(text);
}

Test(statistics, words_are_told_as_words_and_explained_at_home)
{
    struct sgp_statistics *statistics = NULL;
    struct sgp_error line = {0};
    const char table[] = "zip,x\n1010,1\nA-1,2\n,3\nB-2,4\n";
    cr_assert(eq(int, read_table(table, &plain, &statistics), 0));
    sgp_statistics_explain(&statistics->columns[0], false, "t.csv", &line);
    cr_assert(eq(str, line.text,
        "t.csv:3: column 'zip': 'A-1' is not a number; name the column in categories or in ignore "
        "on every node, or correct the value"));
    sgp_statistics_destroy(statistics);
    char *text = told(table, &plain);
    cr_assert(ne(ptr, strstr(text, "[[\"zip\",\"words\"],[\"x\",\"numbers\",4,"), NULL));
    free(text);
}

Test(statistics, a_table_that_cannot_be_told_is_refused)
{
    struct sgp_statistics_options options = classed;
    expect_error("a,b\n1,2\n", &options, SGP_E_DATA,
        "t.csv:1: there is no column 'y'; the columns are a, b");
    expect_error("y\n1\n", &options, SGP_E_DATA,
        "t.csv:1: no column is left as a feature; rows need features beside the label");
    options.ignore = "y";
    expect_error(
        "a,y\n1,2\n", &options, SGP_E_CONFIG, "ignore: 'y' is the label; ignore other columns");
    options.ignore = "\"y";
    cr_assert(eq(
        int, read_table("a,y\n1,2\n", &options, &(struct sgp_statistics *){NULL}), SGP_E_CONFIG));
    cr_assert(eq(int, strncmp(error.text, "ignore: the quote", 17), 0));
    options = (struct sgp_statistics_options){.label = "y,y"};
    expect_error(
        "a,y\n1,2\n", &options, SGP_E_CONFIG, "label: column 'y' is named twice; name it once");
    options.classes = true;
    cr_assert(eq(
        int, read_table("a,y\n1,2\n", &options, &(struct sgp_statistics *){NULL}), SGP_E_CONFIG));
    options.label = " , ";
    expect_error("a,y\n1,2\n", &options, SGP_E_CONFIG, "label: it names no column");
    expect_error("a,y\n", &plain, SGP_E_DATA, "t.csv:2: no rows; at least one is needed");
    expect_error(
        "a,y\n1\n", &plain, SGP_E_DATA, "t.csv:2: 1 fields, but the first line names 2 columns");
    struct sgp_statistics *statistics = NULL;
    char *text = NULL;
    cr_assert(eq(int, read_table("\xff,y\n1,2\n", &plain, &statistics), 0));
    cr_assert(eq(int, sgp_statistics_text(statistics, "t.csv", &error, &text), SGP_E_DATA));
    cr_assert(ne(ptr, strstr(error.text, "its name or a value is not UTF-8"), NULL));
    sgp_statistics_destroy(statistics);
}

Test(statistics, too_many_values_are_refused)
{
    char *text = NULL;
    size_t bytes = 0;
    struct sgp_statistics *statistics = NULL;
    FILE *file = open_memstream(&text, &bytes);
    fprintf(file, "zip,y\n");
    for (uint32_t i = 0; i <= SGP_CATEGORIES_MAX; i++)
        fprintf(file, "Z%u,1\n", i);
    fclose(file);
    const struct sgp_statistics_options few = {.categories = "zip", .min_count = 1};
    expect_error(text, &few, SGP_E_LIMIT,
        "t.csv: column 'zip' has 4097 values of at least 1 rows each, and at most 4096 can be "
        "told; name it in ignore on every node");
    cr_assert(eq(int,
        read_table(text, &(struct sgp_statistics_options){.categories = "zip"}, &statistics), 0));
    cr_assert(eq(u32, statistics->columns[0].held_values, 4097));
    sgp_statistics_destroy(statistics);
    free(text);
}

Test(statistics, a_text_is_printable_ascii)
{
    char *text = told("\"\xc3\xa4\x7f\b\"\n1\n", &plain);
    cr_assert(ne(ptr, strstr(text, "[[\"\\u00E4\\u007f\\b\",\"numbers\",1,"), NULL), "%s", text);
    const char *const texts[] = {text};
    expect_combined(texts, 1,
        "{\"sgp_scaling\":1,\"columns\":["
        "{\"name\":\"\\u00E4\\u007f\\b\",\"mean\":1.0,\"deviation\":1.0}],"
        "\"rows\":1,\"members\":{\"a\":1}}");
    free(text);
}

/* ---- the scaling ---- */

Test(statistics, means_and_deviations_are_those_of_all_rows)
{
    expect_tables((const char *[]){"x,c\n1,5\n2,5\n", "c,x\n5,6\n", "x,c\n,5\n"}, 3, &plain,
        "{\"sgp_scaling\":1,\"columns\":["
        "{\"name\":\"x\",\"mean\":3.0,\"deviation\":2.1602468994692869},"
        "{\"name\":\"c\",\"mean\":5.0,\"deviation\":1.0}],"
        "\"rows\":4,\"members\":{\"a\":2,\"b\":1,\"c\":1}}",
        NULL);
}

Test(statistics, a_constant_of_many_digits_has_the_deviation_1)
{
    expect_tables((const char *[]){"x\n" ROWS_5("0.1\n") "0.1\n", "x\n0.1\n"}, 2, &plain,
        "{\"sgp_scaling\":1,\"columns\":["
        "{\"name\":\"x\",\"mean\":0.10000000000000001,\"deviation\":1.0}],"
        "\"rows\":7,\"members\":{\"a\":6,\"b\":1}}",
        NULL);
}

Test(statistics, a_great_mean_beside_a_small_deviation)
{
    expect_tables((const char *[]){"x\n100000001\n", "x\n99999999\n"}, 2, &plain,
        "{\"sgp_scaling\":1,\"columns\":["
        "{\"name\":\"x\",\"mean\":100000000.0,\"deviation\":1.0}],"
        "\"rows\":2,\"members\":{\"a\":1,\"b\":1}}",
        NULL);
}

Test(statistics, values_and_classes_are_joined)
{
    expect_tables((const char *[]){"sex,zip,x,y\n" ROWS_5("f,10,1,10\n") ROWS_5("m,9,1,2\n"),
                      "x,y,zip,sex\n" ROWS_5("3,2.0,9,d\n") ROWS_5("3,no,,\n")},
        2, &classed,
        "{\"sgp_scaling\":1,\"columns\":["
        "{\"name\":\"sex\",\"values\":[\"d\",\"f\",\"m\"]},"
        "{\"name\":\"zip\",\"values\":[\"10\",\"9\"]},"
        "{\"name\":\"x\",\"mean\":2.0,\"deviation\":1.0}],"
        "\"rows\":20,\"classes\":{\"2\":10,\"10\":5,\"no\":5},\"members\":{\"a\":10,\"b\":10}}",
        NULL);
}

Test(statistics, labels_of_numbers_are_targets_and_no_features)
{
    const struct sgp_statistics_options labels = {.label = "\"y, 1\",z", .min_count = 1};
    expect_tables((const char *[]){"z,x,\"y, 1\"\n4,0,1\n", "\"y, 1\",x,z\n3,0,4\n"}, 2, &labels,
        "{\"sgp_scaling\":2,\"columns\":["
        "{\"name\":\"x\",\"mean\":0.0,\"deviation\":1.0}],\"targets\":["
        "{\"name\":\"y, 1\",\"mean\":2.0,\"deviation\":1.0},"
        "{\"name\":\"z\",\"mean\":4.0,\"deviation\":1.0}],\"rows\":2,"
        "\"members\":{\"a\":1,\"b\":1}}",
        NULL);
}

/* The label of the diabetes data of scikit-learn (Efron et al. 2004, "Least Angle Regression"). */
static const uint16_t diabetes[] = {151, 75, 141, 206, 135, 97, 138, 63, 110, 310, 101, 69, 179,
    185, 118, 171, 166, 144, 97, 168, 68, 49, 68, 245, 184, 202, 137, 85, 131, 283, 129, 59, 341,
    87, 65, 102, 265, 276, 252, 90, 100, 55, 61, 92, 259, 53, 190, 142, 75, 142, 155, 225, 59, 104,
    182, 128, 52, 37, 170, 170, 61, 144, 52, 128, 71, 163, 150, 97, 160, 178, 48, 270, 202, 111, 85,
    42, 170, 200, 252, 113, 143, 51, 52, 210, 65, 141, 55, 134, 42, 111, 98, 164, 48, 96, 90, 162,
    150, 279, 92, 83, 128, 102, 302, 198, 95, 53, 134, 144, 232, 81, 104, 59, 246, 297, 258, 229,
    275, 281, 179, 200, 200, 173, 180, 84, 121, 161, 99, 109, 115, 268, 274, 158, 107, 83, 103, 272,
    85, 280, 336, 281, 118, 317, 235, 60, 174, 259, 178, 128, 96, 126, 288, 88, 292, 71, 197, 186,
    25, 84, 96, 195, 53, 217, 172, 131, 214, 59, 70, 220, 268, 152, 47, 74, 295, 101, 151, 127, 237,
    225, 81, 151, 107, 64, 138, 185, 265, 101, 137, 143, 141, 79, 292, 178, 91, 116, 86, 122, 72,
    129, 142, 90, 158, 39, 196, 222, 277, 99, 196, 202, 155, 77, 191, 70, 73, 49, 65, 263, 248, 296,
    214, 185, 78, 93, 252, 150, 77, 208, 77, 108, 160, 53, 220, 154, 259, 90, 246, 124, 67, 72, 257,
    262, 275, 177, 71, 47, 187, 125, 78, 51, 258, 215, 303, 243, 91, 150, 310, 153, 346, 63, 89, 50,
    39, 103, 308, 116, 145, 74, 45, 115, 264, 87, 202, 127, 182, 241, 66, 94, 283, 64, 102, 200,
    265, 94, 230, 181, 156, 233, 60, 219, 80, 68, 332, 248, 84, 200, 55, 85, 89, 31, 129, 83, 275,
    65, 198, 236, 253, 124, 44, 172, 114, 142, 109, 180, 144, 163, 147, 97, 220, 190, 109, 191, 122,
    230, 242, 248, 249, 192, 131, 237, 78, 135, 244, 199, 270, 164, 72, 96, 306, 91, 214, 95, 216,
    263, 178, 113, 200, 139, 139, 88, 148, 88, 243, 71, 77, 109, 272, 60, 54, 221, 90, 311, 281,
    182, 321, 58, 262, 206, 233, 242, 123, 167, 63, 197, 71, 168, 140, 217, 121, 235, 245, 40, 52,
    104, 132, 88, 69, 219, 72, 201, 110, 51, 277, 63, 118, 69, 273, 258, 43, 198, 242, 232, 175, 93,
    168, 275, 293, 281, 72, 140, 189, 181, 209, 136, 261, 113, 131, 174, 257, 55, 84, 42, 146, 212,
    233, 91, 111, 152, 120, 67, 310, 94, 183, 66, 173, 72, 49, 64, 48, 178, 104, 132, 220, 57};
#define PATIENTS (sizeof diabetes / sizeof *diabetes)

/* The rows of one of `nodes` nodes, each nodes-th or a piece. */
static char *patients(uint32_t node, uint32_t nodes, bool pieces)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    fprintf(file, "x,y\n");
    for (uint32_t i = 0; i < PATIENTS; i++)
        if ((pieces ? i * nodes / (uint32_t)PATIENTS : i % nodes) == node)
            fprintf(file, "%u,%u\n", i, diabetes[i]);
    fclose(file);
    return text;
}

Test(statistics, the_scale_of_a_label_does_not_depend_on_who_has_which_rows)
{
    static const uint32_t cuts[] = {1, 3, 4, 7};
    for (uint32_t cut = 0; cut < 8; cut++) {
        const uint32_t nodes = cuts[cut / 2];
        char *texts[7];
        for (uint32_t i = 0; i < nodes; i++) {
            char *table = patients(i, nodes, cut % 2);
            texts[i] = told(table, &(struct sgp_statistics_options){.label = "y"});
            free(table);
        }
        struct sgp_scaling *scaling;
        uint32_t count;
        free(combined((const char *const *)texts, nodes, &scaling));
        const struct sgp_target_scale *target = sgp_scaling_targets(scaling, &count);
        cr_assert(eq(u32, count, 1));
        cr_assert(eq(dbl, target->mean, 0x1.3044580944581p+7));
        cr_assert(eq(dbl, target->deviation, 0x1.3405e23ec581cp+6));
        sgp_scaling_destroy(scaling);
        for (uint32_t i = 0; i < nodes; i++)
            free(texts[i]);
    }
}

/* The table of rows first, first + step, ... below 420. */
static char *part(uint32_t first, uint32_t step)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    fprintf(file, "x,w,c,y\n");
    for (uint32_t i = first; i < 420; i += step)
        fprintf(file, "%.17g,%s,%c,%u.0\n", sin(i) * pow(10, i % 38), i % 3 ? "1e-300" : "NA",
            (char)('a' + i % 4), i % 5);
    fclose(file);
    return text;
}

Test(statistics, any_cut_gives_the_same_bits)
{
    static const uint32_t cuts[] = {1, 3, 4, 7};
    const struct sgp_statistics_options options = {
        .label = "y", .classes = true, .categories = "c", .min_count = 1};
    uint64_t digest = 0;
    for (size_t cut = 0; cut < sizeof cuts / sizeof *cuts; cut++) {
        char *texts[7];
        for (uint32_t i = 0; i < cuts[cut]; i++) {
            char *table = part(cuts[cut] - 1 - i, cuts[cut]);
            texts[i] = told(table, &options);
            free(table);
        }
        struct sgp_scaling *scaling;
        char *text = combined((const char *const *)texts, cuts[cut], &scaling);
        cr_assert(ne(ptr, text, NULL), "%s", error.text);
        cr_assert(
            ne(ptr, strstr(text, "\"rows\":420,\"classes\":{\"0\":84,\"1\":84,\"2\":84,"), NULL));
        cr_assert(cut == 0 || sgp_scaling_digest(scaling) == digest);
        digest = sgp_scaling_digest(scaling);
        sgp_scaling_destroy(scaling);
        free(text);
        for (uint32_t i = 0; i < cuts[cut]; i++)
            free(texts[i]);
    }
}

/* ---- refusals ---- */

#define TABLE_A "age,zip,sex,y\n" ROWS_5("30,1010,f,0\n") ROWS_5("41,1020,m,1\n")

Test(statistics, columns_that_do_not_fit_together_are_refused)
{
    struct sgp_statistics_options options = classed;
    expect_tables((const char *[]){TABLE_A, TABLE_A, "age,zip,y\n" ROWS_5("31,1010,1\n")}, 3,
        &options, NULL,
        "column 'sex' of a is not told by c; add it there, empty, or name it in ignore on every "
        "node or on none");
    expect_tables((const char *[]){"age,y\n" ROWS_5("3,1\n"), "age,y,new\n" ROWS_5("1,1,1\n")}, 2,
        &options, NULL,
        "column 'new' of b is not told by a; add it there, empty, or name it in ignore on every "
        "node or on none");
    options.categories = "sex";
    expect_tables((const char *[]){TABLE_A, "age,zip,sex,y\n" ROWS_5("1,A-1,f,0\n")}, 2, &options,
        NULL, "column 'zip' holds words at b; name it in categories on every node");
    expect_tables((const char *[]){"age,y\nold,1\n"}, 1, &options, NULL,
        "column 'age' holds words at a; name it in categories on every node");
    expect_tables((const char *[]){"age,y\n,1\n", "age,y\n"
                                                  "3,1\n"},
        2, &options, NULL,
        "column 'age' has too few numbers to be told at any of 2 nodes, from a to b; name it in "
        "ignore on every node");
    expect_tables((const char *[]){"sex,y\nf,1\n", "sex,y\nm,1\n"}, 2, &options, NULL,
        "column 'sex' has no value that enough rows have at any of 2 nodes, from a to b; name it "
        "in ignore on every node");
    expect_tables((const char *[]){"age,y\n" ROWS_5("1,\n")}, 1, &options, NULL,
        "label 'y' has no value that enough rows have at any of 1 nodes, from a to a; lower "
        "min_count, or give the nodes more rows");
}

static void expect_pair(const char *one, const struct sgp_statistics_options *ones,
    const char *other, const struct sgp_statistics_options *others, const char *message)
{
    char *texts[] = {told(one, ones), told(other, others)};
    expect_refused((const char *const *)texts, 2, message);
    free(texts[0]);
    free(texts[1]);
}

Test(statistics, options_that_differ_are_refused)
{
    const struct sgp_statistics_options numbers = {.label = "y", .min_count = 5};
    const struct sgp_statistics_options two = {.label = "y,zip", .min_count = 5};
    const struct sgp_statistics_options turned = {.label = "zip,y", .min_count = 5};
    const char table[] = "zip,x,y\n" ROWS_5("1010,2,1\n");
    expect_pair(table, &classed, table, &numbers,
        "column 'zip' is told as values by a and as numbers by b; name it in categories on every "
        "node or on none");
    expect_pair("x,y\n" ROWS_5("1,1\n"), &classed, "x,y\n" ROWS_5("1,1\n"), &numbers,
        "label 'y' is told as classes by a and as numbers by b; give classes on every node or on "
        "none");
    expect_pair(table, &numbers, "zip,x,y\n1,2,no\n", &numbers,
        "label 'y' holds words at b; give classes on every node");
    expect_pair(table, &numbers, table, &two,
        "a has 1 label columns, and b has 2; name the same in label on every node");
    expect_pair(table, &two, table, &turned,
        "label column 1 is 'y' at a and 'zip' at b; name the same in label on every node");
    /* A single label may have another name on each node. */
    const struct sgp_statistics_options target = {.label = "target", .min_count = 5};
    char *texts[] = {
        told("x,y\n" ROWS_5("1,1\n"), &numbers), told("x,target\n" ROWS_5("1,3\n"), &target)};
    expect_combined((const char *const *)texts, 2,
        "{\"sgp_scaling\":2,\"columns\":[{\"name\":\"x\",\"mean\":1.0,\"deviation\":1.0}],"
        "\"targets\":[{\"name\":\"y\",\"mean\":2.0,\"deviation\":1.0}],"
        "\"rows\":10,\"members\":{\"a\":5,\"b\":5}}");
    free(texts[0]);
    free(texts[1]);
}

Test(statistics, too_many_values_of_all_nodes_are_refused)
{
    char *texts[2];
    for (uint32_t node = 0; node < 2; node++) {
        char *table = NULL;
        size_t bytes = 0;
        FILE *file = open_memstream(&table, &bytes);
        fprintf(file, "zip\n");
        for (uint32_t i = 0; i <= SGP_CATEGORIES_MAX / 2; i++)
            fprintf(file, "Z%u\n", i + 3000 * node);
        fclose(file);
        texts[node] =
            told(table, &(struct sgp_statistics_options){.categories = "zip", .min_count = 1});
        free(table);
    }
    expect_refused((const char *const *)texts, 2,
        "column 'zip' has more than 4096 different values, or too long ones, with those of b; name "
        "it in ignore on every node");
    free(texts[0]);
    free(texts[1]);
}

/* ---- texts that no node writes ---- */

#define GOOD                                                                                       \
    "{\"sgp_statistics\":1,\"rows\":9,\"labels\":[],\"columns\":[[\"x\",\"numbers\",1,\"0\","      \
    "\"0\"]]}"
#define WITH(labels, columns)                                                                      \
    "{\"sgp_statistics\":1,\"rows\":9,\"labels\":[" labels "],\"columns\":[" columns "]}"
#define X "[\"x\",\"numbers\",1,\"0\",\"0\"]"

static void expect_malformed(const char *text, const char *what)
{
    char message[SGP_TEXT_BYTES];
    const char *texts[] = {GOOD, text};
    snprintf(message, sizeof message,
        "the statistics of b are malformed: %s; does b run another version of sgpd?", what);
    expect_refused(texts, 2, message);
}

Test(statistics, malformed_texts_are_refused)
{
    static const char *const json[] = {"", "{", "[]", "null", "1", GOOD "x",
        "{\"rows\":1,\"rows\":2}", "{\"a\\u0000\":1}", "\"\xff\""};
    for (size_t i = 0; i < sizeof json / sizeof *json; i++)
        expect_malformed(json[i], "they are not JSON");
    expect_malformed("{}", "they are not of this format");
    expect_malformed("{\"sgp_statistics\":2,\"rows\":9,\"labels\":[],\"columns\":[" X "]}",
        "they are not of this format");
    expect_malformed("{\"sgp_statistics\":1,\"rows\":9,\"labels\":[],\"columns\":[" X "],\"z\":1}",
        "they are not of this format");
    static const char *const rows[] = {"0", "-1", "4294967296", "1.0", "true"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        snprintf(text, sizeof text,
            "{\"sgp_statistics\":1,\"rows\":%s,\"labels\":[],\"columns\":[" X "]}", rows[i]);
        expect_malformed(text, "there are no rows, or too many");
    }
    expect_malformed(WITH("", ""), "no columns, or too many");
    expect_malformed(WITH("", "1"), "a column has no name, or too long a one");
    expect_malformed(WITH("", "[\"x\"]"), "column 'x' is of an unknown kind");
    expect_malformed(WITH("", "[\"x\",\"classes\",{}]"), "column 'x' is of an unknown kind");
    expect_malformed(WITH("[\"y\",\"values\",[]]", X), "column 'y' is of an unknown kind");
    expect_malformed(WITH("", "[\"x\",\"words\",1]"), "column 'x' is of an unknown kind");
    expect_malformed(WITH("", X "," X), "column 'x' is there twice");
    expect_malformed(WITH(X, X), "column 'x' is there twice");
    expect_malformed(WITH(X ",[\"y\",\"classes\",{}]", "[\"z\",\"words\"]"),
        "column 'y' has classes beside another label");
}

Test(statistics, malformed_numbers_are_refused)
{
    char digits[300], text[1024];
    static const char *const bad[] = {"10,\"0\",\"0\"", "-1,\"0\",\"0\"", "1,\"\",\"0\"",
        "1,\"-\",\"0\"", "1,\"-0\",\"0\"", "1,\"00\",\"0\"", "1,\"0x1\",\"1\"", "1,\"A\",\"1\"",
        "1,\" 1\",\"1\"", "1,0,0", "1,\"0\"", "1,\"0\",\"0\",1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, WITH("", "[\"x\",\"numbers\",%s]"), bad[i]);
        expect_malformed(text, "column 'x' has no count, sum and sum of squares");
    }
    memset(digits, 'f', sizeof digits);
    snprintf(text, sizeof text, WITH("", "[\"x\",\"numbers\",1,\"%.89s\",\"0\"]"), digits);
    expect_malformed(text, "column 'x' has no count, sum and sum of squares");
    snprintf(text, sizeof text, WITH("", "[\"x\",\"numbers\",1,\"0\",\"%.169s\"]"), digits);
    expect_malformed(text, "column 'x' has no count, sum and sum of squares");
    static const char *const impossible[] = {
        "0,\"1\",\"1\"", "0,\"0\",\"1\"", "1,\"2\",\"3\"", "4,\"-4\",\"3\"", "1,\"0\",\"-1\""};
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
        snprintf(text, sizeof text, WITH("", "[\"x\",\"numbers\",%s]"), impossible[i]);
        expect_malformed(text, "column 'x' has sums that no numbers have");
    }
}

Test(statistics, malformed_values_are_refused)
{
    expect_malformed(
        WITH("", "[\"x\",\"values\",{}]"), "column 'x' has no list of values, or too long a one");
    expect_malformed(
        WITH("", "[\"x\",\"values\"]"), "column 'x' has no list of values, or too long a one");
    expect_malformed(
        WITH("", "[\"x\",\"values\",[],1]"), "column 'x' has no list of values, or too long a one");
    expect_malformed(WITH("", "[\"x\",\"values\",[1]]"), "column 'x' has a value that is no text");
    expect_malformed(WITH("", "[\"x\",\"values\",[\"b\",\"a\"]]"),
        "column 'x' has values that are not in order");
    expect_malformed(WITH("", "[\"x\",\"values\",[\"a\",\"a\"]]"),
        "column 'x' has values that are not in order");
    expect_malformed(
        WITH("", "[\"x\",\"values\",[\"NA\"]]"), "column 'x' has a value that no table has");
    expect_malformed(
        WITH("[\"y\",\"classes\",[]]", X), "column 'y' has no list of values, or too long a one");
    expect_malformed(
        WITH("[\"y\",\"classes\",{\"0.0\":1}]", X), "column 'y' has a value that no table has");
    expect_malformed(WITH("[\"y\",\"classes\",{\"10\":1,\"9\":1}]", X),
        "column 'y' has values that are not in order");
    expect_malformed(
        WITH("[\"y\",\"classes\",{\"a\":0}]", X), "column 'y' has classes of too many rows");
    expect_malformed(WITH("[\"y\",\"classes\",{\"a\":5,\"b\":5}]", X),
        "column 'y' has classes of too many rows");
}

/* The greatest sums that a text may have do not overflow. */
Test(statistics, great_sums_of_many_nodes_stay_numbers)
{
    char digits[300], text[1024];
    const char *texts[7];
    struct sgp_scaling *scaling;
    memset(digits, 'f', sizeof digits);
    snprintf(
        text, sizeof text, WITH("", "[\"x\",\"numbers\",9,\"%.83s\",\"%.168s\"]"), digits, digits);
    for (size_t i = 0; i < 7; i++)
        texts[i] = text;
    char *combination = combined(texts, 7, &scaling);
    cr_assert(ne(ptr, combination, NULL), "%s", error.text);
    cr_assert(isfinite(scaling->columns[0].mean) && scaling->columns[0].deviation > 1e40);
    sgp_scaling_destroy(scaling);
    free(combination);
}
