/* SPDX-License-Identifier: Apache-2.0 */
/* What this node says about itself to the whole fleet. The journal gets a line when another node
 * becomes unheard-of by all, and one when it is back. Thread: the loop thread. */
#ifndef SGPD_FLEET_OWN_H
#define SGPD_FLEET_OWN_H

#include "state.h"

/* Make the timer that wakes a loop without other work for a turn. It starts only if the node
 * publishes. */
void fleet_own_open(struct daemon *daemon, bool publishes);
/* Before the loop waits: if SGP_FLEET_TURN_MS have passed, publish and send what is due. */
void fleet_own_turn(struct daemon *daemon);
/* Publish now, if what the row says has changed. */
void fleet_own_publish(struct daemon *daemon);
void fleet_own_close(struct daemon *daemon);

#endif
