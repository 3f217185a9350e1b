/* SPDX-License-Identifier: Apache-2.0 */
/* The driver: passes one event to the node, its effects to the operations, and one line to the
 * trace. */
#include "sgp/driver.h"

#include "core/core.h"
#include "core/trace.h"

enum sgp_event_type sgp_effect_answer(const struct sgp_effect *effect, uint32_t *ret_slot)
{
    *ret_slot = SGP_SLOT_NONE;
    switch (effect->type) {
    case SGP_EFFECT_TRAIN:
        return SGP_EVENT_TRAINED;
    case SGP_EFFECT_PUBLISH:
        *ret_slot = effect->publish.slot;
        return SGP_EVENT_PUBLISHED;
    case SGP_EFFECT_ABSORB:
        *ret_slot = effect->absorb.slot;
        return SGP_EVENT_ABSORBED;
    case SGP_EFFECT_ADOPT:
        *ret_slot = effect->adopt.candidates[0].slot;
        return SGP_EVENT_ABSORBED;
    case SGP_EFFECT_FOLLOW:
        *ret_slot = effect->follow.slot;
        return effect->follow.slot != SGP_SLOT_NONE ? SGP_EVENT_ABSORBED : 0;
    case SGP_EFFECT_RECEIVE_TOKEN:
        *ret_slot = effect->receive_token.slot;
        return SGP_EVENT_ABSORBED;
    case SGP_EFFECT_RESTORE:
        *ret_slot = effect->restore.slot;
        return SGP_EVENT_RESTORED;
    case SGP_EFFECT_SKETCH:
        return SGP_EVENT_SKETCHED;
    default:
        return 0;
    }
}

#define CALL(op, ...)                                                                              \
    do {                                                                                           \
        if (ops->op != NULL)                                                                       \
            ops->op(driver->context, __VA_ARGS__);                                                 \
    } while (0)

static void perform(const struct sgp_driver *driver, const struct sgp_effect *effect)
{
    const struct sgp_driver_ops *ops = driver->ops;
    switch (effect->type) {
    case SGP_EFFECT_DIAL:
        CALL(dial, effect->dial.peer);
        break;
    case SGP_EFFECT_SEND:
        CALL(send, effect->send.link, &effect->send.message, effect->send.slot);
        break;
    case SGP_EFFECT_HANG_UP:
        CALL(hang_up, effect->hang_up.link, effect->hang_up.code, &effect->hang_up.message);
        break;
    case SGP_EFFECT_RECEIVE:
        CALL(receive, effect->receive.link, effect->receive.slot);
        break;
    case SGP_EFFECT_FOLD:
        CALL(fold, effect);
        break;
    case SGP_EFFECT_CURTAIL:
        if (ops->curtail != NULL)
            ops->curtail(driver->context);
        break;
    case SGP_EFFECT_INQUIRE:
        CALL(inquire, effect->inquire.peer, &effect->inquire.question);
        break;
    case SGP_EFFECT_NOTE:
        CALL(note, effect);
        break;
    default:
        CALL(work, effect);
    }
}

static void carry_out(struct sgp_driver *driver)
{
    if (driver->ops->commit != NULL && sgp_node_record_changed(driver->node))
        driver->ops->commit(driver->context, driver->node);
    for (uint32_t i = 0; i < driver->effects->count; i++)
        perform(driver, &driver->effects->items[i]);
}

void sgp_driver_post(struct sgp_driver *driver, const struct sgp_event *event)
{
    sgp_assert(!driver->stepping); /* an operation must not post */
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
