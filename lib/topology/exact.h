/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to lib/topology: whether cycles that must average exactly do so. */
#ifndef SGP_TOPOLOGY_EXACT_H
#define SGP_TOPOLOGY_EXACT_H

#include "sgp/topology.h"

/* Find out which cycles are exact, prove that they are, and note the weights at their ends. The
 * rounds must be summed up already. Returns 0 or an error: SGP_E_TOPOLOGY or SGP_E_LIMIT with
 * *ret_phase at fault and a remedy, or -ENOMEM. */
int sgp_exact_prove(struct sgp_topology *topology, struct sgp_error *error, uint32_t *ret_phase);

#endif
