/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the room: what a file with an owner must be. */
#ifndef SGP_TOPOLOGY_OWNER_H
#define SGP_TOPOLOGY_OWNER_H

#include "sgp/topology.h"

/* Note who owns the vector, and refuse what an owner and its workers cannot do; *ret_phase is the digraph at fault. 0 or
 * SGP_E_TOPOLOGY. */
int sgp_owner_check(struct sgp_topology *topology, struct sgp_error *error, uint32_t *ret_phase);

#endif
