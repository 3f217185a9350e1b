/* SPDX-License-Identifier: Apache-2.0 */
/* How callers become neighbours, and how connection events reach the core; see neighbours.h.
 *
 * Fails: a caller that is no neighbour is refused. A failed connection is reported to the core
 * once. */
#include "neighbours.h"

#include "edges.h"
#include "events.h"
#include "notes.h"
#include "facts.h"
#include "fleet_rows.h"
#include "layouts.h"
#include "statements.h"
#include "trust.h"

#include "sgp/payload.h"

#include <stdio.h>
#include <string.h>

/* ---- events of a connection ---- */

static void on_message(struct link *link, const struct sgp_message *message)
{
    struct daemon *daemon = link->context;
    const struct sgp_topology *topology = daemon->prepared->topology;
    if (message->type == SGP_STATEMENT) {
        statements_take(daemon, link, &message->statement);
        return;
    }
    if (message->type == SGP_FACT) {
        facts_take(daemon, link, &message->fact);
        return;
    }
    if (message->type == SGP_LAYOUT) {
        layouts_take(daemon, link, &message->layout);
        return;
    }
    if (message->type == SGP_SUMMARY || message->type == SGP_ROW) {
        fleet_rows_take(daemon, link, message);
        return;
    }
    if (message->type == SGP_WELCOME)
        link->takes_rows = message->welcome.rows;
    if (message->type == SGP_GOODBYE)
        notes_farewell(daemon, link, message->goodbye.text);
    const struct sgp_share *share = &message->share;
    if (message->type == SGP_SHARE)
        link->unit = sgp_payload_unit(share->weight, share->fraction, topology);
    else if (message->type == SGP_ESTIMATE)
        link->unit = message->estimate.weight;
    if (message->type == SGP_HELLO && layouts_hold(daemon, link, message))
        return;
    events_post(link->context,
        (struct sgp_event){.type = SGP_EVENT_MESSAGE, .link = link->id, .message = message});
    statements_hear(daemon, &message->pulse);
}

static void on_payload(struct link *link, int code)
{
    struct daemon *daemon = link->context;
    const struct sgp_measure came = {link->largest, link->squares, link->unit};
    if (code == 0)
        code = sgp_payload_judge(&daemon->performer.lengths, &came, daemon->prepared->parameters);
    events_post(link->context,
        (struct sgp_event){.type = SGP_EVENT_PAYLOAD, .link = link->id, .code = code});
}

static void on_heard(struct link *link)
{
    events_post(link->context,
        (struct sgp_event){.type = SGP_EVENT_HEARD, .link = link->id, .bytes = link->received});
}

/* Whether a link waits while its edge has a present one. */
static bool is_pending(const struct edge *edge, const struct link *link)
{
    for (const struct link *other = edge->links; other != link; other = other->next)
        if (link_stands(other))
            return true;
    return false;
}

static void on_failed(struct link *link, int code, const char *text)
{
    struct daemon *daemon = link->context;
    struct edge *edge = edges_find(daemon, link->id.peer, link->id.direction);
    if (is_pending(edge, link))
        listener_log(&daemon->listener, link, text);
    else
        notes_link_failed(daemon, link, edge, code, text);
    link->next_failed = daemon->failed_links;
    daemon->failed_links = link;
    if (!daemon->driver.stepping)
        events_settle(daemon);
}

static void on_freed(struct link *link)
{
    fleet_rows_part(link);
    edges_detach(link->context, link);
}

static const struct link_events edge_events = {
    .message = on_message,
    .payload = on_payload,
    .heard = on_heard,
    .failed = on_failed,
    .freed = on_freed,
};

void neighbours_take_over(
    struct daemon *daemon, struct link *link, uint32_t peer, enum sgp_direction direction)
{
    link->id = (struct sgp_link){peer, direction, ++daemon->connections};
    link->events = &edge_events;
    link->context = daemon;
    edges_attach(daemon, link);
    trust_note(daemon, link);
    events_post(daemon, (struct sgp_event){.type = SGP_EVENT_UP, .link = link->id});
}

/* ---- incoming: a caller has said hello ---- */

/* Why the topology file does not admit a caller: `text` for this node's log, and the result for the
 * caller. NULL: the caller is admitted. */
static const char *refusal(
    struct daemon *daemon, const struct sgp_hello *hello, int64_t source, char text[SGP_TEXT_BYTES])
{
    text[0] = '\0';
    if (strcmp(hello->target, daemon->config->name) != 0) {
        (void)snprintf(text, SGP_TEXT_BYTES, "%s looks for node %s, and this is %s", hello->source,
            hello->target, daemon->config->name);
        return "another node answers at the address that the topology file gives the peer; correct "
               "the address";
    }
    if (source < 0) {
        (void)snprintf(text, SGP_TEXT_BYTES,
            "it is called %s, which this node's topology file does not name; " LISTENER_REMEDY,
            hello->source);
        return "the peer's topology file does not name this node; " LISTENER_REMEDY;
    }
    if (edges_find(daemon, (uint32_t)source, SGP_IN) != NULL)
        return NULL;
    (void)snprintf(text, SGP_TEXT_BYTES,
        "this node's topology file has no edge from %s to %s; " LISTENER_REMEDY, hello->source,
        daemon->config->name);
    return "the peer's topology file has no edge from this node to it; " LISTENER_REMEDY;
}

void neighbours_on_hello(void *context, struct link *link, const struct sgp_message *message)
{
    struct daemon *daemon = context;
    const struct sgp_topology *topology = daemon->prepared->topology;
    const struct sgp_hello *hello = &message->hello;
    char text[SGP_TEXT_BYTES];
    int64_t source = sgp_topology_find(topology, hello->source);
    const char *told = refusal(daemon, hello, source, text);
    if (told == NULL && trust_is(daemon, link, (uint32_t)source, text))
        text[0] = '\0';
    if (text[0] != '\0') {
        listener_refuse(&daemon->listener, link, SGP_REASON_UNKNOWN, text, told);
        return;
    }
    link->incarnation = hello->incarnation;
    notes_namesake(daemon, edges_find(daemon, (uint32_t)source, SGP_IN), link);
    neighbours_take_over(daemon, link, (uint32_t)source, SGP_IN);
    if (edges_link(daemon, &link->id) != NULL)
        on_message(link, message);
}

/* ---- outgoing: a dial has ended ---- */

void neighbours_on_dialled(
    void *context, uint32_t peer, struct link *link, int code, const char *text)
{
    struct daemon *daemon = context;
    struct edge *edge = edges_find(daemon, peer, SGP_OUT);
    if (link != NULL) {
        neighbours_take_over(daemon, link, peer, SGP_OUT);
        return;
    }
    (void)snprintf(edge->error, sizeof edge->error, "cannot connect to %.150s: %.300s",
        daemon->prepared->topology->nodes[peer].address, text);
    events_post(daemon,
        (struct sgp_event){
            .type = SGP_EVENT_DOWN, .link = {.peer = peer, .direction = SGP_OUT}, .code = code});
}
