/* SPDX-License-Identifier: Apache-2.0 */
/* A pass over the nodes of the file, which takes the place of the one before when it is through; see callers.h. */
#include "callers.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static struct caller mapped(const struct sockaddr *address)
{
    struct caller caller = {{0}};
    if (address->sa_family == AF_INET6) {
        memcpy(caller.bytes, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
    } else if (address->sa_family == AF_INET) {
        caller.bytes[10] = caller.bytes[11] = 0xff;
        memcpy(caller.bytes + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
    }
    return caller;
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct caller));
}

bool callers_expect(const struct callers *callers, const struct sockaddr *address)
{
    const struct caller caller = mapped(address);
    return callers->count > 0 &&
           bsearch(&caller, callers->known, callers->count, sizeof caller, by_bytes) != NULL;
}

/* Without memory the pass knows fewer. */
static void add(struct callers *callers, const struct sockaddr *address)
{
    if (callers->found_count == callers->found_capacity) {
        size_t capacity = 2 * callers->found_capacity + 8;
        struct caller *found = realloc(callers->found, capacity * sizeof *found);
        if (found == NULL)
            return;
        callers->found = found;
        callers->found_capacity = capacity;
    }
    callers->found[callers->found_count++] = mapped(address);
}

static void go_on(struct callers *callers);

static void begin(struct callers *callers)
{
    callers->again = false;
    callers->next = 0;
    callers->found_count = 0;
    go_on(callers);
}

static void on_timer(uv_timer_t *timer)
{
    struct callers *callers = timer->data;
    begin(callers);
}

/* The pass is through. */
static void conclude(struct callers *callers)
{
    struct caller *former = callers->known;
    qsort(callers->found, callers->found_count, sizeof *callers->found, by_bytes);
    callers->known = callers->found;
    callers->count = callers->found_count;
    callers->found = former;
    callers->found_count = callers->found_capacity = 0;
    free(callers->found);
    callers->found = NULL;
    (void)uv_timer_start(&callers->timer, on_timer, CALLERS_AGAIN_MS, 0);
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses)
{
    struct callers *callers = request->data;
    callers->resolving = false;
    for (const struct addrinfo *it = status < 0 ? NULL : addresses; it != NULL; it = it->ai_next)
        add(callers, it->ai_addr);
    uv_freeaddrinfo(addresses);
    if (callers->closing)
        return;
    if (callers->again) /* the file has changed meanwhile */
        begin(callers);
    else
        go_on(callers);
}

/* Whether the host is an address itself, which is known then. */
static bool take_literal(struct callers *callers, const char *host)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    if (uv_ip4_addr(host, 0, &in) == 0)
        add(callers, (const struct sockaddr *)&in);
    else if (uv_ip6_addr(host, 0, &in6) == 0)
        add(callers, (const struct sockaddr *)&in6);
    else
        return false;
    return true;
}

/* Up to the next name that must be resolved, or to the end. */
static void go_on(struct callers *callers)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char host[SGP_ADDRESS_BYTES];
    uint16_t port;
    while (callers->next < callers->topology->node_count) {
        uint32_t node = callers->next++;
        const char *address = callers->topology->nodes[node].address;
        if (node == callers->self || !sgp_topology_is_dialled(callers->topology, node) ||
            sgp_address_split(address, NULL, host, &port) < 0 || take_literal(callers, host))
            continue;
        callers->resolver.data = callers;
        callers->resolving = uv_getaddrinfo(callers->timer.loop, &callers->resolver, on_resolved,
                                 host, NULL, &hints) == 0;
        if (callers->resolving)
            return;
    }
    conclude(callers);
}

void callers_open(struct callers *callers, uv_loop_t *loop)
{
    *callers = (struct callers){.closing = false};
    (void)uv_timer_init(loop, &callers->timer);
    callers->timer.data = callers;
}

void callers_resolve(struct callers *callers, const struct sgp_topology *topology, uint32_t self)
{
    callers->topology = topology;
    callers->self = self;
    callers->again = callers->resolving; /* by an index of the former file */
    if (!callers->resolving)
        begin(callers);
}

void callers_close(struct callers *callers)
{
    callers->closing = true;
    if (callers->resolving)
        (void)uv_cancel((uv_req_t *)&callers->resolver);
    uv_close((uv_handle_t *)&callers->timer, NULL);
}

void callers_finish(struct callers *callers)
{
    free(callers->known);
    free(callers->found);
}
