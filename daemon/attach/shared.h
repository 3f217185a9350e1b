/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters that a program hands over (sgp/attach.h): a memfd that is a safetensors file, its layout, and its place
 * in this process. It is believed in nothing: its size is sealed, or it could be cut under our feet; the header is read
 * once, and copied; the values are looked at when they are taken.
 *
 * Errors are one line for whoever attached. Blocks on no disk. Any thread. */
#ifndef SGPD_SHARED_H
#define SGPD_SHARED_H

#include "sgp/message.h"
#include "sgp/model_file.h"

struct shared {
    struct sgp_model_file *layout; /* without values; owned */
    void *head;                    /* the header, as layout files keep it; owned */
    size_t head_bytes;
    void *mapped; /* the whole; NULL: nothing is mapped */
    size_t bytes;
    float *values; /* in it */
};

/* Map what a descriptor leads to, which stays the caller's to close. Returns 0 or a negative code with *error. */
int shared_open(int descriptor, struct sgp_error *error, struct shared *ret_shared);
void shared_close(struct shared *shared); /* one that is zero is fine */

/* The first parameter that is a value and no update; the number of parameters: none is. */
uint64_t shared_values_from(const struct sgp_model_file *layout);

/* Of names, shapes, values_from and the digest of frozen parameters. Never 0. */
uint64_t shared_digest(const struct sgp_model_file *layout);

/* An entry of a layout (sgp/message.h), and a digest of all before it. NULL: a built-in model's. */
void shared_entry(const struct sgp_model_file *layout, uint32_t index, char text[SGP_LAYOUT_BYTES]);
uint64_t shared_before(const struct sgp_model_file *layout, uint32_t index);

/* 0 if they are of one model; SGP_E_CONFIG, and *error names the first tensor that differs. */
int shared_compare(const struct sgp_model_file *ours, const struct sgp_model_file *theirs,
    struct sgp_error *error);

/* A layout in a file of its own: the header alone. Writes replace it at once. -ENOENT if there is none. */
int shared_read_layout(
    const char *path, struct sgp_error *error, struct sgp_model_file **ret_layout);
int shared_write_layout(const char *path, const struct shared *shared, struct sgp_error *error);

#endif
