/* SPDX-License-Identifier: Apache-2.0 */
/* Noticing: which links a change of the node's own state concerns, and which peers must then show
 * that they are alive.
 *
 * The rule: docs/rules/silence.md */
#include "core/core.h"

static struct sgp_facts facts_of(const struct sgp_node *node)
{
    sgp_round from = node->round + (node->gave ? 1 : 0);
    return (struct sgp_facts){.state = sgp_core_state(node),
        .drained = node->drained,
        .leaving = node->leaving.wanted,
        .left = node->leaving.left,
        .pledges = sgp_core_has_gone(node) && sgp_core_bequest(node) != NULL,
        .chooses = sgp_core_chooses(node, from),
        .heir = node->leaving.heir,
        .bequest_round = node->leaving.round,
        .ends = node->fleet.ends,
        .stop = node->fleet.stop,
        .mixes = node->ending.mixes,
        .endless = node->fleet.endless,
        .trained = node->round >= sgp_core_train_end(node),
        .last_follows = sgp_core_last_follows(node),
        .grants_all = sgp_core_grants_all(node),
        .round = node->round,
        .from = from};
}

/* The turn of round `passed` is over, so its targets now get the promise of another round. */
static void mark_neighbours(struct sgp_node *node, sgp_round passed)
{
    uint32_t count;
    const struct sgp_phase *phase = sgp_topology_phase(node->config.topology, passed);
    const struct sgp_edge *edges = sgp_phase_out(phase, node->config.self, &count);
    for (uint32_t e = 0; e < count; e++)
        sgp_core_mark_dirty(node, sgp_core_find(node, edges[e].target, SGP_OUT));
}

/* Mark the links whose share has become near. */
static void mark_promised(struct sgp_node *node)
{
    for (uint32_t i = node->layout.out_count; i < node->layout.link_count; i++)
        if (node->layout.link_index.promised[i] <= node->round + 1)
            sgp_core_mark_dirty(node, &node->layout.links[i]);
}

void sgp_core_probe(struct sgp_node *node, struct sgp_core_link *link)
{
    if (link->liveness.probed != SGP_TIME_NEVER)
        return;
    link->liveness.probed = node->now;
    sgp_core_mark_dirty(node, link);
}

/* This node has become active. Before, no heartbeats were due from inactive peers, so how long they
 * have been silent says nothing. */
static void probe_inactive(struct sgp_node *node)
{
    SGP_EACH_LINK (link, node)
        if (!sgp_core_state_is_active(link->pulse.state))
            sgp_core_probe(node, link);
}

/* A new round concerns only the neighbours in it. Every other change concerns all links. */
void sgp_core_notice(struct sgp_node *node)
{
    struct sgp_facts facts = facts_of(node), *former = &node->layout.link_index.facts;
    bool all = facts.state != former->state || facts.drained != former->drained ||
               facts.leaving != former->leaving || facts.left != former->left ||
               facts.pledges != former->pledges || facts.chooses != former->chooses ||
               facts.heir != former->heir || facts.bequest_round != former->bequest_round ||
               facts.ends != former->ends || facts.stop != former->stop ||
               facts.mixes != former->mixes || facts.endless != former->endless ||
               facts.trained != former->trained || facts.last_follows != former->last_follows ||
               facts.grants_all != former->grants_all;
    bool turned = facts.from != former->from;
    if (all || node->changed || (turned && (facts.chooses || facts.from != former->from + 1)))
        sgp_core_mark_all_dirty(node);
    else if (turned)
        mark_neighbours(node, former->from);
    if (facts.round != former->round)
        mark_promised(node);
    if (sgp_core_state_is_active(facts.state) && !sgp_core_state_is_active(former->state))
        probe_inactive(node);
    node->layout.link_index.facts = facts;
}
