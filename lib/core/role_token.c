/* SPDX-License-Identifier: Apache-2.0 */
/* The role of a node that trains with a token. The token is the ownership of the vector: weight 1,
 * which travels from node to node as one share of the whole vector.
 *
 * Every node trains from its copy of the token as it was when it was here last. After the steps of
 * a round the node publishes its accumulated updates as a snapshot. When the token arrives, it
 * takes the snapshot, whatever the compute thread does meanwhile, and moves on at once. The node
 * that has the token publishes the token itself after its steps.
 *
 * A credit says that a node is ready. Either the node has published something since the token was
 * here last, or, after the last step, its copy is not the newest. The label of the token is the
 * number of updates in it. The round of a node is the label of its copy plus its own updates since.
 *
 * The rule: docs/rules/token.md */
#include "core/core.h"

/* The fleet may be at most this many times as fast as if all nodes had this node's best pace. */
#define PACE_FACTOR 16
/* The assumed time of an update until TIMED_LEAST updates were timed. It is an upper bound. */
#define UPDATE_NS SGP_MILLISECOND
#define TIMED_LEAST 16u

static const struct sgp_delay *delay_of(const struct sgp_node *node)
{
    return &node->config.topology->phases[0].delay;
}

static bool is_here(const struct sgp_node *node)
{
    return node->mass.weight > 0;
}

/* The weight of each of `count` updates that the token takes together. */
static double part_of(const struct sgp_node *node, uint32_t count)
{
    return delay_of(node)->mean && count > 0 ? 1.0 / count : 1;
}

/* Whether the node's next update waits for the next round of the token, wherever the token is. */
static bool takes_one_each(const struct sgp_node *node)
{
    return delay_of(node)->token == SGP_TOKEN_FIXED;
}

bool sgp_core_must_offer(const struct sgp_node *node)
{
    const struct sgp_token_state *token = &node->token;
    if (!node->role->unique)
        return false;
    if (node->mass.weight <= 0)
        return node->copy.updates > token->offered;
    bool later = takes_one_each(node) && node->state == SGP_NODE_TRAINING;
    return token->slot == SGP_SLOT_NONE || (node->copy.updates > 0 && !later);
}

/* ---- publishing updates ---- */

static void forget_offered(struct sgp_node *node)
{
    if (node->token.slot != SGP_SLOT_NONE)
        node->layout.snapshot_users[node->token.slot]--;
    node->token.slot = SGP_SLOT_NONE;
    node->token.offered = 0;
}

/* A snapshot contains the updates of the previous one. */
static void publish(struct sgp_node *node, uint32_t slot)
{
    bool here = is_here(node);
    uint32_t count = node->copy.updates;
    node->token.slot = node->giving.slot = slot;
    node->giving.jobs = 1;
    /* one user until the job is done, and one as long as the token can take the snapshot */
    node->layout.snapshot_users[slot] += 2;
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_PUBLISH);
    effect->publish.slot = slot;
    effect->publish.keep = here ? part_of(node, count) : 1;
    effect->publish.purpose = here ? SGP_PUBLISH_TOKEN : SGP_PUBLISH_UPDATE;
    effect->publish.slice = sgp_core_all(node);
    if (!here) {
        node->token.offered = count;
        return;
    }
    node->copy.label = node->copy.exists ? node->copy.label + count : node->round;
    node->copy.exists = true;
    node->copy.untrained = node->past.fresh;
    node->copy.since = node->now;
    node->copy.updates = 0;
    if (count > 0)
        sgp_core_note(node, SGP_NOTE_TOKEN_RECEIVED, node->config.self)->amount = count;
}

static bool offer(struct sgp_node *node)
{
    forget_offered(node);
    uint32_t slot = sgp_core_unused(node);
    if (slot == SGP_SLOT_NONE)
        return false;
    publish(node, slot);
    node->round = node->copy.label + node->copy.updates;
    sgp_core_mark_all_dirty(node); /* another label is promised, or a credit is due */
    node->unrecorded = true;
    return true;
}

static bool give(struct sgp_node *node)
{
    return !sgp_core_must_offer(node) || offer(node);
}

/* ---- how far a label may rise ---- */

void sgp_core_time_update(struct sgp_node *node, sgp_time took)
{
    sgp_time least = node->token.quickest;
    took = took > 1 ? took : 1;
    node->token.quickest = least == 0 || took < least ? took : least;
    node->token.timed += node->token.timed < TIMED_LEAST;
}

/* The first updates of a process are slow. They are also few if the token does not come. So their
 * pace would be no measure. */
static sgp_time best_pace(const struct sgp_node *node)
{
    sgp_time quickest = node->token.quickest;
    bool known = node->token.timed == TIMED_LEAST || (quickest > 0 && quickest < UPDATE_NS);
    return known ? quickest : UPDATE_NS;
}

/* The most updates that all nodes may have made since this node had its copy: PACE_FACTOR times as
 * many as if all had this node's best pace. */
static sgp_round made_since(const struct sgp_node *node)
{
    double made = (double)PACE_FACTOR * node->config.topology->node_count *
                  (double)(node->now - node->copy.since) / (double)best_pace(node);
    return made < (double)SGP_ROUND_MAX ? (sgp_round)made : SGP_ROUND_MAX;
}

/* The updates that may wait for the token at all nodes, plus the update that each node is
 * computing. */
static sgp_round unoffered_most(const struct sgp_node *node)
{
    const struct sgp_topology *topology = node->config.topology;
    return (sgp_round)topology->node_count * (sgp_topology_delay_most(topology) + 1);
}

/* The greatest round that a neighbour other than `peer` says. */
static sgp_round said_by_others(const struct sgp_node *node, uint32_t peer)
{
    sgp_round said = 0, most = sgp_core_mixing_end(node);
    SGP_EACH_LINK (link, node) {
        sgp_round round = link->pulse.round < most ? link->pulse.round : most;
        if (link->peer != peer && sgp_core_living(link) && round > said)
            said = round;
    }
    return said;
}

sgp_round sgp_core_label_most(const struct sgp_node *node, uint32_t peer)
{
    sgp_round made = made_since(node), said = said_by_others(node, peer);
    sgp_round known = made < SGP_ROUND_MAX - node->round ? node->round + made : SGP_ROUND_MAX;
    sgp_round unoffered = unoffered_most(node), end = sgp_core_train_end(node);
    /* under this file no node takes a step beyond its end */
    end = end > node->round ? end : node->round;
    known = known < end ? known : end;
    known = known > said ? known : said; /* other nodes may have another file */
    return known < SGP_ROUND_MAX - unoffered ? known + unoffered : SGP_ROUND_MAX;
}

/* A label that is above all known ones, and is never used twice. */
static sgp_round newest_label(
    const struct sgp_node *node, bool (*counts)(const struct sgp_core_link *))
{
    sgp_round newest = node->round, most = sgp_core_mixing_end(node);
    SGP_EACH_LINK (link, node) {
        sgp_round round = link->pulse.round < most ? link->pulse.round : most;
        sgp_round credible = sgp_core_label_most(node, link->peer);
        round = round < credible ? round : credible;
        if (counts(link) && round > newest)
            newest = round;
    }
    return newest + 1;
}

/* The node's copy gets a label above all known ones. The round rises with the label, because the
 * target of an estimate accepts no label above the round in this node's heartbeats. */
static void raise_label(struct sgp_node *node, bool (*counts)(const struct sgp_core_link *))
{
    node->copy.label = newest_label(node, counts);
    node->round = node->copy.label + node->copy.updates;
}

/* ---- receiving the token ---- */

/* Not while the node publishes. */
static bool may_absorb(const struct sgp_node *node, const struct sgp_receive *receive, bool early)
{
    (void)early;
    return sgp_core_is_in_force(node, &receive->epoch) && node->giving.slot == SGP_SLOT_NONE &&
           (node->token.slot != SGP_SLOT_NONE || sgp_core_unused(node) != SGP_SLOT_NONE);
}

/* Receive the token, and add this node's published updates. The label of the token never falls. */
static void receive_token(struct sgp_node *node, struct sgp_receive *receive)
{
    if (is_here(node)) /* there are two tokens: one of them is dropped */
        forget_offered(node);
    uint32_t count = node->token.offered;
    if (node->token.slot == SGP_SLOT_NONE)
        node->layout.snapshot_users[node->token.slot = sgp_core_unused(node)]++;
    node->copy.updates -= count;
    receive->base = node->token.slot;
    node->layout.snapshot_users[receive->base]++;
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_RECEIVE_TOKEN);
    effect->receive_token.slot = (uint32_t)(receive - node->layout.receives);
    effect->receive_token.snapshot = receive->base;
    effect->receive_token.fraction = count > 0 ? part_of(node, count) : 0;
    effect->receive_token.computes = node->stage == SGP_STAGE_TRAIN || node->copy.updates > 0;
    sgp_core_note(node, SGP_NOTE_TOKEN_RECEIVED, receive->peer)->amount = count;
    sgp_round label = receive->share.round;
    label = (label > node->copy.label ? label : node->copy.label) + count;
    node->copy.label = label;
    node->copy.since = node->now;
    node->round = label + node->copy.updates;
    node->token.offered = 0;
    node->copy.former = false;
    node->copy.untrained = node->past.fresh;
    node->unrecorded = true;
    sgp_core_mark_all_dirty(node);
}

/* If two tokens meet, the one with the greater label stays. */
static void absorb(struct sgp_node *node, struct sgp_receive *receive)
{
    if (is_here(node) && receive->share.round <= node->copy.label) {
        sgp_mass_post(node, SGP_MASS_DROP, receive->share.weight);
        receive->state = SGP_RECEIVE_FREE;
        return;
    }
    receive_token(node, receive);
    receive->state = SGP_RECEIVE_ABSORBING;
    sgp_mass_set(node, 0);
    sgp_mass_post(node, SGP_MASS_ABSORB, receive->share.weight);
}

/* A neighbour has a different copy of the same label, so the label was used twice. The next arrival
 * of the token settles that. The holder takes a greater label, so that every other copy is older,
 * and the token goes to each of these nodes once. */
void sgp_core_circulate_again(struct sgp_node *node)
{
    node->copy.former = !is_here(node);
    if (!is_here(node))
        return;
    node->copy.label++;
    node->round = node->copy.label + node->copy.updates;
    node->changed = node->unrecorded = true;
    sgp_core_mark_all_dirty(node);
}

/* A source that stops gives the token to any node that stays, even to a paused one. */
static bool keeps_for(const struct sgp_core_link *link, enum sgp_node_state state)
{
    bool stays = state != SGP_NODE_JOINING && state != SGP_NODE_DRAINING;
    return stays && link->pulse.state == SGP_NODE_DRAINING;
}

/* Whether the token of that source would find work here. If both nodes have a token, the tokens
 * meet here. */
bool sgp_core_may_grant_token(const struct sgp_node *node, const struct sgp_core_link *link)
{
    if (!node->role->unique)
        return true;
    enum sgp_node_state state = sgp_core_state(node);
    if (keeps_for(link, state) && !node->leaving.wanted)
        return true;
    bool takes =
        (state == SGP_NODE_TRAINING || state == SGP_NODE_SETTLING || state == SGP_NODE_FINISHED) &&
        !node->leaving.wanted;
    bool lacks = node->stage == SGP_STAGE_END &&
                 (node->copy.former || link->receiving.promise[0] > node->copy.label);
    return takes && (is_here(node) || node->token.offered > 0 || lacks);
}

/* ---- joining ---- */

bool sgp_core_mints(const struct sgp_node *node)
{
    return node->role->unique && is_here(node) && !node->past.recorded &&
           node->exact.epoch.number == 0 && node->state == SGP_NODE_JOINING;
}

/* If the record says that the token is here, a node that received it since knows better, and is
 * about to greet. */
bool sgp_core_may_have_passed(const struct sgp_node *node)
{
    return node->token.of_record && sgp_core_may_be_greeted(node);
}

/* No node has a later copy of the token than its holder has on record. If only the record says that
 * the token is here, and another node has a later copy, then the token has left this node since. */
bool sgp_core_has_left(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return node->token.of_record && !link->question.incoming.former &&
           link->question.incoming.round > node->round;
}

/* There is one token. If this node has a later copy of it than it handed on, then the target of
 * that share accepted it, even if the target's record is from before. */
bool sgp_core_went_on(const struct sgp_node *node, const struct sgp_share *share)
{
    return node->role->unique && node->copy.exists && !node->copy.former &&
           node->copy.label > share->round;
}

/* A peer that claims to have trained may not be a neighbour at all. So the node gives up the token
 * only when it receives a copy (add in estimate.c), and seeks a copy as long as the claim lasts.
 * If its own past shows it, the node is certain. */
static void doubt(struct sgp_node *node, bool late)
{
    if (node->config.seeks) {
        sgp_core_forgo_token(node);
        return;
    }
    node->past.restored = late;
    if (node->past.restored)
        sgp_core_want(node);
    else if (node->seeking.wants)
        sgp_core_stop_seeking(node);
}

/* A node without a copy of the token cannot begin. */
static void joins(struct sgp_node *node, bool late)
{
    if (sgp_core_mints(node))
        doubt(node, late);
    if (!is_here(node) && !node->copy.exists && !node->seeking.wants)
        sgp_core_want(node);
}

static sgp_round resumes_at(const struct sgp_node *node)
{
    return newest_label(node, sgp_core_is_up);
}

/* ---- passing the token on ---- */

/* The neighbour number `index`, in the order of the file, counted from this node. */
static struct sgp_core_link *next_of(const struct sgp_node *node, uint32_t index)
{
    uint32_t first = 0, count = node->layout.out_count;
    while (first < count && node->layout.links[first].peer < node->config.self)
        first++;
    return &node->layout.links[(first + index) % count];
}

static struct sgp_core_link *next_ready(const struct sgp_node *node)
{
    for (uint32_t i = 0; i < node->layout.out_count; i++) {
        struct sgp_core_link *link = next_of(node, i);
        bool present = !link->retired && sgp_core_is_up(link) && !link->liveness.absent &&
                       link->pulse.state != SGP_NODE_DRAINING;
        bool ready = present && !link->owed[0].exists && link->giving.credit[0] != SGP_ROUND_NONE;
        if (ready)
            return link;
        if (present && sgp_core_is_waited_for(link) && takes_one_each(node) &&
            node->state == SGP_NODE_TRAINING)
            return NULL;
    }
    return NULL;
}

void sgp_core_hand_on(struct sgp_node *node)
{
    bool able = is_here(node) && node->token.slot != SGP_SLOT_NONE &&
                node->giving.slot == SGP_SLOT_NONE && node->state != SGP_NODE_JOINING &&
                !node->drained;
    struct sgp_core_link *link = able ? next_ready(node) : NULL;
    if (link == NULL)
        return;
    link->owed[0] = (struct sgp_owed){
        .exists = true,
        .slot = node->token.slot, /* the snapshot now belongs to the link */
        .share = {.number = ++link->memory.number,
            .round = node->copy.label,
            .fraction = 1,
            .weight = node->mass.weight,
            .slice = sgp_core_all(node),
            .payload_bytes = sgp_coding_bytes_most(SGP_CODING_NONE, node->config.parameters)},
    };
    node->token.slot = SGP_SLOT_NONE;
    node->token.of_record = false;
    sgp_mass_post(node, SGP_MASS_GIVE, node->mass.weight);
    link->count.sent++;
    node->unrecorded = true;
    sgp_core_mark_all_dirty(node);
}

/* Whether that neighbour would accept the token from a node that stops, once it hears of the
 * stop. */
static bool could_keep(const struct sgp_core_link *link)
{
    enum sgp_node_state state = link->pulse.state;
    return !link->retired && sgp_core_is_up(link) && !link->liveness.absent &&
           state != SGP_NODE_DRAINING;
}

/* The token is here, or may be arriving. A source that has a credit may have used it, until the
 * source says that it will not. */
bool sgp_core_could_hand_on(const struct sgp_node *node)
{
    bool comes = false, could = false;
    SGP_EACH_LINK (link, node) {
        could = could || (link->direction == SGP_OUT && could_keep(link));
        comes = comes || link->receiving.filling || link->receiving.slot[0] != SGP_SLOT_NONE;
    }
    return node->role->unique && could && (is_here(node) || comes);
}

/* A token that is not published yet cannot be passed on. */
bool sgp_core_offers_last(struct sgp_node *node)
{
    bool unoffered = is_here(node) && node->token.slot == SGP_SLOT_NONE && !node->token.of_record;
    return unoffered && sgp_core_could_hand_on(node) && offer(node);
}

/* The token was refused, or its target is gone. x is the token plus this node's updates since. If
 * the snapshot is lost, x is an older copy, or a guess, and other nodes may know greater labels. */
static void restore_token(struct sgp_node *node, uint32_t slot)
{
    forget_offered(node);
    node->token.slot = slot; /* the link's snapshot is the token again */
    if (!node->copy.exists)
        sgp_core_want(node);
    if (slot != SGP_SLOT_NONE || !node->copy.exists)
        return;
    raise_label(node, sgp_core_living);
}

/* Another node may have the token, or has it. This node keeps its state as a copy. */
void sgp_core_forgo_token(struct sgp_node *node)
{
    sgp_mass_set(node, 0);
    node->token.of_record = false;
    forget_offered(node);
    node->unrecorded = node->again = true;
}

/* The holder of the token would give it to any node that is ready. */
static sgp_round promise(struct sgp_node *node, struct sgp_core_link *link)
{
    bool may = is_here(node) && node->copy.exists && !node->drained && !link->retired &&
               link->pulse.state != SGP_NODE_DRAINING;
    return may ? node->copy.label : SGP_ROUND_NONE;
}

/* The token is the whole vector, with all weight. */
static bool fits(
    const struct sgp_node *node, const struct sgp_core_link *link, const struct sgp_share *share)
{
    (void)link;
    bool whole = share->slice.first == 0 && share->slice.count == node->config.parameters;
    return whole && share->fraction >= 1 && share->weight >= 1 && share->weight <= 1 &&
           share->bequest <= 0 && !share->asks;
}

/* The record is outdated. If only the record says that the token is here, another node has or had
 * it. */
void sgp_core_forgo_recorded(struct sgp_node *node)
{
    if (node->token.of_record)
        sgp_core_forgo_token(node);
}

static sgp_round next_label(struct sgp_node *node)
{
    if (!is_here(node) && node->seeking.wants)
        sgp_core_stop_seeking(node);
    return node->copy.label + node->copy.updates;
}

/* ---- another token ---- */

/* The token of a former epoch is void. This node keeps its state as a copy. */
static void take_epoch(struct sgp_node *node)
{
    node->exact.epoch = node->exact.heard;
    sgp_core_void_former(node);
    if (is_here(node))
        sgp_core_forgo_token(node);
    node->copy.former = true;
    node->exact.renewed++;
    sgp_core_note(node, SGP_NOTE_RENEWED, node->config.self)->until = node->round;
    node->changed = node->unrecorded = node->again = true;
    sgp_core_mark_all_dirty(node);
}

static void renew(struct sgp_node *node)
{
    if (node->state != SGP_NODE_DRAINING && node->giving.slot == SGP_SLOT_NONE)
        take_epoch(node);
}

const char *sgp_node_token_obstacle(const struct sgp_node *node)
{
    if (!node->role->unique)
        return "there is no token in its topology file";
    if (node->mass.weight > 0 || sgp_core_held(node) > 0)
        return "it has the token";
    if (node->state == SGP_NODE_DRAINING || node->leaving.wanted)
        return "it is stopping, or leaving";
    if (node->giving.slot != SGP_SLOT_NONE)
        return "it is busy for a moment; try again";
    return NULL;
}

/* If two tokens are created at the same time, the one of the later node in the file wins, because
 * its index is the start of the epoch. */
void sgp_core_remake_token(struct sgp_node *node)
{
    if (sgp_node_token_obstacle(node) != NULL)
        return;
    node->exact.heard.number++;
    node->exact.heard.start = (sgp_round)node->config.self;
    take_epoch(node);
    sgp_mass_set(node, 1);
    node->copy.former = false;
    forget_offered(node);
    if (node->copy.exists)
        raise_label(node, sgp_core_is_up);
}

/* ---- the role ---- */

/* If this node has the maximum number of updates that wait for the token, it waits for the
 * neighbour that has the token. If no neighbour claims to have it, an absent one may have it. In
 * strict order the holder waits too, for the next node. */
static const struct sgp_core_link *awaited(const struct sgp_node *node)
{
    bool here = is_here(node);
    bool waits = node->state == SGP_NODE_TRAINING && !sgp_core_must_offer(node) &&
                 (!here || takes_one_each(node)) && !node->leaving.wanted &&
                 node->copy.updates >= sgp_topology_delay_most(node->config.topology);
    const struct sgp_core_link *first = NULL, *missing = NULL;
    for (uint32_t i = node->layout.out_count; waits && i < node->layout.link_count; i++) {
        const struct sgp_core_link *link = &node->layout.links[i];
        if (link->retired)
            continue;
        if (sgp_core_is_up(link) && link->receiving.promise[0] != SGP_ROUND_NONE)
            return link;
        first = first == NULL ? link : first;
        missing = missing == NULL && !sgp_core_is_waited_for(link) ? link : missing;
    }
    return missing != NULL ? missing : first;
}

static bool suits(const struct sgp_node_config *config)
{
    return sgp_topology_has_token(config->topology);
}

const struct sgp_role sgp_role_token = {
    .name = "token",
    .suits = suits,
    .part = SGP_PART_BY_WEIGHT,
    .gives_nothing = true,
    .counts_steps = true,
    .one_model = true,
    .keeps_copy = true,
    .unique = true,
    .next_label = next_label,
    .fits = fits,
    .joins = joins,
    .resumes_at = resumes_at,
    .give = give,
    .may_absorb = may_absorb,
    .absorb = absorb,
    .renew = renew,
    .restore_share = restore_token,
    .awaited = awaited,
    .promise = promise,
};
