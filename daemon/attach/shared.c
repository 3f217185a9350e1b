/* SPDX-License-Identifier: Apache-2.0 */
/* A program's memory and its layout; see shared.h. */
#include "shared.h"

#include "train/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define LENGTH_BYTES 8u
#define PAGE_BYTES 4096u /* values begin at a multiple of it */
#define LAYOUT "the program's memory"

/* ---- memory ---- */

static int check_seals(int descriptor, struct sgp_error *error, size_t *ret_bytes)
{
    struct stat status;
    int seals = fcntl(descriptor, F_GET_SEALS), needed = F_SEAL_SHRINK | F_SEAL_GROW;
    if (seals < 0 || (seals & needed) != needed || fstat(descriptor, &status) < 0)
        return sgp_fail(error, SGP_E_CONFIG,
            LAYOUT " is no memfd of fixed size; make it by memfd_create, and seal it by "
                   "F_SEAL_SHRINK and F_SEAL_GROW");
    if (status.st_size <= (off_t)LENGTH_BYTES ||
        status.st_size > (off_t)(4 * (uint64_t)SGP_PARAMETERS_MAX + SGP_FILE_HEADER_BYTES_MAX))
        return sgp_fail(error, SGP_E_LIMIT,
            LAYOUT " has %lld bytes; a safetensors file of at most %llu parameters is right",
            (long long)status.st_size, (unsigned long long)SGP_PARAMETERS_MAX);
    *ret_bytes = (size_t)status.st_size;
    return 0;
}

/* The header is copied before it is read, because the program could change it meanwhile. */
static int copy_head(struct shared *shared, struct sgp_error *error)
{
    uint64_t length;
    memcpy(&length, shared->mapped, LENGTH_BYTES);
    if (length > SGP_FILE_HEADER_BYTES_MAX || length > shared->bytes - LENGTH_BYTES ||
        (LENGTH_BYTES + length) % PAGE_BYTES != 0)
        return sgp_fail(error, SGP_E_FILE,
            LAYOUT " says a header of %" PRIu64
                   " bytes; at most %u, within the memory, and padded with blanks until the values "
                   "begin at a multiple of %u is right",
            length, SGP_FILE_HEADER_BYTES_MAX, PAGE_BYTES);
    shared->head_bytes = LENGTH_BYTES + (size_t)length;
    shared->head = malloc(shared->head_bytes);
    if (shared->head == NULL)
        return sgp_fail(error, -ENOMEM, LAYOUT ": out of memory");
    memcpy(shared->head, shared->mapped, shared->head_bytes);
    memcpy(shared->head, &length, LENGTH_BYTES);
    return 0;
}

static int check_tags(const struct sgp_model_file *layout, struct sgp_error *error)
{
    const char *text = sgp_model_file_tag(layout, "values_from");
    char *end = NULL;
    errno = 0;
    uint64_t from = text != NULL ? strtoull(text, &end, 10) : 0;
    bool number = text != NULL && end != text && *end == '\0' && *text != '-' && errno == 0;
    if (!number || from > layout->value_count)
        return sgp_fail(error, SGP_E_CONFIG,
            LAYOUT ": values_from in __metadata__ is \"%.32s\"; a number from 0 to %" PRIu64
                   " is right",
            text != NULL ? text : "", layout->value_count);
    return 0;
}

/* Read the layout out of the copied header. */
static int read_layout(struct shared *shared, struct sgp_error *error)
{
    struct sgp_model_file *layout = NULL;
    int code = sgp_safetensors_layout(shared->head, shared->head_bytes,
        shared->bytes - shared->head_bytes, LAYOUT, error, &layout);
    shared->layout = layout;
    return code < 0 ? code : check_tags(layout, error);
}

int shared_open(int descriptor, struct sgp_error *error, struct shared *ret_shared)
{
    struct shared shared = {0};
    int code = check_seals(descriptor, error, &shared.bytes);
    if (code < 0)
        return code;
    shared.mapped = mmap(NULL, shared.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (shared.mapped == MAP_FAILED)
        return sgp_fail(error, -errno, LAYOUT " cannot be mapped: %s", strerror(errno));
    code = copy_head(&shared, error);
    if (code == 0)
        code = read_layout(&shared, error);
    if (code < 0) {
        shared_close(&shared);
        return code;
    }
    shared.values = (float *)((char *)shared.mapped + shared.head_bytes);
    *ret_shared = shared;
    return 0;
}

void shared_close(struct shared *shared)
{
    if (shared->mapped != NULL)
        (void)munmap(shared->mapped, shared->bytes);
    sgp_model_file_destroy(shared->layout);
    free(shared->head);
    *shared = (struct shared){0};
}

/* ---- layouts ---- */

uint64_t shared_values_from(const struct sgp_model_file *layout)
{
    return strtoull(sgp_model_file_tag(layout, "values_from"), NULL, 10);
}

static const char *frozen(const struct sgp_model_file *layout)
{
    const char *digest = sgp_model_file_tag(layout, "frozen");
    return digest != NULL ? digest : "";
}

static uint64_t digest_tensors(const struct sgp_model_file *layout, uint32_t count, uint64_t digest)
{
    for (uint32_t i = 0; i < count && i < layout->tensor_count; i++) {
        const struct sgp_file_tensor *tensor = &layout->tensors[i];
        digest = XXH3_64bits_withSeed(tensor->name, strlen(tensor->name), digest);
        digest = XXH3_64bits_withSeed(tensor->shape, sizeof tensor->shape, digest);
    }
    return digest;
}

uint64_t shared_digest(const struct sgp_model_file *layout)
{
    uint64_t digest = XXH3_64bits(frozen(layout), strlen(frozen(layout)));
    uint64_t from = shared_values_from(layout);
    digest = XXH3_64bits_withSeed(&from, sizeof from, digest);
    digest = digest_tensors(layout, layout->tensor_count, digest);
    return digest != 0 ? digest : 1;
}

/* "conv1.weight [16, 1, 3, 3]", or "nothing". */
static void describe(const struct sgp_file_tensor *tensor, char text[256])
{
    int at = snprintf(text, 256, "%s [", tensor != NULL ? tensor->name : "nothing");
    for (uint32_t i = 0; tensor != NULL && i < SGP_FILE_DIMENSIONS_MAX && tensor->shape[i] > 0; i++)
        at += snprintf(text + at, 256 - (size_t)at, "%s%" PRIu64, i ? ", " : "", tensor->shape[i]);
    (void)snprintf(
        text + at - (tensor == NULL ? 2 : 0), 256 - (size_t)at, "%s", tensor != NULL ? "]" : "");
}

#define VALUES_FROM SGP_FILE_TENSORS_MAX /* the entry after all that tensors can have */
#define FROZEN (VALUES_FROM + 1)
_Static_assert(FROZEN + 1 == SGP_LAYOUT_ENTRIES, "entries of a layout");

void shared_entry(const struct sgp_model_file *layout, uint32_t index, char text[SGP_LAYOUT_BYTES])
{
    char tensor[256];
    if (layout == NULL) {
        (void)snprintf(text, SGP_LAYOUT_BYTES, "a built-in model");
    } else if (index == VALUES_FROM) {
        (void)snprintf(text, SGP_LAYOUT_BYTES, "values from parameter %" PRIu64 " on",
            shared_values_from(layout));
    } else if (index == FROZEN && *frozen(layout) == '\0') {
        (void)snprintf(text, SGP_LAYOUT_BYTES, "none");
    } else if (index == FROZEN) { /* the program's tag may be any text */
        (void)snprintf(text, SGP_LAYOUT_BYTES, "digest %016" PRIx64,
            XXH3_64bits(frozen(layout), strlen(frozen(layout))));
    } else {
        describe(index < layout->tensor_count ? &layout->tensors[index] : NULL, tensor);
        (void)snprintf(text, SGP_LAYOUT_BYTES, "%.199s", tensor);
    }
}

uint64_t shared_before(const struct sgp_model_file *layout, uint32_t index)
{
    if (layout == NULL)
        return 0;
    uint64_t digest = digest_tensors(layout, index, 0), from = shared_values_from(layout);
    return index > VALUES_FROM ? XXH3_64bits_withSeed(&from, sizeof from, digest) : digest;
}

int shared_compare(
    const struct sgp_model_file *ours, const struct sgp_model_file *theirs, struct sgp_error *error)
{
    uint32_t most =
        ours->tensor_count > theirs->tensor_count ? ours->tensor_count : theirs->tensor_count;
    for (uint32_t i = 0; i < most; i++) {
        const struct sgp_file_tensor *a = i < ours->tensor_count ? &ours->tensors[i] : NULL;
        const struct sgp_file_tensor *b = i < theirs->tensor_count ? &theirs->tensors[i] : NULL;
        if (a != NULL && b != NULL && strcmp(a->name, b->name) == 0 &&
            memcmp(a->shape, b->shape, sizeof a->shape) == 0)
            continue;
        char here[256], there[256];
        describe(a, here);
        describe(b, there);
        return sgp_fail(error, SGP_E_CONFIG,
            "another model than this node trains: tensor %u is %s here and %s in the program; "
            "attach the same model, or "
            "begin another run (fresh=True, or sgpctl reset)",
            i, here, there);
    }
    if (shared_values_from(ours) != shared_values_from(theirs))
        return sgp_fail(error, SGP_E_CONFIG,
            "another model than this node trains: its values begin at parameter %" PRIu64
            " here and %" PRIu64 " in the program; average the same buffers",
            shared_values_from(ours), shared_values_from(theirs));
    if (strcmp(frozen(ours), frozen(theirs)) != 0)
        return sgp_fail(error, SGP_E_CONFIG,
            "the frozen parameters are not those of the program that this node began with (%.32s "
            "here, %.32s there); load "
            "the same ones before attaching",
            frozen(ours), frozen(theirs));
    return 0;
}

/* ---- their file ---- */

int shared_read_layout(
    const char *path, struct sgp_error *error, struct sgp_model_file **ret_layout)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "rb") : NULL;
    if (file == NULL) {
        int code = -errno;
        if (descriptor >= 0)
            (void)close(descriptor);
        return sgp_fail(error, code, "%s: %s", path, sgp_strerror(code));
    }
    size_t most = LENGTH_BYTES + SGP_FILE_HEADER_BYTES_MAX + sizeof(uint64_t);
    unsigned char *bytes = malloc(most);
    size_t got = bytes != NULL ? fread(bytes, 1, most, file) : 0;
    (void)fclose(file);
    uint64_t data = 0;
    if (got > sizeof data)
        memcpy(&data, bytes + got - sizeof data, sizeof data);
    int code = got > sizeof data
                   ? sgp_safetensors_layout(bytes, got - sizeof data, data, path, error, ret_layout)
                   : sgp_fail(error, bytes != NULL ? SGP_E_FILE : -ENOMEM, "%s: is cut", path);
    if (code == 0 && (code = check_tags(*ret_layout, error)) < 0)
        sgp_model_file_destroy(*ret_layout);
    free(bytes);
    return code;
}

/* Write the header, and say how many bytes of values belong to it. */
int shared_write_layout(const char *path, const struct shared *shared, struct sgp_error *error)
{
    struct sgp_atomic_file file;
    uint64_t data = shared->bytes - shared->head_bytes;
    int code = sgp_atomic_open(&file, path, SGP_ATOMIC_PRIVATE, NULL);
    if (code == 0) {
        sgp_atomic_write(&file, shared->head, shared->head_bytes);
        sgp_atomic_write(&file, &data, sizeof data);
        code = sgp_atomic_commit(&file, NULL);
    }
    return code < 0 ? sgp_fail(error, code, "%s: cannot be written: %s", path, sgp_strerror(code))
                    : 0;
}
