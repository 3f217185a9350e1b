/* SPDX-License-Identifier: Apache-2.0 */
/* Watching: the failure detector, dialling, and due heartbeats; also which links later steps must
 * look at, and when.
 *
 * The rule: docs/rules/silence.md */
#include "core/core.h"

/* ---- heartbeats ---- */

/* Whether a node sends heartbeats to another. An inactive node sends them to active ones, so that
 * they notice when its connection is dead. Otherwise no node would dial again, and it would never
 * hear of the others. */
static bool beats(enum sgp_node_state own, enum sgp_node_state other)
{
    bool lingers = own == SGP_NODE_PAUSED || own == SGP_NODE_DRAINING || own == SGP_NODE_FINISHED;
    return sgp_core_state_is_active(own) || (lingers && sgp_core_state_is_active(other));
}

/* A node that probes a link sends heartbeats there, and the peer answers the second of two. So no
 * answer is answered in turn, however long it was under way. */
static bool says_beats(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return beats(sgp_core_state(node), link->pulse.state) ||
           link->liveness.probed != SGP_TIME_NEVER;
}

/* The longest interval between two messages on a link with heartbeats. */
static sgp_time beat_pace(enum sgp_node_state own, enum sgp_node_state other)
{
    return sgp_core_state_is_active(own) && sgp_core_state_is_active(other) ? SGP_BEAT_NS
                                                                            : SGP_BEAT_IDLE_NS;
}

/* Whether a changed promise must be stated at once. An inactive node waits for no share, and would
 * only be woken in each round. It hears promises with the heartbeats, and at once when it
 * returns. */
static bool is_urgent(enum sgp_node_state own, enum sgp_node_state other)
{
    return sgp_core_state_is_active(other) || !sgp_core_state_is_active(own);
}

/* The peer finds this node's last round by itself. */
static bool finds_end(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return link->greeting.topology == node->config.fingerprint.topology &&
           sgp_core_last_follows(node);
}

void sgp_core_announce(struct sgp_node *node)
{
    enum sgp_node_state own = sgp_core_state(node);
    SGP_EACH_OF (link, node, SGP_SET_DIRTY) {
        if (link->connection.state != SGP_LINK_UP)
            continue;
        bool answers = link->liveness.heard == node->now && link->liveness.asked;
        bool due = (says_beats(node, link) || answers) &&
                   node->now - link->connection.said >= beat_pace(own, link->pulse.state);
        bool stops = node->role->unique && link->pulse.state == SGP_NODE_DRAINING;
        bool broken = link->direction == SGP_OUT && (is_urgent(own, link->pulse.state) || stops) &&
                      sgp_core_promise(node, link) != link->giving.announced[0];
        bool turned = sgp_core_says_ended(node) != link->end.told ||
                      (sgp_core_last_named(node) != link->end.named && !finds_end(node, link));
        bool missed = link->direction == SGP_OUT && link->giving.missed;
        if (due || broken || turned || missed || node->changed)
            (void)sgp_core_send(node, link, SGP_BEAT);
        if (missed)
            link->giving.missed = false;
    }
    node->changed = false;
}

/* ---- failure detection ---- */

/* A finished node continues to dial, because a node that rejoins needs to hear of the end, and
 * needs the model. */
static bool wants_connection(const struct sgp_node *node, const struct sgp_core_link *link)
{
    bool wants = (!node->drained && !link->retired) || link->owed[0].exists;
    return wants && !sgp_core_is_pledged(node, link);
}

/* The file no longer has this edge, and nothing on it remains to be settled. */
static bool is_over(const struct sgp_core_link *link)
{
    return link->retired && link->direction == SGP_OUT && link->connection.id != 0 &&
           !link->owed[0].exists && !link->estimate.asks && link->estimate.slot == SGP_SLOT_NONE;
}

static bool receives(const struct sgp_core_link *link)
{
    return link->direction == SGP_IN && (link->receiving.filling || link->question.filling);
}

/* A target may keep a source waiting for SGP_SILENCE_MIN_NS before it gives its reason
 * (pending_connection.c). */
static sgp_time greeting_end(const struct sgp_core_link *link)
{
    sgp_time more = link->direction == SGP_OUT ? SGP_BEAT_NS : 0;
    return link->connection.since + SGP_SILENCE_MIN_NS + more;
}

/* When a silence proves that the peer is away. An active peer always sends heartbeats. An inactive
 * peer that is probed must have left probes unanswered, because before the probe no heartbeats may
 * have been due. */
static sgp_time silent_at(const struct sgp_node *node, const struct sgp_core_link *link)
{
    sgp_time at = link->liveness.heard + sgp_core_silence(link);
    if (sgp_core_state_is_active(link->pulse.state))
        return at;
    if (link->liveness.probed == SGP_TIME_NEVER)
        return beats(link->pulse.state, sgp_core_state(node)) ? at : SGP_TIME_NEVER;
    sgp_time answered = link->liveness.probed + SGP_QUIET_BEATS * SGP_BEAT_IDLE_NS + SGP_BEAT_NS;
    return answered > at ? answered : at;
}

/* When silence becomes absence. Heartbeats do not keep a payload alive that arrives too slowly,
 * because it occupies a buffer. Only in an exact cycle do they. The time for a payload does not
 * depend on the peer's pace, because a bandwidth-bound link has to retransmit losses. */
static sgp_time absent_at(const struct sgp_node *node, const struct sgp_core_link *link)
{
    bool judged =
        link->liveness.heard != SGP_TIME_NEVER && !link->liveness.absent && !node->drained;
    sgp_time at = judged ? silent_at(node, link) : SGP_TIME_NEVER;
    if (receives(link) && !node->drained && sgp_core_payload_end(link) < at)
        at = sgp_core_payload_end(link);
    bool greeting = link->connection.state == SGP_LINK_CONNECTING;
    return greeting && greeting_end(link) < at ? greeting_end(link) : at;
}

/* An exact cycle waits for the share all the same. If the connection ended, the share would begin
 * again, and at a rate below the least it would never arrive. */
static bool may_take_long(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return node->role->collective && link->receiving.filling;
}

/* A peer whose new connection replaces this one in the same step is not absent. */
static void fall_silent(struct sgp_node *node, struct sgp_core_link *link)
{
    bool replaced = sgp_core_gives_way(node, link);
    bool known = !replaced && link->liveness.heard != SGP_TIME_NEVER && !link->liveness.absent &&
                 node->now - link->liveness.heard >= sgp_core_silence(link);
    if (known) {
        link->liveness.absent = true;
        (void)sgp_core_note_link(node, SGP_NOTE_ABSENT, link);
    } else if (receives(link) && sgp_core_payload_end(link) <= node->now) {
        sgp_core_payload_trickles(node, link);
        if (may_take_long(node, link))
            return;
    }
    if (link->connection.id != 0 && !replaced)
        sgp_core_hang_up(node, link, SGP_E_ABSENT, SGP_REASON_ABSENT);
}

void sgp_core_watch(struct sgp_node *node)
{
    SGP_EACH_OF (link, node, SGP_SET_ENDING) {
        if (absent_at(node, link) <= node->now)
            fall_silent(node, link);
        sgp_core_let_in(node, link);
        sgp_core_lose_patience(node, link);
        if (is_over(link)) {
            sgp_core_hang_up(node, link, SGP_E_CLOSED, SGP_REASON_TOPOLOGY);
            link->liveness.heard = SGP_TIME_NEVER;
        }
        if (link->connection.redial <= node->now && wants_connection(node, link)) {
            struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_DIAL);
            effect->dial.peer = link->peer;
            link->connection.redial = SGP_TIME_NEVER;
        }
    }
}

static sgp_time link_deadline(const struct sgp_node *node, const struct sgp_core_link *link)
{
    sgp_time least = absent_at(node, link), pending = sgp_core_pending_deadline(link);
    least = pending < least ? pending : least;
    sgp_time overdue = sgp_core_overdue_at(node, link), owed = sgp_core_acknowledged_by(link);
    least = overdue < least ? overdue : least;
    least = owed < least ? owed : least;
    if (link->connection.redial < least && wants_connection(node, link))
        least = link->connection.redial;
    enum sgp_node_state own = sgp_core_state(node);
    bool says = link->connection.state == SGP_LINK_UP && says_beats(node, link);
    sgp_time due =
        says ? link->connection.said + beat_pace(own, link->pulse.state) : SGP_TIME_NEVER;
    return due < least ? due : least;
}

/* ---- the link index ---- */

static bool promises(const struct sgp_core_link *link)
{
    return link->direction == SGP_IN && link->receiving.promise[0] != SGP_ROUND_NONE;
}

static bool is_near(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return promises(link) && link->receiving.promise[0] <= node->round + 1;
}

static uint32_t sets_of_out(const struct sgp_core_link *link)
{
    return (uint32_t)link->owed[0].exists << SGP_SET_OWING |
           (uint32_t)link->estimate.asks << SGP_SET_ASKING |
           (uint32_t)link->giving.answer_due << SGP_SET_TO_ANSWER;
}

static uint32_t sets_of_in(const struct sgp_node *node, const struct sgp_core_link *link)
{
    bool near = is_near(node, link);
    bool granted_soon = near || (promises(link) && sgp_core_grants_all(node));
    bool without = granted_soon && link->connection.state == SGP_LINK_UP &&
                   sgp_core_lacks_buffer(link) != SGP_ROUND_NONE;
    return (uint32_t)near << SGP_SET_NEAR | (uint32_t)without << SGP_SET_WITHOUT_BUFFER;
}

/* The sets in which a link must be, one bit for each set. */
static uint32_t sets_of(const struct sgp_node *node, const struct sgp_core_link *link)
{
    bool ending = link->retired && link->connection.id != 0;
    return (link->direction == SGP_OUT ? sets_of_out(link) : sets_of_in(node, link)) |
           (uint32_t)ending << SGP_SET_ENDING;
}

static void index_link(struct sgp_node *node, uint32_t index)
{
    const struct sgp_core_link *link = &node->layout.links[index];
    struct sgp_link_index *link_index = &node->layout.link_index;
    uint64_t sets = sets_of(node, link), *word = link_index->sets + index / 64;
    for (uint32_t set = 0; set < SGP_SET_COUNT; set++, word += link_index->words)
        *word = (*word & ~((uint64_t)1 << index % 64)) | (sets >> set & 1) << index % 64;
    bool later = promises(link) && !is_near(node, link);
    link_index->promised[index] = later ? link->receiving.promise[0] : SGP_ROUND_MAX;
    link_index->due[index] = link_deadline(node, link);
}

void sgp_core_index_links(struct sgp_node *node)
{
    struct sgp_link_index *link_index = &node->layout.link_index;
    sgp_time least = sgp_core_due(node);
    bool again = false;
    for (uint32_t i = sgp_core_next(node, SGP_SET_DIRTY, 0); i < node->layout.link_count;
         i = sgp_core_next(node, SGP_SET_DIRTY, i + 1)) {
        index_link(node, i);
        again = again || i == link_index->first_due;
        if (link_index->due[i] < link_index->due[link_index->first_due])
            link_index->first_due = i;
    }
    if (!again || sgp_core_due(node) <= least)
        return;
    /* the link that was due first is due later now */
    for (uint32_t i = 0; i < node->layout.link_count; i++)
        if (link_index->due[i] < link_index->due[link_index->first_due])
            link_index->first_due = i;
}

/* The sets in which a link is. */
static uint32_t memberships(const struct sgp_link_index *link_index, uint32_t index)
{
    const uint64_t *word = link_index->sets + index / 64;
    uint32_t sets = 0;
    for (uint32_t set = 0; set < SGP_SET_COUNT; set++, word += link_index->words)
        sets |= (uint32_t)(*word >> index % 64 & 1) << set;
    return sets;
}

bool sgp_core_is_indexed(const struct sgp_node *node)
{
    const struct sgp_link_index *link_index = &node->layout.link_index;
    sgp_time least = sgp_core_due(node);
    for (uint32_t i = 0; i < node->layout.link_count; i++) {
        const struct sgp_core_link *link = &node->layout.links[i];
        uint32_t in = memberships(link_index, i);
        bool dirty = (in >> SGP_SET_DIRTY & 1) != 0;
        if (!dirty && (sets_of(node, link) & ~in) != 0)
            return false;
        if (link_index->due[i] != link_deadline(node, link) || link_index->due[i] < least)
            return false;
    }
    return true;
}
