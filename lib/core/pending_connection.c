/* SPDX-License-Identifier: Apache-2.0 */
/* Pending: a second connection of a source whose first connection still exists.
 *
 * Anyone who reaches the port can claim a neighbour's name, and the fields of a greeting are no
 * proof. Therefore the first connection is not touched until the new greeting has passed every
 * check. Then it is replaced in two cases: it has ended, or it has been silent for two beats and
 * the new connection has the incarnation on record. Until then both connections exist, and the new
 * one gets no answer. A link has at most one such connection, for as long as a source waits for its
 * WELCOME. Beside it at most one further connection may exist. That one has not greeted yet, and
 * has as long for it as a first connection has.
 *
 * If the connection of an honest source broke at the source's end only, the source is let in after
 * two beats. If it also lost its incarnation, it is let in once the old connection is given up.
 * Between two nodes at rest no beats are due, so the old connection is probed.
 *
 * The rule: docs/rules/greeting.md */
#include "core/core.h"

static bool is_known(const struct sgp_core_link *link, const struct sgp_hello *hello)
{
    return hello->incarnation == link->memory.incarnation;
}

/* Close a connection that does not belong to the link. */
static void turn_away(
    struct sgp_node *node, struct sgp_core_link *link, uint64_t connection, enum sgp_reason reason)
{
    struct sgp_link id = {link->peer, link->direction, connection};
    struct sgp_noted *note = sgp_core_note(node, SGP_NOTE_TURNED_AWAY, link->peer);
    note->link = id;
    note->reason = reason;
    sgp_core_say_goodbye(node, &id, SGP_E_REPLACED, reason);
}

/* The same for one of its two pending connections, if there is one. */
static void end(
    struct sgp_node *node, struct sgp_core_link *link, uint64_t *connection, enum sgp_reason reason)
{
    if (*connection != 0)
        turn_away(node, link, *connection, reason);
    *connection = 0;
}

void sgp_core_end_pending(struct sgp_node *node, struct sgp_core_link *link, enum sgp_reason reason)
{
    end(node, link, &link->pending.caller, reason);
    end(node, link, &link->pending.connection, reason);
}

bool sgp_core_call(struct sgp_node *node, const struct sgp_link *id)
{
    struct sgp_core_link *link = sgp_core_find(node, id->peer, id->direction);
    sgp_assert(link != NULL && id->connection != 0);
    if (link->connection.id == 0 || link->direction == SGP_OUT)
        return false;
    sgp_core_mark_dirty(node, link);
    end(node, link, &link->pending.caller, SGP_REASON_REPLACED);
    link->pending.caller = id->connection;
    link->pending.called = node->now;
    return true;
}

/* A second connection has greeted. Of two such connections the last is kept, unless only the other
 * has a known incarnation. */
static void keep(struct sgp_node *node, struct sgp_core_link *link, uint64_t connection,
    const struct sgp_message *message)
{
    struct sgp_pending *pending = &link->pending;
    enum sgp_reason reason = sgp_core_judge(node, &message->pulse, &message->hello);
    bool better = pending->connection != 0 && is_known(link, &pending->hello) &&
                  !is_known(link, &message->hello);
    if (reason != SGP_REASON_NONE || better) {
        turn_away(node, link, connection, better ? SGP_REASON_REPLACED : reason);
        return;
    }
    end(node, link, &pending->connection, SGP_REASON_REPLACED);
    *pending = (struct sgp_pending){.connection = connection,
        .since = node->now,
        .pulse = message->pulse,
        .hello = message->hello};
    pending->hello.source = pending->hello.target =
        NULL; /* the strings are borrowed for the call */
    sgp_core_probe(node, link);
}

void sgp_core_pending(struct sgp_node *node, const struct sgp_event *event)
{
    const struct sgp_link *id = &event->link;
    struct sgp_core_link *link = sgp_core_find(node, id->peer, id->direction);
    bool calls = link != NULL && id->connection != 0 && link->pending.caller == id->connection;
    bool waits = link != NULL && id->connection != 0 && link->pending.connection == id->connection;
    if (!calls && !waits)
        return;
    sgp_core_mark_dirty(node, link);
    *(calls ? &link->pending.caller : &link->pending.connection) = 0;
    if (event->type == SGP_EVENT_DOWN)
        return;
    if (calls && event->type == SGP_EVENT_MESSAGE && event->message->type == SGP_HELLO) {
        keep(node, link, id->connection, event->message);
    } else { /* before its WELCOME the source can only say goodbye */
        bool farewell = event->type == SGP_EVENT_MESSAGE && event->message->type == SGP_GOODBYE;
        turn_away(node, link, id->connection, farewell ? SGP_REASON_LEAVING : SGP_REASON_PROTOCOL);
    }
}

/* When the first connection has been silent long enough for a known source to replace it. */
static sgp_time quiet_at(const struct sgp_core_link *link)
{
    bool heard =
        link->liveness.heard != SGP_TIME_NEVER && link->liveness.heard > link->connection.since;
    return (heard ? link->liveness.heard : link->connection.since) + SGP_QUIET_BEATS * SGP_BEAT_NS;
}

/* By then a caller has greeted. */
static sgp_time greeting_end(const struct sgp_core_link *link)
{
    return link->pending.caller != 0 ? link->pending.called + SGP_SILENCE_MIN_NS : SGP_TIME_NEVER;
}

bool sgp_core_gives_way(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return link->connection.id != 0 && link->pending.connection != 0 &&
           is_known(link, &link->pending.hello) && quiet_at(link) <= node->now;
}

void sgp_core_let_in(struct sgp_node *node, struct sgp_core_link *link)
{
    if (link->direction == SGP_OUT)
        return;
    if (greeting_end(link) <= node->now)
        end(node, link, &link->pending.caller, SGP_REASON_ABSENT);
    if (link->pending.connection == 0)
        return;
    const struct sgp_pending pending = link->pending;
    if (sgp_core_gives_way(node, link))
        sgp_core_hang_up(node, link, SGP_E_REPLACED, SGP_REASON_REPLACED);
    if (link->connection.id != 0) {
        if (pending.since + SGP_SILENCE_MIN_NS <= node->now)
            end(node, link, &link->pending.connection, SGP_REASON_REPLACED);
        return;
    }
    link->pending.connection = 0;
    struct sgp_message message = {
        .type = SGP_HELLO, .pulse = pending.pulse, .hello = pending.hello};
    message.hello.source = node->config.topology->nodes[link->peer].name;
    message.hello.target = node->config.topology->nodes[node->config.self].name;
    sgp_core_up(node, &(struct sgp_link){link->peer, link->direction, pending.connection});
    sgp_core_message(node, link, &message);
}

sgp_time sgp_core_pending_deadline(const struct sgp_core_link *link)
{
    if (link->direction == SGP_OUT)
        return SGP_TIME_NEVER;
    sgp_time least = greeting_end(link);
    if (link->pending.connection == 0)
        return least;
    if (link->connection.id == 0)
        return link->connection.since;
    sgp_time given_up = link->pending.since + SGP_SILENCE_MIN_NS;
    sgp_time quiet = is_known(link, &link->pending.hello) ? quiet_at(link) : SGP_TIME_NEVER;
    least = given_up < least ? given_up : least;
    return quiet < least ? quiet : least;
}
