/* SPDX-License-Identifier: Apache-2.0 */
/* Mass: what a node has, what is owed by it, and what comes home.
 * The rule: docs/rules/mass.md */
#include "core/core.h"

/* ---- sums ---- */

bool sgp_core_is_debt(const struct sgp_core_account *entry)
{
    return entry->stager == SGP_SLOT_NONE && entry->account.kind == SGP_ACCOUNT_DEBT;
}

double sgp_core_debts(const struct sgp_node *node)
{
    double sum = 0;
    for (uint32_t i = 0; node->accounts.debts > 0 && i < node->accounts.count; i++)
        if (sgp_core_is_debt(&node->accounts.entries[i]))
            sum += node->accounts.entries[i].account.weight;
    return sum;
}

double sgp_core_owed(const struct sgp_node *node)
{
    double owed = 0;
    for (uint32_t i = sgp_core_next(node, SGP_SET_OWING, 0); i < node->layout.out_count;
         i = sgp_core_next(node, SGP_SET_OWING, i + 1))
        if (node->layout.links[i].owed.exists)
            owed += node->layout.links[i].owed.share.weight;
    return owed + sgp_core_debts(node);
}

/* What of weight one node can have: that of all members that its files have named. Honest faults add
 * little: a restart without a ledger mints some, and others may know of members that this one does not. */
double sgp_core_weight_most(const struct sgp_node *node)
{
    return node->mass.members_most + SGP_WEIGHT_SLACK;
}

/* ---- coming home ---- */

/* The mass of a share of a former process, whose snapshot is gone, comes home at the node's present
 * estimate: x follows w. With no weight left there is no estimate to follow. */
void sgp_core_grow(struct sgp_node *node, double weight)
{
    if (node->mass.weight > 0 && weight > 0) {
        struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_SCALE);
        effect->scale.factor = (node->mass.weight + weight) / node->mass.weight;
        effect->scale.slice = (struct sgp_slice){0, node->config.parameters};
    } else if (weight > 0) {
        sgp_core_want(node);
    }
}

/* The values of a share: those of its snapshot, which stays in use until the RESTORE job is done with it, or if that is
 * gone, by weight, at this node's own estimate. */
void sgp_core_come_home(struct sgp_node *node, uint32_t slot, const struct sgp_share *share)
{
    if (sgp_core_has_token(node)) {
        sgp_core_token_returns(node, slot);
        if (!node->copy.exists)
            sgp_core_want(node);
    } else if (slot != SGP_SLOT_NONE) {
        struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_RESTORE);
        effect->restore.slot = slot;
        effect->restore.fraction = share->fraction;
        effect->restore.slice = share->slice;
    } else {
        sgp_core_grow(node, share->weight);
    }
}

/* Within an exact cycle nothing comes home: a share that is not accepted is the end of the cycle for all. */
static void give_up_cycle(struct sgp_node *node, struct sgp_core_link *link)
{
    sgp_core_drop_void(node, link);
    sgp_core_raise_epoch(node);
}

/* The share comes home. */
void sgp_core_take_back(struct sgp_node *node, struct sgp_core_link *link, enum sgp_reason reason)
{
    const struct sgp_owed *owed = &link->owed;
    bool of_cycle = sgp_core_is_weightless(&owed->share) && !sgp_core_is_worker(node);
    if (of_cycle)
        give_up_cycle(node, link);
    else if (owed->slot != SGP_SLOT_NONE || owed->lost)
        sgp_core_come_home(node, owed->slot, &owed->share);
    sgp_core_touch(node, link);
    node->unrecorded = true;
    node->mass.weight += owed->share.weight;
    link->owed.exists = false;
    link->count.returned++;
    link->connection.last_reason = reason;
    struct sgp_noted *note = sgp_core_note(node, SGP_NOTE_RETURNED, link->peer);
    note->reason = reason;
}
