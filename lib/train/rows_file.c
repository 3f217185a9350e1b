/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes files of rows, see rows_file.h. */
#include "rows_file.h"

#include "mapping.h"
#include "table.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define MAGIC "SGPROWS"
#define BYTE_ORDER_MARK 0x01020304u
#define HEADER_BYTES sizeof(struct sgp_rows_header)

_Static_assert(sizeof(struct sgp_rows_header) == 128, "the header has no gaps");
_Static_assert(sizeof(float) == sizeof(uint32_t), "targets are kept as bits");

/* ---- reading ---- */

static uint64_t header_digest(const struct sgp_rows_header *header)
{
    return XXH3_64bits(header, offsetof(struct sgp_rows_header, header_digest));
}

static size_t feature_count(const struct sgp_rows_header *header)
{
    return (size_t)header->rows * header->features;
}

static size_t target_count(const struct sgp_rows_header *header)
{
    return (size_t)header->rows * header->targets;
}

static bool within_limits(const struct sgp_rows_header *header)
{
    const uint64_t most = SGP_DATA_BYTES_MAX / sizeof(float);
    return header->rows >= 1 && header->rows <= SGP_ROWS_MAX && header->features >= 1 &&
           header->features <= SGP_FEATURES_MAX && header->rows <= most / header->features &&
           header->classes <= SGP_CLASSES_MAX && header->targets <= SGP_COLUMNS_MAX &&
           (header->targets == 0 || header->rows <= most / header->targets) &&
           (header->classes == 0 || header->targets == 1) && header->scaled_targets <= 1 &&
           header->names_bytes <= (uint64_t)SGP_COLUMNS_MAX * SGP_FIELD_BYTES_MAX;
}

const char *sgp_rows_header_check(
    const void *bytes, size_t size, struct sgp_rows_header *ret_header)
{
    struct sgp_rows_header header;
    if (size < sizeof header)
        return "it ends within its header";
    memcpy(&header, bytes, sizeof header);
    if (memcmp(header.magic, MAGIC, sizeof header.magic) != 0)
        return "it is no file of rows";
    if (header.byte_order != BYTE_ORDER_MARK || header.version != SGP_ROWS_FILE_VERSION)
        return "it is of another version or machine";
    if (header.header_digest != header_digest(&header) || !within_limits(&header))
        return "its header is damaged";
    const uint64_t numbers = (uint64_t)feature_count(&header) + target_count(&header);
    if (size != sizeof header + numbers * sizeof(float) + header.names_bytes)
        return "it has another size than its header says";
    *ret_header = header;
    return NULL;
}

static bool all_finite(const void *numbers, size_t count)
{
    const float *values = numbers;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

static bool all_below(const void *labels, size_t count, uint32_t classes)
{
    const uint32_t *values = labels;
    for (size_t i = 0; i < count; i++)
        if (values[i] >= classes)
            return false;
    return true;
}

/* Whether the names are as many texts as there are features. */
static bool are_names(const char *names, const struct sgp_rows_header *header)
{
    uint64_t ends = 0;
    for (uint64_t i = 0; i < header->names_bytes; i++)
        ends += names[i] == '\0';
    return header->names_bytes == 0 ||
           (ends == header->features && names[header->names_bytes - 1] == '\0');
}

const char *sgp_rows_body_check(const void *bytes, const struct sgp_rows_header *header)
{
    const unsigned char *features = (const unsigned char *)bytes + HEADER_BYTES;
    const unsigned char *targets = features + feature_count(header) * sizeof(float);
    const unsigned char *names = targets + target_count(header) * sizeof(float);
    const size_t size = (size_t)(names - features) + (size_t)header->names_bytes;
    if (XXH3_64bits(features, size) != header->body_digest)
        return "its rows are damaged";
    const bool good =
        all_finite(features, feature_count(header)) &&
        (header->classes > 0 ? all_below(targets, target_count(header), header->classes)
                             : all_finite(targets, target_count(header))) &&
        are_names((const char *)names, header);
    return good ? NULL : "its rows are impossible";
}

/* A dataset that reads features from the mapping, and takes over the other arrays. */
static int dataset_create(struct sgp_mapping *mapping, const struct sgp_rows_header *header,
    uint32_t *targets, char *names, struct sgp_dataset **ret_dataset)
{
    const unsigned char *bytes = sgp_mapping_bytes(mapping);
    struct sgp_dataset parts = {.rows = header->rows,
        .features = header->features,
        .classes = header->classes,
        .targets = header->targets,
        .scaled_targets = header->scaled_targets != 0,
        .floats = (float *)(uintptr_t)(bytes + HEADER_BYTES),
        .mapping = mapping,
        .names = names,
        .classes_digest = header->classes_digest,
        .scaling_digest = header->scaling_digest};
    if (header->classes > 0)
        parts.labels = targets;
    else
        parts.values = (float *)targets;
    int status = sgp_dataset_create_parts(&parts, ret_dataset);
    if (status == 0)
        (void)sgp_mapping_hold(mapping);
    return status;
}

int sgp_rows_dataset(struct sgp_mapping *mapping, const struct sgp_rows_header *header,
    struct sgp_dataset **ret_dataset)
{
    const unsigned char *bytes = sgp_mapping_bytes(mapping);
    const size_t count = target_count(header);
    const unsigned char *from = bytes + HEADER_BYTES + feature_count(header) * sizeof(float);
    const size_t names_bytes = (size_t)header->names_bytes;
    uint32_t *targets = count > 0 ? malloc(count * sizeof *targets) : NULL;
    char *names = names_bytes > 0 ? malloc(names_bytes) : NULL;
    int status = (count > 0 && !targets) || (names_bytes > 0 && !names) ? -ENOMEM : 0;
    if (targets && status == 0)
        memcpy(targets, from, count * sizeof *targets);
    if (names && status == 0)
        memcpy(names, from + count * sizeof *targets, names_bytes);
    if (status == 0)
        status = dataset_create(mapping, header, targets, names, ret_dataset);
    if (status < 0) {
        free(targets);
        free(names);
    }
    return status;
}

/* ---- writing ---- */

/* Open a file without a name in a directory. */
static int open_nameless(
    struct sgp_atomic_file *file, const char *directory, struct sgp_error *error)
{
    *file = (struct sgp_atomic_file){.path = directory};
    file->fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, SGP_ATOMIC_PRIVATE);
    const int code = file->fd < 0 ? -errno : 0;
    return code < 0
               ? sgp_fail(error, code, "%s: cannot be written: %s", directory, sgp_strerror(code))
               : 0;
}

static void body_write(struct sgp_rows_writer *writer, const void *bytes, size_t size)
{
    sgp_atomic_write(&writer->file, bytes, size);
    (void)XXH3_64bits_update(writer->hash, bytes, size);
}

int sgp_rows_begin(
    struct sgp_rows_writer *writer, const char *path, bool keep, struct sgp_error *error)
{
    *writer = (struct sgp_rows_writer){.hash = XXH3_createState()};
    if (!writer->hash)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", path);
    int status = keep ? sgp_atomic_open(&writer->file, path, SGP_ATOMIC_PRIVATE, error)
                      : open_nameless(&writer->file, path, error);
    if (status < 0) {
        (void)XXH3_freeState(writer->hash);
        return status;
    }
    (void)XXH3_64bits_reset(writer->hash);
    sgp_atomic_write(&writer->file, &writer->header, sizeof writer->header); /* filled at the end */
    return 0;
}

static size_t names_length(const struct sgp_dataset *block)
{
    const char *end = block->names;
    for (uint32_t i = 0; end && i < block->features; i++)
        end += strlen(end) + 1;
    return end ? (size_t)(end - block->names) : 0;
}

/* Keep what the first block says of the columns. */
static int columns_keep(struct sgp_rows_writer *writer, const struct sgp_dataset *block)
{
    struct sgp_rows_header *header = &writer->header;
    header->features = block->features;
    header->classes = block->classes;
    header->targets = block->targets;
    header->scaled_targets = block->scaled_targets;
    header->classes_digest = block->classes_digest;
    header->scaling_digest = block->scaling_digest;
    header->names_bytes = names_length(block);
    if (header->names_bytes == 0)
        return 0;
    writer->names = malloc((size_t)header->names_bytes);
    if (!writer->names)
        return -ENOMEM;
    memcpy(writer->names, block->names, (size_t)header->names_bytes);
    return 0;
}

static int targets_keep(struct sgp_rows_writer *writer, const struct sgp_dataset *block)
{
    const size_t before = target_count(&writer->header);
    const size_t count = (size_t)block->rows * block->targets;
    const void *from = block->classes > 0 ? (const void *)block->labels : block->values;
    if (count == 0)
        return 0;
    uint32_t *targets = sgp_grow(writer->targets, &writer->target_capacity, sizeof *targets,
        before + count, SGP_DATA_BYTES_MAX / sizeof *targets);
    if (!targets)
        return -ENOMEM;
    writer->targets = targets;
    memcpy(targets + before, from, count * sizeof *targets);
    return 0;
}

bool sgp_rows_fit(const struct sgp_rows_writer *writer, const struct sgp_dataset *block)
{
    const uint64_t most = SGP_DATA_BYTES_MAX / sizeof(float);
    const uint64_t rows = writer->header.rows + block->rows;
    return rows <= SGP_ROWS_MAX && rows <= most / block->features &&
           (block->targets == 0 || rows <= most / block->targets);
}

int sgp_rows_add(
    struct sgp_rows_writer *writer, const struct sgp_dataset *block, struct sgp_error *error)
{
    struct sgp_rows_header *header = &writer->header;
    sgp_assert(sgp_rows_fit(writer, block));
    int status = header->rows == 0 ? columns_keep(writer, block) : 0;
    if (status == 0)
        status = targets_keep(writer, block);
    if (status < 0)
        return sgp_fail(error, status, "%s: out of memory", writer->file.path);
    header->rows += block->rows;
    body_write(writer, block->floats, (size_t)block->rows * block->features * sizeof(float));
    return writer->file.status == 0
               ? 0
               : sgp_fail(error, writer->file.status, "%s: cannot be written: %s",
                     writer->file.path, sgp_strerror(writer->file.status));
}

static void header_write(struct sgp_rows_writer *writer)
{
    struct sgp_rows_header *header = &writer->header;
    memcpy(header->magic, MAGIC, sizeof header->magic);
    header->version = SGP_ROWS_FILE_VERSION;
    header->byte_order = BYTE_ORDER_MARK;
    header->body_digest = XXH3_64bits_digest(writer->hash);
    header->header_digest = header_digest(header);
    const ssize_t written = pwrite(writer->file.fd, header, sizeof *header, 0);
    if (writer->file.status == 0 && written != (ssize_t)sizeof *header)
        writer->file.status = written < 0 ? -errno : -EIO;
}

/* Free everything except what a dataset may have taken over. */
static void writer_finish(struct sgp_rows_writer *writer)
{
    (void)XXH3_freeState(writer->hash);
    free(writer->targets);
    free(writer->names);
    *writer = (struct sgp_rows_writer){.file.fd = -1};
}

void sgp_rows_abandon(struct sgp_rows_writer *writer)
{
    struct sgp_error none = {0};
    if (writer->file.status == 0)
        writer->file.status = -ECANCELED; /* the commit removes the temporary file */
    if (writer->file.temporary)
        (void)sgp_atomic_commit(&writer->file, &none);
    else
        (void)close(writer->file.fd);
    writer_finish(writer);
}

/* Commit a file that has a name. Returns a descriptor of it to read from, or negative. */
static int commit(struct sgp_rows_writer *writer, struct sgp_error *error)
{
    struct sgp_atomic_file *file = &writer->file;
    if (!file->temporary && file->status == 0)
        return file->fd;
    if (!file->temporary) {
        (void)close(file->fd);
        return sgp_fail(error, file->status, "%s: cannot be written: %s", file->path,
            sgp_strerror(file->status));
    }
    int status = sgp_atomic_commit(file, error);
    if (status < 0)
        return status;
    const int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    status = fd < 0 ? -errno : 0;
    return status < 0 ? sgp_fail(error, status, "%s: cannot be opened: %s", file->path,
                            sgp_strerror(status))
                      : fd;
}

/* Map the file and create the dataset, which takes over targets and names. */
static int map(struct sgp_rows_writer *writer, int fd, struct sgp_error *error,
    struct sgp_dataset **ret_dataset)
{
    const struct sgp_rows_header *header = &writer->header;
    const size_t size = HEADER_BYTES +
                        (feature_count(header) + target_count(header)) * sizeof(float) +
                        (size_t)header->names_bytes;
    struct sgp_mapping *mapping = NULL;
    int status = sgp_mapping_create(fd, size, &mapping);
    if (status == 0)
        status = dataset_create(mapping, header, writer->targets, writer->names, ret_dataset);
    sgp_mapping_release(mapping);
    if (status < 0)
        return sgp_fail(
            error, status, "%s: cannot be mapped: %s", writer->file.path, sgp_strerror(status));
    writer->targets = NULL;
    writer->names = NULL;
    return 0;
}

int sgp_rows_end(struct sgp_rows_writer *writer, const struct sgp_rows_origin *origin,
    const struct sgp_rows_told *told, struct sgp_error *error, struct sgp_dataset **ret_dataset)
{
    writer->header.origin = *origin;
    writer->header.told = *told;
    if (writer->targets)
        body_write(writer, writer->targets, target_count(&writer->header) * sizeof(uint32_t));
    if (writer->names)
        body_write(writer, writer->names, (size_t)writer->header.names_bytes);
    header_write(writer);
    const int fd = commit(writer, error);
    int status = fd < 0 ? fd : map(writer, fd, error, ret_dataset);
    if (fd >= 0)
        (void)close(fd);
    writer_finish(writer);
    return status;
}
