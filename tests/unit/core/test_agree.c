/* SPDX-License-Identifier: Apache-2.0 */
/* The end: neighbours tell sketches of their estimates, and mix on until these agree. */
#include "core_desk.h"

#include "core/core.h"
#include "sgp/generate.h"
#include "sgp/wire.h"

/* Through with all rounds, and so is n1, whose shares were absorbed; the SKETCH job is asked for. */
static void come_to_the_end(struct desk *desk, uint32_t final_cycles)
{
    open_pair_that_mixes(desk, final_cycles);
    struct sgp_pulse pulse = pulse_at(0, 0);
    pulse.stop = 0;
    say_pulse(desk, 1, SGP_IN, pulse);
    post_type(desk, SGP_EVENT_TRAINED);
}

static struct sgp_sketch sketch_at(float value)
{
    return (struct sgp_sketch){.values = {[3] = value, [5] = 1}};
}

static void sketched(struct desk *desk, float value)
{
    struct sgp_sketch own = sketch_at(value);
    post(desk, (struct sgp_event){.type = SGP_EVENT_SKETCHED, .sketch = &own});
}

/* n1 is at its end with such an estimate, and says so on both links. */
static void say_end(struct desk *desk, enum sgp_node_state state, float value, sgp_round mixes)
{
    struct sgp_pulse pulse = pulse_at(status_of(desk).round, SGP_ROUND_NONE);
    pulse.state = state;
    struct sgp_message beat = {.type = SGP_BEAT,
        .pulse = pulse,
        .beat = {.ended = true, .mixes = mixes, .sketch = sketch_at(value)}};
    say(desk, 1, SGP_IN, beat);
    say(desk, 1, SGP_OUT, beat);
}

Test(agree, it_finishes_when_its_neighbour_is_there_too_with_the_same_estimate)
{
    struct desk desk;
    come_to_the_end(&desk, 0);
    cr_assert_not_null(find(&desk, SGP_EFFECT_SKETCH));
    cr_assert(eq(dbl, find(&desk, SGP_EFFECT_SKETCH)->weight, 1));
    sketched(&desk, 2);
    const struct sgp_effect *beat = find_sent(&desk, SGP_BEAT, 1);
    cr_assert_not_null(beat);
    cr_assert(beat->send.message.beat.ended);
    cr_assert(eq(flt, beat->send.message.beat.sketch.values[3], 2));
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_SETTLING));
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_END));
    cr_assert(eq(u32, status_of(&desk).waiting_peer, 1));
    say_end(&desk, SGP_NODE_SETTLING, 2, 0);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED));
    cr_assert(eq(u32, sgp_node_disagreeing(desk.node), 0));
    close_desk(&desk);
}

/* Parameters that have run away, though the loss was still a number when they did. */
Test(agree, an_estimate_beyond_all_numbers_is_none_and_can_be_said)
{
    static const float beyond[] = {INFINITY, NAN};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        struct desk desk;
        come_to_the_end(&desk, 0);
        sketched(&desk, beyond[i]);
        const struct sgp_effect *beat = find_sent(&desk, SGP_BEAT, 1);
        cr_assert_not_null(beat);
        cr_assert(beat->send.message.beat.ended && beat->send.message.beat.empty);
        uint8_t frame[SGP_WIRE_FRAME_MAX];
        size_t bytes;
        cr_assert(zero(int, sgp_wire_encode(&beat->send.message, frame, sizeof frame, &bytes)));
        close_desk(&desk);
    }
}

/* The rounds of mixing of a node whose fleet trains longer by a cycle or more. Where all go through the rounds together, it has
 * mixed with the others meanwhile. At its own pace it may have done so alone: its steps, and not its shares, are what its label
 * counts. */
Test(agree, at_its_own_pace_a_node_mixes_after_the_end_whatever_it_did_before)
{
    static const struct {
        const char *method;
        sgp_round mixes;    /* after others have trained for longer */
        sgp_round together; /* after all have ended together */
    } cases[] = {{"sgp", 0, 0}, {"osgp", 0, 2}, {"agp", 2, 2}, {"adpsgd", 2, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sgp_topology *topology = pair();
        struct sgp_node_config config = config_of(topology);
        struct desk desk;
        config.method = sgp_method_find(cases[i].method);
        config.rounds = 10;
        open_desk(&desk, topology, config);
        post_type(&desk, SGP_EVENT_START);
        desk.node->fleet.ends = 100; /* as n1 has said */
        cr_expect(eq(i64, sgp_core_last(desk.node), 100 + cases[i].mixes), "%s", cases[i].method);
        desk.node->fleet.ends = 10;
        cr_expect(eq(i64, sgp_core_last(desk.node), 10 + cases[i].together), "%s: all end together",
            cases[i].method);
        close_desk(&desk);
    }
}

Test(agree, it_mixes_twice_as_long_each_time_while_they_differ)
{
    struct desk desk;
    open_pair_that_mixes(&desk, 1);
    struct sgp_pulse pulse = pulse_at(0, SGP_ROUND_NONE);
    pulse.stop = 0;
    pulse.state = SGP_NODE_PAUSED; /* it takes no part in rounds, so that they are over at once */
    say_pulses(&desk, 1, pulse);
    struct sgp_message far = {
        .type = SGP_BEAT, .pulse = pulse, .beat = {.ended = true, .sketch = sketch_at(3)}};
    say(&desk, 1, SGP_IN, far);
    post_type(&desk, SGP_EVENT_TRAINED);
    sgp_round last = 1;
    for (sgp_round more = 1; more <= 32; more *= 2) {
        for (int i = 0; i < 1000 && find(&desk, SGP_EFFECT_SKETCH) == NULL; i++)
            post_type(&desk, SGP_EVENT_TICK);
        cr_assert(eq(i64, status_of(&desk).round, last));
        sketched(&desk, 2);
        const struct sgp_effect *note = find_note(&desk, SGP_NOTE_MIXES);
        cr_assert_not_null(note);
        cr_assert(eq(dbl, note->note.amount, 1), "so far are they apart");
        last += more;
        cr_assert(eq(i64, status_of(&desk).last_round, last));
        desk.node->ending.fresh = false; /* as the shares of a round would have it */
    }
    for (int i = 0; i < 1000 && find(&desk, SGP_EFFECT_SKETCH) == NULL; i++)
        post_type(&desk, SGP_EVENT_TICK);
    sketched(&desk, 2);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_DISAGREES), "64 cycles more would not help");
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED));
    close_desk(&desk);
}

Test(agree, mixing_is_bounded_and_then_it_says_with_whom_it_disagrees)
{
    struct desk desk;
    come_to_the_end(&desk, 0); /* no cycles of mixing: nothing to double */
    sketched(&desk, 2);
    say_end(&desk, SGP_NODE_SETTLING, 2.5f, 0);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED));
    cr_assert(eq(u32, sgp_node_disagreeing(desk.node), 2), "on both links");
    struct sgp_peer_status peer;
    sgp_node_link_status(desk.node, 0, &peer);
    cr_assert(peer.disagrees);
    cr_assert(eq(dbl, peer.distance, 0.5));
    say_end(&desk, SGP_NODE_FINISHED, 2, 0);
    cr_assert(eq(u32, sgp_node_disagreeing(desk.node), 0));
    close_desk(&desk);
}

/* It may not mix on, and its neighbour says the same twice a second. */
Test(agree, what_is_said_again_is_not_judged_again)
{
    struct desk desk;
    come_to_the_end(&desk, 0);
    sketched(&desk, 2);
    say_end(&desk, SGP_NODE_FINISHED, 2.5f, 0);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED));
    say_end(&desk, SGP_NODE_FINISHED, 2.5f, 0);
    cr_assert_null(find_note(&desk, SGP_NOTE_DISAGREES));
    say_end(&desk, SGP_NODE_FINISHED, 3, 0);
    cr_assert_null(find_note(&desk, SGP_NOTE_DISAGREES), "it speaks of itself, not of a link");
    say_end(&desk, SGP_NODE_FINISHED, 2, 0);
    cr_assert(eq(u32, sgp_node_disagreeing(desk.node), 0));
    close_desk(&desk);
}

/* Nobody gives to it, so its sketch stays as it is: at the end of each mixing it compares again, and not
 * before its neighbour has said something since. */
Test(agree, mixing_that_changes_nothing_comes_to_an_end)
{
    struct desk desk;
    open_pair_that_mixes(&desk, 1);
    struct sgp_pulse pulse = pulse_at(0, SGP_ROUND_NONE);
    pulse.stop = 0;
    pulse.state = SGP_NODE_PAUSED;
    say_pulses(&desk, 1, pulse);
    struct sgp_message far = {
        .type = SGP_BEAT, .pulse = pulse, .beat = {.ended = true, .sketch = sketch_at(3)}};
    say(&desk, 1, SGP_IN, far);
    post_type(&desk, SGP_EVENT_TRAINED);
    for (int i = 0; i < 1000 && find(&desk, SGP_EFFECT_SKETCH) == NULL; i++)
        post_type(&desk, SGP_EVENT_TICK);
    sketched(&desk, 2);
    for (int i = 0; i < 1000; i++)
        post_type(&desk, SGP_EVENT_TICK);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_SETTLING));
    cr_assert(eq(i64, status_of(&desk).last_round, 1 + 1));
    for (int i = 0; i < 1000 && status_of(&desk).state != SGP_NODE_FINISHED; i++)
        say(&desk, 1, SGP_IN, far);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED));
    cr_assert(eq(i64, status_of(&desk).last_round, 1 + 1 + 2 + 4 + 8 + 16 + 32));
    close_desk(&desk);
}

/* n1 has finished with another estimate. So this node asks for one more round, and n1 says nothing more. */
static void ask_a_finished_neighbour(struct desk *desk)
{
    open_pair_that_mixes(desk, 1);
    struct sgp_pulse pulse = pulse_at(0, SGP_ROUND_NONE);
    pulse.stop = 0;
    pulse.state = SGP_NODE_FINISHED;
    say_pulses(desk, 1, pulse);
    struct sgp_message far = {
        .type = SGP_BEAT, .pulse = pulse, .beat = {.ended = true, .sketch = sketch_at(3)}};
    say(desk, 1, SGP_IN, far);
    post_type(desk, SGP_EVENT_TRAINED);
    sketched(desk, 2);
    cr_assert_not_null(find_note(desk, SGP_NOTE_MIXES));
    cr_assert(eq(i64, status_of(desk).round, 1));
    cr_assert(eq(i64, status_of(desk).last_round, 2));
}

static bool awaits_the_end_of_n1(struct desk *desk)
{
    struct sgp_node_status status = status_of(desk);
    return status.round == 1 && status.waiting == SGP_WAITING_END && status.waiting_peer == 1;
}

Test(agree, before_it_mixes_on_a_finished_neighbour_follows)
{
    struct desk desk;
    ask_a_finished_neighbour(&desk);
    cr_assert(eq(i64, find_sent(&desk, SGP_BEAT, 1)->send.message.beat.mixes, 2));
    cr_assert(awaits_the_end_of_n1(&desk));
    say_end(&desk, SGP_NODE_FINISHED, 3, 0);
    cr_assert(awaits_the_end_of_n1(&desk), "that beat was on its way");
    struct sgp_message follows = {.type = SGP_BEAT, .pulse = pulse_at(1, 1), .beat = {.mixes = 2}};
    follows.pulse.state = SGP_NODE_SETTLING;
    say(&desk, 1, SGP_OUT, follows);
    say(&desk, 1, SGP_IN, follows);
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_CREDIT), "they mix");
    close_desk(&desk);
}

Test(agree, a_neighbour_that_replies_twice_and_does_not_follow_is_not_waited_for)
{
    struct desk desk;
    ask_a_finished_neighbour(&desk);
    say_end(&desk, SGP_NODE_FINISHED, 3, 0);
    cr_assert(awaits_the_end_of_n1(&desk));
    say_end(&desk, SGP_NODE_FINISHED, 3, 0);
    cr_assert(not(awaits_the_end_of_n1(&desk)));
    close_desk(&desk);
}

/* It is heard, so it is not absent, but it sends no heartbeat, which alone says what it knows. */
Test(agree, a_neighbour_that_never_replies_is_not_waited_for_without_end)
{
    struct desk desk;
    ask_a_finished_neighbour(&desk);
    struct sgp_message credit = {
        .type = SGP_CREDIT, .pulse = pulse_at(1, SGP_ROUND_NONE), .credit = {.round = 1}};
    credit.pulse.state = SGP_NODE_FINISHED;
    sgp_time began = desk.now;
    while (awaits_the_end_of_n1(&desk) && desk.now < began + 100 * SGP_SECOND) {
        desk.now += SGP_SECOND;
        say(&desk, 1, SGP_OUT, credit);
        cr_assert_null(find_end(&desk, desk.link_of[1][SGP_OUT]));
    }
    cr_assert(eq(i64, desk.now - began, SGP_SILENCE_MAX_NS));
    close_desk(&desk);
}

/* The end of a file with an owner or a token brings its model to all, whatever a neighbour asks. */
Test(agree, nodes_that_end_with_one_model_do_not_mix)
{
    static const struct {
        const char *family, *method;
        bool mixes;
    } cases[] = {{"ring", "sgp", true}, {"all-reduce-ring", "sgp", true},
        {"owner", "backup", false}, {"owner", "downpour", false}, {"token", "cyclic", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t self = 0; self < 2; self++) {
            struct sgp_topology *topology;
            struct sgp_generate_options options = {.family = cases[i].family, .nodes = 3};
            cr_assert(zero(int, sgp_generate(&options, NULL, &topology)));
            struct sgp_node_config config = config_of(topology);
            config.method = sgp_method_find(cases[i].method);
            config.self = self;
            struct desk desk;
            open_desk(&desk, topology, config);
            sgp_round end = sgp_core_train_end(desk.node);
            desk.node->ending.mixes = end + 60; /* as a neighbour has named it */
            sgp_core_set_round(desk.node, end);
            struct sgp_core_link *link = &desk.node->layout.links[0];
            link->connection.state = SGP_LINK_UP;
            link->pulse.state = SGP_NODE_FINISHED;
            cr_expect(eq(int, sgp_core_last(desk.node) == end + 60, cases[i].mixes), "%s %s",
                cases[i].method, desk.node->role->name);
            cr_expect(eq(int, sgp_core_is_over(desk.node, end), !cases[i].mixes), "%s %s",
                cases[i].method, desk.node->role->name);
            cr_expect(eq(int, sgp_core_not_following(desk.node) == link, cases[i].mixes), "%s %s",
                cases[i].method, desk.node->role->name);
            link->retired = true;
            cr_expect_null(sgp_core_not_following(desk.node), "the file no longer names it");
            link->retired = false;
            sgp_core_set_round(desk.node, end + 60);
            cr_expect_null(sgp_core_not_following(desk.node), "the mixing is over");
            close_desk(&desk);
        }
}

/* Each half of a fleet that was cut has ended by itself. */
Test(agree, one_that_has_finished_mixes_again_with_a_half_that_comes_back)
{
    struct desk desk;
    open_pair_that_mixes(&desk, 2);
    struct sgp_pulse pulse = pulse_at(0, SGP_ROUND_NONE);
    pulse.stop = 0;
    pulse.state = SGP_NODE_PAUSED;
    say_pulses(&desk, 1, pulse);
    post_type(&desk, SGP_EVENT_TRAINED);
    for (int i = 0; i < 10 && status_of(&desk).round < 2; i++)
        post_type(&desk, SGP_EVENT_TICK);
    sketched(&desk, 2);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED), "nobody else takes part");
    pulse = pulse_at(7, SGP_ROUND_NONE); /* that half has ended later */
    pulse.state = SGP_NODE_FINISHED;
    greet_out(&desk, 1, pulse, 88, 0);
    cr_assert_not_null(find_sent(&desk, SGP_BEAT, 1), "who has finished says so to a newcomer");
    struct sgp_message beat = {
        .type = SGP_BEAT, .pulse = pulse, .beat = {.ended = true, .sketch = sketch_at(4)}};
    say(&desk, 1, SGP_OUT, beat);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_MIXES));
    cr_assert(eq(i64, status_of(&desk).last_round, 9), "two cycles from the later end on");
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_SETTLING));
    close_desk(&desk);
}

/* Node 0 and n1 have come to the end of their rounds with the same estimate, and finish. */
static void finish_together(struct desk *desk)
{
    come_to_the_end(desk, 0);
    sketched(desk, 2);
    say_end(desk, SGP_NODE_FINISHED, 2, 0);
    cr_assert(eq(int, status_of(desk).state, SGP_NODE_FINISHED));
}

Test(agree, a_share_that_comes_late_takes_back_what_was_said)
{
    struct desk desk;
    finish_together(&desk);
    struct sgp_pulse pulse = pulse_at(0, 0);
    say_pulse(&desk, 1, SGP_IN, pulse);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    deliver(&desk, 1, 0);
    cr_assert_not_null(find(&desk, SGP_EFFECT_ABSORB));
    cr_assert_not_null(find(&desk, SGP_EFFECT_SKETCH));
    const struct sgp_effect *beat = find_sent(&desk, SGP_BEAT, 1);
    cr_assert_not_null(beat);
    cr_assert(not(beat->send.message.beat.ended));
    sketched(&desk, 2);
    cr_assert(find_sent(&desk, SGP_BEAT, 1)->send.message.beat.ended);
    close_desk(&desk);
}

/* Both have finished with the same estimate. Then a share of round 0 comes, which n1 owed while
 * this node was away. */
static void finish_and_take_a_late_share(struct desk *desk, bool paused)
{
    finish_together(desk);
    struct sgp_pulse pulse = pulse_at(0, 0);
    pulse.state = SGP_NODE_FINISHED;
    say(desk, 1, SGP_IN,
        (struct sgp_message){
            .type = SGP_BEAT, .pulse = pulse, .beat = {.ended = true, .sketch = sketch_at(2)}});
    say(desk, 1, SGP_IN, share_of(1, 0, 1));
    if (paused)
        post_type(desk, SGP_EVENT_PAUSE);
    cr_assert(eq(int, status_of(desk).state, SGP_NODE_FINISHED), "the share is not there yet");
    deliver(desk, 1, 0);
    cr_assert_not_null(find(desk, SGP_EFFECT_ABSORB));
}

/* Between the share and the comparison the node cannot know whether both agree. */
Test(agree, a_finished_node_settles_from_a_late_share_until_it_has_compared)
{
    struct desk desk;
    finish_and_take_a_late_share(&desk, false);
    cr_assert_not_null(find(&desk, SGP_EFFECT_SKETCH));
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_SETTLING));
    cr_assert(eq(u32, sgp_node_disagreeing(desk.node), 0));
    sketched(&desk, 3);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED));
    cr_assert_not_null(find_note(&desk, SGP_NOTE_STATE), "so the daemon saves the model anew");
    cr_assert(eq(u32, sgp_node_disagreeing(desk.node), 2), "on both links");
    close_desk(&desk);
}

/* A paused node absorbs, but does not come to its end before it is resumed. */
Test(agree, a_paused_node_that_had_finished_compares_a_late_share_when_it_is_resumed)
{
    struct desk desk;
    finish_and_take_a_late_share(&desk, true);
    cr_assert_null(find(&desk, SGP_EFFECT_SKETCH));
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_PAUSED));
    post_type(&desk, SGP_EVENT_RESUME);
    cr_assert_not_null(find(&desk, SGP_EFFECT_SKETCH));
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_SETTLING));
    sketched(&desk, 2);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED));
    cr_assert(eq(u32, sgp_node_disagreeing(desk.node), 0));
    close_desk(&desk);
}

/* n1 mixes on, for example because another node came back with another model. */
Test(agree, a_paused_node_that_had_finished_mixes_with_the_others_when_it_is_resumed)
{
    struct desk desk;
    come_to_the_end(&desk, 0);
    sketched(&desk, 2);
    say_end(&desk, SGP_NODE_FINISHED, 2, 0);
    post_type(&desk, SGP_EVENT_PAUSE);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED), "all agree");
    struct sgp_pulse pulse = pulse_at(0, 3);
    pulse.state = SGP_NODE_SETTLING;
    struct sgp_message asks = {.type = SGP_BEAT, .pulse = pulse, .beat = {.mixes = 6}};
    say(&desk, 1, SGP_OUT, asks);
    say(&desk, 1, SGP_IN, asks);
    cr_assert(eq(i64, status_of(&desk).last_round, 6));
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_PAUSED));
    desk.now += SGP_BEAT_IDLE_NS;
    post_type(&desk, SGP_EVENT_TICK);
    const struct sgp_effect *beat = find_sent(&desk, SGP_BEAT, 1);
    cr_assert_not_null(beat);
    cr_assert(eq(int, beat->send.message.pulse.state, SGP_NODE_PAUSED));
    cr_assert(not(beat->send.message.beat.ended));
    post_type(&desk, SGP_EVENT_RESUME);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_SETTLING));
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_CREDIT), "it has a share to give");
    close_desk(&desk);
}

/* n1 asks for more mixing and stops. Nothing is left to mix with, or to hear. */
Test(agree, one_that_has_finished_finishes_again_when_the_last_to_mix_leaves)
{
    struct desk desk;
    finish_together(&desk);
    struct sgp_pulse pulse = pulse_at(0, 3);
    pulse.state = SGP_NODE_SETTLING;
    struct sgp_message asks = {.type = SGP_BEAT, .pulse = pulse, .beat = {.mixes = 6}};
    say(&desk, 1, SGP_OUT, asks);
    say(&desk, 1, SGP_IN, asks);
    cr_assert(eq(i64, status_of(&desk).last_round, 6));
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_SETTLING));
    pulse.state = SGP_NODE_DRAINING;
    struct sgp_message goodbye = {.type = SGP_GOODBYE,
        .pulse = pulse,
        .goodbye = {.reason = SGP_REASON_LEAVING, .text = "stopped"}};
    say(&desk, 1, SGP_OUT, goodbye);
    say(&desk, 1, SGP_IN, goodbye);
    for (int i = 0; i < 10; i++)
        post_type(&desk, SGP_EVENT_TICK);
    cr_assert(eq(i64, status_of(&desk).round, 6));
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED));
    close_desk(&desk);
}

/* A hostile neighbour asks for mixing without end, and an honest one whose file has a longer cycle for more
 * than this node's file allows: it gets as much as that. */
Test(agree, a_last_round_beyond_all_mixing_is_cut_and_not_refused)
{
    struct desk desk;
    open_pair(&desk);
    struct sgp_message beat = {
        .type = SGP_BEAT, .pulse = pulse_at(0, 0), .beat = {.mixes = 100 + 8000}};
    say(&desk, 1, SGP_IN, beat);
    cr_assert_null(find(&desk, SGP_EFFECT_HANG_UP));
    cr_assert(eq(i64, status_of(&desk).last_round, 100 + 2000));
    beat.pulse = pulse_at(100 + 7000, 100 + 7000);
    beat.pulse.state = SGP_NODE_SETTLING;
    say(&desk, 1, SGP_IN, beat);
    cr_assert_null(find(&desk, SGP_EFFECT_HANG_UP));
    cr_assert(eq(i64, status_of(&desk).last_round, 100 + 2000));
    close_desk(&desk);
}

/* Until its last training round an early stop may bring the end nearer. */
Test(agree, a_node_names_its_own_last_round_once_training_has_ended)
{
    struct desk desk;
    open_pair_that_mixes(&desk, 3);
    desk.now += SGP_BEAT_NS;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find_sent(&desk, SGP_BEAT, 1));
    cr_assert(zero(i64, find_sent(&desk, SGP_BEAT, 1)->send.message.beat.mixes));
    struct sgp_pulse pulse = pulse_at(0, 0);
    pulse.stop = 0;
    say_pulse(&desk, 1, SGP_IN, pulse);
    const struct sgp_effect *beat = find_sent(&desk, SGP_BEAT, 1);
    cr_assert_not_null(beat, "at once, not with the next beat");
    cr_assert(eq(i64, beat->send.message.beat.mixes, 1), "one round makes a pair equal");
    cr_assert(not(beat->send.message.beat.ended));
    close_desk(&desk);
}

/* A neighbour's file has longer cycles, or its configuration more of them. */
Test(agree, the_greatest_last_round_that_is_named_counts_and_is_passed_on)
{
    struct desk desk;
    come_to_the_end(&desk, 0);
    sketched(&desk, 2);
    cr_assert(find_sent(&desk, SGP_BEAT, 1)->send.message.beat.ended);
    struct sgp_pulse pulse = pulse_at(0, 3);
    pulse.state = SGP_NODE_SETTLING;
    say(&desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_BEAT, .pulse = pulse, .beat = {.mixes = 6}});
    cr_assert(eq(i64, status_of(&desk).last_round, 6));
    const struct sgp_effect *beat = find_sent(&desk, SGP_BEAT, 1);
    cr_assert_not_null(beat);
    cr_assert(eq(i64, beat->send.message.beat.mixes, 6));
    cr_assert(not(beat->send.message.beat.ended));
    close_desk(&desk);
}

/* Where its bound cuts what a neighbour names, that one mixes on, and must not wait for a credit for ever. */
Test(agree, at_its_end_a_node_grants_a_credit_for_whatever_round_a_neighbour_mixes_in)
{
    struct desk desk;
    come_to_the_end(&desk, 0);
    sketched(&desk, 2);
    struct sgp_pulse pulse = pulse_at(5, 5);
    pulse.state = SGP_NODE_SETTLING;
    say_pulse(&desk, 1, SGP_IN, pulse);
    const struct sgp_effect *credit = find_sent(&desk, SGP_CREDIT, 1);
    cr_assert_not_null(credit);
    cr_assert(eq(i64, credit->send.message.credit.round, 5));
    cr_assert(zero(i64, status_of(&desk).last_round));
    close_desk(&desk);
}

/* It goes to where the fleet is, and not beyond where its own mixing may end. */
Test(agree, no_neighbour_takes_it_beyond_all_mixing)
{
    struct desk desk;
    open_pair(&desk);
    struct sgp_pulse pulse = pulse_at(100 + 8000, 100 + 8000);
    pulse.state = SGP_NODE_SETTLING;
    say_pulses(&desk, 1, pulse);
    grant(&desk, 1, 0);
    post_type(&desk, SGP_EVENT_TRAINED);
    for (int i = 0; i < 10 && status_of(&desk).jumps == 0; i++)
        post_type(&desk, find(&desk, SGP_EFFECT_PUBLISH) ? SGP_EVENT_PUBLISHED : SGP_EVENT_TICK);
    cr_assert(eq(u64, status_of(&desk).jumps, 1));
    cr_assert(eq(i64, status_of(&desk).round, 100 + 2000));
    close_desk(&desk);
}

/* It had finished, and is started again while its neighbour is down. */
Test(agree, one_that_had_finished_is_finished_again_without_its_neighbours)
{
    struct sgp_record_link links[2];
    struct sgp_record record = {.incarnation = 77,
        .round = 8,
        .weight = 1,
        .rounds = 100,
        .stop = 4,
        .mixes = 8,
        .links = links,
        .link_capacity = 2};
    struct desk desk;
    open_from(&desk, &record);
    cr_assert_not_null(find(&desk, SGP_EFFECT_SKETCH));
    sketched(&desk, 2);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_FINISHED));
    cr_assert(eq(i64, status_of(&desk).round, 8));
    close_desk(&desk);
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.record = &record;
    config.rounds = 200; /* its user wants more: that end is not this one */
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_JOINING));
    close_desk(&desk);
}
