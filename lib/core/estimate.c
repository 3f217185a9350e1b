/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates: a node whose parameters did not survive asks a source for a copy of its x, and hands
 * its own to a target that asks. No weight moves.
 *
 * Whom to ask is for seek.c. Whoever is past joining can answer; the answer is one more snapshot, held until
 * the target says that it has come, or is gone. So can one that leaves for good until it has handed its
 * mass over: its only heir may be waiting for just that.
 * The rule: docs/rules/estimate.md */
#include "core/core.h"

#include <math.h>

/* ---- one that comes ---- */

struct sgp_verdict sgp_core_estimate(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_estimate *estimate)
{
    if (!node->seeking.wants || link->question.slot == SGP_SLOT_NONE || link->question.filling ||
        link->receiving.filling)
        return sgp_hangs_up(SGP_E_CREDIT, SGP_REASON_CREDIT);
    struct sgp_slice values = sgp_core_values(node, link);
    bool part = estimate->slice.count > 0
                    ? estimate->slice.first == values.first && estimate->slice.count == values.count
                    : values.count == node->config.parameters;
    if (!part) /* by another file */
        return sgp_hangs_up(SGP_E_PROTOCOL, SGP_REASON_CHANGED);
    bool sound = isfinite(estimate->weight) && estimate->weight > 0 &&
                 estimate->weight <= sgp_core_weight_most(node) && estimate->round >= 0 &&
                 estimate->round <= link->pulse.round && estimate->round >= link->question.newer &&
                 estimate->payload_bytes == sgp_coding_bytes_most(SGP_CODING_NONE, values.count);
    if (!sound)
        return sgp_hangs_up(SGP_E_PROTOCOL, SGP_REASON_RANGE);
    link->question.incoming = *estimate;
    link->question.incoming.slice = values;
    link->question.filling = true;
    sgp_core_payload_begins(node, link);
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_RECEIVE);
    effect->receive.link = (struct sgp_link){link->peer, link->direction, link->connection.id};
    effect->receive.slot = link->question.slot;
    return sgp_fine();
}

static void take(struct sgp_node *node, const struct sgp_core_link *link, uint32_t slot)
{
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_ADOPT);
    effect->adopt.peer = link->peer;
    effect->adopt.slot = slot;
    effect->adopt.slice = sgp_core_values(node, link);
    effect->adopt.factor = node->mass.weight / link->question.incoming.weight;
    struct sgp_noted *note = sgp_core_note(node, SGP_NOTE_ADOPTED, link->peer);
    sgp_round lost = node->round - link->question.incoming.round;
    note->amount = sgp_core_leads(node) && lost > 0 ? (double)lost : 0;
}

/* Whether a worker has copies of all that it needs; the one that was asked for is enough otherwise. */
static bool is_enough(const struct sgp_node *node)
{
    SGP_EACH_IN (link, node)
        if (sgp_core_lacks_copy(node, link))
            return false;
    return true;
}

static void adopt(struct sgp_node *node, struct sgp_core_link *link)
{
    uint32_t slot = link->question.slot;
    node->layout.receives[slot].state = SGP_RECEIVE_ABSORBING;
    if (sgp_core_mints(node)) /* others have the token, or had */
        sgp_core_forgo_token(node);
    if (sgp_core_has_left(node, link))
        sgp_core_find_outdated(node, link);
    if (sgp_core_follows(node))
        sgp_core_take_copy(node, link, slot, link->question.incoming.round);
    else
        take(node, link, slot);
    node->past.fresh = node->past.fresh && link->question.incoming.round == 0;
    link->question.slot = SGP_SLOT_NONE;
    if (is_enough(node))
        sgp_core_stop_seeking(node);
    node->seeking.until = node->now; /* once is enough */
    node->unrecorded = true;
}

struct sgp_verdict sgp_core_estimate_payload(
    struct sgp_node *node, struct sgp_core_link *link, int code)
{
    if (code == SGP_E_CHECKSUM)
        return sgp_hangs_up(code, SGP_REASON_CHECKSUM);
    struct sgp_slice came = link->question.incoming.slice, values = sgp_core_values(node, link);
    bool of_link = came.first == values.first && came.count == values.count; /* by this file, too */
    link->question.filling = false;
    link->estimate.refused = code != 0;
    link->patience.trickles = false;
    if (code == 0 && of_link && node->seeking.wants)
        adopt(node, link);
    else
        sgp_core_end_question(node, link);
    sgp_core_send(node, link, SGP_ASK)->ask.wants = false;
    return sgp_fine();
}

/* ---- handing ours out ---- */

static void release(struct sgp_node *node, struct sgp_core_link *link)
{
    if (link->estimate.slot != SGP_SLOT_NONE)
        node->layout.snapshot_users[link->estimate.slot]--;
    link->estimate.slot = SGP_SLOT_NONE;
    link->estimate.sent = false;
}

void sgp_core_ask(struct sgp_node *node, struct sgp_core_link *link, const struct sgp_ask *ask)
{
    link->estimate.asks = ask->wants;
    link->estimate.newer = ask->newer;
    if (!ask->wants)
        release(node, link);
}

void sgp_core_copied(struct sgp_node *node)
{
    node->handing.publishing = false;
    node->layout.snapshot_users[node->handing.slot]--;
}

/* The last free snapshot, so that rounds keep to the first ones. */
static uint32_t last_unused(const struct sgp_node *node)
{
    for (uint32_t i = node->layout.snapshot_count; i-- > 0;)
        if (node->layout.snapshot_users[i] == 0)
            return i;
    return SGP_SLOT_NONE;
}

/* The label of our estimate: of a copy it is that of its owner. A worker awaits a label of its own. */
static sgp_round label(const struct sgp_node *node, const struct sgp_core_link *link)
{
    if (node->past.fresh && !node->role->counts_steps)
        return 0;
    return node->role->unique ? node->copy.label : sgp_core_label(node, link);
}

/* A snapshot of our estimate. Within an exact cycle there is one already, and x is none. */
static void copy_out(struct sgp_node *node, const struct sgp_core_link *link, uint32_t slot)
{
    struct sgp_slice values = sgp_core_values(node, link), all = {0, node->config.parameters};
    bool entered = node->exact.entry != SGP_SLOT_NONE, copy = node->role->keeps_copy;
    node->handing = (struct sgp_handing){
        .slot = slot,
        .publishing = !entered,
        .estimate = {.round = label(node, link),
            .weight = sgp_core_weight_of_estimate(node),
            .payload_bytes = sgp_coding_bytes_most(SGP_CODING_NONE, values.count)},
    };
    if (values.count < all.count)
        node->handing.estimate.slice = values;
    if (entered)
        return;
    node->layout.snapshot_users[slot]++; /* until it is made */
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_PUBLISH);
    effect->publish.slot = slot;
    effect->publish.keep = 1;
    effect->publish.purpose = copy ? SGP_PUBLISH_COPY : SGP_PUBLISH_ESTIMATE;
    effect->publish.slice = copy ? all : values; /* which of a copy does not matter */
}

static bool wants_ours(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return link->estimate.asks && link->estimate.slot == SGP_SLOT_NONE &&
           link->estimate.newer <= label(node, link) && sgp_core_may_have_copy(node, link);
}

static struct sgp_core_link *next_asking(struct sgp_node *node, struct sgp_core_link *from)
{
    uint32_t i = sgp_core_next(node, SGP_SET_ASKING, (uint32_t)(from - node->layout.links));
    return &node->layout.links[i < node->layout.out_count ? i : node->layout.out_count];
}

/* One at a time, so that rounds have their snapshots; an owner serves all that wait for its step with one, and has a
 * snapshot for each. */
static void begin(struct sgp_node *node)
{
    struct sgp_core_link *end = &node->layout.links[node->layout.out_count], *link;
    struct sgp_core_link *wanted = NULL;
    bool owner = sgp_core_leads(node);
    for (link = next_asking(node, node->layout.links); link < end;
         link = next_asking(node, link + 1)) {
        if (!owner && link->estimate.slot != SGP_SLOT_NONE)
            return;
        wanted = wanted == NULL && wants_ours(node, link) ? link : wanted;
    }
    uint32_t slot = node->exact.entry != SGP_SLOT_NONE ? node->exact.entry : last_unused(node);
    if (wanted == NULL || slot == SGP_SLOT_NONE)
        return;
    copy_out(node, wanted, slot);
    for (link = next_asking(node, node->layout.links); link < end;
         link = next_asking(node, link + 1)) {
        if (!wants_ours(node, link))
            continue;
        link->estimate.slot = slot;
        node->layout.snapshot_users[slot]++;
        if (!owner)
            return;
    }
}

static void send(struct sgp_node *node)
{
    struct sgp_core_link *end = &node->layout.links[node->layout.out_count], *link;
    for (link = next_asking(node, node->layout.links); link < end;
         link = next_asking(node, link + 1)) {
        if (link->estimate.slot == SGP_SLOT_NONE || link->estimate.sent ||
            (link->owed[0].exists && link->owed[0].sent)) /* one payload at a time on a link */
            continue;
        link->estimate.sent = true;
        sgp_core_keep_base(node, link);
        sgp_core_send_payload(node, link, SGP_ESTIMATE, link->estimate.slot)->estimate =
            node->handing.estimate;
    }
}

/* Whose parameters are a guess has none to hand out; nor has one that gave all its mass away. */
void sgp_core_hand_out(struct sgp_node *node)
{
    bool stays = node->state != SGP_NODE_JOINING && node->state != SGP_NODE_DRAINING;
    bool leaves = sgp_core_has_gone(node) && !node->leaving.left; /* its heir may need one */
    bool copied = node->copy.exists || !node->role->keeps_copy;
    bool able = (stays || leaves) && copied && !sgp_core_is_guess(node) &&
                sgp_core_weight_of_estimate(node) > 0 && node->giving.slot == SGP_SLOT_NONE;
    if (!node->handing.publishing)
        send(node); /* what was made, before another label is */
    if (able && !node->handing.publishing)
        begin(node);
    if (!node->handing.publishing)
        send(node);
}

/* ---- both ---- */

/* A connection is gone: whoever was asked on it, or asked, must ask anew. */
void sgp_core_estimate_down(struct sgp_node *node, struct sgp_core_link *link)
{
    if (link->direction == SGP_IN)
        sgp_core_end_question(node, link);
    if (link->direction == SGP_OUT) {
        link->estimate.asks = false;
        release(node, link);
    }
}
