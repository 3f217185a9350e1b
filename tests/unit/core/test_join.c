/* SPDX-License-Identifier: Apache-2.0 */
/* Joining by hand: a new node, and a fleet that is under way or over. */
#include "core_desk.h"

#include "sgp/generate.h"

/* Its own first parameters, mixed into a model that has trained, would set the fleet back. */
Test(join, a_new_node_takes_the_model_and_the_round_of_a_fleet_under_way)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    open_desk(&desk, topology, config_of(topology));
    post_type(&desk, SGP_EVENT_START);
    greet_out(&desk, 1, pulse_at(50, SGP_ROUND_NONE), 88, 0);
    desk.now += 60 * SGP_SECOND; /* whoever could hand over a model has not dialled yet: it waits */
    say_pulse(&desk, 1, SGP_OUT, pulse_at(70, SGP_ROUND_NONE));
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_JOINING));
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_ESTIMATE));
    greet_in(&desk, 1, pulse_at(70, 70), 88);
    cr_assert_not_null(find_sent(&desk, SGP_ASK, 1));
    say(&desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_ESTIMATE,
            .pulse = pulse_at(70, 70),
            .estimate = {.round = 70, .weight = 0.5, .payload_bytes = PAYLOAD}});
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PAYLOAD, .link = link_to(&desk, 1, SGP_IN)});
    const struct sgp_effect *adopt = find(&desk, SGP_EFFECT_ADOPT);
    cr_assert_not_null(adopt);
    cr_assert(eq(dbl, adopt->adopt.weight / adopt->adopt.candidates[0].weight, 2));
    cr_assert_not_null(find_note(&desk, SGP_NOTE_JUMP));
    cr_assert(eq(i64, status_of(&desk).round, 70));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    cr_assert_not_null(find(&desk, SGP_EFFECT_TRAIN));
    close_desk(&desk);
}

Test(join, a_new_node_waits_for_a_fleet_that_comes_back_to_begin)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    open_desk(&desk, topology, config_of(topology));
    post_type(&desk, SGP_EVENT_START);
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_HELLO));
    struct sgp_pulse elder = pulse_at(50, SGP_ROUND_NONE);
    elder.state = SGP_NODE_JOINING;
    greet_out(&desk, 1, elder, 88, 0);
    greet_in(&desk, 1, elder, 88);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_JOINING), "all have greeted");
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_ESTIMATE));
    cr_assert(eq(u32, status_of(&desk).waiting_peer, 1));
    cr_assert_null(find(&desk, SGP_EFFECT_TRAIN));
    say_pulse(&desk, 1, SGP_IN, pulse_at(50, 50));
    cr_assert(eq(i64, sgp_node_deadline(desk.node), desk.now), "there is more to do at once");
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find_sent(&desk, SGP_ASK, 1));
    close_desk(&desk);
}

/* The other side: n2 joins so late that n0 does not wait for it. */
Test(join, nobody_waits_for_one_that_joins_far_behind)
{
    struct desk desk;
    static const struct sgp_edge all[] = {{0, 1, SGP_FRACTION_DEFAULT},
        {0, 2, SGP_FRACTION_DEFAULT}, {1, 0, SGP_FRACTION_DEFAULT}, {2, 0, SGP_FRACTION_DEFAULT}};
    const struct sgp_edge *edges[] = {all};
    struct sgp_topology *topology = topology_of(3, 1, edges, (const uint32_t[]){4});
    struct sgp_node_config config = config_of(topology);
    config.start = 1;
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    greet_out(&desk, 1, pulse_at(50, SGP_ROUND_NONE), 88, 0);
    grant(&desk, 1, 0);
    post_type(&desk, SGP_EVENT_TRAINED);
    say_pulse(&desk, 1, SGP_OUT, pulse_at(50, SGP_ROUND_NONE));
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    sgp_round round = status_of(&desk).round;
    cr_assert(eq(i64, round, 50));
    struct sgp_pulse fresh = pulse_at(0, 0);
    fresh.state = SGP_NODE_JOINING;
    greet_in(&desk, 2, fresh, 99); /* which promises round 0 */
    fresh.next_round = SGP_ROUND_NONE;
    greet_out(&desk, 2, fresh, 99, 0); /* and has granted nothing */
    grant(&desk, 1, round);
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert_not_null(find(&desk, SGP_EFFECT_PUBLISH));
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    cr_assert(eq(i64, status_of(&desk).round, round + 1));
    close_desk(&desk);
}

/* n0 with n1 and n2, which give both ways, at these rounds. */
static sgp_round followed(sgp_round first, sgp_round second)
{
    struct desk desk;
    static const struct sgp_edge all[] = {{0, 1, SGP_FRACTION_DEFAULT},
        {0, 2, SGP_FRACTION_DEFAULT}, {1, 0, SGP_FRACTION_DEFAULT}, {2, 0, SGP_FRACTION_DEFAULT}};
    const struct sgp_edge *edges[] = {all};
    struct sgp_topology *topology = topology_of(3, 1, edges, (const uint32_t[]){4});
    struct sgp_node_config config = config_of(topology);
    config.rounds = 100000;
    config.start = 1;
    open_desk(&desk, topology, config);
    const sgp_round rounds[] = {first, second};
    for (uint32_t peer = 1; peer <= 2; peer++) {
        if (rounds[peer - 1] == SGP_ROUND_NONE)
            continue;
        greet_out(&desk, peer, pulse_at(0, SGP_ROUND_NONE), 87 + peer, 0);
        greet_in(&desk, peer, pulse_at(rounds[peer - 1], SGP_ROUND_NONE), 87 + peer);
    }
    sgp_round furthest = sgp_core_furthest(desk.node, 5, sgp_core_is_up);
    cr_assert(eq(i64, furthest, first > second ? first : second));
    sgp_round answer = sgp_core_followed(desk.node, 5, sgp_core_is_up);
    close_desk(&desk);
    return answer;
}

Test(join, nobody_is_taken_beyond_what_two_neighbours_say)
{
    cr_assert(eq(i64, followed(50000, 300), 300)); /* one alone, far ahead: then the second */
    cr_assert(eq(i64, followed(300, 50000), 300));
    cr_assert(eq(i64, followed(304, 300), 304)); /* 3 nodes and a round: that may be chance */
    cr_assert(eq(i64, followed(305, 300), 300));
    cr_assert(eq(i64, followed(50000, SGP_ROUND_NONE), 50000)); /* the only one's */
    cr_assert(eq(i64, followed(50000, 0), 5));                  /* never back */
}

Test(join, one_to_whom_nobody_can_hand_a_model_goes_on_without)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    open_desk(&desk, topology, config_of(topology));
    post_type(&desk, SGP_EVENT_START);
    greet_in(&desk, 1, pulse_at(50, 50), 88);
    greet_out(&desk, 1, pulse_at(50, SGP_ROUND_NONE), 88, 0);
    desk.link_of[1][SGP_IN] = 1;
    say_pulse(&desk, 1, SGP_IN, pulse_at(50, 50));
    for (int second = 0; second < 10; second++) { /* n1 has no model to hand over: patience ends */
        desk.now += SGP_SEEK_NS / 10;
        say_pulse(&desk, 1, SGP_IN, pulse_at(50, 50));
        say_pulse(&desk, 1, SGP_OUT, pulse_at(50, SGP_ROUND_NONE));
    }
    say(&desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_ESTIMATE,
            .pulse = pulse_at(50, 50),
            .estimate = {.round = 50, .weight = 0.5, .payload_bytes = PAYLOAD}});
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PAYLOAD,
                    .link = link_to(&desk, 1, SGP_IN),
                    .code = SGP_E_NOT_FINITE});
    const struct sgp_effect *jump = find_note(&desk, SGP_NOTE_JUMP);
    cr_assert_not_null(jump);
    cr_assert(eq(i64, jump->round, 50));
    cr_assert(eq(u64, status_of(&desk).jumps, 1));
    cr_assert_not_null(find(&desk, SGP_EFFECT_TRAIN));
    close_desk(&desk);
}

/* n1 has finished and n0 begins anew: it goes to the end instead of training alone. */
Test(join, one_who_comes_back_after_the_end_finds_it_there)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    open_desk(&desk, topology, config_of(topology));
    post_type(&desk, SGP_EVENT_START);
    struct sgp_pulse ended = pulse_at(102, SGP_ROUND_NONE);
    ended.state = SGP_NODE_FINISHED;
    greet_out(&desk, 1, ended, 88, 0);
    greet_in(&desk, 1, ended, 88);
    cr_assert_not_null(
        find_sent(&desk, SGP_ASK, 1), "one that has finished has a model to hand over");
    desk.link_of[1][SGP_IN] = desk.connections;
    lose(&desk, 1, SGP_IN);
    for (sgp_time end = desk.now + SGP_SEEK_NS; desk.now < end;) {
        desk.now += SGP_BEAT_IDLE_NS; /* one that has finished beats to one that joins */
        say_pulse(&desk, 1, SGP_OUT, ended);
    }
    cr_assert_null(find(&desk, SGP_EFFECT_TRAIN));
    sketch(&desk);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED), "it gave none in time");
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    close_desk(&desk);
}

/* n0 looks for an estimate, and n1 and n2 give to it. */
static void open_seeker(struct desk *desk)
{
    static const struct sgp_edge both[] = {
        {1, 0, SGP_FRACTION_DEFAULT}, {2, 0, SGP_FRACTION_DEFAULT}, {0, 1, SGP_FRACTION_DEFAULT}};
    const struct sgp_edge *edges[] = {both};
    struct sgp_topology *topology = topology_of(3, 1, edges, (const uint32_t[]){3});
    struct sgp_node_config config = config_of(topology);
    config.seeks = true;
    open_desk(desk, topology, config);
    post_type(desk, SGP_EVENT_START);
}

static void beat(struct desk *desk, uint32_t peer, enum sgp_node_state state)
{
    struct sgp_pulse pulse = pulse_at(50, SGP_ROUND_NONE);
    pulse.state = state;
    say_pulse(desk, peer, SGP_IN, pulse);
}

/* Whom it asks for the first time, or anew, while both sources beat; and when. */
static uint32_t next_asked(struct desk *desk)
{
    for (int i = 0; i < 1000; i++) {
        desk->now += SGP_BEAT_NS;
        for (uint32_t peer = 1; peer < 3; peer++) {
            beat(desk, peer, peer == 1 ? SGP_NODE_PAUSED : SGP_NODE_TRAINING);
            for (uint32_t asked = 1; asked < 3; asked++)
                if (find_sent(desk, SGP_ASK, asked) != NULL)
                    return asked;
        }
    }
    return 0;
}

/* n1 was paused before its own parameters had come: it beats, and has no estimate for anybody. */
Test(join, a_source_that_does_not_answer_gives_way_to_the_next)
{
    struct desk desk;
    open_seeker(&desk);
    struct sgp_pulse paused = pulse_at(50, SGP_ROUND_NONE);
    paused.state = SGP_NODE_PAUSED;
    greet_in(&desk, 1, paused, 88);
    cr_assert_not_null(find_sent(&desk, SGP_ASK, 1));
    sgp_time asked_at = desk.now;
    greet_in(&desk, 2, pulse_at(50, SGP_ROUND_NONE), 99);
    cr_assert(eq(u32, next_asked(&desk), 2));
    cr_assert(eq(i64, desk.now - asked_at, SGP_SEEK_NS));
    asked_at = desk.now;
    greet_in(&desk, 1, paused, 88); /* it was hung up on, so no late answer can come */
    cr_assert(eq(u32, next_asked(&desk), 1), "in turn, for n2 lets it wait too");
    cr_assert(eq(i64, desk.now - asked_at, 2 * SGP_SEEK_NS));
    close_desk(&desk);
}

Test(join, the_only_source_is_waited_for_until_it_has_gone)
{
    struct desk desk;
    open_seeker(&desk);
    greet_in(&desk, 1, pulse_at(50, SGP_ROUND_NONE), 88);
    for (int i = 0; i < 100; i++) {
        desk.now += SGP_BEAT_NS;
        beat(&desk, 1, SGP_NODE_TRAINING);
        cr_assert_null(find(&desk, SGP_EFFECT_HANG_UP));
    }
    beat(&desk, 1, SGP_NODE_DRAINING);
    cr_assert_null(find(&desk, SGP_EFFECT_HANG_UP), "one that leaves may still answer");
    lose(&desk, 1, SGP_IN);
    desk.now += SGP_SEEK_NS;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert(ne(int, status_of(&desk).waiting, SGP_WAITING_ESTIMATE));
    close_desk(&desk);
}

/* n1 has the first parameters already; n0 has not dialled n2 yet, whose share of round 0 it would leave out. */
static void open_beginning(struct desk *desk)
{
    struct sgp_topology *topology = beside_two(3);
    struct sgp_node_config config = config_of(topology);
    config.seeks = config.one_beginning = true;
    open_desk(desk, topology, config);
    post_type(desk, SGP_EVENT_START);
    greet_out(desk, 1, pulse_at(0, SGP_ROUND_NONE), 81, 0);
    greet_in(desk, 1, pulse_at(0, 0), 81);
    greet_in(desk, 2, pulse_at(0, 0), 82);
}

Test(join, who_is_to_begin_as_all_do_begins_with_all_its_neighbours)
{
    struct desk desk;
    open_beginning(&desk);
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_HELLO));
    cr_assert(eq(u32, status_of(&desk).waiting_peer, 2));
    greet_out(&desk, 2, pulse_at(0, SGP_ROUND_NONE), 82, 0);
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_ESTIMATE));
    close_desk(&desk);
}

Test(join, who_comes_after_all_have_begun_waits_for_none_that_is_not_there)
{
    struct desk desk;
    open_beginning(&desk);
    say_pulse(&desk, 1, SGP_IN, pulse_at(1, 1));
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_ESTIMATE));
    close_desk(&desk);
}

/* By its file n0 takes the first parameters from n1, which still joins. n2 has them already. */
static bool asks_another_than_planned(uint64_t file_of_planned)
{
    struct desk desk;
    struct sgp_topology *topology = beside_two(3);
    struct sgp_node_config config = config_of(topology);
    config.seeks = config.one_beginning = true;
    open_desk(&desk, topology, config);
    desk.node->first_source = 1;
    post_type(&desk, SGP_EVENT_START);
    struct sgp_pulse joining = pulse_at(0, SGP_ROUND_NONE);
    joining.state = SGP_NODE_JOINING;
    desk.peers.topology = file_of_planned;
    greet_out(&desk, 1, joining, 81, 0);
    greet_in(&desk, 1, joining, 81);
    desk.peers.topology = prints.topology;
    greet_out(&desk, 2, pulse_at(0, SGP_ROUND_NONE), 82, 0);
    greet_in(&desk, 2, pulse_at(0, 0), 82);
    bool asks = find_sent(&desk, SGP_ASK, 2) != NULL;
    cr_assert_null(find_sent(&desk, SGP_ASK, 1));
    close_desk(&desk);
    return asks;
}

/* By its own file, n1 may wait for n0. */
Test(join, no_node_waits_for_a_planned_source_that_has_another_file)
{
    cr_assert(not(asks_another_than_planned(prints.topology)));
    cr_assert(asks_another_than_planned(prints.topology + 1));
}

/* A pair that begins with the parameters of one, whose digest at n0 is 7. */
static void open_alike(struct desk *desk, bool seeks, uint64_t digest)
{
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.one_beginning = true;
    config.seeks = seeks;
    config.x_digest = digest;
    open_desk(desk, topology, config);
    greet_pair(desk);
}

static void ask_for_first(struct desk *desk, uint64_t digest)
{
    struct sgp_pulse joining = pulse_at(0, SGP_ROUND_NONE);
    joining.state = SGP_NODE_JOINING;
    say(desk, 1, SGP_OUT,
        (struct sgp_message){
            .type = SGP_ASK, .pulse = joining, .ask = {.wants = true, .digest = digest}});
}

static void say_same(struct desk *desk, sgp_round round)
{
    say(desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_ESTIMATE,
            .pulse = pulse_at(0, 0),
            .estimate = {.round = round, .weight = 1, .same = true}});
}

Test(join, who_has_the_first_parameters_is_told_so)
{
    struct desk desk;
    struct sgp_pulse joining = pulse_at(0, SGP_ROUND_NONE);
    joining.state = SGP_NODE_JOINING;
    for (uint64_t digest = 6; digest < 8; digest++) {
        struct sgp_topology *topology = pair();
        struct sgp_node_config config = config_of(topology);
        config.one_beginning = true;
        config.x_digest = 7;
        open_desk(&desk, topology, config);
        post_type(&desk, SGP_EVENT_START);
        greet_out(&desk, 1, joining, 88, 0);
        greet_in(&desk, 1, joining, 88);
        ask_for_first(&desk, digest);
        const struct sgp_effect *sent = find_sent(&desk, SGP_ESTIMATE, 1);
        cr_assert(eq(int, sent != NULL && sent->send.message.estimate.same, digest == 7));
        cr_assert(eq(int, find(&desk, SGP_EFFECT_PUBLISH) != NULL, digest != 7));
        if (digest == 7) {
            post_type(&desk, SGP_EVENT_TICK);
            cr_assert_null(find_sent(&desk, SGP_ESTIMATE, 1), "once for each question");
        }
        close_desk(&desk);
    }
}

Test(join, who_is_told_that_it_has_the_first_parameters_begins_with_its_own)
{
    struct desk desk;
    open_alike(&desk, true, 7);
    const struct sgp_effect *ask = find_sent(&desk, SGP_ASK, 1);
    cr_assert_not_null(ask);
    cr_assert(eq(u64, ask->send.message.ask.digest, 7));
    say_same(&desk, 0);
    cr_assert_null(find(&desk, SGP_EFFECT_HANG_UP));
    cr_assert_null(find(&desk, SGP_EFFECT_ADOPT));
    cr_assert(not(status_of(&desk).seeks));
    cr_assert_not_null(find(&desk, SGP_EFFECT_TRAIN));
    say_same(&desk, 0);
    cr_assert_not_null(find(&desk, SGP_EFFECT_HANG_UP), "it asked nothing");
    close_desk(&desk);
}

/* It said no digest, so the source cannot know; and a model of round 1 is not its own. */
Test(join, a_source_that_cannot_know_what_a_node_has_is_refused)
{
    struct desk desk;
    for (uint64_t digest = 0; digest < 8; digest += 7) {
        open_alike(&desk, true, digest);
        cr_assert_not_null(find_sent(&desk, SGP_ASK, 1));
        say_same(&desk, digest == 0 ? 0 : 1);
        cr_assert_not_null(find(&desk, SGP_EFFECT_HANG_UP));
        cr_assert(status_of(&desk).seeks);
        close_desk(&desk);
    }
}

/* Round 0 is under way, so x is not what it was. */
Test(join, who_has_begun_hands_out_what_it_has)
{
    struct desk desk;
    open_alike(&desk, false, 7);
    cr_assert_not_null(find(&desk, SGP_EFFECT_TRAIN));
    ask_for_first(&desk, 7);
    cr_assert_null(find_sent(&desk, SGP_ESTIMATE, 1));
    cr_assert_not_null(find(&desk, SGP_EFFECT_PUBLISH));
    close_desk(&desk);
}

/* n1 gives to n0 and n0 to n2. */
static void open_line(struct desk *desk)
{
    static const struct sgp_edge line[] = {
        {0, 2, SGP_FRACTION_DEFAULT}, {1, 0, SGP_FRACTION_DEFAULT}, {2, 1, SGP_FRACTION_DEFAULT}};
    const struct sgp_edge *edges[] = {line};
    struct sgp_topology *topology = topology_of(3, 1, edges, (const uint32_t[]){3});
    open_desk(desk, topology, config_of(topology));
    post_type(desk, SGP_EVENT_START);
}

/* n2 does not know n0 at each of so many dials, a second apart, while n1 says this. */
static void be_unknown(struct desk *desk, int dials, struct sgp_pulse source)
{
    for (int second = 0; second < dials; second++) {
        desk->now += SGP_SECOND;
        come_up(desk, 2, SGP_OUT);
        say(desk, 2, SGP_OUT,
            (struct sgp_message){.type = SGP_GOODBYE,
                .pulse = pulse_at(50, SGP_ROUND_NONE),
                .goodbye = {.reason = SGP_REASON_UNKNOWN, .text = "who?"}});
        say_pulse(desk, 1, SGP_IN, source);
    }
}

/* n2 has not reloaded: n0 would gather n1's mass. */
Test(join, a_newcomer_takes_nothing_before_it_can_pass_any_on)
{
    struct desk desk;
    open_line(&desk);
    greet_in(&desk, 1, pulse_at(50, 50), 88);
    cr_assert_null(find_sent(&desk, SGP_ASK, 1));
    be_unknown(&desk, 120, pulse_at(50, 50));
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_JOINING));
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_HELLO));
    cr_assert(eq(u32, status_of(&desk).waiting_peer, 2));
    greet_out(&desk, 2, pulse_at(90, SGP_ROUND_NONE), 99, 0);
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find_sent(&desk, SGP_ASK, 1), "now it joins");
    close_desk(&desk);
}

/* n2 has missed a reload for good, and n1 has finished: n0 takes the model of n1 and ends, too. */
Test(join, a_newcomer_that_no_target_knows_ends_when_the_fleet_has_ended)
{
    struct desk desk;
    open_line(&desk);
    greet_in(&desk, 1, pulse_at(50, 50), 88);
    be_unknown(&desk, 60, pulse_at(50, 50));
    cr_assert_null(find_sent(&desk, SGP_ASK, 1), "n1 would give");
    struct sgp_pulse ended = pulse_at(102, SGP_ROUND_NONE);
    ended.state = SGP_NODE_FINISHED;
    say_pulse(&desk, 1, SGP_IN, ended);
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find_sent(&desk, SGP_ASK, 1));
    say(&desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_ESTIMATE,
            .pulse = ended,
            .estimate = {.round = 102, .weight = 2, .payload_bytes = PAYLOAD}});
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PAYLOAD, .link = link_to(&desk, 1, SGP_IN)});
    const struct sgp_effect *adopt = find(&desk, SGP_EFFECT_ADOPT);
    cr_assert_not_null(adopt);
    cr_assert(eq(dbl, adopt->adopt.weight / adopt->adopt.candidates[0].weight, 0.5));
    cr_assert(eq(i64, status_of(&desk).round, 102));
    cr_assert_null(find(&desk, SGP_EFFECT_TRAIN));
    post_type(&desk, SGP_EVENT_TICK);
    sketch(&desk);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    close_desk(&desk);
}

Test(join, a_newcomer_does_not_wait_for_one_that_is_dead)
{
    struct desk desk;
    open_line(&desk);
    greet_in(&desk, 1, pulse_at(50, 50), 88);
    desk.now += SGP_SILENCE_MAX_NS;
    say_pulse(&desk, 1, SGP_IN, pulse_at(50, 50));
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find_sent(&desk, SGP_ASK, 1));
    close_desk(&desk);
}

/* n1, the only source of n0, leaves for good, and n0 is its only heir: each would wait for the other. */
Test(join, a_newcomer_asks_one_that_drains_if_there_is_nobody_else)
{
    struct desk desk;
    open_line(&desk);
    struct sgp_pulse leaving = pulse_at(50, SGP_ROUND_NONE);
    leaving.state = SGP_NODE_DRAINING;
    greet_in(&desk, 1, leaving, 88);
    greet_out(&desk, 2, pulse_at(50, SGP_ROUND_NONE), 99, 0);
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find_sent(&desk, SGP_ASK, 1));
    close_desk(&desk);
}

Test(join, one_that_drains_and_never_answers_is_not_waited_for_longer_than_a_turn)
{
    struct desk desk;
    static const struct sgp_edge line[] = {
        {0, 2, SGP_FRACTION_DEFAULT}, {1, 0, SGP_FRACTION_DEFAULT}, {2, 1, SGP_FRACTION_DEFAULT}};
    const struct sgp_edge *edges[] = {line};
    struct sgp_topology *topology = topology_of(3, 1, edges, (const uint32_t[]){3});
    struct sgp_pulse leaving = pulse_at(50, SGP_ROUND_NONE);
    leaving.state = SGP_NODE_DRAINING;
    struct sgp_node_config config = config_of(topology);
    config.seeks = true;
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    greet_in(&desk, 1, leaving, 88);
    greet_out(&desk, 2, pulse_at(50, SGP_ROUND_NONE), 99, 0);
    post_type(&desk, SGP_EVENT_TICK);
    for (sgp_time end = desk.now + 2 * SGP_SEEK_NS; desk.now < end;) {
        desk.now += SGP_BEAT_NS;
        say_pulse(&desk, 1, SGP_IN, leaving);
        say_pulse(&desk, 2, SGP_OUT, pulse_at(50, SGP_ROUND_NONE));
    }
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_TRAINING));
    close_desk(&desk);
}

/* The other side: it hands its estimate out until its mass is handed over. */
Test(join, one_that_leaves_answers_an_heir_that_joins)
{
    struct desk desk;
    open_pair(&desk);
    post_type(&desk, SGP_EVENT_TRAINED);
    post_type(&desk, SGP_EVENT_PAUSE);
    post_type(&desk, SGP_EVENT_LEAVE);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_DRAINING));
    struct sgp_pulse joining = pulse_at(0, SGP_ROUND_NONE);
    joining.state = SGP_NODE_JOINING;
    say(&desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_ASK, .pulse = joining, .ask = {.wants = true}});
    const struct sgp_effect *copy = find(&desk, SGP_EFFECT_PUBLISH);
    cr_assert_not_null(copy);
    cr_assert(eq(dbl, copy->publish.keep, 1));
    close_desk(&desk);
}

/* A node of a token restarts with label 86 and few turns, since the file is new, and adopts a model whose label is 1. */
Test(join, an_older_label_is_turn_0_and_no_turn_before_it)
{
    struct desk desk;
    const struct sgp_record record = {.incarnation = 77, .round = 86, .turns = 4, .weight = 1};
    open_from(&desk, &record);
    cr_assert(eq(i64, sgp_core_turn(desk.node, 86), 4));
    cr_assert(eq(i64, sgp_core_turn(desk.node, 90), 8));
    cr_assert(eq(i64, sgp_core_turn(desk.node, 83), 1));
    cr_assert(eq(i64, sgp_core_turn(desk.node, 82), 0));
    cr_assert(eq(i64, sgp_core_turn(desk.node, 1), 0));
    close_desk(&desk);
}

/* Level with the relay, behind by a few rounds, and far behind. */
static const sgp_round labels[] = {20, 21, 23, 28, 30, 60};
#define LABELS (sizeof labels / sizeof *labels)

/* Node n0 of `elastic`, which is a relay, comes back at its own pace. Its targets, all but one in round `label`, greet before its
 * sources do. */
static void open_relay(struct desk *desk, sgp_time now, sgp_round label)
{
    struct sgp_topology *topology;
    struct sgp_generate_options options = {.family = "elastic", .nodes = 4};
    const struct sgp_record record = {.incarnation = 77, .round = 20, .weight = 1, .rounds = 100};
    cr_assert(zero(int, sgp_generate(&options, NULL, &topology)));
    struct sgp_node_config config = config_of(topology);
    config.method = sgp_method_find("agp");
    config.record = &record;
    open_desk(desk, topology, config);
    desk->peers.method = config.method->number;
    desk->now = now;
    post_type(desk, SGP_EVENT_START);
    for (uint32_t peer = 1; peer <= 3; peer++) {
        greet_out(desk, peer, pulse_at(peer == 1 ? 20 : label, SGP_ROUND_NONE), 87 + peer, 0);
        cr_assert(eq(int, status_of(desk).state, SGP_NODE_TRAINING));
    }
}

/* The targets grant all that it asks for, and stay in round `label`. */
static void tick(struct desk *desk, sgp_round label)
{
    for (uint32_t peer = 1; peer <= 3; peer++)
        grant(desk, peer, label);
    if (desk->node->stage == SGP_STAGE_PUBLISHING)
        post(
            desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED, .slot = desk->node->giving.slot});
    post_type(desk, SGP_EVENT_TICK);
}

/* A relay that was ahead would take all rounds of the run at that moment, and give most of its
 * weight away. */
Test(join, a_relay_that_comes_back_is_not_ahead_before_its_sources_greet)
{
    static const sgp_time starts[] = {SGP_SECOND / 10, 1000 * SGP_SECOND}; /* of the machine */
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t l = 0; l < LABELS; l++) {
            const sgp_round label = labels[l];
            struct desk desk;
            open_relay(&desk, starts[i], label);
            for (int j = 0; j < 50; j++)
                tick(&desk, label);
            cr_assert(eq(i64, status_of(&desk).round, label));
            cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_PACE));
            close_desk(&desk);
        }
}

Test(join, a_relay_whose_sources_stay_away_takes_a_round_a_second)
{
    for (uint32_t l = 0; l < LABELS; l++) {
        const sgp_round label = labels[l];
        struct desk desk;
        open_relay(&desk, 1000 * SGP_SECOND, label);
        for (int i = 0; i < 200; i++) {
            desk.now += SGP_SECOND / 10;
            for (uint32_t peer = 1; peer <= 3; peer++)
                say_pulse(&desk, peer, SGP_OUT, pulse_at(label, SGP_ROUND_NONE));
            tick(&desk, label);
        }
        cr_assert(ge(i64, status_of(&desk).round, label + 10));
        cr_assert(le(i64, status_of(&desk).round, label + 20));
        close_desk(&desk);
    }
}
