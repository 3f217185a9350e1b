/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to lib/topology: the keys of a fleet, read and checked. */
#ifndef SGP_TOPOLOGY_KEY_H
#define SGP_TOPOLOGY_KEY_H

#include "sgp/topology.h"

/* The keys of a node in a file: one, or two with a blank between. Returns 0 or SGP_E_TOPOLOGY. The
 * message is a clause that begins with the value and ends with the remedy, and *ret_keys is
 * unchanged. */
int sgp_keys_parse(
    const char *text, struct sgp_error *error, char ret_keys[SGP_NODE_KEYS_MAX][SGP_KEY_BYTES]);

/* Order all keys of the nodes (by_key has room for all), and refuse a key that is malformed or that
 * two nodes have. *where is the node at fault. */
int sgp_keys_order(struct sgp_topology *topology, struct sgp_error *error, uint32_t *where);

/* Whether every node has a key, if links must be ciphered. *where is the first node that has
 * none. */
int sgp_keys_check(const struct sgp_topology *topology, struct sgp_error *error, uint32_t *where);

#endif
