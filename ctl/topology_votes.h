/* SPDX-License-Identifier: Apache-2.0 */
/* How nodes vote on a pushed version of the topology file, as the answer of GET /v1/rollout says:
 * who accepts, who refuses, and whether the version is in use (topology_votes.c). */
#ifndef CTL_TOPOLOGY_VOTES_H
#define CTL_TOPOLOGY_VOTES_H

#include "document.h"

struct ctl_votes {
    const struct sgp_document *document; /* that was pushed */
    const struct sgp_topology *topology; /* of its file */
    uint64_t active;                     /* the version that was in use before */
};

/* Whether the daemon uses this document. */
bool ctl_is_in_use(const struct sgp_document *document, const json_t *rollout);

/* Ask the daemon until the version is in use, and tell a person each vote once. Fails, with a
 * line, if a node refuses or another version is in the way; with CTL_TIMED_OUT after `timeout`
 * seconds. The caller releases *ret_rollout, the last answer, in any case. */
enum ctl_exit ctl_votes_wait(
    struct ctl *ctl, const struct ctl_votes *votes, double timeout, json_t **ret_rollout);

/* The names of the nodes of the new file that were not seen to use it. */
json_t *ctl_votes_behind(const struct ctl_votes *votes, const json_t *rollout);

#endif
