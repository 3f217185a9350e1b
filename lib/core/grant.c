/* SPDX-License-Identifier: Apache-2.0 */
/* Granting: which source gets the next receive buffer, and a flow-control credit for it.
 *
 * The rule: docs/rules/credit.md */
#include "core/core.h"

static uint32_t count_free(const struct sgp_node *node, uint32_t *ret_first)
{
    uint32_t count = 0;
    for (uint32_t i = node->layout.receive_count; i-- > 0;) {
        if (node->layout.receives[i].state == SGP_RECEIVE_FREE) {
            *ret_first = i;
            count++;
        }
    }
    return count;
}

/* The last round for which credits are granted. Usually it is the next round, so that no source
 * waits for a credit. It is this round where a share takes most of a round to arrive. There, a
 * share of the next round would take half of the bandwidth from a late share of this round. Its
 * target would be later still, and the fleet would stay out of step for ever. So the next round's
 * credits wait for this round's shares. A node at its end serves all sources that still mix. */
static sgp_round horizon_of(const struct sgp_node *node)
{
    if (sgp_core_grants_all(node))
        return SGP_ROUND_MAX;
    bool bound = node->bandwidth_bound && !node->role->collective;
    return bound && node->role->awaited(node) != NULL ? node->round : node->round + 1;
}

/* Whether a late source yields to others. An exact cycle waits for all its sources, so none yields
 * there. */
static bool has_last_place(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return sgp_core_is_late(link) && !node->role->collective;
}

/* The order in which buffers are granted: late neighbours last, then by round, then by source. It
 * is the same on all nodes. */
struct turn {
    struct sgp_core_link *link; /* NULL: none */
    sgp_round round;            /* or NONE */
};

static bool is_before(const struct sgp_node *node, const struct turn *a, const struct turn *b)
{
    if (has_last_place(node, a->link) != has_last_place(node, b->link))
        return has_last_place(node, b->link);
    return a->round != b->round ? a->round < b->round : a->link < b->link;
}

/* The last round for which the link has a buffer. */
static struct turn granted(const struct sgp_node *node, struct sgp_core_link *link)
{
    uint32_t slot = link->receiving.slot[link->receiving.slot[1] != SGP_SLOT_NONE];
    return (struct turn){
        link, slot != SGP_SLOT_NONE ? node->layout.receives[slot].share.round : SGP_ROUND_NONE};
}

/* The first in-link without a buffer. While a held share of a link waits for the share in return,
 * the link gets no other buffer. */
static struct turn first_without_buffer(struct sgp_node *node)
{
    struct turn first = {.link = NULL};
    sgp_round horizon = horizon_of(node);
    SGP_EACH_OF (link, node, SGP_SET_WITHOUT_BUFFER) {
        struct turn turn = {link, sgp_core_lacks_buffer(link)};
        bool wants = link->connection.state == SGP_LINK_UP && turn.round != SGP_ROUND_NONE &&
                     turn.round <= horizon &&
                     /* a rejoining peer would keep a buffer that others need */
                     !sgp_core_rejoining(link) && !sgp_core_answer_due(node, link->peer) &&
                     sgp_core_may_grant_token(node, link);
        if (wants && (first.link == NULL || is_before(node, &turn, &first)))
            first = turn;
    }
    return first;
}

/* No buffer is free and `first` is due. Take the buffer of the last link in order, unless one
 * becomes free soon. That link's credit may be used already, so its connection is closed. Returns
 * whether a buffer is free now. */
static bool take_back_credit(struct sgp_node *node, const struct turn *first)
{
    struct turn last = {.link = NULL};
    for (uint32_t i = 0; i < node->layout.receive_count; i++)
        if (node->layout.receives[i].state == SGP_RECEIVE_ABSORBING)
            return false;
    SGP_EACH_IN (link, node) {
        if (link->receiving.filling)
            return false;
        struct turn turn = granted(node, link);
        if (turn.round != SGP_ROUND_NONE && (last.link == NULL || is_before(node, &last, &turn)))
            last = turn;
    }
    bool behind = last.link != NULL && is_before(node, first, &last);
    if (behind)
        sgp_core_hang_up(node, last.link, SGP_E_CREDIT, SGP_REASON_CREDIT);
    return behind;
}

/* Buffers are granted in order. The last free buffer is not granted for a later round, nor to a
 * late neighbour. An unused buffer gives way to an earlier share. So the node that is furthest
 * behind is served everywhere. No nodes wait in a circle, even when many return at the same
 * time. */
void sgp_core_grant(struct sgp_node *node)
{
    for (struct turn turn;
         !node->drained && !sgp_core_has_gone(node) && (turn = first_without_buffer(node)).link;) {
        uint32_t slot = SGP_SLOT_NONE;
        uint32_t unused = count_free(node, &slot);
        bool came_to_it = turn.round <= node->round || node->stage == SGP_STAGE_END;
        bool now_due = came_to_it && !has_last_place(node, turn.link);
        if (unused == 0 && now_due) { /* mass may be added early; only the order is lost */
            sgp_core_absorb_early(node);
            if (take_back_credit(node, &turn))
                continue;
        }
        if (unused == 0 || (unused == 1 && !now_due))
            return;
        bool second = turn.link->receiving.slot[0] != SGP_SLOT_NONE;
        turn.link->receiving.slot[second] = slot;
        node->layout.receives[slot].state = SGP_RECEIVE_GRANTED;
        node->layout.receives[slot].peer = turn.link->peer;
        node->layout.receives[slot].share.round = turn.round;
        sgp_core_send(node, turn.link, SGP_CREDIT)->credit.round = turn.round;
    }
}
