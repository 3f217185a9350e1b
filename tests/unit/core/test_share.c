/* SPDX-License-Identifier: Apache-2.0 */
/* Shares by hand: given, taken, damaged, settled after a break; buffers and credits, and in which order. */
#include "core_desk.h"

Test(share, a_round_of_two)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_SHARE));
    cr_assert(eq(u32, status_of(&desk).waiting_peer, 1));
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0));

    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    cr_assert_not_null(find(&desk, SGP_EFFECT_RECEIVE));
    cr_assert_null(find(&desk, SGP_EFFECT_ABSORB), "a share counts when it is whole");
    deliver(&desk, 1, 0);
    const struct sgp_effect *ack = find_sent(&desk, SGP_ACK, 1);
    cr_assert_not_null(ack);
    cr_assert(eq(int, ack->send.message.ack.reason, SGP_REASON_NONE));
    const struct sgp_effect *absorb = find(&desk, SGP_EFFECT_ABSORB);
    cr_assert_not_null(absorb);
    cr_assert(eq(dbl, absorb->absorb.fraction, 0.5));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    cr_assert(eq(i64, status_of(&desk).round, 1));
    cr_assert_not_null(find(&desk, SGP_EFFECT_TRAIN), "the next round begins at once");
    close_desk(&desk);
}

Test(share, a_share_that_comes_early_is_held)
{
    struct desk desk;
    open_pair(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    deliver(&desk, 1, 0);
    cr_assert_null(find(&desk, SGP_EFFECT_ABSORB));
    cr_assert(eq(dbl, status_of(&desk).weight, 1.5), "accepted, though not absorbed");
    cr_assert(eq(dbl, status_of(&desk).weight_estimate, 1));
    const struct sgp_effect *credit = find_sent(&desk, SGP_CREDIT, 1);
    cr_assert_not_null(credit, "the next round's buffer is granted ahead");
    cr_assert(eq(i64, credit->send.message.credit.round, 1));
    close_desk(&desk);
}

Test(share, no_share_without_credit)
{
    struct desk desk;
    open_pair(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 2));
    deliver(&desk, 1, 0);
    say(&desk, 1, SGP_IN, share_of(2, 0, 2)); /* promised 2, which is too far to be granted */
    const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
    cr_assert_not_null(end);
    cr_assert(eq(int, end->hang_up.code, SGP_E_CREDIT));
    cr_assert(eq(int, end->hang_up.message.goodbye.reason, SGP_REASON_CREDIT));
    cr_assert(eq(dbl, status_of(&desk).weight, 1.5), "what was accepted stays");
    close_desk(&desk);
}

/* The promise changed from round 1 to round 0 and back. The target granted a credit for each promise. The second credit tells
 * the source that the target took the first credit back. */
Test(share, a_credit_is_void_once_one_of_an_earlier_round_follows)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    deliver(&desk, 1, 0);
    cr_assert(eq(i64, status_of(&desk).round, 1));
    grant(&desk, 1, 1);
    grant(&desk, 1, 0);
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert_null(find(&desk, SGP_EFFECT_PUBLISH));
    grant(&desk, 1, 1);
    cr_assert_not_null(find(&desk, SGP_EFFECT_PUBLISH));
    close_desk(&desk);
}

Test(share, a_share_out_of_range_ends_the_connection)
{
    struct sgp_message bad[8];
    for (size_t i = 0; i < 8; i++)
        bad[i] = share_of(1, 0, 1);
    bad[0].share.weight = (double)NAN;
    bad[1].share.weight = 2 + SGP_WEIGHT_SLACK + 0.5;
    bad[2].share.fraction = 1.5;
    bad[3].share.slice.count = PARAMETERS + 1;
    bad[4].share.slice.first = 1;
    bad[5].share.payload_bytes = 4;
    bad[6].share.number = 0;
    bad[7].share.bequest = 2.5;
    for (size_t i = 0; i < 8; i++) {
        struct desk desk;
        open_pair(&desk);
        say(&desk, 1, SGP_IN, bad[i]);
        const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
        cr_assert_not_null(end, "case %zu", i);
        cr_assert(eq(int, end->hang_up.message.goodbye.reason, SGP_REASON_RANGE));
        cr_assert(eq(dbl, status_of(&desk).weight, 1));
        close_desk(&desk);
    }
}

Test(share, a_share_that_is_not_finite_returns)
{
    struct desk desk;
    open_pair(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    deliver(&desk, 1, SGP_E_NOT_FINITE);
    const struct sgp_effect *ack = find_sent(&desk, SGP_ACK, 1);
    cr_assert(eq(int, ack->send.message.ack.reason, SGP_REASON_NOT_FINITE));
    cr_assert_not_null(find_note(&desk, SGP_NOTE_REFUSED));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));

    /* ... and our own, refused by the peer, returns with its weight */
    give_first(&desk);
    acknowledge(&desk, 1, 1, SGP_REASON_NOT_FINITE);
    const struct sgp_effect *restore = find(&desk, SGP_EFFECT_RESTORE);
    cr_assert_not_null(restore);
    cr_assert(eq(dbl, restore->restore.fraction, 0.5));
    cr_assert_not_null(find_note(&desk, SGP_NOTE_RETURNED));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0));
    close_desk(&desk);
}

/* A fleet of two has 2 in all; 4 is what one of them may have at most, whatever it consists of. The source of the share with which
 * this node comes to have more may be honest: the node takes it, and what is too much off its own. */
Test(share, of_shares_that_are_absurd_together_the_excess_is_taken_off)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    struct sgp_message first = share_of(1, 0, 1), second = share_of(2, 1, 2);
    first.share.weight = 2;
    say(&desk, 1, SGP_IN, first);
    deliver(&desk, 1, 0);
    cr_assert(eq(dbl, status_of(&desk).weight, 2.5), "and 0.5 is owed to n1");
    second.share.weight = 1.0625;
    say(&desk, 1, SGP_IN, second);
    deliver(&desk, 1, 0);
    cr_assert(eq(int, find_sent(&desk, SGP_ACK, 1)->send.message.ack.reason, SGP_REASON_NONE));
    const struct sgp_effect *note = find_note(&desk, SGP_NOTE_EXCESS);
    const struct sgp_effect *scale = find(&desk, SGP_EFFECT_SCALE);
    cr_assert(note != NULL && scale != NULL);
    cr_assert(eq(dbl, note->note.amount, 0.0625), "4.0625 here and owed");
    cr_assert(note->note.first);
    cr_assert(
        epsilon_eq(dbl, scale->scale.factor, 1 - 0.0625 / (status_of(&desk).weight + 0.0625), 1));
    cr_assert(eq(dbl, status_of(&desk).weight + status_of(&desk).weight_in_flight, 4));
    cr_assert(eq(dbl, status_of(&desk).unknown, 0.0625));
    close_desk(&desk);
}

/* n1's edge carries half; so whatever it has of the 2 members and 2, it cannot give more than 2. */
Test(share, a_share_that_weighs_more_than_its_edge_can_carry_returns)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    struct sgp_message heavy = share_of(1, 0, 1);
    heavy.share.fraction = 1; /* it would be 2.25 of 2.25 */
    heavy.share.weight = 2.25;
    say(&desk, 1, SGP_IN, heavy);
    deliver(&desk, 1, 0);
    const struct sgp_effect *ack = find_sent(&desk, SGP_ACK, 1);
    cr_assert_not_null(ack);
    cr_assert(eq(int, ack->send.message.ack.reason, SGP_REASON_RANGE));
    cr_assert(eq(dbl, status_of(&desk).weight, 0.5));
    cr_assert_not_null(find_note(&desk, SGP_NOTE_REFUSED));
    close_desk(&desk);
}

/* A fraction of 1/2 that weighs 2.5 is half of 5, and nobody has more than 4. */
Test(share, a_share_of_more_than_there_is_ends_the_connection)
{
    struct desk desk;
    open_pair(&desk);
    struct sgp_message heavy = share_of(1, 0, 1);
    heavy.share.weight = 2.5;
    say(&desk, 1, SGP_IN, heavy);
    const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
    cr_assert_not_null(end);
    cr_assert(eq(int, end->hang_up.message.goodbye.reason, SGP_REASON_RANGE));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    close_desk(&desk);
}

Test(share, a_damaged_share_is_neither_accepted_nor_lost)
{
    struct desk desk;
    open_pair(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    deliver(&desk, 1, SGP_E_CHECKSUM);
    cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP)->hang_up.code, SGP_E_CHECKSUM));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    greet_in(&desk, 1, pulse_at(0, 0), 88); /* it dials again and is told what we have */
    cr_assert(eq(u64, find_sent(&desk, SGP_WELCOME, 1)->send.message.welcome.accepted, 0));
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 1));
    close_desk(&desk);
}

/* The connection breaks with a share under way; the target says what it had accepted. */
static void reconnect_after_break(struct desk *desk, uint64_t incarnation, uint64_t accepted)
{
    open_pair(desk);
    give_first(desk);
    post(
        desk, (struct sgp_event){
                  .type = SGP_EVENT_DOWN, .link = link_to(desk, 1, SGP_OUT), .code = SGP_E_CLOSED});
    cr_assert(eq(dbl, status_of(desk).weight_in_flight, 0.5), "owed, not lost");
    desk->now += 100 * SGP_MILLISECOND;
    post_type(desk, SGP_EVENT_TICK);
    cr_assert_not_null(find(desk, SGP_EFFECT_DIAL));
    greet_out(desk, 1, pulse_at(0, SGP_ROUND_NONE), incarnation, accepted);
}

Test(share, what_was_accepted_before_a_break_is_settled)
{
    struct desk desk;
    reconnect_after_break(&desk, 88, 1);
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0));
    cr_assert(eq(dbl, status_of(&desk).weight, 0.5));
    cr_assert_null(find(&desk, SGP_EFFECT_RESTORE));
    close_desk(&desk);
}

Test(share, what_was_lost_in_a_break_is_sent_again)
{
    struct desk desk;
    reconnect_after_break(&desk, 88, 0);
    cr_assert_null(find_sent(&desk, SGP_SHARE, 1), "not without a new credit");
    grant(&desk, 1, 0);
    const struct sgp_effect *again = find_sent(&desk, SGP_SHARE, 1);
    cr_assert_not_null(again);
    cr_assert(eq(u64, again->send.message.share.number, 1));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0.5));
    close_desk(&desk);
}

/* It may have accepted it, and left it to an heir: that is asked before the share returns. */
Test(share, a_target_without_memory_gives_the_share_back)
{
    struct desk desk;
    reconnect_after_break(&desk, 99, 0);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_DISPUTED));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0.5));
    const struct sgp_effect *inquire = find(&desk, SGP_EFFECT_INQUIRE);
    cr_assert_not_null(inquire);
    cr_assert(eq(u32, inquire->inquire.peer, 1));
    cr_assert(eq(u64, inquire->inquire.question.target_incarnation, 88));
    struct sgp_message none = {.type = SGP_ANSWER, .answer = {.incarnation = 99}};
    post(&desk, (struct sgp_event){.type = SGP_EVENT_ANSWER, .message = &none});
    desk.now += SGP_SECOND;
    post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_SETTLED));
    cr_assert_not_null(find(&desk, SGP_EFFECT_RESTORE), "to the bit");
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0));
    close_desk(&desk);
}

/* A credit covers the round that it was granted for: one who jumps must wait for another. */
Test(share, a_jump_leaves_the_old_credit_behind)
{
    struct desk desk;
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.method = sgp_method_find("dpsgd"); /* publishes as soon as a round begins */
    config.fingerprint.method = 4;
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    struct sgp_fingerprint other = prints;
    other.method = 4;
    come_up(&desk, 1, SGP_OUT);
    say(&desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_WELCOME,
            .pulse = pulse_at(0, SGP_ROUND_NONE),
            .welcome = {.target = "n1", .incarnation = 88, .fingerprint = other}});
    come_up(&desk, 1, SGP_IN);
    say(&desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_HELLO,
            .pulse = pulse_at(0, 0),
            .hello = {.source = "n1",
                .target = "n0",
                .incarnation = 88,
                .parameters = PARAMETERS,
                .fingerprint = other}});
    grant(&desk, 1, 0);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    grant(&desk, 1, 1);
    post_type(&desk, SGP_EVENT_TRAINED);
    say_pulse(&desk, 1, SGP_IN, pulse_at(50, 60));
    cr_assert_not_null(find_note(&desk, SGP_NOTE_JUMP));
    cr_assert_null(find(&desk, SGP_EFFECT_PUBLISH));
    grant(&desk, 1, 50);
    cr_assert_not_null(find(&desk, SGP_EFFECT_PUBLISH));
    close_desk(&desk);
}

/* n1, n2 and n3 give to n0 in turn. */
static struct sgp_topology *three_in_turn(void)
{
    static const struct sgp_edge one[] = {{1, 0, 0.5}}, two[] = {{2, 0, 0.5}},
                                 three[] = {{3, 0, 0.5}};
    const struct sgp_edge *edges[] = {one, two, three};
    const uint32_t counts[] = {1, 1, 1};
    return topology_of(4, 3, edges, counts);
}

/* Buffers are granted in the order of the promised rounds. */
Test(share, buffers_are_granted_in_round_order)
{
    struct desk desk;
    struct sgp_topology *topology = three_in_turn();
    struct sgp_node_needs needs;
    cr_assert(eq(int, sgp_node_needs(topology, 0, sgp_method_find("sgp"), &needs), 0));
    cr_assert(eq(u32, needs.receives, 3));
    open_desk(&desk, topology, config_of(topology));
    post_type(&desk, SGP_EVENT_START);
    greet_in(&desk, 3, pulse_at(0, 2), 13);
    cr_assert_null(find_sent(&desk, SGP_CREDIT, 3), "round 2 is too far ahead");
    greet_in(&desk, 2, pulse_at(0, 1), 12);
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 2));
    greet_in(&desk, 1, pulse_at(0, 0), 11);
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 1));
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(u32, status_of(&desk).waiting_peer, 1));

    /* n2 changes its plan: its credit is void, and a new one follows the new promise */
    say_pulse(&desk, 2, SGP_IN, pulse_at(0, 4));
    cr_assert_null(find_sent(&desk, SGP_CREDIT, 2));
    say(&desk, 2, SGP_IN, share_of(1, 0, 4));
    cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP)->hang_up.code, SGP_E_CREDIT));
    close_desk(&desk);
}

/* Of three buffers two are granted for the next round; the third waits for a share of this one. */
Test(share, the_last_free_buffer_is_for_a_share_that_is_due)
{
    struct desk desk;
    struct sgp_topology *topology = three_in_turn();
    open_desk(&desk, topology, config_of(topology));
    post_type(&desk, SGP_EVENT_START);
    greet_in(&desk, 2, pulse_at(0, 1), 12);
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 2));
    greet_in(&desk, 3, pulse_at(0, 1), 13);
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 3));
    greet_in(&desk, 1, pulse_at(0, 1), 11);
    cr_assert_null(find_sent(&desk, SGP_CREDIT, 1), "one is free, and it is for round 0");
    say_pulse(&desk, 1, SGP_IN, pulse_at(0, 0));
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 1));
    close_desk(&desk);
}

/* n1 and n2 give to n0 in turn; the first share comes `took` after it was announced, in a round that is then
 * `lasted` old. Whether n1's next credit was sent before n2's share of round 1 is there, and after. */
static void share_that_took(sgp_time took, sgp_time lasted, bool *ret_before, bool *ret_after)
{
    static const struct sgp_edge one[] = {{1, 0, 0.5}}, two[] = {{2, 0, 0.5}};
    const struct sgp_edge *edges[] = {one, two};
    const uint32_t counts[] = {1, 1};
    struct desk desk;
    struct sgp_topology *topology = topology_of(3, 2, edges, counts);
    open_desk(&desk, topology, config_of(topology));
    post_type(&desk, SGP_EVENT_START);
    greet_in(&desk, 1, pulse_at(0, 0), 11);
    greet_in(&desk, 2, pulse_at(0, 1), 12);
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 2), "nothing is known of the links yet");
    post_type(&desk, SGP_EVENT_TRAINED);
    desk.now += lasted - took;
    say(&desk, 1, SGP_IN, share_of(1, 0, 2));
    desk.now += took;
    deliver(&desk, 1, 0);
    cr_assert(eq(i64, status_of(&desk).round, 1));
    post(&desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED,
                    .slot = find(&desk, SGP_EFFECT_ABSORB)->absorb.slot});
    *ret_before = find_sent(&desk, SGP_CREDIT, 1) != NULL;
    post_type(&desk, SGP_EVENT_TRAINED);
    say(&desk, 2, SGP_IN, share_of(1, 1, 3));
    deliver(&desk, 2, 0);
    cr_assert(eq(i64, status_of(&desk).round, 2));
    *ret_after = find_sent(&desk, SGP_CREDIT, 1) != NULL;
    close_desk(&desk);
}

Test(share, on_a_thin_link_credits_wait_for_the_shares_of_their_round)
{
    bool before, after;
    share_that_took(SGP_SECOND, SGP_SECOND, &before, &after);
    cr_assert(not(before));
    cr_assert(after);
    share_that_took(SGP_SECOND, 2 * SGP_SECOND - 1, &before, &after);
    cr_assert(not(before), "more than half");
    share_that_took(SGP_SECOND, 2 * SGP_SECOND, &before, &after);
    cr_assert(before, "a round ahead");
    cr_assert(not(after));
}

/* n1, n2 and n3 give to n0 in rounds 0, 2 and 4 of six, all of them late; n0 has two buffers. */
static void open_desk_of_late_ones(struct desk *desk)
{
    static const struct sgp_edge one[] = {{1, 0, 0.5}}, two[] = {{2, 0, 0.5}},
                                 three[] = {{3, 0, 0.5}};
    const struct sgp_edge *edges[] = {one, NULL, two, NULL, three, NULL};
    const uint32_t counts[] = {1, 0, 1, 0, 1, 0};
    struct sgp_topology *topology = topology_of(4, 6, edges, counts);
    struct sgp_node_needs needs;
    cr_assert(eq(int, sgp_node_needs(topology, 0, sgp_method_find("sgp"), &needs), 0));
    cr_assert(eq(u32, needs.receives, 2));
    struct sgp_node_config config = config_of(topology);
    config.start = 1;
    open_desk(desk, topology, config);
    post_type(desk, SGP_EVENT_START);
    while (status_of(desk).round < 5)
        post_type(desk, SGP_EVENT_TRAINED);
}

Test(share, a_buffer_not_used_yet_gives_way_to_an_earlier_share)
{
    struct desk desk;
    open_desk_of_late_ones(&desk);
    greet_in(&desk, 3, pulse_at(0, 4), 13);
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 3));
    greet_in(&desk, 2, pulse_at(0, 2), 12);
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 2));
    greet_in(&desk, 1, pulse_at(0, 0), 11);
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 1));
    const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
    cr_assert_not_null(end);
    cr_assert(eq(u32, end->hang_up.link.peer, 3), "the last in order");
    cr_assert(eq(int, end->hang_up.message.goodbye.reason, SGP_REASON_CREDIT));

    greet_in(&desk, 3, pulse_at(0, 4), 13);
    cr_assert_null(find_sent(&desk, SGP_CREDIT, 3));
    cr_assert_null(find(&desk, SGP_EFFECT_HANG_UP), "nobody is behind it");
    say(&desk, 1, SGP_IN, share_of(1, 0, 6));
    deliver(&desk, 1, 0);
    const struct sgp_effect *absorb = find(&desk, SGP_EFFECT_ABSORB);
    cr_assert_not_null(absorb);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = absorb->absorb.slot});
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 3));
    close_desk(&desk);
}

Test(share, one_who_joins_again_gets_no_buffer_before_it_trains)
{
    struct desk desk;
    open_pair(&desk);
    struct sgp_pulse joining = pulse_at(0, 0);
    joining.state = SGP_NODE_JOINING;
    lose(&desk, 1, SGP_IN);
    greet_in(&desk, 1, joining, 89);
    cr_assert_null(find_sent(&desk, SGP_CREDIT, 1));
    say_pulse(&desk, 1, SGP_IN, pulse_at(0, 0));
    cr_assert_not_null(find_sent(&desk, SGP_CREDIT, 1));
    close_desk(&desk);
}

Test(share, a_credit_is_good_for_its_round_alone)
{
    struct desk desk;
    open_pair(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 1, 2));
    cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP)->hang_up.code, SGP_E_CREDIT),
        "granted was round 0");
    close_desk(&desk);

    /* n0 only mixes; it has the credit of round 1 when it finds the fleet in round 50 */
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.rounds = 0;
    open_desk(&desk, topology, config);
    greet_pair(&desk);
    grant(&desk, 1, 0);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    grant(&desk, 1, 1);
    say_pulse(&desk, 1, SGP_OUT, pulse_at(50, -1));
    say(&desk, 1, SGP_IN, share_of(1, 0, 50));
    deliver(&desk, 1, 0);
    cr_assert(eq(i64, status_of(&desk).round, 50));
    cr_assert_null(find(&desk, SGP_EFFECT_PUBLISH));
    grant(&desk, 1, 50);
    cr_assert_not_null(find(&desk, SGP_EFFECT_PUBLISH));
    close_desk(&desk);
}
