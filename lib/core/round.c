/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds: the stages of a round, from the first hello to the end.
 *
 * The rule: docs/rules/round.md */
#include "core/core.h"

/* ---- start ---- */

/* A finished peer counts, so that a node that rejoins after the end finds the fleet there. */
static bool is_present(const struct sgp_core_link *link)
{
    return sgp_core_is_up(link) &&
           (sgp_core_peer_active(link) || link->pulse.state == SGP_NODE_FINISHED);
}

/* Rounds are labels. A node that finds the fleet far ahead jumps to its round, unless each node
 * counts its own rounds. */
static sgp_round next_round(const struct sgp_node *node, sgp_round next)
{
    if (node->role->counts_steps || sgp_core_at_own_pace(node) ||
        sgp_core_role_at(node, next)->collective ||
        node->fleet.heard <= next + sgp_core_far_ahead(node))
        return next;
    bool mixes = node->state == SGP_NODE_SETTLING; /* its steps are done, so it skips none */
    sgp_round there = (mixes ? sgp_core_furthest : sgp_core_followed)(node, next, is_present);
    return there > next + sgp_core_far_ahead(node) ? there : next;
}

static void take_round(struct sgp_node *node, sgp_round next)
{
    sgp_round chosen = next_round(node, next);
    sgp_core_set_round(node, chosen);
    node->round_since = node->now;
    node->gave = node->trained = node->received_share = false;
    sgp_core_put_off_end(node);
    node->passes = 0;
    node->unrecorded = true;
    sgp_core_notice(node);
    if (chosen == next)
        return;
    node->jumps++;
    (void)sgp_core_note(node, SGP_NOTE_JUMP, node->config.self);
}

/* The number of nodes that have said hello, including this one. A peer with links in both
 * directions counts once. */
static uint32_t count_heard(struct sgp_node *node)
{
    uint32_t heard = 1;
    SGP_EACH_LINK (link, node) {
        const struct sgp_core_link *other =
            link->direction == SGP_IN ? sgp_core_find(node, link->peer, SGP_OUT) : NULL;
        bool counted = other != NULL && other->liveness.heard != SGP_TIME_NEVER;
        heard += link->liveness.heard != SGP_TIME_NEVER && !counted;
    }
    return heard;
}

/* A joining neighbour far beyond round 0: a fleet restarts, and its model is worth waiting for. */
static const struct sgp_core_link *veteran_peer(const struct sgp_node *node)
{
    if (node->role->part == SGP_PART_LEADS) /* the workers wait for their owner */
        return NULL;
    SGP_EACH_LINK (link, node) {
        if (link->connection.state == SGP_LINK_UP && !link->liveness.absent &&
            link->pulse.state == SGP_NODE_JOINING &&
            link->pulse.round > node->round + (sgp_core_mints(node) ? 0 : sgp_core_far_ahead(node)))
            return link;
    }
    return NULL;
}

/* A source has finished and no source takes part. Then no source gives mass, and the fleet waits
 * for nothing. */
static bool has_ended(const struct sgp_node *node)
{
    bool ended = false;
    SGP_EACH_IN (link, node) {
        if (sgp_core_peer_active(link))
            return false;
        ended = ended || (sgp_core_is_up(link) && link->pulse.state == SGP_NODE_FINISHED);
    }
    return ended;
}

/* A new node that receives mass and cannot give any accumulates the mass of its sources. As their
 * weight shrinks, their effective steps grow. So it stays joining until an out-neighbour is
 * connected. It does not wait for a dead neighbour for ever. A neighbour that answers will come to
 * know it, unless the fleet has ended. */
static const struct sgp_core_link *missing_target(const struct sgp_node *node)
{
    const struct sgp_core_link *first = NULL;
    bool waits = node->now - node->stage_since < SGP_SILENCE_MAX_NS;
    SGP_EACH_OUT (link, node) {
        if (link->connection.state == SGP_LINK_UP && !link->liveness.absent)
            return NULL;
        bool refused = link->connection.last_error == SGP_E_CLOSED &&
                       link->connection.last_reason == SGP_REASON_UNKNOWN;
        waits = waits || (refused && !has_ended(node));
        first = first == NULL && !link->retired ? link : first;
    }
    return waits ? first : NULL;
}

/* Whether this node returns to other nodes that take part. If all nodes are to begin with one
 * model, their first round does not count. Shares of that round would be left out, because the
 * connections for them do not exist yet. */
static bool has_fleet(const struct sgp_node *node)
{
    bool returns = false;
    for (uint32_t i = 0; node->past.restored && i < node->layout.link_count; i++) {
        const struct sgp_core_link *link = &node->layout.links[i];
        bool past_first = !node->config.one_beginning || link->pulse.round > 0;
        returns = returns || (sgp_core_living(link) && past_first);
    }
    return returns;
}

/* Whether an owner that returns would close a step without the updates of workers that are about to
 * greet. At its own pace it closes a step for each update. */
static bool may_miss_updates(const struct sgp_node *node)
{
    bool together = node->role->part == SGP_PART_LEADS && !sgp_core_at_own_pace(node);
    return together && node->past.restored && sgp_core_may_be_greeted(node);
}

bool sgp_core_may_start(struct sgp_node *node, uint32_t *ret_missing)
{
    const struct sgp_core_link *first = node->past.restored ? NULL : veteran_peer(node);
    if (first != NULL) {
        *ret_missing = first->peer;
        return false;
    }
    if (node->past.restored && !node->past.recorded && (first = missing_target(node)) != NULL) {
        *ret_missing = first->peer;
        return false;
    }
    *ret_missing = SGP_SLOT_NONE;
    bool knows = sgp_core_knows_end(node);
    if (node->past.recorded && knows &&
        sgp_core_is_over(node, node->round)) /* the node had finished everything */
        return true;
    for (uint32_t i = 0; i < node->layout.link_count && *ret_missing == SGP_SLOT_NONE; i++)
        if (node->layout.links[i].liveness.heard == SGP_TIME_NEVER &&
            !node->layout.links[i].retired)
            *ret_missing = node->layout.links[i].peer;
    if (*ret_missing == SGP_SLOT_NONE || !knows)
        return knows;
    if (sgp_core_may_have_passed(node) || may_miss_updates(node))
        return false;
    if (next_round(node, 0) > 0)
        return true;
    if (has_fleet(node)) /* the node jumps to the round of the fleet */
        return true;
    return node->config.start != SGP_START_ALL && count_heard(node) >= node->config.start &&
           !sgp_core_mints(node);
}

/* ---- the end ---- */

/* Whether no share is owed to a node that could still acknowledge it. A node that said goodbye will
 * not. Its share is on record, and settled when both nodes are back. */
static bool settled(const struct sgp_node *node)
{
    SGP_EACH_OF (link, node, SGP_SET_OWING) {
        bool left = link->connection.state == SGP_LINK_DOWN &&
                    link->connection.last_reason == SGP_REASON_LEAVING;
        if (link->owed[0].exists && !link->liveness.absent &&
            link->liveness.heard != SGP_TIME_NEVER && !left)
            return false;
    }
    return true;
}

/* Whether an active node owes an acknowledgement. A node that left, ended or paused may be gone for
 * good, and no failure detector watches it. So its share is left to a later connection. */
static bool awaits_acknowledgement(const struct sgp_node *node)
{
    SGP_EACH_OF (link, node, SGP_SET_OWING)
        if (link->owed[0].exists && sgp_core_is_waited_for(link))
            return true;
    return false;
}

static void come_to_end(struct sgp_node *node)
{
    sgp_core_drop_held(node);
    sgp_core_end_with_copy(node);
    sgp_core_become(node, SGP_NODE_SETTLING);
    sgp_core_enter(node, SGP_STAGE_END);
}

/* After an early stop that is past, owners may be ahead. All nodes take the last copy. */
static bool fetches_last_copy(struct sgp_node *node)
{
    bool lacks = false;
    if (!node->role->gives_updates)
        return false;
    if (node->copy.label > node->round)
        take_round(node, node->copy.label);
    SGP_EACH_IN (link, node)
        lacks = lacks || sgp_core_lacks_copy(node, link);
    if (!lacks)
        return false;
    sgp_core_become(node, SGP_NODE_SETTLING);
    if (!node->seeking.wants)
        sgp_core_want_copy(node);
    return true;
}

static void end(struct sgp_node *node)
{
    if (sgp_core_leaves_now(node) || fetches_last_copy(node))
        return;
    if (sgp_core_is_over(node, node->round) && !awaits_acknowledgement(node) &&
        !sgp_core_accumulates(node)) {
        sgp_core_absorb_until(node, SGP_ROUND_MAX);
        sgp_core_dissolve(node);
        if (sgp_core_agrees(node))
            sgp_core_become(node, SGP_NODE_FINISHED);
    }
    if (sgp_core_is_over(node, node->round) && !sgp_core_must_offer(node))
        return;
    sgp_core_become(node, SGP_NODE_SETTLING); /* another node trains or mixes longer than known */
    sgp_core_enter(node, SGP_STAGE_BEGIN);
    node->again = true;
}

/* The last checkpoint waits for the job anyway, and describes its result. */
static void drain(struct sgp_node *node)
{
    if (node->drained || sgp_core_computes(node))
        return;
    if (sgp_core_offers_last(node)) {
        sgp_core_enter(node, SGP_STAGE_IDLE);
        sgp_core_enter(node, SGP_STAGE_PUBLISHING);
        return;
    }
    bool waits = !settled(node) || sgp_core_could_hand_on(node);
    if (waits && node->now < node->drain_until)
        return;
    sgp_core_depart(node, node->leaving.left ? SGP_REASON_LEFT : SGP_REASON_LEAVING);
}

static void stop_now(struct sgp_node *node)
{
    node->exact.stop_by = SGP_TIME_NEVER;
    node->drain_until = node->now + SGP_DRAIN_NS;
    sgp_core_become(node, SGP_NODE_DRAINING);
}

/* During an exact cycle a stop waits for the end of the cycle, at most the time of draining,
 * because other nodes depend on its shares. */
void sgp_core_drain(struct sgp_node *node)
{
    bool leaving = node->leaving.wanted;
    if (leaving)
        sgp_core_stay(node);
    if (node->state == SGP_NODE_DRAINING && !leaving)
        return;
    if (node->exact.begun && node->exact.stop_by == SGP_TIME_NEVER)
        node->exact.stop_by = node->now + SGP_DRAIN_NS;
    else if (!node->exact.begun)
        stop_now(node);
}

void sgp_core_enough(struct sgp_node *node)
{
    /* all nodes have heard of the stop by then, even if this node is behind */
    sgp_round margin = sgp_core_far_ahead(node) * sgp_core_rounds_of_turn(node);
    sgp_round stop = sgp_core_furthest(node, node->round, is_present) + margin;
    bool stops = node->fleet.stop != SGP_ROUND_NONE && stop >= node->fleet.stop;
    bool asked = node->fleet.asked != SGP_ROUND_NONE && stop >= node->fleet.asked;
    if (stops || asked)
        return;
    node->fleet.asked = stop;
    sgp_core_note(node, SGP_NOTE_ENOUGH, node->config.self)->until = stop;
    if (sgp_core_proves(node))
        return;
    node->fleet.stop = stop;
    node->unrecorded = true;
}

/* The steps so far are the last of this node. */
static void close_end(struct sgp_node *node)
{
    node->config.rounds = sgp_core_turn(node, node->round) + (node->trained ? 1 : 0);
    if (node->fleet.ends < sgp_core_own_end(node))
        node->fleet.ends = sgp_core_own_end(node);
}

void sgp_core_end_steps(struct sgp_node *node)
{
    if (!node->config.open)
        return;
    node->config.open = false;
    close_end(node);
    node->unrecorded = node->changed = true;
}

void sgp_core_pause(struct sgp_node *node, bool paused)
{
    if (node->paused == paused)
        return;
    node->paused = paused;
    sgp_core_pace_begin(node);
    node->changed = true;
    node->stage_since = node->now;
    (void)sgp_core_note(node, SGP_NOTE_STATE, node->config.self);
}

/* ---- the stages ---- */

/* The turn of the round's steps, which selects data and schedule. At its own pace, a worker's label
 * rises by the updates of all workers. To use no rows twice and to leave none out, the worker takes
 * one turn after the other, close to the label. */
static sgp_round turn_of_round(struct sgp_node *node)
{
    sgp_round due = sgp_core_turn(node, node->round), next = node->copy.turn;
    bool counts = sgp_core_shares_label(node);
    sgp_round apart = next > due ? next - due : due - next;
    bool follows = counts && next > 0; /* the first turn of a process follows the label */
    sgp_round turn = follows && apart <= sgp_core_far_ahead(node) ? next : due;
    node->copy.turn = turn + 1;
    return turn;
}

/* Run the round's steps, if the node still takes steps and has an estimate. */
static void train_or_enter(struct sgp_node *node, enum sgp_stage otherwise)
{
    bool due = node->state == SGP_NODE_TRAINING && sgp_core_trains_in(node, node->round);
    if (!due || sgp_core_weight_of_estimate(node) <= 0) {
        sgp_core_enter(node, otherwise);
        return;
    }
    node->copy.curtailed = false;
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_TRAIN);
    effect->train.turn = turn_of_round(node);
    effect->train.steps = node->config.local_steps;
    effect->train.pace = sgp_core_pace(node);
    sgp_core_enter(node, SGP_STAGE_TRAIN);
}

static void after_giving(struct sgp_node *node)
{
    if (node->config.method->publishes_first)
        train_or_enter(node, SGP_STAGE_GATHER);
    else
        sgp_core_enter(node, SGP_STAGE_GATHER);
    if (node->passes > 0) /* the time for which it waits continues */
        node->stage_since = node->waits;
    sgp_core_want_copy(node);
}

/* Whether no step is due in this round or later, because of the configuration or an early stop. */
static bool steps_are_done(const struct sgp_node *node)
{
    bool early = node->fleet.stop != SGP_ROUND_NONE && node->round >= node->fleet.stop &&
                 node->round >= sgp_core_train_end(node);
    bool shared = sgp_core_shares_label(node); /* the steps of all nodes are counted together */
    return node->round >= (shared ? node->fleet.ends : sgp_core_own_end(node)) || early;
}

/* Until when a round does not begin. At its own pace, the steps of a node limit its rounds. A node
 * without steps waits for mass. A relay waits before each round as long as others train and are not
 * past it, and so does a node that has given everything away. In a round that only exchanges, a
 * node waits at most as long as its steps take, because its sources may wait in the same way. */
sgp_time sgp_core_awaits_mass_until(const struct sgp_node *node)
{
    bool paced = node->role->counts_steps; /* by updates and copies */
    if (!sgp_core_at_own_pace(node) || paced || node->stage != SGP_STAGE_BEGIN)
        return 0;
    bool steps = node->state != SGP_NODE_TRAINING || sgp_core_trains_in(node, node->round);
    bool relays = sgp_core_is_relay(node);
    bool behind = relays && sgp_core_round_of_others(node) > node->round;
    if (node->mass.weight > 0 &&
        (steps || node->received_share || behind || !sgp_core_others_train(node)))
        return 0;
    return relays || node->mass.weight <= 0 ? SGP_TIME_NEVER : node->round_since + node->pace.steps;
}

/* A node that had nothing when an epoch began has asked for an estimate. Without this check it
 * would give zeros as an estimate. */
static bool lacks_estimate(struct sgp_node *node)
{
    return node->seeking.wants && node->role->collective && sgp_core_seeks(node);
}

const struct sgp_core_link *sgp_core_not_begun(const struct sgp_node *node)
{
    for (uint32_t i = 0; node->config.one_beginning && i < node->layout.link_count; i++) {
        const struct sgp_core_link *link = &node->layout.links[i];
        if (node->round == 0 && link->pulse.state == SGP_NODE_JOINING &&
            sgp_core_is_waited_for(link))
            return link;
    }
    return NULL;
}

static void settle(struct sgp_node *node)
{
    if (node->state == SGP_NODE_TRAINING)
        sgp_core_pace_end(node);
    sgp_core_become(node, SGP_NODE_SETTLING);
}

static void begin(struct sgp_node *node)
{
    node->passes = 0;
    if (node->role->collective)
        sgp_core_absorb_until(node, SGP_ROUND_MAX); /* bequests */
    if (sgp_core_leaves_now(node))
        return;
    sgp_core_dissolve(node);
    sgp_core_keep_total(node);
    if (!sgp_core_knows_end(node))
        return;
    if (steps_are_done(node))
        settle(node);
    bool offers = sgp_core_must_offer(node);
    if (sgp_core_is_over(node, node->round) && !offers) {
        come_to_end(node);
        return;
    }
    if (offers) {
        sgp_core_enter(node, SGP_STAGE_CREDIT);
        return;
    }
    if (sgp_core_not_begun(node) != NULL || sgp_core_cannot_begin(node) != NULL ||
        lacks_estimate(node) || sgp_core_not_following(node) != NULL)
        return;
    node->config.one_beginning = false;
    if (sgp_core_awaits_mass_until(node) > node->now || sgp_core_rests_until(node) > node->now)
        return;
    node->pace.begun = node->now;
    if (node->config.method->publishes_first)
        sgp_core_enter(node, SGP_STAGE_CREDIT);
    else
        train_or_enter(node, SGP_STAGE_CREDIT);
}

static bool in_order(const struct sgp_node *node)
{
    return sgp_method_in_order(node->config.method);
}

/* Nodes decide by label, so that all nodes take the outer step or none does. None takes it in
 * rounds that only mix, because these lead to agreement. An owner takes it after a step to which it
 * added updates. */
static bool takes_outer_step(const struct sgp_node *node, uint32_t added)
{
    bool moves = node->role->part == SGP_PART_LEADS ? added > 0 : !sgp_core_is_relay(node);
    return node->round < sgp_core_train_end(node) && node->mass.weight > 0 && moves &&
           sgp_topology_steps_after(node->config.topology, node->round);
}

static void complete(struct sgp_node *node)
{
    node->folding.changed = true; /* a late source is not waited for */
    node->again = node->again || node->folding.refusals;
    uint32_t added = sgp_core_close_step(node);
    sgp_core_absorb_until(node, in_order(node) ? node->round : SGP_ROUND_MAX);
    sgp_core_close_cycle(node);
    sgp_core_note(node, SGP_NOTE_ROUND, node->config.self)->amount = added;
    sgp_core_pace_round(node);
    node->pace.idle =
        node->state == SGP_NODE_SETTLING && !node->received_share && node->giving.count == 0;
    if (takes_outer_step(node, added)) /* also for parts of a model, which are no estimate */
        sgp_core_emit(node, SGP_EFFECT_OUTER)->weight = node->mass.weight;
    take_round(
        node, node->role->next_label != NULL ? node->role->next_label(node) : node->round + 1);
    sgp_core_enter(node, SGP_STAGE_BEGIN);
}

void sgp_core_trained(struct sgp_node *node, int code)
{
    sgp_assert(node->stage == SGP_STAGE_TRAIN);
    bool gave = node->config.method->publishes_first;
    if (code == 0)
        sgp_core_time_update(node, node->now - node->stage_since);
    sgp_core_enter(node, gave ? SGP_STAGE_GATHER : SGP_STAGE_CREDIT);
    node->trained = code == 0;
    if (node->fleet.endless && !node->config.open) /* these were under way when it ended */
        close_end(node);
    sgp_core_put_off_end(node);
    node->pace.steps = node->now - node->pace.begun;
    node->copy.updates += code == 0;
    node->unrecorded = true;
    /* the steps were taken or undone: the round continues without them */
    if (code != SGP_E_DIVERGED)
        return;
    struct sgp_noted *note = sgp_core_note(node, SGP_NOTE_DIVERGED, node->config.self);
    note->code = code;
    sgp_core_pause(node, true);
}

void sgp_core_published(struct sgp_node *node)
{
    sgp_assert(node->stage == SGP_STAGE_PUBLISHING && node->giving.jobs > 0);
    if (--node->giving.jobs > 0)
        return;
    SGP_EACH_OF (link, node, SGP_SET_OWING)
        for (uint32_t k = 0; k < 2; k++)
            link->owed[k].publishing = false;
    node->layout.snapshot_users[node->giving.slot]--;
    node->giving.slot = SGP_SLOT_NONE;
    if (node->state == SGP_NODE_DRAINING) { /* the published share gets the full time to leave */
        sgp_core_enter(node, SGP_STAGE_IDLE);
        node->drain_until = node->now + SGP_DRAIN_NS;
    } else {
        after_giving(node);
        SGP_EACH_OF (link, node, SGP_SET_NEAR) /* x does not change now, unless a step follows */
            sgp_core_fold(node, link);
    }
}

static bool may_work(const struct sgp_node *node)
{
    return node->state == SGP_NODE_TRAINING || node->state == SGP_NODE_SETTLING ||
           node->state == SGP_NODE_FINISHED;
}

/* Whether the fleet is rounds ahead. Within an exact cycle one round, or an unknown epoch, is
 * enough. */
static bool comes_late(const struct sgp_node *node)
{
    bool labels = node->role->collective || sgp_core_leads(node);
    sgp_round ahead = labels ? 0 : sgp_core_far_ahead(node);
    SGP_EACH_LINK (link, node) {
        uint64_t number = link->pulse.epoch.number;
        bool later = number > node->exact.epoch.number && number <= node->exact.heard.number;
        if (sgp_core_living(link) && later)
            return true;
    }
    return sgp_core_reached(node, node->round) > node->round + ahead;
}

/* Resume at the round on record, or at the fleet's if that is greater. Exact parameters are kept if
 * the fleet is at most a cycle ahead. Beyond that a neighbour's are better. */
static void resume(struct sgp_node *node)
{
    bool lost = !node->past.recorded || node->past.another_file || node->config.seeks ||
                node->seeking.until != SGP_TIME_NEVER;
    if (sgp_core_rejoins_cycle(node, lost)) {
        node->past.restored = false;
        node->unrecorded = true;
        return;
    }
    node->round_since = node->now;
    sgp_round there = node->role->resumes_at != NULL ? node->role->resumes_at(node)
                                                     : sgp_core_reached(node, node->round);
    node->past.restored = false;
    node->unrecorded = true;
    if (there == node->round)
        return;
    sgp_core_set_round(node, there);
    node->gave = node->trained = false;
    sgp_core_put_off_end(node);
    sgp_core_notice(node);
    node->jumps++;
    (void)sgp_core_note(node, SGP_NOTE_JUMP, node->config.self);
}

static void join(struct sgp_node *node)
{
    uint32_t missing;
    bool late = comes_late(node);
    /* also a node without a past goes to the round of the fleet, with the fleet's model */
    if (late)
        node->past.restored = true;
    if (node->role->joins != NULL)
        node->role->joins(node, late);
    if (!sgp_core_may_start(node, &missing) || sgp_core_seeks(node))
        return;
    if (sgp_core_follows(node)) {
        node->past.restored = false;
        take_round(node, node->copy.label);
    } else if (node->past.restored)
        resume(node);
    else
        take_round(node, 0);
    if (node->config.fingerprint.run == 0) /* no node has told of a run, so this is the first */
        node->config.fingerprint.run = 1;
    sgp_core_become(node, steps_are_done(node) ? SGP_NODE_SETTLING : SGP_NODE_TRAINING);
    sgp_core_pace_begin(node);
    if (node->leaving.wanted)
        sgp_core_accumulate(node, SGP_SILENCE_MIN_NS);
    if (node->gave && !node->trained)
        after_giving(node);
    else if (node->gave)
        sgp_core_enter(node, SGP_STAGE_GATHER);
    else
        sgp_core_enter(node, node->trained ? SGP_STAGE_CREDIT : SGP_STAGE_BEGIN);
}

/* Whether an early stop is before the step that an owner has open. Workers that brought an update
 * to it have ended. */
static bool is_too_late_to_gather(const struct sgp_node *node)
{
    return node->stage == SGP_STAGE_GATHER && node->role->part == SGP_PART_LEADS &&
           sgp_core_is_over(node, node->round);
}

/* Give once more in this round. */
static void pass_on(struct sgp_node *node)
{
    if (node->passes++ == 0)
        node->waits = node->stage_since;
    node->passed = node->now;
    node->received_share = false;
    sgp_core_enter(node, SGP_STAGE_CREDIT);
}

/* Advance as far as possible. One step completes at most one round, so that the number of effects
 * is bounded. */
void sgp_core_advance(struct sgp_node *node)
{
    bool hold = in_order(node) && sgp_core_active(node); /* shares of this round and later */
    sgp_core_renew(node);
    sgp_core_forget_answers(node);
    sgp_core_take_up_refusals(node);
    sgp_core_curtail(node);
    sgp_core_absorb_until(node, hold ? node->round - 1 : SGP_ROUND_MAX);
    bool stops = node->exact.stop_by != SGP_TIME_NEVER && node->state != SGP_NODE_DRAINING;
    if (stops && (!node->exact.begun || node->exact.stop_by <= node->now))
        stop_now(node);
    if (node->paused && !sgp_core_computes(node))
        (void)sgp_core_leaves_now(node);
    if (sgp_core_has_gone(node) && !node->leaving.stopped)
        sgp_core_hand_over(node);
    else if (node->state == SGP_NODE_DRAINING)
        drain(node);
    if (node->paused && !node->exact.begun) {
        sgp_core_settle_to_compare(node, node->layout.link_count); /* end() does not run */
        return;
    }
    if (node->state == SGP_NODE_JOINING)
        join(node);
    if (!may_work(node))
        return;
    bool completed = false;
    for (;;) {
        if (is_too_late_to_gather(node))
            sgp_core_enter(node, SGP_STAGE_BEGIN); /* and from there to its end */
        if (node->stage == SGP_STAGE_BEGIN)
            begin(node);
        /* first forget an update that no owner will add */
        bool forgets = node->role->gives_updates && node->trained;
        if (node->stage == SGP_STAGE_CREDIT && sgp_core_is_over(node, node->round) &&
            !sgp_core_must_offer(node) && !forgets)
            come_to_end(node); /* no target would grant a credit after an early stop */
        if (node->stage == SGP_STAGE_CREDIT && sgp_core_give(node)) {
            if (node->giving.slot != SGP_SLOT_NONE)
                sgp_core_enter(node, SGP_STAGE_PUBLISHING);
            else
                after_giving(node);
        }
        if (node->stage == SGP_STAGE_END)
            end(node);
        if (sgp_core_passes_on_at(node) <= node->now) {
            pass_on(node);
            continue;
        }
        if (node->stage != SGP_STAGE_GATHER || node->role->awaited(node) != NULL)
            return;
        if (completed) {
            node->again = true;
            return;
        }
        complete(node);
        completed = true;
    }
}
