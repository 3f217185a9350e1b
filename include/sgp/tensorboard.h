/* SPDX-License-Identifier: Apache-2.0 */
/* Event files of TensorBoard: numbers by name and step, appended to a file.
 *
 * A file is a sequence of records: the length of the message in 8 bytes, the masked CRC32C of these
 * bytes in 4, the message, and its masked CRC32C in 4; all little-endian. The mask of a checksum c
 * is (c >> 15 | c << 17) + 0xa282ead8, modulo 2^32. A message is an `Event` of protocol buffers.
 * The first one names the version, `brain.Event:2`. Source: record_writer and event.proto of
 * https://github.com/tensorflow/tensorboard, and TFRecord in TensorFlow's guide; CRC32C: RFC 3720.
 *
 * Each record is written with one write and not synced. A killed process loses at most the record
 * being written, and readers leave out an incomplete record at the end. TensorBoard shows the files
 * of one directory as one run.
 *
 * Thread: one at a time for a file; only one thread opens files. Blocks on the disk. */
#ifndef SGP_TENSORBOARD_H
#define SGP_TENSORBOARD_H

#include "sgp/status.h"

struct sgp_tensorboard; /* one file */

struct sgp_tensorboard_scalar {
    const char *tag; /* UTF-8 */
    double value;    /* finite; stored as float32 */
};

/* Create a new file in this directory: events.out.tfevents.SECONDS.HOST.PID.NUMBER. The directory
 * is created if it is missing, but not those above it. Only owner and group can read the file. A
 * symbolic link in the place of the file is not followed. The first call loads libisal, which
 * computes CRC32C.
 *
 * seconds: the time of the first record, since 1970, > 0. Returns 0; SGP_E_CONFIG without libisal;
 * or -errno or -ENOMEM; all with *error. */
int sgp_tensorboard_open(const char *directory, double seconds, struct sgp_error *error,
    struct sgp_tensorboard **ret_file);

/* Append scalars [0..count) of one step as one record; count 0 adds nothing. seconds: the time,
 * since 1970. After a failure the file has only complete records, so the next call may succeed.
 * Returns 0; or -errno or -ENOMEM with *error. */
int sgp_tensorboard_add(struct sgp_tensorboard *file, double seconds, int64_t step,
    const struct sgp_tensorboard_scalar *scalars, size_t count, struct sgp_error *error);

/* The path of the file; valid until it is closed. */
const char *sgp_tensorboard_path(const struct sgp_tensorboard *file);

/* Close the file. NULL is fine. */
void sgp_tensorboard_close(struct sgp_tensorboard *file);

#endif
