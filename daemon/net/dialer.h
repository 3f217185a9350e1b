/* SPDX-License-Identifier: Apache-2.0 */
/* Outgoing connections: a name to addresses, one address after the other, to a connection, ciphered
 * if its owner says so.
 *
 * Where a cipher is offered and not required, a connection that ends before the peer has shown a
 * key is tried once more without one. A peer that has shown a wrong key is never tried without.
 *
 * Fails: a name that does not resolve, addresses that refuse, another key, or no answer within five
 * seconds; told once. When to dial again is the core's decision. Thread: the loop thread; names are
 * resolved in libuv's pool. */
#ifndef SGPD_DIALER_H
#define SGPD_DIALER_H

#include "link.h"

#include "sgp/topology.h"

#include <sys/queue.h>

#define DIALER_TIMEOUT_MS 5000u

struct dial;

struct dialer_events {
    void *context;
    /* How to dial this peer: SGP_TLS_OFF, or with these settings, whose objection gets a copy of the node
     * (struct sgp_topology_node) as its context. Asked once for each dial. */
    enum sgp_tls (*tls)(void *context, uint32_t peer, struct sgp_cipher_settings *ret_settings);
    /* The end of a dial: a started link, to be taken over; or NULL, and why in a borrowed line. */
    void (*dialled)(void *context, uint32_t peer, struct link *link, int code, const char *text);
};

struct dialer {
    uv_loop_t *loop;
    struct dialer_events events;
    LIST_HEAD(, dial) dials; /* under way */
};

void dialer_init(struct dialer *dialer, uv_loop_t *loop, const struct dialer_events *events);

/* Dial a node, which is copied. True: `dialled` follows, never from within this call. False: out of memory; nothing follows. */
bool dialer_dial(struct dialer *dialer, uint32_t peer, const struct sgp_topology_node *node);

/* Give up all dials, without `dialled`. The loop has to see the handles through. */
void dialer_give_up(struct dialer *dialer);

#endif
