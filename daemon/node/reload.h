/* SPDX-License-Identifier: Apache-2.0 */
/* Another topology file for a node that runs. Thread: the loop thread. */
#ifndef SGPD_RELOAD_H
#define SGPD_RELOAD_H

#include "state.h"

/* Go on with the file as it is now, or keep the former: SGP_E_STATE, -ENOMEM, or why in *error. */
int reload_topology(struct daemon *daemon, struct view_reload *ret_reload, struct sgp_error *error);

/* The strictest `tls` that a file of this process said before, if the present file says less; else SGP_TLS_UNSAID. */
enum sgp_tls reload_tls_before(const struct daemon *daemon);

#endif
