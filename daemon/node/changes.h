/* SPDX-License-Identifier: Apache-2.0 */
/* The differences of two topologies for people: one log line for each, and their number. Nodes
 * correspond by name, and phases by order. Pure except for the log. Thread: the loop thread. */
#ifndef SGPD_CHANGES_H
#define SGPD_CHANGES_H

#include "util/view.h"

#include "sgp/sink.h"

#define CHANGES_LINES_MAX 50u /* further lines are only counted */

/* Log every change as `event=topology change=...`, and count them all. */
void changes_tell(const struct sgp_topology *former, const struct sgp_topology *topology,
    const struct sgp_sink *sink, struct view_reload *ret_reload);

#endif
