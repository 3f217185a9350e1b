/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a program shares with its daemon: a sealed memfd in the format of a safetensors
 * file, with its values at the start of a page. Its creator owns it. One thread at a time. */
#ifndef SGP_LIB_ATTACH_MEMORY_H
#define SGP_LIB_ATTACH_MEMORY_H

#include "sgp/attach.h"

struct sgp_memory {
    int descriptor;
    void *map;
    size_t size;   /* size of the file and of the map */
    float *values; /* inside the map */
    uint64_t parameters;
};

/* Create, describe, fill with `initial`, and seal. The tensors must tile the values, which is
 * asserted. On failure SGP_E_LIMIT, -ENOMEM or -errno, with one line. */
int sgp_memory_create(const struct sgp_attach_options *options, const float *initial,
    struct sgp_error *error, struct sgp_memory *ret_memory);

void sgp_memory_destroy(struct sgp_memory *memory);

#endif
