/* SPDX-License-Identifier: Apache-2.0 */
/* Writes .npz: a zip archive, stored without compression, with one .npy file for each tensor.
 * Blocks on the disk; fails with one line. A zip without extensions has sizes of 32 bits, so a
 * larger archive is refused. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "atomic_file.h"
#include "safetensors.h"

#define NPY_HEADER_BYTES 128u /* magic 6, version 2, length 2, text; a multiple of 64 */
#define LOCAL_BYTES 30u
#define CENTRAL_BYTES 46u
#define END_BYTES 22u
#define MEMBER_NAME_BYTES (SGP_FILE_NAME_BYTES + 4) /* with ".npy" */
#define DOS_DATE_1980 0x21u

static unsigned char *put16(unsigned char *at, uint32_t value)
{
    at[0] = (unsigned char)(value & 0xff);
    at[1] = (unsigned char)(value >> 8 & 0xff);
    return at + 2;
}

static unsigned char *put32(unsigned char *at, uint32_t value)
{
    return put16(put16(at, value), value >> 16);
}

/* The header of a .npy file, version 1.0, padded so that data begins at a multiple of 64. */
static void npy_header(unsigned char header[NPY_HEADER_BYTES], const struct sgp_file_tensor *tensor)
{
    char shape[64] = ""; /* the product of the sizes is at most SGP_PARAMETERS_MAX */
    const uint32_t dimensions = sgp_st_dimensions(tensor);
    for (uint32_t i = 0, at = 0; i < dimensions; i++)
        at += (uint32_t)snprintf(shape + at, sizeof shape - at, "%s%" PRIu64 "%s", i ? " " : "",
            tensor->shape[i], i + 1 < dimensions || dimensions == 1 ? "," : "");
    char text[NPY_HEADER_BYTES];
    const int length = snprintf(
        text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", shape);
    sgp_assert(length > 0 && (size_t)length < NPY_HEADER_BYTES - 10);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    put16(header + 8, NPY_HEADER_BYTES - 10);
    memset(header + 10, ' ', NPY_HEADER_BYTES - 10);
    memcpy(header + 10, text, (size_t)length);
    header[NPY_HEADER_BYTES - 1] = '\n';
}

/* Write the fields that both records of a member share: from "version needed" to the extra field's
 * length. */
static unsigned char *member_fields(
    unsigned char *at, uint32_t crc, uint32_t size, size_t name_size)
{
    at = put16(at, 20); /* version needed */
    at = put16(at, 0);  /* flags */
    at = put16(at, 0);  /* stored */
    at = put16(at, 0);  /* time */
    at = put16(at, DOS_DATE_1980);
    at = put32(at, crc);
    at = put32(at, size);
    at = put32(at, size);
    at = put16(at, (uint32_t)name_size);
    return put16(at, 0);
}

/* Write one member. Put its entry of the central directory at *directory, and advance
 * *directory. */
static void member_write(struct sgp_atomic_file *file, const struct sgp_file_tensor *tensor,
    const float *values, uint32_t *offset, unsigned char **directory)
{
    unsigned char header[NPY_HEADER_BYTES];
    unsigned char local[LOCAL_BYTES];
    char name[MEMBER_NAME_BYTES];
    const size_t name_size = (size_t)snprintf(name, sizeof name, "%s.npy", tensor->name);
    const size_t data_size = (size_t)tensor->count * sizeof(float);
    npy_header(header, tensor);
    uLong crc = crc32_z(0, header, sizeof header);
    crc = crc32_z(crc, (const unsigned char *)(values + tensor->first), data_size);
    const uint32_t size = (uint32_t)(sizeof header + data_size);

    member_fields(put32(local, 0x04034b50), (uint32_t)crc, size, name_size);
    sgp_atomic_write(file, local, sizeof local);
    sgp_atomic_write(file, name, name_size);
    sgp_atomic_write(file, header, sizeof header);
    sgp_atomic_write(file, values + tensor->first, data_size);

    unsigned char *at = put16(put32(*directory, 0x02014b50), 20); /* made by: DOS, 2.0 */
    at = member_fields(at, (uint32_t)crc, size, name_size);
    at = put16(at, 0); /* comment */
    at = put16(at, 0); /* disk */
    at = put16(at, 0); /* attributes */
    at = put32(at, 0);
    at = put32(at, *offset);
    memcpy(at, name, name_size);
    *directory = at + name_size;
    *offset += LOCAL_BYTES + (uint32_t)name_size + size;
}

/* An upper bound for the bytes of the members and the directory together. */
static uint64_t archive_size_max(const struct sgp_model_contents *contents, uint64_t values)
{
    return 4 * values + END_BYTES +
           (uint64_t)contents->tensor_count *
               (LOCAL_BYTES + CENTRAL_BYTES + 2 * MEMBER_NAME_BYTES + NPY_HEADER_BYTES);
}

int sgp_npz_write(
    const struct sgp_model_contents *contents, const char *path, struct sgp_error *error)
{
    if (archive_size_max(contents, sgp_contents_check(contents)) > UINT32_MAX)
        return sgp_fail(error, SGP_E_LIMIT,
            "%s: the model is larger than the 4 GiB of an .npz; .safetensors would be right", path);
    unsigned char *directory =
        malloc(contents->tensor_count * (CENTRAL_BYTES + MEMBER_NAME_BYTES) + END_BYTES);
    if (!directory)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", path);
    struct sgp_atomic_file file;
    int status = sgp_atomic_open(&file, path, SGP_ATOMIC_PUBLIC, error);
    if (status < 0) {
        free(directory);
        return status;
    }
    unsigned char *at = directory;
    uint32_t offset = 0;
    for (uint32_t i = 0; i < contents->tensor_count; i++)
        member_write(&file, &contents->tensors[i], contents->values, &offset, &at);
    const uint32_t directory_size = (uint32_t)(at - directory);
    at = put32(put32(at, 0x06054b50), 0); /* this disk, directory's disk */
    at = put16(put16(at, contents->tensor_count), contents->tensor_count);
    at = put16(put32(put32(at, directory_size), offset), 0);
    sgp_atomic_write(&file, directory, (size_t)(at - directory));
    free(directory);
    return sgp_atomic_commit(&file, error);
}
