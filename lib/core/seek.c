/* SPDX-License-Identifier: Apache-2.0 */
/* Seeking: a node whose parameters are a guess asks one source after the other for its estimate.
 *
 * A question reserves a receive buffer. One source is asked at a time. If there are several owners,
 * each is asked for its part. If a source does not answer, its connection is closed and the next
 * source is asked. So a late answer is never taken for the answer to a later question.
 *
 * A node that compares estimates asks until it has as many as it compares. It is content with fewer
 * if no other source can be asked, or if none has answered in the time of a question.
 *
 * The rule: docs/rules/estimate.md */
#include "core/core.h"

/* The number of doublings of the time for an answer: up to 43 minutes. If a node that compares
 * estimates ended an answer that was arriving, up to a week, since models may be large. */
#define TURNS_MAX 8
#define TURNS_OF_ARRIVAL_MAX 16

/* A draining node may be about to leave for good, with this node as its only heir. */
static bool drains(const struct sgp_core_link *link)
{
    return link->connection.state == SGP_LINK_UP && !link->liveness.absent &&
           link->pulse.state == SGP_NODE_DRAINING;
}

/* A relay enters an exact cycle with zero, and its vector during the cycle is no estimate. */
static bool has_nothing(const struct sgp_node *node, const struct sgp_core_link *link)
{
    const struct sgp_topology *topology = node->config.topology;
    sgp_round round = link->pulse.round;
    return topology->nodes[link->peer].relay && sgp_topology_starts(topology, link->peer) <= 0 &&
           round >= 0 && round <= SGP_ROUND_MAX && sgp_core_role_at(node, round)->collective;
}

/* A worker asks each of several owners for its part. */
static bool has_been_taken(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return node->role->gives_updates && !sgp_core_lacks_copy(node, link);
}

static struct sgp_core_link *next_of(
    const struct sgp_node *node, bool (*serves)(const struct sgp_core_link *))
{
    uint32_t count = node->layout.link_count - node->layout.out_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t turn = (node->seeking.turn + i) % count;
        struct sgp_core_link *link = &node->layout.links[node->layout.out_count + turn];
        bool other = link->question.slot == SGP_SLOT_NONE && !has_nothing(node, link) &&
                     !has_been_taken(node, link);
        if (!link->estimate.refused && other && serves(link))
            return link;
    }
    return NULL;
}

/* For an owner whose parameters contain no training: a worker that joins, and waits for the owner,
 * may have a checkpoint. It is asked once. */
static bool may_have_checkpoint(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return node->role->part == SGP_PART_LEADS && node->past.fresh && link->direction == SGP_IN &&
           sgp_core_is_up(link) && !link->liveness.absent &&
           link->pulse.state == SGP_NODE_JOINING && link->pulse.round > 0 &&
           !link->estimate.refused;
}

static bool can_answer(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return sgp_core_living(link) || may_have_checkpoint(node, link);
}

/* A checkpoint may be older than its label, so a worker that trains has the newer values. */
static bool is_newer(const struct sgp_core_link *link, const struct sgp_core_link *other)
{
    if (other == NULL || sgp_core_living(link) != sgp_core_living(other))
        return other == NULL || sgp_core_living(link);
    return link->pulse.round > other->pulse.round;
}

/* For an owner: the worker with the newest copy, once all workers have been heard, or have had time
 * for that. NULL: none. A checkpoint is asked for only when the owner could start. */
static struct sgp_core_link *newest(const struct sgp_node *node)
{
    struct sgp_core_link *best = NULL;
    bool may_come = sgp_core_may_be_greeted(node);
    SGP_EACH_IN (link, node) {
        bool serves = can_answer(node, link) && !link->estimate.refused;
        if (!serves && !link->retired && may_come)
            return NULL;
        if (serves && is_newer(link, best))
            best = link;
    }
    bool early = best != NULL && !sgp_core_living(best) && node->seeking.until == SGP_TIME_NEVER;
    return best != NULL && best->question.slot == SGP_SLOT_NONE && !early ? best : NULL;
}

/* By another file that source may take its parameters from this node, and each would wait for the
 * other. */
static bool plans_alike(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return link->liveness.heard == SGP_TIME_NEVER ||
           link->greeting.topology == node->config.fingerprint.topology;
}

/* The source of the first parameters by the file. If every node asked the first source that has
 * them, that source would send them to all. NULL: the node may ask any source, because the planned
 * one did not answer or has another file, or because the fleet is beyond round 0. */
static struct sgp_core_link *planned(const struct sgp_node *node)
{
    bool first = node->config.one_beginning && node->fleet.heard == 0 && node->seeking.turns == 0;
    struct sgp_core_link *link = NULL;
    if (first && node->role->part == SGP_PART_NONE && node->first_source != SGP_NODE_NONE)
        link = sgp_core_find((struct sgp_node *)(uintptr_t)node, node->first_source, SGP_IN);
    bool serves =
        link != NULL && !link->retired && !link->estimate.refused && plans_alike(node, link);
    return serves && link->question.slot == SGP_SLOT_NONE && !has_nothing(node, link) ? link : NULL;
}

/* Whether that source is about to have them. Round 0 waits for it in any case
 * (sgp_core_not_begun). */
static bool is_about_to_serve(const struct sgp_node *node, const struct sgp_core_link *link)
{
    if (link->liveness.heard == SGP_TIME_NEVER)
        return sgp_core_may_be_greeted(node);
    return link->pulse.state == SGP_NODE_JOINING && sgp_core_is_waited_for(link);
}

/* The next source in turn that could be asked and is not asked yet, or NULL. A source that stays is
 * preferred. A worker asks its owner. */
static struct sgp_core_link *next_source(const struct sgp_node *node)
{
    if (sgp_core_leads(node))
        return newest(node);
    struct sgp_core_link *first = planned(node);
    if (first != NULL && sgp_core_living(first))
        return first;
    if (first != NULL && is_about_to_serve(node, first))
        return NULL;
    struct sgp_core_link *next = next_of(node, sgp_core_living);
    return next != NULL ? next : next_of(node, drains);
}

/* Whether the time of this question counts. A node that compares estimates does not trust any one
 * source, and a liar might send its estimate as slowly as payloads may arrive. Other nodes wait for
 * an answer that is arriving. */
static bool is_timed(const struct sgp_node *node, const struct sgp_core_link *link)
{
    bool open = link->question.slot != SGP_SLOT_NONE && !link->question.whole;
    return open && (!link->question.filling || node->config.candidates > 0);
}

/* A worker that joins and does not answer in time has no checkpoint. */
static void give_up_checkpoints(struct sgp_node *node)
{
    SGP_EACH_IN (link, node)
        if (may_have_checkpoint(node, link) && is_timed(node, link) &&
            node->now >= link->question.until)
            link->estimate.refused = true;
}

/* A source may be unable to answer, and need not show it. It may have been paused before its own
 * parameters arrived, or be busy with a job or with another estimate. If there is `other`, that one
 * is asked next, and has twice the time, so that slow sources can answer too. A source that rejoins
 * or drains has no estimate, and the next one has no more time for that. */
static void give_way(struct sgp_node *node, struct sgp_core_link *link, bool other)
{
    if (!is_timed(node, link))
        return;
    bool late = other && node->now >= link->question.until;
    bool serves = can_answer(node, link) || drains(link) || link->question.filling;
    if (link->receiving.filling || (serves && !late)) /* a share comes first on its connection */
        return;
    uint32_t most = link->question.filling ? TURNS_OF_ARRIVAL_MAX : TURNS_MAX;
    if (late && node->seeking.turns < most)
        node->seeking.turns++;
    sgp_core_hang_up(node, link, SGP_E_CREDIT, SGP_REASON_CREDIT); /* withdraws the question */
}

static void ask(struct sgp_node *node, struct sgp_core_link *link)
{
    bool part = node->role->gives_updates; /* a copy must be newer than the present one */
    link->question.slot = node->seeking.slot;
    node->seeking.slot = SGP_SLOT_NONE;
    link->question.newer = part ? link->work.copy + 1 : 0;
    link->question.asked_at = node->now;
    link->question.until = node->now + (SGP_SEEK_NS << node->seeking.turns);
    node->seeking.turn = (uint32_t)(link - node->layout.links) - node->layout.out_count + 1;
    bool holds = part && link->work.held != SGP_ROUND_NONE && link->work.held == link->work.copy;
    link->question.digest = sgp_core_x_digest(node);
    sgp_core_send(node, link, SGP_ASK)->ask = (struct sgp_ask){.wants = true,
        .newer = link->question.newer,
        .holds = holds,
        .digest = link->question.digest};
}

/* Whether the node has estimates to compare, and expects no more of them. Until its time is over,
 * an answer that is arriving is expected, and so is one of a source that has not been heard yet. */
static bool has_compared(const struct sgp_node *node, const struct sgp_core_link *next)
{
    if (sgp_core_candidates(node) == 0)
        return false;
    bool all = sgp_core_asked(node) == NULL && next == NULL;
    SGP_EACH_IN (link, node)
        all = all && (link->liveness.heard != SGP_TIME_NEVER || link->retired);
    return all || node->now >= node->seeking.compares_until;
}

/* The node has what it needs. An answer that is still arriving would keep its buffer, and a liar
 * would keep it for days. */
static void adopt_compared(struct sgp_node *node)
{
    SGP_EACH_IN (link, node)
        if (link->question.filling)
            sgp_core_hang_up(node, link, SGP_E_CREDIT, SGP_REASON_CREDIT);
    sgp_core_adopt(node);
}

void sgp_core_seek(struct sgp_node *node)
{
    if (!node->seeking.wants || node->drained)
        return;
    bool all = node->role->gives_updates;
    give_up_checkpoints(node);
    struct sgp_core_link *next = next_source(node);
    if ((all && next != NULL) || sgp_core_asked(node) == NULL)
        sgp_core_set_aside(node);
    SGP_EACH_IN (link, node)
        give_way(node, link, next != NULL && !all);
    while (next != NULL && node->seeking.slot != SGP_SLOT_NONE &&
           (all || sgp_core_asked(node) == NULL)) {
        ask(node, next);
        next = all ? next_source(node) : NULL;
        if (next != NULL)
            sgp_core_set_aside(node);
    }
    if (has_compared(node, next))
        adopt_compared(node);
}

sgp_time sgp_core_answered_by(const struct sgp_node *node)
{
    sgp_time least = SGP_TIME_NEVER;
    for (uint32_t i = node->layout.out_count; node->seeking.wants && i < node->layout.link_count;
         i++) {
        const struct sgp_core_link *link = &node->layout.links[i];
        bool ahead = is_timed(node, link) && link->question.until > node->now;
        if (ahead && link->question.until < least)
            least = link->question.until;
    }
    return least;
}

/* A node without a past has nothing worth mixing into a trained fleet. While an in-neighbour that
 * could be asked may still connect, its patience does not start. */
static bool may_yet_ask(const struct sgp_node *node)
{
    bool may = false;
    SGP_EACH_IN (link, node) {
        if (can_answer(node, link))
            return false;
        may = may || !link->retired;
    }
    return may && !node->past.recorded && !node->config.seeks;
}

/* A draining source ends soon, or is malicious, so it has the time of one turn. The same applies if
 * a node asks that already takes part, because its source may lack an estimate itself. */
static bool awaits_answer(const struct sgp_node *node)
{
    const struct sgp_core_link *link = sgp_core_asked(node);
    if (link == NULL)
        return false;
    bool joins = node->state == SGP_NODE_JOINING;
    return link->question.filling || node->now < link->question.until ||
           (joins && sgp_core_living(link));
}

/* Whether a node that could start waits for an estimate first. Exact parameters on record are kept
 * unless the fleet is more than a cycle ahead. */
bool sgp_core_seeks(struct sgp_node *node)
{
    bool all = true, living = false;
    sgp_round kept = node->round;
    if (node->role->unique) /* no node has a newer model than the token */
        kept = SGP_ROUND_MAX;
    else if (!sgp_core_leads(node))
        kept += node->config.topology->rounds_per_cycle;
    SGP_EACH_LINK (link, node) {
        all = all && (link->liveness.heard != SGP_TIME_NEVER || link->retired);
        living = living || (can_answer(node, link) && !has_nothing(node, link));
    }
    bool ahead = sgp_core_reached(node, kept) > kept;
    if (node->past.restored && ahead && !node->seeking.wants &&
        node->seeking.until == SGP_TIME_NEVER) {
        sgp_core_want(node);
        node->again = true;
    }
    if (!node->seeking.wants)
        return false;
    if (sgp_core_follows(node)) /* a follower has nothing of its own */
        return true;
    if (node->seeking.until == SGP_TIME_NEVER && living && may_yet_ask(node))
        return true;
    if (node->seeking.until == SGP_TIME_NEVER)
        node->seeking.until = node->now + SGP_SEEK_NS;
    bool may_come = node->config.self > 0 && node->layout.link_count > node->layout.out_count;
    /* until a neighbour connects */
    if (node->config.one_beginning && may_come && !node->leaving.wanted)
        return true;
    bool hopeless = (all && !living) || node->now >= node->seeking.until;
    if (awaits_answer(node) || !hopeless)
        return true;
    if (sgp_core_candidates(node) > 0)
        sgp_core_adopt(node);
    else
        sgp_core_stop_seeking(node);
    return false;
}
