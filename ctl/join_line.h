/* SPDX-License-Identifier: Apache-2.0 */
/* The connection of a joiner to its inviter: TLS 1.3 over a blocking socket, with a time limit for
 * all of it (join_line.c). */
#ifndef CTL_JOIN_LINE_H
#define CTL_JOIN_LINE_H

#include "sgp/invitation.h"
#include "sgp/key.h"

#define CTL_JOIN_SECONDS 60 /* for the connection, over all addresses, and all its messages */

/* Join with this key, as the invitation says, and receive the two texts, unescaped, which the
 * caller frees. Returns 0; SGP_E_CLOSED: the inviter refuses, with the reason in *error; or another
 * negative code, with *error filled. *ret_asked, also after a failure: whether the inviter was
 * asked, so that the invitation may be used by this key. */
int ctl_join_line(const struct sgp_invitation *invitation, const char *address, struct sgp_key *key,
    struct sgp_error *error, bool *ret_asked, char **ret_topology, char **ret_settings);

#endif
