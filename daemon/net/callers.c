/* SPDX-License-Identifier: Apache-2.0 */
/* A pass over the nodes of the file. When the pass is complete, its result replaces that of the
 * pass before; see callers.h. */
#include "callers.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_MOST 4u /* addresses of a node */

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

/* If memory is out, the pass knows fewer addresses. */
static void add(struct callers *callers, struct caller caller)
{
    if (callers->found_count == callers->found_capacity) {
        size_t capacity = 2 * callers->found_capacity + 8;
        struct caller *found = realloc(callers->found, capacity * sizeof *found);
        if (found == NULL)
            return;
        callers->found = found;
        callers->found_capacity = capacity;
    }
    callers->found[callers->found_count++] = caller;
}

static void sort(struct callers *callers)
{
    size_t kept = 0;
    if (callers->found_count > 0)
        qsort(callers->found, callers->found_count, sizeof *callers->found, by_bytes);
    for (size_t i = 0; i < callers->found_count; i++)
        if (i == 0 || by_bytes(&callers->found[i], &callers->found[kept - 1]) != 0)
            callers->found[kept++] = callers->found[i];
    callers->found_count = kept;
}

/* Publish what the pass found. While names fail, the addresses known before are kept as well, up to
 * a bound. */
static void publish(struct callers *callers, bool keep)
{
    keep = keep && callers->count <= KEPT_MOST * (size_t)callers->topology->node_count;
    for (size_t i = 0; keep && i < callers->count; i++)
        add(callers, callers->known[i]);
    sort(callers);
    free(callers->known);
    callers->known = callers->found;
    callers->count = callers->found_count;
    callers->found = NULL;
    callers->found_count = callers->found_capacity = 0;
}

/* ---- a pass ---- */

static void go_on(struct callers *callers);

/* The host of a node's address in the file, if the address can be dialled. */
static bool host_of(const struct callers *callers, uint32_t node, char host[SGP_ADDRESS_BYTES])
{
    const struct sgp_topology *topology = callers->topology;
    uint16_t port;
    return node != callers->self && sgp_topology_is_dialled(topology, node) &&
           sgp_address_split(topology->nodes[node].address, NULL, host, &port) >= 0;
}

/* Whether the host is an address itself. */
static bool is_literal(const char *host, struct caller *ret_caller)
{
    struct sockaddr_storage address;
    bool literal = uv_ip4_addr(host, 0, (struct sockaddr_in *)&address) == 0 ||
                   uv_ip6_addr(host, 0, (struct sockaddr_in6 *)&address) == 0;
    if (literal)
        *ret_caller = mapped((const struct sockaddr *)&address);
    return literal;
}

static void add_literals(struct callers *callers)
{
    char host[SGP_ADDRESS_BYTES];
    struct caller caller;
    for (uint32_t node = 0; node < callers->topology->node_count; node++)
        if (host_of(callers, node, host) && is_literal(host, &caller))
            add(callers, caller);
}

/* Literal addresses are published first, so that no node waits for the names of others. */
static void begin(struct callers *callers)
{
    callers->again = callers->failed = false;
    callers->next = 0;
    callers->found_count = 0;
    add_literals(callers);
    publish(callers, true);
    add_literals(callers);
    go_on(callers);
}

static void on_timer(uv_timer_t *timer)
{
    struct callers *callers = timer->data;
    begin(callers);
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses)
{
    struct callers *callers = request->data;
    callers->resolving = false;
    for (const struct addrinfo *it = status < 0 ? NULL : addresses; it != NULL; it = it->ai_next)
        add(callers, mapped(it->ai_addr));
    callers->failed = callers->failed || status < 0;
    uv_freeaddrinfo(addresses);
    if (callers->closing)
        return;
    if (callers->again) /* the file has changed meanwhile */
        begin(callers);
    else
        go_on(callers);
}

/* Continue to the next name that must be resolved, or to the end. */
static void go_on(struct callers *callers)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char host[SGP_ADDRESS_BYTES];
    struct caller caller;
    while (callers->next < callers->topology->node_count) {
        if (!host_of(callers, callers->next++, host) || is_literal(host, &caller))
            continue;
        callers->resolver.data = callers;
        callers->resolving = uv_getaddrinfo(callers->timer.loop, &callers->resolver, on_resolved,
                                 host, NULL, &hints) == 0;
        if (callers->resolving)
            return;
    }
    publish(callers, callers->failed);
    (void)uv_timer_start(&callers->timer, on_timer, CALLERS_AGAIN_MS, 0);
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
    callers->again = callers->resolving; /* the index is of the former file */
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
