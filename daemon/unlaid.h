/* SPDX-License-Identifier: Apache-2.0 */
/* A node whose model no program has brought yet: it listens for programs and onlookers, and for no neighbour, for it does
 * not know yet how long a vector is. */
#ifndef SGPD_UNLAID_H
#define SGPD_UNLAID_H

#include "door.h"
#include "log.h"
#include "prepare.h"

/* Wait for the first program. Returns 0 with *ret_guest, the caller's, whose layout suits and whose values are finite; 1
 * when told to stop; or a negative code with *error. Runs a loop of its own. */
int unlaid_wait(const struct config *config, const struct prepared *prepared, struct log *log,
    struct guest *ret_guest, struct sgp_error *error);

#endif
