/* SPDX-License-Identifier: Apache-2.0 */
/* The one way into the core: step an event, settle what came of it. Thread: the loop thread. */
#ifndef SGPD_EVENTS_H
#define SGPD_EVENTS_H

#include "state.h"

sgp_time events_now(void);

/* The timer of the core's deadline, and what ends each turn of the daemon's loop: short jobs, then writes. */
void events_open(struct daemon *daemon);
void events_close(struct daemon *daemon);

/* Give the core an event (its `now` is filled in), then settle what came of it. Never from a verb. */
void events_post(struct daemon *daemon, struct sgp_event event);

/* After links failed, or a job ended, outside of a step: tell the core, end, or set the clock. */
void events_settle(struct daemon *daemon);

#endif
