/* SPDX-License-Identifier: Apache-2.0 */
/* What the core's suites share: one real node whose peers are played by the test. Plain functions, one
 * desk a test. */
#ifndef CORE_DESK_H
#define CORE_DESK_H

#include <criterion/criterion.h>
#include <assertions.h>
#include <errno.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "sgp/driver.h"
#include "sgp/node.h"

#define PARAMETERS 10
#define PAYLOAD (4u * PARAMETERS)

static const struct sgp_fingerprint prints = {.shape = 1,
    .loss = 2,
    .classes = 3,
    .scaling = 4,
    .method = 1,
    .topology = 5,
    .learning_rate = 0.1,
    .batch = 32};

/* One node under test, and what its last step asked for. */
struct desk {
    struct sgp_fingerprint peers; /* what all of them say of their model */
    struct sgp_topology *topology;
    struct sgp_node *node;
    struct sgp_effects effects;
    struct sgp_effect items[1024];
    sgp_time now;
    uint64_t connections;
    uint64_t link_of[16][3]; /* connection by peer and direction */
    uint32_t codings;        /* that peers say they decode */
};

static __attribute__((unused)) struct sgp_topology *topology_of(
    uint32_t nodes, uint32_t phases, const struct sgp_edge *const *edges, const uint32_t *counts)
{
    struct sgp_topology_node names[8] = {0};
    for (uint32_t i = 0; i < nodes; i++) {
        names[i].name[0] = 'n';
        names[i].name[1] = (char)('0' + i);
    }
    struct sgp_topology *topology = NULL;
    cr_assert(eq(int, sgp_topology_create(names, nodes, NULL, &topology), 0));
    for (uint32_t p = 0; p < phases; p++)
        cr_assert(eq(int,
            sgp_topology_add_phase(topology, "phase", 1, false, edges[p], counts[p], NULL), 0));
    cr_assert(eq(int, sgp_topology_seal(topology, NULL), 0));
    return topology;
}

/* Two nodes that give to each other in every round. */
static __attribute__((unused)) struct sgp_topology *pair(void)
{
    static const struct sgp_edge both[] = {
        {0, 1, SGP_FRACTION_DEFAULT}, {1, 0, SGP_FRACTION_DEFAULT}};
    const struct sgp_edge *edges[] = {both};
    const uint32_t counts[] = {2};
    return topology_of(2, 1, edges, counts);
}

static __attribute__((unused)) struct sgp_node_config config_of(const struct sgp_topology *topology)
{
    return (struct sgp_node_config){
        .topology = topology,
        .self = 0,
        .method = sgp_method_find("sgp"),
        .incarnation = 77,
        .seed = 1,
        .parameters = PARAMETERS,
        .fingerprint = prints,
        .rounds = 100,
        .local_steps = 1,
        .final_cycles = 2,
        .start = SGP_START_ALL,
        .weight_least = 0.5,
    };
}

static __attribute__((unused)) void open_desk(
    struct desk *desk, struct sgp_topology *topology, struct sgp_node_config config)
{
    memset(desk, 0, sizeof *desk);
    desk->topology = topology;
    desk->peers = prints;
    desk->effects = (struct sgp_effects){.items = desk->items, .capacity = 1024};
    desk->now = SGP_SECOND;
    cr_assert(eq(int, sgp_node_create(&config, &desk->node), 0));
}

/* The node's process ends, and the next one begins with this. */
static __attribute__((unused)) void begin_again(
    struct desk *desk, const struct sgp_node_config *config)
{
    struct sgp_node *again;
    cr_assert(zero(int, sgp_node_create(config, &again)));
    sgp_node_destroy(desk->node);
    desk->node = again;
}

static __attribute__((unused)) void close_desk(struct desk *desk)
{
    sgp_node_destroy(desk->node);
    sgp_topology_destroy(desk->topology);
}

static __attribute__((unused)) void post(struct desk *desk, struct sgp_event event)
{
    event.now = desk->now;
    sgp_node_step(desk->node, &event, &desk->effects);
    cr_assert(sgp_core_is_indexed(desk->node));
}

static __attribute__((unused)) void post_type(struct desk *desk, enum sgp_event_type type)
{
    post(desk, (struct sgp_event){.type = type});
}

/* The SKETCH job is done; all estimates on the desk have the same. */
/* ... with this record, and starts. */
static __attribute__((unused)) void begin_again_from(
    struct desk *desk, const struct sgp_record *record)
{
    struct sgp_node_config config = config_of(desk->topology);
    config.record = record;
    begin_again(desk, &config);
    post_type(desk, SGP_EVENT_START);
}

/* One of a pair that begins with this record, and has started. */
static __attribute__((unused)) void open_from(struct desk *desk, const struct sgp_record *record)
{
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.record = record;
    open_desk(desk, topology, config);
    post_type(desk, SGP_EVENT_START);
}

static __attribute__((unused)) void sketch(struct desk *desk)
{
    static const struct sgp_sketch zero = {.values = {0}};
    post(desk, (struct sgp_event){.type = SGP_EVENT_SKETCHED, .sketch = &zero});
}

static __attribute__((unused)) struct sgp_link link_to(
    struct desk *desk, uint32_t peer, enum sgp_direction direction)
{
    return (struct sgp_link){peer, direction, desk->link_of[peer][direction]};
}

static __attribute__((unused)) const struct sgp_effect *find(
    const struct desk *desk, enum sgp_effect_type type)
{
    for (uint32_t i = 0; i < desk->effects.count; i++)
        if (desk->items[i].type == type)
            return &desk->items[i];
    return NULL;
}

static __attribute__((unused)) const struct sgp_effect *find_sent(
    const struct desk *desk, enum sgp_message_type type, uint32_t peer)
{
    for (uint32_t i = 0; i < desk->effects.count; i++) {
        const struct sgp_effect *effect = &desk->items[i];
        if (effect->type == SGP_EFFECT_SEND && effect->send.message.type == type &&
            effect->send.link.peer == peer)
            return effect;
    }
    return NULL;
}

static __attribute__((unused)) const struct sgp_effect *find_note(
    const struct desk *desk, enum sgp_note note)
{
    for (uint32_t i = 0; i < desk->effects.count; i++)
        if (desk->items[i].type == SGP_EFFECT_NOTE && desk->items[i].note.what == note)
            return &desk->items[i];
    return NULL;
}

/* The hang-up of a connection in this step, or NULL. */
static __attribute__((unused)) const struct sgp_effect *find_end(
    const struct desk *desk, uint64_t connection)
{
    for (uint32_t i = 0; i < desk->effects.count; i++)
        if (desk->items[i].type == SGP_EFFECT_HANG_UP &&
            desk->items[i].hang_up.link.connection == connection)
            return &desk->items[i];
    return NULL;
}

static __attribute__((unused)) struct sgp_pulse pulse_at(sgp_round round, sgp_round next)
{
    return (struct sgp_pulse){.state = SGP_NODE_TRAINING,
        .round = round,
        .next_round = next,
        .ends = 100,
        .stop = SGP_ROUND_NONE};
}

static __attribute__((unused)) void say(
    struct desk *desk, uint32_t peer, enum sgp_direction direction, struct sgp_message message)
{
    post(desk, (struct sgp_event){.type = SGP_EVENT_MESSAGE,
                   .link = link_to(desk, peer, direction),
                   .message = &message});
}

static __attribute__((unused)) void come_up(
    struct desk *desk, uint32_t peer, enum sgp_direction direction)
{
    desk->link_of[peer][direction] = ++desk->connections;
    post(desk, (struct sgp_event){.type = SGP_EVENT_UP, .link = link_to(desk, peer, direction)});
}

static __attribute__((unused)) void lose(
    struct desk *desk, uint32_t peer, enum sgp_direction direction)
{
    post(desk,
        (struct sgp_event){
            .type = SGP_EVENT_DOWN, .link = link_to(desk, peer, direction), .code = -ECONNRESET});
}

static __attribute__((unused)) void say_pulse(
    struct desk *desk, uint32_t peer, enum sgp_direction direction, struct sgp_pulse pulse)
{
    say(desk, peer, direction, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse});
}

/* The same on both of its links. */
static __attribute__((unused)) void say_pulses(
    struct desk *desk, uint32_t peer, struct sgp_pulse pulse)
{
    say_pulse(desk, peer, SGP_IN, pulse);
    say_pulse(desk, peer, SGP_OUT, pulse);
}

static __attribute__((unused)) void greet_in(
    struct desk *desk, uint32_t peer, struct sgp_pulse pulse, uint64_t incarnation)
{
    come_up(desk, peer, SGP_IN);
    const char *names[] = {"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"};
    say(desk, peer, SGP_IN,
        (struct sgp_message){.type = SGP_HELLO,
            .pulse = pulse,
            .hello = {.source = names[peer],
                .target = "n0",
                .incarnation = incarnation,
                .parameters = PARAMETERS,
                .fingerprint = desk->peers}});
}

static __attribute__((unused)) void greet_out(struct desk *desk, uint32_t peer,
    struct sgp_pulse pulse, uint64_t incarnation, uint64_t accepted)
{
    come_up(desk, peer, SGP_OUT);
    const char *names[] = {"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"};
    say(desk, peer, SGP_OUT,
        (struct sgp_message){.type = SGP_WELCOME,
            .pulse = pulse,
            .welcome = {.target = names[peer],
                .incarnation = incarnation,
                .accepted = accepted,
                .fingerprint = desk->peers,
                .codings = desk->codings}});
}

static __attribute__((unused)) void grant(struct desk *desk, uint32_t peer, sgp_round round)
{
    say(desk, peer, SGP_OUT,
        (struct sgp_message){.type = SGP_CREDIT,
            .pulse = pulse_at(round, SGP_ROUND_NONE),
            .credit = {.round = round}});
}

static __attribute__((unused)) void acknowledge(
    struct desk *desk, uint32_t peer, uint64_t number, enum sgp_reason reason)
{
    say(desk, peer, SGP_OUT,
        (struct sgp_message){.type = SGP_ACK,
            .pulse = pulse_at(0, SGP_ROUND_NONE),
            .ack = {.number = number, .reason = reason}});
}

static __attribute__((unused)) struct sgp_message share_of(
    uint64_t number, sgp_round round, sgp_round next)
{
    return (struct sgp_message){.type = SGP_SHARE,
        .pulse = pulse_at(round, next),
        .share = {.number = number,
            .round = round,
            .fraction = 0.5,
            .weight = 0.5,
            .slice = {0, PARAMETERS},
            .payload_bytes = PAYLOAD}};
}

static __attribute__((unused)) void deliver(struct desk *desk, uint32_t peer, int code)
{
    post(desk, (struct sgp_event){
                   .type = SGP_EVENT_PAYLOAD, .link = link_to(desk, peer, SGP_IN), .code = code});
}

static __attribute__((unused)) struct sgp_node_status status_of(const struct desk *desk)
{
    struct sgp_node_status status;
    sgp_node_status(desk->node, &status);
    return status;
}

/* Begin, and be greeted by n1 both ways. */
static __attribute__((unused)) void greet_pair(struct desk *desk)
{
    post_type(desk, SGP_EVENT_START);
    greet_out(desk, 1, pulse_at(0, SGP_ROUND_NONE), 88, 0);
    greet_in(desk, 1, pulse_at(0, 0), 88);
}

/* The pair, greeted both ways, its first TRAIN under way. */
static __attribute__((unused)) void open_pair_that_mixes(struct desk *desk, uint32_t final_cycles)
{
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.final_cycles = final_cycles;
    open_desk(desk, topology, config);
    post_type(desk, SGP_EVENT_START);
    const struct sgp_effect *dial = find(desk, SGP_EFFECT_DIAL);
    cr_assert_not_null(dial);
    cr_assert(eq(u32, dial->dial.peer, 1));
    greet_out(desk, 1, pulse_at(0, SGP_ROUND_NONE), 88, 0);
    cr_assert_null(find(desk, SGP_EFFECT_TRAIN), "round 0 must wait for the other hello");
    greet_in(desk, 1, pulse_at(0, 0), 88);
    cr_assert_not_null(find(desk, SGP_EFFECT_TRAIN));
}

static __attribute__((unused)) void open_pair(struct desk *desk)
{
    open_pair_that_mixes(desk, 2);
}

/* ... and its share for round 0 sent, number 1. */
static __attribute__((unused)) void give_first(struct desk *desk)
{
    grant(desk, 1, 0);
    post_type(desk, SGP_EVENT_TRAINED);
    const struct sgp_effect *publish = find(desk, SGP_EFFECT_PUBLISH);
    cr_assert_not_null(publish);
    cr_assert(eq(dbl, publish->publish.keep, 0.5));
    post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    const struct sgp_effect *sent = find_sent(desk, SGP_SHARE, 1);
    cr_assert_not_null(sent);
    cr_assert(eq(u64, sent->send.message.share.number, 1));
    cr_assert(eq(dbl, sent->send.message.share.weight, 0.5));
    cr_assert(eq(i64, sent->send.message.pulse.next_round, 1));
    cr_assert(eq(dbl, status_of(desk).weight_in_flight, 0.5));
}

/* A file of so many nodes, 3 at least, in which n0 exchanges with n1 and n2, and nobody else with anybody. */
static __attribute__((unused)) struct sgp_topology *beside_two(uint32_t nodes)
{
    static const struct sgp_edge both[] = {{0, 1, 0.25}, {0, 2, 0.25}, {1, 0, 0.5}, {2, 0, 0.5}};
    const struct sgp_edge *edges[] = {both};
    const uint32_t counts[] = {4};
    return topology_of(nodes, 1, edges, counts);
}

/* ... n0 of which has greeted both, and trains. */
static __attribute__((unused)) void open_beside_two(struct desk *desk, uint32_t nodes)
{
    struct sgp_topology *topology = beside_two(nodes);
    struct sgp_node_config config = config_of(topology);
    config.weight_least = 1;
    open_desk(desk, topology, config);
    post_type(desk, SGP_EVENT_START);
    for (uint32_t i = 1; i < 3; i++) {
        greet_out(desk, i, pulse_at(0, SGP_ROUND_NONE), 80 + i, 0);
        greet_in(desk, i, pulse_at(0, 0), 80 + i);
    }
    cr_assert_not_null(find(desk, SGP_EFFECT_TRAIN));
}

/* ... and its shares for round 0 made, number 1 of each. */
static __attribute__((unused)) void give_to_two(struct desk *desk)
{
    grant(desk, 1, 0);
    grant(desk, 2, 0);
    post_type(desk, SGP_EVENT_TRAINED);
    post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
}

#endif
