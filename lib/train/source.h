/* SPDX-License-Identifier: Apache-2.0 */
/* A file of bytes, plain or gzip, read front to back. Owns the buffers and the inflater, not the
 * FILE. Memory is limited to the two buffers, so a decompression bomb costs its reader only what
 * the reader keeps. A failed read fills the caller's error once, with the name and the offset in
 * the (inflated) bytes. Any thread, one at a time. */
#ifndef SGP_TRAIN_SOURCE_H
#define SGP_TRAIN_SOURCE_H

#include <stdio.h>
#include <zlib.h>

#include "sgp/status.h"

#define SGP_SOURCE_BUFFER_BYTES 65536u

struct sgp_source {
    FILE *file;       /* borrowed */
    const char *name; /* borrowed; the name in messages */
    uint64_t offset;  /* bytes returned so far */
    bool gzip;
    bool member_done; /* gzip: at a member's end, so the file may end here */
    z_stream inflater;
    unsigned char *raw;  /* gzip: compressed bytes read ahead */
    unsigned char *data; /* bytes ready to be returned: data[first .. end) */
    size_t first;
    size_t end;
};

/* Read the first bytes of `file` to detect gzip, and prepare for reading. -ENOMEM, -errno. */
int sgp_source_init(
    struct sgp_source *source, FILE *file, const char *name, struct sgp_error *error);
void sgp_source_finish(struct sgp_source *source);

/* Read up to `size` bytes; fewer only at the end of the data. *ret_size says how many.
 * SGP_E_DATA (damaged or truncated gzip), -errno. */
int sgp_source_read(
    struct sgp_source *source, void *bytes, size_t size, struct sgp_error *error, size_t *ret_size);

/* The next byte, SGP_SOURCE_END, or a negative code. */
#define SGP_SOURCE_END 256
int sgp_source_byte(struct sgp_source *source, struct sgp_error *error);

/* fopen with one line on failure. Directories are refused. -errno. */
int sgp_source_open(const char *path, struct sgp_error *error, FILE **ret_file);

#endif
