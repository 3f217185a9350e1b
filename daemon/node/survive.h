/* SPDX-License-Identifier: Apache-2.0 */
/* What an earlier process of this node left, and what this process leaves. Thread: the loop
 * thread. */
#ifndef SGPD_SURVIVE_H
#define SGPD_SURVIVE_H

#include "state.h"

/* Open the ledger and the last checkpoint. They complete *config, and give the learner its
 * parameters. */
int survive_open(struct daemon *daemon, struct sgp_node_config *config, struct sgp_error *error);
/* Once there are snapshot slots: restore the snapshots of owed shares, and free the checkpoint. */
void survive_restore(struct daemon *daemon);
/* Whether x is of round 0, whatever the node's round, and the node does not train. */
bool survive_is_untrained(const struct sgp_node_status *status);
/* The number of rounds whose training was lost here, because no parameters of them were left.
 * 0: none. */
sgp_round survive_lost_rounds(
    const struct survive_found *found, const struct sgp_node_status *status);
void survive_start_timer(struct daemon *daemon);
/* Write a checkpoint. During the steps of a round it is only an estimate. Returns 0, -EBUSY or
 * SGP_E_STATE. */
int survive_checkpoint(struct daemon *daemon);
/* The node has left for good: put ledger and checkpoints aside, because a later start is that of a
 * new member. */
void survive_retire(struct daemon *daemon);

#endif
