/* SPDX-License-Identifier: Apache-2.0 */
/* The core's effects in the real world. Thread: the loop thread. */
#ifndef SGPD_PERFORMER_H
#define SGPD_PERFORMER_H

#include "state.h"

/* x is wanted by an order, or the steps come too late: they end after the one that is taken now, and a program's turn after
 * PROGRAM_YIELD_MS at the latest. */
void performer_yield(struct daemon *daemon);

extern const struct sgp_driver_verbs performer_verbs; /* their context is the struct daemon */

#endif
