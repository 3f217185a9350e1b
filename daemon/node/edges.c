/* SPDX-License-Identifier: Apache-2.0 */
/* The table of edges; see edges.h. */
#include "edges.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void lay_out(struct daemon *daemon, struct edge *edges)
{
    daemon->edges = edges;
    daemon->edge_count = sgp_node_link_count(daemon->node);
    daemon->out_count = 0;
    for (uint32_t i = 0; i < daemon->edge_count; i++) {
        const struct sgp_peer_status status = daemon_peer(daemon, i);
        edges[i].peer = status.peer;
        daemon->out_count += status.direction == SGP_OUT;
    }
}

int edges_init(struct daemon *daemon)
{
    uint32_t count = sgp_node_link_count(daemon->node);
    /* + 1, because a node without neighbours has no edges */
    struct edge *edges = calloc(count + 1, sizeof *edges);
    if (edges == NULL)
        return -ENOMEM;
    lay_out(daemon, edges);
    return 0;
}

static void append(struct edge *edge, struct link *links)
{
    struct link **last = &edge->links;
    while (*last != NULL)
        last = &(*last)->next;
    *last = links;
}

/* Move the state of an edge, and its connections, to another edge. */
static void move_edge(struct edge *from, struct edge *to, uint32_t peer)
{
    append(to, from->links); /* only the edge of removed peers has links here */
    for (struct link *link = from->links; link != NULL; link = link->next)
        link->id.peer = peer;
    to->bytes_sent += from->bytes_sent;
    to->bytes_received += from->bytes_received;
    memcpy(to->error, from->error, sizeof to->error);
    memcpy(to->previous, from->previous, sizeof to->previous);
    to->lines = from->lines;
    to->ciphered = to->ciphered || from->ciphered;
    to->outsized = from->outsized;
    to->outsized_accepted = from->outsized_accepted;
    to->clips = from->clips;
}

void edges_remap(struct daemon *daemon, const struct sgp_topology *former,
    const struct sgp_topology *topology, struct edge *edges)
{
    struct edge *former_edges = daemon->edges;
    uint32_t former_count = daemon->edge_count, former_out = daemon->out_count;
    lay_out(daemon, edges);
    for (uint32_t i = 0; i < former_count; i++) {
        int64_t peer = sgp_topology_find(topology, former->nodes[former_edges[i].peer].name);
        uint32_t index = peer < 0 ? SGP_SLOT_NONE : (uint32_t)peer;
        struct edge *edge = edges_find(daemon, index, i < former_out ? SGP_OUT : SGP_IN);
        move_edge(&former_edges[i], edge, index);
    }
    free(former_edges);
}

void edges_finish(struct daemon *daemon)
{
    free(daemon->edges);
}

struct edge *edges_find(struct daemon *daemon, uint32_t peer, enum sgp_direction direction)
{
    if (peer == SGP_SLOT_NONE)
        return &daemon->gone;
    uint32_t low = direction == SGP_OUT ? 0 : daemon->out_count;
    uint32_t end = direction == SGP_OUT ? daemon->out_count : daemon->edge_count;
    for (uint32_t high = end; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        if (daemon->edges[middle].peer < peer)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && daemon->edges[low].peer == peer ? &daemon->edges[low] : NULL;
}

void edges_attach(struct daemon *daemon, struct link *link)
{
    append(edges_find(daemon, link->id.peer, link->id.direction), link);
}

void edges_detach(struct daemon *daemon, struct link *link)
{
    struct edge *edge = edges_find(daemon, link->id.peer, link->id.direction);
    struct link **place = &edge->links;
    while (*place != link)
        place = &(*place)->next;
    *place = link->next;
    edge->bytes_sent += link->bytes_sent;
    edge->bytes_received += link->bytes_received;
    for (place = &daemon->unsent; link->gathers && *place != NULL; place = &(*place)->next_unsent)
        if (*place == link) {
            *place = link->next_unsent;
            break;
        }
}

void edges_will_flush(struct daemon *daemon, struct link *link)
{
    if (link->gathers)
        return;
    struct link **last = &daemon->unsent;
    while (*last != NULL)
        last = &(*last)->next_unsent;
    link->gathers = true;
    link->next_unsent = NULL;
    *last = link;
}

/* In the order of their first messages. So an answer to a share leaves before the next share, and
 * its source has finished with it then. A failing link is reported at once, which may close other
 * links and send more. */
void edges_flush(struct daemon *daemon)
{
    struct link *link;
    while ((link = daemon->unsent) != NULL) {
        daemon->unsent = link->next_unsent;
        link_flush(link);
    }
}

struct link *edges_link(struct daemon *daemon, const struct sgp_link *id)
{
    struct edge *edge = edges_find(daemon, id->peer, id->direction);
    for (struct link *link = edge != NULL ? edge->links : NULL; link != NULL; link = link->next)
        if (link->id.connection == id->connection && link_stands(link))
            return link;
    return NULL;
}

struct link *edges_present(const struct edge *edge)
{
    for (struct link *link = edge->links; link != NULL; link = link->next)
        if (link_stands(link))
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

/* The number of shares of a link that the target has accepted. Shares in transit are not
 * counted. */
static uint64_t accepted(const struct sgp_peer_status *status)
{
    if (status->direction == SGP_IN)
        return status->shares_received;
    return status->shares_sent - status->shares_returned - status->owes;
}

void edges_count_outsized(struct daemon *daemon, uint32_t peer, enum sgp_direction direction)
{
    struct edge *edge = edges_find(daemon, peer, direction);
    if (edge == NULL || edge == &daemon->gone)
        return;
    const struct sgp_peer_status status = daemon_peer(daemon, (uint32_t)(edge - daemon->edges));
    edge->outsized = edges_outsized(edge, &status) + 1;
    edge->outsized_accepted = accepted(&status);
}

uint32_t edges_outsized(const struct edge *edge, const struct sgp_peer_status *status)
{
    return accepted(status) == edge->outsized_accepted ? edge->outsized : 0;
}

#define CLIPS_RECENT 32 /* about so many latest shares count */
#define CLIPS_NEARLY_ALL 0.9
#define CLIPS_FEWER 0.5 /* below this, the next time is told again */

bool edges_is_clipped(const struct edge *edge)
{
    return edge->clips.judged >= CLIPS_RECENT && edge->clips.recent >= CLIPS_NEARLY_ALL;
}

bool edges_count_clip(struct daemon *daemon, uint32_t peer, double part)
{
    struct edge *edge = edges_find(daemon, peer, SGP_IN);
    if (edge == NULL || edge == &daemon->gone)
        return false;
    struct edge_clips *clips = &edge->clips;
    bool clipped = part < 1, told = clips->told;
    clips->judged++;
    clips->clipped += clipped;
    clips->recent += ((double)clipped - clips->recent) / fmin((double)clips->judged, CLIPS_RECENT);
    if (clips->recent < CLIPS_FEWER)
        clips->told = false;
    else if (edges_is_clipped(edge))
        clips->told = true;
    return clips->told && !told;
}

void edges_close(struct daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->edge_count; i++)
        for (struct link *link = daemon->edges[i].links; link != NULL; link = link->next)
            link_close(link, NULL); /* links of removed peers are closing already */
}

double edges_distance(const struct daemon *daemon)
{
    double furthest = NAN;
    for (uint32_t i = 0; i < daemon->edge_count; i++)
        furthest = fmax(furthest, daemon_peer(daemon, i).distance_relative);
    return furthest;
}

/* Out-links come first. */
bool edges_name(
    struct daemon *daemon, edges_test passes, const char *separator, char *ret_names, size_t bytes)
{
    size_t used = 0;
    bool any = false;
    ret_names[0] = '\0';
    for (uint32_t i = 0; i < daemon->edge_count; i++) {
        const struct sgp_peer_status peer = daemon_peer(daemon, i);
        struct sgp_peer_status out = {.retired = true};
        const struct edge *other = edges_find(daemon, peer.peer, SGP_OUT);
        if (peer.direction == SGP_IN && other != NULL)
            out = daemon_peer(daemon, (uint32_t)(other - daemon->edges));
        const char *name = daemon->prepared->topology->nodes[peer.peer].name;
        if (!passes(&peer) || passes(&out) || used + strlen(separator) + strlen(name) >= bytes)
            continue;
        used +=
            (size_t)snprintf(ret_names + used, bytes - used, "%s%s", any ? separator : "", name);
        any = true;
    }
    return any;
}

bool edges_is_apart(const struct sgp_peer_status *peer)
{
    bool left = peer->state == SGP_LINK_DOWN && peer->last_reason == SGP_REASON_LEFT;
    return !peer->retired && !left && (peer->disagrees || !peer->ended);
}

bool edges_trains_alike(const struct sgp_peer_status *peer)
{
    return peer->same_updates;
}

static bool is_missing(const struct sgp_peer_status *peer)
{
    return !peer->retired && peer->state != SGP_LINK_UP;
}

void edges_awaited(struct daemon *daemon, char *ret_text, size_t bytes)
{
    const char *error = "";
    if (!edges_name(daemon, is_missing, ", ", ret_text, bytes)) {
        const struct sgp_node_status status = daemon_status(daemon);
        if (status.waiting_peer != SGP_SLOT_NONE)
            (void)snprintf(ret_text, bytes, "%s (%s)",
                daemon->prepared->topology->nodes[status.waiting_peer].name,
                sgp_waiting_name(status.waiting));
        return;
    }
    for (uint32_t i = 0; i < daemon->edge_count && *error == '\0'; i++) {
        const struct sgp_peer_status peer = daemon_peer(daemon, i);
        error = is_missing(&peer) ? daemon->edges[i].error : error;
    }
    size_t used = strlen(ret_text);
    if (*error != '\0')
        (void)snprintf(ret_text + used, bytes - used, " (%.150s)", error);
}

bool edges_unheard(const struct sgp_peer_status *peer)
{
    return peer->direction == SGP_IN && !peer->retired &&
           (peer->absent || peer->last_heard == SGP_TIME_NEVER);
}

bool edges_hear_nobody(const struct daemon *daemon)
{
    bool has_sources = false, hears = false;
    for (uint32_t i = daemon->out_count; i < daemon->edge_count && !hears; i++) {
        const struct sgp_peer_status peer = daemon_peer(daemon, i);
        has_sources = has_sources || !peer.retired;
        hears = !peer.absent && peer.last_heard != SGP_TIME_NEVER;
    }
    return daemon_status(daemon).state != SGP_NODE_JOINING && has_sources && !hears;
}
