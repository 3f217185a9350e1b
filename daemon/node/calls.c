/* SPDX-License-Identifier: Apache-2.0 */
/* Calls, outgoing and incoming; see calls.h.
 *
 * An outgoing call is in one of three states: a dial (edge->calling), a link without a greeting
 * (daemon->calls), or a neighbour's link. An incoming call acts like a successful dial of this
 * node, unless a connection exists. An existing connection is never closed for a call.
 *
 * Fails: a node that cannot be called, or does not greet in time, is called again. */
#include "calls.h"

#include "bulletins.h"
#include "edges.h"
#include "inquiry.h"
#include "net/listener.h"
#include "neighbours.h"
#include "trust.h"

#include <stdio.h>
#include <string.h>

/* ---- outgoing ---- */

static void forget(struct daemon *daemon, struct link *link)
{
    struct link **place = &daemon->calls;
    while (*place != link)
        place = &(*place)->next;
    *place = link->next;
    link->next = NULL;
}

static void on_message(struct link *link, const struct sgp_message *message)
{
    struct daemon *daemon = link->context;
    const char *source = daemon->prepared->topology->nodes[link->id.peer].name;
    forget(daemon, link);
    if (message->type == SGP_HELLO && strcmp(message->hello.source, source) == 0)
        neighbours_on_hello(daemon, link, message);
    else if (message->type == SGP_PULL) /* it awaits the scaling of the fleet */
        bulletins_on_pull(daemon, link, message);
    else
        link_close(link, NULL);
}

static void tell(struct daemon *daemon, uint32_t peer, const char *text)
{
    struct edge *edge = edges_find(daemon, peer, SGP_IN);
    (void)snprintf(edge->error, sizeof edge->error, "cannot call %.150s: %.300s",
        daemon->prepared->topology->nodes[peer].address, text);
}

static void on_failed(struct link *link, int code, const char *text)
{
    struct daemon *daemon = link->context;
    (void)code;
    forget(daemon, link);
    tell(daemon, link->id.peer, text);
}

static const struct link_events call_events = {
    .message = on_message,
    .failed = on_failed,
};

static void on_dialled(void *context, uint32_t peer, struct link *link, int code, const char *text)
{
    struct daemon *daemon = context;
    const struct prepared *prepared = daemon->prepared;
    (void)code;
    edges_find(daemon, peer, SGP_IN)->calling = false;
    if (link == NULL) {
        tell(daemon, peer, text);
        return;
    }
    link->events = &call_events;
    link->context = daemon;
    link->id.peer = peer;
    link->next = daemon->calls;
    daemon->calls = link;
    struct sgp_message message = {.type = SGP_CALL,
        .call = {.source = prepared->topology->nodes[peer].name,
            .target = prepared->topology->nodes[prepared->self].name}};
    inquiry_pulse(daemon, &message.pulse);
    link_send(link, &message);
}

/* Among the links without a greeting: true if the source of an edge has yet to greet. */
static bool is_called(struct daemon *daemon, uint32_t peer)
{
    for (struct link *link = daemon->calls, *next; link != NULL; link = next) {
        next = link->next;
        if (link->id.peer != peer)
            continue;
        if ((sgp_time)uv_hrtime() - link->opened < CALLS_GREETING_NS)
            return true;
        forget(daemon, link);
        link_close(link, NULL);
        tell(daemon, peer, "it does not greet");
    }
    return false;
}

static void on_timer(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    for (uint32_t i = daemon->out_count; i < daemon->edge_count; i++) {
        struct edge *edge = &daemon->edges[i];
        const struct sgp_peer_status status = daemon_peer(daemon, i);
        if (status.retired || edge->calling || edges_present(edge) != NULL ||
            is_called(daemon, edge->peer))
            continue;
        edge->calling = dialer_dial(
            &daemon->caller, edge->peer, &daemon->prepared->topology->nodes[edge->peer]);
    }
}

static void give_up(struct daemon *daemon)
{
    dialer_give_up(&daemon->caller);
    while (daemon->calls != NULL) {
        struct link *link = daemon->calls;
        forget(daemon, link);
        link_close(link, NULL);
    }
}

static void begin(struct daemon *daemon)
{
    const struct prepared *prepared = daemon->prepared;
    if (strcmp(prepared->topology->nodes[prepared->self].address, SGP_ADDRESS_NONE) == 0)
        (void)uv_timer_start(&daemon->call_timer, on_timer, 0, CALLS_PACE_MS);
    else
        (void)uv_timer_stop(&daemon->call_timer);
}

void calls_open(struct daemon *daemon)
{
    const struct dialer_events events = {
        .context = daemon, .tls = trust_dialling, .dialled = on_dialled};
    dialer_init(&daemon->caller, &daemon->loop, &events);
    (void)uv_timer_init(&daemon->loop, &daemon->call_timer);
    daemon->call_timer.data = daemon;
    begin(daemon);
}

void calls_reload(struct daemon *daemon)
{
    give_up(daemon);
    for (uint32_t i = 0; i < daemon->edge_count; i++)
        daemon->edges[i].calling = false;
    begin(daemon);
}

void calls_silence(struct daemon *daemon)
{
    dialer_silence(&daemon->caller);
    give_up(daemon);
    (void)uv_timer_stop(&daemon->call_timer);
}

void calls_close(struct daemon *daemon)
{
    give_up(daemon);
    uv_close((uv_handle_t *)&daemon->call_timer, NULL);
}

/* ---- incoming ---- */

void calls_on_call(void *context, struct link *link, const struct sgp_message *message)
{
    struct daemon *daemon = context;
    const struct sgp_topology *topology = daemon->prepared->topology;
    const struct sgp_call *call = &message->call;
    int64_t target = sgp_topology_find(topology, call->target);
    struct edge *edge = target < 0 ? NULL : edges_find(daemon, (uint32_t)target, SGP_OUT);
    char text[SGP_TEXT_BYTES] = "";
    enum sgp_reason reason = SGP_REASON_UNKNOWN;
    if (strcmp(call->source, daemon->config->name) != 0 || edge == NULL)
        (void)snprintf(text, sizeof text, "it calls as %s, and wants to be greeted by %s",
            call->target, call->source);
    else if (sgp_topology_is_dialled(topology, (uint32_t)target))
        (void)snprintf(text, sizeof text, "it calls as %s, which has an address", call->target);
    else if (edges_present(edge) != NULL && (reason = SGP_REASON_REPLACED) != 0)
        (void)snprintf(
            text, sizeof text, "it calls as %s, to which a connection stands", call->target);
    else
        (void)trust_is(daemon, link, (uint32_t)target, text);
    if (text[0] != '\0')
        listener_refuse(&daemon->listener, link, reason, text, NULL);
    else
        neighbours_take_over(daemon, link, (uint32_t)target, SGP_OUT);
}
