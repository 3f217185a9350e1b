/* SPDX-License-Identifier: Apache-2.0 */
/* Reads safetensors; the layout is in safetensors.h. The bytes are untrusted. The header's length
 * is checked against the size of the file before memory is allocated. Each tensor is checked
 * against the data, and the digest last. Blocks on the disk; fails with one line that names the
 * file. */
#include "safetensors.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "source.h"

void sgp_model_file_destroy(struct sgp_model_file *file)
{
    if (!file)
        return;
    json_decref(file->metadata);
    free(file->tensors);
    free(file->values);
    free(file);
}

const char *sgp_model_file_tag(const struct sgp_model_file *file, const char *key)
{
    return json_string_value(json_object_get(file->metadata, key));
}

bool sgp_model_file_tag_at(
    const struct sgp_model_file *file, uint32_t index, struct sgp_file_tag *ret_tag)
{
    void *at = json_object_iter(file->metadata);
    while (at && index-- > 0)
        at = json_object_iter_next(file->metadata, at);
    if (!at)
        return false;
    *ret_tag = (struct sgp_file_tag){
        .key = json_object_iter_key(at), .value = json_string_value(json_object_iter_value(at))};
    return true;
}

void sgp_model_file_tensors(
    const struct sgp_model_file *file, uint64_t values_from, struct sgp_tensor_end *ret_ends)
{
    for (uint32_t i = 0; i < file->tensor_count; i++) {
        const struct sgp_file_tensor *tensor = &file->tensors[i];
        ret_ends[i] = (struct sgp_tensor_end){.end = tensor->first + tensor->count,
            .has_columns = tensor->shape[1] > 0 && tensor->first < values_from};
    }
}

static int no_memory(const char *name, struct sgp_error *error)
{
    return sgp_fail(error, -ENOMEM, "%s: out of memory", name);
}

/* Find where the data begins, from the first bytes of a file of `size` bytes. */
static int head_size_read(const unsigned char *bytes, uint64_t size, const char *name,
    struct sgp_error *error, size_t *ret_head_size)
{
    uint64_t header_size = 0;
    if (size >= SGP_ST_HEAD_BYTES_MIN)
        memcpy(&header_size, bytes, SGP_ST_LENGTH_BYTES);
    if (size < SGP_ST_HEAD_BYTES_MIN ||
        memcmp(bytes + SGP_ST_LENGTH_BYTES, SGP_ST_PREFIX, sizeof SGP_ST_PREFIX - 1) != 0)
        return sgp_fail(error, SGP_E_FILE,
            "%s: not a model written by sgpd; a safetensors file that begins with its xxh3 would "
            "be "
            "right",
            name);
    if (header_size > SGP_FILE_HEADER_BYTES_MAX)
        return sgp_fail(error, SGP_E_LIMIT, "%s: a header of %llu bytes; at most %u", name,
            (unsigned long long)header_size, SGP_FILE_HEADER_BYTES_MAX);
    if (header_size < SGP_ST_HEAD_BYTES_MIN - SGP_ST_LENGTH_BYTES ||
        header_size > size - SGP_ST_LENGTH_BYTES)
        return sgp_fail(error, SGP_E_FILE,
            "%s: the header should take %llu bytes, but the file has %llu; it is damaged or cut",
            name, (unsigned long long)header_size, (unsigned long long)size);
    *ret_head_size = SGP_ST_LENGTH_BYTES + (size_t)header_size;
    return 0;
}

/* Read a JSON array of at most `most` integers from `least` to SGP_PARAMETERS_MAX * 4. Returns how
 * many, or -1. */
static int numbers_parse(const json_t *array, int64_t least, size_t most, uint64_t *numbers)
{
    const size_t count = json_array_size(array);
    if (!json_is_array(array) || count > most)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const json_t *element = json_array_get(array, i);
        const json_int_t number = json_integer_value(element);
        if (!json_is_integer(element) || number < least ||
            (uint64_t)number > 4 * (uint64_t)SGP_PARAMETERS_MAX)
            return -1;
        numbers[i] = (uint64_t)number;
    }
    return (int)count;
}

static int tensor_parse(const char *key, const json_t *object, const char *name,
    struct sgp_error *error, struct sgp_file_tensor *tensor)
{
    const char *type = json_string_value(json_object_get(object, "dtype"));
    uint64_t offsets[2] = {0, 0};
    if (!sgp_st_name_valid(key) || !type || strcmp(type, "F32") != 0 ||
        json_object_size(object) != 3)
        return sgp_fail(error, SGP_E_FILE,
            "%s: tensor '%.64s': dtype F32, shape and data_offsets would be right", name, key);
    const json_t *shape = json_object_get(object, "shape");
    if (numbers_parse(shape, 1, SGP_FILE_DIMENSIONS_MAX, tensor->shape) < 0 ||
        numbers_parse(json_object_get(object, "data_offsets"), 0, 2, offsets) != 2)
        return sgp_fail(error, SGP_E_FILE,
            "%s: tensor '%s': a shape of at most %u sizes and 2 data_offsets would be right", name,
            key, SGP_FILE_DIMENSIONS_MAX);
    const uint64_t values = sgp_st_count(tensor);
    if (values == 0 || offsets[0] % 4 != 0 || offsets[1] < offsets[0] ||
        offsets[1] - offsets[0] != 4 * values)
        return sgp_fail(error, SGP_E_FILE,
            "%s: tensor '%s': its data_offsets do not fit its shape; 4 bytes for each value", name,
            key);
    snprintf(tensor->name, sizeof tensor->name, "%s", key);
    tensor->first = offsets[0] / 4;
    tensor->count = values;
    return 0;
}

static int tensor_compare(const void *left, const void *right)
{
    const struct sgp_file_tensor *a = left;
    const struct sgp_file_tensor *b = right;
    return (a->first > b->first) - (a->first < b->first);
}

/* Read the tensors of the header, sort them, and check that they tile the data. */
static int tensors_parse(struct sgp_model_file *file, json_t *root, uint64_t data_size,
    const char *name, struct sgp_error *error)
{
    const size_t metadata = json_object_get(root, "__metadata__") != NULL;
    const size_t count = json_object_size(root) - metadata;
    if (count < 1 || count > SGP_FILE_TENSORS_MAX)
        return sgp_fail(error, SGP_E_LIMIT, "%s: %zu tensors; 1 to %u would be right", name, count,
            SGP_FILE_TENSORS_MAX);
    file->tensors = calloc(count, sizeof *file->tensors);
    if (!file->tensors)
        return no_memory(name, error);
    const char *key;
    json_t *object;
    json_object_foreach(root, key, object)
    {
        if (strcmp(key, "__metadata__") == 0)
            continue;
        int status = tensor_parse(key, object, name, error, &file->tensors[file->tensor_count++]);
        if (status < 0)
            return status;
    }
    qsort(file->tensors, count, sizeof *file->tensors, tensor_compare);
    uint64_t next = 0;
    size_t covered = 0;
    for (; covered < count && next == file->tensors[covered].first; covered++)
        next += file->tensors[covered].count;
    if (covered < count || next > SGP_PARAMETERS_MAX || 4 * next != data_size)
        return sgp_fail(error, SGP_E_FILE,
            "%s: the tensors do not cover the %llu bytes of data without gap; the file is damaged "
            "or "
            "cut",
            name, (unsigned long long)data_size);
    file->value_count = next;
    return 0;
}

/* Read the whole header. `file` is fresh. sgp_model_file_destroy frees the parts that were read. */
static int header_parse(struct sgp_model_file *file, const unsigned char *head, size_t head_size,
    uint64_t data_size, const char *name, struct sgp_error *error)
{
    json_error_t where;
    json_t *root = json_loadb((const char *)head + SGP_ST_LENGTH_BYTES,
        head_size - SGP_ST_LENGTH_BYTES, JSON_REJECT_DUPLICATES, &where);
    if (!root)
        return sgp_fail(error, SGP_E_FILE,
            "%s: byte %d: the header is not JSON (%s); it is damaged", name,
            (int)SGP_ST_LENGTH_BYTES + where.position, where.text);
    json_t *metadata = json_object_get(root, "__metadata__");
    const char *key;
    json_t *value;
    bool strings = json_object_size(metadata) <= SGP_FILE_TAGS_MAX + 1;
    json_object_foreach(metadata, key, value) strings = strings && json_is_string(value);
    file->metadata = json_incref(metadata);
    int status = strings
                     ? tensors_parse(file, root, data_size, name, error)
                     : sgp_fail(error, SGP_E_FILE, "%s: __metadata__ must be at most %u strings",
                           name, SGP_FILE_TAGS_MAX + 1);
    json_decref(root);
    return status;
}

static int digest_check(const struct sgp_model_file *file, const unsigned char *head,
    size_t head_size, const char *name, struct sgp_error *error)
{
    char digits[SGP_ST_DIGITS + 1];
    sgp_st_digest(digits, head, head_size, file->values, (size_t)file->value_count * sizeof(float));
    if (memcmp(digits, head + SGP_ST_DIGEST_AT, SGP_ST_DIGITS) != 0)
        return sgp_fail(error, SGP_E_FILE,
            "%s: the digest is %s, but %.16s was written; the file is damaged", name, digits,
            (const char *)head + SGP_ST_DIGEST_AT);
    return 0;
}

/* Build the file from a head in memory. The data is in memory, or still in the stream (then `data`
 * is NULL). */
static int file_build(const unsigned char *head, size_t head_size, const unsigned char *data,
    uint64_t data_size, FILE *stream, const char *name, struct sgp_error *error,
    struct sgp_model_file **ret_file)
{
    struct sgp_model_file *file = calloc(1, sizeof *file);
    if (!file)
        return no_memory(name, error);
    int status = header_parse(file, head, head_size, data_size, name, error);
    if (status == 0 && !(file->values = malloc((size_t)data_size)))
        status = no_memory(name, error);
    if (status == 0 && data)
        memcpy(file->values, data, (size_t)data_size);
    else if (status == 0 && fread(file->values, 1, (size_t)data_size, stream) != data_size)
        status = sgp_fail(error, SGP_E_FILE, "%s: became shorter while it was read", name);
    if (status == 0)
        status = digest_check(file, head, head_size, name, error);
    if (status < 0) {
        sgp_model_file_destroy(file);
        return status;
    }
    *ret_file = file;
    return 0;
}

int sgp_safetensors_layout(const void *head, size_t head_bytes, uint64_t data_bytes,
    const char *name, struct sgp_error *error, struct sgp_model_file **ret_file)
{
    uint64_t header = 0;
    if (head_bytes > SGP_ST_LENGTH_BYTES)
        memcpy(&header, head, SGP_ST_LENGTH_BYTES);
    if (header == 0 || header > SGP_FILE_HEADER_BYTES_MAX ||
        header != head_bytes - SGP_ST_LENGTH_BYTES)
        return sgp_fail(error, SGP_E_FILE,
            "%s: a safetensors header of %zu bytes that says %llu; its length must be right, and "
            "at most %u",
            name, head_bytes, (unsigned long long)header, SGP_FILE_HEADER_BYTES_MAX);
    struct sgp_model_file *file = calloc(1, sizeof *file);
    if (!file)
        return no_memory(name, error);
    int status = header_parse(file, head, head_bytes, data_bytes, name, error);
    if (status < 0) {
        sgp_model_file_destroy(file);
        return status;
    }
    *ret_file = file;
    return 0;
}

int sgp_safetensors_decode(const void *bytes, size_t size, const char *name,
    struct sgp_error *error, struct sgp_model_file **ret_file)
{
    size_t head_size = 0;
    int status = head_size_read(bytes, size, name, error, &head_size);
    if (status < 0)
        return status;
    return file_build(bytes, head_size, (const unsigned char *)bytes + head_size, size - head_size,
        NULL, name, error, ret_file);
}

/* Read the head of an open file of `size` bytes. */
static int stream_read(FILE *stream, uint64_t size, const char *path, struct sgp_error *error,
    struct sgp_model_file **ret_file)
{
    unsigned char first[SGP_ST_HEAD_BYTES_MIN] = {0};
    size_t head_size = 0;
    const size_t got = fread(first, 1, sizeof first, stream);
    int status = head_size_read(first, got < sizeof first ? got : size, path, error, &head_size);
    if (status < 0)
        return status;
    unsigned char *head = malloc(head_size);
    if (!head)
        return no_memory(path, error);
    memcpy(head, first, sizeof first);
    if (fread(head + sizeof first, 1, head_size - sizeof first, stream) != head_size - sizeof first)
        status = sgp_fail(error, SGP_E_FILE, "%s: became shorter while it was read", path);
    else
        status = file_build(head, head_size, NULL, size - head_size, stream, path, error, ret_file);
    free(head);
    return status;
}

int sgp_safetensors_read(
    const char *path, struct sgp_error *error, struct sgp_model_file **ret_file)
{
    FILE *stream = NULL;
    int status = sgp_source_open(path, error, &stream);
    if (status < 0)
        return status;
    struct stat file_status;
    if (fstat(fileno(stream), &file_status) < 0 || !S_ISREG(file_status.st_mode))
        status = sgp_fail(error, SGP_E_FILE, "%s: not a regular file", path);
    else
        status = stream_read(stream, (uint64_t)file_status.st_size, path, error, ret_file);
    fclose(stream);
    return status;
}
