/* SPDX-License-Identifier: Apache-2.0 */
/* One line of text a step, more where one does not hold it: the same in tests, simulator, daemon and replay.
 *
 *     t=NS node=NAME state=.. round=K w=W event=.. peer=.. do=..,..
 *     t=NS node=NAME round=K waits=share peer=NAME
 *
 * The second follows a step after which the node waits for something else, or for nothing. Lines go to the
 * driver's sink. */
#ifndef SGP_CORE_TRACE_H
#define SGP_CORE_TRACE_H

#include "sgp/driver.h"

/* The event is stepped, its effects lie in the driver's list and are not performed yet. */
void sgp_trace_step(struct sgp_driver *driver, const struct sgp_event *event);

/* The same of a reload. Its effects name peers as the topology before it did. */
void sgp_trace_reload(struct sgp_driver *driver, const struct sgp_topology *former);

#endif
