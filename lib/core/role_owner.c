/* SPDX-License-Identifier: Apache-2.0 */
/* The role of an owner of the vector, or of parts of it: its steps, and which worker gets a copy.
 *
 * Only the owner has weight. Its round is the number of steps that it has closed, and the label of
 * its estimate. The owner adds the mean of the updates that arrived while their step was open. An
 * update that arrives later is dropped and counted. So is a second update of one worker. At its own
 * pace the owner closes a step for each update.
 *
 * The rule: docs/rules/owner.md */
#include "core/core.h"

static void drop_late(struct sgp_node *node, struct sgp_core_link *link, uint32_t slot)
{
    link->count.late++;
    sgp_core_note_link(node, SGP_NOTE_LATE, link)->slot = slot;
}

/* A refused update still counts as the worker's reply, because the worker now waits for a copy.
 * While the owner joins, another label will follow. At its own pace no update is too late, except
 * after the last step. */
bool sgp_core_counts(struct sgp_node *node, struct sgp_core_link *link, bool accepted)
{
    if (node->role->part != SGP_PART_LEADS)
        return true;
    bool own_pace = sgp_core_at_own_pace(node);
    bool present =
        own_pace ? !sgp_core_is_over(node, node->round)
                 : node->state != SGP_NODE_JOINING && link->receiving.incoming.round == node->round;
    bool first = present && (own_pace || link->receiving.latest != node->round);
    if (present)
        link->receiving.latest = node->round;
    if (first || !accepted)
        return first;
    drop_late(node, link, link->receiving.slot[0]);
    return false;
}

/* ---- a step of several updates ---- */

/* Tell each worker whose update did not arrive that the label has risen, because its computation is
 * wasted. */
static void tell_late(struct sgp_node *node)
{
    SGP_EACH_OUT (link, node) {
        const struct sgp_core_link *in = sgp_core_find(node, link->peer, SGP_IN);
        link->giving.missed = in != NULL && in->receiving.latest != node->round &&
                              in->pulse.state == SGP_NODE_TRAINING;
        if (link->giving.missed)
            sgp_core_mark_dirty(node, link);
    }
}

/* Each of these updates has the same weight. */
static uint32_t close_together(struct sgp_node *node)
{
    uint32_t came = 0;
    for (uint32_t i = 0; i < node->layout.receive_count; i++)
        came += node->layout.receives[i].state == SGP_RECEIVE_HELD;
    for (uint32_t i = 0; i < node->layout.receive_count; i++) {
        struct sgp_receive *receive = &node->layout.receives[i];
        if (receive->state != SGP_RECEIVE_HELD)
            continue;
        receive->share.fraction = 1.0 / came;
        receive->counts = true;
    }
    tell_late(node);
    return came;
}

/* ---- a step of one update ---- */

static const struct sgp_staleness *staleness_of(const struct sgp_node *node)
{
    return &node->config.topology->phases[0].staleness;
}

/* The slowest of the workers that train. */
static uint32_t least_ahead(const struct sgp_node *node)
{
    uint32_t least = UINT32_MAX;
    SGP_EACH_IN (link, node) {
        bool trains = sgp_core_is_waited_for(link) && link->pulse.state == SGP_NODE_TRAINING;
        if (trains && !link->retired && link->work.ahead < least)
            least = link->work.ahead;
    }
    return least;
}

/* An absent worker does not fall behind. A joining worker starts level with the slowest one. */
static void count_ahead(struct sgp_node *node, struct sgp_core_link *link)
{
    link->work.ahead++;
    uint32_t least = least_ahead(node);
    SGP_EACH_IN (other, node) {
        uint32_t *ahead = &other->work.ahead;
        *ahead -= *ahead < least ? *ahead : least;
    }
}

/* The update is compensated from the copy that its worker had, if that copy is kept. */
static void compensate(struct sgp_node *node, struct sgp_receive *receive)
{
    struct sgp_core_link *out = sgp_core_find(node, receive->peer, SGP_OUT);
    if (out->work.base == SGP_SLOT_NONE || out->work.label != receive->share.round)
        return;
    receive->base = out->work.base;
    out->work.base = SGP_SLOT_NONE;
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_COMPENSATE);
    effect->compensate.slot = (uint32_t)(receive - node->layout.receives);
    effect->compensate.snapshot = receive->base;
    effect->compensate.factor = staleness_of(node)->compensation;
    effect->compensate.slice = receive->share.slice;
}

static void close_with(struct sgp_node *node, struct sgp_receive *receive)
{
    enum sgp_damping damping = staleness_of(node)->damping;
    struct sgp_core_link *link = sgp_core_find(node, receive->peer, SGP_IN);
    sgp_round since = node->round - receive->share.round;
    link->work.staleness = since > 0 ? since : 0;
    receive->counts = true;
    receive->share.fraction = damping == SGP_DAMPING_DIVIDE && since > 1 ? 1.0 / (double)since : 1;
    sgp_core_note(node, SGP_NOTE_ADDED, link->peer)->amount = (double)link->work.staleness;
    if (damping == SGP_DAMPING_COMPENSATE)
        compensate(node, receive);
    count_ahead(node, link);
}

static struct sgp_receive *first_held(struct sgp_node *node)
{
    struct sgp_receive *first = NULL;
    for (uint32_t i = 0; i < node->layout.receive_count; i++) {
        struct sgp_receive *receive = &node->layout.receives[i];
        bool before = first == NULL || receive->share.round < first->share.round;
        if (receive->state == SGP_RECEIVE_HELD && !receive->counts && before)
            first = receive;
    }
    return first;
}

/* A label is never used twice, whatever the workers have seen. */
static sgp_round next_label(struct sgp_node *node)
{
    return sgp_core_furthest(node, node->round, sgp_core_living) + 1;
}

static void drop(struct sgp_node *node, struct sgp_receive *receive)
{
    receive->state = SGP_RECEIVE_FREE;
    drop_late(node, sgp_core_find(node, receive->peer, SGP_IN),
        (uint32_t)(receive - node->layout.receives));
}

/* Each step adds one update, the oldest first. Updates that are left after the last step were too
 * late. */
static uint32_t close_with_one(struct sgp_node *node)
{
    struct sgp_receive *receive = first_held(node);
    bool adds = receive != NULL && !sgp_core_is_over(node, node->round);
    if (adds)
        close_with(node, receive);
    while (sgp_core_is_over(node, next_label(node)) && (receive = first_held(node)) != NULL) {
        drop(node, receive);
    }
    return adds;
}

void sgp_core_drop_held(struct sgp_node *node)
{
    for (uint32_t i = 0; i < node->layout.receive_count; i++) {
        struct sgp_receive *receive = &node->layout.receives[i];
        bool held = receive->state == SGP_RECEIVE_HELD && !receive->counts;
        if (held && node->role->part == SGP_PART_LEADS)
            drop(node, receive);
    }
}

uint32_t sgp_core_close_step(struct sgp_node *node)
{
    if (node->role->part != SGP_PART_LEADS)
        return 0;
    return sgp_core_at_own_pace(node) ? close_with_one(node) : close_together(node);
}

/* ---- which worker gets a copy ---- */

/* Whether all that the worker computed from its copy has been added. */
static bool is_settled(const struct sgp_node *node, const struct sgp_core_link *in, sgp_round newer)
{
    bool promised = in->receiving.promise[0] != SGP_ROUND_NONE && in->receiving.promise[0] < newer;
    for (uint32_t i = 0; i < node->layout.receive_count; i++)
        if (node->layout.receives[i].state == SGP_RECEIVE_HELD &&
            node->layout.receives[i].peer == in->peer)
            return false;
    return sgp_core_is_up(in) && !promised;
}

/* How far ahead a worker may be of the slowest; 0: no bound. Of several owners only the first
 * applies the bound. A worker needs the copies of all owners to continue. If two owners applied the
 * bound, two workers could block each other. */
static uint32_t most_ahead(const struct sgp_node *node)
{
    bool first = node->config.self == node->config.topology->owner;
    return first ? staleness_of(node)->most : 0;
}

/* At its own pace the owner answers a worker once it has added the worker's update. While steps are
 * taken, it does not answer a worker that is too far ahead. */
bool sgp_core_may_have_copy(const struct sgp_node *node, const struct sgp_core_link *link)
{
    bool answers = node->role->part == SGP_PART_LEADS;
    if (!answers || !sgp_core_at_own_pace(node) || link->estimate.newer == 0)
        return true;
    const struct sgp_core_link *in = sgp_core_from(node, link->peer);
    uint32_t most = most_ahead(node);
    bool ahead = most > 0 && !sgp_core_is_over(node, node->round) && in->work.ahead > most &&
                 in->work.ahead - most > least_ahead(node);
    return !ahead && is_settled(node, in, link->estimate.newer);
}

void sgp_core_forget_base(struct sgp_node *node, uint32_t *base)
{
    if (*base != SGP_SLOT_NONE)
        node->layout.snapshot_users[*base]--;
    *base = SGP_SLOT_NONE;
}

void sgp_core_keep_base(struct sgp_node *node, struct sgp_core_link *link)
{
    bool compensates = sgp_core_leads(node) && sgp_core_at_own_pace(node) &&
                       staleness_of(node)->damping == SGP_DAMPING_COMPENSATE;
    sgp_core_forget_base(node, &link->work.base); /* also a base of a previous file */
    if (!compensates)
        return;
    link->work.base = link->estimate.slot;
    link->work.label = node->handing.estimate.round;
    node->layout.snapshot_users[link->work.base]++;
}

/* ---- waiting ---- */

/* Whether the worker brings no update to this step. It is ahead because the owner lost its ledger,
 * or it gave its update to a former owner. */
static bool has_passed(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return sgp_core_living(link) &&
           (link->pulse.round > node->round || link->receiving.promise[0] > node->round);
}

/* An owner waits for the updates of all workers but the number of backup workers. It waits for
 * absent ones too, if no other worker can bring an update. It needs at least one update. */
static const struct sgp_core_link *awaited_together(const struct sgp_node *node)
{
    const struct sgp_topology *topology = node->config.topology;
    const struct sgp_core_link *first = NULL, *missing = NULL;
    uint32_t came = 0;
    bool passed = false;
    SGP_EACH_IN (link, node) {
        bool ahead = has_passed(node, link);
        passed = passed || ahead;
        bool answered = link->receiving.latest == node->round;
        came += answered;
        if (link->retired || answered || ahead)
            continue;
        first = first == NULL ? link : first;
        missing = missing == NULL && sgp_core_is_waited_for(link) ? link : missing;
    }
    if (came + topology->phases[0].backup >= sgp_topology_trainers(topology))
        return NULL;
    return came == 0 && missing == NULL && !passed ? first : missing;
}

/* An owner at its own pace waits for an update of any worker, if it still adds any. */
static const struct sgp_core_link *awaited_one(const struct sgp_node *node)
{
    const struct sgp_core_link *first = NULL, *missing = NULL;
    bool passed = false;
    if (sgp_core_is_over(node, node->round))
        return NULL;
    for (uint32_t i = 0; i < node->layout.receive_count; i++)
        if (node->layout.receives[i].state == SGP_RECEIVE_HELD)
            return NULL;
    SGP_EACH_IN (link, node) {
        if (link->receiving.latest == node->round) /* the update was refused */
            return NULL;
        if (link->retired)
            continue;
        bool ahead = has_passed(node, link);
        passed = passed || ahead;
        first = first == NULL ? link : first;
        missing = missing == NULL && !ahead && sgp_core_is_waited_for(link) ? link : missing;
    }
    return missing != NULL ? missing : passed ? NULL : first;
}

static const struct sgp_core_link *awaited(const struct sgp_node *node)
{
    return sgp_core_at_own_pace(node) ? awaited_one(node) : awaited_together(node);
}

/* An update has no weight. */
static bool fits(
    const struct sgp_node *node, const struct sgp_core_link *link, const struct sgp_share *share)
{
    (void)node;
    (void)link;
    return share->fraction >= 1 && sgp_core_is_weightless(share) && share->bequest <= 0 &&
           !share->asks;
}

/* The step to which it may have added updates is lost. */
static sgp_round resumes_at(const struct sgp_node *node)
{
    return sgp_core_reached(node, node->round) + 1;
}

static bool suits(const struct sgp_node_config *config)
{
    return config->topology->nodes[config->self].owns;
}

const struct sgp_role sgp_role_owner = {
    .name = "owner",
    .suits = suits,
    .part = SGP_PART_LEADS,
    .gives_nothing = true,
    .weight_by_file = true,
    .counts_steps = true,
    .one_model = true,
    .leave_obstacle = "it owns the vector, or a part, which nobody can inherit; stop it, and name "
                      "another node in its place",
    .next_label = next_label,
    .fits = fits,
    .resumes_at = resumes_at,
    .awaited = awaited,
};
