/* SPDX-License-Identifier: Apache-2.0 */
/* Checks: the invariants of every node between two steps, written a second time, apart from the
 * code that maintains them. Builds for tests (-Dchecked=true) check after every step. The link
 * index is expensive to check, so only campaigns and unit tests do that (sgp_core_is_indexed).
 *
 * The rule: docs/rules/mass.md */
#include "core/check.h"

#include <math.h>

#define SPECK 1e-9 /* of weight, for accumulated rounding */

/* ---- mass ---- */

static bool comes_to(const struct sgp_node *node, double sum, double account)
{
    return fabs(sum - account) <= SPECK * fmax(1, node->mass.members_most);
}

/* Each account equals the sum of its shares. What a posting took from one account it added to
 * another, or it went outside. */
static const char *flaw_of_mass(const struct sgp_node *node)
{
    double held = 0, owed = 0, debt = 0;
    for (uint32_t i = 0; i < node->layout.receive_count; i++)
        if (node->layout.receives[i].state == SGP_RECEIVE_HELD)
            held += node->layout.receives[i].share.weight;
    SGP_EACH_OUT (link, node)
        if (link->owed[0].exists)
            owed += link->owed[0].share.weight;
    for (uint32_t i = 0; i < node->accounts.count; i++)
        if (sgp_core_is_debt(&node->accounts.entries[i]))
            debt += node->accounts.entries[i].account.weight;
    if (!comes_to(node, held, node->mass.held))
        return "what was posted as held is what the shares there weigh";
    if (!comes_to(node, owed, node->mass.owed))
        return "what was posted as owed is what the shares of links weigh";
    if (!comes_to(node, debt, node->mass.debt))
        return "what was posted as debt is what the debts in force weigh";
    if (!comes_to(node, node->mass.weight + held + owed + debt, node->mass.due))
        return "weight, held, owed and debt come to what came from outside less what went there";
    return NULL;
}

static bool mass_is_in_range(const struct sgp_node *node)
{
    return isfinite(node->mass.weight) && node->mass.weight >= 0 && node->mass.covered >= 0 &&
           node->mass.covered <= node->mass.surplus + SPECK && node->mass.unknown >= 0;
}

/* ---- slots ---- */

static bool is_used(const struct sgp_node *node, uint32_t slot)
{
    return slot == SGP_SLOT_NONE || node->layout.snapshot_users[slot] > 0;
}

/* A RESTORE job may use a snapshot after its last known user. */
static bool snapshots_are_counted(const struct sgp_node *node)
{
    const struct sgp_layout *layout = &node->layout;
    bool all = is_used(node, node->exact.input) && is_used(node, node->giving.slot) &&
               (!node->handing.publishing || is_used(node, node->handing.slot)) &&
               is_used(node, node->folding.pinned) && is_used(node, node->token.slot) &&
               is_used(node, node->handing.change);
    uint32_t users = (uint32_t)(node->exact.input != SGP_SLOT_NONE) +
                     (uint32_t)(node->token.slot != SGP_SLOT_NONE) +
                     (uint32_t)(node->giving.slot != SGP_SLOT_NONE) +
                     (uint32_t)node->handing.publishing +
                     (uint32_t)(node->handing.change != SGP_SLOT_NONE) +
                     (uint32_t)(node->folding.pinned != SGP_SLOT_NONE);
    for (uint32_t i = 0; i < layout->out_count; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            const struct sgp_owed *owed = &layout->links[i].owed[k];
            users += owed->exists && owed->slot != SGP_SLOT_NONE;
            all = all && (!owed->exists || is_used(node, owed->slot));
        }
        users += layout->links[i].estimate.slot != SGP_SLOT_NONE;
        users += layout->links[i].work.base != SGP_SLOT_NONE;
        all = all && is_used(node, layout->links[i].estimate.slot) &&
              is_used(node, layout->links[i].work.base);
    }
    for (uint32_t i = 0; i < layout->receive_count; i++) {
        users += layout->receives[i].base != SGP_SLOT_NONE;
        all = all && is_used(node, layout->receives[i].base);
    }
    for (uint32_t i = 0; i < node->accounts.count; i++) {
        users += node->accounts.entries[i].slot != SGP_SLOT_NONE;
        all = all && is_used(node, node->accounts.entries[i].slot);
    }
    uint32_t counted = 0;
    for (uint32_t slot = 0; slot < layout->snapshot_count; slot++)
        counted += layout->snapshot_users[slot];
    return all && users <= counted;
}

static bool grants_are_counted(const struct sgp_node *node)
{
    const struct sgp_layout *layout = &node->layout;
    uint32_t granted = node->seeking.slot != SGP_SLOT_NONE;
    for (uint32_t i = 0; i < layout->receive_count; i++)
        granted -= layout->receives[i].state == SGP_RECEIVE_GRANTED;
    for (uint32_t i = layout->out_count; i < layout->link_count; i++) {
        const struct sgp_core_link *link = &layout->links[i];
        granted += link->question.slot != SGP_SLOT_NONE;
        const uint32_t *slots = link->receiving.slot;
        for (uint32_t k = 0; k < 2 && slots[k] != SGP_SLOT_NONE; k++) {
            const struct sgp_receive *receive = &layout->receives[slots[k]];
            if (receive->state != SGP_RECEIVE_GRANTED || receive->peer != link->peer)
                return false;
            granted++;
        }
    }
    return granted == 0;
}

/* ---- accounts ---- */

static bool accounts_are_counted(const struct sgp_node *node)
{
    uint32_t staged = 0, debts = 0, by_links = 0;
    for (uint32_t i = 0; i < node->accounts.count; i++) {
        staged += node->accounts.entries[i].stager != SGP_SLOT_NONE;
        debts += sgp_core_is_debt(&node->accounts.entries[i]);
    }
    SGP_EACH_IN (link, node)
        by_links += link->bequest.staged;
    return staged == node->accounts.staged && debts == node->accounts.debts && staged == by_links &&
           node->accounts.count - staged <= SGP_ACCOUNTS_MAX;
}

/* ---- links ---- */

static bool link_is_sound(const struct sgp_node *node, const struct sgp_core_link *link)
{
    bool down = link->connection.state == SGP_LINK_DOWN, out = link->direction == SGP_OUT;
    if (down != (link->connection.id == 0))
        return false;
    if (out && (link->receiving.slot[0] != SGP_SLOT_NONE || link->receiving.filling))
        return false;
    if (!out && (link->owed[0].exists || link->giving.credit[0] != SGP_ROUND_NONE))
        return false;
    if (link->receiving.filling && link->receiving.slot[0] == SGP_SLOT_NONE)
        return false;
    if ((link->receiving.folds || link->receiving.spoiled) && !link->receiving.filling)
        return false;
    bool sent = link->owed[0].exists && link->owed[0].sent;
    bool published = (link->owed[0].exists && link->owed[0].publishing) ||
                     (link->owed[1].exists && link->owed[1].publishing);
    return (!sent || link->connection.state == SGP_LINK_UP) &&
           (!published || node->stage == SGP_STAGE_PUBLISHING);
}

/* If a link owes two shares, neither has weight, and the first is settled before the second. */
static bool shares_are_in_order(const struct sgp_node *node)
{
    bool all = true;
    SGP_EACH_LINK (link, node) {
        const struct sgp_owed *first = &link->owed[0], *then = first + 1;
        all = all &&
              (!then->exists ||
                  (first->exists && first->share.weight <= 0 && then->share.weight <= 0 &&
                      first->share.number < then->share.number && (first->sent || !then->sent)));
    }
    return all;
}

static bool links_are_sound(const struct sgp_node *node)
{
    uint32_t folded = 0;
    SGP_EACH_LINK (link, node) {
        if (!link_is_sound(node, link))
            return false;
        folded += link->receiving.folds;
    }
    return folded == (node->folding.pinned != SGP_SLOT_NONE);
}

/* ---- what leaves ---- */

static bool is_part(double fraction)
{
    return fraction >= 0 && fraction <= 1;
}

static bool is_range(const struct sgp_node *node, const struct sgp_slice *slice)
{
    return slice->count > 0 && slice->count <= node->config.parameters &&
           slice->first <= node->config.parameters - slice->count;
}

static bool adoption_is_sound(const struct sgp_node *node, const struct sgp_effect *effect)
{
    uint32_t count = effect->adopt.count;
    bool sound = count > 0 && count <= SGP_CANDIDATES_MOST && effect->adopt.weight >= 0 &&
                 isfinite(effect->adopt.weight) && is_range(node, &effect->adopt.slice);
    for (uint32_t i = 0; sound && i < count; i++)
        sound = effect->adopt.candidates[i].slot < node->layout.receive_count &&
                effect->adopt.candidates[i].weight > 0;
    return sound;
}

static bool effect_is_sound(const struct sgp_node *node, const struct sgp_effect *effect)
{
    uint32_t snapshots = node->layout.snapshot_count, receives = node->layout.receive_count;
    switch (effect->type) {
    case SGP_EFFECT_SEND:
        return effect->send.link.connection != 0 &&
               (effect->send.slot < snapshots || effect->send.slot == SGP_SLOT_NONE);
    case SGP_EFFECT_HANG_UP:
        return effect->hang_up.link.connection != 0;
    case SGP_EFFECT_RECEIVE:
        return effect->receive.slot < receives;
    case SGP_EFFECT_FOLD:
        return effect->fold.slot < receives &&
               (effect->fold.how.snapshot < snapshots ||
                   effect->fold.how.snapshot == SGP_SLOT_NONE) &&
               is_part(effect->fold.how.keep) && is_part(effect->fold.how.fraction);
    case SGP_EFFECT_OUTER:
        return effect->weight > 0;
    case SGP_EFFECT_TRAIN:
        return effect->weight > 0 && effect->train.steps > 0 && effect->train.pace > 0;
    case SGP_EFFECT_PUBLISH:
        return effect->publish.slot < snapshots && is_part(effect->publish.keep) &&
               is_range(node, &effect->publish.slice);
    case SGP_EFFECT_ABSORB:
        return effect->absorb.slot < receives && is_part(effect->absorb.fraction);
    case SGP_EFFECT_COMPENSATE:
        return effect->compensate.slot < receives && effect->compensate.snapshot < snapshots &&
               effect->compensate.factor > 0 && is_range(node, &effect->compensate.slice);
    case SGP_EFFECT_RESTORE:
        return effect->restore.slot < snapshots && is_part(effect->restore.fraction);
    case SGP_EFFECT_ADOPT:
        return adoption_is_sound(node, effect);
    case SGP_EFFECT_SCALE:
        return effect->scale.factor >= 0 && isfinite(effect->scale.factor) &&
               is_range(node, &effect->scale.slice);
    case SGP_EFFECT_FOLLOW: /* without a slot: of an owner, whose x becomes its own copy */
        return (effect->follow.slot == SGP_SLOT_NONE
                       ? sgp_core_leads(node)
                       : effect->follow.slot < receives && sgp_core_follows(node)) &&
               is_range(node, &effect->follow.slice);
    case SGP_EFFECT_RECEIVE_TOKEN:
        return effect->receive_token.slot < receives &&
               effect->receive_token.snapshot < snapshots &&
               is_part(effect->receive_token.fraction);
    case SGP_EFFECT_CURTAIL:
        return node->stage == SGP_STAGE_TRAIN;
    case SGP_EFFECT_DIAL:
    case SGP_EFFECT_SKETCH:
    case SGP_EFFECT_INQUIRE:
    case SGP_EFFECT_NOTE:
        break;
    }
    return true;
}

bool sgp_core_effects_are_sound(const struct sgp_node *node, const struct sgp_effects *effects)
{
    for (uint32_t i = 0; i < effects->count; i++)
        if (!effect_is_sound(node, &effects->items[i]))
            return false;
    return true;
}

/* ---- all of it ---- */

static bool stage_fits_state(const struct sgp_node *node)
{
    switch (node->state) {
    case SGP_NODE_JOINING:
        return node->stage == SGP_STAGE_IDLE;
    case SGP_NODE_TRAINING:
        return node->stage != SGP_STAGE_IDLE && node->stage != SGP_STAGE_END;
    case SGP_NODE_SETTLING:
        return node->stage != SGP_STAGE_IDLE && node->stage != SGP_STAGE_TRAIN;
    case SGP_NODE_FINISHED:
        return node->stage == SGP_STAGE_END;
    case SGP_NODE_DRAINING:
        return true;
    case SGP_NODE_PAUSED: /* not a state of its own */
        break;
    }
    return false;
}

const char *sgp_core_flaw(const struct sgp_node *node)
{
    if (!mass_is_in_range(node))
        return "weight is finite and not negative, and no more is covered than was inherited";
    const char *flaw = flaw_of_mass(node);
    if (flaw != NULL)
        return flaw;
    if (!snapshots_are_counted(node))
        return "a snapshot has no fewer users than are known";
    if (!grants_are_counted(node))
        return "a buffer is granted to one link, which has it";
    if (!accounts_are_counted(node))
        return "accounts are as many as are counted";
    if (!links_are_sound(node))
        return "a link that is down has no connection, and what is sent or filled has one";
    if (!shares_are_in_order(node))
        return "of two shares owed on a link neither has weight, and the first left first";
    if (!stage_fits_state(node))
        return "the stage fits the state";
    if (node->state == SGP_NODE_FINISHED && !node->ending.fresh && node->layout.link_count > 0)
        return "a finished node has a sketch of its estimate, or no neighbours";
    bool mixes_on = !sgp_core_is_over(node, node->round);
    if (node->state == SGP_NODE_FINISHED && mixes_on && !node->again)
        return "a finished node has come to its last round, or settles at once";
    if (node->role != sgp_core_role_at(node, node->round))
        return "the role is that of the round";
    if (node->passes > 0 && (!node->gave || node->state == SGP_NODE_TRAINING))
        return "mass is passed on by one that has given in its round and takes no steps";
    return NULL;
}
