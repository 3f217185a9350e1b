/* SPDX-License-Identifier: Apache-2.0 */
/* The topology file of a node whose configuration names administrators: a signed document
 * (sgp/rollout.h, docs/ROLLOUT.md). Nothing else is used. The node never goes back to an earlier
 * version than it has used: STATE/rollout keeps the latest. Without administrators it is a plain
 * file.
 *
 * Blocks on files. Errors are one line. Thread: any. */
#ifndef SGPD_SIGNED_FILE_H
#define SGPD_SIGNED_FILE_H

#include "config.h"

#include "sgp/topology.h"

/* Read [topology] file. 0, or negative with *error. *ret_rollout: what signed_file_keep must store
 * before the topology is used, which the caller frees; NULL: the file is plain. */
int signed_file_read(const struct config *config, struct sgp_error *error, char **ret_rollout,
    struct sgp_topology **ret_topology);

/* Store it in the state directory. NULL is fine. 0, or -errno with *error. */
int signed_file_keep(const struct config *config, const char *rollout, struct sgp_error *error);

#endif
