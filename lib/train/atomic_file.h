/* SPDX-License-Identifier: Apache-2.0 */
/* Replacing a file at once: readers see the old one or the new one, whole, even across a crash.
 *
 * Owns a descriptor and the temporary name PATH.new beside the target; what a crash leaves there is
 * removed by the next write. One writer of a path at a time. Blocks on the disk. The first
 * failure sticks: later writes do nothing and commit reports it. */
#ifndef SGP_TRAIN_ATOMIC_FILE_H
#define SGP_TRAIN_ATOMIC_FILE_H

#include "sgp/status.h"

#include <sys/types.h>

/* Models and checkpoints tell of the rows that they were trained on: not for everybody. */
#define SGP_ATOMIC_PRIVATE 0640
#define SGP_ATOMIC_PUBLIC 0644

struct sgp_atomic_file {
    int fd;
    int status;       /* the first failure, or 0 */
    const char *path; /* borrowed */
    char *temporary;
};

/* `mode` as of open(2), before the umask. -errno with *error set; then nothing is open. */
int sgp_atomic_open(
    struct sgp_atomic_file *file, const char *path, mode_t mode, struct sgp_error *error);
void sgp_atomic_write(struct sgp_atomic_file *file, const void *bytes, size_t size);

/* What was written is on the disk, or the failure is known, before anything else is renamed. */
void sgp_atomic_sync(struct sgp_atomic_file *file);

/* Sync, rename, sync the directory; or, after any failure, remove the temporary file. Closes in
 * either case. -errno with *error set. */
int sgp_atomic_commit(struct sgp_atomic_file *file, struct sgp_error *error);

#endif
