/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that exchange rows over links of a given delay, in virtual time: the stores of lib/fleet,
 * and messages in the bytes of lib/wire. For tests, and for bench/fleet_rows.c. */
#ifndef FLEET_NET_H
#define FLEET_NET_H

#include "sgp/fleet.h"
#include "sgp/random.h"
#include "sgp/wire.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NET_TICK (SGP_FLEET_TURN_MS * SGP_MILLISECOND)
#define NET_STEP (10 * SGP_MILLISECOND) /* a message takes one step */
#define NET_SECONDS 1800000000u         /* since 1970 */

struct net_end { /* of a connection */
    struct sgp_fleet_link *link;
    uint32_t node, peer_end;
    bool cut;
    uint8_t *inbox, *arriving; /* frames that arrive in this step, and in the next one */
    size_t inbox_bytes, arriving_bytes, inbox_room, arriving_room;
    uint64_t second_bytes, second_most, bytes; /* sent: in this second, in the fullest, in all */
};

struct net {
    uint32_t count, authors; /* the first nodes publish rows */
    struct sgp_fleet **fleets;
    struct net_end *ends;
    uint32_t end_count;
    uint32_t *first_end; /* of each node; ends are ordered by node */
    sgp_time now;
    sgp_time *publishes;                    /* when each author does so next */
    sgp_round *rounds;                      /* that each author says */
    uint64_t rows_told, rows_moved, bursts; /* messages of one end and turn are one burst */
};

static inline void net_name(char name[SGP_NAME_BYTES], uint32_t node)
{
    (void)snprintf(name, SGP_NAME_BYTES, "n%u", node);
}

static inline struct sgp_fleet_row net_row(sgp_round round, uint32_t interval_ms)
{
    struct sgp_fleet_row row = {.interval_ms = interval_ms,
        .state = "training",
        .round = round,
        .rounds = 100000,
        .epoch = (double)round / 7,
        .loss = 1 / (1 + (double)round),
        .test_loss = 2 / (1 + (double)round),
        .test_accuracy = 0.9375,
        .weight = 1.0625,
        .disagreement = 0.001234,
        .rounds_per_second = 31.25,
        .samples_per_second = 1000.5,
        .uptime_seconds = (double)round,
        .waiting = "share",
        .waiting_peer = "n1",
        .waiting_seconds = 0.25,
        .topology_digest = UINT64_C(0x123456789abcdef0),
        .version = "0.1.0~git+41c9fdee3c2a",
        .device = "SkylakeX",
        .promised = SGP_FLEET_PROMISED_CLAIMED,
        .promised_epsilon = 2.5,
        .promised_delta = 1e-5};
    return row;
}

static inline bool net_sign(void *context, const char *bytes, size_t count,
    char ret_key[SGP_ROW_KEY_BYTES], char ret_signature[SGP_ROW_SIGNATURE_BYTES])
{
    (void)context, (void)bytes, (void)count; /* the length of a signature is what matters here */
    memset(ret_key, 'k', SGP_ROW_KEY_BYTES - 1);
    memset(ret_signature, 's', SGP_ROW_SIGNATURE_BYTES - 1);
    ret_key[SGP_ROW_KEY_BYTES - 1] = ret_signature[SGP_ROW_SIGNATURE_BYTES - 1] = '\0';
    return true;
}

static inline uint32_t net_interval(const struct net *net)
{
    return sgp_fleet_interval(net->count);
}

static inline struct sgp_fleet *net_fleet(
    const struct net *net, uint32_t node, uint32_t incarnation)
{
    char self[SGP_NAME_BYTES];
    net_name(self, node);
    const struct sgp_fleet_settings settings = {.self = self,
        .incarnation = incarnation,
        .rows_max = net->authors > 64 ? net->authors : 64,
        .sign = net_sign};
    struct sgp_fleet *fleet = sgp_fleet_create(&settings);
    char(*names)[SGP_NAME_BYTES] = calloc(net->authors, sizeof *names);
    const char **list = calloc(net->authors, sizeof *list);
    sgp_assert(fleet != NULL && names != NULL && list != NULL);
    for (uint32_t i = 0; i < net->authors; i++) {
        net_name(names[i], i);
        list[i] = names[i];
    }
    sgp_assert(sgp_fleet_use(fleet, list, net->authors) == 0);
    free(names);
    free((void *)list);
    return fleet;
}

/* Nodes in a graph: edges[2 * e] gives to edges[2 * e + 1]; each edge is one connection. */
static inline void net_init(
    struct net *net, uint32_t count, uint32_t authors, const uint32_t *edges, uint32_t edge_count)
{
    *net = (struct net){.count = count, .authors = authors, .end_count = 2 * edge_count};
    net->fleets = calloc(count, sizeof *net->fleets);
    net->ends = calloc(net->end_count, sizeof *net->ends);
    net->first_end = calloc(count + 1u, sizeof *net->first_end);
    net->publishes = calloc(authors, sizeof *net->publishes);
    net->rounds = calloc(authors, sizeof *net->rounds);
    uint32_t *next = calloc(count + 1u, sizeof *next);
    sgp_assert(net->fleets && net->ends && net->first_end && net->publishes && net->rounds && next);
    for (uint32_t e = 0; e < 2 * edge_count; e++)
        net->first_end[edges[e] + 1]++;
    for (uint32_t i = 0; i < count; i++)
        net->first_end[i + 1] += net->first_end[i];
    memcpy(next, net->first_end, count * sizeof *next);
    for (uint32_t i = 0; i < count; i++)
        net->fleets[i] = net_fleet(net, i, NET_SECONDS);
    for (uint32_t e = 0; e < edge_count; e++) {
        const uint32_t a = next[edges[2 * e]]++, b = next[edges[2 * e + 1]]++;
        net->ends[a] = (struct net_end){.node = edges[2 * e], .peer_end = b};
        net->ends[b] = (struct net_end){.node = edges[2 * e + 1], .peer_end = a};
    }
    for (uint32_t e = 0; e < net->end_count; e++)
        net->ends[e].link = sgp_fleet_open(net->fleets[net->ends[e].node], 0);
    free(next);
}

static inline void net_finish(struct net *net)
{
    for (uint32_t e = 0; e < net->end_count; e++) {
        free(net->ends[e].inbox);
        free(net->ends[e].arriving);
    }
    for (uint32_t i = 0; i < net->count; i++)
        sgp_fleet_destroy(net->fleets[i]);
    free(net->fleets);
    free(net->ends);
    free(net->first_end);
    free(net->publishes);
    free(net->rounds);
}

/* The exponential graph: each node gives to those 1, 2, 4, ... behind it. Returns the edges. */
static inline uint32_t *net_exponential(uint32_t count, uint32_t *ret_edge_count)
{
    uint32_t *edges = calloc(2u * 32u * count, sizeof *edges), used = 0;
    sgp_assert(edges != NULL);
    for (uint32_t hop = 1; hop < count; hop *= 2)
        for (uint32_t i = 0; i < count; i++) {
            edges[2 * used] = i;
            edges[2 * used++ + 1] = (i + hop) % count;
        }
    *ret_edge_count = used;
    return edges;
}

static inline void net_send(struct net *net, struct net_end *end, const struct sgp_message *message)
{
    uint8_t frame[SGP_WIRE_FRAME_MAX];
    size_t bytes;
    struct net_end *peer = &net->ends[end->peer_end];
    sgp_assert(sgp_wire_encode(message, frame, sizeof frame, &bytes) == 0);
    sgp_fleet_sent(end->link, bytes);
    end->bytes += bytes;
    end->second_bytes += bytes;
    net->rows_moved += message->type == SGP_ROW;
    if (end->cut)
        return;
    if (peer->arriving_bytes + bytes > peer->arriving_room) {
        peer->arriving_room = 2 * (peer->arriving_bytes + bytes);
        peer->arriving = realloc(peer->arriving, peer->arriving_room);
        sgp_assert(peer->arriving != NULL);
    }
    memcpy(peer->arriving + peer->arriving_bytes, frame, bytes);
    peer->arriving_bytes += bytes;
}

static inline void net_pump(struct net *net, struct net_end *end)
{
    struct sgp_message message = {
        .pulse = {.state = SGP_NODE_TRAINING, .round = 1, .next_round = -1, .ends = 9, .stop = -1}};
    struct sgp_summary summary;
    const uint64_t sent = end->bytes;
    for (;;) {
        switch (sgp_fleet_next(end->link, net->now, &summary, &message.row)) {
        case SGP_FLEET_SUMMARY:
            message.type = SGP_SUMMARY;
            message.summary = &summary;
            break;
        case SGP_FLEET_ROW:
            message.type = SGP_ROW;
            break;
        default:
            net->bursts += end->bytes > sent;
            return;
        }
        net_send(net, end, &message);
    }
}

static inline void net_receive(struct net *net, struct net_end *end)
{
    for (size_t at = 0; at < end->inbox_bytes;) {
        struct sgp_wire_header header;
        struct sgp_wire_text text;
        struct sgp_message message;
        sgp_assert(sgp_wire_header_decode(end->inbox + at, &header, NULL) == 0);
        at += SGP_WIRE_HEADER_BYTES;
        sgp_assert(sgp_wire_body_decode(&header, end->inbox + at, &text, &message, NULL) == 0);
        at += header.body_bytes;
        if (message.type == SGP_ROW)
            sgp_assert(sgp_fleet_take(end->link, &message.row, net->now, NET_SECONDS) == 0);
        else
            sgp_fleet_hear(end->link, message.summary);
    }
    end->inbox_bytes = 0;
}

static inline void net_tell(struct net *net, uint32_t author)
{
    const struct sgp_fleet_row row = net_row(net->rounds[author], net_interval(net));
    sgp_assert(sgp_fleet_tell(net->fleets[author], &row, net->now) == 0);
    net->rows_told++;
    net->publishes[author] = net->now + (sgp_time)net_interval(net) * SGP_MILLISECOND;
}

/* One step of time. Nodes tick in turn, so that they are not in step with one another. */
static inline void net_step(struct net *net)
{
    const uint64_t steps = NET_TICK / NET_STEP, step = (uint64_t)(net->now / NET_STEP);
    for (uint32_t e = 0; e < net->end_count; e++) {
        struct net_end *end = &net->ends[e], other = *end;
        end->inbox = other.arriving;
        end->inbox_bytes = other.arriving_bytes;
        end->inbox_room = other.arriving_room;
        end->arriving = other.inbox;
        end->arriving_bytes = 0;
        end->arriving_room = other.inbox_room;
    }
    for (uint32_t e = 0; e < net->end_count; e++)
        net_receive(net, &net->ends[e]);
    for (uint32_t i = 0; i < net->count; i++) {
        if ((step + i * 7u) % steps != 0)
            continue;
        if (i < net->authors &&
            (net->now >= net->publishes[i] || sgp_fleet_must_tell(net->fleets[i])))
            net_tell(net, i);
        sgp_fleet_turn(net->fleets[i]);
        for (uint32_t e = net->first_end[i]; e < net->first_end[i + 1]; e++)
            net_pump(net, &net->ends[e]);
    }
    net->now += NET_STEP;
    for (uint32_t e = 0; net->now % SGP_SECOND == 0 && e < net->end_count; e++) {
        struct net_end *end = &net->ends[e];
        end->second_most =
            end->second_bytes > end->second_most ? end->second_bytes : end->second_most;
        end->second_bytes = 0;
    }
}

static inline void net_run(struct net *net, sgp_time time)
{
    for (const sgp_time end = net->now + time; net->now < end;)
        net_step(net);
}

/* What a node holds of an author: false: nothing. */
static inline bool net_knows(
    const struct net *net, uint32_t node, uint32_t author, struct sgp_fleet_row *ret_row)
{
    const struct sgp_fleet_view view = sgp_fleet_look(net->fleets[node], author, net->now);
    return view.text != NULL && sgp_fleet_row_read(view.text, ret_row) == 0;
}

/* Whether every node holds a row of this author that says this round. */
static inline bool net_all_know(const struct net *net, uint32_t author, sgp_round round)
{
    struct sgp_fleet_row row;
    for (uint32_t i = 0; i < net->count; i++)
        if (!net_knows(net, i, author, &row) || row.round != round)
            return false;
    return true;
}

#endif
