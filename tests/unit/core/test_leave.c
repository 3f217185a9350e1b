/* SPDX-License-Identifier: Apache-2.0 */
/* Leaving for good by hand: what the leaver says, to whom it gives, and what comes back. */
#include "leave_desk.h"

Test(leave, all_mass_goes_to_one_heir_and_then_the_node_is_gone)
{
    struct desk desk;
    leave_in_round_one(&desk);
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_CREDIT));
    cr_assert(eq(u32, status_of(&desk).waiting_peer, 1));
    hand_over_to(&desk, 1);
    cr_assert(not(status_of(&desk).left));
    acknowledge(&desk, 1, 2, SGP_REASON_NONE);
    cr_assert(status_of(&desk).left);
    cr_assert(eq(u32, status_of(&desk).heir, 1));
    cr_assert(eq(dbl, status_of(&desk).weight_left, 1.5));
    cr_assert_null(find_note(&desk, SGP_NOTE_DRAINED), "what is still under way is answered");
    sgp_time last = desk.now + SGP_SECOND;
    while (find_note(&desk, SGP_NOTE_DRAINED) == NULL) { /* beats come in between */
        desk.now = sgp_node_deadline(desk.node);
        cr_assert(le(i64, desk.now, last));
        post_type(&desk, SGP_EVENT_TICK);
    }
    cr_assert(
        eq(int, find(&desk, SGP_EFFECT_HANG_UP)->hang_up.message.goodbye.reason, SGP_REASON_LEFT));
    close_desk(&desk);
}

Test(leave, the_heir_alone_is_promised_a_share)
{
    struct desk desk;
    open_beside_two(&desk, 3);
    post_type(&desk, SGP_EVENT_PAUSE);
    post_type(&desk, SGP_EVENT_LEAVE);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_PAUSED), "a job is under way");
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_DRAINING), "a pause does not hold it");
    const struct sgp_effect *to_heir = find_sent(&desk, SGP_BEAT, 1);
    const struct sgp_effect *to_other = find_sent(&desk, SGP_BEAT, 2);
    cr_assert(to_heir != NULL && to_other != NULL);
    cr_assert(eq(int, to_other->send.message.pulse.state, SGP_NODE_DRAINING));
    cr_assert(eq(i64, to_heir->send.message.pulse.next_round, 0));
    cr_assert(eq(i64, to_other->send.message.pulse.next_round, SGP_ROUND_NONE));
    close_desk(&desk);
}

Test(leave, what_still_comes_returns_to_its_source)
{
    struct desk desk;
    leave_in_round_one(&desk);
    say(&desk, 1, SGP_IN, share_of(2, 1, 2)); /* its buffer was granted ahead */
    deliver(&desk, 1, 0);
    const struct sgp_effect *ack = find_sent(&desk, SGP_ACK, 1);
    cr_assert_not_null(ack);
    cr_assert(eq(int, ack->send.message.ack.reason, SGP_REASON_LEAVING));
    cr_assert(eq(dbl, status_of(&desk).weight, 1.5));
    close_desk(&desk);
}

Test(leave, one_that_declines_is_not_asked_twice)
{
    struct desk desk;
    leave_in_round_one(&desk);
    hand_over_to(&desk, 1);
    acknowledge(&desk, 1, 2, SGP_REASON_LEAVING);
    const struct sgp_effect *restore = find(&desk, SGP_EFFECT_RESTORE);
    cr_assert_not_null(restore);
    cr_assert(eq(dbl, status_of(&desk).weight, 1.5));
    post(&desk, (struct sgp_event){.type = SGP_EVENT_RESTORED, .slot = restore->restore.slot});
    hand_over_to(&desk, 2);
    acknowledge(&desk, 2, 2, SGP_REASON_NONE);
    cr_assert(eq(u32, status_of(&desk).heir, 2));
    close_desk(&desk);
}

/* Gone before the bequest could be sent: there is another. Gone after: only it knows. */
Test(leave, an_heir_that_dies_before_it_was_sent_anything_is_replaced)
{
    struct desk desk;
    leave_in_round_one(&desk);
    lose(&desk, 1, SGP_OUT);
    cr_assert(eq(u32, status_of(&desk).waiting_peer, 2));
    hand_over_to(&desk, 2);
    lose(&desk, 2, SGP_OUT);
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_ACK));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 1.5));
    greet_out(&desk, 1, pulse_at(1, SGP_ROUND_NONE), 81, 1);
    cr_assert(eq(u32, status_of(&desk).waiting_peer, 2), "it may have accepted");
    greet_out(&desk, 2, pulse_at(1, SGP_ROUND_NONE), 82, 2);
    cr_assert(status_of(&desk).left, "and says so");
    close_desk(&desk);
}

Test(leave, without_an_heir_it_waits_and_says_for_whom)
{
    struct desk desk;
    open_beside_two(&desk, 3);
    for (uint32_t i = 1; i < 3; i++)
        lose(&desk, i, SGP_OUT);
    post_type(&desk, SGP_EVENT_PAUSE);
    post_type(&desk, SGP_EVENT_LEAVE);
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_HEIR));
    cr_assert(eq(u32, status_of(&desk).waiting_peer, 1));
    post_type(&desk, SGP_EVENT_STOP);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_DRAINED), "it can be stopped");
    cr_assert(not(status_of(&desk).leaving), "and has not left");
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    close_desk(&desk);
}

Test(leave, what_makes_no_sense_is_refused_with_the_reason)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    cr_assert_not_null(strstr(sgp_node_leave_obstacle(desk.node), "joining"));
    post_type(&desk, SGP_EVENT_LEAVE);
    cr_assert(not(status_of(&desk).leaving));
    close_desk(&desk);

    static const struct sgp_edge in[] = {{1, 0, 0.5}};
    const struct sgp_edge *edges[] = {in};
    const uint32_t counts[] = {1};
    topology = topology_of(2, 1, edges, counts);
    config = config_of(topology);
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    greet_in(&desk, 1, pulse_at(0, 0), 88);
    cr_assert_not_null(strstr(sgp_node_leave_obstacle(desk.node), "nobody to whom it gives"));
    close_desk(&desk);

    open_beside_two(&desk, 3);
    cr_assert_null(sgp_node_leave_obstacle(desk.node));
    post_type(&desk, SGP_EVENT_LEAVE);
    cr_assert_not_null(strstr(sgp_node_leave_obstacle(desk.node), "already"));
    close_desk(&desk);
}

/* ---- the source of one that leaves ---- */

Test(leave, a_share_owed_to_one_that_has_left_comes_home)
{
    struct desk desk;
    open_beside_two(&desk, 3);
    give_to_two(&desk);
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0.5));
    struct sgp_pulse pulse = pulse_at(0, SGP_ROUND_NONE);
    pulse.state = SGP_NODE_DRAINING;
    say(&desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_GOODBYE,
            .pulse = pulse,
            .goodbye = {.reason = SGP_REASON_LEFT, .text = "left"}});
    cr_assert_not_null(find(&desk, SGP_EFFECT_RESTORE));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0.25));
    cr_assert(eq(dbl, status_of(&desk).weight, 0.75));
    close_desk(&desk);
}

/* ---- what survives the process ---- */

/* Killed between the bequest and its acknowledgement: the next process asks the heir. */
Test(leave, a_leaver_that_is_killed_goes_on_leaving)
{
    for (uint64_t accepted = 1; accepted <= 2; accepted++) {
        struct desk desk;
        struct sgp_record record;
        leave_in_round_one(&desk);
        hand_over_to(&desk, 1);
        record_of(&desk, &record);
        cr_assert(record.leaving && !record.left);
        struct sgp_node_config config = config_of(desk.topology);
        config.record = &record;
        config.seeks = true;
        begin_again(&desk, &config);
        post_type(&desk, SGP_EVENT_START);
        cr_assert(eq(int, status_of(&desk).state, SGP_NODE_DRAINING));
        greet_out(&desk, 1, pulse_at(1, SGP_ROUND_NONE), 81, accepted);
        cr_assert(eq(int, status_of(&desk).left, accepted == 2));
        cr_assert(eq(dbl, status_of(&desk).weight, accepted == 2 ? 0 : 1.5));
        if (accepted == 1)
            cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_ESTIMATE),
                "its parameters are gone: it takes a model before it hands its weight on");
        close_desk(&desk);
    }
}

/* ---- the order of events ---- */

static void left_says(struct desk *desk, uint32_t peer)
{
    struct sgp_pulse pulse = pulse_at(0, SGP_ROUND_NONE);
    pulse.state = SGP_NODE_DRAINING;
    say(desk, peer, SGP_OUT,
        (struct sgp_message){.type = SGP_GOODBYE,
            .pulse = pulse,
            .goodbye = {.reason = SGP_REASON_LEFT, .text = "left"}});
}

/* Its acknowledgement was lost with the connection: only a greeting says what it has accepted. */
Test(leave, a_farewell_before_the_greeting_settles_nothing)
{
    struct desk desk;
    open_beside_two(&desk, 3);
    give_to_two(&desk);
    lose(&desk, 1, SGP_OUT);
    come_up(&desk, 1, SGP_OUT);
    left_says(&desk, 1);
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0.5), "it may have accepted");
    cr_assert_null(find(&desk, SGP_EFFECT_RESTORE));
    close_desk(&desk);
}

/* n1 goes on sending its payload, and n2 beats, until there is something to hang up on. */
static const struct sgp_effect *trickle_until_hang_up(struct desk *desk)
{
    for (int i = 0; i < 100; i++) {
        desk->now = sgp_node_deadline(desk->node);
        post(desk, (struct sgp_event){.type = SGP_EVENT_HEARD, .link = link_to(desk, 1, SGP_IN)});
        const struct sgp_effect *end = find(desk, SGP_EFFECT_HANG_UP);
        if (end != NULL)
            return end;
        say(desk, 2, SGP_IN, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(1, 1)});
        say(desk, 2, SGP_OUT,
            (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(1, SGP_ROUND_NONE)});
    }
    return NULL;
}

/* It is cut off, dials again, and hears the farewell on a quiet line. */
Test(leave, a_payload_without_end_does_not_hold_it)
{
    struct desk desk;
    leave_in_round_one(&desk);
    lose(&desk, 1, SGP_OUT);
    hand_over_to(&desk, 2);
    say(&desk, 1, SGP_IN, share_of(2, 1, 2)); /* its buffer was granted ahead */
    acknowledge(&desk, 2, 2, SGP_REASON_NONE);
    sgp_time left_at = desk.now;
    const struct sgp_effect *end = trickle_until_hang_up(&desk);
    cr_assert_not_null(end);
    cr_assert(eq(u32, end->hang_up.link.peer, 1));
    cr_assert(eq(int, end->hang_up.reason, SGP_REASON_CREDIT));
    cr_assert(eq(i64, desk.now, left_at + SGP_DRAIN_NS));
    cr_assert_null(find_note(&desk, SGP_NOTE_DRAINED));
    greet_in(&desk, 1, pulse_at(1, 1), 81);
    cr_assert_null(find_sent(&desk, SGP_CREDIT, 1));
    end = trickle_until_hang_up(&desk);
    cr_assert_not_null(end);
    cr_assert(eq(int, end->hang_up.reason, SGP_REASON_LEFT));
    cr_assert(eq(i64, desk.now, left_at + 2 * SGP_DRAIN_NS));
    cr_assert_not_null(find_note(&desk, SGP_NOTE_DRAINED));
    close_desk(&desk);
}

Test(leave, one_that_has_left_and_is_stopped_says_that_it_has_left)
{
    struct desk desk;
    leave_in_round_one(&desk);
    hand_over_to(&desk, 1);
    acknowledge(&desk, 1, 2, SGP_REASON_NONE);
    post_type(&desk, SGP_EVENT_STOP);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_DRAINED));
    cr_assert(
        eq(int, find(&desk, SGP_EFFECT_HANG_UP)->hang_up.message.goodbye.reason, SGP_REASON_LEFT));
    close_desk(&desk);
}

/* ... and it is known that the heir does not have it, though it was sent once. */
Test(leave, a_bequest_that_did_not_arrive_goes_to_another)
{
    struct desk desk;
    leave_in_round_one(&desk);
    hand_over_to(&desk, 1);
    lose(&desk, 1, SGP_OUT);
    struct sgp_pulse pulse = pulse_at(1, SGP_ROUND_NONE);
    pulse.state = SGP_NODE_DRAINING;
    greet_out(&desk, 1, pulse, 81, 1);
    const struct sgp_effect *restore = find(&desk, SGP_EFFECT_RESTORE);
    cr_assert_not_null(restore);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_RESTORED, .slot = restore->restore.slot});
    hand_over_to(&desk, 2);
    close_desk(&desk);
}

/* Two neighbours that leave at once, each with a share for the other that did not arrive: nobody sends
 * to one that drains, and each would wait for the other to have left. */
Test(leave, two_that_leave_do_not_wait_for_each_other)
{
    struct desk desk;
    open_beside_two(&desk, 3);
    grant(&desk, 1, 0);
    grant(&desk, 2, 0);
    post_type(&desk, SGP_EVENT_TRAINED);
    post_type(&desk, SGP_EVENT_LEAVE);
    lose(&desk, 1, SGP_OUT);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    acknowledge(&desk, 2, 1, SGP_REASON_NONE);
    for (uint32_t i = 1; i < 3; i++) {
        say(&desk, i, SGP_IN, share_of(1, 0, 1));
        deliver(&desk, i, 0);
    }
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_DRAINING));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0.25), "n1 may have accepted");
    struct sgp_pulse pulse = pulse_at(1, SGP_ROUND_NONE);
    pulse.state = SGP_NODE_DRAINING;
    greet_out(&desk, 1, pulse, 81, 0);
    cr_assert_not_null(find(&desk, SGP_EFFECT_RESTORE), "it has not, and never will");
    cr_assert(eq(dbl, status_of(&desk).weight, 1.75));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0));
    close_desk(&desk);
}

/* n2 does not come back: after its time what it is owed is the heir's to settle, and n0 speaks to it no more. */
Test(leave, what_an_absent_one_is_owed_goes_to_the_heir)
{
    struct desk desk;
    open_beside_two(&desk, 3);
    grant(&desk, 1, 0);
    grant(&desk, 2, 0);
    post_type(&desk, SGP_EVENT_TRAINED);
    post_type(&desk, SGP_EVENT_LEAVE);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    for (uint32_t i = 1; i < 3; i++) {
        say(&desk, i, SGP_IN, share_of(1, 0, 1));
        deliver(&desk, i, 0);
        lose(&desk, 2, SGP_OUT);
    }
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_ACK));
    cr_assert(eq(u32, status_of(&desk).waiting_peer, 2));
    sgp_time until = desk.now + SGP_SILENCE_MIN_NS;
    while (status_of(&desk).waiting == SGP_WAITING_ACK) {
        desk.now = sgp_node_deadline(desk.node);
        cr_assert(le(i64, desk.now, until));
        say(&desk, 1, SGP_OUT,
            (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(1, SGP_ROUND_NONE)});
    }
    grant(&desk, 1, 1);
    const struct sgp_effect *debt = NULL;
    for (uint32_t i = 0; i < desk.effects.count; i++)
        if (desk.items[i].send.message.bequeath.kind == SGP_BEQUEATH_DEBT)
            debt = &desk.items[i];
    cr_assert_not_null(debt);
    cr_assert(eq(dbl, debt->send.message.bequeath.weight, 0.25));
    cr_assert(eq(str, (char *)debt->send.message.bequeath.target, (char *)"n2"));
    (void)stage(&desk, 1);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    cr_assert_not_null(bequest_to(&desk, 1));
    come_up(&desk, 2, SGP_OUT);
    cr_assert_not_null(find(&desk, SGP_EFFECT_HANG_UP));
    acknowledge(&desk, 1, 2, SGP_REASON_NONE);
    cr_assert(status_of(&desk).left);
    cr_assert(eq(dbl, status_of(&desk).weight_owed, 0.25));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0));
    close_desk(&desk);
}

Test(leave, an_heir_without_room_is_replaced)
{
    struct desk desk;
    leave_in_round_one(&desk);
    grant(&desk, 1, 0);
    answer(&desk, 1, false, 0);
    const struct sgp_effect *restore = find(&desk, SGP_EFFECT_RESTORE);
    cr_assert_not_null(restore);
    uint32_t slot = restore->restore.slot;
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    post(&desk, (struct sgp_event){.type = SGP_EVENT_RESTORED, .slot = slot});
    hand_over_to(&desk, 2);
    close_desk(&desk);
}

/* n0 was killed when its bequest to n1 was on its way; its parameters are gone. */
static void kill_with_bequest(struct desk *desk)
{
    struct sgp_record record;
    leave_in_round_one(desk);
    hand_over_to(desk, 1);
    record_of(desk, &record);
    for (uint32_t i = 0; i < record.link_count; i++)
        record.links[i].owed_kept = false;
    struct sgp_node_config config = config_of(desk->topology);
    config.record = &record;
    config.seeks = true;
    begin_again(desk, &config);
    post_type(desk, SGP_EVENT_START);
}

/* The estimate is half here when the bequest returns: it is the one that is taken. */
Test(leave, a_leaver_takes_the_estimate_that_is_on_its_way)
{
    struct desk desk;
    kill_with_bequest(&desk);
    greet_in(&desk, 2, pulse_at(1, 1), 82);
    cr_assert(find_sent(&desk, SGP_ASK, 2)->send.message.ask.wants);
    say(&desk, 2, SGP_IN,
        (struct sgp_message){.type = SGP_ESTIMATE,
            .pulse = pulse_at(1, 1),
            .estimate = {.round = 1, .weight = 0.5, .payload_bytes = PAYLOAD}});
    uint32_t slot = find(&desk, SGP_EFFECT_RECEIVE)->receive.slot;
    greet_out(&desk, 1, pulse_at(1, SGP_ROUND_NONE), 81, 1);
    cr_assert(eq(dbl, status_of(&desk).weight, 1.5));
    cr_assert_null(find_sent(&desk, SGP_ASK, 2), "it was asked already");
    deliver(&desk, 2, 0);
    const struct sgp_effect *adopt = find(&desk, SGP_EFFECT_ADOPT);
    cr_assert_not_null(adopt);
    cr_assert(eq(u32, adopt->adopt.candidates[0].slot, slot));
    cr_assert(eq(dbl, adopt->adopt.weight / 0.5, 3));
    close_desk(&desk);
}

/* Nobody can hand it one: after a while it gives away what its performer had. */
Test(leave, a_leaver_does_not_look_for_an_estimate_for_ever)
{
    struct desk desk;
    kill_with_bequest(&desk);
    const struct sgp_effect *scale = find(&desk, SGP_EFFECT_SCALE);
    cr_assert(eq(dbl, scale->scale.factor, 1.5), "the model of the bequest, should it return");
    greet_out(&desk, 1, pulse_at(1, SGP_ROUND_NONE), 81, 1);
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_ESTIMATE));
    for (int i = 0; i < 100 && status_of(&desk).waiting == SGP_WAITING_ESTIMATE; i++) {
        cr_assert(ne(i64, sgp_node_deadline(desk.node), SGP_TIME_NEVER));
        desk.now = sgp_node_deadline(desk.node);
        say(&desk, 1, SGP_OUT,
            (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(1, SGP_ROUND_NONE)});
    }
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_CREDIT));
    cr_assert(desk.now <= 12 * SGP_SECOND);
    grant(&desk, 1, 1);
    cr_assert_not_null(find(&desk, SGP_EFFECT_PUBLISH));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 1.5));
    close_desk(&desk);
}

/* ---- those that are heard, and do nothing ---- */

static void beat_of_both(struct desk *desk)
{
    for (uint32_t i = 1; i < 3; i++) {
        say(desk, i, SGP_IN, (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(1, 1)});
        say(desk, i, SGP_OUT,
            (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(1, SGP_ROUND_NONE)});
    }
}

/* n1 and n2 beat, and nothing else, until n0 waits for `peer`, or for a minute. */
static void beat_until(struct desk *desk, enum sgp_waiting waiting, uint32_t peer)
{
    sgp_time until = desk->now + 2 * SGP_SILENCE_MAX_NS;
    struct sgp_node_status status = status_of(desk);
    while ((status.waiting != waiting || status.waiting_peer != peer) && desk->now < until) {
        sgp_time deadline = sgp_node_deadline(desk->node);
        desk->now = deadline < desk->now + SGP_SECOND ? deadline : desk->now + SGP_SECOND;
        beat_of_both(desk);
        status = status_of(desk);
    }
    cr_assert(eq(int, status.waiting, waiting));
    cr_assert(eq(u32, status.waiting_peer, peer));
}

/* n2 takes its share, and says nothing of it: its link is ended, and the heir sees to it. */
Test(leave, one_that_never_acknowledges_does_not_hold_it)
{
    struct desk desk;
    open_beside_two(&desk, 3);
    give_to_two(&desk);
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    post_type(&desk, SGP_EVENT_PAUSE);
    post_type(&desk, SGP_EVENT_LEAVE);
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_ACK));
    beat_until(&desk, SGP_WAITING_CREDIT, 1);
    grant(&desk, 1, 0);
    cr_assert_not_null(find(&desk, SGP_EFFECT_PUBLISH));
    const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
    cr_assert(end != NULL && end->hang_up.link.peer == 2 && end->hang_up.link.direction == SGP_OUT);
    (void)stage(&desk, 1);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    cr_assert_not_null(bequest_to(&desk, 1));
    acknowledge(&desk, 1, 2, SGP_REASON_NONE);
    cr_assert(status_of(&desk).left);
    cr_assert(eq(dbl, status_of(&desk).weight_owed, 0.25));
    close_desk(&desk);
}

/* ... and n2 is not its heir while it owes it that. */
Test(leave, one_that_never_acknowledges_is_no_heir)
{
    struct desk desk;
    open_beside_two(&desk, 3);
    give_to_two(&desk);
    post_type(&desk, SGP_EVENT_PAUSE);
    post_type(&desk, SGP_EVENT_LEAVE);
    beat_until(&desk, SGP_WAITING_HEIR, 1);
    acknowledge(&desk, 2, 1, SGP_REASON_NONE);
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_CREDIT));
    cr_assert(eq(u32, status_of(&desk).waiting_peer, 2));
    close_desk(&desk);
}

Test(leave, heirs_that_grant_nothing_take_turns)
{
    struct desk desk;
    leave_in_round_one(&desk);
    cr_assert(eq(u32, status_of(&desk).waiting_peer, 1));
    beat_until(&desk, SGP_WAITING_CREDIT, 2);
    beat_until(&desk, SGP_WAITING_CREDIT, 1);
    grant(&desk, 1, 1);
    cr_assert_not_null(find(&desk, SGP_EFFECT_PUBLISH));
    close_desk(&desk);
}

/* It gets its mass back, and n1 forgets with its connection what it was told. */
Test(leave, an_heir_that_answers_nothing_is_passed_over)
{
    struct desk desk;
    leave_in_round_one(&desk);
    grant(&desk, 1, 0);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    cr_assert_null(bequest_to(&desk, 1));
    for (int i = 0; i < 60 && status_of(&desk).weight < 1.5; i++) {
        desk.now += SGP_SECOND;
        beat_of_both(&desk);
    }
    cr_assert(eq(dbl, status_of(&desk).weight, 1.5));
    cr_assert(eq(u32, status_of(&desk).waiting_peer, 2));
    struct sgp_peer_status link;
    sgp_node_link_status(desk.node, 0, &link);
    cr_assert(eq(u32, link.peer, 1));
    cr_assert(ne(int, link.state, SGP_LINK_UP));
    close_desk(&desk);
}

/* n1 begins to leave too, and has not answered the accounts yet. The bequest returns, and n1 would
 * answer accounts of no bequest. So its connection ends with the bequest. */
Test(leave, an_heir_that_begins_to_leave_answers_no_more)
{
    struct desk desk;
    leave_in_round_one(&desk);
    grant(&desk, 1, 0);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    struct sgp_message beat = {.type = SGP_BEAT, .pulse = pulse_at(1, SGP_ROUND_NONE)};
    beat.pulse.state = SGP_NODE_DRAINING;
    say(&desk, 1, SGP_OUT, beat);
    cr_assert_not_null(find(&desk, SGP_EFFECT_RESTORE));
    cr_assert(eq(dbl, status_of(&desk).weight, 1.5));
    const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
    cr_assert(end != NULL && end->hang_up.link.peer == 1 && end->hang_up.link.direction == SGP_OUT);
    cr_assert(eq(int, end->hang_up.reason, SGP_REASON_LEAVING));
    close_desk(&desk);
}
