/* SPDX-License-Identifier: Apache-2.0 */
/* Reads IDX files: a magic number (0, 0, type, dimensions), the sizes as big-endian 32-bit numbers,
 * then the elements. Owns nothing after it returns. The sizes in the header are not trusted: arrays
 * grow with the bytes that were really read. Every failure is one line with the byte offset. */
#include "idx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "source.h"
#include "table.h"

#define DIMENSIONS_MAX 8u
#define TYPE_UNSIGNED_BYTE 0x08
#define READ_STEP_BYTES ((size_t)1 << 20)

struct idx_header {
    uint32_t rows;
    uint32_t features; /* product of the other dimensions; 1 if there are none */
    uint32_t dimensions;
    uint32_t sizes[DIMENSIONS_MAX];
};

/* Read exactly size bytes of the header. */
static int header_bytes(
    struct sgp_source *source, unsigned char *bytes, size_t size, struct sgp_error *error)
{
    size_t got = 0;
    uint64_t at = source->offset;
    int status = sgp_source_read(source, bytes, size, error, &got);
    if (status < 0)
        return status;
    if (got < size)
        return sgp_fail(error, SGP_E_DATA,
            "%s: byte %llu: the file ends in the middle of the header; an IDX file begins with "
            "0 0 8 D and D sizes of 4 bytes",
            source->name, (unsigned long long)(at + got));
    return 0;
}

static int magic_read(struct sgp_source *source, struct sgp_error *error, uint32_t *ret_dimensions)
{
    unsigned char magic[4];
    int status = header_bytes(source, magic, sizeof magic, error);
    if (status < 0)
        return status;
    if (magic[0] != 0 || magic[1] != 0)
        return sgp_fail(error, SGP_E_DATA,
            "%s: byte 0: begins with %02x %02x, which is no IDX file; IDX begins with 00 00 (a CSV "
            "file needs label = COLUMN)",
            source->name, magic[0], magic[1]);
    if (magic[2] != TYPE_UNSIGNED_BYTE)
        return sgp_fail(error, SGP_E_DATA,
            "%s: byte 2: elements of type 0x%02x; only unsigned bytes (0x08) can be read",
            source->name, magic[2]);
    if (magic[3] < 1 || magic[3] > DIMENSIONS_MAX)
        return sgp_fail(error, SGP_E_DATA, "%s: byte 3: %u dimensions; 1 to %u would be right",
            source->name, magic[3], DIMENSIONS_MAX);
    *ret_dimensions = magic[3];
    return 0;
}

/* Read the header and refuse sizes of 0 and those above our limits. */
static int header_read(
    struct sgp_source *source, struct sgp_error *error, struct idx_header *ret_header)
{
    struct idx_header header = {.features = 1};
    int status = magic_read(source, error, &header.dimensions);
    if (status < 0)
        return status;
    for (uint32_t i = 0; i < header.dimensions; i++) {
        unsigned char bytes[4];
        status = header_bytes(source, bytes, sizeof bytes, error);
        if (status < 0)
            return status;
        const uint32_t size = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
                              (uint32_t)bytes[2] << 8 | bytes[3];
        if (size == 0)
            return sgp_fail(error, SGP_E_DATA,
                "%s: byte %u: dimension %u has size 0; every size is at least 1", source->name,
                4 + 4 * i, i);
        header.sizes[i] = size;
        if (i == 0) {
            header.rows = size;
        } else if (size > SGP_FEATURES_MAX / header.features) {
            return sgp_fail(error, SGP_E_LIMIT,
                "%s: byte %u: more than %u numbers in a row; dimension %u says %u", source->name,
                4 + 4 * i, SGP_FEATURES_MAX, i, size);
        } else {
            header.features *= size;
        }
    }
    if (header.rows > SGP_DATA_BYTES_MAX / header.features)
        return sgp_fail(error, SGP_E_LIMIT,
            "%s: byte 4: %u rows of %u bytes; at most %llu bytes can be read", source->name,
            header.rows, header.features, (unsigned long long)SGP_DATA_BYTES_MAX);
    *ret_header = header;
    return 0;
}

/* Read the elements, and check that the file ends after them. The caller frees *ret_bytes. */
static int elements_read(struct sgp_source *source, const struct idx_header *header,
    struct sgp_error *error, uint8_t **ret_bytes)
{
    const size_t size = (size_t)header->rows * header->features;
    uint8_t *bytes = NULL;
    size_t capacity = 0;
    int status = 0;
    for (size_t done = 0; done < size;) {
        const size_t step = size - done < READ_STEP_BYTES ? size - done : READ_STEP_BYTES;
        uint8_t *grown = sgp_grow(bytes, &capacity, 1, done + step, size);
        if (!grown) {
            free(bytes);
            return sgp_fail(error, -ENOMEM, "%s: out of memory at byte %llu", source->name,
                (unsigned long long)source->offset);
        }
        bytes = grown;
        size_t got = 0;
        status = sgp_source_read(source, bytes + done, step, error, &got);
        if (status == 0 && got < step)
            status = sgp_fail(error, SGP_E_DATA,
                "%s: byte %llu: the file ends after %llu of %u rows; %llu bytes would be right",
                source->name, (unsigned long long)source->offset,
                (unsigned long long)((done + got) / header->features), header->rows,
                (unsigned long long)(4 + 4 * header->dimensions + size));
        if (status < 0) {
            free(bytes);
            return status;
        }
        done += step;
    }
    const uint64_t end = source->offset;
    const int after = sgp_source_byte(source, error);
    if (after != SGP_SOURCE_END) {
        free(bytes);
        return after < 0 ? after
                         : sgp_fail(error, SGP_E_DATA,
                               "%s: byte %llu: more bytes after the last of %u rows; the file "
                               "should end here",
                               source->name, (unsigned long long)end, header->rows);
    }
    *ret_bytes = bytes;
    return 0;
}

/* Read one whole file. */
static int file_read(FILE *file, const char *name, struct sgp_error *error,
    struct idx_header *ret_header, uint8_t **ret_bytes)
{
    struct sgp_source source;
    int status = sgp_source_init(&source, file, name, error);
    if (status < 0)
        return status;
    struct idx_header header;
    status = header_read(&source, error, &header);
    if (status >= 0)
        status = elements_read(&source, &header, error, ret_bytes);
    sgp_source_finish(&source);
    if (status < 0)
        return status;
    *ret_header = header;
    return 0;
}

/* The shape of a row; all zero if a row is not an image. */
static struct sgp_shape shape_of(const struct idx_header *header)
{
    const uint32_t *sizes = header->sizes;
    if (header->dimensions == 3)
        return (struct sgp_shape){1, sizes[1], sizes[2]};
    if (header->dimensions == 4)
        return (struct sgp_shape){sizes[1], sizes[2], sizes[3]};
    return (struct sgp_shape){0};
}

/* Turn label bytes into labels and find how many classes there are. */
static int labels_widen(const uint8_t *bytes, uint32_t rows, const char *name, uint32_t class_count,
    struct sgp_error *error, uint32_t **ret_labels, uint32_t *ret_classes)
{
    uint32_t *labels = malloc((size_t)rows * sizeof *labels);
    if (!labels)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", name);
    uint32_t classes = class_count;
    for (uint32_t i = 0; i < rows; i++) {
        labels[i] = bytes[i];
        if (class_count > 0 && labels[i] >= class_count) {
            free(labels);
            return sgp_fail(error, SGP_E_DATA,
                "%s: byte %llu: label %u of row %u; with %u classes it is at most %u", name,
                8 + (unsigned long long)i, bytes[i], i, class_count, class_count - 1);
        }
        if (labels[i] >= classes)
            classes = labels[i] + 1;
    }
    *ret_labels = labels;
    *ret_classes = classes;
    return 0;
}

/* Read the label file: one dimension, as many labels as there are rows. */
static int labels_read(FILE *file, const char *name, uint32_t rows, const char *rows_name,
    uint32_t class_count, struct sgp_error *error, uint32_t **ret_labels, uint32_t *ret_classes)
{
    struct idx_header header;
    uint8_t *bytes = NULL;
    int status = file_read(file, name, error, &header, &bytes);
    if (status < 0)
        return status;
    if (header.dimensions != 1)
        status = sgp_fail(error, SGP_E_DATA,
            "%s: byte 3: %u dimensions; a file of labels has 1 (are the two files exchanged?)",
            name, header.dimensions);
    else if (header.rows != rows)
        status = sgp_fail(error, SGP_E_DATA,
            "%s: byte 4: %u labels, but %s has %u rows; the two must be equal", name, header.rows,
            rows_name, rows);
    else
        status = labels_widen(bytes, rows, name, class_count, error, ret_labels, ret_classes);
    free(bytes);
    return status;
}

int sgp_idx_read(FILE *file, const char *name, FILE *label_file, const char *label_name,
    const char *const *class_names, uint32_t class_count, struct sgp_error *error,
    struct sgp_dataset **ret_dataset)
{
    sgp_assert(!class_names || class_count > 0);
    if (class_count > SGP_CLASSES_MAX)
        return sgp_fail(
            error, SGP_E_LIMIT, "%s: %u classes; at most %u", name, class_count, SGP_CLASSES_MAX);
    struct idx_header header;
    struct sgp_dataset parts = {.targets = label_file ? 1 : 0, .classes = class_count};
    int status = file_read(file, name, error, &header, &parts.bytes);
    if (status < 0)
        return status;
    if (header.dimensions < 2)
        status = sgp_fail(error, SGP_E_DATA,
            "%s: byte 3: 1 dimension; rows of numbers need 2 or more (is this the file of labels?)",
            name);
    if (status == 0 && label_file)
        status = labels_read(label_file, label_name, header.rows, name, class_count, error,
            &parts.labels, &parts.classes);
    if (status == 0) {
        parts.rows = header.rows;
        parts.features = header.features;
        parts.shape = shape_of(&header);
        parts.classes_digest = sgp_classes_digest(class_names, parts.classes);
        parts.scaling_digest = sgp_bytes_digest(parts.features);
        status = sgp_dataset_create_parts(&parts, ret_dataset);
        if (status < 0)
            sgp_fail(error, status, "%s: out of memory", name);
    }
    if (status < 0) {
        free(parts.bytes);
        free(parts.labels);
    }
    return status;
}

int sgp_dataset_read_idx(const char *path, const char *label_path, const char *const *class_names,
    uint32_t class_count, struct sgp_error *error, struct sgp_dataset **ret_dataset)
{
    FILE *file = NULL;
    FILE *label_file = NULL;
    int status = sgp_source_open(path, error, &file);
    if (status < 0)
        return status;
    if (label_path)
        status = sgp_source_open(label_path, error, &label_file);
    if (status == 0)
        status = sgp_idx_read(
            file, path, label_file, label_path, class_names, class_count, error, ret_dataset);
    fclose(file);
    if (label_file)
        fclose(label_file);
    return status;
}
