/* SPDX-License-Identifier: Apache-2.0 */
/* A mapped file and its holders, see mapping.h. */
#include "mapping.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

struct sgp_mapping {
    void *bytes;
    size_t size;
    atomic_uint holders;
};

int sgp_mapping_create(int fd, size_t size, struct sgp_mapping **ret_mapping)
{
    struct sgp_mapping *mapping = malloc(sizeof *mapping);
    if (!mapping)
        return -ENOMEM;
    mapping->size = size;
    mapping->bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (mapping->bytes == MAP_FAILED) {
        const int code = -errno;
        free(mapping);
        return code;
    }
    atomic_init(&mapping->holders, 1);
    *ret_mapping = mapping;
    return 0;
}

const void *sgp_mapping_bytes(const struct sgp_mapping *mapping)
{
    return mapping->bytes;
}

size_t sgp_mapping_size(const struct sgp_mapping *mapping)
{
    return mapping->size;
}

struct sgp_mapping *sgp_mapping_hold(struct sgp_mapping *mapping)
{
    if (mapping)
        (void)atomic_fetch_add(&mapping->holders, 1);
    return mapping;
}

void sgp_mapping_release(struct sgp_mapping *mapping)
{
    if (!mapping || atomic_fetch_sub(&mapping->holders, 1) > 1)
        return;
    (void)munmap(mapping->bytes, mapping->size);
    free(mapping);
}
