/* SPDX-License-Identifier: Apache-2.0 */
/* A node that returns: before it greets anybody, or tells anything about its rows, it asks its
 * neighbours which signed topology file is in use (docs/ROLLOUT.md). So it learns of a version that
 * was pushed meanwhile, and whether that still names it. It opens no port yet.
 *
 * Bounds: AWAITING_ROLLOUT_ASKED neighbours, each of which is asked once, and AWAITING_ROLLOUT_MS.
 *
 * Thread: the first, which is the only thread. */
#ifndef SGPD_AWAITING_ROLLOUT_H
#define SGPD_AWAITING_ROLLOUT_H

#include "setup/config.h"
#include "util/log.h"

#define AWAITING_ROLLOUT_ASKED 16u /* neighbours; each answer may take SGP_DOCUMENT_BYTES_MAX */
#define AWAITING_ROLLOUT_MS 3000u

/* Under the lock of the state directory. What is learned is stored there, so that `prepare` finds
 * it. Without administrators nothing happens. 0: go on, also if no node has answered, and if the
 * configuration has a mistake, which `prepare` will find. 1: the version in use does not name this
 * node. Negative with *error: what was learned cannot be stored. */
int awaiting_rollout_ask(const struct config *config, struct log *log, struct sgp_error *error);

#endif
