/* SPDX-License-Identifier: Apache-2.0 */
/* Folding: a share is added to x while it arrives, piece by piece, before any piece has left the
 * cache.
 *
 * After a node has published, x is `keep` times the snapshot until something changes x. Usually the
 * next share does, and it may be arriving already. Therefore the performer may write `keep *
 * snapshot + fraction * share` over the share as it arrives. Once the whole share is there and
 * accepted, x becomes that buffer. Until then x itself is not touched. A share that is damaged, or
 * whose connection ends, is dropped with its buffer.
 *
 * Other changes of x wait meanwhile where they can: held shares, and shares that targets refused.
 * Two changes cannot wait. The source may be late, so that the round continues without it, or a
 * share may return when its target greets. Then the folded data are useless, and the share is
 * refused.
 *
 * The rule: docs/rules/fold.md */
#include "core/core.h"

/* Whether x does not change, as far as can be foreseen. */
static bool rests(const struct sgp_node *node)
{
    bool forgives = node->config.backup_neighbours > 0 && node->state == SGP_NODE_TRAINING;
    return sgp_method_in_order(node->config.method) && !forgives && sgp_core_active(node) &&
           !node->leaving.wanted && node->stage == SGP_STAGE_GATHER &&
           node->giving.slot == SGP_SLOT_NONE && node->folding.snapshot != SGP_SLOT_NONE;
}

/* Whether no other share is absorbed before this one. Shares of a round are absorbed in the order
 * of their sources (receive.c). */
static bool is_first(const struct sgp_node *node, const struct sgp_core_link *link)
{
    for (uint32_t i = 0; i < node->layout.receive_count; i++) {
        const struct sgp_receive *receive = &node->layout.receives[i];
        if (receive->state == SGP_RECEIVE_HELD && receive->share.round <= node->round &&
            (receive->share.round < node->round || receive->peer < link->peer))
            return false;
    }
    SGP_EACH_OF (other, node, SGP_SET_NEAR) {
        sgp_round last = other < link ? node->round : node->round - 1;
        if (other != link && sgp_core_is_waited_for(other) &&
            other->receiving.promise[0] != SGP_ROUND_NONE && other->receiving.promise[0] <= last)
            return false;
    }
    return true;
}

static bool may_fold(const struct sgp_node *node, const struct sgp_core_link *link)
{
    const struct sgp_share *share = &link->receiving.incoming;
    return link->receiving.filling && !link->receiving.spoiled && share->payload_bytes > 0 &&
           share->bequest <= 0 && share->slice.count == node->config.parameters &&
           share->round == node->round && node->folding.pinned == SGP_SLOT_NONE && rests(node) &&
           sgp_core_is_waited_for(link) && is_first(node, link);
}

static void say(struct sgp_node *node, const struct sgp_core_link *link, struct sgp_fold how)
{
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_FOLD);
    effect->fold.link = (struct sgp_link){link->peer, link->direction, link->connection.id};
    effect->fold.slot = link->receiving.slot[0];
    effect->fold.how = how;
}

void sgp_core_fold(struct sgp_node *node, struct sgp_core_link *link)
{
    struct sgp_folding *folding = &node->folding;
    if (!may_fold(node, link))
        return;
    link->receiving.folds = true;
    folding->pinned = folding->snapshot;
    folding->changed = false;
    node->layout.snapshot_users[folding->pinned]++;
    say(node, link,
        (struct sgp_fold){.snapshot = folding->pinned,
            .keep = folding->keep,
            .compressor = folding->compressor,
            .fraction = link->receiving.incoming.fraction,
            .weight = link->receiving.incoming.weight});
}

static void unpin(struct sgp_node *node, struct sgp_core_link *link)
{
    link->receiving.folds = false;
    node->layout.snapshot_users[node->folding.pinned]--;
    node->folding.pinned = SGP_SLOT_NONE;
    node->again = node->again || node->folding.refusals;
}

void sgp_core_end_fold(struct sgp_node *node, struct sgp_core_link *link)
{
    if (link->receiving.folds)
        unpin(node, link);
    link->receiving.spoiled = false;
}

void sgp_core_give_up_fold(struct sgp_node *node)
{
    if (node->folding.pinned == SGP_SLOT_NONE || sgp_core_folds(node))
        return;
    struct sgp_core_link *link = node->layout.links + node->layout.out_count;
    while (!link->receiving.folds)
        link++;
    unpin(node, link);
    link->receiving.spoiled = true;
    node->again = true; /* a waiting job may need the snapshot */
    say(node, link, (struct sgp_fold){.snapshot = SGP_SLOT_NONE});
}

void sgp_core_refuse_later(
    struct sgp_node *node, struct sgp_core_link *link, enum sgp_reason reason)
{
    link->owed[0].refused = reason;
    node->folding.refusals = true;
}

void sgp_core_take_up_refusals(struct sgp_node *node)
{
    if (!node->folding.refusals || sgp_core_folds(node))
        return;
    node->folding.refusals = false;
    SGP_EACH_OF (link, node, SGP_SET_OWING) {
        if (link->owed[0].exists && link->owed[0].refused != 0)
            sgp_core_take_back(node, link, link->owed[0].refused);
    }
}
