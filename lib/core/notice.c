/* SPDX-License-Identifier: Apache-2.0 */
/* Noticing: which links a change of the node's own state concerns, and which peers must then show
 * that they are alive.
 *
 * The rule: docs/rules/silence.md */
#include "core/core.h"

/* Bits of the word of facts. The state and the heir are behind them. */
enum condition {
    DRAINED,
    LEAVING,
    LEFT,
    PLEDGES,
    CHOOSES,
    ENDLESS,
    TRAINED, /* the round is not before the end of training */
    LAST_FOLLOWS,
    GRANTS_ALL,
};
#define STATE 16
#define HEIR 32

static uint64_t word_of(const struct sgp_node *node, sgp_round from)
{
    const bool pledges = sgp_core_has_gone(node) && sgp_core_bequest(node) != NULL;
    const bool trained = node->round >= sgp_core_train_end(node);
    return (uint64_t)node->leaving.heir << HEIR | (uint64_t)sgp_core_state(node) << STATE |
           (uint64_t)node->drained << DRAINED | (uint64_t)node->leaving.wanted << LEAVING |
           (uint64_t)node->leaving.left << LEFT | (uint64_t)pledges << PLEDGES |
           (uint64_t)sgp_core_chooses(node, from) << CHOOSES |
           (uint64_t)node->fleet.endless << ENDLESS | (uint64_t)trained << TRAINED |
           (uint64_t)sgp_core_last_follows(node) << LAST_FOLLOWS |
           (uint64_t)sgp_core_grants_all(node) << GRANTS_ALL;
}

static enum sgp_node_state state_in(uint64_t word)
{
    return (enum sgp_node_state)(word >> STATE & 0xffff);
}

static struct sgp_facts facts_of(const struct sgp_node *node)
{
    sgp_round from = node->round + (node->gave ? 1 : 0);
    return (struct sgp_facts){.word = word_of(node, from),
        .bequest_round = node->leaving.round,
        .ends = node->fleet.ends,
        .stop = node->fleet.stop,
        .mixes = node->ending.mixes,
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
    bool all = facts.word != former->word || facts.bequest_round != former->bequest_round ||
               facts.ends != former->ends || facts.stop != former->stop ||
               facts.mixes != former->mixes;
    bool turned = facts.from != former->from, chooses = (facts.word >> CHOOSES & 1) != 0;
    if (all || node->changed || (turned && (chooses || facts.from != former->from + 1)))
        sgp_core_mark_all_dirty(node);
    else if (turned)
        mark_neighbours(node, former->from);
    if (facts.round != former->round)
        mark_promised(node);
    if (sgp_core_state_is_active(state_in(facts.word)) &&
        !sgp_core_state_is_active(state_in(former->word)))
        probe_inactive(node);
    node->layout.link_index.facts = facts;
}
