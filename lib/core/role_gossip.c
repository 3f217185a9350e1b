/* SPDX-License-Identifier: Apache-2.0 */
/* The role of a node that mixes: which neighbours its round waits for, and when it passes mass on
 * while it waits.
 *
 * The rule: docs/rules/round.md */
#include "core/core.h"

static bool is_due(const struct sgp_core_link *link, sgp_round due)
{
    return sgp_core_is_waited_for(link) && link->receiving.promise[0] != SGP_ROUND_NONE &&
           link->receiving.promise[0] <= due;
}

/* The first neighbour that this round waits for. It is present, and promised to give in this round
 * or an earlier one, or the number of rounds earlier that may overlap. Once the steps are done,
 * every neighbour is waited for. */
static const struct sgp_core_link *awaited(const struct sgp_node *node)
{
    bool training = node->state == SGP_NODE_TRAINING;
    if (training && sgp_core_at_own_pace(node))
        return NULL;
    uint32_t spare = training ? node->config.backup_neighbours : 0;
    sgp_round due = node->round - sgp_core_overlap(node);
    SGP_EACH_OF (link, node, SGP_SET_NEAR)
        if (is_due(link, due) && spare-- == 0)
            return link;
    return NULL;
}

/* Whether an awaited neighbour trains, or itself waits for a neighbour that trains. This also holds
 * during the last mixing, where it is harmless. */
static bool awaits_one_behind(const struct sgp_node *node)
{
    SGP_EACH_OF (link, node, SGP_SET_NEAR) {
        if (is_due(link, node->round) && link->pulse.round < node->round)
            return true;
    }
    return false;
}

/* At its own pace, a node without remaining steps passes on the mass that it receives. It does so
 * at the rate at which it trained, along the edges of each round in turn. Otherwise the nodes that
 * still train would receive nothing, and would train alone. */
sgp_time sgp_core_passes_on_at(const struct sgp_node *node)
{
    if (!sgp_core_may_pass_on(node) || !awaits_one_behind(node))
        return SGP_TIME_NEVER;
    return (node->passes > 0 ? node->passed : node->stage_since) + sgp_core_own_round(node);
}

/* At its own pace, a relay makes a round for each share that comes, so its label cannot count its
 * rounds. It is in the round of the others, which a restarted neighbour takes from it. It omits
 * no round, because its edges may be in any, unless it is far behind. */
static sgp_round next_label(struct sgp_node *node)
{
    if (!sgp_core_is_relay(node) || !sgp_core_at_own_pace(node))
        return node->round + 1;
    sgp_round there = sgp_core_round_of_others(node);
    if (there > node->round + sgp_core_far_ahead(node))
        return there;
    return node->round + (there > node->round || !sgp_core_others_train(node) ? 1 : 0);
}

const struct sgp_role sgp_role_gossip = {
    .name = "gossip",
    .awaited = awaited,
    .next_label = next_label,
};
