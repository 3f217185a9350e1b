/* SPDX-License-Identifier: Apache-2.0 */
/* What onlookers (view.h) and signals order. Thread: the loop thread. */
#ifndef SGPD_ORDERS_H
#define SGPD_ORDERS_H

#include "state.h"

/* The service manager is told that the daemon ends; not at a reset, after which it goes on. */
void orders_tell_stopping(const struct daemon *daemon);

/* A clean end, then a new start in another run; with `join`, in the run of the neighbours. */
void orders_reset(struct daemon *daemon, bool join);

/* Ask for a clean end, as SIGTERM does. */
void orders_stop(struct daemon *daemon);

/* The core has ended: tell whoever waits for the node to leave that it has, or that it will not. */
void orders_answer_leaver(struct daemon *daemon, const struct sgp_node_status *status);

/* Fill in pause, resume, stop, checkpoint, reload and leave. */
void orders_offer(struct view_actions *actions);

#endif
