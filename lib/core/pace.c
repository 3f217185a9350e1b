/* SPDX-License-Identifier: Apache-2.0 */
/* Pace: how many rounds a minute this node makes beside its in-neighbours. Where nobody waits, a fast
 * node steps more often than a slow one, and the fixed point leans to its rows; steps that are divided
 * by the node's rate pull all alike (Assran and Rabbat, IEEE TAC 2020). Where nodes wait for one another, one that is alone
 * keeps to the pace that all had.
 * The rules: docs/rules/outgoing.md, docs/rules/round.md */
#include "core/core.h"

#define PACE_LEAST 0.125 /* of the learning rate, and its inverse: nobody is that much slower */
#define PACE_ROUNDS 8    /* fewer say nothing yet */
#define PACE_RECENT 16   /* rounds */
#define LEAST_NS (10 * SGP_MILLISECOND) /* a round in which nothing is computed */
#define LONE_SLOWER 8 /* a round alone lasts that part longer than one with others */

/* Rounds a second since `since`, or 0 while there are too few. */
static double rate(sgp_round rounds, sgp_time since, sgp_time now)
{
    bool known = rounds >= PACE_ROUNDS && now > since;
    return known ? (double)rounds * (double)SGP_SECOND / (double)(now - since) : 0;
}

void sgp_core_pace_end(struct sgp_node *node)
{
    sgp_round rounds = node->round - node->pace.round;
    node->pace.each = rounds > 0 ? (node->now - node->pace.since) / rounds : 0;
}

sgp_time sgp_core_own_round(const struct sgp_node *node)
{
    if (node->pace.each > 0)
        return node->pace.each;
    return node->received_share ? LEAST_NS : SGP_SECOND;
}

void sgp_core_pace_begin(struct sgp_node *node)
{
    node->pace.round = node->round;
    node->pace.since = node->now;
}

/* Whether the neighbour may still take part: it has not left for good, and is not through. */
static bool may_come_back(const struct sgp_core_link *link)
{
    bool left =
        link->connection.state == SGP_LINK_DOWN && link->connection.last_reason == SGP_REASON_LEFT;
    return !link->retired && !left && link->pulse.state != SGP_NODE_FINISHED;
}

/* Nobody takes part but this node, though others may. */
static bool is_alone(const struct sgp_node *node)
{
    bool expects = false;
    SGP_EACH_LINK (link, node) {
        if (sgp_core_peer_active(link))
            return false;
        expects = expects || may_come_back(link);
    }
    return expects;
}

/* The first rounds after a start or a pause say nothing yet. */
void sgp_core_pace_round(struct sgp_node *node)
{
    sgp_time took = node->now - node->round_since, mean = node->pace.together;
    if (took <= 0 || node->round - node->pace.round < PACE_ROUNDS || is_alone(node))
        return;
    if (node->pace.together_rounds < PACE_RECENT)
        node->pace.together_rounds++;
    if (node->pace.together_rounds > 1 && took > 2 * mean) /* somebody was missed */
        took = 2 * mean;
    node->pace.together = mean + (took - mean) / node->pace.together_rounds;
}

static bool takes_rounds_alone(const struct sgp_node *node)
{
    bool counts =
        !node->role->counts_steps && !sgp_core_at_own_pace(node) && !node->role->collective;
    bool known = node->pace.together_rounds >= PACE_ROUNDS;
    return node->state == SGP_NODE_TRAINING && counts && known && !node->leaving.wanted &&
           is_alone(node);
}

/* Its last round of mixing neither gave nor was given anything. A neighbour that is late, or away, is not waited for, and
 * may still come. */
static bool mixes_in_vain(const struct sgp_node *node)
{
    return node->state == SGP_NODE_SETTLING && node->pace.idle && !node->received_share &&
           sgp_core_at_own_pace(node) && !node->role->counts_steps;
}

sgp_time sgp_core_rests_until(const struct sgp_node *node)
{
    if (node->stage != SGP_STAGE_BEGIN)
        return 0;
    if (takes_rounds_alone(node))
        return node->pace.begun + node->pace.together + node->pace.together / LONE_SLOWER;
    if (mixes_in_vain(node))
        return node->pace.begun + LEAST_NS;
    return 0;
}

/* A pulse comes after link->pulse. What a node did before it joined, or before a pause, is not its pace. */
void sgp_core_pace_hear(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_pulse *pulse)
{
    bool goes_on = link->pulse.state == SGP_NODE_TRAINING && pulse->state == SGP_NODE_TRAINING &&
                   pulse->round >= link->pace.round;
    if (goes_on)
        return;
    link->pace.round = pulse->round;
    link->pace.since = node->now;
}

double sgp_core_pace(const struct sgp_node *node)
{
    double own = rate(node->round - node->pace.round, node->pace.since, node->now);
    if (!node->config.step_by_rate || own <= 0)
        return 1;
    double sum = own;
    uint32_t count = 1;
    SGP_EACH_IN (link, node) {
        if (!sgp_core_peer_active(link) || link->pulse.state != SGP_NODE_TRAINING)
            continue;
        double theirs =
            rate(link->pulse.round - link->pace.round, link->pace.since, link->liveness.heard);
        sum += theirs;
        count += theirs > 0;
    }
    double pace = sum / count / own;
    return pace < PACE_LEAST ? PACE_LEAST : pace > 1 / PACE_LEAST ? 1 / PACE_LEAST : pace;
}
