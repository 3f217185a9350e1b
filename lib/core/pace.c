/* SPDX-License-Identifier: Apache-2.0 */
/* Pace: the rate of rounds of this node compared with its in-neighbours. If nodes do not wait, a
 * fast node steps more often than a slow one, and the fixed point shifts toward its data. Steps
 * that are divided by the node's rate remove that bias (Assran and Rabbat, IEEE TAC 2020). If nodes
 * wait for one another, a node without neighbours keeps the pace that all had.
 *
 * The rules: docs/rules/outgoing.md, docs/rules/round.md */
#include "core/core.h"

/* bound for the factor of the learning rate; its inverse is the other bound */
#define PACE_LEAST 0.125
#define PACE_ROUNDS 8                   /* fewer rounds are not significant */
#define PACE_RECENT 16                  /* number of rounds */
#define LEAST_NS (10 * SGP_MILLISECOND) /* length of a round without computation */
#define LONE_SLOWER 8 /* a round alone takes longer by this part of a round with others */

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

/* Whether the neighbour may still take part: it has neither left for good nor finished. */
static bool may_come_back(const struct sgp_core_link *link)
{
    bool left =
        link->connection.state == SGP_LINK_DOWN && link->connection.last_reason == SGP_REASON_LEFT;
    return !link->retired && !left && link->pulse.state != SGP_NODE_FINISHED;
}

/* No other node takes part, although some may return. */
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

/* No source of this relay trains, or is past its round, although some may return. */
static bool relays_nothing(const struct sgp_node *node)
{
    bool expects = false;
    SGP_EACH_IN (link, node)
        expects = expects || may_come_back(link);
    return expects && !sgp_core_others_train(node) && sgp_core_round_of_others(node) <= node->round;
}

/* The first rounds after a start or a pause are not significant. */
void sgp_core_pace_round(struct sgp_node *node)
{
    sgp_time took = node->now - node->round_since, mean = node->pace.together;
    if (took <= 0 || node->round - node->pace.round < PACE_ROUNDS || is_alone(node))
        return;
    if (node->pace.together_rounds < PACE_RECENT)
        node->pace.together_rounds++;
    bool known = node->pace.together_rounds > 1;
    if (known && took > 2 * mean) /* a neighbour was missing */
        took = 2 * mean;
    if (known && node->pace.together_rounds <= PACE_ROUNDS && mean > 2 * took)
        mean = 2 * took; /* it was missing in one of the first rounds, or this machine slept */
    node->pace.together = mean + (took - mean) / node->pace.together_rounds;
}

static bool takes_rounds_alone(const struct sgp_node *node)
{
    bool counts = !node->role->counts_steps && !node->role->collective;
    if (node->state != SGP_NODE_TRAINING || !counts || node->leaving.wanted)
        return false;
    if (sgp_core_at_own_pace(node))
        return sgp_core_is_relay(node) && relays_nothing(node);
    return is_alone(node);
}

static double rate_of(const struct sgp_core_link *link)
{
    return rate(link->pulse.round - link->pace.round, link->pace.since, link->liveness.heard);
}

/* The length of a round of the sources, when they were heard. A second until eight rounds of one of
 * them are known. */
static sgp_time round_of_sources(const struct sgp_node *node)
{
    double sum = 0;
    uint32_t count = 0;
    SGP_EACH_IN (link, node) {
        double theirs = rate_of(link);
        sum += theirs;
        count += theirs > 0;
    }
    return count > 0 ? (sgp_time)((double)SGP_SECOND * count / sum) : SGP_SECOND;
}

/* How long a round with others takes, or 0 if that is not known. A relay at its own pace makes a
 * round for each share, and takes several at once if it is behind, so its own rounds tell
 * nothing. */
static sgp_time round_with_others(const struct sgp_node *node)
{
    if (sgp_core_at_own_pace(node))
        return round_of_sources(node);
    return node->pace.together_rounds >= PACE_ROUNDS ? node->pace.together : 0;
}

/* Its last round of mixing gave nothing and received nothing. A late or absent neighbour is not
 * waited for, but may still give. */
static bool mixes_in_vain(const struct sgp_node *node)
{
    return node->state == SGP_NODE_SETTLING && node->pace.idle && !node->received_share &&
           sgp_core_at_own_pace(node) && !node->role->counts_steps;
}

sgp_time sgp_core_rests_until(const struct sgp_node *node)
{
    if (node->stage != SGP_STAGE_BEGIN)
        return 0;
    if (takes_rounds_alone(node)) {
        sgp_time each = round_with_others(node), since = node->pace.since;
        sgp_time begun = node->pace.begun > since ? node->pace.begun : since;
        return begun + each + each / LONE_SLOWER;
    }
    if (mixes_in_vain(node))
        return node->pace.begun + LEAST_NS;
    return 0;
}

/* `pulse` follows link->pulse. The rounds of a node before it joined, or before a pause, are not
 * counted in its pace. */
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
        double theirs = rate_of(link);
        sum += theirs;
        count += theirs > 0;
    }
    double pace = sum / count / own;
    return pace < PACE_LEAST ? PACE_LEAST : pace > 1 / PACE_LEAST ? 1 / PACE_LEAST : pace;
}
