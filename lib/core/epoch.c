/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs of exact cycles: what a node knows of them, and what ends one. What follows from a new one is cycle.c's.
 * The rule: docs/rules/cycle.md */
#include "core/core.h"

void sgp_core_hear_epoch(struct sgp_node *node, const struct sgp_epoch *epoch)
{
    if (sgp_core_epoch_is_below(&node->exact.heard, epoch))
        node->exact.heard = *epoch;
}

void sgp_core_raise_epoch(struct sgp_node *node)
{
    node->exact.heard.number++;
    node->exact.heard.start = sgp_topology_start_from(
        node->config.topology, sgp_core_furthest(node, node->round, sgp_core_is_up));
    node->again = true;
}

void sgp_core_drop_void(struct sgp_node *node, struct sgp_core_link *link)
{
    if (link->owed.slot != SGP_SLOT_NONE)
        node->layout.snapshot_users[link->owed.slot]--;
    link->owed.exists = false;
    node->unrecorded = true;
    node->again = true; /* the link, or the snapshot, may be what was waited for */
    sgp_core_touch(node, link);
}
