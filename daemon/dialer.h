/* SPDX-License-Identifier: Apache-2.0 */
/* Outgoing connections: a name to addresses, one address after the other, to a connection.
 *
 * Fails: a name that does not resolve, addresses that refuse, or no answer within five seconds; told
 * once, never retried here: when to dial again is the core's decision. Thread: the loop thread; names
 * are resolved in libuv's pool. */
#ifndef SGPD_DIALER_H
#define SGPD_DIALER_H

#include "link.h"

#define DIALER_TIMEOUT_MS 5000u

struct dial;

struct dialer {
    uv_loop_t *loop;
    void *context;
    /* The end of a dial: a link that stands and is not started, to be taken over; or NULL and why. */
    void (*dialled)(void *context, uint32_t peer, struct link *link, int code);
    struct dial *dials; /* under way */
};

void dialer_init(struct dialer *dialer, uv_loop_t *loop, void *context,
    void (*dialled)(void *context, uint32_t peer, struct link *link, int code));

/* Dial HOST:PORT. `dialled` follows, never from within this call. */
void dialer_dial(struct dialer *dialer, uint32_t peer, const char *address);

/* Give up all dials under way; `dialled` is not called for them. The loop has to see the handles
 * through. */
void dialer_give_up(struct dialer *dialer);

#endif
