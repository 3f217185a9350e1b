/* SPDX-License-Identifier: Apache-2.0 */
/* The rollout of signed topology files (docs/ROLLOUT.md). This node tries what is proposed, votes,
 * and counts the votes in the rows of the fleet. It uses a version that has them all, or that a
 * neighbour uses. A version that cannot be used is tried again after a pause. Thread: the loop
 * thread. */
#ifndef SGPD_ROLLOUTS_H
#define SGPD_ROLLOUTS_H

#include "state.h"

/* From now on; nothing happens without administrators. 0 or -ENOMEM. */
int rollouts_open(struct daemon *daemon);
void rollouts_finish(struct daemon *daemon);

/* What users see of it, and documents that they push. */
void rollouts_offer(struct view_actions *actions);
void rollouts_view(struct daemon *daemon, struct view_rollout *ret_rollout);

#endif
