/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a CSV file and its scaling file. An input is one byte of options, a scaling file up to
 * the first zero byte, and the CSV file. A scaling computed from a file must also read that file. The file is
 * described, too. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/csv.h"
#include "train/scaling.h"

#include "sgp/description.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void dataset_check(const struct sgp_dataset *dataset)
{
    sgp_assert(dataset->rows >= 1 && dataset->features >= 1);
    for (uint64_t i = 0; i < dataset->rows * dataset->features; i++)
        sgp_assert(isfinite(dataset->floats[i]));
    for (uint64_t row = 0; row < dataset->rows && dataset->labels; row++)
        sgp_assert(dataset->labels[row] < dataset->classes);
    for (uint64_t row = 0; row < dataset->rows && dataset->values; row++)
        sgp_assert(isfinite(dataset->values[row]));
}

/* Read the bytes with the options; returns the status. */
static int read_with(const uint8_t *data, size_t size, const struct sgp_csv_options *options)
{
    FILE *file = fmemopen((void *)(uintptr_t)data, size, "rb");
    sgp_assert(file != NULL);
    struct sgp_error error = {.code = 0};
    struct sgp_dataset *dataset = NULL;
    int status = sgp_csv_read_dataset(file, "csv", options, &error, &dataset);
    sgp_assert(status <= 0 && (status == 0) == (dataset != NULL) && error.code == status);
    if (dataset)
        dataset_check(dataset);
    sgp_dataset_destroy(dataset);
    fclose(file);
    return status;
}

/* Compute a scaling from the bytes and read them with it. */
static void compute_and_read(const uint8_t *data, size_t size)
{
    FILE *file = fmemopen((void *)(uintptr_t)data, size, "rb");
    sgp_assert(file != NULL);
    struct sgp_error error = {.code = 0};
    struct sgp_scaling *scaling = NULL;
    int status = sgp_csv_compute_scaling(file, "csv", NULL, NULL, &error, &scaling);
    sgp_assert(status <= 0 && (status == 0) == (scaling != NULL) && error.code == status);
    fclose(file);
    if (scaling) {
        const struct sgp_csv_options options = {.scaling = scaling, .missing = SGP_MISSING_MEAN};
        sgp_assert(read_with(data, size, &options) == 0);
    }
    sgp_scaling_destroy(scaling);
}

static void column_check(const struct sgp_column *column, uint64_t rows)
{
    uint64_t counted = 0;
    for (uint32_t i = 0; i < column->value_count; i++)
        counted += column->values[i].rows;
    sgp_assert(column->present + column->missing == rows && column->numbers <= column->present);
    sgp_assert(column->many ? counted <= column->present : counted == column->present);
    sgp_assert((column->kind == SGP_COLUMN_EMPTY) == (column->present == 0));
    sgp_assert(isfinite(column->mean) && isfinite(column->deviation));
}

/* Describe the bytes. */
static void describe(const uint8_t *data, size_t size)
{
    FILE *file = fmemopen((void *)(uintptr_t)data, size, "rb");
    sgp_assert(file != NULL);
    struct sgp_error error = {.code = 0};
    struct sgp_description *description = NULL;
    int status = sgp_description_read(file, "csv", &error, &description);
    sgp_assert(status <= 0 && (status == 0) == (description != NULL) && error.code == status);
    for (uint32_t i = 0; description && i < description->column_count; i++)
        column_check(&description->columns[i], description->rows);
    sgp_description_destroy(description);
    fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const classes[] = {"red", "green", "NA"};
    if (size < 1)
        return 0;
    const uint8_t choice = data[0];
    const char *text = (const char *)data + 1;
    const size_t text_size = strnlen(text, size - 1);
    if (text_size == size - 1)
        return 0;
    const uint8_t *csv = data + 1 + text_size + 1;
    const size_t csv_size = size - 1 - text_size - 1;
    if (csv_size == 0)
        return 0;

    struct sgp_error error = {.code = 0};
    struct sgp_scaling *scaling = NULL;
    int status = sgp_scaling_parse(text, text_size, "scaling", &error, &scaling);
    sgp_assert(status <= 0 && (status == 0) == (scaling != NULL) && error.code == status);
    struct sgp_csv_options options = {.scaling = choice & 1 ? scaling : NULL,
        .label = !(choice & 2)  ? NULL
                 : choice & 128 ? "label, \"a\""
                                : "label",
        .bits = (choice & 4) == 0 && (choice & 32) != 0,
        .for_model = (choice & 64) != 0,
        .missing = (enum sgp_missing)(SGP_MISSING_ERROR + (choice >> 3) % 3)};
    if (choice & 4) {
        options.class_names = classes;
        options.class_count = sizeof classes / sizeof classes[0];
    }
    read_with(csv, csv_size, &options);
    compute_and_read(csv, csv_size);
    describe(csv, csv_size);
    sgp_scaling_destroy(scaling);
    return 0;
}
