/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the shared memory; see memory.h. Owns the descriptor and the map until they are
 * destroyed. */
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "train/safetensors.h"

#define PAGE_BYTES 4096u

/* The head of a model file of these tensors, padded to the next page. The digest is omitted,
 * because the values change all the time. */
static int describe(const struct sgp_attach_options *options, const float *initial,
    struct sgp_error *error, char **ret_head, size_t *ret_bytes)
{
    char values_from[24];
    snprintf(values_from, sizeof values_from, "%" PRIu64, options->values_from);
    const struct sgp_file_tag tags[] = {{"values_from", values_from}, {"framework", "C"}};
    const struct sgp_model_contents contents = {.values = initial,
        .tensors = options->tensors,
        .tensor_count = options->tensor_count,
        .tags = tags,
        .tag_count = 2};
    void *head = NULL;
    size_t bytes = 0;
    int status = sgp_safetensors_head(&contents, error, &head, &bytes);
    if (status < 0)
        return status;
    const size_t whole = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    const uint64_t header_bytes = whole - SGP_ST_LENGTH_BYTES;
    char *padded = realloc(head, whole);
    if (padded == NULL) {
        free(head);
        return sgp_fail(error, -ENOMEM, "attach: out of memory");
    }
    memset(padded + bytes, ' ', whole - bytes);
    memcpy(padded, &header_bytes, SGP_ST_LENGTH_BYTES);
    memset(padded + SGP_ST_DIGEST_AT, '0', SGP_ST_DIGITS);
    *ret_head = padded;
    *ret_bytes = whole;
    return 0;
}

/* A mapped descriptor of `memory->size` bytes, whose size no process can change. */
static int map_sealed(struct sgp_memory *memory)
{
    memory->descriptor = memfd_create("sgp", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory->descriptor < 0)
        return -errno;
    int status = 0;
    if (ftruncate(memory->descriptor, (off_t)memory->size) < 0 ||
        fcntl(memory->descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        status = -errno;
    if (status == 0)
        memory->map =
            mmap(NULL, memory->size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->descriptor, 0);
    if (status == 0 && memory->map == MAP_FAILED)
        status = -errno;
    if (status < 0)
        (void)close(memory->descriptor);
    return status;
}

int sgp_memory_create(const struct sgp_attach_options *options, const float *initial,
    struct sgp_error *error, struct sgp_memory *ret_memory)
{
    const struct sgp_file_tensor *last = &options->tensors[options->tensor_count - 1];
    struct sgp_memory memory = {.parameters = last->first + last->count};
    sgp_assert(options->values_from <= memory.parameters);
    char *head = NULL;
    size_t head_bytes = 0;
    int status = describe(options, initial, error, &head, &head_bytes);
    if (status < 0)
        return status;
    const size_t values_bytes = (size_t)memory.parameters * sizeof(float);
    memory.size = head_bytes + values_bytes;
    status = map_sealed(&memory);
    if (status == 0) {
        sgp_assert(memory.map != NULL);
        memory.values = (float *)((char *)memory.map + head_bytes);
        memcpy(memory.map, head, head_bytes);
        memcpy(memory.values, initial, values_bytes);
        *ret_memory = memory;
    }
    free(head);
    if (status < 0)
        return sgp_fail(
            error, status, "attach: %zu bytes to share: %s", memory.size, sgp_strerror(status));
    return 0;
}

void sgp_memory_destroy(struct sgp_memory *memory)
{
    (void)munmap(memory->map, memory->size);
    (void)close(memory->descriptor);
}
