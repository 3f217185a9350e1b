/* SPDX-License-Identifier: Apache-2.0 */
/* A joining node that compares estimates: from how many sources it takes one, and for how long it waits for more. */
#include "core_desk.h"

#define SOURCES 4u

/* n0 looks for an estimate and compares up to three; n1 to n4 give to it. */
static void open_joiner(struct desk *desk)
{
    static struct sgp_edge all[2 * SOURCES];
    const struct sgp_edge *edges[] = {all};
    for (uint32_t i = 0; i < SOURCES; i++) {
        all[i] = (struct sgp_edge){i + 1, 0, SGP_FRACTION_DEFAULT};
        all[SOURCES + i] = (struct sgp_edge){0, i + 1, SGP_FRACTION_DEFAULT};
    }
    struct sgp_topology *topology =
        topology_of(SOURCES + 1, 1, edges, (const uint32_t[]){2 * SOURCES});
    struct sgp_node_config config = config_of(topology);
    config.seeks = true;
    config.candidates = 3;
    open_desk(desk, topology, config);
    post_type(desk, SGP_EVENT_START);
}

static void answer_at(struct desk *desk, uint32_t peer, double weight, sgp_round label)
{
    say(desk, peer, SGP_IN,
        (struct sgp_message){.type = SGP_ESTIMATE,
            .pulse = pulse_at(50, SGP_ROUND_NONE),
            .estimate = {.round = label, .weight = weight, .payload_bytes = PAYLOAD}});
    cr_assert_not_null(find(desk, SGP_EFFECT_RECEIVE));
    post(desk, (struct sgp_event){.type = SGP_EVENT_PAYLOAD, .link = link_to(desk, peer, SGP_IN)});
}

static void answer(struct desk *desk, uint32_t peer, double weight)
{
    answer_at(desk, peer, weight, 50);
}

static void greet(struct desk *desk, uint32_t peer)
{
    greet_in(desk, peer, pulse_at(50, SGP_ROUND_NONE), 80 + peer);
}

static void wait(struct desk *desk, sgp_time time)
{
    for (sgp_time end = desk->now + time; desk->now < end;) {
        desk->now += SGP_BEAT_NS;
        post_type(desk, SGP_EVENT_TICK);
        if (find(desk, SGP_EFFECT_ADOPT) != NULL)
            return;
    }
}

Test(candidates, three_estimates_are_compared_and_their_buffers_are_free_afterwards)
{
    struct desk desk;
    open_joiner(&desk);
    for (uint32_t peer = 1; peer <= SOURCES; peer++) {
        greet_out(&desk, peer, pulse_at(50, SGP_ROUND_NONE), 80 + peer, 0);
        greet(&desk, peer);
    }
    for (uint32_t peer = 1; peer <= 3; peer++) {
        cr_assert_null(find(&desk, SGP_EFFECT_ADOPT));
        answer(&desk, peer, peer);
    }
    const struct sgp_effect *adopt = find(&desk, SGP_EFFECT_ADOPT);
    cr_assert_not_null(adopt);
    cr_assert(eq(u32, adopt->adopt.count, 3));
    cr_assert(eq(dbl, adopt->adopt.weight, 1));
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert(eq(u32, adopt->adopt.candidates[i].peer, i + 1));
        cr_assert(eq(dbl, adopt->adopt.candidates[i].weight, i + 1));
    }
    cr_assert(eq(u32, find_note(&desk, SGP_NOTE_ADOPTED)->note.link.peer, 0), "the job chooses");
    uint32_t first = adopt->adopt.candidates[0].slot;
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_TRAINING));
    post(&desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = first});
    for (uint32_t i = 0; i < desk.node->layout.receive_count; i++)
        cr_assert(ne(int, desk.node->layout.receives[i].state, SGP_RECEIVE_COMPARED));
    close_desk(&desk);
}

Test(candidates, without_a_comparison_the_first_estimate_counts)
{
    struct desk desk;
    open_joiner(&desk);
    desk.node->config.candidates = 0;
    greet(&desk, 1);
    answer(&desk, 1, 2);
    cr_assert(eq(u32, find(&desk, SGP_EFFECT_ADOPT)->adopt.count, 1));
    cr_assert(eq(u32, find_note(&desk, SGP_NOTE_ADOPTED)->note.link.peer, 1));
    close_desk(&desk);
}

/* A source that has not been heard may be about to connect, for the time of a question. */
Test(candidates, two_are_enough_when_no_third_comes)
{
    struct desk desk;
    open_joiner(&desk);
    greet(&desk, 1);
    greet(&desk, 2);
    answer(&desk, 1, 1);
    answer(&desk, 2, 1);
    cr_assert_null(find(&desk, SGP_EFFECT_ADOPT));
    sgp_time since = desk.now;
    wait(&desk, 2 * SGP_SEEK_NS);
    cr_assert(eq(u32, find(&desk, SGP_EFFECT_ADOPT)->adopt.count, 2));
    cr_assert(le(i64, desk.now - since, SGP_SEEK_NS));
    close_desk(&desk);
}

Test(candidates, a_source_that_does_not_answer_is_waited_for_as_long_as_a_question)
{
    struct desk desk;
    open_joiner(&desk);
    for (uint32_t peer = 1; peer <= 2; peer++)
        greet(&desk, peer);
    answer(&desk, 1, 1);
    sgp_time since = desk.now;
    while (desk.now < since + 2 * SGP_SEEK_NS && find(&desk, SGP_EFFECT_ADOPT) == NULL) {
        desk.now += SGP_BEAT_NS;
        say_pulse(&desk, 2, SGP_IN, pulse_at(50, SGP_ROUND_NONE));
    }
    cr_assert(eq(u32, find(&desk, SGP_EFFECT_ADOPT)->adopt.count, 1));
    cr_assert(le(i64, desk.now - since, SGP_SEEK_NS));
    cr_assert_not_null(find_sent(&desk, SGP_ASK, 2), "the question is withdrawn");
    close_desk(&desk);
}

Test(candidates, an_estimate_outlives_its_connection)
{
    struct desk desk;
    open_joiner(&desk);
    for (uint32_t peer = 1; peer <= 3; peer++)
        greet(&desk, peer);
    answer(&desk, 1, 1);
    lose(&desk, 1, SGP_IN);
    greet(&desk, 1);
    cr_assert_null(find_sent(&desk, SGP_ASK, 1), "it has answered");
    answer(&desk, 2, 1);
    answer(&desk, 3, 1);
    cr_assert(eq(u32, find(&desk, SGP_EFFECT_ADOPT)->adopt.count, 3));
    close_desk(&desk);
}

Test(candidates, a_second_estimate_of_one_source_ends_its_connection)
{
    struct desk desk;
    open_joiner(&desk);
    greet(&desk, 1);
    answer(&desk, 1, 1);
    say(&desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_ESTIMATE,
            .pulse = pulse_at(50, SGP_ROUND_NONE),
            .estimate = {.round = 50, .weight = 1, .payload_bytes = PAYLOAD}});
    cr_assert_not_null(find(&desk, SGP_EFFECT_HANG_UP));
    close_desk(&desk);
}

static void announce(struct desk *desk, uint32_t peer)
{
    say(desk, peer, SGP_IN,
        (struct sgp_message){.type = SGP_ESTIMATE,
            .pulse = pulse_at(50, SGP_ROUND_NONE),
            .estimate = {.round = 50, .weight = 1, .payload_bytes = PAYLOAD}});
    cr_assert_not_null(find(desk, SGP_EFFECT_RECEIVE));
}

/* The payload of `peer` arrives at twice the least rate for so long. The first `sources` send heartbeats. Ends early with
 * a step that has an effect of the type `until`. */
static void trickle(
    struct desk *desk, uint32_t peer, uint32_t sources, sgp_time time, enum sgp_effect_type until)
{
    for (sgp_time since = desk->now; desk->now < since + time;) {
        desk->now += SGP_BEAT_NS;
        post(desk,
            (struct sgp_event){.type = SGP_EVENT_HEARD,
                .link = link_to(desk, peer, SGP_IN),
                .bytes = 2 * SGP_PAYLOAD_LEAST * (uint64_t)((desk->now - since) / SGP_SECOND)});
        if (find(desk, until) != NULL)
            return;
        for (uint32_t source = 1; source <= sources; source++) {
            say_pulse(desk, source, SGP_IN, pulse_at(50, SGP_ROUND_NONE));
            if (find(desk, until) != NULL)
                return;
        }
    }
}

Test(candidates, an_estimate_that_trickles_ends_with_the_time_to_compare)
{
    struct desk desk;
    open_joiner(&desk);
    for (uint32_t peer = 1; peer <= 3; peer++)
        greet(&desk, peer);
    answer(&desk, 1, 1);
    answer(&desk, 2, 1);
    announce(&desk, 3);
    sgp_time since = desk.now;
    trickle(&desk, 3, 3, 6 * SGP_SEEK_NS, SGP_EFFECT_ADOPT);
    cr_assert_not_null(find(&desk, SGP_EFFECT_ADOPT));
    cr_assert(eq(u32, find(&desk, SGP_EFFECT_ADOPT)->adopt.count, 2));
    cr_assert(le(i64, desk.now - since, SGP_SEEK_NS));
    cr_assert_not_null(find(&desk, SGP_EFFECT_HANG_UP), "the liar would keep a receive buffer");
    close_desk(&desk);
}

Test(candidates, a_first_estimate_that_trickles_gives_way_to_the_next_source)
{
    struct desk desk;
    open_joiner(&desk);
    greet(&desk, 1);
    greet(&desk, 2);
    announce(&desk, 1);
    sgp_time since = desk.now;
    trickle(&desk, 1, 2, 6 * SGP_SEEK_NS, SGP_EFFECT_HANG_UP);
    cr_assert_not_null(find_end(&desk, desk.link_of[1][SGP_IN]));
    cr_assert_not_null(find_sent(&desk, SGP_ASK, 2));
    cr_assert(le(i64, desk.now - since, SGP_SEEK_NS));
    cr_assert(eq(i64, sgp_core_answered_by(desk.node), desk.now + 2 * SGP_SEEK_NS));
    close_desk(&desk);
}

/* Each answer takes two hours. A node gives an answer twice the time after one that was too slow. */
Test(candidates, an_estimate_of_a_large_model_arrives_in_the_end)
{
    struct desk desk;
    open_joiner(&desk);
    greet(&desk, 1);
    greet(&desk, 2);
    uint32_t peer = 1;
    for (uint32_t turn = 0;; turn++, peer = 3 - peer) {
        cr_assert(lt(u32, turn, 12));
        announce(&desk, peer);
        trickle(&desk, peer, 2, 7200 * SGP_SECOND, SGP_EFFECT_HANG_UP);
        if (find(&desk, SGP_EFFECT_HANG_UP) == NULL)
            break;
        greet(&desk, peer);
    }
    deliver(&desk, peer, 0);
    cr_assert(eq(u32, sgp_core_candidates(desk.node), 1));
    close_desk(&desk);
}

/* The node wakes for it although the liar alone is heard. */
Test(candidates, the_time_of_an_estimate_that_trickles_is_a_deadline)
{
    struct desk desk;
    open_joiner(&desk);
    greet(&desk, 1);
    greet(&desk, 2);
    announce(&desk, 1);
    cr_assert(eq(i64, sgp_core_answered_by(desk.node), desk.now + SGP_SEEK_NS));
    close_desk(&desk);
}

/* A fleet whose estimates take 30 s each. There is no other source that could be asked meanwhile. */
Test(candidates, a_second_estimate_may_take_longer_than_the_first)
{
    struct desk desk;
    open_joiner(&desk);
    greet(&desk, 1);
    announce(&desk, 1);
    trickle(&desk, 1, 1, 3 * SGP_SEEK_NS, SGP_EFFECT_HANG_UP);
    cr_assert_null(find(&desk, SGP_EFFECT_HANG_UP), "no other source is known");
    deliver(&desk, 1, 0);
    greet(&desk, 2);
    announce(&desk, 2);
    trickle(&desk, 2, 2, 9 * SGP_SEEK_NS, SGP_EFFECT_ADOPT);
    cr_assert_null(find(&desk, SGP_EFFECT_ADOPT));
    deliver(&desk, 2, 0);
    cr_assert_not_null(find(&desk, SGP_EFFECT_ADOPT), "no third source is known");
    cr_assert(eq(u32, find(&desk, SGP_EFFECT_ADOPT)->adopt.count, 2));
    close_desk(&desk);
}

/* A question of such a source was not too short. */
Test(candidates, a_source_that_joins_again_takes_no_time_from_the_next)
{
    struct desk desk;
    open_joiner(&desk);
    greet(&desk, 1);
    greet(&desk, 2);
    struct sgp_pulse joins = pulse_at(50, SGP_ROUND_NONE);
    joins.state = SGP_NODE_JOINING;
    say_pulse(&desk, 1, SGP_IN, joins);
    cr_assert_not_null(find_end(&desk, desk.link_of[1][SGP_IN]));
    cr_assert_not_null(find_sent(&desk, SGP_ASK, 2));
    cr_assert(eq(i64, sgp_core_answered_by(desk.node), desk.now + SGP_SEEK_NS));
    close_desk(&desk);
}

/* All nodes lost their models, and one neighbour says a label of training. */
static bool is_fresh_after(uint32_t count, const sgp_round *labels)
{
    struct desk desk;
    open_joiner(&desk);
    desk.node->config.candidates = count;
    desk.node->past.fresh = true;
    for (uint32_t peer = 1; peer <= count; peer++)
        greet(&desk, peer);
    for (uint32_t peer = 1; peer <= count; peer++)
        answer_at(&desk, peer, 1, labels[peer - 1]);
    cr_assert(eq(u32, find(&desk, SGP_EFFECT_ADOPT)->adopt.count, count));
    bool fresh = status_of(&desk).fresh;
    close_desk(&desk);
    return fresh;
}

Test(candidates, no_single_source_says_whether_a_model_is_trained)
{
    for (uint32_t liar = 0; liar < 3; liar++) {
        sgp_round untrained[3] = {0}, trained[3] = {50, 50, 50};
        untrained[liar] = 50;
        trained[liar] = 0;
        cr_expect(is_fresh_after(3, untrained), "n%u says 50, the others 0", liar + 1);
        cr_expect(not(is_fresh_after(3, trained)), "n%u says 0, the others 50", liar + 1);
    }
    cr_expect(is_fresh_after(2, (const sgp_round[]){0, 50}), "that may be a lie");
    cr_expect(not(is_fresh_after(1, (const sgp_round[]){50})));
    cr_expect(is_fresh_after(1, (const sgp_round[]){0}));
}

/* One share comes in every second phase, so shares alone need two buffers. */
Test(candidates, a_node_with_one_source_at_a_time_has_a_buffer_for_each_estimate)
{
    struct desk desk;
    static const struct sgp_edge one_by_one[][1] = {{{1, 0, SGP_FRACTION_DEFAULT}},
        {{0, 1, SGP_FRACTION_DEFAULT}}, {{2, 0, SGP_FRACTION_DEFAULT}},
        {{0, 2, SGP_FRACTION_DEFAULT}}, {{3, 0, SGP_FRACTION_DEFAULT}},
        {{0, 3, SGP_FRACTION_DEFAULT}}};
    const struct sgp_edge *edges[6];
    for (uint32_t p = 0; p < 6; p++)
        edges[p] = one_by_one[p];
    struct sgp_topology *topology = topology_of(4, 6, edges, (const uint32_t[]){1, 1, 1, 1, 1, 1});
    struct sgp_node_config config = config_of(topology);
    config.seeks = true;
    config.candidates = 3;
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    struct sgp_node_needs needs;
    sgp_node_counts(desk.node, &needs);
    cr_expect(eq(u32, needs.receives, 3));
    for (uint32_t peer = 1; peer <= 3; peer++)
        greet(&desk, peer);
    answer(&desk, 1, 1);
    answer(&desk, 2, 1);
    cr_assert_not_null(find_sent(&desk, SGP_ASK, 3));
    answer(&desk, 3, 1);
    cr_assert(eq(u32, find(&desk, SGP_EFFECT_ADOPT)->adopt.count, 3));
    close_desk(&desk);
}
