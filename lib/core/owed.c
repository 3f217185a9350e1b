/* SPDX-License-Identifier: Apache-2.0 */
/* The shares that a link owes: how they return, or are forgotten.
 *
 * The rule: docs/rules/mass.md */
#include "core/core.h"

/* ---- returning ---- */

/* The mass of a share of an earlier process, whose snapshot is lost, returns at the node's present
 * estimate: x is scaled with w. If no weight is left, there is no estimate to scale. */
void sgp_core_scale_for_return(struct sgp_node *node, double weight)
{
    if (node->mass.weight > 0 && weight > 0) {
        double factor = (node->mass.weight + weight) / node->mass.weight;
        sgp_core_scale(node, factor, sgp_core_all(node));
    } else if (weight > 0) {
        sgp_core_want(node);
    }
}

void sgp_core_put_back(struct sgp_node *node, uint32_t slot, const struct sgp_share *share)
{
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_RESTORE);
    effect->restore.slot = slot;
    effect->restore.fraction = share->fraction;
    effect->restore.compressor = share->compressor;
    effect->restore.slice = share->slice;
}

/* The share returns from its snapshot, which is in use until the RESTORE job is done. Without a
 * snapshot it returns by weight, at the present estimate. */
void sgp_core_restore_share(struct sgp_node *node, uint32_t slot, const struct sgp_share *share)
{
    if (node->role->restore_share != NULL) {
        node->role->restore_share(node, slot);
    } else if (slot != SGP_SLOT_NONE) {
        sgp_core_put_back(node, slot, share);
    } else {
        sgp_core_scale_for_return(node, share->weight);
    }
}

/* The first share of a link is settled, and the second becomes the first. Its time starts now,
 * because its payload waited for the first payload. */
void sgp_core_owe_next(struct sgp_node *node, struct sgp_core_link *link)
{
    link->owed[0] = link->owed[1];
    link->owed[1] = (struct sgp_owed){.exists = false};
    if (link->owed[0].exists && link->owed[0].sent)
        link->owed[0].since = node->now;
    node->unrecorded = true;
    sgp_core_mark_dirty(node, link);
}

static void let_go(struct sgp_node *node, const struct sgp_owed *owed)
{
    if (owed->slot != SGP_SLOT_NONE)
        node->layout.snapshot_users[owed->slot]--;
    node->again = true; /* the link or the snapshot may be awaited */
}

void sgp_core_forget_owed(struct sgp_node *node, struct sgp_core_link *link)
{
    let_go(node, &link->owed[0]);
    sgp_core_owe_next(node, link);
}

void sgp_core_forget_unsent(struct sgp_node *node, struct sgp_core_link *link)
{
    if (link->owed[1].exists && !link->owed[1].sent) {
        let_go(node, &link->owed[1]);
        link->owed[1].exists = false;
    }
    if (link->owed[0].exists && !link->owed[0].sent)
        sgp_core_forget_owed(node, link);
}

/* Within an exact cycle no share returns. If a share is not accepted, the cycle ends for all
 * nodes. */
bool sgp_core_is_of_cycle(const struct sgp_node *node, const struct sgp_share *share)
{
    return sgp_core_is_weightless(share) && !sgp_core_follows(node);
}

/* The share returns. */
void sgp_core_take_back(struct sgp_node *node, struct sgp_core_link *link, enum sgp_reason reason)
{
    const struct sgp_owed owed = link->owed[0];
    if (sgp_core_is_of_cycle(node, &owed.share)) {
        sgp_core_forget_owed(node, link);
        sgp_core_end_epoch(node, &node->exact.epoch);
    } else {
        if (owed.slot != SGP_SLOT_NONE || owed.lost)
            sgp_core_restore_share(node, owed.slot, &owed.share);
        sgp_mass_post(node, SGP_MASS_RETURN, owed.share.weight);
        sgp_core_owe_next(node, link);
    }
    link->count.returned++;
    link->connection.last_reason = reason;
    struct sgp_noted *note = sgp_core_note(node, SGP_NOTE_RETURNED, link->peer);
    note->reason = reason;
}
