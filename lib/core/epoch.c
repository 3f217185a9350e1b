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

void sgp_core_end_epoch(struct sgp_node *node, const struct sgp_epoch *lost)
{
    if (!sgp_core_epoch_is_below(lost, &node->exact.heard))
        sgp_core_raise_epoch(node);
}
