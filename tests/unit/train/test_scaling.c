/* SPDX-License-Identifier: Apache-2.0 */
/* Scaling files: computed, written, read back, and one clear line for each that is wrong. */
#include "csv_rows.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

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
