/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic replacement of a file: readers see the whole old file or the whole new file, even after a
 * crash. Owns a descriptor and the temporary name PATH.new beside the target. If a crash leaves
 * that file, the next write removes it. A path must have one writer at a time. Blocks on the disk.
 * The first failure is kept: later writes do nothing, and commit reports it. */
#ifndef SGP_TRAIN_ATOMIC_FILE_H
#define SGP_TRAIN_ATOMIC_FILE_H

#include "sgp/status.h"

#include <sys/types.h>

/* Models and checkpoints reveal facts about their training rows, so only owner and group may read
 * them. */
#define SGP_ATOMIC_PRIVATE 0640
#define SGP_ATOMIC_PUBLIC 0644

struct sgp_atomic_file {
    int fd;
    int status;       /* the first failure, or 0 */
    const char *path; /* borrowed */
    char *temporary;
};

/* Open the temporary file. `mode` is as in open(2), before the umask. Returns -errno with *error
 * set; then no file is open. */
int sgp_atomic_open(
    struct sgp_atomic_file *file, const char *path, mode_t mode, struct sgp_error *error);
void sgp_atomic_write(struct sgp_atomic_file *file, const void *bytes, size_t size);

/* Sync what was written, or record the failure, before any other file is renamed. */
void sgp_atomic_sync(struct sgp_atomic_file *file);

/* Sync, rename, and sync the directory. After any failure, remove the temporary file instead.
 * Closes in both cases. Returns -errno with *error set. */
int sgp_atomic_commit(struct sgp_atomic_file *file, struct sgp_error *error);

/* Whether a file can be written there: write a byte under the temporary name, and remove it.
 * Returns -errno with *error set. */
int sgp_atomic_try(const char *path, mode_t mode, struct sgp_error *error);

#endif
