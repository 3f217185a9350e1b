/* SPDX-License-Identifier: Apache-2.0 */
/* Another topology file for a node that runs. Thread: the loop thread. */
#ifndef SGPD_RELOAD_H
#define SGPD_RELOAD_H

#include "state.h"

/* Read the topology file again and go on with it: all or nothing. Returns 0, or why the former one was
 * kept: SGP_E_STATE when the node ends, -ENOMEM, else the file's fault, with one line in *error. */
int reload_topology(struct daemon *daemon, struct view_reload *ret_reload, struct sgp_error *error);

/* The strictest `tls` that a file of this process said before, if the present file says less; else SGP_TLS_UNSAID. */
enum sgp_tls reload_tls_before(const struct daemon *daemon);

#endif
