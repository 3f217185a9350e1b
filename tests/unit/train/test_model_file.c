/* SPDX-License-Identifier: Apache-2.0 */
/* Model files: what is written comes back to the bit, and no damaged byte goes unseen. */
#include "sgp/model_file.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static struct sgp_error error;
static const float values[9] = {1, -2, 3.5f, 1e-30f, -0.0f, 6, 7, 8, 9};
static const struct sgp_file_tensor tensors[2] = {
    {.name = "layers.0.weight", .shape = {2, 3}, .first = 0, .count = 6},
    {.name = "layers.0.bias", .shape = {3, 0}, .first = 6, .count = 3}};
static const struct sgp_file_tag tags[2] = {{"round", "42"}, {"weight", "1.25"}};
static const struct sgp_model_contents contents = {
    .values = values, .tensors = tensors, .tensor_count = 2, .tags = tags, .tag_count = 2};

static void check_contents(const struct sgp_model_file *file)
{
    cr_assert(eq(u64, file->value_count, 9));
    cr_assert(eq(int, memcmp(file->values, values, sizeof values), 0));
    cr_assert(eq(u32, file->tensor_count, 2));
    for (int i = 0; i < 2; i++) {
        cr_assert(eq(str, file->tensors[i].name, (char *)(uintptr_t)tensors[i].name));
        cr_assert(eq(u64, file->tensors[i].shape[0], tensors[i].shape[0]));
        cr_assert(eq(u64, file->tensors[i].shape[1], tensors[i].shape[1]));
        cr_assert(eq(u64, file->tensors[i].first, tensors[i].first));
        cr_assert(eq(u64, file->tensors[i].count, tensors[i].count));
    }
    cr_assert(eq(str, (char *)(uintptr_t)sgp_model_file_tag(file, "round"), "42"));
    cr_assert(eq(str, (char *)(uintptr_t)sgp_model_file_tag(file, "weight"), "1.25"));
    cr_assert(eq(ptr, (void *)(uintptr_t)sgp_model_file_tag(file, "loss"), NULL));
    struct sgp_file_tag tag;
    for (uint32_t i = 0; i < 2; i++) { /* behind the digest */
        cr_assert(sgp_model_file_tag_at(file, i + 1, &tag));
        cr_assert(eq(str, (char *)(uintptr_t)tag.key, (char *)(uintptr_t)tags[i].key));
        cr_assert(eq(str, (char *)(uintptr_t)tag.value, (char *)(uintptr_t)tags[i].value));
    }
    cr_assert_not(sgp_model_file_tag_at(file, 3, &tag));
}

static unsigned char *encoded(size_t *ret_size)
{
    void *bytes = NULL;
    error = (struct sgp_error){.code = 0};
    cr_assert(eq(int, sgp_safetensors_encode(&contents, &error, &bytes, ret_size), 0));
    return bytes;
}

Test(safetensors, memory_round_trip)
{
    size_t size = 0;
    unsigned char *bytes = encoded(&size);
    uint64_t header = 0;
    memcpy(&header, bytes, 8);
    cr_assert(eq(u64, (8 + header) % 8, 0));
    cr_assert(eq(sz, size, 8 + header + sizeof values));
    struct sgp_model_file *file = NULL;
    cr_assert(
        eq(int, sgp_safetensors_decode(bytes, size, "m", &error, &file), 0), "%s", error.text);
    check_contents(file);
    sgp_model_file_destroy(file);
    free(bytes);
}

Test(safetensors, file_round_trip_replaces_the_old_one)
{
    char directory[] = "/tmp/sgp-model-XXXXXX";
    char path[64];
    cr_assert(ne(ptr, mkdtemp(directory), NULL));
    snprintf(path, sizeof path, "%s/model.safetensors", directory);
    FILE *old = fopen(path, "wb");
    fputs("old", old);
    fclose(old);
    umask(0);
    struct sgp_model_file *file = NULL;
    error = (struct sgp_error){.code = 0};
    cr_assert(eq(int, sgp_safetensors_write(&contents, path, &error), 0), "%s", error.text);
    cr_assert(eq(int, sgp_safetensors_read(path, &error, &file), 0), "%s", error.text);
    check_contents(file);
    size_t size = 0;
    unsigned char *bytes = encoded(&size);
    struct stat status;
    cr_assert(eq(int, stat(path, &status), 0));
    cr_assert(eq(sz, (size_t)status.st_size, size));
    cr_assert(eq(u32, status.st_mode & 07777, 0640), "mode %o", status.st_mode);
    free(bytes);
    sgp_model_file_destroy(file);
    unlink(path);
    cr_assert(eq(int, rmdir(directory), 0)); /* and no temporary file is left */
}

Test(safetensors, refuses_every_flipped_bit)
{
    size_t size = 0;
    unsigned char *bytes = encoded(&size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        struct sgp_model_file *file = NULL;
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        error = (struct sgp_error){.code = 0};
        int status = sgp_safetensors_decode(bytes, size, "m", &error, &file);
        cr_assert(status == SGP_E_FILE || status == SGP_E_LIMIT, "bit %zu: %d", bit, status);
        cr_assert(eq(int, error.code, status));
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    free(bytes);
}

Test(safetensors, refuses_every_truncation_and_a_byte_more)
{
    size_t size = 0;
    unsigned char *bytes = encoded(&size);
    for (size_t cut = 0; cut <= size + 1; cut++) {
        if (cut == size)
            continue;
        /* An exact copy, so that a sanitizer sees a read past the end. */
        unsigned char *part = calloc(1, cut + 1);
        memcpy(part, bytes, cut < size ? cut : size);
        struct sgp_model_file *file = NULL;
        error = (struct sgp_error){.code = 0};
        cr_assert(eq(int, sgp_safetensors_decode(part, cut, "m", &error, &file), SGP_E_FILE));
        free(part);
    }
    free(bytes);
}

static void expect(const unsigned char *bytes, size_t size, int code, const char *text)
{
    char path[] = "/tmp/sgp-model-XXXXXX";
    FILE *out = fdopen(mkstemp(path), "wb");
    fwrite(bytes, 1, size, out);
    fclose(out);
    struct sgp_model_file *file = NULL;
    error = (struct sgp_error){.code = 0};
    int status = sgp_safetensors_read(path, &error, &file);
    unlink(path);
    cr_assert(eq(int, status, code), "%s", error.text);
    cr_assert(eq(ptr, file, NULL));
    cr_assert(eq(int, strncmp(error.text, path, strlen(path)), 0));
    cr_assert(ne(ptr, strstr(error.text, text), NULL), "%s", error.text);
}

Test(safetensors, says_what_is_wrong)
{
    size_t size = 0;
    unsigned char *bytes = encoded(&size);
    expect((const unsigned char *)"hello", 5, SGP_E_FILE,
        ": not a model written by sgpd; a safetensors file that begins with its xxh3 would be "
        "right");
    expect(bytes, size - 1, SGP_E_FILE,
        ": the tensors do not cover the 35 bytes of data without gap; the file is damaged or cut");
    expect(bytes, 100, SGP_E_FILE, " bytes, but the file has 100; it is damaged or cut");
    char *offsets =
        strstr((char *)bytes + 8, "[24,36]"); /* three values for both tensors, the same end */
    cr_assert(ne(ptr, offsets, NULL));
    memcpy(offsets, "[12,24]", 7);
    expect(bytes, size - 12, SGP_E_FILE, ": the tensors do not cover the 24 bytes of data");
    memcpy(offsets, "[24,36]", 7);
    bytes[size - 1] ^= 4;
    expect(bytes, size, SGP_E_FILE, " was written; the file is damaged");
    bytes[size - 1] ^= 4;
    bytes[3] = 1;
    expect(bytes, size, SGP_E_LIMIT, " bytes; at most 4194304");
    bytes[3] = 0;
    char *shape = strstr((char *)bytes + 8, "[2,3]");
    cr_assert(ne(ptr, shape, NULL));
    shape[1] = '4';
    expect(bytes, size, SGP_E_FILE,
        ": tensor 'layers.0.weight': its data_offsets do not fit its shape; 4 bytes for each "
        "value");
    free(bytes);
}

Test(safetensors, what_is_no_file_is_not_read)
{
    struct sgp_model_file *file = NULL;
    error = (struct sgp_error){.code = 0};
    cr_assert(eq(int, sgp_safetensors_read("/dev/null", &error, &file), SGP_E_FILE));
    cr_assert(eq(str, error.text, "/dev/null: not a regular file"));
    cr_assert(eq(ptr, file, NULL));
}

Test(safetensors, says_when_it_cannot_write)
{
    error = (struct sgp_error){.code = 0};
    cr_assert(eq(int, sgp_safetensors_write(&contents, "/nowhere/m", &error), -2));
    cr_assert(eq(str, error.text, "/nowhere/m.new: cannot be written: No such file or directory"));
    const struct sgp_file_tag bad = {"name", "\xff"};
    struct sgp_model_contents wrong = contents;
    wrong.tags = &bad;
    wrong.tag_count = 1;
    void *bytes = NULL;
    size_t size = 0;
    error = (struct sgp_error){.code = 0};
    cr_assert(eq(int, sgp_safetensors_encode(&wrong, &error, &bytes, &size), SGP_E_DATA));
    cr_assert(eq(str, error.text, "model file: the tag 'name' is not UTF-8"));
}

/* Little-endian fields of a zip. */
static uint32_t get(const unsigned char *at, int bytes)
{
    uint32_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

Test(npz, is_a_zip_of_npy_files)
{
    char path[] = "/tmp/sgp-npz-XXXXXX";
    close(mkstemp(path));
    error = (struct sgp_error){.code = 0};
    cr_assert(eq(int, sgp_npz_write(&contents, path, &error), 0), "%s", error.text);
    unsigned char zip[2048];
    FILE *file = fopen(path, "rb");
    const size_t size = fread(zip, 1, sizeof zip, file);
    fclose(file);
    unlink(path);
    const unsigned char *end = zip + size - 22;
    cr_assert(eq(u32, get(end, 4), 0x06054b50));
    cr_assert(eq(u32, get(end + 10, 2), 2));
    const unsigned char *central = zip + get(end + 16, 4);
    cr_assert(eq(u32, get(end + 12, 4), (uint32_t)(end - central)));
    static const char *const shapes[] = {"(2, 3)", "(3,)"};
    for (int i = 0; i < 2; i++) {
        const unsigned char *local = zip + get(central + 42, 4);
        cr_assert(eq(u32, get(central, 4), 0x02014b50));
        cr_assert(eq(u32, get(local, 4), 0x04034b50));
        const uint32_t name_size = get(local + 26, 2);
        char name[256];
        snprintf(name, sizeof name, "%s.npy", tensors[i].name);
        cr_assert(eq(int, memcmp(local + 30, name, name_size), 0));
        cr_assert(eq(int, memcmp(central + 46, name, name_size), 0));
        cr_assert(eq(u32, name_size, (uint32_t)strlen(name)));
        const unsigned char *npy = local + 30 + name_size;
        const uint32_t npy_size = get(local + 18, 4);
        cr_assert(eq(u32, get(local + 14, 4), (uint32_t)crc32(0, npy, npy_size)));
        cr_assert(eq(int, memcmp(local + 14, central + 16, 12), 0));
        cr_assert(eq(int, memcmp(npy, "\x93NUMPY\x01\x00", 8), 0));
        const uint32_t header = 10 + get(npy + 8, 2);
        cr_assert(eq(u32, header % 64, 0));
        char expected[128];
        snprintf(expected, sizeof expected,
            "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }", shapes[i]);
        cr_assert(eq(int, memcmp(npy + 10, expected, strlen(expected)), 0));
        cr_assert(eq(u32, npy_size, header + (uint32_t)(tensors[i].count * 4)));
        cr_assert(
            eq(int, memcmp(npy + header, values + tensors[i].first, tensors[i].count * 4), 0));
        central += 46 + name_size;
    }
    cr_assert(eq(ptr, (void *)(uintptr_t)central, (void *)(uintptr_t)end));
}

/* ---- layouts ---- */

static struct sgp_model_file *layout_of(const char *json, uint64_t data)
{
    char head[4096];
    uint64_t length = strlen(json);
    memcpy(head, &length, 8);
    memcpy(head + 8, json, length);
    struct sgp_model_file *file = NULL;
    error = (struct sgp_error){.code = 0};
    (void)sgp_safetensors_layout(head, 8 + length, data, "layout", &error, &file);
    return file;
}

Test(layout, tensors_of_any_dimensions_and_tags_without_values)
{
    struct sgp_model_file *file =
        layout_of("{\"__metadata__\":{\"values_from\":\"7\"},\"a.b\":{\"dtype\":\"F32\",\"shape\":["
                  "1,2,3,1],\"data_offsets\":[0,24]},"
                  "\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[24,28]}}  ",
            28);
    cr_assert(ne(ptr, file, NULL), "%s", error.text);
    cr_assert(eq(u32, file->tensor_count, 2));
    cr_assert(eq(u64, file->value_count, 7));
    cr_assert(eq(ptr, file->values, NULL));
    cr_assert(eq(u64, file->tensors[0].shape[2], 3));
    cr_assert(eq(u64, file->tensors[0].shape[4], 0));
    cr_assert(eq(u64, file->tensors[1].shape[0], 0));
    cr_assert(eq(u64, file->tensors[1].count, 1));
    cr_assert(eq(str, (char *)(uintptr_t)sgp_model_file_tag(file, "values_from"), "7"));
    sgp_model_file_destroy(file);
}

Test(layout, what_is_wrong_is_said)
{
    static const struct {
        const char *json, *says;
        uint64_t data;
    } wrong[] = {
        {"{\"a\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,4]}}", "dtype F32", 4},
        {"{\"__metadata__\":{},\"a\":{\"dtype\":\"F32\",\"shape\":[1,0],\"data_offsets\":[0,0]}}",
            "a shape of at most 8", 0},
        {"{\"__metadata__\":{},\"a\":{\"dtype\":\"F32\",\"shape\":[4294967295,4294967295],\"data_"
         "offsets\":[0,4]}}",
            "do not fit its shape", 4},
        {"{\"__metadata__\":{},\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_"
         "offsets\":[0,4]}}",
            "a shape of at most 8", 4},
        {"{\"__metadata__\":{},\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
            "do not cover", 4},
        {"{\"__metadata__\":{},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}",
            "2 data_offsets", 4},
        {"{\"__metadata__\":{},\"a\":{\"dtype\":\"F32\",\"shape\":\"1\",\"data_offsets\":[0,4]}}",
            "a shape of at most 8", 4},
        {"{\"__metadata__\":{\"round\":7},\"a\":{\"dtype\":\"F32\",\"shape\":[1],"
         "\"data_offsets\":[0,4]}}",
            "layout: __metadata__ must be at most 257 strings", 4},
        {"{\"__metadata__\":{}}", "0 tensors", 0},
        {"[]", "tensors", 0},
        {"{", "not JSON", 0},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct sgp_model_file *file = layout_of(wrong[i].json, wrong[i].data);
        cr_assert(eq(ptr, file, NULL), "%s", wrong[i].json);
        cr_assert(
            ne(ptr, strstr(error.text, wrong[i].says), NULL), "%s: %s", wrong[i].json, error.text);
    }
}
