/* The text of a step. Called only when somebody wants to read it. */
#include "core/trace.h"

#include "core/core.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

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
};

static const char *const effect_words[] = {
    [SGP_EFFECT_DIAL] = "dial",
    [SGP_EFFECT_SEND] = "send",
    [SGP_EFFECT_HANG_UP] = "hang-up",
    [SGP_EFFECT_RECEIVE] = "receive",
    [SGP_EFFECT_TRAIN] = "train",
    [SGP_EFFECT_PUBLISH] = "publish",
    [SGP_EFFECT_ABSORB] = "absorb",
    [SGP_EFFECT_RESTORE] = "restore",
    [SGP_EFFECT_NOTE] = "note",
    [SGP_EFFECT_ADOPT] = "adopt",
    [SGP_EFFECT_SCALE] = "scale",
    [SGP_EFFECT_SKETCH] = "sketch",
    [SGP_EFFECT_INQUIRE] = "inquire",
};

/* A line under construction; once full it stays as it is. */
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

/* With whom an effect has to do; SGP_SLOT_NONE: with this node alone. */
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
    case SGP_EFFECT_INQUIRE:
        return effect->inquire.peer;
    default:
        return SGP_SLOT_NONE;
    }
}

static void add_effect(
    struct text *text, const struct sgp_node *node, const struct sgp_effect *effect)
{
    const struct sgp_topology_node *nodes = node->config.topology->nodes;
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

void sgp_trace_line(
    char *line, size_t bytes, const struct sgp_driver *driver, const struct sgp_event *event)
{
    const struct sgp_node *node = driver->node;
    struct text text = {line, bytes};
    add(&text, "t=%" PRId64 " node=%s state=%s round=%" PRId64 " w=%.17g event=%s", event->now,
        driver->name, sgp_node_state_name(sgp_core_state(node)), node->round, node->mass.weight,
        event_words[event->type]);
    bool of_link = event->type >= SGP_EVENT_UP && event->type <= SGP_EVENT_HEARD;
    if (of_link)
        add(&text, ":%s peer=%s", event->link.direction == SGP_OUT ? "out" : "in",
            node->config.topology->nodes[event->link.peer].name);
    if (event->type == SGP_EVENT_MESSAGE)
        add(&text, " message=%s", sgp_message_type_name(event->message->type));
    for (uint32_t i = 0; i < driver->effects->count; i++) {
        add(&text, i == 0 ? " do=" : ",");
        add_effect(&text, node, &driver->effects->items[i]);
    }
}
