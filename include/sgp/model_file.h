/* SPDX-License-Identifier: Apache-2.0 */
/* Models as files: safetensors, which can be read back, and npz for numpy.
 *
 * A model is one flat vector of float32 values, and a table that names slices of the vector and
 * gives their shapes. Files are written to PATH.new, synced and renamed, so a reader finds the
 * whole old model or the whole new one. Nothing in a file is trusted. Lengths, names, shapes and
 * offsets are checked against limits and the size of the file. One XXH3 covers every byte, so a
 * damaged file is refused. All functions block on the disk; any thread. */
#ifndef SGP_MODEL_FILE_H
#define SGP_MODEL_FILE_H

#include "sgp/codec.h"
#include "sgp/status.h"

#define SGP_FILE_TENSORS_MAX 4096u           /* tensors in a file */
#define SGP_FILE_DIMENSIONS_MAX 8u           /* of a tensor */
#define SGP_FILE_NAME_BYTES 128u             /* a tensor's name, with its terminating zero */
#define SGP_FILE_TAGS_MAX 256u               /* tags in a file */
#define SGP_FILE_HEADER_BYTES_MAX (4u << 20) /* the JSON at the beginning of a safetensors file */

/* A named slice of the values: values[first .. first + count). */
struct sgp_file_tensor {
    char name[SGP_FILE_NAME_BYTES]; /* "layers.0.weight"; letters, digits, '.', '_' and '-' */
    uint64_t
        shape[SGP_FILE_DIMENSIONS_MAX]; /* rows, columns, ...; zeros follow; all zeros: a scalar */
    uint64_t first;
    uint64_t count; /* the product of the shape; >= 1 */
};

/* One entry of __metadata__: UTF-8 strings. The key "xxh3" is the writer's own. */
struct sgp_file_tag {
    const char *key;
    const char *value;
};

/* A model to write; everything is borrowed. The tensors tile the values: each begins where the
 * previous tensor ends (asserted). */
struct sgp_model_contents {
    const float *values;
    const struct sgp_file_tensor *tensors;
    uint32_t tensor_count; /* 1 to SGP_FILE_TENSORS_MAX */
    const struct sgp_file_tag *tags;
    uint32_t tag_count;
};

/* The length and the header of a safetensors file, digest included. The file is these *ret_size
 * bytes (the caller frees them), then the values, 4 bytes each, little-endian. A server can send
 * the two parts without joining them. SGP_E_DATA (a tag that is not UTF-8), SGP_E_LIMIT,
 * -ENOMEM. */
int sgp_safetensors_head(const struct sgp_model_contents *contents, struct sgp_error *error,
    void **ret_head, size_t *ret_size);

/* The whole file in memory, which the caller frees. Errors as sgp_safetensors_head. */
int sgp_safetensors_encode(const struct sgp_model_contents *contents, struct sgp_error *error,
    void **ret_bytes, size_t *ret_size);

/* Write the whole file to disk, readable by owner and group only (0640), and replace path
 * atomically. Errors as above and -errno. */
int sgp_safetensors_write(
    const struct sgp_model_contents *contents, const char *path, struct sgp_error *error);

/* A model that was read; the caller owns it. */
struct sgp_model_file {
    float *values;
    uint64_t value_count;
    struct sgp_file_tensor *tensors; /* by `first` */
    uint32_t tensor_count;
    void *metadata; /* private */
};

/* Read a file, or the bytes of a file; messages call the bytes `name`. Only files that this library
 * wrote can be read, since the digest is checked. SGP_E_FILE with one line if the file is damaged
 * or of another kind, SGP_E_LIMIT, -ENOMEM, -errno. */
int sgp_safetensors_read(
    const char *path, struct sgp_error *error, struct sgp_model_file **ret_file);
int sgp_safetensors_decode(const void *bytes, size_t size, const char *name,
    struct sgp_error *error, struct sgp_model_file **ret_file);

/* Read the tensors and tags only, from the head of a file. `data_bytes` of values follow the head.
 * Any safetensors file of float32 tensors that begins with its __metadata__ is accepted. No digest
 * is required, and `values` is NULL. Messages call the file `name`. SGP_E_FILE, SGP_E_LIMIT,
 * -ENOMEM. */
int sgp_safetensors_layout(const void *head, size_t head_bytes, uint64_t data_bytes,
    const char *name, struct sgp_error *error, struct sgp_model_file **ret_file);

/* Where each tensor of the file ends. ret_ends has file->tensor_count entries. Values from
 * `values_from` on do not count as matrix parameters, whatever their shape. */
void sgp_model_file_tensors(
    const struct sgp_model_file *file, uint64_t values_from, struct sgp_tensor_end *ret_ends);

/* The value of a tag, or NULL; valid until the file is destroyed. */
const char *sgp_model_file_tag(const struct sgp_model_file *file, const char *key);

/* Tag number `index` from 0, in the order of the file and valid as above; false after the last. */
bool sgp_model_file_tag_at(
    const struct sgp_model_file *file, uint32_t index, struct sgp_file_tag *ret_tag);

/* Free; NULL is fine. */
void sgp_model_file_destroy(struct sgp_model_file *file);

/* Write the tensors as a .npz (zip, stored) that numpy.load reads. Tags are left out. A file above
 * 4 GiB is refused with SGP_E_LIMIT. -errno, -ENOMEM. */
int sgp_npz_write(
    const struct sgp_model_contents *contents, const char *path, struct sgp_error *error);

#endif
