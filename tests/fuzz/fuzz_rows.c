/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of rows, as they are, and with magic, sizes and digests made good, so that
 * the fuzzer reaches what they protect. Rows that pass can be used. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "train/mapping.h"
#include "train/rows_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void dataset_check(struct sgp_dataset *dataset)
{
    const uint32_t rows[] = {0, (uint32_t)(dataset->rows - 1)};
    const size_t targets = dataset->targets ? dataset->targets : 1;
    float *features = malloc(2 * (size_t)dataset->features * sizeof *features);
    float *values = malloc(2 * targets * sizeof *values);
    uint32_t labels[2];
    struct sgp_reach reach;
    sgp_assert(features && values);
    sgp_dataset_gather(dataset, features, labels, values, rows, 2, 0);
    for (size_t i = 0; i < 2 * (size_t)dataset->features; i++)
        sgp_assert(isfinite(features[i]));
    for (uint64_t i = 0; dataset->labels && i < dataset->rows; i++)
        sgp_assert(dataset->labels[i] < dataset->classes);
    for (uint64_t i = 0; dataset->values && i < dataset->rows * dataset->targets; i++)
        sgp_assert(isfinite(dataset->values[i]));
    sgp_assert(sgp_dataset_reach(dataset, &reach) == 0 && sgp_dataset_digest(dataset) != 0);
    free(features);
    free(values);
}

/* Read the bytes as a node does. Returns what is wrong with them, or NULL. */
static const char *read_rows(const uint8_t *bytes, size_t size)
{
    struct sgp_rows_header header;
    const char *fault = sgp_rows_header_check(bytes, size, &header);
    if (!fault)
        fault = sgp_rows_body_check(bytes, &header);
    if (fault)
        return fault;
    const int fd = memfd_create("rows", MFD_CLOEXEC);
    sgp_assert(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    struct sgp_mapping *mapping = NULL;
    struct sgp_dataset *dataset = NULL;
    sgp_assert(sgp_mapping_create(fd, size, &mapping) == 0);
    (void)close(fd);
    sgp_assert(sgp_rows_dataset(mapping, &header, &dataset) == 0);
    sgp_mapping_release(mapping);
    dataset_check(dataset);
    sgp_dataset_destroy(dataset);
    return NULL;
}

/* Small sizes that fit the bytes, and all digests. */
static void mend(uint8_t *bytes, size_t size)
{
    struct sgp_rows_header header;
    memcpy(&header, bytes, sizeof header);
    memcpy(header.magic, "SGPROWS", 8);
    header.version = SGP_ROWS_FILE_VERSION;
    header.byte_order = 0x01020304;
    header.features = header.features % 5 + 1;
    header.targets = header.classes ? 1 : header.targets % 3;
    header.scaled_targets &= 1;
    const size_t row = ((size_t)header.features + header.targets) * sizeof(float);
    header.rows = (size - sizeof header) / row;
    header.names_bytes = size - sizeof header - header.rows * row;
    header.body_digest = XXH3_64bits(bytes + sizeof header, size - sizeof header);
    header.header_digest = XXH3_64bits(&header, offsetof(struct sgp_rows_header, header_digest));
    memcpy(bytes, &header, sizeof header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)read_rows(data, size);
    if (size <= sizeof(struct sgp_rows_header))
        return 0;
    uint8_t *bytes = malloc(size);
    sgp_assert(bytes != NULL);
    memcpy(bytes, data, size);
    mend(bytes, size);
    (void)read_rows(bytes, size);
    free(bytes);
    return 0;
}
