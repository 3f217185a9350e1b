/* SPDX-License-Identifier: Apache-2.0 */
/* Strangers become neighbours, and connections' news become events. Thread: the loop thread. */
#ifndef SGPD_NEIGHBOURS_H
#define SGPD_NEIGHBOURS_H

#include "state.h"

/* For the listener: a stranger said hello. The link is the edge's from now on, or refused. */
void neighbours_on_hello(void *context, struct link *link, const struct sgp_message *message);

/* A link that stands becomes a neighbour's. */
void neighbours_take_over(
    struct daemon *daemon, struct link *link, uint32_t peer, enum sgp_direction direction);

/* For the dialer: a dial ended. */
void neighbours_on_dialled(
    void *context, uint32_t peer, struct link *link, int code, const char *text);

#endif
