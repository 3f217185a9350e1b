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
    if (!node->seeking.wants || node->seeking.asked != link->peer || node->seeking.filling ||
        link->receiving.filling)
        return sgp_hangs_up(SGP_E_CREDIT, SGP_REASON_CREDIT);
    bool sound = isfinite(estimate->weight) && estimate->weight > 0 &&
                 estimate->weight <= sgp_core_weight_most(node) && estimate->round >= 0 &&
                 estimate->round <= link->pulse.round &&
                 estimate->payload_bytes == 4 * node->config.parameters;
    if (!sound)
        return sgp_hangs_up(SGP_E_PROTOCOL, SGP_REASON_RANGE);
    node->seeking.incoming = *estimate;
    node->seeking.filling = true;
    sgp_core_payload_begins(node, link);
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_RECEIVE);
    effect->receive.link = (struct sgp_link){link->peer, link->direction, link->connection.id};
    effect->receive.slot = node->seeking.slot;
    return sgp_fine();
}

static void adopt(struct sgp_node *node, uint32_t peer)
{
    uint32_t slot = node->seeking.slot;
    node->layout.receives[slot].state = SGP_RECEIVE_ABSORBING;
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_ADOPT);
    effect->adopt.peer = peer;
    effect->adopt.slot = slot;
    effect->adopt.factor = node->mass.weight / node->seeking.incoming.weight;
    node->seeking.slot = SGP_SLOT_NONE;
    node->seeking.wants = false;
    node->config.awaits = false;
    node->seeking.until = node->now; /* once is enough */
    node->unrecorded = true;
    (void)sgp_core_note(node, SGP_NOTE_ADOPTED, peer);
}

struct sgp_verdict sgp_core_estimate_payload(
    struct sgp_node *node, struct sgp_core_link *link, int code)
{
    if (code == SGP_E_CHECKSUM)
        return sgp_hangs_up(code, SGP_REASON_CHECKSUM);
    node->seeking.filling = false;
    node->seeking.asked = SGP_SLOT_NONE;
    link->estimate.refused = code != 0;
    link->patience.trickles = false;
    if (code == 0)
        adopt(node, link->peer);
    sgp_core_send(node, link, SGP_ASK)->ask.wants = false;
    return sgp_fine();
}

/* ---- handing ours out ---- */

static void release(struct sgp_node *node)
{
    node->handing.peer = SGP_SLOT_NONE;
    if (node->handing.publishing)
        return; /* the job still writes; sgp_core_copied comes back here */
    node->layout.snapshot_users[node->handing.slot]--;
    node->handing.slot = SGP_SLOT_NONE;
}

void sgp_core_ask(struct sgp_node *node, struct sgp_core_link *link, const struct sgp_ask *ask)
{
    link->estimate.asks = ask->wants;
    if (!ask->wants && node->handing.peer == link->peer)
        release(node);
}

void sgp_core_copied(struct sgp_node *node)
{
    node->handing.publishing = false;
    if (node->handing.peer == SGP_SLOT_NONE)
        release(node);
}

/* The last free snapshot, so that rounds keep to the first ones. */
static uint32_t last_unused(const struct sgp_node *node)
{
    for (uint32_t i = node->layout.snapshot_count; i-- > 0;)
        if (node->layout.snapshot_users[i] == 0)
            return i;
    return SGP_SLOT_NONE;
}

static void begin(struct sgp_node *node, const struct sgp_core_link *link)
{
    bool entered =
        node->exact.entry != SGP_SLOT_NONE; /* then that is the estimate, and x is none */
    uint32_t slot = entered ? node->exact.entry : last_unused(node);
    if (slot == SGP_SLOT_NONE)
        return;
    node->layout.snapshot_users[slot]++;
    node->handing = (struct sgp_handing){
        .peer = link->peer,
        .slot = slot,
        .publishing = !entered,
        .estimate = {.round = node->round,
            .weight = node->mass.weight,
            .payload_bytes = 4 * node->config.parameters},
    };
    if (entered)
        return;
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_PUBLISH);
    effect->publish.slot = slot;
    effect->publish.keep = 1;
    effect->publish.purpose = SGP_PUBLISH_ESTIMATE;
    effect->publish.slice = (struct sgp_slice){0, node->config.parameters};
}

static void send(struct sgp_node *node)
{
    struct sgp_core_link *link = sgp_core_find(node, node->handing.peer, SGP_OUT);
    if (link->owed.exists && link->owed.sent) /* one payload at a time on a link */
        return;
    node->handing.sent = true;
    sgp_core_send_payload(node, link, SGP_ESTIMATE, node->handing.slot)->estimate =
        node->handing.estimate;
}

/* Whose parameters are a guess has none to hand out; nor has one that gave all its mass away. */
void sgp_core_hand_out(struct sgp_node *node)
{
    bool stays = node->state != SGP_NODE_JOINING && node->state != SGP_NODE_DRAINING;
    bool leaves = sgp_core_has_gone(node) && !node->leaving.left; /* its heir may need one */
    bool able = (stays || leaves) && !node->seeking.wants && node->mass.weight > 0 &&
                node->giving.slot == SGP_SLOT_NONE;
    for (uint32_t i = sgp_core_next(node, SGP_SET_ASKING, 0);
         able && node->handing.slot == SGP_SLOT_NONE && i < node->layout.out_count;
         i = sgp_core_next(node, SGP_SET_ASKING, i + 1))
        if (node->layout.links[i].estimate.asks)
            begin(node, &node->layout.links[i]);
    bool ready = node->handing.peer != SGP_SLOT_NONE && !node->handing.publishing;
    if (ready && !node->handing.sent)
        send(node);
}

/* ---- both ---- */

/* A connection is gone: whoever was asked on it, or asked, must ask anew. */
void sgp_core_estimate_down(struct sgp_node *node, struct sgp_core_link *link)
{
    if (link->direction == SGP_IN && node->seeking.asked == link->peer) {
        node->seeking.asked = SGP_SLOT_NONE;
        node->seeking.filling = false;
    }
    if (link->direction == SGP_OUT) {
        link->estimate.asks = false;
        if (node->handing.peer == link->peer)
            release(node);
    }
}
