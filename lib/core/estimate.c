/* SPDX-License-Identifier: Apache-2.0 */
/* Received estimates: a node whose parameters did not survive asks a source for a copy of its
 * model, and a worker asks its owner. No weight moves.
 *
 * A node that compares estimates (config.candidates) keeps each as a candidate until enough have
 * come. Then the ADOPT job chooses one of them. A node in a fleet with guards does so, because one
 * neighbour may lie.
 *
 * seek.c chooses the sources. handing.c hands estimates out.
 *
 * The rule: docs/rules/estimate.md */
#include "core/core.h"

#include <math.h>

/* Whether the payload can contain this number of values. */
static bool payload_fits(const struct sgp_estimate *estimate, uint64_t count)
{
    bool plain = estimate->coding == SGP_CODING_NONE;
    return (plain || sgp_coding_is_shorter(estimate->coding, count)) &&
           sgp_coding_may_have(estimate->coding, count, estimate->payload_bytes);
}

static bool is_sound(const struct sgp_node *node, const struct sgp_core_link *link,
    const struct sgp_estimate *estimate)
{
    return isfinite(estimate->weight) && estimate->weight > 0 &&
           estimate->weight <= sgp_core_weight_most(node) && estimate->round >= 0 &&
           estimate->round <= link->pulse.round && estimate->round >= link->question.newer;
}

static void found(struct sgp_node *node)
{
    sgp_core_stop_seeking(node);
    node->seeking.until = node->now;
    node->unrecorded = true;
}

/* The source says that this node has the same parameters. If x has changed since the question, the
 * node asks again. */
static struct sgp_verdict keep_own(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_estimate *estimate)
{
    if (link->question.digest == 0 || !is_sound(node, link, estimate) || estimate->round != 0)
        return sgp_hangs_up(SGP_E_PROTOCOL, SGP_REASON_RANGE);
    bool same = link->question.digest == sgp_core_x_digest(node);
    sgp_core_end_question(node, link);
    if (same)
        found(node);
    return sgp_fine();
}

struct sgp_verdict sgp_core_estimate(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_estimate *estimate)
{
    if (!node->seeking.wants || link->question.slot == SGP_SLOT_NONE || link->question.filling ||
        link->question.whole || link->receiving.filling)
        return sgp_hangs_up(SGP_E_CREDIT, SGP_REASON_CREDIT);
    if (estimate->same)
        return keep_own(node, link, estimate);
    struct sgp_slice values = sgp_core_values(node, link);
    bool part = estimate->slice.count > 0
                    ? estimate->slice.first == values.first && estimate->slice.count == values.count
                    : values.count == node->config.parameters;
    if (!part) /* the sender has another file */
        return sgp_hangs_up(SGP_E_PROTOCOL, SGP_REASON_CHANGED);
    if (!is_sound(node, link, estimate) || !payload_fits(estimate, values.count))
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

/* The candidate's buffer is free when the job is done. */
static void add_candidate(
    struct sgp_node *node, struct sgp_effect *effect, struct sgp_core_link *link)
{
    uint32_t slot = link->question.slot, index = effect->adopt.count++;
    struct sgp_receive *receive = &node->layout.receives[slot];
    effect->adopt.candidates[index] = (struct sgp_candidate){
        .peer = link->peer, .slot = slot, .weight = link->question.incoming.weight};
    receive->state = index > 0 ? SGP_RECEIVE_COMPARED : SGP_RECEIVE_ABSORBING;
    receive->first = effect->adopt.candidates[0].slot;
    link->question.slot = SGP_SLOT_NONE;
    link->question.whole = false;
}

/* Whether the candidates contain no training. One source of two or three may lie. */
static bool are_untrained(const struct sgp_node *node)
{
    uint32_t untrained = 0;
    SGP_EACH_IN (link, node)
        untrained += link->question.whole && link->question.incoming.untrained;
    return 2 * untrained >= sgp_core_candidates(node);
}

static void take(struct sgp_node *node)
{
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_ADOPT);
    sgp_round lost = 0;
    bool untrained = are_untrained(node);
    SGP_EACH_IN (link, node) {
        if (!link->question.whole)
            continue;
        effect->adopt.slice = link->question.incoming.slice;
        lost = node->round - link->question.incoming.round;
        add_candidate(node, effect, link);
    }
    effect->adopt.weight = node->mass.weight;
    effect->adopt.trained = !node->past.fresh;
    node->past.fresh = untrained;
    uint32_t peer = effect->adopt.candidates[0].peer;
    bool one = effect->adopt.count == 1;
    struct sgp_noted *note = sgp_core_note(node, SGP_NOTE_ADOPTED, one ? peer : node->config.self);
    note->amount = sgp_core_leads(node) && lost > 0 ? (double)lost : 0;
}

uint32_t sgp_core_candidates(const struct sgp_node *node)
{
    uint32_t count = 0;
    SGP_EACH_IN (link, node)
        count += link->question.whole;
    return count;
}

void sgp_core_adopt(struct sgp_node *node)
{
    take(node);
    found(node);
}

/* Whether a worker has all the copies that it needs. For other nodes the one estimate is enough. */
static bool is_enough(const struct sgp_node *node)
{
    SGP_EACH_IN (link, node)
        if (sgp_core_lacks_copy(node, link))
            return false;
    return true;
}

static void follow(struct sgp_node *node, struct sgp_core_link *link)
{
    uint32_t slot = link->question.slot;
    node->layout.receives[slot].state = SGP_RECEIVE_ABSORBING;
    sgp_core_take_copy(node, link, slot, link->question.incoming.round);
    link->question.slot = SGP_SLOT_NONE;
    if (is_enough(node)) { /* until then, other parts of x are those with which the node began */
        node->past.fresh = node->copy.untrained;
        sgp_core_stop_seeking(node);
    }
    node->seeking.until = node->now;
    node->unrecorded = true;
}

/* Whether the token has been made again since the source's copy. */
static bool is_former(const struct sgp_node *node, const struct sgp_core_link *link)
{
    bool below = sgp_core_epoch_is_below(&link->pulse.epoch, &node->exact.epoch);
    return node->role->unique && (link->question.incoming.former || below);
}

/* Other sources may take somewhat longer than this one. */
#define TIMES_AS_LONG 4

/* The time for one more candidate is that of a question, or longer, as this answer took. */
static void add(struct sgp_node *node, struct sgp_core_link *link)
{
    struct sgp_estimate *incoming = &link->question.incoming;
    incoming->former = is_former(node, link);
    incoming->untrained = incoming->untrained || incoming->round == 0;
    if (sgp_core_mints(node)) /* other nodes have or had the token */
        sgp_core_forgo_token(node);
    if (sgp_core_has_left(node, link))
        sgp_core_find_outdated(node, link);
    if (sgp_core_follows(node)) {
        follow(node, link);
        return;
    }
    link->question.whole = true;
    sgp_time turn = SGP_SEEK_NS << node->seeking.turns;
    sgp_time as_long = TIMES_AS_LONG * (node->now - link->question.asked_at);
    node->seeking.compares_until = node->now + (as_long > turn ? as_long : turn);
    if (sgp_core_candidates(node) >= node->config.candidates)
        sgp_core_adopt(node);
}

/* Whether the received difference can be added to the copy. If not, the node asks for the complete
 * estimate. The file may have changed meanwhile. */
static bool has_base(struct sgp_core_link *link)
{
    const struct sgp_estimate *incoming = &link->question.incoming;
    sgp_round held = link->work.held;
    bool based =
        incoming->coding == SGP_CODING_NONE || (held != SGP_ROUND_NONE && incoming->since == held);
    link->work.held = based ? held : SGP_ROUND_NONE;
    return based;
}

struct sgp_verdict sgp_core_estimate_payload(
    struct sgp_node *node, struct sgp_core_link *link, int code)
{
    if (code == SGP_E_CHECKSUM)
        return sgp_hangs_up(code, SGP_REASON_CHECKSUM);
    struct sgp_slice came = link->question.incoming.slice, values = sgp_core_values(node, link);
    /* under this file, too */
    bool of_link = came.first == values.first && came.count == values.count;
    link->question.filling = false;
    link->estimate.refused = code != 0;
    link->patience.trickles = false;
    if (code == 0 && of_link && has_base(link) && node->seeking.wants)
        add(node, link);
    else
        sgp_core_end_question(node, link);
    sgp_core_send(node, link, SGP_ASK)->ask.wants = false;
    return sgp_fine();
}

/* A connection has ended. Questions on it, in either direction, must be asked again. A candidate
 * has come whole, and stays. */
void sgp_core_estimate_down(struct sgp_node *node, struct sgp_core_link *link)
{
    link->work.held = SGP_ROUND_NONE;
    if (link->direction == SGP_IN && !link->question.whole)
        sgp_core_end_question(node, link);
    else if (link->direction == SGP_OUT)
        sgp_core_ask(node, link, &(struct sgp_ask){.wants = false});
}
