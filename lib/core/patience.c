/* SPDX-License-Identifier: Apache-2.0 */
/* Patience: how long a neighbour that is heard may keep this node waiting.
 *
 * The failure detector is elsewhere (watch.c). This file handles stragglers: neighbours that send
 * messages but make no progress. Their payload arrives too slowly, or is never acknowledged, or
 * their round does not end.
 *
 * A payload has a minimum rate, whatever its size. A source or target that falls below it is not
 * waited for until a whole payload has arrived. The right length of a round is unknown. A round
 * that takes far longer than the neighbour's longest one is reported. If a bound is configured, the
 * node does not wait beyond it, until the neighbour's next round that makes progress.
 *
 * The only consequence is that the neighbour is not waited for (sgp_core_is_late in facts.c). The
 * link stays, and mass moves in both directions as it can. No mass is created or lost.
 *
 * The rule: docs/rules/patience.md */
#include "core/core.h"

#define SGP_SLOW_FACTOR 8 /* as a multiple of the peer's longest round */

/* ---- payloads ---- */

void sgp_core_payload_begins(struct sgp_node *node, struct sgp_core_link *link)
{
    link->patience.window_since = node->now;
    link->patience.window_bytes = 0;
}

/* `bytes` of the payload have arrived so far. A window begins when enough bytes arrived in the
 * previous one. */
void sgp_core_payload_came(struct sgp_node *node, struct sgp_core_link *link, uint64_t bytes)
{
    const uint64_t enough = SGP_PAYLOAD_LEAST * (SGP_SILENCE_MAX_NS / SGP_SECOND);
    if (bytes < link->patience.window_bytes + enough)
        return;
    link->patience.window_since = node->now;
    link->patience.window_bytes = bytes;
}

sgp_time sgp_core_payload_end(const struct sgp_core_link *link)
{
    return link->patience.window_since + SGP_SILENCE_MAX_NS;
}

/* If the connection stays, the next window begins. */
void sgp_core_payload_trickles(struct sgp_node *node, struct sgp_core_link *link)
{
    link->patience.trickles = true;
    link->patience.window_since = node->now;
    (void)sgp_core_note_link(node, SGP_NOTE_TRICKLES, link);
}

/* By then, at the minimum rate, the owed share has arrived at its target, which acknowledges it at
 * once. An absent target is handled by the failure detector. Time on earlier connections counts
 * too, so a target gains none by reconnecting. */
sgp_time sgp_core_acknowledged_by(const struct sgp_core_link *link)
{
    const struct sgp_owed *owed = &link->owed[0];
    if (link->direction == SGP_IN || !owed->exists || !owed->sent || owed->refused != 0 ||
        link->connection.state != SGP_LINK_UP || link->patience.trickles)
        return SGP_TIME_NEVER;
    sgp_time seconds = (sgp_time)(owed->share.payload_bytes / SGP_PAYLOAD_LEAST);
    return owed->since - owed->spent + SGP_SILENCE_MAX_NS + seconds * SGP_SECOND;
}

/* ---- rounds ---- */

static bool takes_rounds(enum sgp_node_state state)
{
    return state == SGP_NODE_TRAINING || state == SGP_NODE_SETTLING;
}

/* Whether the peer has passed the round of what this node waits for without giving it. That is a
 * share that it promised and has a credit for, or a credit. Then further rounds are no progress. */
static bool withholds(
    const struct sgp_node *node, const struct sgp_core_link *link, const struct sgp_pulse *pulse)
{
    if (link->direction == SGP_IN)
        return link->receiving.slot[0] != SGP_SLOT_NONE && pulse->next_round != SGP_ROUND_NONE &&
               pulse->round > pulse->next_round;
    bool given = link->giving.credit[0] != SGP_ROUND_NONE || link->owed[0].exists;
    return !sgp_core_at_own_pace(node) && link->giving.announced[0] != SGP_ROUND_NONE &&
           pulse->round > link->giving.announced[0] && !given;
}

/* Whether a pulse shows progress toward the round that this node waits for. A peer that was not
 * waited for begins with its first pulse. A peer that is further behind than chance explains jumps
 * to the others' round, and its count is no progress. */
static bool gets_on(
    const struct sgp_node *node, const struct sgp_core_link *link, const struct sgp_pulse *pulse)
{
    const struct sgp_pulse *last = &link->pulse;
    bool begins = !sgp_core_peer_active(link) ||
                  (last->state == SGP_NODE_JOINING && pulse->state != SGP_NODE_JOINING);
    sgp_round left = node->round - pulse->round;
    bool near = sgp_core_at_own_pace(node) || left <= sgp_core_far_ahead(node) ||
                left <= (node->round - link->patience.furthest) / 2;
    return begins ||
           (pulse->round > link->patience.furthest && near && !withholds(node, link, pulse));
}

/* `pulse` follows link->pulse. Only rounds of training count for the longest round. */
void sgp_core_round_hear(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_pulse *pulse)
{
    const struct sgp_pulse *last = &link->pulse;
    if (gets_on(node, link, pulse)) {
        link->patience.furthest = pulse->round;
        link->patience.furthest_since = node->now;
        link->patience.overdue = false;
    }
    if (pulse->round == last->round && pulse->state == last->state)
        return;
    if (pulse->round > last->round && last->state == SGP_NODE_TRAINING) {
        sgp_time each = (node->now - link->patience.round_since) / (pulse->round - last->round);
        link->patience.longest_round =
            each > link->patience.longest_round ? each : link->patience.longest_round;
    }
    link->patience.round_since = node->now;
}

bool sgp_core_is_slow(const struct sgp_node *node, const struct sgp_core_link *link)
{
    sgp_time bound = SGP_SLOW_FACTOR * link->patience.longest_round;
    bool computes = link->connection.state == SGP_LINK_UP && takes_rounds(link->pulse.state) &&
                    link->pulse.computing;
    return computes && node->now - link->patience.round_since >
                           (bound > SGP_SILENCE_MAX_NS ? bound : SGP_SILENCE_MAX_NS);
}

/* A peer that waits itself has twice the time, so that the node for which it waits is found
 * first. */
sgp_time sgp_core_overdue_at(const struct sgp_node *node, const struct sgp_core_link *link)
{
    bool judged = node->config.patience > 0 && !link->patience.overdue &&
                  link->connection.state == SGP_LINK_UP && sgp_core_peer_active(link) &&
                  takes_rounds(sgp_core_state(node));
    sgp_time patience = node->config.patience * (link->pulse.computing ? 1 : 2);
    return judged ? link->patience.furthest_since + patience : SGP_TIME_NEVER;
}

void sgp_core_lose_patience(struct sgp_node *node, struct sgp_core_link *link)
{
    if (sgp_core_acknowledged_by(link) <= node->now)
        sgp_core_payload_trickles(node, link);
    else if (link->direction == SGP_OUT && !link->owed[0].exists)
        link->patience.trickles = false;
    if (sgp_core_overdue_at(node, link) > node->now)
        return;
    link->patience.overdue = true;
    (void)sgp_core_note_link(node, SGP_NOTE_OVERDUE, link);
}
