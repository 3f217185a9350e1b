/* SPDX-License-Identifier: Apache-2.0 */
/* Restarting: which data of the last process the next one may rely on. Daemons and the simulator
 * use one rule.
 *
 * The record (sgp/record.h) holds the weight and is always up to date. A checkpoint holds the
 * parameters, and the content of owed shares, of the moment at which it was made. As long as
 * nothing was committed since, both describe one moment, and the node continues exactly from there.
 * The first commit supersedes the checkpoint. A superseded checkpoint still has an estimate.
 *
 * Pure functions. Thread: any. */
#ifndef SGP_RESTART_H
#define SGP_RESTART_H

#include "sgp/node.h"
#include "sgp/record.h"

/* The data that an earlier process left. */
struct sgp_past {
    struct sgp_record *record; /* the last record; NULL: there is none, or it cannot be read */
    uint64_t sequence;         /* of it */
    /* It was changed since it was written: it owed shares to nodes that no file names now. */
    bool altered;
    bool evident; /* there was such a process, whatever data is left of it */
    const struct sgp_recovery_point
        *point; /* of its newest whole checkpoint; NULL: there is none */
};

struct sgp_restart {
    uint64_t incarnation;
    /* Continue from the checkpoint: parameters, weight and owed shares are of one moment. */
    bool exact;
    /* Nothing has been given since the checkpoint, so the rest of the updates in it is still valid.
     * A worker's checkpoint is never exact, since its parameters are its owner's. */
    bool current;
    bool minted; /* the node begins with weight 1, which may also exist elsewhere */
    bool seeks;  /* a neighbour's estimate is better than its own (sgp_node_config) */
    /* The initial x is the checkpoint's times this; 0: there is none. 1 if exact; otherwise x is an
     * estimate, at weight 1. */
    double scale;
};

/* `fresh` is the incarnation of a process without a past, not 0. A node has `slots` snapshots. The
 * link of each share whose content is kept is marked in the record (`owed_kept`), and kept[j]
 * belongs into slot j. */
void sgp_restart(
    const struct sgp_past *past, uint64_t fresh, uint32_t slots, struct sgp_restart *ret_restart);

/* The recovery point of a checkpoint that is made now, between two steps. `record` was committed
 * last, under `sequence`. ret_slots[j] is the snapshot slot of kept[j]; its content must be taken
 * at this place of the queue of jobs. During training nothing is kept: the next commit would
 * supersede the checkpoint at once. */
void sgp_node_recovery_point(const struct sgp_node *node, const struct sgp_record *record,
    uint64_t sequence, struct sgp_recovery_point *ret_point, uint32_t ret_slots[SGP_KEPT_MAX]);

#endif
