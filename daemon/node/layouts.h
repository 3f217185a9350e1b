/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensor differs, where the models of two programs do: both nodes find it before the greeting
 * ends.
 *
 * A target that gets a HELLO of another shape holds it, and asks the source for entries of its
 * layout, by halves (at most 13). Both see the first entry that differs, log it, and tell their
 * programs (program_mismatch). Then the core gets the HELLO, and refuses it. A source that does not
 * answer is hung up on by the core, as one without a HELLO. Thread: the loop thread. */
#ifndef SGPD_LAYOUTS_H
#define SGPD_LAYOUTS_H

#include "state.h"

/* A HELLO came: true if it is held until the layouts are compared. The core gets it later, then. */
bool layouts_hold(struct daemon *daemon, struct link *link, const struct sgp_message *hello);

/* A LAYOUT came over a link of a neighbour. */
void layouts_take(struct daemon *daemon, struct link *link, const struct sgp_layout_entry *came);

#endif
