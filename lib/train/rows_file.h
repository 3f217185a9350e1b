/* SPDX-License-Identifier: Apache-2.0 */
/* A file of rows that are ready to train on, which a node keeps so that it need not parse a table
 * again. Numbers are in the byte order of the machine:
 *
 *     header    128 bytes, struct sgp_rows_header
 *     features  rows x features float32
 *     targets   rows x uint32 labels (classes), or rows x targets float32
 *     names     of the features, each with its terminating zero, or nothing
 *
 * The reader trusts nothing in it: sizes, digests, labels and numbers are checked before any of
 * them is used. docs/UPGRADING.md says what becomes of other versions. */
#ifndef SGP_TRAIN_ROWS_FILE_H
#define SGP_TRAIN_ROWS_FILE_H

#include "atomic_file.h"

#include "sgp/dataset.h"

#define SGP_ROWS_FILE_VERSION 1u

/* What a file of rows was made from. */
struct sgp_rows_origin {
    uint64_t source_bytes;  /* size of the table's file */
    uint64_t source_digest; /* XXH3 of its bytes */
    uint64_t reading;       /* digest of all that decides on how a table becomes rows */
};

/* What the reading of the table told; see struct sgp_csv_agreed. */
struct sgp_rows_told {
    uint64_t left_out, left_out_line, strange;
};

struct sgp_rows_header {
    char magic[8];
    uint32_t version;
    uint32_t byte_order; /* 0x01020304 */
    struct sgp_rows_origin origin;
    uint64_t rows;
    uint32_t features, classes, targets, scaled_targets;
    uint64_t classes_digest, scaling_digest;
    struct sgp_rows_told told;
    uint64_t names_bytes;
    uint64_t body_digest;   /* XXH3 of what follows the header */
    uint64_t header_digest; /* XXH3 of the header before this member */
};

/* ---- reading ---- */

/* Check the header of a file of `size` bytes. Returns NULL, or what is wrong with it. */
const char *sgp_rows_header_check(
    const void *bytes, size_t size, struct sgp_rows_header *ret_header);

/* Check all that follows a header which is in order. Returns as above. */
const char *sgp_rows_body_check(const void *bytes, const struct sgp_rows_header *header);

/* The dataset of a mapped file that is in order; it becomes a holder of the mapping. -ENOMEM. */
struct sgp_mapping;
int sgp_rows_dataset(struct sgp_mapping *mapping, const struct sgp_rows_header *header,
    struct sgp_dataset **ret_dataset);

/* ---- writing ---- */

struct sgp_rows_writer {
    struct sgp_atomic_file file;
    struct XXH3_state_s *hash; /* of the body so far */
    struct sgp_rows_header header;
    uint32_t *targets; /* labels or values, as bits; they follow all features */
    size_t target_capacity;
    char *names;
};

/* Begin to write PATH. Without `keep`, `path` is a directory, and the file has no name and vanishes
 * with its last user. *error is set. -errno, -ENOMEM. */
int sgp_rows_begin(
    struct sgp_rows_writer *writer, const char *path, bool keep, struct sgp_error *error);

/* Whether a dataset may have the rows of this block too. */
bool sgp_rows_fit(const struct sgp_rows_writer *writer, const struct sgp_dataset *block);

/* Append the rows of a block that fits, whose columns are those of the first block. -ENOMEM,
 * -errno: then writer->file.status says so, too. */
int sgp_rows_add(
    struct sgp_rows_writer *writer, const struct sgp_dataset *block, struct sgp_error *error);

/* Write the rest and replace the file atomically. The dataset reads from the file. The writer is
 * finished also on failure. -errno, -ENOMEM. */
int sgp_rows_end(struct sgp_rows_writer *writer, const struct sgp_rows_origin *origin,
    const struct sgp_rows_told *told, struct sgp_error *error, struct sgp_dataset **ret_dataset);

/* Give the file up. */
void sgp_rows_abandon(struct sgp_rows_writer *writer);

#endif
