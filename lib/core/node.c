/* The node's frame: creation, one step, the next deadline. Runs on the caller's thread; does no I/O. */
#include "core/core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

static bool config_is_sound(const struct sgp_node_config *config)
{
    return config->topology != NULL && config->self < config->topology->node_count &&
           config->method != NULL && config->lineage != 0 && config->parameters > 0 &&
           config->parameters <= SGP_PARAMETERS_MAX && config->rounds >= 0 &&
           config->rounds < SGP_ROUND_MAX && config->local_steps > 0 &&
           config->overlap <= SGP_OVERLAP_MAX && config->weight_least >= 0 &&
           config->patience >= 0 && config->patience <= SGP_PATIENCE_MAX_NS &&
           config->weight_least <= SGP_NODES_MAX &&
           (config->record == NULL ||
               (config->record->lineage == config->lineage &&
                   sgp_record_is_sound(config->record, config->topology->node_count)));
}

/* Mark the links on record; false if one leads to the node itself. */
static bool mark_record(const struct sgp_node_config *config, unsigned char *marks)
{
    const struct sgp_record *record = config->record;
    for (uint32_t i = 0; record != NULL && i < record->link_count; i++) {
        const struct sgp_record_link *link = &record->links[i];
        if (link->peer == config->self)
            return false;
        marks[link->peer] |= link->out ? SGP_MARK_KEPT_OUT : SGP_MARK_KEPT_IN;
        marks[link->peer] |= link->owed_kept ? SGP_MARK_OWES : 0;
    }
    return true;
}

static int lay_out(struct sgp_node *node, const struct sgp_node_config *config)
{
    unsigned char *marks = calloc(config->topology->node_count, 1);
    if (marks == NULL)
        return -ENOMEM;
    struct sgp_layout layout = {.links = NULL};
    int code = mark_record(config, marks)
                   ? sgp_core_lay_out(config->topology, config->self, config->method, marks,
                         &(struct sgp_node_needs){.links = 0}, &layout)
                   : -EINVAL;
    free(marks);
    if (code == 0)
        sgp_core_swap_layout(node, &layout);
    return code;
}

int sgp_node_create(const struct sgp_node_config *config, struct sgp_node **ret_node)
{
    if (!config_is_sound(config))
        return -EINVAL;
    struct sgp_node *node = calloc(1, sizeof(*node));
    if (node == NULL)
        return -ENOMEM;
    node->accounts = calloc(SGP_CORE_ACCOUNTS_MAX, sizeof(*node->accounts));
    int code = node->accounts != NULL ? lay_out(node, config) : -ENOMEM;
    if (code < 0) {
        sgp_node_destroy(node);
        return code;
    }
    node->config = *config;
    node->config.fingerprint.method = config->method->number;
    sgp_random_init(&node->random, config->seed, config->self);
    node->state = SGP_NODE_JOINING;
    node->stage = SGP_STAGE_IDLE;
    node->ends = config->rounds;
    node->stop = SGP_ROUND_NONE;
    node->weight = 1;
    node->members_most = config->topology->node_count;
    node->publish_slot = SGP_SLOT_NONE;
    node->leaving.heir = SGP_SLOT_NONE;
    node->handing = (struct sgp_handing){.peer = SGP_SLOT_NONE, .slot = SGP_SLOT_NONE};
    node->seeking = (struct sgp_seeking){
        .asked = SGP_SLOT_NONE, .slot = SGP_SLOT_NONE, .until = SGP_TIME_NEVER};
    node->restored = config->record != NULL || config->seeks;
    if (config->record != NULL)
        sgp_core_restore(node, config->record);
    if (config->seeks)
        sgp_core_want(node);
    node->config.record = NULL; /* borrowed for the call */
    sgp_core_touch_all(node);
    sgp_core_notice(node);
    sgp_core_file(node);
    *ret_node = node;
    return 0;
}

void sgp_node_destroy(struct sgp_node *node)
{
    if (node == NULL)
        return;
    struct sgp_layout layout = {.links = NULL};
    sgp_core_swap_layout(node, &layout);
    sgp_core_layout_finish(&layout);
    free(node->accounts);
    free(node);
}

/* ---- small facts that several files ask ---- */

struct sgp_effect *sgp_core_emit(struct sgp_node *node, enum sgp_effect_type type)
{
    struct sgp_effects *effects = node->effects;
    sgp_assert(effects->count < effects->capacity);
    struct sgp_effect *effect = &effects->items[effects->count++];
    memset(effect, 0, sizeof(*effect));
    if (type == SGP_EFFECT_TRAIN || type == SGP_EFFECT_ABSORB || type == SGP_EFFECT_RESTORE ||
        type == SGP_EFFECT_ADOPT)
        sgp_core_spoil_sketch(node);
    effect->type = type;
    effect->slot = SGP_SLOT_NONE;
    effect->round = node->round;
    effect->weight = node->weight;
    return effect;
}

struct sgp_effect *sgp_core_note(struct sgp_node *node, enum sgp_note note, uint32_t peer)
{
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_NOTE);
    effect->note = note;
    effect->link.peer = peer;
    return effect;
}

enum sgp_node_state sgp_core_state(const struct sgp_node *node)
{
    bool pausable = node->state != SGP_NODE_FINISHED && node->state != SGP_NODE_DRAINING;
    return node->paused && pausable ? SGP_NODE_PAUSED : node->state;
}

bool sgp_core_active(const struct sgp_node *node)
{
    enum sgp_node_state state = sgp_core_state(node);
    return state == SGP_NODE_JOINING || state == SGP_NODE_TRAINING || state == SGP_NODE_SETTLING;
}

bool sgp_core_at_own_pace(const struct sgp_node *node)
{
    return node->config.method->when == SGP_WHEN_NEVER;
}

bool sgp_core_has_own_buffers(const struct sgp_node *node)
{
    return node->config.method->when != SGP_WHEN_ALL_PROMISED;
}

/* Nothing overlaps once the steps are done: what is under way must arrive before the end. */
sgp_round sgp_core_overlap(const struct sgp_node *node)
{
    bool overdue = node->config.method->when == SGP_WHEN_OVERDUE;
    return overdue && node->state == SGP_NODE_TRAINING ? (sgp_round)node->config.overlap : 0;
}

sgp_round sgp_core_train_end(const struct sgp_node *node)
{
    bool early = node->stop != SGP_ROUND_NONE && node->stop < node->ends;
    return early ? node->stop : node->ends;
}

sgp_round sgp_core_last(const struct sgp_node *node)
{
    sgp_round last = sgp_core_train_end(node) +
                     (sgp_round)node->config.final_cycles * node->config.topology->rounds_per_cycle;
    return node->ending.mixes > last ? node->ending.mixes : last;
}

/* ---- one step ---- */

/* The link that an event speaks of, or NULL if it speaks of a connection already gone. */
static struct sgp_core_link *link_of(struct sgp_node *node, const struct sgp_link *id)
{
    struct sgp_core_link *link = sgp_core_find(node, id->peer, id->direction);
    if (link == NULL || link->connection != id->connection)
        return NULL;
    sgp_core_touch(node, link);
    return link;
}

void sgp_core_message(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_message *message)
{
    bool greeting = message->type == SGP_HELLO || message->type == SGP_WELCOME;
    bool incoming = message->type == SGP_HELLO || message->type == SGP_SHARE ||
                    message->type == SGP_ESTIMATE || message->type == SGP_BEQUEATH;
    bool outgoing = message->type == SGP_WELCOME || message->type == SGP_CREDIT ||
                    message->type == SGP_ACK || message->type == SGP_ASK ||
                    message->type == SGP_ANSWER;
    bool up = link->state == SGP_LINK_UP;
    if ((incoming && link->direction != SGP_IN) || (outgoing && link->direction != SGP_OUT) ||
        (message->type != SGP_GOODBYE && greeting == up) || message->type == SGP_INQUIRE) {
        sgp_core_hang_up(node, link, SGP_E_PROTOCOL, SGP_REASON_PROTOCOL);
        return;
    }
    uint64_t connection = link->connection;
    sgp_core_hear(node, link, &message->pulse);
    if (link->connection != connection) /* the pulse was out of range */
        return;
    if (message->type != SGP_SHARE) /* a share keeps the old promise until it is whole */
        sgp_core_take_promise(node, link);
    switch (message->type) {
    case SGP_HELLO:
        sgp_core_hello(node, link, &message->hello);
        break;
    case SGP_WELCOME:
        sgp_core_welcome(node, link, &message->welcome);
        break;
    case SGP_BEAT:
        sgp_core_beat(node, link, &message->beat);
        break;
    case SGP_CREDIT:
        sgp_core_credit(node, link, &message->credit);
        break;
    case SGP_SHARE:
        sgp_core_share(node, link, &message->share);
        break;
    case SGP_ACK:
        sgp_core_ack(node, link, &message->ack);
        break;
    case SGP_GOODBYE:
        sgp_core_goodbye(node, link, &message->goodbye);
        break;
    case SGP_ASK:
        sgp_core_ask(node, link, &message->ask);
        break;
    case SGP_ESTIMATE:
        sgp_core_estimate(node, link, &message->estimate);
        break;
    case SGP_BEQUEATH:
        sgp_core_stage(node, link, &message->bequeath);
        break;
    case SGP_ANSWER:
        sgp_core_staged(node, link, &message->answer);
        break;
    case SGP_INQUIRE: /* comes on a connection of its own */
        break;
    }
}

static void on_link_event(struct sgp_node *node, const struct sgp_event *event)
{
    if (event->type == SGP_EVENT_UP) {
        sgp_core_up(node, &event->link);
        return;
    }
    struct sgp_core_link *link = link_of(node, &event->link);
    if (link == NULL)
        sgp_core_aside(node, event);
    else if (event->type == SGP_EVENT_DOWN)
        sgp_core_down(node, link, event->code);
    else if (event->type == SGP_EVENT_MESSAGE)
        sgp_core_message(node, link, event->message);
    else if (event->type == SGP_EVENT_PAYLOAD && node->seeking.filling &&
             node->seeking.asked == link->peer)
        sgp_core_estimate_payload(node, link, event->code);
    else if (event->type == SGP_EVENT_PAYLOAD)
        sgp_core_payload(node, link, event->code);
    else {
        sgp_core_payload_came(node, link, event->bytes);
        sgp_core_hear(node, link, NULL);
    }
}

static void on_start(struct sgp_node *node)
{
    for (uint32_t i = 0; i < node->out_count; i++)
        node->links[i].redial = node->now;
    sgp_core_touch_all(node);
    node->stage_since = node->now;
    node->unrecorded = !node->recorded;
    (void)sgp_core_leaves_now(node); /* its former process was about to */
    if (!node->recorded || !node->config.seeks)
        return;
    /* A guess at weight 1. One that leaves has no use for it unless its bequest comes home. */
    const struct sgp_core_link *heir = sgp_core_bequest(node);
    bool lost = heir != NULL && heir->owed.slot == SGP_SLOT_NONE;
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_SCALE);
    effect->factor = node->weight + (lost ? heir->owed.share.weight : 0);
}

static void dispatch(struct sgp_node *node, const struct sgp_event *event)
{
    switch (event->type) {
    case SGP_EVENT_START:
        on_start(node);
        break;
    case SGP_EVENT_TICK:
        break;
    case SGP_EVENT_UP:
    case SGP_EVENT_DOWN:
    case SGP_EVENT_MESSAGE:
    case SGP_EVENT_PAYLOAD:
    case SGP_EVENT_HEARD:
        on_link_event(node, event);
        break;
    case SGP_EVENT_TRAINED:
        sgp_core_trained(node, event->code);
        break;
    case SGP_EVENT_PUBLISHED:
        if (node->handing.publishing && event->slot == node->handing.slot)
            sgp_core_copied(node);
        else
            sgp_core_published(node);
        break;
    case SGP_EVENT_ABSORBED:
        sgp_assert(node->receives[event->slot].state == SGP_RECEIVE_ABSORBING);
        node->receives[event->slot].state = SGP_RECEIVE_FREE;
        break;
    case SGP_EVENT_RESTORED:
        sgp_assert(node->snapshot_users[event->slot] > 0);
        node->snapshot_users[event->slot]--;
        break;
    case SGP_EVENT_SKETCHED:
        sgp_core_sketched(node, event->sketch);
        break;
    case SGP_EVENT_ANSWER:
        sgp_core_answered(node, event->message);
        break;
    case SGP_EVENT_ENOUGH:
        sgp_core_enough(node);
        break;
    case SGP_EVENT_PAUSE:
    case SGP_EVENT_RESUME:
        sgp_core_pause(node, event->type == SGP_EVENT_PAUSE);
        break;
    case SGP_EVENT_STOP:
        sgp_core_drain(node);
        break;
    case SGP_EVENT_LEAVE:
        sgp_core_leave(node);
        break;
    }
}

/* Whatever the event was, the same questions follow in the same order: who went silent, what can the
 * round do now, who gets a buffer, and what must be said. */
void sgp_node_step(
    struct sgp_node *node, const struct sgp_event *event, struct sgp_effects *effects)
{
    sgp_assert(event->now >= node->now);
    node->now = event->now;
    node->effects = effects;
    node->again = false;
    node->unrecorded = false;
    effects->count = 0;
    dispatch(node, event);
    sgp_core_notice(node);
    sgp_core_touch_due(node);
    sgp_core_watch(node);
    sgp_core_seek(node);
    sgp_core_advance(node);
    sgp_core_inquire(node);
    sgp_core_hand_accounts(node);
    sgp_core_send_owed(node);
    sgp_core_hand_out(node);
    sgp_core_grant(node);
    sgp_core_notice(node);
    sgp_core_announce(node);
    sgp_core_file(node);
    node->effects = NULL;
}

sgp_time sgp_node_deadline(const struct sgp_node *node)
{
    if (node->again)
        return node->now;
    sgp_time least = sgp_core_leave_deadline(node), inquiry = sgp_core_inquiry_deadline(node);
    bool drains = node->state == SGP_NODE_DRAINING && !node->drained && !sgp_core_computes(node);
    if (drains && (!sgp_core_has_gone(node) || node->leaving.stopped))
        least = node->drain_until;
    bool seeks = node->seeking.wants && node->seeking.until > node->now;
    if (seeks && (node->state == SGP_NODE_JOINING || sgp_core_has_gone(node)) &&
        node->seeking.until < least)
        least = node->seeking.until;
    bool asks = node->seeking.wants && node->seeking.asked != SGP_SLOT_NONE;
    if (asks && !node->seeking.filling && node->seeking.asked_until > node->now &&
        node->seeking.asked_until < least)
        least = node->seeking.asked_until;
    sgp_time due = sgp_core_due(node);
    due = inquiry < due ? inquiry : due;
    return due < least ? due : least;
}
