/* Shares: buffers and credits, accepting, absorbing, sending what gift.c gave, getting it back.
 *
 * A share leaves `weight` when it is given, is owed while nobody has acknowledged it, and enters the
 * target's weight when the target accepts it: whole, its checksum right, all of it finite. Whatever
 * happens in between, it is accepted exactly once or comes back. */
#include "core/core.h"

#include <math.h>

/* ---- buffers and credits (the target's side) ---- */

/* Whether a credit of round `granted` covers a share of `round`. A node that has just jumped may still
 * hold one of the round that it left; where every link has its own buffer, that does not matter. */
bool sgp_core_covers(const struct sgp_node *node, sgp_round granted, sgp_round round)
{
    return granted != SGP_ROUND_NONE && (sgp_core_has_own_buffers(node) || granted == round);
}

static uint32_t count_free(const struct sgp_node *node, uint32_t *ret_first)
{
    uint32_t count = 0;
    for (uint32_t i = node->receive_count; i-- > 0;) {
        if (node->receives[i].state == SGP_RECEIVE_FREE) {
            *ret_first = i;
            count++;
        }
    }
    return count;
}

void sgp_core_unreserve(struct sgp_node *node, struct sgp_core_link *link)
{
    if (link->slot == SGP_SLOT_NONE)
        return;
    sgp_assert(node->receives[link->slot].state == SGP_RECEIVE_GRANTED);
    node->receives[link->slot].state = SGP_RECEIVE_FREE;
    link->slot = SGP_SLOT_NONE;
    sgp_core_touch(node, link);
}

/* The last round for which credits are granted: the next one, so that nobody waits for a credit. But where
 * shares take most of a round to come, one of the next round would take half of the wire from one of this round
 * that is late, whose target would then be later still with its own, and so on: such a fleet stays out of
 * step for ever, at half its speed. There the next round's credits wait for this round's shares. */
static sgp_round horizon_of(const struct sgp_node *node)
{
    if (sgp_core_has_own_buffers(node))
        return SGP_ROUND_MAX;
    return node->thin && sgp_core_awaited(node) != NULL ? node->round : node->round + 1;
}

/* The order in which buffers go out: that of rounds, then of sources, which is the same on all nodes. Those
 * that nobody waits for come last. */
static bool is_before(const struct sgp_core_link *a, const struct sgp_core_link *b)
{
    if (sgp_core_is_late(a) != sgp_core_is_late(b))
        return sgp_core_is_late(b);
    return a->promise != b->promise ? a->promise < b->promise : a < b;
}

/* The first in-link in order that has no buffer yet. One whose share is held until it has its
 * answer keeps that buffer instead: so there are always enough for all. */
static struct sgp_core_link *first_without_buffer(struct sgp_node *node)
{
    struct sgp_core_link *first = NULL;
    sgp_round horizon = horizon_of(node);
    for (uint32_t i = sgp_core_next(node, SGP_SET_WITHOUT_BUFFER, node->out_count);
         i < node->link_count; i = sgp_core_next(node, SGP_SET_WITHOUT_BUFFER, i + 1)) {
        struct sgp_core_link *link = &node->links[i];
        bool wants = link->state == SGP_LINK_UP && link->slot == SGP_SLOT_NONE &&
                     link->promise != SGP_ROUND_NONE && link->promise <= horizon &&
                     !sgp_core_rejoining(link) && /* it would keep a buffer that others need */
                     !sgp_core_answer_due(node, link->peer);
        if (wants && (first == NULL || is_before(link, first)))
            first = link;
    }
    return first;
}

/* All buffers are taken and `first` is due: take one back from the last in order behind it, if no
 * other is about to become free. The source may have used its credit already, so the connection ends
 * with it. Returns whether a buffer is free now. */
static bool take_back_credit(struct sgp_node *node, const struct sgp_core_link *first)
{
    struct sgp_core_link *last = NULL;
    for (uint32_t i = 0; i < node->receive_count; i++)
        if (node->receives[i].state == SGP_RECEIVE_ABSORBING)
            return false;
    for (uint32_t i = node->out_count; i < node->link_count; i++) {
        struct sgp_core_link *link = &node->links[i];
        if (link->filling)
            return false;
        bool granted = link->slot != SGP_SLOT_NONE;
        if (granted && (last == NULL || is_before(last, link)))
            last = link;
    }
    bool behind = last != NULL && is_before(first, last);
    if (behind)
        sgp_core_hang_up(node, last, SGP_E_CREDIT, SGP_REASON_CREDIT);
    return behind;
}

/* Buffers go out in order; the last free one never goes to a later round, nor to one that nobody waits
 * for, and one that is not used yet gives way to a share that comes
 * before it. So whoever is furthest behind is served everywhere, and nobody waits in a circle, even
 * when many who were away come back at once. */
void sgp_core_grant(struct sgp_node *node)
{
    struct sgp_core_link *link;
    while (
        !node->drained && !sgp_core_has_gone(node) && (link = first_without_buffer(node)) != NULL) {
        uint32_t slot = SGP_SLOT_NONE;
        uint32_t unused = count_free(node, &slot);
        bool now_due = link->promise <= node->round && !sgp_core_is_late(link);
        if (unused == 0 && now_due) { /* mass may be added early, only the order is lost */
            sgp_core_absorb_until(node, SGP_ROUND_MAX);
            if (take_back_credit(node, link))
                continue;
        }
        if (unused == 0 || (unused == 1 && !now_due))
            return;
        link->slot = slot;
        node->receives[slot].state = SGP_RECEIVE_GRANTED;
        node->receives[slot].peer = link->peer;
        node->receives[slot].share.round = link->promise;
        struct sgp_message *message = sgp_core_send(node, link, SGP_CREDIT);
        message->credit.round = link->promise;
    }
}

/* ---- accepting ---- */

/* What of weight one node can have: that of all members that its files have named. Honest faults add
 * little: a restart without a ledger mints some, and others may know of members that this one does not. */
double sgp_core_weight_most(const struct sgp_node *node)
{
    return node->members_most + SGP_WEIGHT_SLACK;
}

/* A bequest is all that its source has, and that is more than nothing. */
static bool bequest_is_sound(const struct sgp_node *node, const struct sgp_share *share)
{
    bool amount =
        isfinite(share->bequest) && share->bequest >= 0 && share->bequest <= node->members_most;
    bool beside = share->fraction == 1 && share->weight > 0;
    return amount && (beside || share->bequest <= 0);
}

/* A source counts what it gives on this link, also what came home again. */
static bool number_is_sound(const struct sgp_core_link *link, uint64_t number)
{
    return number > link->accepted && number <= SGP_NUMBER_MAX &&
           number - link->accepted <= SGP_NUMBER_GAP_MAX;
}

static bool share_is_sound(
    const struct sgp_node *node, const struct sgp_core_link *link, const struct sgp_share *share)
{
    bool empty = share->fraction == 0;
    bool amount = isfinite(share->fraction) && share->fraction >= 0 && share->fraction <= 1 &&
                  isfinite(share->weight) && share->weight >= 0 &&
                  share->weight <= sgp_core_weight_most(node) && (!empty || share->weight == 0) &&
                  bequest_is_sound(node, share);
    bool slice = share->slice.count > 0 && share->slice.count <= node->config.parameters &&
                 share->slice.first <= node->config.parameters - share->slice.count &&
                 share->payload_bytes == (empty ? 0 : 4 * share->slice.count);
    return amount && slice && number_is_sound(link, share->number) && share->round >= 0 &&
           share->round <= link->pulse.round;
}

void sgp_core_share(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_share *share)
{
    bool covered = link->slot != SGP_SLOT_NONE && !link->filling &&
                   sgp_core_covers(node, node->receives[link->slot].share.round, share->round);
    if (!covered) {
        sgp_core_hang_up(node, link, SGP_E_CREDIT, SGP_REASON_CREDIT);
        return;
    }
    if (!share_is_sound(node, link, share)) {
        sgp_core_hang_up(node, link, SGP_E_PROTOCOL, SGP_REASON_RANGE);
        return;
    }
    link->incoming = *share;
    link->filling = true;
    link->filling_since = node->now;
    sgp_core_payload_begins(node, link);
    link->promise = share->round;
    if (share->payload_bytes == 0) {
        sgp_core_payload(node, link, 0);
        return;
    }
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_RECEIVE);
    effect->link = (struct sgp_link){link->peer, link->direction, link->connection};
    effect->slot = link->slot;
}

/* Every share may be sound and their sum absurd: what this node gives would be refused elsewhere, and in
 * the end its record at its next start. */
static bool has_room(struct sgp_node *node, uint32_t peer, const struct sgp_share *share)
{
    double own = node->weight + sgp_core_held(node) + sgp_core_owed(node);
    if (share->bequest > 0 && !sgp_core_has_places(node, peer))
        return false;
    if (share->bequest > 0)
        own += sgp_core_staged_debts(node, peer);
    return share->weight == 0 || own + share->weight <= sgp_core_weight_most(node);
}

static enum sgp_reason judge(
    struct sgp_node *node, uint32_t peer, const struct sgp_share *share, int code)
{
    if (code != 0)
        return code == SGP_E_OUTSIZED ? SGP_REASON_OUTSIZED : SGP_REASON_NOT_FINITE;
    if (sgp_core_has_gone(node))
        return SGP_REASON_LEAVING;
    return has_room(node, peer, share) ? SGP_REASON_NONE : SGP_REASON_RANGE;
}

static void acknowledge(struct sgp_node *node, struct sgp_core_link *link, enum sgp_reason reason)
{
    struct sgp_message *message = sgp_core_send(node, link, SGP_ACK);
    message->ack = (struct sgp_ack){.number = link->incoming.number, .reason = reason};
    if (reason == SGP_REASON_NONE)
        return;
    struct sgp_effect *note = sgp_core_note(node, SGP_NOTE_REFUSED, link->peer);
    note->link.direction = link->direction;
    note->reason = reason;
    link->last_reason = reason;
    link->shares_returned++;
}

void sgp_core_payload(struct sgp_node *node, struct sgp_core_link *link, int code)
{
    if (!link->filling)
        return;
    if (code == SGP_E_CHECKSUM) {
        sgp_core_hang_up(node, link, code, SGP_REASON_CHECKSUM);
        return;
    }
    link->filling = false;
    link->trickles = link->trickles && link->incoming.payload_bytes == 0;
    node->thin = 2 * (node->now - link->filling_since) > node->now - node->round_since;
    struct sgp_receive *receive = &node->receives[link->slot];
    enum sgp_reason reason = judge(node, link->peer, &link->incoming, code);
    if (reason != SGP_REASON_NONE) {
        sgp_core_unreserve(node, link);
        acknowledge(node, link, reason);
    } else {
        bool empty = link->incoming.payload_bytes == 0;
        receive->share = link->incoming;
        receive->state = empty ? SGP_RECEIVE_FREE : SGP_RECEIVE_HELD;
        link->slot = SGP_SLOT_NONE;
        link->accepted = link->incoming.number;
        link->brought = link->brought || link->incoming.weight > 0;
        node->unrecorded = true;
        link->shares_received++;
        if (link->incoming.asks)
            sgp_core_asked(node, link->peer);
        if (link->incoming.bequest > 0)
            sgp_core_inherit(node, link);
        acknowledge(node, link, SGP_REASON_NONE);
    }
    sgp_core_take_promise(node, link);
}

/* ---- absorbing ---- */

/* Whether share `a` is absorbed before `b`: by round, then by source, so that a round repeats. */
static bool comes_before(const struct sgp_receive *a, const struct sgp_receive *b)
{
    return a->share.round != b->share.round ? a->share.round < b->share.round : a->peer < b->peer;
}

static void absorb(struct sgp_node *node, struct sgp_receive *receive)
{
    receive->state = SGP_RECEIVE_ABSORBING;
    node->weight += receive->share.weight;
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_ABSORB);
    effect->link.peer = receive->peer;
    effect->slot = (uint32_t)(receive - node->receives);
    effect->factor = receive->share.fraction;
    effect->slice = receive->share.slice;
    effect->round = receive->share.round;
}

void sgp_core_absorb_from(struct sgp_node *node, uint32_t peer)
{
    for (uint32_t i = 0; i < node->receive_count; i++)
        if (node->receives[i].state == SGP_RECEIVE_HELD && node->receives[i].peer == peer)
            absorb(node, &node->receives[i]);
}

void sgp_core_absorb_until(struct sgp_node *node, sgp_round round)
{
    for (;;) {
        struct sgp_receive *first = NULL;
        for (uint32_t i = 0; i < node->receive_count; i++) {
            struct sgp_receive *receive = &node->receives[i];
            bool due = receive->state == SGP_RECEIVE_HELD && receive->share.round <= round;
            if (due && !sgp_core_is_kept(node, receive) &&
                (first == NULL || comes_before(receive, first)))
                first = receive;
        }
        if (first == NULL)
            return;
        absorb(node, first);
    }
}

double sgp_core_held(const struct sgp_node *node)
{
    double held = 0;
    for (uint32_t i = 0; i < node->receive_count; i++)
        if (node->receives[i].state == SGP_RECEIVE_HELD)
            held += node->receives[i].share.weight;
    return held;
}

/* ---- what is owed (the source's side) ---- */

double sgp_core_owed(const struct sgp_node *node)
{
    double owed = 0;
    for (uint32_t i = sgp_core_next(node, SGP_SET_OWING, 0); i < node->out_count;
         i = sgp_core_next(node, SGP_SET_OWING, i + 1))
        if (node->links[i].owed.exists)
            owed += node->links[i].owed.share.weight;
    return owed + sgp_core_debts(node);
}

/* Send what is owed, ready and covered by a credit: fresh shares and those of a lost connection. */
void sgp_core_send_owed(struct sgp_node *node)
{
    for (uint32_t i = sgp_core_next(node, SGP_SET_OWING, 0); i < node->out_count;
         i = sgp_core_next(node, SGP_SET_OWING, i + 1)) {
        struct sgp_core_link *link = &node->links[i];
        bool handing = node->handing.peer == link->peer && node->handing.sent;
        bool ready = link->owed.exists && !link->owed.sent && !link->owed.publishing &&
                     link->state == SGP_LINK_UP && link->pulse.state != SGP_NODE_DRAINING &&
                     sgp_core_covers(node, link->credit, link->owed.share.round) && !handing &&
                     link->disputed == 0;
        bool bequest = link->owed.share.bequest > 0;
        if (!ready || (bequest && !sgp_core_has_handed(node, link)))
            continue;
        link->owed.sent = link->owed.told = true;
        link->owed.since = node->now;
        node->leaving.sent = node->leaving.sent || bequest;
        link->credit = SGP_ROUND_NONE;
        struct sgp_message *message = sgp_core_send(node, link, SGP_SHARE);
        message->share = link->owed.share;
        node->effects->items[node->effects->count - 1].slot = link->owed.slot;
    }
}

void sgp_core_credit(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_credit *credit)
{
    bool pledged = sgp_core_has_own_buffers(node) && link->announced != SGP_ROUND_NONE;
    if (credit->round == link->announced || pledged) /* else it crossed a change of plan: void */
        link->credit = credit->round;
}

/* ---- settling ---- */

void sgp_core_accepted_by_peer(struct sgp_node *node, struct sgp_core_link *link)
{
    if (link->owed.share.bequest > 0)
        sgp_core_bequest_accepted(node, link);
    if (link->owed.slot != SGP_SLOT_NONE)
        node->snapshot_users[link->owed.slot]--;
    link->acknowledged = link->owed.share.number;
    link->owed.exists = false;
    node->unrecorded = true;
}

/* The mass of a share of a former process, whose snapshot is gone, comes home at the node's present
 * estimate: x follows w. With no weight left there is no estimate to follow. */
void sgp_core_grow(struct sgp_node *node, double weight)
{
    if (node->weight > 0 && weight > 0) {
        struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_SCALE);
        effect->factor = (node->weight + weight) / node->weight;
    } else if (weight > 0) {
        sgp_core_want(node);
    }
}

/* The share comes home. Its snapshot stays in use until the RESTORE job is done with it. */
void sgp_core_take_back(struct sgp_node *node, struct sgp_core_link *link, enum sgp_reason reason)
{
    const struct sgp_owed *owed = &link->owed;
    if (owed->slot != SGP_SLOT_NONE) {
        struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_RESTORE);
        effect->link.peer = link->peer;
        effect->slot = owed->slot;
        effect->factor = owed->share.fraction;
        effect->slice = owed->share.slice;
    } else if (owed->lost) {
        sgp_core_grow(node, owed->share.weight);
    }
    sgp_core_touch(node, link);
    node->unrecorded = true;
    node->weight += owed->share.weight;
    link->owed.exists = false;
    link->shares_returned++;
    link->last_reason = reason;
    struct sgp_effect *note = sgp_core_note(node, SGP_NOTE_RETURNED, link->peer);
    note->reason = reason;
}

void sgp_core_ack(struct sgp_node *node, struct sgp_core_link *link, const struct sgp_ack *ack)
{
    if (!link->owed.exists || !link->owed.sent || ack->number != link->owed.share.number)
        sgp_core_hang_up(node, link, SGP_E_PROTOCOL, SGP_REASON_PROTOCOL);
    else if (ack->reason == SGP_REASON_NONE)
        sgp_core_accepted_by_peer(node, link);
    else {
        link->declined = link->owed.share.bequest > 0;
        sgp_core_take_back(node, link, ack->reason);
    }
}

/* After a reconnect: what the target says it accepted is settled. What it never saw is sent again
 * against a new credit, unless the target is a new one, who must not receive an old fleet's mass, or
 * this node is, which has no snapshot of it any more. */
void sgp_core_settle(
    struct sgp_node *node, struct sgp_core_link *link, uint64_t accepted, bool forgot)
{
    if (!link->owed.exists)
        return;
    if (forgot)
        sgp_core_take_back(node, link, SGP_REASON_FORGOT);
    else if (accepted >= link->owed.share.number)
        sgp_core_accepted_by_peer(node, link);
    else if (link->owed.lost)
        sgp_core_take_back(node, link, SGP_REASON_FORGOT);
}
