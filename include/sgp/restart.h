/* SPDX-License-Identifier: Apache-2.0 */
/* Restarting: what the next process of a node may rely on of all that the last one left. One rule, for
 * daemons and for the simulator.
 *
 * The record (sgp/record.h) holds the weight and is always of the last moment. A checkpoint holds the
 * parameters, and the content of shares that were owed, of the moment at which it was made. As long as
 * nothing was committed since, both describe one moment, and the node goes on exactly from there; the first
 * commit spends the checkpoint. A spent one still has an estimate.
 *
 * Pure functions. Thread: any. */
#ifndef SGP_RESTART_H
#define SGP_RESTART_H

#include "sgp/node.h"
#include "sgp/record.h"

/* What an earlier process left. */
struct sgp_past {
    struct sgp_record *record; /* the last one; NULL: none, or none that can be read */
    uint64_t sequence;         /* of it */
    bool altered; /* it is not as it was written: it owed nodes that no file names now */
    bool evident; /* there was such a process, whatever is left of it */
    const struct sgp_moment *moment; /* of its newest whole checkpoint; NULL: there is none */
};

struct sgp_restart {
    uint64_t lineage;
    bool
        exact; /* go on from the checkpoint: parameters, weight and what is owed are of one moment */
    /* Nothing has been given since the checkpoint, so what updates had left out then is left out
     * still. A worker's checkpoint is never exact, since its parameters are its owner's. */
    bool current;
    bool minted; /* it begins with weight 1, which may exist elsewhere */
    bool seeks;  /* a neighbour's estimate is better than what it has (sgp_node_config) */
    double
        scale; /* x to begin with is the checkpoint's times this; 0: it has none. Exact: 1; else it is an
                     estimate, at weight 1 */
};

/* `fresh` is the lineage of a process without a past, not 0. A node has `slots` snapshots: the link of each
 * share whose content is kept is marked in the record (`owed_kept`), and kept[j] belongs into slot j. */
SGP_API void sgp_restart(
    const struct sgp_past *past, uint64_t fresh, uint32_t slots, struct sgp_restart *ret_restart);

/* The moment of a checkpoint that is made now, between two steps. `record` is what was committed last, under
 * `sequence`. ret_slots[j] is the snapshot slot of kept[j]; its content must be taken at this place of the
 * queue of jobs. While rounds are made nothing is kept: the next commit would spend it at once. */
SGP_API void sgp_node_moment(const struct sgp_node *node, const struct sgp_record *record,
    uint64_t sequence, struct sgp_moment *ret_moment, uint32_t ret_slots[SGP_KEPT_MAX]);

#endif
