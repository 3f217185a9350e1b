/* SPDX-License-Identifier: Apache-2.0 */
/* Private steps of the running node: charged before they are taken, and done when epsilon is spent.
 * Fails: no account, at the start. Thread: the loop thread. */
#ifndef SGPD_PRIVACY_H
#define SGPD_PRIVACY_H

#include "state.h"

/* Open the account, before anything else is written to the state directory. 0, or negative with
 * *error. Without [privacy] there is none, and a former one is an error, except at a relay. */
int privacy_open(struct daemon *daemon, struct sgp_error *error);

/* Whether so many steps may be taken now; then they are charged. False if epsilon is spent, or if
 * the disk does not take the charge. Always true without [privacy]. */
bool privacy_may_step(struct daemon *daemon, uint32_t steps);

/* Fill in what the status shows. */
void privacy_view(const struct daemon *daemon, struct view_status *view);

void privacy_close(struct daemon *daemon);

#endif
