/* SPDX-License-Identifier: Apache-2.0 */
/* From where neighbours call: the addresses to which the names of the topology file resolve.
 *
 * Literal addresses are known at once. Names are resolved in libuv's pool, one at a time, and again
 * every minute, since they may change. Until its name is resolved, or if it calls from another
 * address, a neighbour counts as an unexpected caller (listener.h).
 *
 * Fails: if a name does not resolve, all known addresses are kept until all names resolve. Thread:
 * the loop thread. */
#ifndef SGPD_CALLERS_H
#define SGPD_CALLERS_H

#include "sgp/topology.h"

#include <uv.h>

#define CALLERS_AGAIN_MS 60000u

struct caller { /* an IPv6 address; an IPv4 address is mapped */
    uint8_t bytes[16];
};

struct callers {
    uv_timer_t timer;
    uv_getaddrinfo_t resolver;
    const struct sgp_topology *topology;
    uint32_t self;
    uint32_t next; /* index of the next node to examine */
    bool resolving, again, closing;
    bool failed;          /* in this pass: a name did not resolve */
    struct caller *known; /* sorted */
    size_t count;
    struct caller *found; /* in this pass */
    size_t found_count, found_capacity;
};

void callers_open(struct callers *callers, uv_loop_t *loop);
/* Use another file from now on. The caller owns the file and must keep it. `self` does not call. */
void callers_resolve(struct callers *callers, const struct sgp_topology *topology, uint32_t self);
bool callers_expect(const struct callers *callers, const struct sockaddr *address);
/* The loop must run until the handles are closed; then call callers_finish. */
void callers_close(struct callers *callers);
void callers_finish(struct callers *callers);

#endif
