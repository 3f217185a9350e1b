/* SPDX-License-Identifier: Apache-2.0 */
/* The layout that the writer and the reader of safetensors share. A file has 8 bytes of length
 * (little-endian), then a JSON header of that length, then the data. Blanks pad the header so that
 * the data begins at a multiple of 8.
 *
 * Our header begins with the digest: {"__metadata__":{"xxh3":"16 hex digits". The XXH3 of the bytes
 * before these digits seeds that of the rest of the header. That digest seeds the digest of the
 * data. So the digest covers every byte of the file. */
#ifndef SGP_TRAIN_SAFETENSORS_H
#define SGP_TRAIN_SAFETENSORS_H

#include "sgp/model_file.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "values are written as they lie in memory, which must be little-endian"
#endif

#define SGP_ST_LENGTH_BYTES 8u
#define SGP_ST_PREFIX "{\"__metadata__\":{\"xxh3\":\""
#define SGP_ST_DIGITS 16u
#define SGP_ST_DIGEST_AT (SGP_ST_LENGTH_BYTES + sizeof SGP_ST_PREFIX - 1)
#define SGP_ST_HEAD_BYTES_MIN (SGP_ST_DIGEST_AT + SGP_ST_DIGITS)

/* The digest of a file; head_size >= SGP_ST_HEAD_BYTES_MIN. Writes the 16 digits and a zero into
 * text. */
void sgp_st_digest(char text[SGP_ST_DIGITS + 1], const unsigned char *head, size_t head_size,
    const void *data, size_t data_size);

/* Whether a tensor may have this name. */
bool sgp_st_name_valid(const char *name);

/* How many dimensions a tensor has, and how many values its shape makes. The latter is 0 if there
 * are more than SGP_PARAMETERS_MAX. */
uint32_t sgp_st_dimensions(const struct sgp_file_tensor *tensor);
uint64_t sgp_st_count(const struct sgp_file_tensor *tensor);

/* Assert that names, shapes and slices are as model_file.h says; returns the number of values. */
uint64_t sgp_contents_check(const struct sgp_model_contents *contents);

#endif
