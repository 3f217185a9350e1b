/* SPDX-License-Identifier: Apache-2.0 */
/* Callers become neighbours, and connection events become core events. Thread: the loop thread. */
#ifndef SGPD_NEIGHBOURS_H
#define SGPD_NEIGHBOURS_H

#include "state.h"

/* For the listener: a caller has said hello. The link now belongs to the edge, or is refused. */
void neighbours_on_hello(void *context, struct link *link, const struct sgp_message *message);

/* An existing link becomes a neighbour's. */
void neighbours_take_over(
    struct daemon *daemon, struct link *link, uint32_t peer, enum sgp_direction direction);

/* For the dialer: a dial has ended. */
void neighbours_on_dialled(
    void *context, uint32_t peer, struct link *link, int code, const char *text);

#endif
