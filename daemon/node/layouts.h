/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the tensor in which the models of two programs differ. Both nodes find it before the
 * greeting ends.
 *
 * A target that receives a HELLO of another shape holds it, if no other connection of the edge
 * exists. It asks the source for entries of its layout, by bisection (at most 13). Both find the
 * first entry that differs, log it, and tell their programs (program_mismatch). Then the core gets
 * the HELLO, and refuses it. If a source does not answer, the core closes its connection, like that
 * of a source without a HELLO. Thread: the loop thread. */
#ifndef SGPD_LAYOUTS_H
#define SGPD_LAYOUTS_H

#include "state.h"

/* A HELLO arrived. True: it is held until the layouts are compared, and the core gets it later.
 * False: the core must get it now. */
bool layouts_hold(struct daemon *daemon, struct link *link, const struct sgp_message *hello);

/* A LAYOUT arrived on a neighbour's link. */
void layouts_take(struct daemon *daemon, struct link *link, const struct sgp_layout_entry *came);

#endif
