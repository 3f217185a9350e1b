/* SPDX-License-Identifier: Apache-2.0 */
/* Shares: accepting them, sending what outgoing.c gave, and settling the result.
 *
 * A share leaves `weight` when it is given, and is owed until it is acknowledged. It enters the
 * target's weight when the target accepts it: whole, with a correct checksum, and finite in all
 * values. Whatever happens in between, it is accepted exactly once or returns.
 *
 * The rule: docs/rules/mass.md */
#include "core/core.h"

#include <math.h>

/* ---- accepting ---- */

/* A bequest is all mass of its source, and more than nothing. */
static bool bequest_is_sound(const struct sgp_node *node, const struct sgp_share *share)
{
    bool amount = isfinite(share->bequest) && share->bequest >= 0 &&
                  share->bequest <= node->mass.members_most;
    bool beside = share->fraction == 1 && share->weight > 0 && share->coding == SGP_CODING_NONE;
    return amount && (beside || share->bequest <= 0);
}

/* A coded payload must fit into the space of its values. */
static bool is_shorter(const struct sgp_share *share)
{
    return share->coding == SGP_CODING_NONE ||
           sgp_coding_is_shorter(share->coding, share->slice.count);
}

/* Whether an honest source can announce this share, by its amounts, its values and its number. */
static bool share_is_sound(
    const struct sgp_node *node, const struct sgp_core_link *link, const struct sgp_share *share)
{
    bool empty = share->fraction == 0;
    bool amount = isfinite(share->fraction) && share->fraction >= 0 && share->fraction <= 1 &&
                  isfinite(share->weight) && share->weight >= 0 &&
                  share->weight <= share->fraction * sgp_core_weight_most(node) &&
                  bequest_is_sound(node, share);
    bool slice =
        share->slice.count > 0 && share->slice.count <= node->config.parameters &&
        share->slice.first <= node->config.parameters - share->slice.count && is_shorter(share) &&
        (empty ? share->payload_bytes == 0
               : sgp_coding_may_have(share->coding, share->slice.count, share->payload_bytes));
    return amount && slice && sgp_core_number_is_sound(link->memory.accepted, share->number) &&
           share->round >= 0 && share->round <= link->pulse.round;
}

/* Whether this node's role in the share's round excludes such a share. */
static bool is_out_of_place(
    const struct sgp_node *node, const struct sgp_core_link *link, const struct sgp_share *share)
{
    const struct sgp_role *role = sgp_core_role_at(node, share->round);
    return role->fits != NULL && !role->fits(node, link, share);
}

/* The epoch of a neighbour's share. It is at least the present one, if the file has no exact cycle
 * and one of both nodes uses no epochs. A share of a round before this epoch keeps the epoch of its
 * source, which gave it before it began again with weight 1. A higher epoch is kept, because this
 * node may begin it later. */
static struct sgp_epoch epoch_of(
    const struct sgp_node *node, const struct sgp_core_link *link, const struct sgp_share *share)
{
    bool lenient = !sgp_core_uses_epochs(node) ||
                   (link->pulse.epoch.topology == 0 && !sgp_core_compares_epochs(node));
    bool below = sgp_core_epoch_is_below(&link->pulse.epoch, &node->exact.epoch) &&
                 share->round >= node->exact.epoch.start;
    return lenient && below ? node->exact.epoch : link->pulse.epoch;
}

struct sgp_verdict sgp_core_share(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_share *share)
{
    bool covered = link->receiving.slot[0] != SGP_SLOT_NONE && !link->receiving.filling &&
                   sgp_core_covers(node, node->layout.receives[link->receiving.slot[0]].share.round,
                       share->round);
    if (!covered)
        return sgp_hangs_up(SGP_E_CREDIT, SGP_REASON_CREDIT);
    if (!share_is_sound(node, link, share) || is_out_of_place(node, link, share))
        return sgp_hangs_up(SGP_E_PROTOCOL, SGP_REASON_RANGE);
    link->receiving.incoming = *share;
    link->receiving.epoch = epoch_of(node, link, share);
    link->receiving.filling = true;
    link->receiving.since = node->now;
    sgp_core_payload_begins(node, link);
    link->receiving.promise[0] = share->round;
    if (share->payload_bytes == 0)
        return sgp_core_payload(node, link, 0);
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_RECEIVE);
    effect->receive.link = (struct sgp_link){link->peer, link->direction, link->connection.id};
    effect->receive.slot = link->receiving.slot[0];
    sgp_core_fold(node, link);
    return sgp_fine();
}

/* The greatest fraction of its mass that a source gives over this edge, in any round of the file. A
 * node that chooses its targets gives halves. A share of a previous file, or of a leaver, may be
 * all mass. */
static double fraction_most(
    const struct sgp_node *node, const struct sgp_core_link *link, const struct sgp_share *share)
{
    const struct sgp_topology *topology = node->config.topology;
    double most = sgp_method_chooses(node->config.method) ? SGP_HALF : 0;
    if (link->retired || share->bequest > 0)
        return 1;
    for (uint32_t p = 0; p < topology->phase_count; p++) {
        uint32_t count;
        const struct sgp_edge *edges =
            sgp_phase_in(&topology->phases[p], node->config.self, &count);
        for (uint32_t e = 0; e < count; e++)
            if (edges[e].source == link->peer)
                most = fmax(most, edges[e].fraction);
    }
    return most;
}

/* Whether the share can be what its source says, and its accounts find room. If this node has too
 * much weight, that is not the source's fault: the node sheds the excess (wrong_total.c). */
static bool has_room(
    struct sgp_node *node, const struct sgp_core_link *link, const struct sgp_share *share)
{
    double most = sgp_core_weight_most(node), weight = share->weight;
    if (share->bequest > 0 && !sgp_core_has_places(node, link->peer))
        return false;
    if (share->bequest > 0)
        weight += sgp_core_staged_debts(node, link->peer);
    return share->weight == 0 || weight <= fraction_most(node, link, share) * most;
}

static bool is_of_exact(const struct sgp_node *node, const struct sgp_share *share)
{
    return share->bequest <= 0 && sgp_core_role_at(node, share->round)->collective;
}

/* Whether the epoch of the share is over. Within an exact cycle an epoch is over for a target as
 * soon as it has heard of a higher one. The target must not accept a share that follows a refused
 * one. */
static bool is_over(
    const struct sgp_node *node, const struct sgp_core_link *link, const struct sgp_share *share)
{
    const struct sgp_epoch *epoch = &link->receiving.epoch, *exact = &node->exact.heard;
    const struct sgp_epoch *last = is_of_exact(node, share) ? exact : &node->exact.epoch;
    bool other = node->role->collective && epoch->topology != node->config.topology->digest;
    return share->bequest <= 0 && (sgp_core_epoch_is_below(epoch, last) || other);
}

/* A refused share may be part of a cycle of this file, which then cannot end. A share of another
 * file cannot. */
static void lose_epoch(struct sgp_node *node, const struct sgp_core_link *link)
{
    bool ours = link->receiving.epoch.topology == node->config.topology->digest;
    if (ours && is_of_exact(node, &link->receiving.incoming) && !sgp_core_has_gone(node))
        sgp_core_end_epoch(node, &link->receiving.epoch);
}

static enum sgp_reason judge(
    struct sgp_node *node, const struct sgp_core_link *link, bool spoiled, int code)
{
    const struct sgp_share *share = &link->receiving.incoming;
    bool over = is_over(node, link, share);
    if (code != 0 && !over) /* values of another file are measured wrongly */
        return code == SGP_E_OUTSIZED ? SGP_REASON_OUTSIZED : SGP_REASON_NOT_FINITE;
    if (sgp_core_has_gone(node))
        return SGP_REASON_LEAVING;
    struct sgp_slice owned = sgp_core_values(node, link);
    bool other = sgp_core_leads(node) && share->bequest <= 0 &&
                 (share->slice.first != owned.first || share->slice.count != owned.count);
    if (spoiled || over || other) /* the source has another file, with other parts */
        return SGP_REASON_CHANGED;
    if (node->role->unique && share->round > sgp_core_label_most(node, link->peer))
        return SGP_REASON_RANGE;
    return has_room(node, link, share) ? SGP_REASON_NONE : SGP_REASON_RANGE;
}

static void acknowledge(struct sgp_node *node, struct sgp_core_link *link, enum sgp_reason reason)
{
    struct sgp_message *message = sgp_core_send(node, link, SGP_ACK);
    message->ack = (struct sgp_ack){.number = link->receiving.incoming.number, .reason = reason};
    if (reason == SGP_REASON_NONE)
        return;
    sgp_core_note_link(node, SGP_NOTE_REFUSED, link)->reason = reason;
    link->connection.last_reason = reason;
    link->count.returned++;
}

/* A share that asks was accepted. Without an edge back there can be no answer. */
static void answer_later(struct sgp_node *node, uint32_t peer)
{
    struct sgp_core_link *back = sgp_core_find(node, peer, SGP_OUT);
    if (back == NULL)
        return;
    back->giving.answer_due = true;
    sgp_core_mark_dirty(node, back);
}

struct sgp_verdict sgp_core_payload(struct sgp_node *node, struct sgp_core_link *link, int code)
{
    if (!link->receiving.filling)
        return sgp_fine();
    if (code == SGP_E_CHECKSUM)
        return sgp_hangs_up(code, SGP_REASON_CHECKSUM);
    link->receiving.filling = false;
    link->patience.trickles =
        link->patience.trickles && link->receiving.incoming.payload_bytes == 0;
    node->bandwidth_bound = 2 * (node->now - link->receiving.since) > node->now - node->round_since;
    struct sgp_receive *receive = &node->layout.receives[link->receiving.slot[0]];
    bool folded = link->receiving.folds;
    bool spoiled = link->receiving.spoiled || (folded && !sgp_core_folds(node));
    enum sgp_reason reason = judge(node, link, spoiled, code);
    sgp_core_end_fold(node, link);
    bool counts = sgp_core_counts(node, link, reason == SGP_REASON_NONE);
    if (reason != SGP_REASON_NONE) {
        sgp_core_unreserve(node, link);
        acknowledge(node, link, reason);
        lose_epoch(node, link);
    } else {
        bool empty = link->receiving.incoming.payload_bytes == 0;
        receive->share = link->receiving.incoming;
        receive->epoch = link->receiving.epoch;
        bool bequeaths = receive->share.bequest > 0; /* a bequest is no share of its round */
        if (!bequeaths && sgp_core_is_current(node, &receive->epoch))
            link->receiving.latest = receive->share.round;
        receive->state = empty || !counts ? SGP_RECEIVE_FREE : SGP_RECEIVE_HELD;
        receive->counts = false;
        sgp_core_use_buffer(link);
        link->memory.accepted = link->receiving.incoming.number;
        sgp_mass_post(node, SGP_MASS_ACCEPT, link->receiving.incoming.weight);
        node->received_share = node->received_share || !empty;
        link->memory.brought = link->memory.brought || link->receiving.incoming.weight > 0;
        node->unrecorded = true;
        link->count.received++;
        if (link->receiving.incoming.asks)
            answer_later(node, link->peer);
        if (link->receiving.incoming.bequest > 0)
            sgp_core_inherit(node, link);
        acknowledge(node, link, SGP_REASON_NONE);
        if (folded)
            sgp_core_absorb_folded(node, receive);
        sgp_core_total_hears(node, link);
        sgp_core_shed(node);
    }
    sgp_core_take_promise(node, link);
    return sgp_fine();
}

/* ---- owed shares (the source's side) ---- */

/* Ready, and covered by a credit: a new share, or one whose connection was lost. */
static bool may_send(
    struct sgp_node *node, const struct sgp_core_link *link, const struct sgp_owed *owed)
{
    bool ready = owed->exists && !owed->sent && !owed->publishing &&
                 link->connection.state == SGP_LINK_UP && link->pulse.state != SGP_NODE_DRAINING &&
                 sgp_core_covers(node, link->giving.credit[0], owed->share.round) &&
                 !link->estimate.sent && link->inquiry.disputed == 0;
    return ready && (owed->share.bequest <= 0 || sgp_core_has_handed(node, link));
}

static void send(struct sgp_node *node, struct sgp_core_link *link, uint32_t place)
{
    struct sgp_owed *owed = &link->owed[place];
    owed->sent = owed->told = true;
    owed->since = node->now;
    node->leaving.sent = node->leaving.sent || owed->share.bequest > 0;
    link->giving.credit[0] = link->giving.credit[1];
    link->giving.credit[1] = SGP_ROUND_NONE;
    struct sgp_message *message = sgp_core_send_payload(node, link, SGP_SHARE, owed->slot);
    message->share = owed->share;
    message->share.heavy = node->total.heavy;
    message->share.light = node->total.light;
}

/* A token that was not sent before its target stopped or its connection ended cannot have been
 * accepted. */
static bool returns_unsent(const struct sgp_node *node, const struct sgp_core_link *link)
{
    const struct sgp_owed *owed = &link->owed[0];
    bool unsent = owed->exists && !owed->told && !owed->lost && !owed->is_void;
    return node->role->unique && unsent &&
           (!sgp_core_is_up(link) || link->pulse.state == SGP_NODE_DRAINING);
}

/* Send owed shares in order. */
void sgp_core_send_owed(struct sgp_node *node)
{
    SGP_EACH_OF (link, node, SGP_SET_OWING) {
        if (may_send(node, link, &link->owed[0]))
            send(node, link, 0);
        else if (returns_unsent(node, link)) {
            sgp_core_take_back(node, link, SGP_REASON_LEAVING);
            node->again = true; /* another target may be ready */
        }
        if (link->owed[0].sent && may_send(node, link, &link->owed[1]))
            send(node, link, 1);
    }
}

void sgp_core_credit(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_credit *credit)
{
    bool pledged = sgp_core_has_own_buffers(node) && link->giving.announced[0] != SGP_ROUND_NONE &&
                   (!node->role->unique || credit->round >= link->giving.pledged_from);
    if (credit->round == link->giving.announced[0] ||
        pledged) /* otherwise the credit crossed a change of plan, and is void */
        link->giving.credit[0] = credit->round;
    else if (credit->round == link->giving.announced[1])
        link->giving.credit[1] = credit->round;
    else if (credit->round < link->giving.credit[0])
        /* The promise changed, and changed back. The target granted this credit between the two
         * promises. So it has taken back the stored credit, which came late. */
        link->giving.credit[0] = link->giving.credit[1] = SGP_ROUND_NONE;
}

/* ---- settling ---- */

void sgp_core_accepted_by_peer(struct sgp_node *node, struct sgp_core_link *link)
{
    if (link->owed[0].share.bequest > 0)
        sgp_core_bequest_accepted(node, link);
    if (link->owed[0].slot != SGP_SLOT_NONE)
        node->layout.snapshot_users[link->owed[0].slot]--;
    link->memory.acknowledged = link->owed[0].share.number;
    sgp_mass_post(node, SGP_MASS_ACKNOWLEDGE, link->owed[0].share.weight);
    sgp_core_owe_next(node, link);
}

struct sgp_verdict sgp_core_ack(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_ack *ack)
{
    if (!link->owed[0].exists || !link->owed[0].sent || link->owed[0].refused != 0 ||
        ack->number != link->owed[0].share.number)
        return sgp_hangs_up(SGP_E_PROTOCOL, SGP_REASON_PROTOCOL);
    if (link->owed[0].is_void) {
        sgp_core_forget_owed(node, link);
    } else if (ack->reason == SGP_REASON_NONE) {
        sgp_core_accepted_by_peer(node, link);
    } else if (sgp_core_folds(node) && !sgp_core_is_of_cycle(node, &link->owed[0].share)) {
        sgp_core_refuse_later(node, link, ack->reason);
    } else {
        link->bequest.declined = link->owed[0].share.bequest > 0;
        sgp_core_take_back(node, link, ack->reason);
    }
    return sgp_fine();
}

/* Whether the target has restarted with a program that cannot decode the unaccepted shares. Only in
 * an exact cycle does a link owe two shares. The cycle needs both, so then the first is not sent
 * again, even if it is not coded. */
static bool is_unreadable(const struct sgp_core_link *link)
{
    const struct sgp_owed *second = &link->owed[1];
    return !sgp_core_decodes(link, link->owed[0].share.coding) ||
           (second->exists && !sgp_core_decodes(link, second->share.coding));
}

/* False: the share is sent again. */
static bool settle_first(
    struct sgp_node *node, struct sgp_core_link *link, uint64_t accepted, bool forgot)
{
    if (link->owed[0].is_void)
        sgp_core_forget_owed(node, link);
    else if ((!forgot && accepted >= link->owed[0].share.number) ||
             sgp_core_went_on(node, &link->owed[0].share))
        sgp_core_accepted_by_peer(node, link);
    else if (forgot || link->owed[0].lost || is_unreadable(link) ||
             node->role->unique) /* other targets may be ready for the token */
        sgp_core_take_back(node, link, SGP_REASON_FORGOT);
    else
        return false;
    return true;
}

/* After a reconnect: settle what the target accepted, and send the rest again. Some shares return
 * instead. A target with another incarnation must not get an old fleet's mass. A share of an
 * earlier process of this node (`lost`), or in a coding that the target does not decode, cannot be
 * sent again. A token may go to another target. */
void sgp_core_settle(
    struct sgp_node *node, struct sgp_core_link *link, uint64_t accepted, bool forgot)
{
    while (link->owed[0].exists && settle_first(node, link, accepted, forgot))
        ;
}
