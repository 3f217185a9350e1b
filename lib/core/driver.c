/* SPDX-License-Identifier: Apache-2.0 */
/* The driver: one event through the node, its effects through the verbs, one line for the trace. */
#include "sgp/driver.h"

#include "core/core.h"
#include "core/trace.h"

static void perform(const struct sgp_driver *driver, const struct sgp_effect *effect)
{
    const struct sgp_driver_verbs *verbs = driver->verbs;
    void *context = driver->context;
    switch (effect->type) {
    case SGP_EFFECT_DIAL:
        verbs->dial(context, effect->dial.peer);
        break;
    case SGP_EFFECT_SEND:
        verbs->send(context, effect->send.link, &effect->send.message, effect->send.slot);
        break;
    case SGP_EFFECT_HANG_UP:
        verbs->hang_up(
            context, effect->hang_up.link, effect->hang_up.code, &effect->hang_up.message);
        break;
    case SGP_EFFECT_RECEIVE:
        verbs->receive(context, effect->receive.link, effect->receive.slot);
        break;
    case SGP_EFFECT_FOLD:
        verbs->fold(context, effect->fold.link, effect->fold.slot, &effect->fold.how);
        break;
    case SGP_EFFECT_TRAIN:
        verbs->train(
            context, effect->train.turn, effect->weight, effect->train.steps, effect->train.pace);
        break;
    case SGP_EFFECT_CURTAIL:
        verbs->curtail(context);
        break;
    case SGP_EFFECT_PUBLISH:
        verbs->publish(context, effect->round, effect->publish.slot, effect->publish.keep,
            effect->publish.purpose, effect->publish.slice);
        break;
    case SGP_EFFECT_ABSORB:
        verbs->absorb(context, effect->absorb.slot, effect->absorb.fraction, effect->absorb.slice,
            effect->absorb.folded);
        break;
    case SGP_EFFECT_COMPENSATE:
        verbs->compensate(context, effect->compensate.slot, effect->compensate.snapshot,
            effect->compensate.factor, effect->compensate.slice);
        break;
    case SGP_EFFECT_VISIT:
        verbs->visit(context, effect->visit.slot, effect->visit.snapshot, effect->visit.fraction,
            effect->visit.computes);
        break;
    case SGP_EFFECT_RESTORE:
        verbs->restore(
            context, effect->restore.slot, effect->restore.fraction, effect->restore.slice);
        break;
    case SGP_EFFECT_ADOPT:
        verbs->adopt(context, effect->adopt.slot, effect->adopt.factor, effect->adopt.slice);
        break;
    case SGP_EFFECT_FOLLOW:
        verbs->follow(context, effect->follow.slot, effect->follow.slice);
        break;
    case SGP_EFFECT_SCALE:
        verbs->scale(context, effect->scale.factor, effect->scale.slice);
        break;
    case SGP_EFFECT_OUTER:
        verbs->outer(context, effect->weight);
        break;
    case SGP_EFFECT_SKETCH:
        verbs->sketch(context, effect->weight);
        break;
    case SGP_EFFECT_INQUIRE:
        verbs->inquire(context, effect->inquire.peer, &effect->inquire.question);
        break;
    case SGP_EFFECT_NOTE:
        verbs->note(context, effect);
        break;
    }
}

static void carry_out(struct sgp_driver *driver)
{
    if (driver->verbs->commit != NULL && sgp_node_record_changed(driver->node))
        driver->verbs->commit(driver->context, driver->node);
    for (uint32_t i = 0; i < driver->effects->count; i++)
        perform(driver, &driver->effects->items[i]);
}

void sgp_driver_post(struct sgp_driver *driver, const struct sgp_event *event)
{
    sgp_assert(!driver->stepping); /* a verb must not post */
    driver->stepping = true;
    sgp_node_step(driver->node, event, driver->effects);
    if (sgp_sink_wants(driver->sink, SGP_LEVEL_TRACE))
        sgp_trace_step(driver, event);
    carry_out(driver);
    driver->stepping = false;
}

void sgp_driver_reload(struct sgp_driver *driver, sgp_time now, struct sgp_reload *reload)
{
    sgp_assert(!driver->stepping);
    driver->stepping = true;
    const struct sgp_topology *former = driver->node->config.topology;
    sgp_node_reload(driver->node, now, reload, driver->effects);
    if (sgp_sink_wants(driver->sink, SGP_LEVEL_TRACE))
        sgp_trace_reload(driver, former);
    carry_out(driver);
    driver->stepping = false;
}
