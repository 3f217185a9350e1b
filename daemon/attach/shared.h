/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters that a program hands over (sgp/attach.h): a memfd that is a safetensors file, its
 * layout, and its mapping in this process.
 *
 * Nothing in the memory is trusted. Its size must be sealed, because the program could otherwise
 * truncate it while it is mapped. The header is read once, from a copy. The values are checked when
 * they are taken.
 *
 * Errors are one line for the program that attached. No function blocks on a disk. Any thread. */
#ifndef SGPD_SHARED_H
#define SGPD_SHARED_H

#include "sgp/message.h"
#include "sgp/model_file.h"

struct shared {
    struct sgp_model_file *layout; /* without values; owned */
    void *head;                    /* the header, as layout files keep it; owned */
    size_t head_bytes;
    void *mapped; /* the whole file; NULL: nothing is mapped */
    size_t bytes;
    float *values; /* in the mapping */
};

/* Map the file behind a descriptor. The caller still closes the descriptor. Returns 0 or a negative
 * code with *error. */
int shared_open(int descriptor, struct sgp_error *error, struct shared *ret_shared);
void shared_close(struct shared *shared); /* an all-zero struct is fine */

/* Index of the first parameter that is a value and not an update. If none is, the number of
 * parameters. */
uint64_t shared_values_from(const struct sgp_model_file *layout);

/* Digest of names, shapes, values_from and the digest of frozen parameters. Never 0. */
uint64_t shared_digest(const struct sgp_model_file *layout);

/* An entry of a layout (sgp/message.h), and a digest of all entries before it. NULL: a built-in
 * model's layout. */
void shared_entry(const struct sgp_model_file *layout, uint32_t index, char text[SGP_LAYOUT_BYTES]);
uint64_t shared_before(const struct sgp_model_file *layout, uint32_t index);

/* Returns 0 if both are of one model. Else SGP_E_CONFIG, and *error names the first tensor that
 * differs. */
int shared_compare(const struct sgp_model_file *ours, const struct sgp_model_file *theirs,
    struct sgp_error *error);

/* A layout in a file of its own: the header alone. A write replaces the file atomically. Returns
 * -ENOENT if there is no file. */
int shared_read_layout(
    const char *path, struct sgp_error *error, struct sgp_model_file **ret_layout);
int shared_write_layout(const char *path, const struct shared *shared, struct sgp_error *error);

#endif
