/* SPDX-License-Identifier: Apache-2.0 */
/* Dialling; see dialer.h.
 *
 * A dial ends in three steps: it is decided (told to the owner, or given up), its timer is closed, and
 * it is freed when neither the timer nor the resolver holds it any longer. A link that fails to
 * connect closes by itself. */
#include "dialer.h"

#include "sgp/topology.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

struct dial {
    struct dialer *dialer;
    struct dial *next;
    uint32_t peer;
    uint32_t holders; /* timer, resolver, connection attempt */
    bool decided;
    int code; /* of the last failure */
    uv_timer_t timer;
    uv_getaddrinfo_t resolver;
    uv_connect_t connect;
    struct addrinfo *addresses;
    struct addrinfo *address; /* being tried */
    struct link *link;        /* being connected */
};

static void ignore_link(struct link *link)
{
    (void)link;
}

static void ignore_message(struct link *link, const struct sgp_message *message)
{
    (void)link;
    (void)message;
}

static void ignore_code(struct link *link, int code)
{
    (void)link;
    (void)code;
}

static void ignore_failure(struct link *link, int code, const char *text)
{
    (void)link;
    (void)code;
    (void)text;
}

/* A link that is not started has nothing to say. */
static const struct link_events silent_events = {
    .message = ignore_message,
    .payload = ignore_code,
    .heard = ignore_link,
    .failed = ignore_failure,
    .freed = ignore_link,
};

static void release(struct dial *dial)
{
    if (--dial->holders > 0)
        return;
    uv_freeaddrinfo(dial->addresses);
    free(dial);
}

static void on_timer_closed(uv_handle_t *handle)
{
    release(handle->data);
}

/* Whatever is under way ends; whoever is told is told by the caller. */
static void conclude(struct dial *dial)
{
    struct dial **place = &dial->dialer->dials;
    while (*place != dial)
        place = &(*place)->next;
    *place = dial->next;
    dial->decided = true;
    (void)uv_cancel((uv_req_t *)&dial->resolver);
    uv_close((uv_handle_t *)&dial->timer, on_timer_closed);
}

static void succeed(struct dial *dial)
{
    struct link *link = dial->link;
    dial->link = NULL;
    conclude(dial);
    dial->dialer->dialled(dial->dialer->context, dial->peer, link, 0);
}

static void fail(struct dial *dial, int code)
{
    conclude(dial);
    if (dial->link != NULL)
        link_close(dial->link, NULL);
    dial->link = NULL;
    dial->dialer->dialled(dial->dialer->context, dial->peer, NULL, code);
}

static void try_next(struct dial *dial);

static void on_connected(uv_connect_t *request, int status)
{
    struct dial *dial = request->data;
    if (!dial->decided && status == 0) {
        succeed(dial);
    } else if (!dial->decided) {
        dial->code = status;
        link_close(dial->link, NULL);
        dial->link = NULL;
        dial->address = dial->address->ai_next;
        try_next(dial);
    }
    release(dial);
}

static void try_next(struct dial *dial)
{
    for (; dial->address != NULL; dial->address = dial->address->ai_next) {
        dial->link = link_create(dial->dialer->loop, &silent_events, NULL);
        if (dial->link == NULL) {
            dial->code = -ENOMEM;
            break;
        }
        dial->connect.data = dial;
        dial->code =
            uv_tcp_connect(&dial->connect, &dial->link->tcp, dial->address->ai_addr, on_connected);
        if (dial->code == 0) {
            dial->holders++;
            return;
        }
        link_close(dial->link, NULL);
        dial->link = NULL;
    }
    fail(dial, dial->code);
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses)
{
    struct dial *dial = request->data;
    dial->addresses = addresses;
    dial->address = addresses;
    if (!dial->decided && status < 0)
        fail(dial, status);
    else if (!dial->decided)
        try_next(dial);
    release(dial);
}

static void on_timeout(uv_timer_t *timer)
{
    fail(timer->data, -ETIMEDOUT);
}

/* What cannot even begin is told from the timer, so never from within dialer_dial. */
static void on_stillborn(uv_timer_t *timer)
{
    struct dial *dial = timer->data;
    fail(dial, dial->code);
}

static int resolve(struct dial *dial, const char *address)
{
    char host[SGP_ADDRESS_BYTES];
    char port_text[8];
    uint16_t port;
    int code = sgp_address_split(address, NULL, host, &port);
    if (code < 0)
        return code;
    (void)snprintf(port_text, sizeof port_text, "%u", port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    dial->resolver.data = dial;
    return uv_getaddrinfo(
        dial->dialer->loop, &dial->resolver, on_resolved, host, port_text, &hints);
}

void dialer_init(struct dialer *dialer, uv_loop_t *loop, void *context,
    void (*dialled)(void *context, uint32_t peer, struct link *link, int code))
{
    *dialer = (struct dialer){.loop = loop, .context = context, .dialled = dialled};
}

void dialer_dial(struct dialer *dialer, uint32_t peer, const char *address)
{
    struct dial *dial = calloc(1, sizeof *dial);
    sgp_assert(dial != NULL);
    *dial = (struct dial){.dialer = dialer, .next = dialer->dials, .peer = peer, .holders = 1};
    dialer->dials = dial;
    (void)uv_timer_init(dialer->loop, &dial->timer);
    dial->timer.data = dial;
    dial->code = resolve(dial, address);
    if (dial->code == 0) {
        dial->holders++;
        (void)uv_timer_start(&dial->timer, on_timeout, DIALER_TIMEOUT_MS, 0);
    } else {
        (void)uv_timer_start(&dial->timer, on_stillborn, 0, 0);
    }
}

void dialer_give_up(struct dialer *dialer)
{
    while (dialer->dials != NULL) {
        struct dial *dial = dialer->dials;
        conclude(dial);
        if (dial->link != NULL)
            link_close(dial->link, NULL);
        dial->link = NULL;
    }
}
