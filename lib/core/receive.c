/* SPDX-License-Identifier: Apache-2.0 */
/* Receive buffers: granted to a source, reserved for an estimate, holding a share, or being
 * absorbed.
 *
 * The rule: docs/rules/credit.md */
#include "core/core.h"

#include <math.h>

/* ---- granted ---- */

static void set_free(struct sgp_node *node, uint32_t slot)
{
    if (slot == SGP_SLOT_NONE)
        return;
    sgp_assert(node->layout.receives[slot].state == SGP_RECEIVE_GRANTED);
    node->layout.receives[slot].state = SGP_RECEIVE_FREE;
}

void sgp_core_use_buffer(struct sgp_core_link *link)
{
    link->receiving.slot[0] = link->receiving.slot[1];
    link->receiving.slot[1] = SGP_SLOT_NONE;
}

void sgp_core_unreserve(struct sgp_node *node, struct sgp_core_link *link)
{
    if (link->receiving.slot[0] == SGP_SLOT_NONE)
        return;
    set_free(node, link->receiving.slot[0]);
    sgp_core_use_buffer(link);
    sgp_core_mark_dirty(node, link);
}

/* Take the peer's second promise, if under this node's own file a credit for it may be granted as
 * early. */
static void take_then(struct sgp_node *node, struct sgp_core_link *link, sgp_round then)
{
    uint32_t slot = link->receiving.slot[1];
    bool follows = sgp_core_may_follow(node, link->receiving.promise[0], then);
    link->receiving.promise[1] = follows ? then : SGP_ROUND_NONE;
    if (slot == SGP_SLOT_NONE ||
        node->layout.receives[slot].share.round == link->receiving.promise[1])
        return;
    set_free(node, slot);
    link->receiving.slot[1] = SGP_SLOT_NONE;
    sgp_core_mark_dirty(node, link);
}

/* Take the promises that the peer stated last. A void credit frees its buffer for the next link in
 * order. A credit granted for the second promise ends with the first, as it does at the source.
 * While a payload is arriving, the peer's promises are for later shares. A pause at that time voids
 * the second credit, even if the pause ends before the payload has arrived. */
void sgp_core_take_promise(struct sgp_node *node, struct sgp_core_link *link)
{
    if (link->direction != SGP_IN)
        return;
    if (link->receiving.filling) {
        take_then(node, link, link->pulse.next_round);
        return;
    }
    uint32_t slot = link->receiving.slot[0];
    struct sgp_receive *receive = slot != SGP_SLOT_NONE ? &node->layout.receives[slot] : NULL;
    link->receiving.promise[0] = link->pulse.next_round;
    bool holds = slot == SGP_SLOT_NONE ||
                 sgp_core_credit_holds(node, receive->share.round, link->receiving.promise[0]);
    if (!holds) {
        take_then(node, link, SGP_ROUND_NONE);
        sgp_core_unreserve(node, link);
    } else if (slot != SGP_SLOT_NONE) {
        receive->share.round = link->receiving.promise[0];
    }
    take_then(node, link, link->pulse.then_round);
}

/* ---- reserved for estimates ---- */

/* Reserve a buffer for the next question. A question that was asked has its own. */
void sgp_core_set_aside(struct sgp_node *node)
{
    for (uint32_t i = node->layout.receive_count; node->seeking.slot == SGP_SLOT_NONE && i-- > 0;) {
        if (node->layout.receives[i].state != SGP_RECEIVE_FREE)
            continue;
        node->layout.receives[i].state = SGP_RECEIVE_GRANTED;
        node->seeking.slot = i;
    }
}

/* From now on the node's parameters are a guess. A pending question for an estimate still
 * serves. */
void sgp_core_want(struct sgp_node *node)
{
    if (node->seeking.wants)
        return;
    node->seeking = (struct sgp_seeking){.wants = true,
        .slot = SGP_SLOT_NONE,
        .until = SGP_TIME_NEVER,
        .compares_until = SGP_TIME_NEVER};
    sgp_core_set_aside(node);
}

/* A question has ended. Its buffer serves the next question, if there is one. */
void sgp_core_end_question(struct sgp_node *node, struct sgp_core_link *link)
{
    uint32_t slot = link->question.slot;
    link->question.slot = SGP_SLOT_NONE;
    link->question.filling = link->question.whole = false;
    if (slot == SGP_SLOT_NONE)
        return;
    if (node->seeking.wants && node->seeking.slot == SGP_SLOT_NONE)
        node->seeking.slot = slot;
    else
        node->layout.receives[slot].state = SGP_RECEIVE_FREE;
}

/* No estimate is wanted any more, so questions are withdrawn. An answer that is arriving keeps its
 * buffer until it is complete. */
void sgp_core_stop_seeking(struct sgp_node *node)
{
    node->seeking.wants = false;
    node->seeking.compares_until = SGP_TIME_NEVER;
    SGP_EACH_IN (link, node) {
        if (link->question.slot == SGP_SLOT_NONE || link->question.filling)
            continue;
        if (!link->question.whole)
            sgp_core_send(node, link, SGP_ASK)->ask.wants = false;
        sgp_core_end_question(node, link);
    }
    if (node->seeking.slot != SGP_SLOT_NONE)
        node->layout.receives[node->seeking.slot].state = SGP_RECEIVE_FREE;
    node->seeking.slot = SGP_SLOT_NONE;
}

/* ---- held and absorbed shares ---- */

/* Whether share `a` is absorbed before `b`: by round, then by source, so that a round is
 * reproducible. */
static bool comes_before(const struct sgp_receive *a, const struct sgp_receive *b)
{
    return a->share.round != b->share.round ? a->share.round < b->share.round : a->peer < b->peer;
}

static void absorb(struct sgp_node *node, struct sgp_receive *receive, bool folded)
{
    sgp_core_compare_training(node, receive->peer, &receive->share);
    if (node->role->absorb != NULL) {
        node->role->absorb(node, receive);
        return;
    }
    receive->state = SGP_RECEIVE_ABSORBING;
    sgp_mass_post(node, SGP_MASS_ABSORB, receive->share.weight);
    node->past.fresh = false;
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_ABSORB);
    effect->absorb.peer = receive->peer;
    effect->absorb.slot = (uint32_t)(receive - node->layout.receives);
    effect->absorb.folded = folded;
    effect->absorb.fraction = receive->share.fraction;
    effect->absorb.weight = receive->share.weight;
    effect->absorb.slice = receive->share.slice;
    effect->absorb.round = receive->share.round;
}

/* An update waits for the end of its step. A share of another epoch waits until the epoch is in
 * force. A bequest belongs to no epoch outside of cycles. */
bool sgp_core_may_absorb(const struct sgp_node *node, const struct sgp_receive *receive)
{
    if (node->role->part == SGP_PART_LEADS)
        return receive->counts;
    return sgp_core_is_current(node, &receive->epoch) ||
           (receive->share.bequest > 0 && !node->exact.begun);
}

/* `early`: ahead of other shares. */
static bool may_absorb(const struct sgp_node *node, const struct sgp_receive *receive, bool early)
{
    return node->role->may_absorb != NULL ? node->role->may_absorb(node, receive, early)
                                          : sgp_core_may_absorb(node, receive);
}

/* A share that cannot be absorbed now never can be. A bequest during an exact cycle is dissolved
 * immediately, because a node that leaves between two cycles has the mean that all nodes have. */
static void absorb_or_drop(struct sgp_node *node, struct sgp_receive *receive)
{
    const struct sgp_share *share = &receive->share;
    if (may_absorb(node, receive, true)) {
        absorb(node, receive, false);
        return;
    }
    sgp_mass_post(node, SGP_MASS_DROP, share->weight);
    receive->state = SGP_RECEIVE_FREE;
    if (share->bequest <= 0)
        return;
    double covered = fmin(fmin(share->bequest, share->weight), node->mass.covered);
    sgp_mass_set_members(node, node->mass.surplus - covered, node->mass.covered - covered);
    struct sgp_noted *note = sgp_core_note(node, SGP_NOTE_DISSOLVED, node->config.self);
    note->amount = share->weight;
    note->slot = (uint32_t)(receive - node->layout.receives);
}

void sgp_core_absorb_from(struct sgp_node *node, uint32_t peer)
{
    for (uint32_t i = 0; i < node->layout.receive_count; i++)
        if (node->layout.receives[i].state == SGP_RECEIVE_HELD &&
            node->layout.receives[i].peer == peer && !node->role->unique)
            absorb_or_drop(node, &node->layout.receives[i]);
}

void sgp_core_absorb_folded(struct sgp_node *node, struct sgp_receive *receive)
{
    absorb(node, receive, true);
}

static void absorb_all(struct sgp_node *node, sgp_round round, bool early)
{
    while (!sgp_core_folds(node)) {
        struct sgp_receive *first = NULL;
        for (uint32_t i = 0; i < node->layout.receive_count; i++) {
            struct sgp_receive *receive = &node->layout.receives[i];
            bool due = receive->state == SGP_RECEIVE_HELD && receive->share.round <= round &&
                       may_absorb(node, receive, early);
            if (due && !sgp_core_is_kept(node, receive) &&
                (first == NULL || comes_before(receive, first)))
                first = receive;
        }
        if (first == NULL)
            return;
        absorb(node, first, false);
    }
}

void sgp_core_absorb_until(struct sgp_node *node, sgp_round round)
{
    absorb_all(node, round, false);
}

void sgp_core_absorb_early(struct sgp_node *node)
{
    absorb_all(node, SGP_ROUND_MAX, true);
}
