/* SPDX-License-Identifier: Apache-2.0 */
/* Patience: how long one that is heard may keep a node waiting, by a payload, a round, or a word withheld. */
#include "core_desk.h"

/* ---- payloads ---- */

/* n1 beats while its payload is under way; `heard_every` (0: never) so many `bytes` more of it come.
 * Returns when the connection ends, or -1. */
static sgp_time end_of_payload(struct desk *desk, sgp_time heard_every, uint64_t bytes)
{
    sgp_time from = desk->now;
    uint64_t come = 0;
    for (int n = 1; n <= 200; n++) {
        desk->now += SGP_BEAT_NS;
        say_pulse(desk, 1, SGP_IN, pulse_at(0, 1));
        const struct sgp_effect *end = find(desk, SGP_EFFECT_HANG_UP);
        if (end != NULL) {
            cr_assert(eq(int, end->hang_up.link.direction, SGP_IN));
            cr_assert(eq(int, end->hang_up.reason, SGP_REASON_ABSENT));
            return desk->now - from;
        }
        say_pulse(desk, 1, SGP_OUT, pulse_at(0, SGP_ROUND_NONE));
        if (heard_every > 0 && (desk->now - from) % heard_every == 0)
            post(desk, (struct sgp_event){.type = SGP_EVENT_HEARD,
                           .link = link_to(desk, 1, SGP_IN),
                           .bytes = come += bytes});
    }
    return -1;
}

Test(patience, beats_do_not_keep_a_payload_alive_of_which_nothing_comes)
{
    const uint64_t window = SGP_PAYLOAD_LEAST * (SGP_SILENCE_MAX_NS / SGP_SECOND);
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    cr_assert(eq(i64, end_of_payload(&desk, SGP_SILENCE_MAX_NS - SGP_BEAT_NS, window), -1),
        "slow, no more");
    deliver(&desk, 1, 0);
    cr_assert(eq(i64, status_of(&desk).round, 1));
    close_desk(&desk);

    open_pair(&desk);
    give_first(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    cr_assert(eq(i64, end_of_payload(&desk, 0, 0), SGP_SILENCE_MAX_NS));
    cr_assert(eq(i64, status_of(&desk).round, 1), "and nobody waits for it any more");
    close_desk(&desk);
}

/* A few bytes now and then are no progress. Whoever sent so is not waited for, comes back or not, until a
 * payload of its has come whole. */
Test(patience, a_payload_that_trickles_ends_its_connection_and_holds_nobody_again)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    cr_assert(eq(i64, end_of_payload(&desk, SGP_BEAT_NS, 4), SGP_SILENCE_MAX_NS));
    cr_assert_not_null(find_note(&desk, SGP_NOTE_TRICKLES));
    struct sgp_peer_status peer;
    sgp_node_link_status(desk.node, 1, &peer);
    cr_assert(peer.overdue);
    cr_assert(not(peer.absent));

    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    greet_in(&desk, 1, pulse_at(1, 0), 88); /* its share is still its own, and is sent again */
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 1));
    grant(&desk, 1, 1);
    post_type(&desk, SGP_EVENT_TRAINED);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    cr_assert(eq(i64, status_of(&desk).round, 2), "it promised, and is not waited for");
    acknowledge(&desk, 1, 2, SGP_REASON_NONE);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    deliver(&desk, 1, 0);
    sgp_node_link_status(desk.node, 1, &peer);
    cr_assert(not(peer.overdue));
    cr_assert(eq(dbl, status_of(&desk).weight, 0.25 + 0.5), "no weight is made or lost");
    close_desk(&desk);
}

/* ---- rounds ---- */

/* A pair that waits for the share of n1, which computes in round 0. */
static void open_impatient(struct desk *desk, sgp_time patience)
{
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.patience = patience;
    open_desk(desk, topology, config);
    greet_pair(desk);
    give_first(desk);
    acknowledge(desk, 1, 1, SGP_REASON_NONE);
}

/* n1 beats for so long, in round `round`; returns whether the node has gone on to round 1 at the end. */
static bool beat_for(struct desk *desk, sgp_time time, sgp_round round, bool computing)
{
    struct sgp_pulse pulse = pulse_at(round, 0);
    pulse.computing = computing;
    for (sgp_time end = desk->now + time; desk->now < end;) {
        cr_assert(eq(i64, status_of(desk).round, 0));
        desk->now += end - desk->now < SGP_BEAT_NS ? end - desk->now : SGP_BEAT_NS;
        say_pulse(desk, 1, SGP_IN, pulse);
        pulse.next_round = SGP_ROUND_NONE;
        say_pulse(desk, 1, SGP_OUT, pulse);
        pulse.next_round = 0;
    }
    return status_of(desk).round == 1;
}

static struct sgp_peer_status source_of(const struct desk *desk)
{
    struct sgp_peer_status peer;
    sgp_node_link_status(desk->node, 1, &peer);
    return peer;
}

Test(patience, one_that_computes_for_ever_is_waited_for_as_long_as_the_patience_lasts)
{
    const sgp_time patience = 7 * SGP_SECOND;
    struct desk desk;
    open_impatient(&desk, 0);
    cr_assert(not(beat_for(&desk, 3600 * SGP_SECOND, 0, true)));
    close_desk(&desk);

    open_impatient(&desk, patience);
    cr_assert(not(beat_for(&desk, patience - 1, 0, true)));
    cr_assert(eq(i64, sgp_node_deadline(desk.node), desk.now + 1));
    cr_assert(not(source_of(&desk).overdue));
    desk.now += 1;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_OVERDUE));
    cr_assert(eq(i64, status_of(&desk).round, 1));
    cr_assert(source_of(&desk).overdue);
    cr_assert(not(source_of(&desk).absent));
    say(&desk, 1, SGP_IN, share_of(1, 0, 1)); /* late, and welcome */
    deliver(&desk, 1, 0);
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    cr_assert(source_of(&desk).overdue);
    say_pulse(&desk, 1, SGP_IN, pulse_at(1, 1));
    cr_assert(not(source_of(&desk).overdue));
    close_desk(&desk);
}

/* It is another's fault, or says so: whoever it waits for itself is overdue first. */
Test(patience, one_that_waits_has_twice_the_time)
{
    const sgp_time patience = 7 * SGP_SECOND;
    struct desk desk;
    open_impatient(&desk, patience);
    cr_assert(not(beat_for(&desk, 2 * patience - 1, 0, false)));
    cr_assert(not(source_of(&desk).overdue));
    cr_assert(beat_for(&desk, 1, 0, false));
    cr_assert(source_of(&desk).overdue);
    close_desk(&desk);
}

/* Overdue as a target too: without a credit of it the node keeps what it would have given. */
Test(patience, nobody_waits_for_the_credit_of_one_that_is_overdue)
{
    const sgp_time patience = 7 * SGP_SECOND;
    struct desk desk;
    open_impatient(&desk, patience);
    cr_assert(beat_for(&desk, patience, 0, true));
    cr_assert(eq(dbl, status_of(&desk).weight, 0.5));
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert_null(find(&desk, SGP_EFFECT_PUBLISH));
    cr_assert(eq(i64, status_of(&desk).round, 2));
    cr_assert(eq(dbl, status_of(&desk).weight, 0.5));
    grant(&desk, 1, 2); /* one that can be given to is given to */
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert_not_null(find(&desk, SGP_EFFECT_PUBLISH));
    close_desk(&desk);
}

/* It beats, and takes what it is given for ever: the next round goes on without it, and what it is owed
 * stays owed. */
Test(patience, a_target_that_never_acknowledges_holds_nobody_for_longer_than_a_payload_may_take)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, SGP_ROUND_NONE));
    deliver(&desk, 1, 0);
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(i64, status_of(&desk).round, 1));
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_ACK));
    for (sgp_time end = desk.now + SGP_SILENCE_MAX_NS; desk.now < end;) {
        cr_assert(eq(i64, status_of(&desk).round, 1));
        desk.now += SGP_BEAT_NS;
        const struct sgp_message beat = {.type = SGP_BEAT, .pulse = pulse_at(1, SGP_ROUND_NONE)};
        say(&desk, 1, SGP_IN, beat);
        say(&desk, 1, SGP_OUT, beat);
    }
    cr_assert(eq(i64, status_of(&desk).round, 2));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0.5));
    struct sgp_peer_status target;
    sgp_node_link_status(desk.node, 0, &target);
    cr_assert(target.overdue);
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    sgp_node_link_status(desk.node, 0, &target);
    cr_assert(not(target.overdue));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0));
    close_desk(&desk);
}

Test(patience, one_that_computes_for_8_times_its_longest_round_is_slow)
{
    struct desk desk;
    open_impatient(&desk, 0);
    cr_assert(not(beat_for(&desk, SGP_SILENCE_MAX_NS, 0, true)));
    cr_assert(not(source_of(&desk).slow), "no round is known, and 30 s are not much");
    (void)beat_for(&desk, SGP_SECOND, 0, true);
    cr_assert(source_of(&desk).slow);
    (void)beat_for(&desk, SGP_BEAT_NS, 0, false);
    cr_assert(not(source_of(&desk).slow), "it waits");
    sgp_time longest = SGP_SILENCE_MAX_NS + SGP_SECOND + 2 * SGP_BEAT_NS;
    (void)beat_for(&desk, SGP_BEAT_NS, 1, true);
    (void)beat_for(&desk, 8 * longest, 1, true);
    cr_assert(not(source_of(&desk).slow), "its longest round took 32 s");
    (void)beat_for(&desk, 2 * SGP_BEAT_NS, 1, true);
    cr_assert(source_of(&desk).slow);
    close_desk(&desk);
}

/* ---- ways around it ---- */

Test(patience, an_empty_share_is_no_payload_that_has_come_whole)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    cr_assert(eq(i64, end_of_payload(&desk, SGP_BEAT_NS, 4), SGP_SILENCE_MAX_NS));
    greet_in(&desk, 1, pulse_at(1, 0), 88);
    struct sgp_message empty = share_of(1, 0, 1);
    empty.share.fraction = empty.share.weight = 0;
    empty.share.payload_bytes = 0;
    say(&desk, 1, SGP_IN, empty);
    cr_assert_not_null(find_sent(&desk, SGP_ACK, 1));
    cr_assert(source_of(&desk).overdue);
    close_desk(&desk);
}

/* n1 says another round in each beat; returns whether it is late within a minute. */
static bool ends_the_waiting(
    struct desk *desk, enum sgp_direction direction, sgp_round promise, const sgp_round rounds[4])
{
    for (int i = 0; i < 120; i++) {
        struct sgp_pulse pulse = pulse_at(rounds[i % 4] + (rounds[0] == 1 ? i : 0), promise);
        pulse.state = i % 2 == 0 ? SGP_NODE_TRAINING : SGP_NODE_SETTLING;
        pulse.computing = true;
        desk->now += SGP_BEAT_NS;
        say(desk, 1, direction, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse});
        struct sgp_peer_status peer;
        sgp_node_link_status(desk->node, direction == SGP_OUT ? 0 : 1, &peer);
        if (peer.overdue)
            return true;
    }
    return false;
}

Test(patience, other_words_about_its_round_are_no_progress_of_a_source)
{
    static const sgp_round back_and_forth[4] = {0, 3, 2, 5}, ever_more[4] = {1, 1, 1, 1};
    struct desk desk;
    open_impatient(&desk, 7 * SGP_SECOND);
    cr_assert(ends_the_waiting(&desk, SGP_IN, 0, back_and_forth), "it owes the share of round 0");
    close_desk(&desk);
    open_impatient(&desk, 7 * SGP_SECOND);
    cr_assert(ends_the_waiting(&desk, SGP_IN, 0, ever_more));
    close_desk(&desk);
}

Test(patience, other_words_about_its_round_are_no_progress_of_a_target)
{
    static const sgp_round back_and_forth[4] = {0, 3, 2, 5}, ever_more[4] = {1, 1, 1, 1};
    for (int i = 0; i < 2; i++) {
        struct sgp_topology *topology = pair();
        struct sgp_node_config config = config_of(topology);
        config.patience = 7 * SGP_SECOND;
        struct desk desk;
        open_desk(&desk, topology, config);
        greet_pair(&desk);
        post_type(&desk, SGP_EVENT_TRAINED); /* no credit for its share comes */
        cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_CREDIT));
        cr_assert(
            ends_the_waiting(&desk, SGP_OUT, SGP_ROUND_NONE, i == 0 ? back_and_forth : ever_more));
        close_desk(&desk);
    }
}

/* A source that comes closer round by round is slow, and no more. */
Test(patience, rounds_that_lead_to_what_was_promised_are_progress)
{
    static const struct sgp_edge one[] = {{1, 0, SGP_FRACTION_DEFAULT}},
                                 back[] = {{0, 1, SGP_FRACTION_DEFAULT}};
    const struct sgp_edge *edges[] = {back, back, back, one};
    const uint32_t counts[] = {1, 1, 1, 1};
    struct sgp_topology *topology = topology_of(2, 4, edges, counts);
    struct sgp_node_config config = config_of(topology);
    config.patience = 7 * SGP_SECOND;
    struct desk desk;
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    greet_out(&desk, 1, pulse_at(0, SGP_ROUND_NONE), 88, 0);
    greet_in(&desk, 1, pulse_at(0, 3), 88);
    for (sgp_round round = 0; round < 3; round++) {
        for (int i = 0; i < 13; i++) {
            struct sgp_pulse pulse = pulse_at(round, 3);
            pulse.computing = true;
            desk.now += SGP_BEAT_NS;
            say_pulse(&desk, 1, SGP_IN, pulse);
            cr_assert(not(source_of(&desk).overdue), "in round %lld", (long long)round);
        }
    }
    close_desk(&desk);
}

/* ---- what is owed to one that is not there ---- */

static bool trickles_within(struct desk *desk, sgp_time time)
{
    for (sgp_time end = desk->now + time; desk->now < end;) {
        desk->now += SGP_BEAT_NS;
        post_type(desk, SGP_EVENT_TICK);
        if (find_note(desk, SGP_NOTE_TRICKLES) != NULL)
            return true;
    }
    return false;
}

Test(patience, what_one_that_is_gone_does_not_acknowledge_is_not_slow)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    lose(&desk, 1, SGP_OUT);
    cr_assert(not(trickles_within(&desk, 120 * SGP_SECOND)), "it is absent");
    greet_out(&desk, 1, pulse_at(0, SGP_ROUND_NONE), 88, 0);
    cr_assert_null(find_note(&desk, SGP_NOTE_TRICKLES));
    close_desk(&desk);
}

/* It takes a share again and again, and goes before it should have acknowledged it. */
Test(patience, who_comes_and_goes_is_late_after_as_long_in_all)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    bool late = false;
    for (int i = 0; i < 4 && !late; i++) {
        for (int k = 0; k < 20 && !late; k++) {
            desk.now += SGP_BEAT_NS;
            say_pulse(&desk, 1, SGP_OUT, pulse_at(0, SGP_ROUND_NONE));
            late = find_note(&desk, SGP_NOTE_TRICKLES) != NULL;
        }
        lose(&desk, 1, SGP_OUT);
        greet_out(&desk, 1, pulse_at(0, SGP_ROUND_NONE), 88, 0);
        grant(&desk, 1, 0);
        cr_assert(late || find_sent(&desk, SGP_SHARE, 1) != NULL);
    }
    cr_assert(late);
    close_desk(&desk);
}
