/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a node: read, cut into shards and held out; and options that do not go together. */
#include "csv_rows.h"

#include <stdlib.h>
#include <unistd.h>

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
