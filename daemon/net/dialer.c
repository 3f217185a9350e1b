/* SPDX-License-Identifier: Apache-2.0 */
/* Dialling; see dialer.h.
 *
 * A dial ends in three steps. First it is decided: told to the owner, or given up. Then its timer
 * is closed. It is freed when neither the timer nor the resolver holds it any longer. A link that
 * fails to connect closes by itself. */
#include "dialer.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dial {
    struct dialer *dialer;
    LIST_ENTRY(dial) next;
    uint32_t peer;
    uint32_t holders; /* timer, resolver, connection attempt */
    bool decided;
    bool plainly; /* a cipher was offered without success */
    enum sgp_tls tls;
    struct sgp_topology_node node;
    struct sgp_cipher_settings settings;
    struct sgp_error why; /* of the last failure */
    uv_timer_t timer;
    uv_getaddrinfo_t resolver;
    uv_connect_t connect;
    struct addrinfo *addresses;
    struct addrinfo *address; /* being tried */
    struct link *link;        /* being connected */
};

static void release(struct dial *dial)
{
    if (--dial->holders > 0)
        return;
    uv_freeaddrinfo(dial->addresses);
    sgp_key_release(dial->settings.key);
    free(dial);
}

static void on_timer_closed(uv_handle_t *handle)
{
    release(handle->data);
}

/* End all pending work of the dial. The caller reports the result. */
static void conclude(struct dial *dial)
{
    LIST_REMOVE(dial, next);
    dial->decided = true;
    (void)uv_cancel((uv_req_t *)&dial->resolver);
    uv_close((uv_handle_t *)&dial->timer, on_timer_closed);
}

/* Detach the link that is being connected, if any, from this dial. */
static void give_up_link(struct dial *dial)
{
    if (dial->link != NULL)
        link_close(dial->link, NULL);
    dial->link = NULL;
}

static void succeed(struct dial *dial)
{
    struct link *link = dial->link;
    const struct dialer_events *events = &dial->dialer->events;
    dial->link = NULL;
    conclude(dial);
    events->dialled(events->context, dial->peer, link, 0, "");
}

static void fail(struct dial *dial)
{
    const struct dialer_events *events = &dial->dialer->events;
    const struct sgp_error why = dial->why;
    uint32_t peer = dial->peer;
    conclude(dial);
    give_up_link(dial);
    events->dialled(events->context, peer, NULL, why.code, why.text);
}

static void note(struct dial *dial, int code, const char *text)
{
    dial->why = (struct sgp_error){.code = 0};
    (void)sgp_fail(&dial->why, code, "%s", text);
}

static void try_next(struct dial *dial);

/* ---- a link before its owner takes it over ---- */

static void on_message(struct link *link, const struct sgp_message *message)
{
    (void)link;
    (void)message;
    sgp_assert(false); /* the owner has the link before any data can be read */
}

static void on_ciphered(struct link *link)
{
    succeed(link->context);
}

/* The handshake failed; the link closes by itself. */
static void on_failed(struct link *link, int code, const char *text)
{
    struct dial *dial = link->context;
    bool shown = sgp_cipher_peer(link->cipher)[0] != '\0';
    dial->link = NULL;
    note(dial, code, text);
    if (dial->tls == SGP_TLS_OFFER && !dial->plainly && !shown)
        dial->plainly = true;
    else
        dial->address = dial->address->ai_next;
    try_next(dial);
}

static const struct link_events dial_events = {
    .ciphered = on_ciphered,
    .message = on_message,
    .failed = on_failed,
};

/* ---- one address after the other ---- */

/* The TCP connection is established. */
static void begin(struct dial *dial)
{
    bool ciphers = dial->tls != SGP_TLS_OFF && !dial->plainly;
    int code = ciphers ? link_cipher(dial->link, &dial->settings) : 0;
    if (code == 0)
        code = link_start(dial->link);
    if (dial->link == NULL) /* the link failed, and the failure was reported */
        return;
    if (code == 0) {
        if (!ciphers)
            succeed(dial);
        return;
    }
    note(dial, code, sgp_strerror(code));
    fail(dial);
}

static void on_connected(uv_connect_t *request, int status)
{
    struct dial *dial = request->data;
    if (!dial->decided && status == 0) {
        begin(dial);
    } else if (!dial->decided) {
        note(dial, status, uv_strerror(status));
        give_up_link(dial);
        dial->plainly = false;
        dial->address = dial->address->ai_next;
        try_next(dial);
    }
    release(dial);
}

static void try_next(struct dial *dial)
{
    for (; dial->address != NULL; dial->address = dial->address->ai_next) {
        dial->link = link_create(dial->dialer->loop, &dial_events, dial);
        if (dial->link == NULL) {
            note(dial, -ENOMEM, uv_strerror(UV_ENOMEM));
            break;
        }
        dial->connect.data = dial;
        int code =
            uv_tcp_connect(&dial->connect, &dial->link->tcp, dial->address->ai_addr, on_connected);
        if (code == 0) {
            dial->holders++;
            return;
        }
        note(dial, code, uv_strerror(code));
        give_up_link(dial);
    }
    fail(dial);
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses)
{
    struct dial *dial = request->data;
    dial->addresses = addresses;
    dial->address = addresses;
    if (!dial->decided && status < 0) {
        note(dial, status, uv_strerror(status));
        fail(dial);
    } else if (!dial->decided) {
        try_next(dial);
    }
    release(dial);
}

static void on_timeout(uv_timer_t *timer)
{
    struct dial *dial = timer->data;
    note(dial, -ETIMEDOUT, uv_strerror(UV_ETIMEDOUT));
    fail(dial);
}

/* A dial that cannot begin is reported from the timer, so never from within dialer_dial. */
static void on_stillborn(uv_timer_t *timer)
{
    fail(timer->data);
}

static int resolve(struct dial *dial)
{
    const char *address = dial->node.address;
    char host[SGP_ADDRESS_BYTES];
    char port_text[8];
    uint16_t port;
    int code = strcmp(address, SGP_ADDRESS_NONE) == 0
                   ? UV_EDESTADDRREQ
                   : sgp_address_split(address, NULL, host, &port);
    if (code < 0)
        return code;
    (void)snprintf(port_text, sizeof port_text, "%u", port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    dial->resolver.data = dial;
    return uv_getaddrinfo(
        dial->dialer->loop, &dial->resolver, on_resolved, host, port_text, &hints);
}

void dialer_init(struct dialer *dialer, uv_loop_t *loop, const struct dialer_events *events)
{
    *dialer = (struct dialer){.loop = loop, .events = *events};
}

bool dialer_dial(struct dialer *dialer, uint32_t peer, const struct sgp_topology_node *node)
{
    struct dial *dial = dialer->silent ? NULL : calloc(1, sizeof *dial);
    if (dial == NULL)
        return false;
    *dial = (struct dial){.dialer = dialer, .peer = peer, .holders = 1};
    dial->tls = dialer->events.tls(dialer->events.context, peer, &dial->settings);
    dial->settings.dials = true;
    (void)sgp_key_hold(dial->settings.key); /* a reload may replace the key */
    dial->settings.context = &dial->node;
    dial->node = *node;
    LIST_INSERT_HEAD(&dialer->dials, dial, next);
    (void)uv_timer_init(dialer->loop, &dial->timer);
    dial->timer.data = dial;
    int code = resolve(dial);
    if (code == 0) {
        dial->holders++;
        (void)uv_timer_start(&dial->timer, on_timeout, DIALER_TIMEOUT_MS, 0);
    } else {
        note(dial, code, uv_strerror(code));
        (void)uv_timer_start(&dial->timer, on_stillborn, 0, 0);
    }
    return true;
}

void dialer_give_up(struct dialer *dialer)
{
    struct dial *dial;
    while ((dial = LIST_FIRST(&dialer->dials)) != NULL) {
        conclude(dial);
        give_up_link(dial);
    }
}

void dialer_silence(struct dialer *dialer)
{
    dialer->silent = true;
    dialer_give_up(dialer);
}
