/* SPDX-License-Identifier: Apache-2.0 */
/* Without a model a node knows no length of a vector, so it listens for no neighbour yet. */
#ifndef SGPD_UNLAID_H
#define SGPD_UNLAID_H

#include "attach/door.h"
#include "util/log.h"
#include "setup/prepare.h"

/* Wait for the first program whose model the node can take: its layout suits, its values are finite, and there is memory
 * for the vectors of the node. A program with another model is refused in one line. Returns 0 with *ret_guest, the
 * caller's, and the model in *prepared; 1 when told to stop; or a negative code with *error. Runs a loop of its own. */
int unlaid_wait(const struct config *config, struct prepared *prepared, struct log *log,
    struct guest *ret_guest, struct sgp_error *error);

#endif
