/* Which connection belongs to which edge of the topology: strangers become neighbours here, and what
 * happens on a connection becomes an event of the core.
 *
 * Fails: a caller who is no neighbour is refused; a connection that fails is told to the core once.
 * Thread: the loop thread. */
#include "daemon.h"

#include "sgp/payload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void lay_out(struct daemon *daemon, struct edge *edges, uint32_t *peers)
{
    daemon->edges = edges;
    daemon->peers = peers;
    daemon->edge_count = sgp_node_link_count(daemon->node);
    daemon->out_count = 0;
    for (uint32_t i = 0; i < daemon->edge_count; i++) {
        struct sgp_peer_status status;
        sgp_node_link_status(daemon->node, i, &status);
        peers[i] = status.peer;
        daemon->out_count += status.direction == SGP_OUT;
    }
}

int edges_init(struct daemon *daemon)
{
    uint32_t count = sgp_node_link_count(daemon->node);
    struct edge *edges = calloc(count + 1, sizeof *edges); /* + 1: a node alone has none */
    uint32_t *peers = calloc(count + 1, sizeof *peers);
    if (edges == NULL || peers == NULL) {
        free(edges);
        free(peers);
        return -ENOMEM;
    }
    lay_out(daemon, edges, peers);
    return 0;
}

/* Give what is known of an edge, and its connections, to another. */
static void move_edge(struct edge *from, struct edge *to, uint32_t peer)
{
    struct link **last = &to->links; /* nothing is there but with those that are gone */
    while (*last != NULL)
        last = &(*last)->next;
    *last = from->links;
    for (struct link *link = from->links; link != NULL; link = link->next)
        link->id.peer = peer;
    to->bytes_sent += from->bytes_sent;
    to->bytes_received += from->bytes_received;
    memcpy(to->error, from->error, sizeof to->error);
    memcpy(to->previous, from->previous, sizeof to->previous);
    to->lines = from->lines;
    to->outsized = from->outsized;
    to->outsized_accepted = from->outsized_accepted;
}

void edges_remap(struct daemon *daemon, const struct sgp_topology *former,
    const struct sgp_topology *topology, struct edge *edges, uint32_t *peers)
{
    struct edge *former_edges = daemon->edges;
    uint32_t *former_peers = daemon->peers;
    uint32_t former_count = daemon->edge_count, former_out = daemon->out_count;
    lay_out(daemon, edges, peers);
    for (uint32_t i = 0; i < former_count; i++) {
        int64_t peer = sgp_topology_find(topology, former->nodes[former_peers[i]].name);
        uint32_t index = peer < 0 ? SGP_SLOT_NONE : (uint32_t)peer;
        struct edge *edge = edges_find(daemon, index, i < former_out ? SGP_OUT : SGP_IN);
        move_edge(&former_edges[i], edge, index);
    }
    free(former_edges);
    free(former_peers);
}

void edges_finish(struct daemon *daemon)
{
    free(daemon->edges);
    free(daemon->peers);
}

struct edge *edges_find(struct daemon *daemon, uint32_t peer, enum sgp_direction direction)
{
    if (peer == SGP_SLOT_NONE)
        return &daemon->gone;
    uint32_t low = direction == SGP_OUT ? 0 : daemon->out_count;
    uint32_t end = direction == SGP_OUT ? daemon->out_count : daemon->edge_count;
    for (uint32_t high = end; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        if (daemon->peers[middle] < peer)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && daemon->peers[low] == peer ? &daemon->edges[low] : NULL;
}

struct link *edges_link(struct daemon *daemon, const struct sgp_link *id)
{
    struct edge *edge = edges_find(daemon, id->peer, id->direction);
    for (struct link *link = edge != NULL ? edge->links : NULL; link != NULL; link = link->next)
        if (link->id.connection == id->connection && !link->closing && link->failure == 0)
            return link;
    return NULL;
}

struct link *edges_present(const struct edge *edge)
{
    for (struct link *link = edge->links; link != NULL; link = link->next)
        if (!link->closing && link->failure == 0)
            return link;
    return NULL;
}

void edges_bytes(const struct edge *edge, uint64_t *ret_sent, uint64_t *ret_received)
{
    uint64_t sent = edge->bytes_sent, received = edge->bytes_received;
    for (const struct link *link = edge->links; link != NULL; link = link->next) {
        sent += link->bytes_sent;
        received += link->bytes_received;
    }
    *ret_sent = sent;
    *ret_received = received;
}

/* Of the shares of a link, those that the target has accepted: given ones that are under way are not. */
static uint64_t accepted(const struct sgp_peer_status *status)
{
    if (status->direction == SGP_IN)
        return status->shares_received;
    return status->shares_sent - status->shares_returned - (status->weight_owed > 0);
}

void edges_note_outsized(struct edge *edge, const struct sgp_peer_status *status)
{
    edge->outsized = edges_outsized(edge, status) + 1;
    edge->outsized_accepted = accepted(status);
}

uint32_t edges_outsized(const struct edge *edge, const struct sgp_peer_status *status)
{
    return accepted(status) == edge->outsized_accepted ? edge->outsized : 0;
}

void edges_close(struct daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->edge_count; i++)
        for (struct link *link = daemon->edges[i].links; link != NULL; link = link->next)
            link_close(link, NULL); /* those that are gone close already */
}

/* ---- what happens on a connection ---- */

static void on_message(struct link *link, const struct sgp_message *message)
{
    if (message->type == SGP_SHARE) {
        link->share = message->share;
        link->unit = message->share.weight / message->share.fraction;
    } else if (message->type == SGP_ESTIMATE) {
        link->unit = message->estimate.weight;
    }
    daemon_post(link->context,
        (struct sgp_event){.type = SGP_EVENT_MESSAGE, .link = link->id, .message = message});
}

static void on_payload(struct link *link, int code)
{
    const struct daemon *daemon = link->context;
    if (code == 0)
        code = sgp_payload_judge(link->largest, link->unit, daemon->own_largest);
    daemon_post(link->context,
        (struct sgp_event){.type = SGP_EVENT_PAYLOAD, .link = link->id, .code = code});
}

static void on_heard(struct link *link)
{
    daemon_post(link->context,
        (struct sgp_event){.type = SGP_EVENT_HEARD, .link = link->id, .bytes = link->received});
}

/* Whether a link waits beside the present one of its edge. */
static bool is_aside(const struct edge *edge, const struct link *link)
{
    for (const struct link *other = edge->links; other != link; other = other->next)
        if (!other->closing && other->failure == 0)
            return true;
    return false;
}

static void on_failed(struct link *link, int code, const char *text)
{
    struct daemon *daemon = link->context;
    struct edge *edge = edges_find(daemon, link->id.peer, link->id.direction);
    if (is_aside(edge, link))
        listener_log(&daemon->listener, link, text);
    else
        notes_link_failed(daemon, link, edge, code, text);
    link->next_failed = daemon->failed_links;
    daemon->failed_links = link;
    if (!daemon->driver.stepping)
        daemon_settle(daemon);
}

static void on_freed(struct link *link)
{
    struct daemon *daemon = link->context;
    struct edge *edge = edges_find(daemon, link->id.peer, link->id.direction);
    struct link **place = &edge->links;
    while (*place != link)
        place = &(*place)->next;
    *place = link->next;
    edge->bytes_sent += link->bytes_sent;
    edge->bytes_received += link->bytes_received;
}

static const struct link_events edge_events = {
    .message = on_message,
    .payload = on_payload,
    .heard = on_heard,
    .failed = on_failed,
    .freed = on_freed,
};

static void take_over(
    struct daemon *daemon, struct link *link, uint32_t peer, enum sgp_direction direction)
{
    struct edge *edge = edges_find(daemon, peer, direction);
    link->id = (struct sgp_link){peer, direction, ++daemon->connections};
    link->events = &edge_events;
    link->context = daemon;
    struct link **last = &edge->links; /* the core may keep the present one */
    while (*last != NULL)
        last = &(*last)->next;
    *last = link;
    daemon_post(daemon, (struct sgp_event){.type = SGP_EVENT_UP, .link = link->id});
}

/* ---- in: a stranger said hello ---- */

void edges_on_hello(void *context, struct link *link, const struct sgp_message *message)
{
    struct daemon *daemon = context;
    const struct sgp_topology *topology = daemon->prepared->topology;
    const struct sgp_hello *hello = &message->hello;
    char text[SGP_TEXT_BYTES];
    int64_t source = sgp_topology_find(topology, hello->source);
    text[0] = '\0';
    if (strcmp(hello->target, daemon->config->name) != 0)
        (void)snprintf(text, sizeof text, "%s looks for node %s, and this is %s", hello->source,
            hello->target, daemon->config->name);
    else if (source < 0)
        (void)snprintf(
            text, sizeof text, "it is called %s, which the topology does not name", hello->source);
    else if (edges_find(daemon, (uint32_t)source, SGP_IN) == NULL)
        (void)snprintf(text, sizeof text, "the topology has no edge from %s to %s", hello->source,
            daemon->config->name);
    if (text[0] != '\0') {
        listener_refuse(&daemon->listener, link, SGP_REASON_UNKNOWN, text);
        return;
    }
    link->lineage = hello->lineage;
    notes_namesake(daemon, edges_find(daemon, (uint32_t)source, SGP_IN), link);
    take_over(daemon, link, (uint32_t)source, SGP_IN);
    if (edges_link(daemon, &link->id) != NULL)
        on_message(link, message);
}

/* ---- out: a dial ended ---- */

void edges_on_dialled(void *context, uint32_t peer, struct link *link, int code)
{
    struct daemon *daemon = context;
    struct edge *edge = edges_find(daemon, peer, SGP_OUT);
    if (link != NULL) {
        code = link_start(link);
        if (code == 0) {
            take_over(daemon, link, peer, SGP_OUT);
            return;
        }
        link_close(link, NULL);
    }
    (void)snprintf(edge->error, sizeof edge->error, "cannot connect to %s: %s",
        daemon->prepared->topology->nodes[peer].address, uv_strerror(code));
    daemon_post(daemon,
        (struct sgp_event){
            .type = SGP_EVENT_DOWN, .link = {.peer = peer, .direction = SGP_OUT}, .code = code});
}
