/* SPDX-License-Identifier: Apache-2.0 */
/* Machines that join by an invitation (sgp/invitation.h, docs/FLEET.md).
 *
 * A guest is a caller that speaks TLS with a key that the topology file gives to nobody. It is let
 * in while an invitation is remembered, and may say SGP_JOIN alone. An accepted guest gets the
 * topology file and the shared settings, and is pending until a later topology file names it.
 *
 * Bounds: SGP_INVITATIONS_MAX invitations, GUESTS_MAX connections of accepted guests, and for each
 * of these the two texts. A refused guest costs one connection and four digests.
 *
 * Thread: the loop thread. */
#ifndef SGPD_GUESTS_H
#define SGPD_GUESTS_H

#include "state.h"

#define GUESTS_MAX 8u /* accepted guests at a time; one more ends the oldest */
#define GUESTS_SILENCE_NS (10 * SGP_SECOND)

/* 0 or -ENOMEM. */
int guests_open(struct daemon *daemon, struct sgp_error *error);
/* End the connections of all guests. */
void guests_silence(struct daemon *daemon);
/* The loop must run until the handles are closed; then guests_finish. */
void guests_close(struct daemon *daemon);
void guests_finish(struct daemon *daemon);

/* Whether a caller is let in whose key is not in the topology file. */
bool guests_are_awaited(const struct daemon *daemon);

/* For the listener: whether the key of a caller is in no topology file; and a guest's message. */
bool guests_has(void *context, const struct link *link);
void guests_on_join(void *context, struct link *link, const struct sgp_message *message);

/* A topology file has taken the place of the former: the invitations of its nodes have ended, so
 * that a node which a later file strikes is not pending again. */
void guests_reloaded(struct daemon *daemon);

/* What the status shows. */
void guests_status(const struct daemon *daemon, struct view_status *status);

/* Fill in invite and invitations. */
void guests_offer(struct view_actions *actions);

#endif
