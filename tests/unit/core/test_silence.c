/* SPDX-License-Identifier: Apache-2.0 */
/* Silence by hand: when a peer is absent, and who rests and is not waited for. */
#include "core_desk.h"

Test(silence, a_target_that_refuses_us_is_not_waited_for)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.start = 1;
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    cr_assert_not_null(find(&desk, SGP_EFFECT_TRAIN));
    come_up(&desk, 1, SGP_OUT);
    say(&desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_GOODBYE,
            .pulse = pulse_at(0, SGP_ROUND_NONE),
            .goodbye = {.reason = SGP_REASON_LOSS, .text = "another loss"}});
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(i64, status_of(&desk).round, 1), "the round must end without the other");
    close_desk(&desk);
}

/* Nobody speaks: step from deadline to deadline, count beats, see when the peer is given up. */
static sgp_time wait_until_absent(struct desk *desk, uint32_t *ret_beats)
{
    sgp_time from = desk->now;
    *ret_beats = 0;
    for (int i = 0; i < 1000; i++) {
        desk->now = sgp_node_deadline(desk->node);
        post_type(desk, SGP_EVENT_TICK);
        *ret_beats += find_sent(desk, SGP_BEAT, 1) != NULL;
        if (find_note(desk, SGP_NOTE_ABSENT) != NULL)
            return desk->now - from;
    }
    return -1;
}

Test(silence, silence_becomes_absence_at_the_least_bound)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    uint32_t beats;
    cr_assert(eq(i64, wait_until_absent(&desk, &beats), 3 * SGP_SECOND));
    cr_assert(eq(u32, beats, 5), "one every half second, and none to the absent");
    const struct sgp_node_status status = status_of(&desk);
    cr_assert(eq(i64, status.round, 1), "the round goes on without it");
    cr_assert(eq(dbl, status.weight + status.weight_in_flight, 1));
    close_desk(&desk);
}

Test(silence, silence_is_judged_by_the_peers_own_pace)
{
    const sgp_time interval[] = {SGP_SECOND / 10, SGP_SECOND, 2 * SGP_SECOND, 10 * SGP_SECOND};
    const sgp_time bound[] = {3 * SGP_SECOND, 8 * SGP_SECOND, 16 * SGP_SECOND, 30 * SGP_SECOND};
    for (size_t i = 0; i < 3; i++) {
        struct desk desk;
        open_pair(&desk);
        give_first(&desk);
        for (int n = 0; n < 80; n++) {
            desk.now += interval[i];
            say_pulse(&desk, 1, SGP_IN, pulse_at(0, 0));
            say_pulse(&desk, 1, SGP_OUT, pulse_at(0, SGP_ROUND_NONE));
        }
        uint32_t beats;
        cr_assert(eq(i64, wait_until_absent(&desk, &beats), bound[i]), "case %zu", i);
        close_desk(&desk);
    }
}

Test(silence, the_nodes_own_standstill_is_not_the_pace_of_its_peers)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    for (int n = 0; n < 80; n++) {
        desk.now += n == 70 ? 30 * SGP_SECOND : SGP_SECOND / 10;
        say_pulse(&desk, 1, SGP_IN, pulse_at(0, 0));
        say_pulse(&desk, 1, SGP_OUT, pulse_at(0, SGP_ROUND_NONE));
    }
    uint32_t beats;
    cr_assert(eq(i64, wait_until_absent(&desk, &beats), 3 * SGP_SECOND));
    close_desk(&desk);
}

Test(silence, one_that_beats_is_waited_for)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    for (int n = 0; n < 600; n++) {
        desk.now += SGP_BEAT_NS;
        say_pulse(&desk, 1, SGP_IN, pulse_at(0, 0));
    }
    cr_assert(eq(i64, status_of(&desk).round, 0));
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_SHARE));
    close_desk(&desk);
}

/* Its end of the connection may be dead: only this node can dial it again. */
Test(silence, the_silence_of_one_that_rests_is_missed_and_its_link_dialled_anew)
{
    const enum sgp_node_state states[] = {SGP_NODE_PAUSED, SGP_NODE_FINISHED, SGP_NODE_DRAINING};
    for (size_t k = 0; k < sizeof states / sizeof *states; k++) {
        struct desk desk;
        open_pair(&desk);
        struct sgp_pulse rests = pulse_at(0, SGP_ROUND_NONE);
        rests.state = states[k];
        say_pulse(&desk, 1, SGP_OUT, rests);
        desk.now += SGP_SILENCE_MIN_NS;
        post_type(&desk, SGP_EVENT_TICK);
        const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
        cr_assert_not_null(end, "state %d", (int)states[k]);
        cr_assert(eq(int, end->hang_up.code, SGP_E_ABSENT));
        bool dialled = false;
        for (int i = 0; i < 100 && !dialled; i++) {
            desk.now = sgp_node_deadline(desk.node);
            post_type(&desk, SGP_EVENT_TICK);
            dialled = find(&desk, SGP_EFFECT_DIAL) != NULL;
        }
        cr_assert(dialled);
        close_desk(&desk);
    }
}

Test(silence, a_paused_or_finished_peer_is_not_waited_for)
{
    const enum sgp_node_state states[] = {SGP_NODE_PAUSED, SGP_NODE_FINISHED, SGP_NODE_DRAINING};
    for (size_t i = 0; i < 3; i++) {
        struct desk desk;
        open_pair(&desk);
        give_first(&desk);
        struct sgp_pulse pulse = pulse_at(0, SGP_ROUND_NONE);
        pulse.state = states[i];
        say_pulse(&desk, 1, SGP_IN, pulse);
        cr_assert(eq(i64, status_of(&desk).round, 1));
        close_desk(&desk);
    }
}

Test(silence, a_paused_node_says_so_and_falls_quiet)
{
    struct desk desk;
    open_pair(&desk);
    post_type(&desk, SGP_EVENT_PAUSE);
    const struct sgp_effect *beat = find_sent(&desk, SGP_BEAT, 1);
    cr_assert_not_null(beat);
    cr_assert(eq(int, beat->send.message.pulse.state, SGP_NODE_PAUSED));
    cr_assert(eq(i64, beat->send.message.pulse.next_round, SGP_ROUND_NONE));
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert_null(find(&desk, SGP_EFFECT_PUBLISH));
    struct sgp_pulse pulse = pulse_at(0, SGP_ROUND_NONE);
    pulse.state = SGP_NODE_PAUSED;
    say_pulses(&desk, 1, pulse);
    cr_assert(eq(i64, sgp_node_deadline(desk.node), SGP_TIME_NEVER), "no timer when idle");
    say_pulse(&desk, 1, SGP_OUT, pulse_at(0, SGP_ROUND_NONE));
    post_type(&desk, SGP_EVENT_RESUME);
    cr_assert(eq(i64, find_sent(&desk, SGP_BEAT, 1)->send.message.pulse.next_round, 0));
    close_desk(&desk);
}

/* The other end of a connection may be gone without a word: only a beat that is missed tells. */
Test(silence, a_paused_peer_beats_and_is_hung_up_on_when_it_does_not)
{
    struct desk desk;
    open_pair(&desk);
    struct sgp_pulse pulse = pulse_at(0, SGP_ROUND_NONE);
    pulse.state = SGP_NODE_PAUSED;
    say_pulse(&desk, 1, SGP_OUT, pulse);
    desk.now += SGP_SILENCE_MIN_NS + SGP_SECOND;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_ABSENT));
    cr_assert_not_null(find(&desk, SGP_EFFECT_HANG_UP));
    close_desk(&desk);
}

/* Both rest, so nobody beats; then the peer goes on, over the one line that it has. */
Test(silence, one_that_takes_part_again_is_expected_on_the_other_line_too)
{
    for (uint32_t both = 0; both < 2; both++) {
        struct desk desk;
        open_pair(&desk);
        struct sgp_pulse rests = pulse_at(0, SGP_ROUND_NONE), goes_on = pulse_at(0, 0);
        rests.state = SGP_NODE_PAUSED;
        post_type(&desk, SGP_EVENT_PAUSE);
        post_type(&desk, SGP_EVENT_TRAINED);
        say_pulses(&desk, 1, rests);
        cr_assert(eq(i64, sgp_node_deadline(desk.node), SGP_TIME_NEVER));
        desk.now += 100 * SGP_SECOND;
        bool ends = false;
        for (int i = 0; i < 8; i++) {
            say_pulse(&desk, 1, SGP_IN, goes_on);
            if (both)
                say_pulse(&desk, 1, SGP_OUT, rests);
            desk.now += SGP_SECOND / 2;
            post_type(&desk, SGP_EVENT_TICK);
            const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
            ends = ends || (end != NULL && end->hang_up.link.direction == SGP_OUT);
        }
        cr_assert(eq(int, ends, !both));
        close_desk(&desk);
    }
}

/* Both are paused, so no heartbeats are due. */
static void open_pair_at_rest(struct desk *desk)
{
    open_pair(desk);
    post_type(desk, SGP_EVENT_PAUSE);
    post_type(desk, SGP_EVENT_TRAINED);
    struct sgp_pulse rests = pulse_at(0, SGP_ROUND_NONE);
    rests.state = SGP_NODE_PAUSED;
    say_pulses(desk, 1, rests);
    cr_assert(eq(i64, sgp_node_deadline(desk->node), SGP_TIME_NEVER));
    desk->now += 100 * SGP_SECOND;
}

/* Whether the greeting of another incarnation is accepted. On the old connection heartbeats are answered, or not. */
static bool is_let_in_beside(struct desk *desk, bool answered)
{
    uint64_t old = desk->link_of[1][SGP_IN];
    struct sgp_message rests = {.type = SGP_BEAT, .pulse = pulse_at(0, SGP_ROUND_NONE)};
    rests.pulse.state = SGP_NODE_PAUSED;
    greet_in(desk, 1, pulse_at(0, 0), 89);
    uint64_t new = desk->link_of[1][SGP_IN];
    for (int i = 0; i < 100; i++) {
        const struct sgp_effect *asked = find_sent(desk, SGP_BEAT, 1);
        const struct sgp_effect *welcome = find_sent(desk, SGP_WELCOME, 1);
        if (welcome != NULL)
            cr_assert(eq(u64, welcome->send.link.connection, new));
        if (welcome != NULL || find_end(desk, new) != NULL)
            return welcome != NULL;
        if (asked != NULL && asked->send.link.connection == old && answered) {
            post(desk, (struct sgp_event){
                           .type = SGP_EVENT_MESSAGE, .link = {1, SGP_IN, old}, .message = &rests});
            continue;
        }
        desk->now = sgp_node_deadline(desk->node);
        cr_assert(ne(i64, desk->now, SGP_TIME_NEVER));
        post_type(desk, SGP_EVENT_TICK);
    }
    cr_assert(false, "neither accepted nor refused");
    return false;
}

/* The peer was killed while both rested, and its next process has lost its incarnation. */
Test(silence, of_two_that_rest_one_that_greets_anew_gets_in_beside_a_dead_connection)
{
    struct desk desk;
    open_pair_at_rest(&desk);
    uint64_t old = desk.link_of[1][SGP_IN];
    sgp_time from = desk.now;
    cr_assert(is_let_in_beside(&desk, false));
    cr_assert(eq(int, find_end(&desk, old)->hang_up.reason, SGP_REASON_ABSENT));
    cr_assert(lt(i64, desk.now, from + SGP_SILENCE_MIN_NS));
    close_desk(&desk);
}

Test(silence, of_two_that_rest_one_that_answers_keeps_its_connection)
{
    struct desk desk;
    open_pair_at_rest(&desk);
    cr_assert(not(is_let_in_beside(&desk, true)));
    close_desk(&desk);
}

/* While both rest no heartbeats are due, so the long silence proves nothing. */
Test(silence, a_node_that_is_resumed_judges_a_resting_peer_by_its_answer_alone)
{
    for (uint32_t answers = 0; answers < 2; answers++) {
        struct desk desk;
        open_pair_at_rest(&desk);
        sgp_time from = desk.now;
        struct sgp_pulse rests = pulse_at(0, SGP_ROUND_NONE);
        rests.state = SGP_NODE_PAUSED;
        post_type(&desk, SGP_EVENT_RESUME);
        cr_assert_null(find_note(&desk, SGP_NOTE_ABSENT));
        cr_assert_not_null(find_sent(&desk, SGP_BEAT, 1));
        cr_assert_null(find(&desk, SGP_EFFECT_HANG_UP));
        if (answers)
            say_pulses(&desk, 1, rests);
        while (desk.now < from + SGP_SILENCE_MIN_NS - 1) {
            cr_assert_null(find_note(&desk, SGP_NOTE_ABSENT));
            sgp_time due = sgp_node_deadline(desk.node);
            cr_assert(gt(i64, due, desk.now));
            desk.now = due < from + SGP_SILENCE_MIN_NS ? due : from + SGP_SILENCE_MIN_NS - 1;
            post_type(&desk, SGP_EVENT_TICK);
            if (find_note(&desk, SGP_NOTE_ABSENT) != NULL)
                break;
        }
        cr_assert(eq(int, find_note(&desk, SGP_NOTE_ABSENT) != NULL, !answers));
        cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP) != NULL, !answers));
        close_desk(&desk);
    }
}

/* The other end of the same: two heartbeats are answered once, so that two at rest do not keep each other awake, however long an
 * answer is under way. */
Test(silence, one_that_rests_answers_the_second_heartbeat_of_another)
{
    struct desk desk;
    open_pair_at_rest(&desk);
    struct sgp_pulse rests = pulse_at(0, SGP_ROUND_NONE);
    rests.state = SGP_NODE_PAUSED;
    say_pulse(&desk, 1, SGP_OUT, rests);
    cr_assert_null(find_sent(&desk, SGP_BEAT, 1), "it may be an answer");
    desk.now += SGP_BEAT_IDLE_NS;
    say_pulse(&desk, 1, SGP_OUT, rests);
    const struct sgp_effect *answer = find_sent(&desk, SGP_BEAT, 1);
    cr_assert_not_null(answer);
    cr_assert(eq(u64, answer->send.link.connection, desk.link_of[1][SGP_OUT]));
    desk.now += 10 * SGP_BEAT_IDLE_NS;
    say_pulse(&desk, 1, SGP_OUT, rests);
    cr_assert_null(find_sent(&desk, SGP_BEAT, 1));
    cr_assert(eq(i64, sgp_node_deadline(desk.node), SGP_TIME_NEVER));
    close_desk(&desk);
}

/* The peer's machine lost its power while both rested, and it greets over the one line that it has. */
Test(silence, of_two_that_rest_one_that_greets_anew_is_expected_on_the_other_line_too)
{
    for (uint32_t both = 0; both < 2; both++) {
        struct desk desk;
        open_pair_at_rest(&desk);
        struct sgp_pulse rests = pulse_at(0, SGP_ROUND_NONE);
        rests.state = SGP_NODE_PAUSED;
        lose(&desk, 1, SGP_IN);
        greet_in(&desk, 1, rests, 88);
        cr_assert_not_null(find_sent(&desk, SGP_WELCOME, 1));
        uint64_t line = desk.link_of[1][SGP_OUT];
        if (both)
            say_pulse(&desk, 1, SGP_OUT, rests);
        for (int i = 0; i < 100 && sgp_node_deadline(desk.node) != SGP_TIME_NEVER; i++) {
            desk.now = sgp_node_deadline(desk.node);
            post_type(&desk, SGP_EVENT_TICK);
            if (find_end(&desk, line) != NULL)
                break;
        }
        cr_assert(eq(int, find_end(&desk, line) != NULL, !both));
        close_desk(&desk);
    }
}
