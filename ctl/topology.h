/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands on topology files share (topology.c). */
#ifndef CTL_TOPOLOGY_H
#define CTL_TOPOLOGY_H

#include "ctl.h"
#include "sgp/topology.h"

/* A topology as JSON, with the names of GET /v1/topology. The caller owns it. */
json_t *ctl_topology_json(const struct sgp_topology *topology);

/* Whether a file, which standard input is not, is a signed document; and the topology file within
 * one, if somebody has signed it and all signatures hold (document.c). Whether the signers are
 * administrators is not known here. The caller destroys *ret_topology. */
bool ctl_is_document(const char *path);
enum ctl_exit ctl_read_signed_topology(
    struct ctl *ctl, const char *path, struct sgp_topology **ret_topology);

/* Print a topology as a file, which begins with this comment; NULL: with none. */
enum ctl_exit ctl_topology_print_file(
    struct ctl *ctl, const struct sgp_topology *topology, const char *comment);

#endif
