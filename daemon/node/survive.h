/* SPDX-License-Identifier: Apache-2.0 */
/* What an earlier process of this node left, and what this one leaves. Thread: the loop thread. */
#ifndef SGPD_SURVIVE_H
#define SGPD_SURVIVE_H

#include "state.h"

/* Open ledger and last checkpoint: they complete *config, and give the learner its parameters. */
int survive_open(struct daemon *daemon, struct sgp_node_config *config, struct sgp_error *error);
/* Once there are snapshot slots: put back what is owed since then, and forget the checkpoint. */
void survive_restore(struct daemon *daemon);
/* The number of rounds that are lost: x is of round 0, and the node does not train. 0: no round is lost. */
sgp_round survive_lost_rounds(const struct sgp_node_status *status);
void survive_start_timer(struct daemon *daemon);
/* Write a checkpoint, amid a round's steps as a mere estimate: 0, -EBUSY or SGP_E_STATE. */
int survive_checkpoint(struct daemon *daemon);
/* It has left for good: put ledger and checkpoints aside, for a later start is a new member's. */
void survive_retire(struct daemon *daemon);

#endif
