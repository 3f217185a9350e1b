/* SPDX-License-Identifier: Apache-2.0 */
/* The only way into the core: step an event, and process its consequences. Thread: the loop
 * thread. */
#ifndef SGPD_EVENTS_H
#define SGPD_EVENTS_H

#include "state.h"

sgp_time events_now(void);

/* Start the timer of the core's deadline, and the handle that ends each turn of the loop with short
 * jobs and writes. */
void events_open(struct daemon *daemon);
void events_close(struct daemon *daemon);

/* Step an event (its `now` is filled in), then process its consequences. Never from an
 * operation. */
void events_post(struct daemon *daemon, struct sgp_event event);

/* After links failed, or a job ended, outside of a step: tell the core, end, or set the timer. */
void events_settle(struct daemon *daemon);

#endif
