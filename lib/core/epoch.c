/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs of exact cycles: what a node knows of them, and what ends one. The effects of a new epoch
 * are in cycle.c.
 *
 * The rule: docs/rules/cycle.md */
#include "core/core.h"

/* Whether this file or an earlier one, which other nodes may still use, has exact cycles or a
 * token. */
static bool file_explains(const struct sgp_node *node)
{
    return sgp_core_uses_epochs(node) || node->role->unique;
}

/* Whether another neighbour names this epoch or a higher one, and both neighbours have this node's
 * file. */
static bool is_seconded(const struct sgp_node *node, const struct sgp_core_link *link)
{
    uint64_t digest = node->config.topology->digest;
    bool seconded = false;
    for (uint32_t i = 0; i < node->layout.link_count && !seconded; i++) {
        const struct sgp_core_link *other = &node->layout.links[i];
        seconded = other->peer != link->peer && sgp_core_living(other) &&
                   other->pulse.epoch.topology == digest &&
                   !sgp_core_epoch_is_below(&other->pulse.epoch, &link->pulse.epoch);
    }
    return seconded && link->pulse.epoch.topology == digest;
}

void sgp_core_hear_epoch(struct sgp_node *node, const struct sgp_core_link *link)
{
    bool higher = sgp_core_epoch_is_below(&node->exact.heard, &link->pulse.epoch);
    if (higher && (file_explains(node) || is_seconded(node, link)))
        node->exact.heard = link->pulse.epoch;
}

void sgp_core_expect_epochs(struct sgp_node *node)
{
    node->exact.heeds = 2 * node->config.topology->node_count;
    SGP_EACH_LINK (link, node)
        sgp_core_hear_epoch(node, link);
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

/* Under another method nodes are in unlike rounds, or have given in their round before its steps.
 * Then a share of the new epoch could be lost, so weights stay as they are. */
static bool has_common_rounds(const struct sgp_node *node)
{
    const struct sgp_method *method = node->config.method;
    return sgp_method_in_order(method) && !method->publishes_first &&
           node->role->part == SGP_PART_NONE && !node->role->unique &&
           !sgp_topology_has_exact(node->config.topology);
}

void sgp_core_begin_anew(struct sgp_node *node, sgp_round start)
{
    sgp_assert(start >= 0 && start < SGP_ROUND_MAX);
    if (!has_common_rounds(node))
        return;
    sgp_core_expect_epochs(node);
    node->again = true;
    if (node->exact.heard.number > 0 && node->exact.heard.start >= start)
        return; /* a neighbour began with it */
    node->exact.heard.number++;
    node->exact.heard.start = start;
}
