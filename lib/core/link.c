/* SPDX-License-Identifier: Apache-2.0 */
/* Links: heartbeats of a neighbour, and connections that begin and end.
 *
 * A link is one directed edge with at most one connection. The failure detector of a link uses only
 * that link. A peer that can reach this node may still be unreachable from it.
 *
 * The rule: docs/rules/silence.md */
#include "core/core.h"

#define INTERVALS_PER_WINDOW 32

/* ---- failure detection ---- */

/* Measure the peer's own pace: its silences while it took part. Silences of a pause or an absence
 * do not count. Nor does a silence so long that this node would have detected an absence: then this
 * node itself was suspended. */
static void note_interval(struct sgp_core_link *link, sgp_time now)
{
    if (link->liveness.heard == SGP_TIME_NEVER || link->liveness.absent ||
        !sgp_core_state_is_active(link->pulse.state))
        return;
    sgp_time interval = now - link->liveness.heard;
    if (interval >= sgp_core_silence(link))
        return;
    if (interval > link->liveness.longest[0])
        link->liveness.longest[0] = interval;
    if (++link->liveness.intervals == INTERVALS_PER_WINDOW) {
        link->liveness.longest[1] = link->liveness.longest[0];
        link->liveness.longest[0] = 0;
        link->liveness.intervals = 0;
    }
}

/* Reject a peer. It counts as never heard, so no node waits for it. */
void sgp_core_refuse(
    struct sgp_node *node, struct sgp_core_link *link, int code, enum sgp_reason reason)
{
    sgp_core_note_link(node, SGP_NOTE_REFUSED, link)->reason = reason;
    link->liveness.heard = SGP_TIME_NEVER;
    link->connection.backoff = SGP_DIAL_MAX_NS;
    sgp_core_hang_up(node, link, code, reason);
}

/* A peer that greets may have lost its other connection as well. A peer that takes part again says
 * so on its other connection, too, if there is one. */
static void expect_to_hear(struct sgp_node *node, const struct sgp_core_link *from)
{
    struct sgp_core_link *link = sgp_core_find(node, from->peer, SGP_OUT);
    if (link == NULL || link->connection.state != SGP_LINK_UP ||
        sgp_core_state_is_active(link->pulse.state))
        return;
    bool greets = from->connection.state == SGP_LINK_CONNECTING;
    if (greets || sgp_core_state_is_active(from->pulse.state))
        sgp_core_probe(node, link);
}

struct sgp_verdict sgp_core_hear(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_pulse *pulse)
{
    enum sgp_reason reason = pulse != NULL ? sgp_core_judge_pulse(node, pulse) : SGP_REASON_NONE;
    if (reason == SGP_REASON_RANGE)
        return sgp_hangs_up(SGP_E_PROTOCOL, reason);
    if (reason != SGP_REASON_NONE)
        return sgp_refuses(SGP_E_MODEL, reason);
    if (pulse != NULL && link->connection.state == SGP_LINK_UP)
        sgp_core_hear_topology(node, link, pulse->epoch.topology);
    note_interval(link, node->now);
    link->liveness.asked =
        link->liveness.heard != SGP_TIME_NEVER && link->connection.said < link->liveness.heard;
    link->liveness.heard = node->now;
    link->liveness.probed = SGP_TIME_NEVER;
    if (link->liveness.absent) {
        link->liveness.absent = false;
        (void)sgp_core_note(node, SGP_NOTE_BACK, link->peer);
    }
    if (pulse == NULL)
        return sgp_fine();
    sgp_core_pace_hear(node, link, pulse);
    sgp_core_round_hear(node, link, pulse);
    link->pulse = *pulse;
    if (link->connection.state == SGP_LINK_UP)
        sgp_core_accept_end(node, link);
    if (link->direction == SGP_IN)
        expect_to_hear(node, link);
    return sgp_fine();
}

/* ---- connections ---- */

/* The connection is gone, whichever end closed it. Clear everything that it left unfinished. */
static void disconnect(struct sgp_node *node, struct sgp_core_link *link)
{
    sgp_core_mark_dirty(node, link);
    link->connection.id = 0;
    link->connection.state = SGP_LINK_DOWN;
    link->connection.since = node->now;
    link->liveness.probed = SGP_TIME_NEVER;
    link->giving.credit[0] = link->giving.credit[1] = SGP_ROUND_NONE;
    if (link->owed[0].sent)
        link->owed[0].spent += node->now - link->owed[0].since;
    link->owed[0].sent = link->owed[1].sent = false;
    link->owed[0].refused = 0;
    if (link->owed[0].is_void)
        sgp_core_forget_unsent(node, link);
    link->end.told = false;
    link->end.named = 0;
    link->end.replies = 0;
    link->bequest.declined = false;
    link->bequest.handed = 0;
    sgp_core_unstage(node, link);
    link->receiving.filling = false;
    sgp_core_end_fold(node, link);
    while (link->receiving.slot[0] != SGP_SLOT_NONE)
        sgp_core_unreserve(node, link);
    sgp_core_estimate_down(node, link);
    if (link->direction == SGP_IN)
        return;
    double spread = 0.5 + 0.5 * sgp_random_double(&node->random);
    link->connection.redial = node->now + (sgp_time)((double)link->connection.backoff * spread);
    link->connection.backoff = 2 * link->connection.backoff < SGP_DIAL_MAX_NS
                                   ? 2 * link->connection.backoff
                                   : SGP_DIAL_MAX_NS;
}

void sgp_core_hang_up(
    struct sgp_node *node, struct sgp_core_link *link, int code, enum sgp_reason reason)
{
    struct sgp_link id = {link->peer, link->direction, link->connection.id};
    sgp_core_say_goodbye(node, &id, code, reason);
    link->connection.last_error = code;
    link->connection.last_reason = reason;
    disconnect(node, link);
}

void sgp_core_up(struct sgp_node *node, const struct sgp_link *id)
{
    struct sgp_core_link *link = sgp_core_find(node, id->peer, id->direction);
    sgp_assert(link != NULL && id->connection != 0);
    sgp_core_mark_dirty(node, link);
    if (link->connection.id != 0)
        sgp_core_hang_up(node, link, SGP_E_REPLACED, SGP_REASON_REPLACED);
    link->connection.id = id->connection;
    link->connection.state = SGP_LINK_CONNECTING;
    link->connection.since = node->now;
    link->connection.redial = SGP_TIME_NEVER;
    if (link->direction == SGP_IN)
        return;
    if (sgp_core_is_pledged(node, link)) {
        sgp_core_hang_up(node, link, SGP_E_CLOSED, SGP_REASON_LEAVING);
        return;
    }
    struct sgp_message *message = sgp_core_send(node, link, SGP_HELLO);
    message->hello = (struct sgp_hello){
        .source = node->config.topology->nodes[node->config.self].name,
        .target = node->config.topology->nodes[link->peer].name,
        .incarnation = node->config.incarnation,
        .parameters = node->config.parameters,
        .fingerprint = node->config.fingerprint,
        .target_incarnation = link->memory.incarnation,
        .acknowledged = link->memory.acknowledged,
    };
}

void sgp_core_down(struct sgp_node *node, struct sgp_core_link *link, int code)
{
    if (link->connection.state == SGP_LINK_UP || link->connection.last_error != code)
        sgp_core_note_link(node, SGP_NOTE_DOWN, link)->code = code;
    link->connection.last_error = code;
    disconnect(node, link);
}

void sgp_core_goodbye(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_goodbye *goodbye)
{
    struct sgp_noted *note = sgp_core_note_link(node, SGP_NOTE_DOWN, link);
    note->code = SGP_E_CLOSED;
    note->reason = goodbye->reason;
    enum sgp_reason reason = goodbye->reason;
    /* The peer refused this share, and says so by closing the connection. */
    bool counts = link->owed[0].exists && !link->owed[0].is_void;
    if (link->direction == SGP_OUT && counts && link->owed[0].sent && reason == SGP_REASON_RANGE)
        sgp_core_take_back(node, link, reason);
    /* The peer acknowledged every accepted share before, or when it greeted. A token does not wait
     * for the peer to return. */
    bool greeted_before = link->direction == SGP_OUT && link->connection.state == SGP_LINK_UP;
    bool returns = reason == SGP_REASON_LEFT || node->role->unique;
    counts = link->owed[0].exists && !link->owed[0].is_void;
    if (greeted_before && counts && link->inquiry.disputed == 0 && returns)
        sgp_core_take_back(node, link, reason);
    /* the peer removed this edge, or moved: it is not waited for */
    if (reason == SGP_REASON_TOPOLOGY)
        link->liveness.heard = SGP_TIME_NEVER;
    bool passing =
        reason == SGP_REASON_ABSENT || reason == SGP_REASON_CHECKSUM || reason == SGP_REASON_CREDIT;
    bool restarts = reason == SGP_REASON_LEAVING && link->connection.state == SGP_LINK_UP;
    if (!passing && !restarts) /* immediate dialling would not change the reason */
        link->connection.backoff = SGP_DIAL_MAX_NS;
    if (!passing &&
        link->connection.state == SGP_LINK_CONNECTING) /* a refusal proves no neighbour */
        link->liveness.heard = SGP_TIME_NEVER;
    sgp_core_hang_up(node, link, SGP_E_CLOSED, SGP_REASON_LEAVING);
    link->connection.last_reason = reason;
}
