/* SPDX-License-Identifier: Apache-2.0 */
/* Writes safetensors; the layout is in safetensors.h. Owns nothing after it returns, except what
 * the caller receives. Blocks on the disk; fails with one line. */
#include "safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "atomic_file.h"

bool sgp_st_name_valid(const char *name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const size_t length = strnlen(name, SGP_FILE_NAME_BYTES);
    return length > 0 && length < SGP_FILE_NAME_BYTES && strspn(name, allowed) == length;
}

uint32_t sgp_st_dimensions(const struct sgp_file_tensor *tensor)
{
    uint32_t dimensions = 0;
    while (dimensions < SGP_FILE_DIMENSIONS_MAX && tensor->shape[dimensions] > 0)
        dimensions++;
    return dimensions;
}

uint64_t sgp_st_count(const struct sgp_file_tensor *tensor)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < sgp_st_dimensions(tensor); i++) {
        if (tensor->shape[i] > SGP_PARAMETERS_MAX / count)
            return 0;
        count *= tensor->shape[i];
    }
    return count;
}

uint64_t sgp_contents_check(const struct sgp_model_contents *contents)
{
    uint64_t total = 0;
    sgp_assert(contents->tensor_count >= 1 && contents->tensor_count <= SGP_FILE_TENSORS_MAX);
    sgp_assert(contents->tag_count <= SGP_FILE_TAGS_MAX);
    for (uint32_t i = 0; i < contents->tensor_count; i++) {
        const struct sgp_file_tensor *tensor = &contents->tensors[i];
        sgp_assert(sgp_st_name_valid(tensor->name));
        sgp_assert(tensor->first == total && tensor->count >= 1);
        sgp_assert(tensor->count == sgp_st_count(tensor));
        total += tensor->count;
        sgp_assert(total <= SGP_PARAMETERS_MAX);
    }
    return total;
}

static json_t *tensor_json(const struct sgp_file_tensor *tensor)
{
    json_t *shape = json_array();
    for (uint32_t i = 0; i < sgp_st_dimensions(tensor); i++)
        (void)json_array_append_new(shape, json_integer((json_int_t)tensor->shape[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape, "data_offsets",
        (json_int_t)(4 * tensor->first), (json_int_t)(4 * (tensor->first + tensor->count)));
}

/* The header's JSON, whose digest is still zeros. */
static int header_json(
    const struct sgp_model_contents *contents, struct sgp_error *error, json_t **ret_root)
{
    json_t *root = json_object();
    json_t *metadata = json_object();
    int failed = json_object_set_new(metadata, "xxh3", json_string("0000000000000000"));
    failed |= json_object_set_new(root, "__metadata__", metadata);
    for (uint32_t i = 0; i < contents->tag_count && !failed; i++) {
        const struct sgp_file_tag *tag = &contents->tags[i];
        sgp_assert(!json_object_get(metadata, tag->key));
        if (json_object_set_new(metadata, tag->key, json_string(tag->value)) < 0) {
            json_decref(root);
            return sgp_fail(error, SGP_E_DATA, "model file: the tag '%s' is not UTF-8", tag->key);
        }
    }
    for (uint32_t i = 0; i < contents->tensor_count && !failed; i++) {
        const struct sgp_file_tensor *tensor = &contents->tensors[i];
        sgp_assert(!json_object_get(root, tensor->name));
        failed = json_object_set_new(root, tensor->name, tensor_json(tensor));
    }
    if (failed) {
        json_decref(root);
        return sgp_fail(error, -ENOMEM, "model file: out of memory");
    }
    *ret_root = root;
    return 0;
}

void sgp_st_digest(char text[SGP_ST_DIGITS + 1], const unsigned char *head, size_t head_size,
    const void *data, size_t data_size)
{
    uint64_t digest = XXH3_64bits(head, SGP_ST_DIGEST_AT);
    digest = XXH3_64bits_withSeed(
        head + SGP_ST_HEAD_BYTES_MIN, head_size - SGP_ST_HEAD_BYTES_MIN, digest);
    digest = XXH3_64bits_withSeed(data, data_size, digest);
    snprintf(text, SGP_ST_DIGITS + 1, "%016" PRIx64, digest);
}

int sgp_safetensors_head(const struct sgp_model_contents *contents, struct sgp_error *error,
    void **ret_head, size_t *ret_size)
{
    const uint64_t values = sgp_contents_check(contents);
    json_t *root = NULL;
    int status = header_json(contents, error, &root);
    if (status < 0)
        return status;
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    if (!text)
        return sgp_fail(error, -ENOMEM, "model file: out of memory");
    const size_t length = strlen(text);
    sgp_assert(strncmp(text, SGP_ST_PREFIX, sizeof SGP_ST_PREFIX - 1) == 0);
    const size_t size = (SGP_ST_LENGTH_BYTES + length + 7) / 8 * 8;
    const uint64_t header_size = size - SGP_ST_LENGTH_BYTES;
    unsigned char *head = NULL;
    if (header_size > SGP_FILE_HEADER_BYTES_MAX)
        status = sgp_fail(error, SGP_E_LIMIT, "model file: a header of %zu bytes; at most %u", size,
            SGP_FILE_HEADER_BYTES_MAX);
    else if (!(head = malloc(size)))
        status = sgp_fail(error, -ENOMEM, "model file: out of memory");
    if (head) {
        memset(head, ' ', size);
        memcpy(head, &header_size, SGP_ST_LENGTH_BYTES);
        memcpy(head + SGP_ST_LENGTH_BYTES, text, length);
        char digits[SGP_ST_DIGITS + 1];
        sgp_st_digest(digits, head, size, contents->values, (size_t)values * sizeof(float));
        memcpy(head + SGP_ST_DIGEST_AT, digits, SGP_ST_DIGITS);
        *ret_head = head;
        *ret_size = size;
    }
    free(text);
    return status;
}

int sgp_safetensors_encode(const struct sgp_model_contents *contents, struct sgp_error *error,
    void **ret_bytes, size_t *ret_size)
{
    void *head = NULL;
    size_t head_size = 0;
    int status = sgp_safetensors_head(contents, error, &head, &head_size);
    if (status < 0)
        return status;
    const size_t data_size = (size_t)sgp_contents_check(contents) * sizeof(float);
    unsigned char *bytes = realloc(head, head_size + data_size);
    if (!bytes) {
        free(head);
        return sgp_fail(error, -ENOMEM, "model file: out of memory");
    }
    memcpy(bytes + head_size, contents->values, data_size);
    *ret_bytes = bytes;
    *ret_size = head_size + data_size;
    return 0;
}

int sgp_safetensors_write(
    const struct sgp_model_contents *contents, const char *path, struct sgp_error *error)
{
    void *head = NULL;
    size_t head_size = 0;
    int status = sgp_safetensors_head(contents, error, &head, &head_size);
    if (status < 0)
        return status;
    struct sgp_atomic_file file;
    status = sgp_atomic_open(&file, path, SGP_ATOMIC_PRIVATE, error);
    if (status == 0) {
        sgp_atomic_write(&file, head, head_size);
        sgp_atomic_write(
            &file, contents->values, (size_t)sgp_contents_check(contents) * sizeof(float));
        status = sgp_atomic_commit(&file, error);
    }
    free(head);
    return status;
}
