/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of each edge, and its state. Thread: the loop thread. */
#ifndef SGPD_EDGES_H
#define SGPD_EDGES_H

#include "state.h"

/* Make the table of edges for the core's present links. Returns 0 or -ENOMEM. */
int edges_init(struct daemon *daemon);
void edges_finish(struct daemon *daemon);
/* Make the table of edges for the core's present links, in this array (one element for each link,
 * all zero). Connections and counts are moved from the former table, by name, which is then
 * freed. */
void edges_remap(struct daemon *daemon, const struct sgp_topology *former,
    const struct sgp_topology *topology, struct edge *edges);
/* Start to close all connections. */
void edges_close(struct daemon *daemon);

/* NULL: there is no such edge. Removed peers have the index SGP_SLOT_NONE. */
struct edge *edges_find(struct daemon *daemon, uint32_t peer, enum sgp_direction direction);
/* Add a connection to its edge, as the last one (the core may keep the present one); or remove it
 * from its edge. */
void edges_attach(struct daemon *daemon, struct link *link);
void edges_detach(struct daemon *daemon, struct link *link);
/* Data on this link are written by the next edges_flush. */
void edges_will_flush(struct daemon *daemon, struct link *link);
void edges_flush(struct daemon *daemon);
/* An existing connection; NULL: none. */
struct link *edges_link(struct daemon *daemon, const struct sgp_link *id);
struct link *edges_present(const struct edge *edge);

void edges_bytes(const struct edge *edge, uint64_t *ret_sent, uint64_t *ret_received);
/* A share returned, or was refused, as outsized. */
void edges_count_outsized(struct daemon *daemon, uint32_t peer, enum sgp_direction direction);
/* The number of consecutive latest shares that were outsized. */
uint32_t edges_outsized(const struct edge *edge, const struct sgp_peer_status *status);

/* The guard has taken a share of this source in that part, from 0 to 1. Returns whether nearly all
 * of its latest shares were clipped, for the first time or again. */
bool edges_count_clip(struct daemon *daemon, uint32_t peer, double part);
/* Whether nearly all of the latest shares were clipped. */
bool edges_is_clipped(const struct edge *edge);

typedef bool (*edges_test)(const struct sgp_peer_status *peer);

/* Whether any neighbour passes the test, and the names of those that do. `bytes` limits the text,
 * and `separator` is between two names. A neighbour that passes on both of its links is named
 * once. */
bool edges_name(
    struct daemon *daemon, edges_test passes, const char *separator, char *ret_names, size_t bytes);

/* At the end: the greatest relative distance to a neighbour's estimate. NaN: none is known. */
double edges_distance(const struct daemon *daemon);
/* Whether a neighbour has ended with another model, or may have. For example, it was stopped before
 * its end. A neighbour that has left for good does not count. */
bool edges_is_apart(const struct sgp_peer_status *peer);
/* Whether its updates equal another node's bit for bit (SGP_NOTE_SAME_UPDATES). */
bool edges_trains_alike(const struct sgp_peer_status *peer);

/* Before the node begins: the neighbours that are not connected, with an error. Otherwise the peer
 * for which the core waits, or "". */
void edges_awaited(struct daemon *daemon, char *ret_text, size_t bytes);

/* Whether the link is from a source that is not heard (not yet, or no longer). */
bool edges_unheard(const struct sgp_peer_status *peer);
/* Whether a node that has begun hears none of the sources in its file. */
bool edges_hear_nobody(const struct daemon *daemon);

#endif
