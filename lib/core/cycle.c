/* SPDX-License-Identifier: Apache-2.0 */
/* Exact cycles: all-reduce as a part of a topology file.
 *
 * Such a cycle is one collective operation. It begins with weight 1 at every node that trains, and
 * ends with the mean at all nodes, as the proof in the file shows (sgp/topology.h). The file fixes
 * the weights of parts within a cycle, so no weight travels: a node's w stays the same, and shares
 * carry 0. Every node is awaited.
 *
 * A cycle cannot be completed if a node lost intermediate values, or if the file has changed. Then
 * all nodes renew it. An epoch is a pair (number, start). A node that lost something takes the next
 * number. A node that hears of a higher pair drops its part of the cycle, and begins again at that
 * start with the vector with which it entered. A node that is further ahead raises the start, so
 * that all nodes reach the same pair.
 *
 * The rule: docs/rules/cycle.md */
#include "core/core.h"

#include <math.h>

/* ---- renewing ---- */

/* A target does not absorb a share of a former epoch. A share in transit is answered first. */
static void void_owed(struct sgp_node *node)
{
    SGP_EACH_OF (link, node, SGP_SET_OWING) {
        if (!link->owed[0].exists || link->owed[0].share.bequest > 0)
            continue;
        sgp_mass_post(node, SGP_MASS_VOID_OWED, link->owed[0].share.weight);
        link->owed[0].share.weight = 0;
        link->owed[0].is_void = link->owed[1].is_void = true;
        link->inquiry.disputed = 0;
        sgp_core_forget_unsent(node, link);
        if (link->owed[0].refused != 0)
            sgp_core_forget_owed(node, link);
    }
}

/* Drop held shares, except bequests and shares of the new epoch. */
static void drop_held(struct sgp_node *node)
{
    SGP_EACH_IN (link, node)
        link->receiving.latest = SGP_ROUND_NONE;
    for (uint32_t i = 0; i < node->layout.receive_count; i++) {
        struct sgp_receive *receive = &node->layout.receives[i];
        if (receive->state != SGP_RECEIVE_HELD || receive->share.bequest > 0)
            continue;
        sgp_round *latest = &sgp_core_find(node, receive->peer, SGP_IN)->receiving.latest;
        if (!sgp_core_epoch_is_below(&receive->epoch, &node->exact.epoch)) {
            *latest = receive->share.round > *latest ? receive->share.round : *latest;
            continue;
        }
        sgp_mass_post(node, SGP_MASS_DROP, receive->share.weight);
        receive->state = SGP_RECEIVE_FREE;
    }
}

void sgp_core_void_former(struct sgp_node *node)
{
    drop_held(node);
    void_owed(node);
    sgp_core_void_debts(node);
}

/* A node that has given everything away takes one share back, in order to have an estimate. */
static void take_one_back(struct sgp_node *node)
{
    for (uint32_t i = 0; node->mass.weight <= 0 && i < node->layout.out_count; i++) {
        struct sgp_owed *owed = &node->layout.links[i].owed[0];
        if (!owed->exists || owed->slot == SGP_SLOT_NONE || owed->share.weight <= 0 ||
            owed->share.bequest > 0)
            continue;
        sgp_core_put_back(node, owed->slot, &owed->share);
        node->layout.snapshot_users[owed->slot]++; /* until the job is done */
        sgp_mass_post(node, SGP_MASS_RETURN, owed->share.weight);
        owed->share.weight = 0;
    }
}

/* x becomes the vector with which this node entered the cycle. A relay entered with zero. */
static void go_back(struct sgp_node *node)
{
    sgp_core_scale(node, 0, sgp_core_all(node));
    if (node->exact.input == SGP_SLOT_NONE)
        return;
    sgp_core_put_back(node, node->exact.input, /* in use until the job is done */
        &(struct sgp_share){.fraction = 1, .slice = sgp_core_all(node)});
    node->exact.input = SGP_SLOT_NONE;
}

/* Members whose mass is here but not absorbed yet. */
static double bequests_held(const struct sgp_node *node)
{
    double members = 0;
    for (uint32_t i = 0; i < node->layout.receive_count; i++)
        if (node->layout.receives[i].state == SGP_RECEIVE_HELD)
            members +=
                fmin(node->layout.receives[i].share.bequest, node->layout.receives[i].share.weight);
    return members;
}

/* An open end moves with the node: with each round, and as soon as steps are taken, so that the
 * shares that contain them state it. Also with steps that were under way when the program ended. */
void sgp_core_put_off_end(struct sgp_node *node)
{
    bool moves = node->config.open || (node->fleet.endless && node->trained);
    if (moves && node->fleet.ends < sgp_core_open_end(node))
        node->fleet.ends = sgp_core_open_end(node);
}

/* Take the weight with which a node begins a cycle, at its present estimate. Mass that it inherited
 * before is dissolved. */
static void take_weight(struct sgp_node *node)
{
    double weight = sgp_topology_starts(node->config.topology, node->config.self);
    double changes = weight - node->mass.weight, held = bequests_held(node);
    double dissolved = node->mass.covered - held;
    sgp_mass_set_members(node, held, held);
    if (dissolved > 0)
        sgp_core_note(node, SGP_NOTE_DISSOLVED, node->config.self)->amount = dissolved;
    if (!(changes > 0 || changes < 0))
        return;
    if (node->mass.weight > 0)
        sgp_core_scale(node, weight / node->mass.weight, sgp_core_all(node));
    else
        sgp_core_want(node);
    sgp_mass_set(node, weight);
}

static void begin_again(struct sgp_node *node, sgp_round start, sgp_round epoch_start)
{
    double before = node->mass.due;
    if (node->mass.weight <= 0 && !node->exact.begun) /* absorbing is the only way to an estimate */
        sgp_core_absorb_until(node, SGP_ROUND_MAX);
    node->exact.epoch =
        (struct sgp_epoch){.number = node->exact.heard.number, .start = epoch_start};
    node->exact.heard = node->exact.epoch;
    if (node->exact.heeds > 0 && !sgp_topology_has_exact(node->config.topology))
        node->exact.heeds--;
    if (node->exact.begun)
        go_back(node);
    node->exact.begun = false;
    take_one_back(node);
    sgp_core_void_former(node);
    take_weight(node);
    sgp_core_set_round(node, start);
    node->round_since = node->now;
    node->passes = 0;
    node->gave = node->trained = false;
    sgp_core_put_off_end(node);
    node->exact.renewed++;
    struct sgp_noted *note = sgp_core_note(node, SGP_NOTE_RENEWED, node->config.self);
    note->until = start;
    note->amount = node->mass.due - before;
    node->changed = node->unrecorded = node->again = true;
    sgp_core_mark_all_dirty(node);
    sgp_core_notice(node);
}

/* A node that is ahead of the start of the epoch raises the start. Outside of exact cycles rounds
 * need not be equal. */
static sgp_round start_of(const struct sgp_node *node)
{
    sgp_round start = node->exact.heard.start > node->round ? node->exact.heard.start : node->round;
    return sgp_topology_start_from(
        node->config.topology, start); /* the sender may have another file */
}

void sgp_core_renew(struct sgp_node *node)
{
    if (!sgp_core_epoch_is_below(&node->exact.epoch, &node->exact.heard))
        return;
    if (node->role->renew != NULL) {
        node->role->renew(node);
        return;
    }
    bool active = node->state == SGP_NODE_TRAINING || node->state == SGP_NODE_SETTLING ||
                  node->state == SGP_NODE_FINISHED;
    if (!active || sgp_core_computes(node))
        return;
    sgp_round start = start_of(node);
    bool exact = node->role->collective ||
                 node->exact.begun; /* otherwise no node must begin at this node's round */
    begin_again(node, start, exact ? start : node->exact.heard.start);
    if (node->stage != SGP_STAGE_END && node->stage != SGP_STAGE_BEGIN)
        sgp_core_enter(node, SGP_STAGE_BEGIN);
}

/* Whether this node was in an exact cycle, or a neighbour is in one. When some nodes have finished
 * the prelude, others may still be in it, and wait for values that are lost. A node that joins
 * counts only its own record. */
static bool is_amid_exact(const struct sgp_node *node)
{
    const struct sgp_topology *topology = node->config.topology;
    bool exact = node->role->collective && node->past.recorded;
    SGP_EACH_LINK (link, node) {
        bool here =
            sgp_core_living(link) && link->pulse.round >= 0 && link->pulse.round <= SGP_ROUND_MAX;
        exact = exact || (here && sgp_topology_is_exact(topology, link->pulse.round, NULL));
    }
    return exact || sgp_topology_is_exact(
                        topology, sgp_core_furthest(node, node->round, sgp_core_is_up), NULL);
}

/* A node joins. `lost`: it lacks values that others need. False: no exact cycle is in progress. */
bool sgp_core_rejoins_cycle(struct sgp_node *node, bool lost)
{
    if (!sgp_core_uses_epochs(node) || node->role->unique)
        return false;
    if (!is_amid_exact(node)) { /* after a renewal, every node has weight 1 again */
        if (sgp_core_epoch_is_below(&node->exact.epoch, &node->exact.heard))
            begin_again(node, node->round, node->exact.heard.start);
        return false;
    }
    if (lost)
        sgp_core_raise_epoch(node);
    if (sgp_core_epoch_is_below(&node->exact.epoch, &node->exact.heard)) {
        sgp_round start = start_of(node);
        begin_again(node, start, start);
    }
    return true;
}

/* ---- beginning ---- */

static bool is_here(const struct sgp_node *node, const struct sgp_core_link *link)
{
    const struct sgp_epoch *epoch = &link->pulse.epoch;
    bool active = link->pulse.state == SGP_NODE_TRAINING || link->pulse.state == SGP_NODE_SETTLING;
    return link->connection.state == SGP_LINK_UP && active && sgp_core_is_in_force(node, epoch) &&
           epoch->topology == node->config.topology->digest;
}

const struct sgp_core_link *sgp_core_cannot_begin(const struct sgp_node *node)
{
    sgp_round start;
    if (!sgp_topology_is_exact(node->config.topology, node->round, &start) || node->round != start)
        return NULL;
    SGP_EACH_LINK (link, node)
        if (!link->retired && !is_here(node, link))
            return link;
    return NULL;
}

void sgp_core_enter_cycle(struct sgp_node *node, uint32_t slot)
{
    node->exact.begun = true;
    node->exact.input = slot;
    if (slot != SGP_SLOT_NONE)
        node->layout.snapshot_users[slot]++;
}

/* ---- ending ---- */

/* Adjacent parts that end with the same weight are divided by it together. */
static void divide(struct sgp_node *node)
{
    const struct sgp_topology *topology = node->config.topology;
    const double *ends = sgp_topology_ends(topology, node->round, node->config.self);
    for (uint32_t q = 0, end; q < topology->slices; q = end) {
        for (end = q + 1; end < topology->slices && (float)ends[end] == (float)ends[q];)
            end++;
        struct sgp_slice slice = sgp_topology_parts(topology, q, end - q, node->config.parameters);
        if ((float)ends[q] != 1 && slice.count > 0)
            sgp_core_scale(node, 1 / ends[q], slice);
    }
}

void sgp_core_close_cycle(struct sgp_node *node)
{
    const struct sgp_topology *topology = node->config.topology;
    sgp_round next = node->round + 1;
    if (!node->role->collective || sgp_topology_start_from(topology, next) != next)
        return;
    if (sgp_core_is_relay(node))
        sgp_core_scale(node, 0, sgp_core_all(node));
    else
        divide(node);
    if (node->exact.input != SGP_SLOT_NONE)
        node->layout.snapshot_users[node->exact.input]--;
    node->exact.input = SGP_SLOT_NONE;
    node->exact.begun = false;
    if (node->paused) { /* the pause takes effect now */
        node->changed = true;
        (void)sgp_core_note(node, SGP_NOTE_STATE, node->config.self);
    }
}
