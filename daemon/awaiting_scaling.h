/* SPDX-License-Identifier: Apache-2.0 */
/* [data] scale = fleet: before a node knows the columns of its rows, all nodes agree on a scaling
 * (sgp/survey.h). Meanwhile the node listens on its gossip port for questions alone. */
#ifndef SGPD_AWAITING_SCALING_H
#define SGPD_AWAITING_SCALING_H

#include "awaiting.h"

#define AWAITING_SCALING_ASK_MS 1000u /* between questions to one neighbour */

/* Tell, ask, vote, and wait until all nodes of the topology file agree. Returns 0 if the scaling is
 * in its file, at once if it was there before; 1 if told to stop; or negative with *error. Until
 * *ret_began, an error is one of configuration or data; later, of this machine. What a wait
 * leaves open is in *ret_opened; of that, the state directory may be open before. */
int awaiting_scaling_wait(const struct config *config, struct log *log, bool *ret_began,
    struct opened *ret_opened, struct sgp_error *error);

#endif
