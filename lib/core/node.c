/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of the node: creation, one step, the next deadline. It runs on the caller's thread and
 * does no I/O. */
#include "core/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

static bool config_is_sound(const struct sgp_node_config *config)
{
    return config->topology != NULL && config->self < config->topology->node_count &&
           config->method != NULL && config->incarnation != 0 && config->parameters > 0 &&
           config->parameters <= SGP_PARAMETERS_MAX &&
           sgp_topology_check_owners(config->topology, config->parameters, NULL) == 0 &&
           config->rounds >= 0 && config->rounds < SGP_ROUND_MAX && config->local_steps > 0 &&
           config->overlap <= SGP_OVERLAP_MAX && config->compressor <= SGP_COMPRESSOR_MOST &&
           config->copies <= SGP_COMPRESSOR_MOST && config->candidates <= SGP_CANDIDATES_MOST &&
           config->weight_least >= 0 && config->patience >= 0 &&
           config->patience <= SGP_PATIENCE_MAX_NS && config->weight_least <= SGP_NODES_MAX &&
           config->weight_most >= 0 && config->weight_most <= SGP_NODES_MAX &&
           (config->record == NULL ||
               (config->record->incarnation == config->incarnation &&
                   sgp_record_is_sound(config->record, config->topology->node_count)));
}

/* Mark the links on record. False if one of them leads to the node itself. */
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

/* How the first parameters spread. */
static int plan_first(struct sgp_node *node, const struct sgp_node_config *config)
{
    node->first_source = SGP_NODE_NONE;
    if (!config->one_beginning)
        return 0;
    uint32_t *sources = calloc(config->topology->node_count, sizeof *sources);
    int code = sources != NULL ? sgp_topology_spread(config->topology, 0, sources) : -ENOMEM;
    if (code == 0)
        node->first_source = sources[config->self];
    free(sources);
    return code;
}

static int lay_out(struct sgp_node *node, const struct sgp_node_config *config)
{
    unsigned char *marks = calloc(config->topology->node_count, 1);
    if (marks == NULL)
        return -ENOMEM;
    struct sgp_layout layout = {.links = NULL};
    int code = mark_record(config, marks)
                   ? sgp_core_lay_out(config->topology, config->self, config->method, marks,
                         &(struct sgp_node_needs){.receives = config->candidates}, &layout)
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
    struct sgp_node *node = calloc(1, sizeof *node);
    if (node == NULL)
        return -ENOMEM;
    node->accounts.entries = calloc(SGP_CORE_ACCOUNTS_MAX, sizeof *node->accounts.entries);
    int code = node->accounts.entries != NULL ? lay_out(node, config) : -ENOMEM;
    if (code == 0)
        code = plan_first(node, config);
    if (code < 0) {
        sgp_node_destroy(node);
        return code;
    }
    node->config = *config;
    node->config.fingerprint.method = config->method->number;
    sgp_core_take_roles(node);
    sgp_random_init(&node->random, config->seed, config->self);
    node->state = SGP_NODE_JOINING;
    node->stage = SGP_STAGE_IDLE;
    node->exact.input = SGP_SLOT_NONE;
    node->exact.stop_by = SGP_TIME_NEVER;
    node->fleet.endless = config->open;
    node->fleet.ends = sgp_core_own_end(node);
    node->fleet.stop = SGP_ROUND_NONE;
    node->fleet.asked = SGP_ROUND_NONE;
    sgp_mass_set(node, sgp_topology_starts(config->topology, config->self));
    sgp_mass_know_members(node, config->topology->node_count);
    node->total.counted = SGP_ROUND_NONE;
    node->total.kept = 1;
    node->giving.slot = node->token.slot = SGP_SLOT_NONE;
    node->leaving.heir = SGP_SLOT_NONE;
    node->folding = (struct sgp_folding){.snapshot = SGP_SLOT_NONE, .pinned = SGP_SLOT_NONE};
    node->handing = (struct sgp_handing){
        .slot = SGP_SLOT_NONE, .label = SGP_ROUND_NONE, .change = SGP_SLOT_NONE};
    node->seeking = (struct sgp_seeking){
        .slot = SGP_SLOT_NONE, .until = SGP_TIME_NEVER, .compares_until = SGP_TIME_NEVER};
    node->past.restored = config->record != NULL || config->seeks;
    node->past.fresh = config->fresh;
    if (config->record != NULL)
        sgp_core_restore(node, config->record);
    bool other_part = node->past.another_file && !sgp_core_has_model(node);
    if (config->seeks || sgp_core_follows(node) || other_part)
        sgp_core_want(node);
    node->config.record = NULL; /* the record is borrowed for the call */
    sgp_core_mark_all_dirty(node);
    sgp_core_notice(node);
    sgp_core_index_links(node);
    sgp_core_check(node);
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
    free(node->accounts.entries);
    free(node);
}

/* ---- one step ---- */

/* The link of an event, or NULL if the event is of a connection that is already gone. */
static struct sgp_core_link *link_of(struct sgp_node *node, const struct sgp_link *id)
{
    struct sgp_core_link *link = sgp_core_find(node, id->peer, id->direction);
    if (link == NULL || link->connection.id != id->connection)
        return NULL;
    sgp_core_mark_dirty(node, link);
    return link;
}

static void on_link_event(struct sgp_node *node, const struct sgp_event *event)
{
    if (event->type == SGP_EVENT_UP) {
        if (!sgp_core_call(node, &event->link))
            sgp_core_up(node, &event->link);
        return;
    }
    struct sgp_core_link *link = link_of(node, &event->link);
    if (link == NULL)
        sgp_core_pending(node, event);
    else if (event->type == SGP_EVENT_DOWN)
        sgp_core_down(node, link, event->code);
    else if (event->type == SGP_EVENT_MESSAGE)
        sgp_core_message(node, link, event->message);
    else if (event->type == SGP_EVENT_PAYLOAD)
        sgp_core_came(node, link, event->code);
    else {
        sgp_core_payload_came(node, link, event->bytes);
        (void)sgp_core_hear(node, link, NULL);
    }
}

/* An owner has its x at weight 1. So has a worker, which may hand it to an owner that joins. Exact
 * parameters have the weight of the record: the node may have had another role. */
static void bring_to_weight_one(struct sgp_node *node)
{
    double weight = node->past.weight;
    bool differs = weight < 1 || weight > 1;
    if (!node->config.seeks && weight > 0 && differs)
        sgp_core_scale(node, 1 / weight, sgp_core_all(node));
}

static void on_start(struct sgp_node *node)
{
    SGP_EACH_OUT (link, node)
        link->connection.redial = node->now;
    sgp_core_mark_all_dirty(node);
    node->stage_since = node->copy.since = node->now;
    node->unrecorded = !node->past.recorded;
    (void)sgp_core_leaves_now(node); /* its earlier process was about to leave */
    if (node->role->unique)          /* x stays the same, whichever node has the weight */
        return;
    if (!node->past.recorded && node->mass.weight <= 0)
        sgp_core_scale(node, 0, sgp_core_all(node));
    if (node->past.recorded && node->role->weight_by_file)
        bring_to_weight_one(node);
    if (!node->past.recorded || !node->config.seeks || node->role->gives_updates)
        return;
    /* A guess at weight 1. A leaving node needs it only if its bequest returns. */
    const struct sgp_core_link *heir = sgp_core_bequest(node);
    bool lost = heir != NULL && heir->owed[0].slot == SGP_SLOT_NONE;
    double factor = node->mass.weight + (lost ? heir->owed[0].share.weight : 0);
    sgp_core_scale(node, factor, sgp_core_all(node));
}

/* Estimates that were compared are free with the first of them. */
static void on_absorbed(struct sgp_node *node, uint32_t slot)
{
    struct sgp_receive *receives = node->layout.receives;
    sgp_assert(slot < node->layout.receive_count && receives[slot].state == SGP_RECEIVE_ABSORBING);
    receives[slot].state = SGP_RECEIVE_FREE;
    sgp_core_forget_base(node, &receives[slot].base);
    for (uint32_t i = 0; i < node->layout.receive_count; i++)
        if (receives[i].state == SGP_RECEIVE_COMPARED && receives[i].first == slot)
            receives[i].state = SGP_RECEIVE_FREE;
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
        node->past.fresh = false;
        sgp_core_has_trained(node, event->update, event->rate);
        sgp_core_trained(node, event->code);
        break;
    case SGP_EVENT_PUBLISHED:
        if (node->handing.publishing && event->slot == node->handing.slot)
            sgp_core_copied(node);
        else
            sgp_core_published(node);
        break;
    case SGP_EVENT_ABSORBED:
        on_absorbed(node, event->slot);
        break;
    case SGP_EVENT_RESTORED:
        sgp_assert(event->slot < node->layout.snapshot_count &&
                   node->layout.snapshot_users[event->slot] > 0);
        node->layout.snapshot_users[event->slot]--;
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
    case SGP_EVENT_TOKEN:
        sgp_core_remake_token(node);
        break;
    case SGP_EVENT_RENEW:
        sgp_core_begin_anew(node, (sgp_round)event->bytes);
        break;
    case SGP_EVENT_STEPS_END:
        sgp_core_end_steps(node);
        break;
    case SGP_EVENT_PROVEN:
        sgp_core_proven(node, &event->message->pulse);
        break;
    }
}

/* After every event: detect failures, advance the round, grant buffers, send what is due. */
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
    sgp_core_mark_due_dirty(node);
    sgp_core_watch(node);
    sgp_core_seek(node);
    sgp_core_advance(node);
    sgp_core_inquire(node);
    sgp_core_hand_accounts(node);
    sgp_core_hand_on(node);
    sgp_core_send_owed(node);
    sgp_core_hand_out(node);
    sgp_core_grant(node);
    sgp_core_give_up_fold(node);
    sgp_core_notice(node);
    sgp_core_announce(node);
    sgp_core_index_links(node);
    node->effects = NULL;
    sgp_check(sgp_core_effects_are_sound(node, effects));
    sgp_core_check(node);
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
    bool stands = node->state == SGP_NODE_JOINING || node->stage == SGP_STAGE_BEGIN;
    if (seeks && (stands || sgp_core_has_gone(node)) && node->seeking.until < least)
        least = node->seeking.until;
    if (node->seeking.compares_until > node->now && node->seeking.compares_until < least)
        least = node->seeking.compares_until;
    sgp_time answered = sgp_core_answered_by(node);
    least = answered < least ? answered : least;
    sgp_time due = sgp_core_due(node), passes_on = sgp_core_passes_on_at(node);
    sgp_time rests = sgp_core_rests_until(node), mass = sgp_core_awaits_mass_until(node);
    due = passes_on < due ? passes_on : due;
    due = mass > node->now && mass < due ? mass : due;
    due = rests > node->now && rests < due ? rests : due;
    if (node->exact.stop_by < due && node->exact.stop_by > node->now)
        due = node->exact.stop_by;
    due = inquiry < due ? inquiry : due;
    return due < least ? due : least;
}
