/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the room: the keys of a fleet, read and checked. */
#ifndef SGP_TOPOLOGY_KEY_H
#define SGP_TOPOLOGY_KEY_H

#include "sgp/topology.h"

/* What a file says of a node's keys: one, or two with a blank between. 0, or SGP_E_TOPOLOGY with a clause that
 * begins with the value and ends with the remedy; *ret_keys is untouched then. */
int sgp_keys_parse(
    const char *text, struct sgp_error *error, char ret_keys[SGP_NODE_KEYS_MAX][SGP_KEY_BYTES]);

/* Order all keys of the nodes (by_key has room for all of them) and refuse those that two have, or that are malformed; *where
 * is the node at fault then. */
int sgp_keys_order(struct sgp_topology *topology, struct sgp_error *error, uint32_t *where);

/* Whether every node has a key, if links are to be ciphered; *where is the first that has none. */
int sgp_keys_check(const struct sgp_topology *topology, struct sgp_error *error, uint32_t *where);

#endif
