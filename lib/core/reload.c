/* SPDX-License-Identifier: Apache-2.0 */
/* Another topology for a running node. Allocation, which can fail, comes first
 * (sgp_reload_prepare). Then every link that survives moves, with its whole state, to its place in
 * the new arrays. Peers that the new file does not name are settled with as far as possible.
 * Nothing else of the node changes, so a round continues in its present stage. Plans are made again
 * from the new file, and a changed promise is announced at once.
 *
 * The rule: docs/rules/reload.md */
#include "core/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sgp_reload {
    struct sgp_node_change change;
    /* for each node of the previous file: its index in the new one, or SGP_SLOT_NONE */
    uint32_t *index;
    struct sgp_layout layout;
};

/* ---- checks and allocation ---- */

static bool is_sound(const struct sgp_node *node, const struct sgp_node_change *change)
{
    const struct sgp_topology *topology = change->topology;
    return topology != NULL && change->self < topology->node_count && change->weight_least >= 0 &&
           sgp_topology_check_owners(topology, node->config.parameters, NULL) == 0 &&
           change->weight_least <= SGP_NODES_MAX && change->weight_most >= 0 &&
           change->weight_most <= SGP_NODES_MAX &&
           strcmp(topology->nodes[change->self].name,
               node->config.topology->nodes[node->config.self].name) == 0;
}

/* Whether the node would become a relay, begin to train, or own other values. Only the next process
 * may do that. */
static bool takes_another_part(const struct sgp_node *node, const struct sgp_node_change *change)
{
    const struct sgp_topology *former = node->config.topology, *next = change->topology;
    const struct sgp_topology_node *was = &former->nodes[node->config.self];
    const struct sgp_topology_node *is = &next->nodes[change->self];
    bool relay = was->relay != is->relay;
    struct sgp_slice had = sgp_topology_owned(former, node->config.self, node->config.parameters);
    struct sgp_slice has = sgp_topology_owned(next, change->self, node->config.parameters);
    bool owns = !sgp_topology_has_token(next) && is->owns &&
                (had.first != has.first || had.count != has.count);
    double starts = sgp_topology_starts(former, node->config.self);
    bool exact = sgp_topology_has_exact(former) || sgp_topology_has_exact(next);
    return relay || owns || (exact && sgp_topology_starts(next, change->self) != starts);
}

static void find_nodes(
    const struct sgp_topology *former, const struct sgp_topology *topology, uint32_t *index)
{
    for (uint32_t i = 0; i < former->node_count; i++) {
        int64_t found = sgp_topology_find(topology, former->nodes[i].name);
        index[i] = found < 0 ? SGP_SLOT_NONE : (uint32_t)found;
    }
}

static void mark_links(const struct sgp_node *node, const uint32_t *index, unsigned char *marks)
{
    SGP_EACH_LINK (link, node) {
        uint32_t peer = index[link->peer];
        if (peer == SGP_SLOT_NONE)
            continue;
        marks[peer] |= link->direction == SGP_OUT ? SGP_MARK_KEPT_OUT : SGP_MARK_KEPT_IN;
        if (link->owed[0].exists && link->owed[0].slot != SGP_SLOT_NONE)
            marks[peer] |= SGP_MARK_OWES;
    }
}

int sgp_reload_prepare(const struct sgp_node *node, const struct sgp_node_change *change,
    struct sgp_node_needs *ret_needs, struct sgp_reload **ret_reload)
{
    if (!is_sound(node, change) || takes_another_part(node, change))
        return -EINVAL;
    const struct sgp_topology *former = node->config.topology;
    struct sgp_reload *reload = calloc(1, sizeof *reload);
    unsigned char *marks = calloc(change->topology->node_count, 1);
    uint32_t *index = calloc(former->node_count, sizeof *index);
    int code = reload != NULL && marks != NULL && index != NULL ? 0 : -ENOMEM;
    if (code == 0) {
        find_nodes(former, change->topology, index);
        mark_links(node, index, marks);
        struct sgp_node_needs least;
        sgp_node_counts(node, &least);
        code = sgp_core_lay_out(
            change->topology, change->self, node->config.method, marks, &least, &reload->layout);
    }
    free(marks);
    if (code < 0) {
        free(index);
        free(reload);
        return code;
    }
    reload->change = *change;
    reload->index = index;
    sgp_core_layout_needs(&reload->layout, ret_needs);
    *ret_reload = reload;
    return 0;
}

void sgp_reload_cancel(struct sgp_reload *reload)
{
    if (reload == NULL)
        return;
    sgp_core_layout_finish(&reload->layout);
    free(reload->index);
    free(reload);
}

/* ---- the change itself ---- */

/* The new file does not name this peer. Shares that it accepted without acknowledging are lost with
 * its own mass. */
static void part_with(struct sgp_node *node, struct sgp_core_link *link)
{
    if (link->connection.id != 0)
        sgp_core_hang_up(node, link, SGP_E_CLOSED, SGP_REASON_TOPOLOGY);
    sgp_core_end_pending(node, link, SGP_REASON_TOPOLOGY);
    bool may_be_elsewhere = node->role->unique && (link->owed[0].told || link->owed[0].lost);
    while (link->owed[0].exists)
        if (may_be_elsewhere)
            sgp_core_accepted_by_peer(node, link);
        else if (!sgp_core_keep_pledged(node, link))
            sgp_core_take_back(node, link, SGP_REASON_TOPOLOGY);
    if (link->direction == SGP_IN)
        sgp_core_absorb_from(node, link->peer);
    sgp_core_end_question(node, link); /* also a candidate without a connection */
    sgp_core_forget_base(node, &link->work.base);
}

static void settle_former(struct sgp_node *node, const struct sgp_reload *reload)
{
    const struct sgp_topology_node *former = node->config.topology->nodes;
    const struct sgp_topology_node *now = reload->change.topology->nodes;
    sgp_core_reconsider(node, reload->index);
    SGP_EACH_LINK (link, node) {
        uint32_t peer = reload->index[link->peer];
        if (peer == SGP_SLOT_NONE)
            part_with(node, link);
        else if (link->direction == SGP_OUT && link->connection.id != 0 &&
                 strcmp(former[link->peer].address, now[peer].address) != 0)
            sgp_core_hang_up(node, link, SGP_E_CLOSED, SGP_REASON_TOPOLOGY);
    }
    sgp_core_move_accounts(node, reload->change.topology, reload->index);
}

/* Move a link that survives to its place among those of the new file. */
static void move_link(struct sgp_node *node, const struct sgp_core_link *from, uint32_t peer)
{
    struct sgp_core_link *link = sgp_core_find(node, peer, from->direction);
    bool retired = link->retired;
    *link = *from;
    link->peer = peer;
    link->retired = retired;
    link->giving.plan = link->giving.plan_from = SGP_ROUND_NONE;
    link->work.held = SGP_ROUND_NONE; /* the owner's parts may have changed */
    link->inquiry.search.number = 0;  /* the search begins again, among other nodes */
    for (uint32_t k = 0; k < 2; k++)
        if (link->receiving.slot[k] != SGP_SLOT_NONE)
            node->layout.receives[link->receiving.slot[k]].peer = peer;
}

static void move_links(
    struct sgp_node *node, const struct sgp_layout *former, const uint32_t *index)
{
    for (uint32_t i = 0; i < former->link_count; i++)
        if (index[former->links[i].peer] != SGP_SLOT_NONE)
            move_link(node, &former->links[i], index[former->links[i].peer]);
    SGP_EACH_OUT (link, node) {
        if (link->connection.state != SGP_LINK_DOWN)
            continue;
        link->connection.redial = node->now;
        link->connection.backoff = SGP_DIAL_MIN_NS;
    }
}

static void move_slots(
    struct sgp_node *node, const struct sgp_layout *former, const uint32_t *index)
{
    memcpy(node->layout.snapshot_users, former->snapshot_users,
        former->snapshot_count * sizeof *former->snapshot_users);
    memcpy(
        node->layout.receives, former->receives, former->receive_count * sizeof *former->receives);
    for (uint32_t i = 0; i < former->receive_count; i++)
        if (node->layout.receives[i].state ==
            SGP_RECEIVE_HELD) /* granted buffers move with their link */
            node->layout.receives[i].peer = index[node->layout.receives[i].peer];
    if (node->leaving.heir != SGP_SLOT_NONE)
        node->leaving.heir = index[node->leaving.heir];
}

/* Turns before this round are counted by the previous file. */
static void take_turns(struct sgp_node *node, const struct sgp_topology *next)
{
    bool exact = sgp_topology_has_exact(node->config.topology) || sgp_topology_has_exact(next);
    sgp_round count = sgp_core_turn(node, node->round);
    sgp_round left =
        node->fleet.stop != SGP_ROUND_NONE ? sgp_core_turn(node, node->fleet.stop) - count : 0;
    node->turns.round = node->round;
    node->turns.count = count;
    if (node->fleet.stop != SGP_ROUND_NONE && exact)
        node->fleet.stop = sgp_topology_after_turns(
            next, sgp_topology_turns(next, node->round) + (left > 0 ? left : 0));
}

/* The exact cycle of another file is a different one. All nodes begin it again, and earlier rounds
 * say nothing about the end. */
static void renew_for(struct sgp_node *node, const struct sgp_topology *former)
{
    const struct sgp_topology *topology = node->config.topology;
    bool exact = sgp_topology_has_exact(former) || sgp_topology_has_exact(topology);
    if (!exact || former->digest == topology->digest)
        return;
    node->fleet.ends = 0;
    node->fleet.ends = sgp_core_own_end(node); /* for a relay 0, until other nodes say more */
    node->ending.mixes = 0;
    sgp_core_expect_epochs(node);
    sgp_core_raise_epoch(node);
}

void sgp_node_reload(
    struct sgp_node *node, sgp_time now, struct sgp_reload *reload, struct sgp_effects *effects)
{
    sgp_assert(now >= node->now);
    const struct sgp_topology *former = node->config.topology;
    node->now = now;
    node->effects = effects;
    effects->count = 0;
    settle_former(node, reload);
    sgp_core_drop_change(node);
    /* A node without links has no sketch. */
    sgp_core_settle_to_compare(node, reload->layout.link_count);
    node->effects = NULL;
    take_turns(node, reload->change.topology);
    node->config.topology = reload->change.topology;
    node->config.self = reload->change.self;
    node->first_source = SGP_NODE_NONE;
    sgp_core_take_roles(node);
    node->config.weight_least = reload->change.weight_least;
    node->config.weight_most = reload->change.weight_most;
    sgp_mass_know_members(node, reload->change.topology->node_count);
    node->config.fingerprint.topology = reload->change.topology->digest;
    sgp_core_swap_layout(node, &reload->layout);
    move_slots(node, &reload->layout, reload->index);
    move_links(node, &reload->layout, reload->index);
    sgp_core_forget_updates(node);
    sgp_core_keep_label(node);
    sgp_core_compare_topologies(node);
    sgp_core_pass_on_labels(node);
    renew_for(node, former);
    node->changed = true; /* all peers hear the new promises */
    node->again = true;
    node->unrecorded = true;
    sgp_core_mark_all_dirty(node);
    sgp_core_notice(node);
    sgp_core_index_links(node);
    sgp_core_check(node);
    sgp_reload_cancel(reload);
}
