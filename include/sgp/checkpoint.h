/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: the whole state of a node's training in one file, which is replaced atomically.
 *
 *     header (128 bytes) | names: of vectors, then of counters | x | vectors | snapshots |
 *     XXH3-64 of all before
 *
 * A name is 24 bytes, padded with zeros, and 8 more: the value of a counter, or the number of
 * values of the vector. That is the number of x, or of the parameters of local layers. Vectors are
 * float32. Their owners define which vectors there are (sgp/trainer.h); readers skip a vector that
 * they do not know. Little-endian. The previous file is kept as PATH.1, so a damaged checkpoint
 * costs only the training since the one before.
 *
 * It fails on disk errors, and on bytes that are not a whole checkpoint of this model, with one
 * line that names the file. It blocks on the disk. Any thread. */
#ifndef SGP_CHECKPOINT_H
#define SGP_CHECKPOINT_H

#include "sgp/learner.h"

struct sgp_checkpoint {
    uint64_t parameters;
    uint64_t shape; /* digest of the model, sgp_model_shape_digest */
    struct sgp_recovery_point point;
    struct sgp_trainer_state state;
    const float *kept[SGP_KEPT_MAX]; /* `parameters` values each, point.kept_count of them */
};

/* Write to PATH, readable by owner and group alone (0640); the previous file becomes PATH.1.
 * Returns 0, or -errno with *error. */
int sgp_checkpoint_write(
    const char *path, const struct sgp_checkpoint *checkpoint, struct sgp_error *error);

/* Read PATH for a model of `parameters` and `shape`. On success *ret_memory, to be freed by the
 * caller, holds the vectors of *ret_checkpoint. Returns 0; -ENOENT; SGP_E_DATA when the file is
 * damaged or of another model; -errno; -ENOMEM. */
int sgp_checkpoint_read(const char *path, uint64_t parameters, uint64_t shape,
    struct sgp_error *error, struct sgp_checkpoint *ret_checkpoint, float **ret_memory);

#endif
