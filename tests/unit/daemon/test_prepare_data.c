/* SPDX-License-Identifier: Apache-2.0 */
/* Rows, columns, classes and targets of a configuration: what is prepared, and every refusal word for word. */
#include "prepare_place.h"

#include <errno.h>

TestSuite(prepare_data, .init = setup, .fini = teardown);

Test(prepare_data, the_rows_are_told_whatever_the_shards)
{
    static const char *const cases[][2] = {
        {"contiguous", "25 of 50 rows (contiguous, part 2 of 2)"},
        {"dirichlet:1e3", "of 50 rows (dirichlet:1000, part 2 of 2)"},
        {"none", "50 rows (all of the file: shards = none)"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char data[128], text[SGP_TEXT_BYTES];
        struct sgp_error error = {0};
        struct config config;
        struct prepared p;
        (void)snprintf(data, sizeof data,
            "train = rows.csv\nlabel = kind\nclasses = even odd\nshards = %s", cases[i][0]);
        cr_assert(
            eq(int, build((struct parts){.data = data}, &config, &p, &error), 0), "%s", error.text);
        prepared_rows_text(&p, text);
        cr_assert(strstr(text, cases[i][1]) != NULL, "%s", text);
        prepared_finish(&p);
        config_finish(&config);
    }
}

static void expect_classes(const char *classes, const char *first, const char *second)
{
    char data[256];
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    (void)snprintf(
        data, sizeof data, "train = rows.csv\nlabel = kind\nclasses = %s\nholdout = 0.2", classes);
    cr_assert(
        eq(int, build((struct parts){.data = data}, &config, &p, &error), 0), "%s", error.text);
    cr_assert(eq(u32, p.class_count, 2));
    cr_assert(eq(str, p.class_names[0], (char *)first));
    cr_assert(eq(str, p.class_names[1], (char *)second));
    prepared_finish(&p);
    config_finish(&config);
}

Test(prepare_data, class_names_with_blanks_stand_in_quotes)
{
    write_file(
        "rows.csv", "a,b,kind\n1,1,New York\n1,2,\"so, \"\"so\"\"\"\n2,1,New York\n2,2,New York\n");
    expect_classes("\"New York\" \"so, \"\"so\"\"\"", "New York", "so, \"so\"");
    expect_classes("\"New York\",\n  \"so, \"\"so\"\"\" ; both", "New York", "so, \"so\"");
    write_file("rows.csv", "a,b,kind\n1,1,\"5\"\"\"\n1,2,x\n2,1,x\n2,2,x\n");
    expect_classes("5\" \"x\"", "5\"", "x");
    static const char *const bad[][2] = {
        {"\"New York", "the quote before 'New York' is never closed; "
                       "close it, and mind that a blank and # or ; begin a comment"},
        {"\"New\"York", "'York' follows a closing quote; a blank or a comma would be right, and a "
                        "quote within quotes is written twice"},
        {"x \"\"", "a name is empty; write one between the quotes"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char data[128], message[256];
        (void)snprintf(
            data, sizeof data, "train = rows.csv\nlabel = kind\nclasses = %s", bad[i][0]);
        (void)snprintf(message, sizeof message, "n.conf:12: [data] classes: %s", bad[i][1]);
        expect_refusal((struct parts){.data = data}, SGP_E_CONFIG, message);
    }
}

/* A model's file says the names as a configuration would. */
Test(prepare_data, class_names_are_joined_as_they_were_split)
{
    static const char *const texts[] = {
        "a b", "5\" x", "\"New York\" b", "\"so, \"\"so\"\"\" \"\"\"x\""};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char text[64];
        char **names = NULL;
        uint32_t count = 0;
        cr_assert(eq(int, sgp_names_split(texts[i], SGP_NAMES_CLASSES, NULL, &names, &count), 0));
        cr_assert(eq(u32, count, 2));
        cr_assert(sgp_names_join(names, count, text, strlen(texts[i]) + 1));
        cr_assert(eq(str, text, (char *)texts[i]));
        sgp_names_free(names, count);
    }
}

Test(prepare_data, holdout_beside_test_rows)
{
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    const struct parts parts = {.data = "train = rows.csv\nlabel = kind\nclasses = even odd\n"
                                        "test = rows.csv\nholdout = 0.2"};
    cr_assert(eq(int, build(parts, &config, &p, &error), 0), "%s", error.text);
    expect_warning(&p, "n.conf:14: [data] holdout has no effect: test names the rows to test on");
    prepared_finish(&p);
    config_finish(&config);
}

/* ---- compression ---- */

static void write_rows_of(const char *names, const char *row)
{
    char rows[2048];
    int used = snprintf(rows, sizeof rows, "%s,kind\n", names);
    for (int i = 0; i < 8; i++)
        used += snprintf(rows + used, sizeof rows - (size_t)used, "%s,%s\n", i ? "0,0,0" : row,
            i % 2 ? "odd" : "even");
    write_file("rows.csv", rows);
}

Test(prepare_data, columns_of_very_unlike_size)
{
    static const struct {
        const char *row, *part; /* NULL: they may stay as they are */
    } cases[] = {
        {"0.95,-900,0", NULL},
        {"0.5,-1001,0",
            "n.conf:10: [data] train: no scale is given, and column 'income' reaches 1001, "
            "column 'age' 0.5; training wants columns of like size and near 1: write a scaling "
            "file, see sgpd.conf(5)"},
        {"0.02,21,0", "column 'income' reaches 21, column 'age' 0.02; training"},
        {"2000,-90000,3000", "column 'income' reaches 9e+04; training"},
        {"1e-4,2e-4,3e-4", "column 'rest' reaches 0.0003; training"},
        {"0,0,0", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_rows_of("age,income,rest", cases[i].row);
        struct parts parts = {.data = "train = rows.csv\nlabel = kind\nclasses = even odd\n"
                                      "shards = none\ntest = rows.csv"};
        struct sgp_error error = {0};
        struct config config;
        struct prepared p;
        cr_assert(eq(int, build(parts, &config, &p, &error), 0), "%s", error.text);
        cr_assert(
            eq(u32, p.warning_count, cases[i].part != NULL), "case %zu: %s", i, p.warnings[0]);
        if (cases[i].part)
            expect_warning(&p, cases[i].part);
        prepared_finish(&p);
        config_finish(&config);
    }
    write_file("scale.json", "{\"sgp_scaling\": 1, \"columns\": ["
                             "{\"name\": \"age\", \"mean\": 0, \"deviation\": 1},"
                             "{\"name\": \"income\", \"mean\": 0, \"deviation\": 1}]}");
    write_rows_of("age,income,rest", "0.5,90000,0");
    struct parts parts = {.data = "train = rows.csv\nlabel = kind\nclasses = even odd\n"
                                  "shards = none\ntest = rows.csv\nscale = scale.json"};
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    cr_assert(eq(int, build(parts, &config, &p, &error), 0), "%s", error.text);
    cr_assert(eq(u32, p.warning_count, 0), "who gives a scaling file knows: %s", p.warnings[0]);
    prepared_finish(&p);
    config_finish(&config);
}

#define ALL_COLUMNS                                                                                \
    "\"columns\": [{\"name\": \"a\", \"mean\": 0, \"deviation\": 1}], "                            \
    "\"targets\": [{\"name\": \"b\", \"mean\": 75.5, \"deviation\": 50}]"

Test(prepare_data, a_label_of_numbers_is_scaled_by_its_file)
{
    const struct parts parts = {.model = "layers = dense 1\nloss = huber",
        .data = "train = rows.csv\nlabel = b\ntest = rows.csv\nscale = scale.json"};
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    write_file("scale.json", "{\"sgp_scaling\": 2, " ALL_COLUMNS "}");
    cr_assert(eq(int, build(parts, &config, &p, &error), 0), "%s", error.text);
    cr_assert(eq(u32, p.warning_count, 0), "%s", p.warnings[0]);
    cr_assert(eq(u32, p.model.loss_settings.target_scale_count, 1));
    cr_assert(eq(str, p.targets_text, "[{\"name\":\"b\",\"mean\":75.5,\"deviation\":50.0}]"));
    cr_assert(eq(str, p.columns_text,
        "{\"sgp_scaling\":1,\"columns\":[{\"name\":\"a\",\"mean\":0.0,\"deviation\":1.0}]}"));
    const uint64_t scaled = p.fingerprint.scaling;
    prepared_finish(&p);
    config_finish(&config);
    /* The label of another name may be another column, and a float has seven digits. */
    write_file("scale.json",
        "{\"sgp_scaling\": 2, \"columns\": [{\"name\": \"a\", \"mean\": 0, \"deviation\": 1}], "
        "\"targets\": [{\"name\": \"tax\", \"mean\": 1764150000, \"deviation\": 69}]}");
    cr_assert(eq(int, build(parts, &config, &p, &error), 0), "%s", error.text);
    expect_warning(&p,
        "n.conf:12: [data] label = b is scaled by mean and deviation of tax; if that is another "
        "column, write a scaling file with --label b, or let all nodes agree again");
    expect_warning(&p,
        "n.conf:12: [data] label: the mean of tax is 1764150000 and its deviation 69, too far "
        "apart for predictions of seven digits; subtract a constant from the column");
    prepared_finish(&p);
    config_finish(&config);
    /* Targets of format 1 were computed, but never used. */
    write_file("scale.json", "{\"sgp_scaling\": 1, " ALL_COLUMNS "}");
    cr_assert(eq(int, build(parts, &config, &p, &error), 0), "%s", error.text);
    cr_assert(p.model.loss_settings.target_scales == NULL);
    cr_assert(eq(ptr, p.targets_text, NULL));
    cr_assert(ne(u64, p.fingerprint.scaling, scaled));
    expect_warning(&p,
        "n.conf:12: [data] label: its numbers reach 147.5 and are not scaled; training wants "
        "numbers near 1: write a scaling file with --label, see sgpd.conf(5)");
    prepared_finish(&p);
    config_finish(&config);
}

Test(prepare_data, a_relay_learns_from_its_scaling_what_outputs_mean)
{
    const struct parts parts = {.node = "name = n0",
        .train = "algorithm = backup",
        .model = "layers = dense 1\nloss = mse",
        .data = "scale = scale.json",
        .network = "listen = 10.0.0.1:7311"};
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    write_file("fleet.dot", owned);
    write_file("scale.json", "{\"sgp_scaling\": 2, " ALL_COLUMNS "}");
    cr_assert(eq(int, build(parts, &config, &p, &error), 0), "%s", error.text);
    cr_assert(eq(u32, p.model.inputs, 1));
    cr_assert(eq(dbl, p.model.loss_settings.target_scales->deviation, 50));
    prepared_finish(&p);
    config_finish(&config);
}

Test(prepare_data, a_model_that_does_not_fit_the_data)
{
    expect_refusal((struct parts){.model = "layers = dense 3"}, SGP_E_CONFIG,
        "n.conf:8: [model] layers: the last layer has 3 outputs, and [data] classes names 2; they "
        "must be equal");
    expect_refusal((struct parts){.data = "train = rows.csv\nlabel = kind"}, SGP_E_CONFIG,
        "n.conf: [data] classes: missing; name the values of column kind in the order of the 2 "
        "outputs, or use loss = mse for numbers");
    expect_refusal((struct parts){.model = "layers = dense 3\nloss = mse",
                       .data = "train = rows.csv\nlabel = b\nholdout = 0.2"},
        SGP_E_DATA,
        "rows.csv:2: column 'kind': 'even' is not a number; a column of words needs its "
        "values in a scaling file");
}

Test(prepare_data, a_loss_that_does_not_fit_the_rows)
{
    expect_refusal((struct parts){.model = "layers = dense 2\nloss = binary-cross-entropy"},
        SGP_E_CONFIG,
        "n.conf:13: [data] classes: loss = binary-cross-entropy takes label columns of 0 and 1, "
        "one for each output; remove the line, or use loss = cross-entropy");
    expect_refusal((struct parts){.model = "layers = dense 2\nloss = binary-cross-entropy",
                       .data = "train = rows.csv\nlabels = rows.csv"},
        SGP_E_CONFIG,
        "n.conf:9: [model] loss: binary-cross-entropy takes label columns of 0 and 1, and IDX "
        "files hold classes; use cross-entropy, or CSV with label = COLUMN, COLUMN");
    expect_refusal((struct parts){.model = "layers = dense 2 relu\nloss = binary-cross-entropy",
                       .data = "train = rows.csv\nlabel = a, b"},
        SGP_E_CONFIG,
        "n.conf:8: [model] layers: the last layer has the activation relu under "
        "binary-cross-entropy, which brings a sigmoid of its own; leave the activation out");
    expect_refusal((struct parts){.model = "layers = dense 2\nloss = binary-cross-entropy",
                       .data = "train = rows.csv\nlabel = a, b"},
        SGP_E_DATA,
        "rows.csv:2: column 'b': '0.5' is neither 0 nor 1; the loss takes label columns of 0 "
        "and 1");
    expect_refusal((struct parts){.model = "layers = dense 2\nclass_weights = 1, 2, 3"},
        SGP_E_CONFIG,
        "n.conf:9: [model] class_weights: 3 class weights, but the model ends in 2 outputs; give "
        "one weight for each");
    expect_refusal((struct parts){.model = "layers = dense 2\nclass_weights = 1, balanced"},
        SGP_E_CONFIG,
        "n.conf:9: [model] class_weights: 'balanced' is not a number; list one number for each "
        "class, for example 1, 2.5, 1");
}

static uint64_t loss_digest_of(const char *model, uint32_t warnings)
{
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    cr_assert(
        eq(int, build((struct parts){.model = model}, &config, &p, &error), 0), "%s", error.text);
    cr_assert(eq(u32, p.warning_count, warnings), "%s: %s", model, p.warnings[0]);
    if (warnings > 0)
        expect_warning(&p, "has no effect: it is for loss = ");
    uint64_t digest = p.fingerprint.loss;
    prepared_finish(&p);
    config_finish(&config);
    return digest;
}

Test(prepare_data, the_fingerprint_has_the_settings_of_the_loss)
{
    uint64_t plain = loss_digest_of("layers = dense 2", 0);
    cr_assert(eq(u64, loss_digest_of("layers = dense 2\nhuber_delta = 2", 1), plain));
    cr_assert(ne(u64, loss_digest_of("layers = dense 2\nlabel_smoothing = 0.1", 0), plain));
    cr_assert(ne(u64, loss_digest_of("layers = dense 2\nclass_weights = 1,2", 0), plain));
    cr_assert(ne(u64, loss_digest_of("layers = dense 2\nloss = huber", 0),
        loss_digest_of("layers = dense 2\nloss = huber\nhuber_delta = 2", 0)));
    cr_assert(eq(u64, loss_digest_of("layers = dense 2\nloss = mse\nclass_weights = 1,2", 1),
        loss_digest_of("layers = dense 2\nloss = mse", 0)));
}

Test(prepare_data, goals_that_cannot_be_reached)
{
    expect_refusal((struct parts){.train = "stop_at_accuracy = 0.9",
                       .data = "train = rows.csv\nlabel = kind\nclasses = even odd"},
        SGP_E_CONFIG,
        "n.conf:6: [train] stop_at_accuracy: there is nothing to test on; give [data] test or "
        "holdout");
}

Test(prepare_data, data_that_is_missing)
{
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    const struct parts parts = {.data = "train = none.csv\nlabel = kind\nclasses = even odd"};
    cr_assert(eq(int, build(parts, &config, &p, &error), -ENOENT), "%s", error.text);
    cr_assert(strstr(error.text, "/none.csv: ") != NULL, "%s", error.text);
    config_finish(&config);
}
