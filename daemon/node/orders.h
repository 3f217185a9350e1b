/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of users (view.h) and of signals. Thread: the loop thread. */
#ifndef SGPD_ORDERS_H
#define SGPD_ORDERS_H

#include "state.h"

/* Tell the service manager that the daemon ends. Not at a reset, because the daemon then
 * continues. */
void orders_tell_stopping(const struct daemon *daemon);

/* End cleanly, then start again in another run. With `join`, in the run of the neighbours. */
void orders_reset(struct daemon *daemon, bool join);

/* Request a clean end, like SIGTERM. */
void orders_stop(struct daemon *daemon);

/* The core has ended: answer the user who waits for the node to leave, with success or failure. */
void orders_answer_leaver(struct daemon *daemon, const struct sgp_node_status *status);

/* Fill in pause, resume, stop, checkpoint, reload and leave. */
void orders_offer(struct view_actions *actions);

#endif
