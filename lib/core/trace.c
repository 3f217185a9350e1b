/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a step. It is made only if the trace is read. */
#include "core/trace.h"

#include "core/core.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const event_words[] = {
    [SGP_EVENT_START] = "start",
    [SGP_EVENT_TICK] = "tick",
    [SGP_EVENT_UP] = "up",
    [SGP_EVENT_DOWN] = "down",
    [SGP_EVENT_MESSAGE] = "message",
    [SGP_EVENT_PAYLOAD] = "payload",
    [SGP_EVENT_HEARD] = "heard",
    [SGP_EVENT_TRAINED] = "trained",
    [SGP_EVENT_PUBLISHED] = "published",
    [SGP_EVENT_ABSORBED] = "absorbed",
    [SGP_EVENT_RESTORED] = "restored",
    [SGP_EVENT_SKETCHED] = "sketched",
    [SGP_EVENT_ANSWER] = "answer",
    [SGP_EVENT_ENOUGH] = "enough",
    [SGP_EVENT_PAUSE] = "pause",
    [SGP_EVENT_RESUME] = "resume",
    [SGP_EVENT_STOP] = "stop",
    [SGP_EVENT_LEAVE] = "leave",
    [SGP_EVENT_STEPS_END] = "steps_end",
    [SGP_EVENT_PROVEN] = "proven",
    [SGP_EVENT_TOKEN] = "token",
    [SGP_EVENT_RENEW] = "renew",
};

static const char *const effect_words[] = {
    [SGP_EFFECT_DIAL] = "dial",
    [SGP_EFFECT_SEND] = "send",
    [SGP_EFFECT_HANG_UP] = "hang-up",
    [SGP_EFFECT_RECEIVE] = "receive",
    [SGP_EFFECT_FOLD] = "fold",
    [SGP_EFFECT_TRAIN] = "train",
    [SGP_EFFECT_PUBLISH] = "publish",
    [SGP_EFFECT_ABSORB] = "absorb",
    [SGP_EFFECT_RESTORE] = "restore",
    [SGP_EFFECT_NOTE] = "note",
    [SGP_EFFECT_ADOPT] = "adopt",
    [SGP_EFFECT_SCALE] = "scale",
    [SGP_EFFECT_OUTER] = "outer",
    [SGP_EFFECT_SKETCH] = "sketch",
    [SGP_EFFECT_FOLLOW] = "follow",
    [SGP_EFFECT_COMPENSATE] = "compensate",
    [SGP_EFFECT_RECEIVE_TOKEN] = "receive_token",
    [SGP_EFFECT_CURTAIL] = "curtail",
    [SGP_EFFECT_INQUIRE] = "inquire",
};

/* A line under construction. Once it is full, it does not change. */
struct text {
    char *at;
    size_t left;
};

SGP_PRINTF(2, 3) static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int bytes = vsnprintf(text->at, text->left, format, arguments);
    va_end(arguments);
    if (bytes < 0 || (size_t)bytes >= text->left)
        text->left = 0;
    else {
        text->at += bytes;
        text->left -= (size_t)bytes;
    }
}

/* The peer of an effect. SGP_SLOT_NONE: it concerns this node alone. */
static uint32_t peer_of(const struct sgp_effect *effect)
{
    switch (effect->type) {
    case SGP_EFFECT_DIAL:
        return effect->dial.peer;
    case SGP_EFFECT_SEND:
        return effect->send.link.peer;
    case SGP_EFFECT_HANG_UP:
        return effect->hang_up.link.peer;
    case SGP_EFFECT_RECEIVE:
        return effect->receive.link.peer;
    case SGP_EFFECT_FOLD:
        return effect->fold.link.peer;
    case SGP_EFFECT_INQUIRE:
        return effect->inquire.peer;
    default:
        return SGP_SLOT_NONE;
    }
}

static void add_effect(
    struct text *text, const struct sgp_topology_node *nodes, const struct sgp_effect *effect)
{
    add(text, "%s", effect_words[effect->type]);
    if (effect->type == SGP_EFFECT_NOTE)
        add(text, ":%s", sgp_note_name(effect->note.what));
    const struct sgp_message *sent = effect->type == SGP_EFFECT_SEND ? &effect->send.message : NULL;
    if (sent != NULL)
        add(text, ":%s", sgp_message_type_name(sent->type));
    uint32_t peer = peer_of(effect);
    if (peer != SGP_SLOT_NONE)
        add(text, ":%s", nodes[peer].name);
    if (sent != NULL && sent->type == SGP_SHARE)
        add(text, ":%" PRIu64 ":%.17g", sent->share.number, sent->share.weight);
}

/* Log the head and the effects, in as many lines as needed, each with the head. */
static void tell(
    const struct sgp_driver *driver, const struct sgp_topology_node *nodes, const char *head)
{
    uint32_t i = 0;
    do {
        char line[SGP_TEXT_BYTES], word[SGP_TEXT_BYTES];
        struct text text = {line, sizeof line};
        add(&text, "%s", head);
        for (const char *before = " do="; i < driver->effects->count; i++, before = ",") {
            struct text effect = {word, sizeof word};
            add_effect(&effect, nodes, &driver->effects->items[i]);
            if (strlen(before) + strlen(word) >= text.left && before[0] == ',')
                break;
            add(&text, "%s%s", before, word);
        }
        sgp_log(driver->sink, SGP_LEVEL_TRACE, "%s", line);
    } while (i < driver->effects->count);
}

/* Log which node this one waits for, if that has changed. */
static void tell_waiting(struct sgp_driver *driver)
{
    const struct sgp_node *node = driver->node;
    struct sgp_node_status status;
    sgp_node_status(node, &status);
    if (status.waiting == driver->waiting && status.waiting_peer == driver->waiting_peer)
        return;
    driver->waiting = status.waiting;
    driver->waiting_peer = status.waiting_peer;
    bool whom = status.waiting_peer != SGP_SLOT_NONE;
    sgp_log(driver->sink, SGP_LEVEL_TRACE, "t=%" PRId64 " node=%s round=%" PRId64 " waits=%s%s%s",
        node->now, driver->name, node->round, sgp_waiting_name(status.waiting),
        whom ? " peer=" : "", whom ? node->config.topology->nodes[status.waiting_peer].name : "");
}

static void add_state(struct text *text, const struct sgp_driver *driver)
{
    const struct sgp_node *node = driver->node;
    add(text, "t=%" PRId64 " node=%s state=%s round=%" PRId64 " w=%.17g", node->now, driver->name,
        sgp_node_state_name(sgp_core_state(node)), node->round, node->mass.weight);
}

void sgp_trace_step(struct sgp_driver *driver, const struct sgp_event *event)
{
    const struct sgp_topology_node *nodes = driver->node->config.topology->nodes;
    char head[SGP_TEXT_BYTES];
    struct text text = {head, sizeof head};
    add_state(&text, driver);
    add(&text, " event=%s", event_words[event->type]);
    bool of_link = event->type >= SGP_EVENT_UP && event->type <= SGP_EVENT_HEARD;
    if (of_link)
        add(&text, ":%s peer=%s", event->link.direction == SGP_OUT ? "out" : "in",
            nodes[event->link.peer].name);
    if (event->type == SGP_EVENT_MESSAGE)
        add(&text, " message=%s", sgp_message_type_name(event->message->type));
    tell(driver, nodes, head);
    tell_waiting(driver);
}

void sgp_trace_reload(struct sgp_driver *driver, const struct sgp_topology *former)
{
    char head[SGP_TEXT_BYTES];
    struct text text = {head, sizeof head};
    add_state(&text, driver);
    add(&text, " event=reload digest=%016" PRIx64, driver->node->config.topology->digest);
    tell(driver, former->nodes, head);
    driver->waiting = 0; /* node indices have changed */
    tell_waiting(driver);
}
