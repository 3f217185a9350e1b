/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting: for whom a round waits before it is complete, and what a node that waits for those who train does meanwhile.
 * The rule: docs/rules/round.md */
#include "core/core.h"

#define PASSES_LEAST_NS (10 * SGP_MILLISECOND) /* where the pace is not known */

/* Whether any of these edges carries a part that this one does. */
static bool meets(const struct sgp_edge *edge, const struct sgp_edge *others, uint32_t count)
{
    bool any = false;
    for (uint32_t e = 0; e < count && !any; e++)
        any = edge->part_count == 0 || others[e].part_count == 0 ||
              (edge->part < others[e].part + others[e].part_count &&
                  others[e].part < edge->part + edge->part_count);
    return any;
}

/* Whether what is given in this round may come in the next one: that goes on with other parts, for this node gives and is given
 * nothing of these then, and takes no steps. It belongs to the same cycle. */
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

/* Within an exact cycle: whoever gives by the file, and has not, there or not. */
static const struct sgp_core_link *awaited_by_file(const struct sgp_node *node)
{
    bool first = sgp_topology_start_from(node->config.topology, node->round) == node->round;
    const struct sgp_core_link *before = first ? NULL : sgp_core_missing_of(node, node->round - 1);
    const struct sgp_core_link *missing = sgp_core_missing_of(node, node->round);
    return before != NULL ? before : missing != NULL && !may_come_later(node) ? missing : NULL;
}

/* Whether it brings none to this step: it is ahead, since the owner has lost its ledger, or has given what it had to an owner
 * before. */
static bool has_passed(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return sgp_core_living(link) &&
           (link->pulse.round > node->round || link->receiving.promise > node->round);
}

/* An owner waits for the updates of all but so many workers, there or not, as long as there are others who may bring
 * one; and for one in any case. */
static const struct sgp_core_link *awaited_by_owner(const struct sgp_node *node)
{
    const struct sgp_topology *topology = node->config.topology;
    const struct sgp_core_link *first = NULL, *missing = NULL;
    uint32_t came = 0;
    bool passed = false;
    for (uint32_t i = node->layout.out_count; i < node->layout.link_count; i++) {
        const struct sgp_core_link *link = &node->layout.links[i];
        bool ahead = has_passed(node, link);
        passed = passed || ahead;
        bool answered = link->receiving.latest == node->round;
        came += answered;
        if (link->retired || answered || ahead)
            continue;
        first = first == NULL ? link : first;
        missing = missing == NULL && sgp_core_is_waited_for(link) ? link : missing;
    }
    if (came + topology->phases[0].backup >= sgp_topology_trainers(topology))
        return NULL;
    return came == 0 && missing == NULL && !passed ? first : missing;
}

/* An owner at its own pace waits for anybody's update, if it still takes any. */
static const struct sgp_core_link *awaited_by_taker(const struct sgp_node *node)
{
    const struct sgp_core_link *first = NULL, *missing = NULL;
    bool passed = false;
    if (node->round >= sgp_core_last(node))
        return NULL;
    for (uint32_t i = 0; i < node->layout.receive_count; i++)
        if (node->layout.receives[i].state == SGP_RECEIVE_HELD)
            return NULL;
    for (uint32_t i = node->layout.out_count; i < node->layout.link_count; i++) {
        const struct sgp_core_link *link = &node->layout.links[i];
        if (link->receiving.latest == node->round) /* it was refused */
            return NULL;
        if (link->retired)
            continue;
        bool ahead = has_passed(node, link);
        passed = passed || ahead;
        first = first == NULL ? link : first;
        missing = missing == NULL && !ahead && sgp_core_is_waited_for(link) ? link : missing;
    }
    return missing != NULL ? missing : passed ? NULL : first;
}

/* A worker waits for the copies of the next steps, unless there are none. After an early stop there may be some. */
static const struct sgp_core_link *awaited_by_worker(const struct sgp_node *node)
{
    for (uint32_t i = node->layout.out_count; i < node->layout.link_count; i++) {
        const struct sgp_core_link *owner = &node->layout.links[i];
        sgp_round label = sgp_core_label(node, owner);
        bool later =
            label < sgp_core_last(node) || (sgp_core_living(owner) && owner->pulse.round > label);
        if (later && sgp_core_lacks_copy(node, owner))
            return owner;
    }
    return NULL;
}

/* Where so many updates of this node wait for the token, it waits, too: for whoever has it. If nobody says so, one that is
 * not there may. In strict order whoever has it waits likewise, for the next. */
static const struct sgp_core_link *awaited_visitor(const struct sgp_node *node)
{
    bool here = node->mass.weight > 0;
    bool waits = node->state == SGP_NODE_TRAINING && !sgp_core_is_untold(node) &&
                 (!here || sgp_core_takes_one_each(node)) && !node->leaving.wanted &&
                 node->copy.updates >= sgp_topology_delay_most(node->config.topology);
    const struct sgp_core_link *first = NULL, *missing = NULL;
    for (uint32_t i = node->layout.out_count; waits && i < node->layout.link_count; i++) {
        const struct sgp_core_link *link = &node->layout.links[i];
        if (link->retired)
            continue;
        if (sgp_core_is_up(link) && link->receiving.promise != SGP_ROUND_NONE)
            return link;
        first = first == NULL ? link : first;
        missing = missing == NULL && !sgp_core_is_waited_for(link) ? link : missing;
    }
    return missing != NULL ? missing : first;
}

static bool is_due(const struct sgp_core_link *link, sgp_round due)
{
    return sgp_core_is_waited_for(link) && link->receiving.promise != SGP_ROUND_NONE &&
           link->receiving.promise <= due;
}

/* Whom this round still waits for: present, and promised to give in this round or before, or so many
 * rounds before as may overlap. Once the steps are done, everybody is waited for. */
const struct sgp_core_link *sgp_core_awaited(const struct sgp_node *node)
{
    if (node->role->collective)
        return awaited_by_file(node);
    if (node->role->unique)
        return awaited_visitor(node);
    if (sgp_core_leads(node))
        return sgp_core_at_own_pace(node) ? awaited_by_taker(node) : awaited_by_owner(node);
    if (sgp_core_follows(node))
        return awaited_by_worker(node);
    bool training = node->state == SGP_NODE_TRAINING;
    if (training && sgp_core_at_own_pace(node))
        return NULL;
    uint32_t spare = training ? node->config.backup_neighbours : 0;
    sgp_round due = node->round - sgp_core_overlap(node);
    for (uint32_t i = sgp_core_next(node, SGP_SET_NEAR, node->layout.out_count);
         i < node->layout.link_count; i = sgp_core_next(node, SGP_SET_NEAR, i + 1))
        if (is_due(&node->layout.links[i], due) && spare-- == 0)
            return &node->layout.links[i];
    return NULL;
}

/* Whether this round waits for one that has not come so far: that trains still, or waits for such a one; in the last
 * mixing, too, for a moment, which does no harm. */
static bool awaits_one_behind(const struct sgp_node *node)
{
    for (uint32_t i = sgp_core_next(node, SGP_SET_NEAR, node->layout.out_count);
         i < node->layout.link_count; i = sgp_core_next(node, SGP_SET_NEAR, i + 1)) {
        const struct sgp_core_link *link = &node->layout.links[i];
        if (is_due(link, node->round) && link->pulse.round < node->round)
            return true;
    }
    return false;
}

/* At its own pace a node that has done its steps waits for others that train still. It passes on what they give, as often as
 * when it trained, along the edges of one round after the other; its label stays. Else those behind would give, be given
 * nothing, and train alone. */
sgp_time sgp_core_passes_on_at(const struct sgp_node *node)
{
    if (!sgp_core_may_pass_on(node) || !awaits_one_behind(node))
        return SGP_TIME_NEVER;
    sgp_time since = node->passes > 0 ? node->passed : node->stage_since, each = node->pace.each;
    if (each == 0) /* its steps were done in a former process: as often as it is given something */
        each = node->fed ? PASSES_LEAST_NS : SGP_SECOND;
    return since + each;
}

const struct sgp_role sgp_role_gossip = {
    .name = "gossip",
};
