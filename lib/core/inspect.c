/* SPDX-License-Identifier: Apache-2.0 */
/* What status and peers show of a node. This file only reads. */
#include "core/core.h"

static bool has_greeted(const struct sgp_node *node, uint32_t peer)
{
    bool all = true;
    SGP_EACH_LINK (link, node)
        all = all && (link->peer != peer || link->liveness.heard != SGP_TIME_NEVER);
    return all;
}

/* The node that was asked for an estimate, or SGP_SLOT_NONE. */
static uint32_t asked(const struct sgp_node *node)
{
    const struct sgp_core_link *link = sgp_core_asked(node);
    return link != NULL ? link->peer : SGP_SLOT_NONE;
}

static void fill_leaving(const struct sgp_node *node, struct sgp_node_status *status)
{
    const struct sgp_core_link *first = NULL, *owing = NULL;
    for (uint32_t i = node->layout.out_count; i-- > 0;) {
        const struct sgp_core_link *link = &node->layout.links[i];
        first = link->retired ? first : link;
        owing = sgp_core_awaits_owed(node, link) ? link : owing;
    }
    const struct sgp_core_link *link = owing != NULL ? owing : first;
    status->waiting = owing != NULL                         ? SGP_WAITING_ACK
                      : node->seeking.wants                 ? SGP_WAITING_ESTIMATE
                      : node->leaving.heir != SGP_SLOT_NONE ? SGP_WAITING_CREDIT
                                                            : SGP_WAITING_HEIR;
    status->waiting_peer = status->waiting == SGP_WAITING_CREDIT     ? node->leaving.heir
                           : status->waiting == SGP_WAITING_ESTIMATE ? asked(node)
                           : link != NULL                            ? link->peer
                                                                     : SGP_SLOT_NONE;
    if (node->leaving.left)
        status->waiting = SGP_WAITING_NOTHING;
}

static void fill_waiting(struct sgp_node *node, struct sgp_node_status *status)
{
    const struct sgp_core_link *link = NULL;
    if (sgp_core_accumulates(node) && node->mass.weight + sgp_core_held(node) <= 0) {
        status->waiting = SGP_WAITING_MASS;
        return;
    }
    status->waiting = SGP_WAITING_NOTHING;
    switch (node->stage) {
    case SGP_STAGE_TRAIN:
    case SGP_STAGE_PUBLISHING:
        status->waiting = SGP_WAITING_JOB;
        return;
    case SGP_STAGE_CREDIT:
        /* it waits for a snapshot, unless a peer is the reason */
        status->waiting = SGP_WAITING_JOB;
        link = sgp_core_cannot_give(node, &status->waiting);
        break;
    case SGP_STAGE_GATHER:
        status->waiting = node->role->gives_updates ? SGP_WAITING_ESTIMATE : SGP_WAITING_SHARE;
        link = node->role->awaited(node);
        break;
    case SGP_STAGE_END:
        if (node->state == SGP_NODE_FINISHED)
            return;
        status->waiting = SGP_WAITING_ACK;
        SGP_EACH_OF (other, node, SGP_SET_OWING)
            if (link == NULL && other->owed[0].exists && sgp_core_is_waited_for(other))
                link = other;
        if (link != NULL)
            break;
        link = sgp_core_not_ended(node);
        status->waiting = link != NULL ? SGP_WAITING_END : SGP_WAITING_JOB;
        break;
    case SGP_STAGE_IDLE:
        if (sgp_core_has_gone(node) && !node->drained) {
            fill_leaving(node, status);
            return;
        }
        if (node->state == SGP_NODE_JOINING && !sgp_core_may_start(node, &status->waiting_peer))
            status->waiting =
                has_greeted(node, status->waiting_peer) ? SGP_WAITING_ESTIMATE : SGP_WAITING_HELLO;
        else if (node->state == SGP_NODE_JOINING && node->seeking.wants) {
            status->waiting = SGP_WAITING_ESTIMATE;
            status->waiting_peer = asked(node);
        }
        return;
    case SGP_STAGE_BEGIN:
        link = sgp_core_not_begun(node);
        status->waiting = SGP_WAITING_BEGINNING;
        if (link != NULL)
            break;
        link = sgp_core_not_following(node);
        status->waiting = SGP_WAITING_END;
        if (link != NULL)
            break;
        link = sgp_core_cannot_begin(node);
        status->waiting = link != NULL ? SGP_WAITING_CYCLE : SGP_WAITING_NOTHING;
        if (sgp_core_rests_until(node) > node->now)
            status->waiting = SGP_WAITING_PACE;
        if (link == NULL && node->seeking.wants && node->role->collective) {
            status->waiting = SGP_WAITING_ESTIMATE;
            status->waiting_peer = asked(node);
        }
        break;
    }
    if (link != NULL)
        status->waiting_peer = link->peer;
}

/* Whether a share of the coming cycle was accepted, even an empty one. No other share will arrive,
 * and the record does not contain it. */
static bool has_accepted_ahead(const struct sgp_node *node)
{
    SGP_EACH_IN (link, node)
        if (node->role->collective && link->receiving.latest >= node->round)
            return true;
    return false;
}

void sgp_node_status(const struct sgp_node *node, struct sgp_node_status *ret_status)
{
    struct sgp_node_status status = {
        .state = sgp_core_state(node),
        .round = node->round,
        .rounds = sgp_core_train_end(node),
        .last_round = sgp_core_last(node),
        .weight_estimate = sgp_topology_owns_parts(node->config.topology, node->config.self)
                               ? 0
                               : sgp_core_weight_of_estimate(node),
        .weight_checkpoint = sgp_core_weight_of_estimate(node),
        .estimate_slot = node->exact.input,
        .epoch = node->exact.epoch,
        .cycles_renewed = node->exact.renewed,
        .amid_cycle = node->exact.begun || has_accepted_ahead(node),
        .jumps = node->jumps,
        .starving = node->giving.starving,
        .open = node->config.open,
        .copy_label = node->copy.exists ? node->copy.label : SGP_ROUND_NONE,
        .copy_since = node->copy.since,
        .seeks = sgp_core_is_guess(node),
        .fresh = node->past.fresh,
        .leaving = node->leaving.wanted,
        .left = node->leaving.left,
        .heir = node->leaving.left ? node->leaving.heir : SGP_SLOT_NONE,
        .weight_left = node->leaving.weight,
        .weight_owed = node->leaving.owed,
        .weight_debts = sgp_core_debts(node),
        .surplus = node->mass.surplus,
        .unknown = node->mass.unknown,
        .waiting = SGP_WAITING_NOTHING,
        .waiting_peer = SGP_SLOT_NONE,
        .waiting_since = node->stage_since,
    };
    status.weight = sgp_node_weight(node, &status.weight_in_flight);
    if (!node->paused || node->leaving.wanted || node->exact.begun)
        fill_waiting((struct sgp_node *)(uintptr_t)node, &status); /* it only reads */
    *ret_status = status;
}

sgp_round sgp_node_own_end(const struct sgp_node *node)
{
    bool none = sgp_core_is_relay(node) || node->config.open;
    return none ? 0 : sgp_core_own_end(node);
}

sgp_round sgp_node_round(const struct sgp_node *node)
{
    return node->round;
}

enum sgp_node_state sgp_node_state(const struct sgp_node *node)
{
    return sgp_core_state(node);
}

double sgp_node_weight(const struct sgp_node *node, double *ret_in_flight)
{
    *ret_in_flight = sgp_core_in_flight(node);
    return node->mass.weight + sgp_core_held(node);
}

uint64_t sgp_node_run(const struct sgp_node *node)
{
    return node->config.fingerprint.run;
}

uint32_t sgp_node_disagreeing(const struct sgp_node *node)
{
    uint32_t count = 0;
    double relative;
    SGP_EACH_LINK (link, node) {
        (void)sgp_core_distance(node, link, &relative);
        count += relative > SGP_AGREED;
    }
    return count;
}

uint32_t sgp_node_link_count(const struct sgp_node *node)
{
    return node->layout.link_count;
}

uint32_t sgp_node_find_link(
    const struct sgp_node *node, uint32_t peer, enum sgp_direction direction)
{
    const struct sgp_core_link *link =
        sgp_core_find((struct sgp_node *)(uintptr_t)node, peer, direction); /* it only reads */
    return link != NULL ? (uint32_t)(link - node->layout.links) : SGP_SLOT_NONE;
}

uint32_t sgp_node_next_owing(const struct sgp_node *node, uint32_t from)
{
    return sgp_core_next(node, SGP_SET_OWING, from);
}

void sgp_node_link_status(
    const struct sgp_node *node, uint32_t index, struct sgp_peer_status *ret_status)
{
    sgp_assert(index < node->layout.link_count);
    const struct sgp_core_link *link = &node->layout.links[index];
    bool heard = link->liveness.heard != SGP_TIME_NEVER;
    *ret_status = (struct sgp_peer_status){
        .peer = link->peer,
        .direction = link->direction,
        .state = link->connection.state,
        .retired = link->retired,
        .absent = link->liveness.absent,
        .slow = sgp_core_is_slow(node, link),
        .overdue = sgp_core_is_late(link) && !node->role->collective,
        .peer_state = link->pulse.state,
        .round = heard ? link->pulse.round : SGP_ROUND_NONE,
        .promise = link->receiving.promise[0],
        .last_heard = link->liveness.heard,
        .silence_bound = sgp_core_silence(link),
        .shares_sent = link->count.sent,
        .shares_received = link->count.received,
        .shares_returned = link->count.returned,
        .shares_late = link->count.late,
        .staleness = link->work.staleness,
        .owes = link->owed[0].exists,
        .last_error = link->connection.last_error,
        .last_reason = link->connection.last_reason,
        .mismatch = link->greeting.mismatch || link->greeting.other_data ||
                    link->likeness.unlike >= SGP_LIKENESS_ROUNDS,
        .same_updates = link->likeness.same >= SGP_LIKENESS_ROUNDS,
        .learning_rate = link->likeness.rate,
    };
    ret_status->distance = sgp_core_distance(node, link, &ret_status->distance_relative);
    ret_status->disagrees = ret_status->distance_relative > SGP_AGREED;
    ret_status->ended = sgp_core_has_ended(node, link);
    sgp_node_link_account(node, index, &ret_status->last_number, &ret_status->weight_owed);
}

void sgp_node_link_account(
    const struct sgp_node *node, uint32_t index, uint64_t *ret_last_number, double *ret_weight_owed)
{
    sgp_assert(index < node->layout.link_count);
    const struct sgp_core_link *link = &node->layout.links[index];
    *ret_last_number = link->direction == SGP_OUT ? link->memory.number : link->memory.accepted;
    *ret_weight_owed = link->owed[0].exists ? link->owed[0].share.weight : 0;
}
