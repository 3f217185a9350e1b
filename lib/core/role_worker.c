/* SPDX-License-Identifier: Apache-2.0 */
/* The role of a worker: it trains from a copy of its owner's estimate. If parts have owners, the
 * copy has each part from its owner.
 *
 * A worker gives the change that its steps made as a share without weight, its update. Then it
 * waits for a copy of a later step. If the step of a copy is closed, computation from that copy is
 * wasted.
 *
 * The rule: docs/rules/owner.md */
#include "core/core.h"

/* ---- updates that are due ---- */

/* An owner takes one update for each label. An update from a copy whose step is closed is not given
 * at all. Nor is an update that belongs to no step any more. */
bool sgp_core_owes_update(const struct sgp_node *node, const struct sgp_core_link *out)
{
    const struct sgp_core_link *in = sgp_core_from(node, out->peer);
    sgp_round label = sgp_core_label(node, out), closed = in->pulse.round;
    if (in->work.given >= label || sgp_core_is_over(node, label))
        return false;
    return sgp_core_at_own_pace(node) ? !sgp_core_is_over(node, closed) : closed <= label;
}

bool sgp_core_lacks_copy(const struct sgp_node *node, const struct sgp_core_link *in)
{
    if (!sgp_core_copies_from(node, in) || in->retired)
        return false;
    if (in->work.copy == SGP_ROUND_NONE || node->state == SGP_NODE_JOINING)
        return in->work.copy == SGP_ROUND_NONE;
    if (node->stage == SGP_STAGE_END)
        return sgp_core_living(in) && in->pulse.round > in->work.copy;
    return in->work.copy <= (sgp_core_at_own_pace(node) ? in->work.given : node->round);
}

/* Whether no owner can use what the worker computes. */
static bool is_behind(const struct sgp_node *node)
{
    SGP_EACH_OUT (link, node) {
        if (!link->retired && sgp_core_owes_update(node, link))
            return false;
    }
    return true;
}

void sgp_core_curtail(struct sgp_node *node)
{
    bool works = node->stage == SGP_STAGE_TRAIN && node->role->gives_updates;
    if (!works || node->copy.curtailed || !is_behind(node))
        return;
    node->copy.curtailed = true;
    (void)sgp_core_emit(node, SGP_EFFECT_CURTAIL);
}

/* ---- copies ---- */

void sgp_core_want_copy(struct sgp_node *node)
{
    if (!node->role->gives_updates)
        return;
    sgp_core_want(node);
    node->again = true; /* in order to ask */
}

/* The copy is as old as its oldest part. */
static void sum_up_copies(struct sgp_node *node, sgp_round newest)
{
    node->copy.exists = true;
    node->copy.label = newest;
    SGP_EACH_IN (in, node) {
        if (in->retired || !sgp_core_copies_from(node, in))
            continue;
        node->copy.exists = node->copy.exists && in->work.copy != SGP_ROUND_NONE;
        if (in->work.copy < node->copy.label)
            node->copy.label = in->work.copy;
    }
}

/* Whether the copy, or that of another part, contains no training. */
static bool is_untrained(const struct sgp_node *node, const struct sgp_core_link *link)
{
    bool untrained = link->question.incoming.untrained;
    SGP_EACH_IN (in, node)
        untrained = untrained || (!in->retired && sgp_core_copies_from(node, in) &&
                                     in->question.incoming.untrained);
    return untrained;
}

void sgp_core_take_copy(
    struct sgp_node *node, struct sgp_core_link *in, uint32_t slot, sgp_round label)
{
    struct sgp_core_link *out = sgp_core_find(node, in->peer, SGP_OUT);
    in->work.copy = label;
    in->work.held = node->role->unique ? SGP_ROUND_NONE : label;
    node->copy.former = in->question.incoming.former;
    node->copy.untrained = is_untrained(node, in);
    node->copy.since = node->now;
    node->copy.updates = 0;
    sum_up_copies(node, label);
    if (out != NULL) /* the promise to the owner follows the label */
        sgp_core_mark_dirty(node, out);
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_FOLLOW);
    effect->follow.peer = in->peer;
    effect->follow.slot = slot;
    effect->follow.slice = sgp_core_values(node, in);
    effect->follow.adds = in->question.incoming.coding != SGP_CODING_NONE;
    node->unrecorded = true;
}

/* Under a new file a part may have another owner. The worker's values of that part are as new as
 * its newest copy. If the worker lacks a copy of some part, it cannot tell, because parts may have
 * changed. */
void sgp_core_pass_on_labels(struct sgp_node *node)
{
    sgp_round newest = node->copy.exists ? node->copy.label : SGP_ROUND_NONE;
    if (!node->role->gives_updates)
        return;
    SGP_EACH_IN (link, node)
        if (node->copy.exists && link->work.copy > newest)
            newest = link->work.copy;
    SGP_EACH_IN (in, node) {
        bool unknown = !node->copy.exists || in->work.copy == SGP_ROUND_NONE;
        if (unknown && sgp_core_copies_from(node, in))
            in->work.copy = in->work.given = newest;
    }
    if (node->copy.exists)
        sum_up_copies(node, newest);
}

void sgp_core_use_copies(struct sgp_node *node)
{
    if (!node->role->gives_updates)
        return;
    SGP_EACH_IN (in, node) {
        if (!sgp_core_copies_from(node, in))
            continue;
        in->work.given = in->work.copy > in->work.given ? in->work.copy : in->work.given;
        struct sgp_core_link *out = sgp_core_find(node, in->peer, SGP_OUT);
        if (out != NULL)
            sgp_core_mark_dirty(node, out);
    }
}

/* There is no later copy after the last step. */
static sgp_round next_label(struct sgp_node *node)
{
    if (node->seeking.wants)
        sgp_core_stop_seeking(node);
    return node->copy.label > node->round ? node->copy.label : node->round;
}

/* A worker waits for the copies of the next steps, unless there are none. After an early stop there
 * may be some. */
static const struct sgp_core_link *awaited(const struct sgp_node *node)
{
    SGP_EACH_IN (owner, node) {
        sgp_round label = sgp_core_label(node, owner);
        bool later = !sgp_core_is_over(node, label) ||
                     (sgp_core_living(owner) && owner->pulse.round > label);
        if (later && sgp_core_lacks_copy(node, owner))
            return owner;
    }
    return NULL;
}

/* For the first label for which the worker has made no update yet. */
static sgp_round promise(struct sgp_node *node, struct sgp_core_link *link)
{
    const struct sgp_core_link *in = sgp_core_from(node, link->peer);
    sgp_round label = sgp_core_label(node, link);
    bool given = in != NULL && in->work.given >= label;
    return sgp_core_plan(node, link, given ? in->work.given + 1 : label);
}

static bool suits(const struct sgp_node_config *config)
{
    return config->topology->owner != SGP_NODE_NONE;
}

const struct sgp_role sgp_role_worker = {
    .name = "worker",
    .suits = suits,
    .part = SGP_PART_FOLLOWS,
    .gives_always = true,
    .gives_updates = true,
    .weight_by_file = true,
    .counts_steps = true,
    .one_model = true,
    .keeps_copy = true,
    .next_label = next_label,
    .awaited = awaited,
    .promise = promise,
};
