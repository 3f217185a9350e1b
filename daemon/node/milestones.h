/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon does by itself when the core reports progress. Thread: the loop thread. */
#ifndef SGPD_MILESTONES_H
#define SGPD_MILESTONES_H

#include "state.h"

/* After the note was logged: measure, save and checkpoint if due. */
void milestones_reached(struct daemon *daemon, const struct sgp_effect *effect);

#endif
