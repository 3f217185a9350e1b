/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that signed topology files have struck (docs/ROLLOUT.md). Such a node may have been away
 * then. It may ask for the file in use, by its former name and key, and nothing else, so that it
 * learns that it is struck. They are found in the versions that this node has used.
 *
 * Bounds: the latest FORMERS_MAX of them; at the start files of FORMERS_BYTES are read. Thread: the
 * loop thread. */
#ifndef SGPD_FORMERS_H
#define SGPD_FORMERS_H

#include "state.h"

#define FORMERS_MAX 256u
#define FORMERS_BYTES (4u << 20)

/* By the kept versions. Without administrators, or without memory, there are none. */
void formers_open(struct daemon *daemon);
void formers_finish(struct daemon *daemon);

/* A signed file has taken the place of this one. */
void formers_reloaded(struct daemon *daemon, const struct sgp_topology *former);

/* Whether a key is of one of them. */
bool formers_have_key(const struct daemon *daemon, const char *hash);
/* For the listener: whether a ciphered caller's key is. */
bool formers_have(void *context, const struct link *link);

/* Which one calls itself `source` on this link: its number from 0; negative: none. */
int64_t formers_find(const struct daemon *daemon, const struct link *link, const char *source);

#endif
