/* SPDX-License-Identifier: Apache-2.0 */
/* From where neighbours call: the addresses to which the names of the topology file resolve.
 *
 * Literal addresses are known at once. Names are resolved in libuv's pool, one at a time, and again
 * every minute, since they may move. Until then, or if it calls from elsewhere, a neighbour is one
 * of the callers whom nobody expects (listener.h).
 *
 * Fails: if a name does not resolve, all known addresses stay until all do. Thread: the loop
 * thread. */
#ifndef SGPD_CALLERS_H
#define SGPD_CALLERS_H

#include "sgp/topology.h"

#include <uv.h>

#define CALLERS_AGAIN_MS 60000u

struct caller { /* an IPv6 address; one of IPv4 is mapped */
    uint8_t bytes[16];
};

struct callers {
    uv_timer_t timer;
    uv_getaddrinfo_t resolver;
    const struct sgp_topology *topology;
    uint32_t self;
    uint32_t next; /* node to be looked at */
    bool resolving, again, closing;
    bool failed;          /* in this pass: a name had no answer */
    struct caller *known; /* sorted */
    size_t count;
    struct caller *found; /* in this pass */
    size_t found_count, found_capacity;
};

void callers_open(struct callers *callers, uv_loop_t *loop);
/* Another file, from now on; the caller's, which it keeps. `self` does not call. */
void callers_resolve(struct callers *callers, const struct sgp_topology *topology, uint32_t self);
bool callers_expect(const struct callers *callers, const struct sockaddr *address);
/* The loop has to see the handles through; then callers_finish. */
void callers_close(struct callers *callers);
void callers_finish(struct callers *callers);

#endif
