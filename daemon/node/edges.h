/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of each edge, and what is known of it. Thread: the loop thread. */
#ifndef SGPD_EDGES_H
#define SGPD_EDGES_H

#include "state.h"

/* Lay out the edges of now in this array, all zero, and carry over what is known, by name. */
int edges_init(struct daemon *daemon);
void edges_finish(struct daemon *daemon);
/* Lay out the edges of the core's links of now in this array (one element for each link, all zero),
 * and carry connections and figures over from the former one, by name; frees that. */
void edges_remap(struct daemon *daemon, const struct sgp_topology *former,
    const struct sgp_topology *topology, struct edge *edges);
/* Begin to close all connections. */
void edges_close(struct daemon *daemon);

/* NULL: there is none. SGP_SLOT_NONE is the peer of those that are gone. */
struct edge *edges_find(struct daemon *daemon, uint32_t peer, enum sgp_direction direction);
/* A connection becomes the last of its edge (the core may keep the present one), and is one no more. */
void edges_attach(struct daemon *daemon, struct link *link);
void edges_detach(struct daemon *daemon, struct link *link);
/* What is sent on a link of an edge waits for edges_flush, once that is told of it. */
void edges_will_flush(struct daemon *daemon, struct link *link);
void edges_flush(struct daemon *daemon);
/* A connection that stands; NULL: none. */
struct link *edges_link(struct daemon *daemon, const struct sgp_link *id);
struct link *edges_present(const struct edge *edge);

void edges_bytes(const struct edge *edge, uint64_t *ret_sent, uint64_t *ret_received);
/* A share came back, or was refused, as outsized. */
void edges_count_outsized(struct daemon *daemon, uint32_t peer, enum sgp_direction direction);
/* How many of the latest shares were, none having been accepted between. */
uint32_t edges_outsized(const struct edge *edge, const struct sgp_peer_status *status);

typedef bool (*edges_test)(const struct sgp_peer_status *peer);

/* Whether any neighbour passes; and the names of those that do, as far as `bytes` holds them, with the separator between
 * two. A neighbour that passes on both of its links is named once. */
bool edges_name(
    struct daemon *daemon, edges_test passes, const char *separator, char *ret_names, size_t bytes);

/* At the end: the greatest relative distance of a neighbour's estimate; NaN: none is known. */
double edges_distance(const struct daemon *daemon);
/* Whether a neighbour has ended with another model, or is not known to have ended with this one, as a
 * neighbour that was stopped before its end. A neighbour that has left for good does not count. */
bool edges_is_apart(const struct sgp_peer_status *peer);
/* Whether its updates are another node's bit for bit (SGP_NOTE_SAME_UPDATES). */
bool edges_trains_alike(const struct sgp_peer_status *peer);

/* Before it begins: neighbours not connected, with an error; or whom the core waits for; or "". */
void edges_awaited(struct daemon *daemon, char *ret_text, size_t bytes);

/* Whether a link is from a source that is not heard (not yet, or no longer). */
bool edges_unheard(const struct sgp_peer_status *peer);
/* Whether a node that has begun hears none of the sources that its file names. */
bool edges_hear_nobody(const struct daemon *daemon);

#endif
