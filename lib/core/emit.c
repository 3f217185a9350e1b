/* SPDX-License-Identifier: Apache-2.0 */
/* Emitting: effects, notes, messages, and the states that other nodes hear of. */
#include "core/check.h"

#include <string.h>

/* A job changes the estimate. A finished node has not compared the new estimate, so it settles
 * here. sgp_core_advance cannot do that, because a reload or an inquiry emits jobs outside of
 * it. */
static void spoil_sketch(struct sgp_node *node)
{
    node->ending.spoiled = true;
    if (!node->ending.fresh)
        return;
    node->ending.fresh = false;
    node->changed = true; /* withdraws the sketch that was sent */
    sgp_core_settle_to_compare(node, node->layout.link_count);
}

/* Most jobs change x. Then no snapshot describes x any more (fold.c). Neither does one whose slot
 * another PUBLISH job overwrites. */
static void disturb(struct sgp_node *node, enum sgp_effect_type type)
{
    bool estimate = type == SGP_EFFECT_TRAIN || type == SGP_EFFECT_OUTER ||
                    type == SGP_EFFECT_ABSORB || type == SGP_EFFECT_RESTORE ||
                    type == SGP_EFFECT_ADOPT || type == SGP_EFFECT_FOLLOW ||
                    type == SGP_EFFECT_RECEIVE_TOKEN;
    bool changes = estimate || type == SGP_EFFECT_SCALE;
    if (estimate)
        spoil_sketch(node);
    if (changes || type == SGP_EFFECT_PUBLISH)
        node->folding.snapshot = SGP_SLOT_NONE;
    node->folding.changed = node->folding.changed || changes;
    if (changes)
        node->config.x_digest = 0;
}

struct sgp_effect *sgp_core_emit(struct sgp_node *node, enum sgp_effect_type type)
{
    struct sgp_effects *effects = node->effects;
    sgp_assert(effects->count < effects->capacity);
    struct sgp_effect *effect = &effects->items[effects->count++];
    memset(effect, 0, sizeof *effect);
    disturb(node, type);
    effect->type = type;
    effect->round = node->round;
    effect->weight = sgp_core_has_model(node) ? sgp_core_weight_of_estimate(node) : 0;
    return effect;
}

struct sgp_noted *sgp_core_note(struct sgp_node *node, enum sgp_note what, uint32_t peer)
{
    struct sgp_noted *note = &sgp_core_emit(node, SGP_EFFECT_NOTE)->note;
    note->what = what;
    note->link.peer = peer;
    note->slot = SGP_SLOT_NONE;
    return note;
}

struct sgp_noted *sgp_core_note_link(
    struct sgp_node *node, enum sgp_note what, const struct sgp_core_link *link)
{
    struct sgp_noted *note = sgp_core_note(node, what, link->peer);
    note->link.direction = link->direction;
    return note;
}

/* A node that uses no epochs states none. */
static struct sgp_epoch epoch_said(const struct sgp_node *node)
{
    struct sgp_epoch epoch = node->exact.epoch;
    epoch.topology = node->config.topology->digest;
    return sgp_core_uses_epochs(node) ? epoch : (struct sgp_epoch){.number = 0};
}

/* A greeting states the topology file by its fingerprint. After a reload, the next beat does. */
static struct sgp_epoch epoch_told(
    const struct sgp_node *node, struct sgp_core_link *link, enum sgp_message_type type)
{
    struct sgp_epoch epoch = epoch_said(node);
    uint64_t digest = node->config.topology->digest;
    if (type == SGP_BEAT && link->greeting.said != digest)
        epoch.topology = digest;
    if (type == SGP_BEAT || type == SGP_HELLO || type == SGP_WELCOME)
        link->greeting.said = digest;
    return epoch;
}

struct sgp_message *sgp_core_send_payload(
    struct sgp_node *node, struct sgp_core_link *link, enum sgp_message_type type, uint32_t slot)
{
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_SEND);
    effect->send.link = (struct sgp_link){link->peer, link->direction, link->connection.id};
    effect->send.slot = slot;
    effect->send.message.type = type;
    effect->send.message.pulse = (struct sgp_pulse){
        .state = sgp_core_state(node),
        .computing = sgp_core_computes(node) && node->passes == 0,
        .round = sgp_core_label(node, link),
        .next_round = SGP_ROUND_NONE,
        .ends = node->fleet.ends,
        .stop = node->fleet.stop,
        .epoch = epoch_told(node, link, type),
    };
    if (type == SGP_BEAT) {
        struct sgp_beat *beat = &effect->send.message.beat;
        sgp_round named = sgp_core_last_named(node);
        link->end.told = sgp_core_says_ended(node);
        if (named != link->end.named) {
            link->end.named = named;
            link->end.named_since = node->now;
            link->end.replies = 0;
        }
        *beat = (struct sgp_beat){.mixes = link->end.named, .ended = link->end.told};
        if (link->end.told) {
            beat->empty = node->ending.empty;
            beat->sketch = node->ending.sketch;
        }
    }
    if (link->direction == SGP_OUT) {
        sgp_round promise = sgp_core_promise(node, link);
        sgp_round then = sgp_core_promise_then(node, link, promise);
        bool holds = sgp_core_credit_holds(node, link->giving.credit[0], promise);
        if (!holds)
            link->giving.credit[0] = SGP_ROUND_NONE;
        if (!holds || link->giving.credit[1] != then)
            link->giving.credit[1] = SGP_ROUND_NONE;
        if (link->giving.announced[0] == SGP_ROUND_NONE)
            link->giving.pledged_from = promise;
        link->giving.announced[0] = promise;
        link->giving.announced[1] = then;
        effect->send.message.pulse.next_round = promise;
        effect->send.message.pulse.then_round = then != SGP_ROUND_NONE ? then : 0;
    }
    link->connection.said = node->now;
    sgp_core_mark_dirty(node, link);
    return &effect->send.message;
}

struct sgp_message *sgp_core_send(
    struct sgp_node *node, struct sgp_core_link *link, enum sgp_message_type type)
{
    return sgp_core_send_payload(node, link, type, SGP_SLOT_NONE);
}

void sgp_core_scale(struct sgp_node *node, double factor, struct sgp_slice slice)
{
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_SCALE);
    effect->scale.factor = factor;
    effect->scale.slice = slice;
}

void sgp_core_say_goodbye(
    struct sgp_node *node, const struct sgp_link *id, int code, enum sgp_reason reason)
{
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_HANG_UP);
    effect->hang_up.link = *id;
    effect->hang_up.code = code;
    effect->hang_up.reason = reason;
    effect->hang_up.message.type = SGP_GOODBYE;
    effect->hang_up.message.pulse = (struct sgp_pulse){.state = sgp_core_state(node),
        .round = node->round,
        .next_round = SGP_ROUND_NONE,
        .ends = node->fleet.ends,
        .stop = node->fleet.stop,
        .epoch = epoch_said(node)};
    effect->hang_up.message.goodbye =
        (struct sgp_goodbye){.reason = reason, .text = sgp_reason_text(reason)};
}

/* ---- transitions ---- */

#define BIT(value) (1u << (value))

/* For each state, the states that may follow it. */
static const unsigned next_states[] = {
    [SGP_NODE_JOINING] = BIT(SGP_NODE_TRAINING) | BIT(SGP_NODE_SETTLING) | BIT(SGP_NODE_DRAINING),
    [SGP_NODE_TRAINING] = BIT(SGP_NODE_SETTLING) | BIT(SGP_NODE_DRAINING),
    [SGP_NODE_SETTLING] = BIT(SGP_NODE_FINISHED) | BIT(SGP_NODE_DRAINING),
    [SGP_NODE_FINISHED] = BIT(SGP_NODE_SETTLING) | BIT(SGP_NODE_DRAINING),
    [SGP_NODE_DRAINING] = 0,
};

/* For each stage, the stages that may follow it. A leaving node enters IDLE from any stage in which
 * it waits, and hands its mass over there. */
static const unsigned next_stages[] = {
    [SGP_STAGE_IDLE] = BIT(SGP_STAGE_IDLE) | BIT(SGP_STAGE_BEGIN) | BIT(SGP_STAGE_TRAIN) |
                       BIT(SGP_STAGE_CREDIT) | BIT(SGP_STAGE_GATHER) | BIT(SGP_STAGE_PUBLISHING),
    [SGP_STAGE_BEGIN] =
        BIT(SGP_STAGE_IDLE) | BIT(SGP_STAGE_TRAIN) | BIT(SGP_STAGE_CREDIT) | BIT(SGP_STAGE_END),
    [SGP_STAGE_TRAIN] = BIT(SGP_STAGE_CREDIT) | BIT(SGP_STAGE_GATHER),
    [SGP_STAGE_CREDIT] = BIT(SGP_STAGE_BEGIN) | BIT(SGP_STAGE_IDLE) | BIT(SGP_STAGE_PUBLISHING) |
                         BIT(SGP_STAGE_TRAIN) | BIT(SGP_STAGE_GATHER) | BIT(SGP_STAGE_END),
    [SGP_STAGE_PUBLISHING] = BIT(SGP_STAGE_IDLE) | BIT(SGP_STAGE_TRAIN) | BIT(SGP_STAGE_GATHER),
    [SGP_STAGE_GATHER] = BIT(SGP_STAGE_IDLE) | BIT(SGP_STAGE_BEGIN) | BIT(SGP_STAGE_CREDIT),
    [SGP_STAGE_END] = BIT(SGP_STAGE_IDLE) | BIT(SGP_STAGE_BEGIN),
};

void sgp_core_enter(struct sgp_node *node, enum sgp_stage stage)
{
    sgp_check((next_stages[node->stage] & BIT(stage)) != 0);
    node->stage = stage;
    node->stage_since = node->now;
}

void sgp_core_become(struct sgp_node *node, enum sgp_node_state state)
{
    if (node->state == state)
        return;
    sgp_check((next_states[node->state] & BIT(state)) != 0);
    if (node->state == SGP_NODE_FINISHED)
        node->ending.judges = true; /* it compares again, whatever it hears until then */
    node->state = state;
    node->changed = true;
    (void)sgp_core_note(node, SGP_NOTE_STATE, node->config.self);
}

void sgp_core_settle_to_compare(struct sgp_node *node, uint32_t link_count)
{
    bool compared = node->ending.fresh || link_count == 0;
    bool ended = compared && sgp_core_is_over(node, node->round);
    if (node->state == SGP_NODE_FINISHED && !ended)
        sgp_core_become(node, SGP_NODE_SETTLING);
}
