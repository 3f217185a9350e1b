/* SPDX-License-Identifier: Apache-2.0 */
/* Outgoing connections: from a name to addresses, one address after the other, to a connection. The
 * connection is ciphered if its owner says so.
 *
 * A cipher may be offered and not required. If such a connection ends before the peer has shown a
 * key, it is tried once more without a cipher. After a peer has shown a wrong key, no attempt is
 * made without a cipher.
 *
 * Fails: a name that does not resolve, addresses that refuse, another key, or no answer within five
 * seconds. A failure is reported once. The core decides when to dial again. Thread: the loop
 * thread; names are resolved in libuv's pool. */
#ifndef SGPD_DIALER_H
#define SGPD_DIALER_H

#include "link.h"

#include "sgp/topology.h"

#include <sys/queue.h>

#define DIALER_TIMEOUT_MS 5000u

struct dial;

struct dialer_events {
    void *context;
    /* How to dial this peer: SGP_TLS_OFF, or a cipher with these settings. The `objection` of the
     * settings gets a copy of the node (struct sgp_topology_node) as its context. Called once for
     * each dial. */
    enum sgp_tls (*tls)(void *context, uint32_t peer, struct sgp_cipher_settings *ret_settings);
    /* The end of a dial: a started link, which the callee takes over. Or NULL, and the reason in a
     * borrowed line. */
    void (*dialled)(void *context, uint32_t peer, struct link *link, int code, const char *text);
};

struct dialer {
    uv_loop_t *loop;
    struct dialer_events events;
    LIST_HEAD(, dial) dials; /* in progress */
    bool silent;             /* nothing is dialled any more */
};

void dialer_init(struct dialer *dialer, uv_loop_t *loop, const struct dialer_events *events);

/* Dial a node, which is copied. True: `dialled` follows, never from within this call. False: out of
 * memory, or the dialer is silent; nothing follows. */
bool dialer_dial(struct dialer *dialer, uint32_t peer, const struct sgp_topology_node *node);

/* Give up all dials, without `dialled`. The loop must run until the handles are closed. */
void dialer_give_up(struct dialer *dialer);

/* The same, and dial nobody from now on. */
void dialer_silence(struct dialer *dialer);

#endif
