/* SPDX-License-Identifier: Apache-2.0 */
/* The trace: one line of text for each step, or more if the text does not fit. It is the same in
 * tests, simulator, daemon and replay.
 *
 *     t=NS node=NAME state=.. round=K w=W event=.. peer=.. do=..,..
 *     t=NS node=NAME round=K waits=share peer=NAME
 *
 * The second line follows a step that changes what the node waits for. Lines go to the driver's
 * sink. */
#ifndef SGP_CORE_TRACE_H
#define SGP_CORE_TRACE_H

#include "sgp/driver.h"

/* Log a step after it was computed: its effects are in the driver's list, and not performed yet. */
void sgp_trace_step(struct sgp_driver *driver, const struct sgp_event *event);

/* The same for a reload. Its effects name peers by the topology before the reload. */
void sgp_trace_reload(struct sgp_driver *driver, const struct sgp_topology *former);

#endif
