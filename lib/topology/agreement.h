/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to lib/topology: after how many rounds of averaging all estimates are equal. */
#ifndef SGP_TOPOLOGY_AGREEMENT_H
#define SGP_TOPOLOGY_AGREEMENT_H

#include "sgp/topology.h"

/* Fill `agrees`, for the fractions that the edges have now. The rounds must be summed up, and exact
 * cycles proved. Returns 0 or -ENOMEM. */
int sgp_agreement_find(struct sgp_topology *topology);

#endif
