/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to a node that cannot be dialled (address=none in the topology file). Such a node
 * makes all its connections itself, including those of its in-edges, on which it sends CALL. Then
 * their source greets as if it had dialled. Thread: the loop thread. */
#ifndef SGPD_CALLS_H
#define SGPD_CALLS_H

#include "state.h"

#define CALLS_PACE_MS 1000u /* interval between two attempts */
#define CALLS_GREETING_NS (10 * SGP_SECOND)

/* Start to call, if this node cannot be dialled. */
void calls_open(struct daemon *daemon);
/* Another file: pending calls are dropped, and calling starts again. */
void calls_reload(struct daemon *daemon);
/* Call nobody any more, and end pending calls. */
void calls_silence(struct daemon *daemon);
void calls_close(struct daemon *daemon);

/* For the listener: such a node calls. */
void calls_on_call(void *context, struct link *link, const struct sgp_message *message);

#endif
