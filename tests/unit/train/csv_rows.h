/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and scaling files that are texts of a test: what their rows become, or the line that refuses
 * them. */
#ifndef CSV_ROWS_H
#define CSV_ROWS_H

#include "train/csv.h"
#include "train/scaling.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <stdio.h>
#include <string.h>

static struct sgp_error error;
static const char *const colours[] = {"red", "green", "blue"};

static __attribute__((unused)) int read_text(
    const char *text, const struct sgp_csv_options *options, struct sgp_dataset **ret_dataset)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "rb");
    error = (struct sgp_error){.code = 0};
    int status = sgp_csv_read_dataset(file, "t.csv", options, &error, ret_dataset);
    fclose(file);
    return status;
}

static __attribute__((unused)) void expect_error(
    const char *text, const struct sgp_csv_options *options, int code, const char *message)
{
    struct sgp_dataset *dataset = NULL;
    cr_assert(eq(int, read_text(text, options, &dataset), code), "%s", error.text);
    cr_assert(eq(ptr, dataset, NULL));
    cr_assert(eq(str, error.text, (char *)(uintptr_t)message));
}

static __attribute__((unused)) struct sgp_dataset *expect_rows(
    const char *text, const struct sgp_csv_options *options, uint64_t rows, uint32_t features)
{
    struct sgp_dataset *dataset = NULL;
    cr_assert(eq(int, read_text(text, options, &dataset), 0), "%s", error.text);
    cr_assert(eq(u64, dataset->rows, rows));
    cr_assert(eq(u32, dataset->features, features));
    return dataset;
}

static __attribute__((unused)) void expect_floats(
    const float *got, const float *expected, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cr_assert(eq(flt, got[i], expected[i]), "number %zu", i);
}

static __attribute__((unused)) struct sgp_scaling *scaling_of(const char *json)
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

#define SCALING                                                                                    \
    "{\"sgp_scaling\": 1, \"columns\": ["                                                          \
    "{\"name\": \"c\", \"values\": [\"u\", \"v\"]},"                                               \
    "{\"name\": \"a\", \"mean\": 10, \"deviation\": 4}]}"

#define TARGETS(format, targets)                                                                   \
    "{\"sgp_scaling\": " format                                                                    \
    ", \"columns\": [{\"name\": \"a\", \"mean\": 0, \"deviation\": 1}],"                           \
    "\"targets\": [" targets "]}"
#define TARGET(name, mean, deviation)                                                              \
    "{\"name\": \"" name "\", \"mean\": " mean ", \"deviation\": " deviation "}"

#endif
