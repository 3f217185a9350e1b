/* Checkpoints: all that a node's training is, in one file, replaced at once and never half.
 *
 *     header (128 bytes) | x, float32 | velocity, float32, or nothing | snapshots, float32 |
 *     XXH3-64 of all before
 *
 * Little-endian. The file before the last is kept beside it as PATH.1, so a checkpoint that is damaged
 * costs what was learnt since the one before and no more.
 *
 * Fails: what the disk says, and bytes that are not a whole checkpoint of this model; one line that
 * names the file. Blocks on the disk. Any thread. */
#ifndef SGP_CHECKPOINT_H
#define SGP_CHECKPOINT_H

#include "sgp/learner.h"

#define SGP_CHECKPOINT_SNAPSHOTS_MAX 4u

/* The content of the shares that were given in a round and are owed still. */
struct sgp_checkpoint_snapshot {
    sgp_round round;
    const float *values; /* `parameters` of them */
};

struct sgp_checkpoint {
    uint64_t parameters;
    uint64_t shape;    /* digest of the model, sgp_model_shape_digest */
    uint64_t lineage;  /* of the node */
    uint64_t sequence; /* of the ledger that describes this very moment; see sgp_record */
    sgp_round round;
    double weight; /* w of x; > 0 or the estimate is unknown, finite */
    struct sgp_learner_state state;
    uint32_t snapshot_count; /* at most SGP_CHECKPOINT_SNAPSHOTS_MAX */
    struct sgp_checkpoint_snapshot snapshots[SGP_CHECKPOINT_SNAPSHOTS_MAX];
};

/* Write to PATH, for owner and group (0640) alone; what stood there becomes PATH.1. Returns 0, or -errno with *error. */
SGP_API int sgp_checkpoint_write(
    const char *path, const struct sgp_checkpoint *checkpoint, struct sgp_error *error);

/* Read PATH for a model of `parameters` and `shape`. On success *ret_memory, to be freed by the caller,
 * holds the vectors of *ret_checkpoint. Returns 0; -ENOENT; SGP_E_DATA when the file is damaged or of
 * another model; -errno; -ENOMEM. */
SGP_API int sgp_checkpoint_read(const char *path, uint64_t parameters, uint64_t shape,
    struct sgp_error *error, struct sgp_checkpoint *ret_checkpoint, float **ret_memory);

#endif
