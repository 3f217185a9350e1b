/* SPDX-License-Identifier: Apache-2.0 */
/* Another topology file for a running node. Thread: the loop thread. */
#ifndef SGPD_RELOAD_H
#define SGPD_RELOAD_H

#include "state.h"

/* Continue with this file, or keep the former topology. Then SGP_E_STATE, -ENOMEM, or another code
 * with the reason in *error; SGP_E_UNKNOWN_NODE: the file does not name this node. Of a signed
 * file, the rollout is stored before the file is used. */
int reload_topology(struct daemon *daemon, enum signed_file_from from,
    struct view_reload *ret_reload, struct sgp_error *error);

/* Whether this node could continue with the proposed file: all steps that can fail. 0, or negative
 * with *error. */
int reload_try(struct daemon *daemon, struct sgp_error *error);

/* The strictest `tls` of an earlier file of this process, if the present file is less strict.
 * Otherwise SGP_TLS_UNSAID. */
enum sgp_tls reload_tls_before(const struct daemon *daemon);

#endif
