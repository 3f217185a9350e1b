/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as two IDX files. An input is two bytes (big-endian), the length of the file of rows; that
 * file; and what is left as the file of labels (nothing left: rows without labels). What is accepted
 * must hold: labels below the classes, every feature in [0, 1]. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "train/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void dataset_check(const struct sgp_dataset *dataset)
{
    float *features = malloc(dataset->features * sizeof *features);
    sgp_assert(features != NULL);
    const uint64_t step = dataset->rows / 64 + 1;
    for (uint64_t row = 0; row < dataset->rows; row += step) {
        const uint32_t index = (uint32_t)row;
        uint32_t label = 0;
        sgp_dataset_gather(dataset, features, &label, NULL, &index, 1, 0);
        for (uint32_t i = 0; i < dataset->features; i++)
            sgp_assert(features[i] >= 0 && features[i] <= 1);
        sgp_assert(dataset->targets == 0 || label < dataset->classes);
    }
    free(features);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t rows_size = (size_t)data[0] << 8 | data[1];
    data += 2;
    size -= 2;
    if (rows_size > size)
        rows_size = size;
    FILE *rows = fmemopen((void *)(uintptr_t)data, rows_size, "rb");
    FILE *labels = rows_size < size
                       ? fmemopen((void *)(uintptr_t)(data + rows_size), size - rows_size, "rb")
                       : NULL;
    if (rows) {
        struct sgp_error error = {.code = 0};
        struct sgp_dataset *dataset = NULL;
        int status = sgp_idx_read(rows, "rows", labels, "labels", NULL, 0, &error, &dataset);
        sgp_assert(status <= 0 && (status == 0) == (dataset != NULL) && error.code == status);
        if (dataset)
            dataset_check(dataset);
        sgp_dataset_destroy(dataset);
        fclose(rows);
    }
    if (labels)
        fclose(labels);
    return 0;
}
