/* SPDX-License-Identifier: Apache-2.0 */
/* Another topology file for a running node. Thread: the loop thread. */
#ifndef SGPD_RELOAD_H
#define SGPD_RELOAD_H

#include "state.h"

/* Continue with the present file, or keep the former topology. Then SGP_E_STATE, -ENOMEM, or
 * another code with the reason in *error. */
int reload_topology(struct daemon *daemon, struct view_reload *ret_reload, struct sgp_error *error);

/* The strictest `tls` of an earlier file of this process, if the present file is less strict.
 * Otherwise SGP_TLS_UNSAID. */
enum sgp_tls reload_tls_before(const struct daemon *daemon);

#endif
