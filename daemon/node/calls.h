/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to a node that cannot be dialled (address=none in the topology file): it makes them all, those of its in-edges,
 * too, and says CALL on these; then their source greets as if it had dialled. Thread: the loop thread. */
#ifndef SGPD_CALLS_H
#define SGPD_CALLS_H

#include "state.h"

#define CALLS_PACE_MS 1000u /* between two tries */
#define CALLS_GREETING_NS (10 * SGP_SECOND)

/* Begin to call, if this node is such a one. */
void calls_open(struct daemon *daemon);
/* Another file: what is under way is given up, and begins again. */
void calls_reload(struct daemon *daemon);
void calls_close(struct daemon *daemon);

/* For the listener: one of them calls. */
void calls_on_call(void *context, struct link *link, const struct sgp_message *message);

#endif
