/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon does of its own accord once the core notes how far it has come. Thread: the loop thread. */
#ifndef SGPD_MILESTONES_H
#define SGPD_MILESTONES_H

#include "state.h"

/* After the note was told: measure, save and checkpoint as it asks for. */
void milestones_reached(struct daemon *daemon, const struct sgp_effect *effect);

#endif
