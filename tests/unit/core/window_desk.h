/* SPDX-License-Identifier: Apache-2.0 */
/* A node in an exact cycle of two rounds, and what its neighbours give it. */
#ifndef WINDOW_DESK_H
#define WINDOW_DESK_H

#include "core_desk.h"

#include "sgp/generate.h"

static __attribute__((unused)) struct sgp_pulse pulse_of(
    const struct desk *desk, sgp_round round, sgp_round next, sgp_round then)
{
    struct sgp_pulse pulse = pulse_at(round, next);
    pulse.then_round = then;
    pulse.epoch = desk->node->exact.epoch;
    pulse.epoch.topology = desk->topology->digest;
    return pulse;
}

static __attribute__((unused)) void grant_round(struct desk *desk, sgp_round round)
{
    say(desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_CREDIT,
            .pulse = pulse_of(desk, 0, SGP_ROUND_NONE, 0),
            .credit = {.round = round}});
}

static __attribute__((unused)) void answer(
    struct desk *desk, uint64_t number, enum sgp_reason reason)
{
    say(desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_ACK,
            .pulse = pulse_of(desk, 0, SGP_ROUND_NONE, 0),
            .ack = {.number = number, .reason = reason}});
}

/* n0 of two that average directly, in two rounds for each piece: greeted both ways, its steps under way. */
static __attribute__((unused)) void open_cut(struct desk *desk, uint32_t pieces)
{
    struct sgp_generate_options options = {
        .family = "all-reduce-direct", .nodes = 2, .pieces = pieces};
    struct sgp_topology *topology = NULL;
    cr_assert(zero(int, sgp_generate(&options, NULL, &topology)));
    open_desk(desk, topology, config_of(topology));
    post_type(desk, SGP_EVENT_START);
    greet_out(desk, 1, pulse_of(desk, 0, SGP_ROUND_NONE, 0), 88, 0);
    greet_in(desk, 1, pulse_of(desk, 0, 0, 1), 88);
}

/* What the node does by itself: jobs, and ticks. */
static __attribute__((unused)) void settle_jobs(struct desk *desk)
{
    for (uint32_t i = 0; i < desk->effects.count; i++) {
        const struct sgp_effect effect = desk->items[i];
        if (effect.type == SGP_EFFECT_ABSORB)
            post(desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = effect.absorb.slot});
        else if (effect.type == SGP_EFFECT_PUBLISH)
            post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
        else
            continue;
        i = UINT32_MAX; /* other effects now */
    }
}

/* A share of a round, by the file, and what its source promises then. */
static __attribute__((unused)) void receive_as(
    struct desk *desk, uint32_t peer, sgp_round round, sgp_round next, sgp_round then)
{
    uint32_t count;
    const struct sgp_edge *edge =
        sgp_phase_in(sgp_topology_phase(desk->topology, round), 0, &count);
    while (edge->source != peer)
        edge++;
    struct sgp_slice slice = sgp_topology_values(desk->topology, edge, PARAMETERS);
    say(desk, peer, SGP_IN,
        (struct sgp_message){.type = SGP_SHARE,
            .pulse = pulse_of(desk, round, next, then),
            .share = {.number = (uint64_t)round + 1,
                .round = round,
                .fraction = edge->fraction,
                .slice = slice,
                .payload_bytes = 4 * slice.count}});
    deliver(desk, peer, 0);
}

static __attribute__((unused)) void receive_of(struct desk *desk, uint32_t peer, sgp_round round)
{
    receive_as(desk, peer, round, round + 1, round + 2);
}

/* Jobs are done as they come, and ticks are asked for. */
static __attribute__((unused)) void run_jobs(struct desk *desk)
{
    for (uint32_t steps = 0; steps < 8; steps++) {
        settle_jobs(desk);
        post_type(desk, SGP_EVENT_TICK);
    }
}

/* A cycle of two rounds, in the second of which n0 gives: the form of what it gives. */
static __attribute__((unused)) enum sgp_coding average(struct desk *desk, sgp_round round)
{
    struct sgp_message share = {.type = SGP_SHARE,
        .pulse = pulse_of(desk, round, round + 2, round + 4),
        .share = {.number = (uint64_t)round / 2 + 1,
            .round = round,
            .fraction = 1,
            .slice = {0, PARAMETERS},
            .payload_bytes = PAYLOAD}};
    post_type(desk, SGP_EVENT_TRAINED);
    settle_jobs(desk);
    say(desk, 1, SGP_IN, share);
    deliver(desk, 1, 0);
    settle_jobs(desk);
    grant_round(desk, round + 1);
    settle_jobs(desk);
    const struct sgp_core_link *out = sgp_core_find(desk->node, 1, SGP_OUT);
    const struct sgp_owed *owed = &out->owed[out->owed[1].exists];
    cr_assert(owed->exists && owed->sent, "round %lld", (long long)round);
    cr_assert(eq(i64, owed->share.round, round + 1));
    return owed->share.coding;
}

/* A share of the peer's, as the file has it in that round. */
static __attribute__((unused)) void receive_from(struct desk *desk, uint32_t peer, sgp_round round)
{
    uint32_t count;
    const struct sgp_phase *phase = sgp_topology_phase(desk->topology, round);
    const struct sgp_edge *edge = sgp_phase_in(phase, 0, &count);
    while (edge->source != peer)
        edge++;
    struct sgp_slice slice = sgp_topology_values(desk->topology, edge, PARAMETERS);
    struct sgp_message share = {.type = SGP_SHARE,
        .pulse = pulse_of(desk, round, round + 1, round + 2),
        .share = {.number = (uint64_t)round + 1,
            .round = round,
            .fraction = edge->fraction,
            .slice = slice,
            .payload_bytes = 4 * slice.count}};
    say(desk, peer, SGP_IN, share);
    deliver(desk, peer, 0);
    const struct sgp_effect *ack = find_sent(desk, SGP_ACK, peer);
    cr_assert(ack != NULL && ack->send.message.ack.reason == SGP_REASON_NONE, "n%u", peer);
}

/* Three neighbours stay in round 0 for longer than this node's patience, and then two give all of
 * their shares. */
static __attribute__((unused)) void open_impatient(struct desk *desk)
{
    struct sgp_generate_options options = {.family = "all-reduce-direct", .nodes = 4, .pieces = 2};
    struct sgp_topology *topology = NULL;
    cr_assert(zero(int, sgp_generate(&options, NULL, &topology)));
    struct sgp_node_config config = config_of(topology);
    config.patience = SGP_SECOND;
    open_desk(desk, topology, config);
    post_type(desk, SGP_EVENT_START);
    for (uint32_t peer = 1; peer < 4; peer++) {
        greet_out(desk, peer, pulse_of(desk, 0, SGP_ROUND_NONE, 0), 80 + peer, 0);
        greet_in(desk, peer, pulse_of(desk, 0, 0, 1), 80 + peer);
    }
    for (uint32_t beat = 0; beat < 3; beat++) {
        desk->now += SGP_SECOND;
        for (uint32_t peer = 1; peer < 4; peer++) {
            say_pulse(desk, peer, SGP_IN, pulse_of(desk, 0, 0, 1));
            say_pulse(desk, peer, SGP_OUT, pulse_of(desk, 0, SGP_ROUND_NONE, 0));
        }
    }
    for (uint32_t peer = 1; peer < 4; peer++)
        for (sgp_round round = 0; round < 2; round++)
            say(desk, peer, SGP_OUT,
                (struct sgp_message){.type = SGP_CREDIT,
                    .pulse = pulse_of(desk, 0, SGP_ROUND_NONE, 0),
                    .credit = {.round = round}});
    post_type(desk, SGP_EVENT_TRAINED);
    settle_jobs(desk);
    cr_assert(eq(i64, desk->node->round, 1));
    for (uint32_t peer = 1; peer < 3; peer++)
        for (sgp_round round = 0; round < 2; round++)
            receive_from(desk, peer, round);
}

#endif
