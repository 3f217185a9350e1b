/* SPDX-License-Identifier: Apache-2.0 */
/* The role of a node within an exact cycle: all neighbours are awaited, and shares are as the file
 * says.
 *
 * The rule: docs/rules/cycle.md */
#include "core/core.h"

/* Whether one of these edges carries a part that this edge carries. */
static bool meets(const struct sgp_edge *edge, const struct sgp_edge *others, uint32_t count)
{
    bool any = false;
    for (uint32_t e = 0; e < count && !any; e++)
        any = edge->part_count == 0 || others[e].part_count == 0 ||
              (edge->part < others[e].part + others[e].part_count &&
                  others[e].part < edge->part + edge->part_count);
    return any;
}

/* Whether shares of this round may arrive in the next one. In the next round this node must give
 * and receive other parts only, and take no steps. That round must belong to the same cycle. */
static bool may_come_later(const struct sgp_node *node)
{
    const struct sgp_topology *topology = node->config.topology;
    const struct sgp_phase *next = sgp_topology_phase(topology, node->round + 1);
    uint32_t count, given, come;
    const struct sgp_edge *edges =
        sgp_phase_in(sgp_topology_phase(topology, node->round), node->config.self, &count);
    const struct sgp_edge *out = sgp_phase_out(next, node->config.self, &given);
    const struct sgp_edge *in = sgp_phase_in(next, node->config.self, &come);
    bool apart = given > 0 &&
                 sgp_topology_start_from(topology, node->round + 1) != node->round + 1 &&
                 !sgp_core_trains_in(node, node->round + 1);
    for (uint32_t e = 0; e < count && apart; e++)
        apart = !meets(&edges[e], out, given) && !meets(&edges[e], in, come);
    return apart;
}

/* Within an exact cycle: the first source of the file that has not given, whether it is present or
 * not. */
static const struct sgp_core_link *awaited(const struct sgp_node *node)
{
    bool first = sgp_topology_start_from(node->config.topology, node->round) == node->round;
    const struct sgp_core_link *before = first ? NULL : sgp_core_missing_of(node, node->round - 1);
    const struct sgp_core_link *missing = sgp_core_missing_of(node, node->round);
    return before != NULL ? before : missing != NULL && !may_come_later(node) ? missing : NULL;
}

static bool is_expected(
    const struct sgp_node *node, const struct sgp_core_link *link, const struct sgp_share *share)
{
    const struct sgp_topology *topology = node->config.topology;
    uint32_t count;
    const struct sgp_edge *edges =
        sgp_phase_in(sgp_topology_phase(topology, share->round), node->config.self, &count);
    for (uint32_t e = 0; e < count; e++) {
        if (edges[e].source != link->peer)
            continue;
        struct sgp_slice slice = sgp_topology_values(topology, &edges[e], node->config.parameters);
        bool given = share->fraction >= edges[e].fraction && share->fraction <= edges[e].fraction;
        bool nothing = slice.count == 0 && share->payload_bytes == 0;
        return nothing || (given && share->weight <= 0 && share->slice.first == slice.first &&
                              share->slice.count == slice.count);
    }
    return false;
}

/* A share of this epoch and this file must be as the file says. */
static bool fits(
    const struct sgp_node *node, const struct sgp_core_link *link, const struct sgp_share *share)
{
    const struct sgp_epoch *theirs = &link->pulse.epoch, *ours = &node->exact.epoch;
    bool judges = share->bequest <= 0 && theirs->number == ours->number &&
                  theirs->start == ours->start && theirs->topology == node->config.topology->digest;
    return !judges || is_expected(node, link, share);
}

/* A share waits for its round, and for all shares of that round, so that they are absorbed in the
 * order of sources. That is so even where a share may arrive in the next round. A bequest waits for
 * the next cycle. */
static bool may_absorb(const struct sgp_node *node, const struct sgp_receive *receive, bool early)
{
    if (!sgp_core_is_in_force(node, &receive->epoch))
        return sgp_core_may_absorb(node, receive);
    if (receive->share.bequest > 0)
        return !node->exact.begun && node->stage == SGP_STAGE_BEGIN;
    bool before = receive->share.round < node->round, now = receive->share.round == node->round;
    bool whole = early || sgp_core_missing_of(node, receive->share.round) == NULL;
    return whole && (before || (now && node->stage == SGP_STAGE_GATHER));
}

const struct sgp_role sgp_role_cycle = {
    .name = "cycle",
    .collective = true,
    .gives_always = true,
    .fits = fits,
    .may_absorb = may_absorb,
    .awaited = awaited,
};
