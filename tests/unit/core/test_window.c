/* SPDX-License-Identifier: Apache-2.0 */
/* Two shares under way on one link, as an exact cycle has them: credits that come early, and what becomes of both. */
#include "window_desk.h"

static void open_direct(struct desk *desk)
{
    open_cut(desk, 1);
}

/* n1's share of a round of the cycle. */
static void receive(struct desk *desk, sgp_round round)
{
    bool gathers = round % 2 == 1;
    struct sgp_message share = {.type = SGP_SHARE,
        .pulse = pulse_of(desk, round, round + 1, round + 2),
        .share = {.number = (uint64_t)round + 1,
            .round = round,
            .fraction = gathers ? 0.5 : 1,
            .slice = {gathers ? PARAMETERS / 2 : 0, PARAMETERS / 2},
            .payload_bytes = PAYLOAD / 2}};
    say(desk, 1, SGP_IN, share);
    cr_assert_not_null(find(desk, SGP_EFFECT_RECEIVE));
    deliver(desk, 1, 0);
}

/* Both of its shares of the first cycle have left, and neither was acknowledged. */
static struct sgp_core_link *open_window(struct desk *desk)
{
    open_direct(desk);
    grant_round(desk, 0);
    grant_round(desk, 1);
    post_type(desk, SGP_EVENT_TRAINED);
    settle_jobs(desk);
    cr_assert(eq(u64, find_sent(desk, SGP_SHARE, 1)->send.message.share.number, 1));
    receive(desk, 0);
    post(desk, (struct sgp_event){
                   .type = SGP_EVENT_ABSORBED, .slot = find(desk, SGP_EFFECT_ABSORB)->absorb.slot});
    post_type(desk, SGP_EVENT_TICK);
    struct sgp_core_link *out = sgp_core_find(desk->node, 1, SGP_OUT);
    if (desk->node->stage == SGP_STAGE_PUBLISHING)
        post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    cr_assert(out->owed[0].exists && out->owed[0].sent && out->owed[1].exists && out->owed[1].sent);
    return out;
}

/* The cycle waits for the share, so its connection stays as long as the source is heard. */
Test(window, a_share_that_trickles_is_reported_and_keeps_its_connection)
{
    struct desk desk;
    open_direct(&desk);
    post_type(&desk, SGP_EVENT_TRAINED);
    say(&desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_SHARE,
            .pulse = pulse_of(&desk, 0, 1, 2),
            .share = {.number = 1,
                .round = 0,
                .fraction = 1,
                .slice = {0, PARAMETERS / 2},
                .payload_bytes = PAYLOAD / 2}});
    struct sgp_peer_status peer;
    uint32_t told = 0;
    for (sgp_time end = desk.now + 2 * SGP_SILENCE_MAX_NS; desk.now < end;) {
        desk.now += SGP_BEAT_NS;
        say_pulse(&desk, 1, SGP_OUT, pulse_of(&desk, 0, SGP_ROUND_NONE, 0));
        cr_assert_null(find(&desk, SGP_EFFECT_HANG_UP));
        told += find_note(&desk, SGP_NOTE_TRICKLES) != NULL;
        say_pulse(&desk, 1, SGP_IN, pulse_of(&desk, 0, 1, 2));
        cr_assert_null(find(&desk, SGP_EFFECT_HANG_UP));
        told += find_note(&desk, SGP_NOTE_TRICKLES) != NULL;
    }
    cr_assert(eq(u32, told, 2), "every 30 s, and not in each step");
    cr_assert(desk.node->role->collective && desk.node->layout.links[1].patience.trickles);
    sgp_node_link_status(desk.node, 1, &peer);
    cr_assert(not(peer.overdue), "it is waited for all the same");
    deliver(&desk, 1, 0);
    cr_assert(not(desk.node->layout.links[1].patience.trickles));
    close_desk(&desk);
}

Test(window, credits_of_two_rounds_come_before_the_first_share)
{
    struct desk desk;
    open_direct(&desk);
    const struct sgp_core_link *in = sgp_core_find(desk.node, 1, SGP_IN);
    const struct sgp_core_link *out = sgp_core_find(desk.node, 1, SGP_OUT);
    cr_assert(eq(i64, desk.node->layout.receives[in->receiving.slot[0]].share.round, 0));
    cr_assert(eq(i64, desk.node->layout.receives[in->receiving.slot[1]].share.round, 1));
    cr_assert(eq(i64, out->giving.announced[0], 0));
    cr_assert(eq(i64, out->giving.announced[1], 1));
    grant_round(&desk, 0);
    grant_round(&desk, 1);
    cr_assert(eq(i64, out->giving.credit[0], 0));
    cr_assert(eq(i64, out->giving.credit[1], 1));
    grant_round(&desk, 2); /* which is too early */
    cr_assert(eq(i64, out->giving.credit[0], 0));
    cr_assert(eq(i64, out->giving.credit[1], 1));
    close_desk(&desk);
}

/* Who does not know of it says nothing, and is granted one after the other. */
Test(window, an_older_source_is_granted_one_round)
{
    struct desk desk;
    struct sgp_generate_options options = {.family = "all-reduce-direct", .nodes = 2};
    struct sgp_topology *topology = NULL;
    cr_assert(zero(int, sgp_generate(&options, NULL, &topology)));
    open_desk(&desk, topology, config_of(topology));
    post_type(&desk, SGP_EVENT_START);
    greet_out(&desk, 1, pulse_of(&desk, 0, SGP_ROUND_NONE, 0), 88, 0);
    greet_in(&desk, 1, pulse_of(&desk, 0, 0, 0), 88);
    const struct sgp_core_link *in = sgp_core_find(desk.node, 1, SGP_IN);
    cr_assert(ne(u32, in->receiving.slot[0], SGP_SLOT_NONE));
    cr_assert(eq(u32, in->receiving.slot[1], SGP_SLOT_NONE));
    close_desk(&desk);
}

/* A change of plan makes the second void as it does the first, at both ends. */
Test(window, a_credit_that_came_early_holds_as_long_as_its_promise)
{
    struct desk desk;
    open_direct(&desk);
    const struct sgp_core_link *in = sgp_core_find(desk.node, 1, SGP_IN);
    uint32_t first = in->receiving.slot[0];
    say_pulse(&desk, 1, SGP_IN, pulse_of(&desk, 0, 0, 0));
    cr_assert(eq(u32, in->receiving.slot[0], first));
    cr_assert(eq(u32, in->receiving.slot[1], SGP_SLOT_NONE));
    say_pulse(&desk, 1, SGP_IN, pulse_of(&desk, 0, SGP_ROUND_NONE, 0));
    cr_assert(eq(u32, in->receiving.slot[0], SGP_SLOT_NONE));
    close_desk(&desk);
}

Test(window, two_shares_are_under_way_and_a_third_waits)
{
    struct desk desk;
    const struct sgp_core_link *out = open_window(&desk);
    cr_assert(eq(u64, out->owed[0].share.number, 1));
    cr_assert(eq(i64, out->owed[0].share.round, 0));
    cr_assert(eq(u64, out->owed[1].share.number, 2));
    cr_assert(eq(i64, out->owed[1].share.round, 1));
    cr_assert(eq(dbl, out->owed[0].share.weight + out->owed[1].share.weight, 0));
    cr_assert(not(sgp_core_may_owe(desk.node, out)));
    answer(&desk, 1, SGP_REASON_NONE);
    cr_assert(eq(u64, out->owed[0].share.number, 2));
    cr_assert(not(out->owed[1].exists));
    cr_assert(sgp_core_may_owe(desk.node, out));
    answer(&desk, 2, SGP_REASON_NONE);
    cr_assert(not(out->owed[0].exists));
    close_desk(&desk);
}

Test(window, the_second_cannot_be_acknowledged_before_the_first)
{
    struct desk desk;
    const struct sgp_core_link *out = open_window(&desk);
    answer(&desk, 2, SGP_REASON_NONE);
    cr_assert_not_null(find(&desk, SGP_EFFECT_HANG_UP));
    cr_assert(
        out->owed[0].exists && !out->owed[0].sent && out->owed[1].exists && !out->owed[1].sent);
    close_desk(&desk);
}

/* The greeting says up to which number all was accepted; what was not is sent again, in order, against credits. */
Test(window, after_a_reconnect_each_is_settled_or_sent_again)
{
    for (uint64_t accepted = 0; accepted <= 2; accepted++) {
        struct desk desk;
        const struct sgp_core_link *out = open_window(&desk);
        lose(&desk, 1, SGP_OUT);
        greet_out(&desk, 1, pulse_of(&desk, 1, SGP_ROUND_NONE, 0), 88, accepted);
        cr_assert(eq(int, out->owed[0].exists, accepted < 2));
        cr_assert(eq(int, out->owed[1].exists, accepted < 1));
        for (uint64_t number = accepted + 1; number <= 2; number++) {
            grant_round(&desk, (sgp_round)number - 1);
            const struct sgp_effect *sent = find_sent(&desk, SGP_SHARE, 1);
            cr_assert_not_null(sent);
            cr_assert(eq(u64, sent->send.message.share.number, number));
        }
        cr_assert(eq(u64, desk.node->exact.heard.number, 0), "nothing of the cycle is lost");
        close_desk(&desk);
    }
}

/* The end of the cycle for all, whichever it is; the other is forgotten once it is answered. */
Test(window, one_that_is_refused_ends_the_cycle)
{
    for (uint64_t refused = 1; refused <= 2; refused++) {
        struct desk desk;
        const struct sgp_core_link *out = open_window(&desk);
        answer(&desk, 1, refused == 1 ? SGP_REASON_CHANGED : SGP_REASON_NONE);
        if (refused == 1)
            cr_assert(eq(u64, out->owed[0].share.number, 2));
        answer(&desk, 2, refused == 2 ? SGP_REASON_CHANGED : SGP_REASON_NONE);
        cr_assert(not(out->owed[0].exists));
        cr_assert(eq(u64, desk.node->exact.heard.number, 1));
        close_desk(&desk);
    }
}

/* By its number the next process settles both: it has the values of neither. */
Test(window, a_record_tells_the_last)
{
    struct desk desk;
    const struct sgp_core_link *out = open_window(&desk);
    struct sgp_record_link links[2];
    struct sgp_account accounts[1];
    struct sgp_record record = {
        .links = links, .link_capacity = 2, .accounts = accounts, .account_capacity = 1};
    sgp_node_record(desk.node, &record);
    cr_assert(sgp_record_is_sound(&record, 2));
    cr_assert(links[0].out && links[0].owes);
    cr_assert(eq(u64, links[0].number, 2));
    cr_assert(eq(i64, links[0].owed_round, 1));
    answer(&desk, 1, SGP_REASON_NONE);
    answer(&desk, 2, SGP_REASON_NONE);
    cr_assert(not(out->owed[0].exists));
    sgp_node_record(desk.node, &record);
    cr_assert(not(links[0].owes));
    close_desk(&desk);
}

/* ---- what a target refuses, and what it takes for a promise ---- */

/* The second must not pass for the first: neither in this round, nor where the source hears up to which number all was
 * accepted. */
Test(window, behind_a_share_that_is_refused_nothing_of_its_cycle_is_accepted)
{
    struct desk desk;
    open_direct(&desk);
    const struct sgp_core_link *in = sgp_core_find(desk.node, 1, SGP_IN);
    for (sgp_round round = 0; round < 2; round++) {
        bool gathers = round == 1;
        say(&desk, 1, SGP_IN,
            (struct sgp_message){.type = SGP_SHARE,
                .pulse = {.state = SGP_NODE_TRAINING,
                    .round = round,
                    .next_round = round + 1,
                    .then_round = round + 2,
                    .ends = pulse_at(0, 0).ends,
                    .stop = SGP_ROUND_NONE,
                    .epoch = {.topology = desk.topology->digest}},
                .share = {.number = (uint64_t)round + 1,
                    .round = round,
                    .fraction = gathers ? 0.5 : 1,
                    .slice = {gathers ? PARAMETERS / 2 : 0, PARAMETERS / 2},
                    .payload_bytes = PAYLOAD / 2}});
        deliver(&desk, 1, round == 0 ? SGP_E_OUTSIZED : 0);
        const struct sgp_ack *ack = &find_sent(&desk, SGP_ACK, 1)->send.message.ack;
        cr_assert(eq(u64, ack->number, (uint64_t)round + 1));
        cr_assert(eq(int, ack->reason, round == 0 ? SGP_REASON_OUTSIZED : SGP_REASON_CHANGED));
        cr_assert(eq(u64, desk.node->exact.heard.number, 1), "the target ends the cycle, once");
    }
    cr_assert(zero(u64, in->memory.accepted));
    cr_assert(eq(i64, in->receiving.latest, SGP_ROUND_NONE));
    lose(&desk, 1, SGP_IN);
    greet_in(&desk, 1, pulse_of(&desk, 1, 2, 3), 88);
    cr_assert(zero(u64, find_sent(&desk, SGP_WELCOME, 1)->send.message.welcome.accepted));
    close_desk(&desk);
}

static uint32_t credits_of(const struct desk *desk, sgp_round round)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < desk->effects.count; i++) {
        const struct sgp_effect *effect = &desk->items[i];
        count += effect->type == SGP_EFFECT_SEND && effect->send.message.type == SGP_CREDIT &&
                 effect->send.message.credit.round == round;
    }
    return count;
}

/* A source between cycles pauses and resumes while its last share is under way: it has let go of its credit, and is granted
 * another. */
Test(window, a_pause_while_a_payload_comes_voids_the_credit_behind_it)
{
    struct desk desk;
    open_window(&desk);
    answer(&desk, 1, SGP_REASON_NONE);
    answer(&desk, 2, SGP_REASON_NONE);
    const struct sgp_core_link *in = sgp_core_find(desk.node, 1, SGP_IN);
    receive_of(&desk, 1, 1);
    run_jobs(&desk);
    say_pulse(&desk, 1, SGP_IN, pulse_of(&desk, 2, 2, 3));
    cr_assert(in->receiving.slot[0] != SGP_SLOT_NONE && in->receiving.slot[1] != SGP_SLOT_NONE);
    say(&desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_SHARE,
            .pulse = pulse_of(&desk, 2, 3, 4),
            .share = {.number = 3,
                .round = 2,
                .fraction = 1,
                .slice = {0, PARAMETERS / 2},
                .payload_bytes = PAYLOAD / 2}});
    cr_assert(in->receiving.filling && in->receiving.slot[1] != SGP_SLOT_NONE);
    struct sgp_pulse paused = pulse_of(&desk, 2, SGP_ROUND_NONE, 0);
    paused.state = SGP_NODE_PAUSED;
    say_pulse(&desk, 1, SGP_IN, paused);
    cr_assert(eq(u32, in->receiving.slot[1], SGP_SLOT_NONE));
    cr_assert(in->receiving.filling && in->receiving.slot[0] != SGP_SLOT_NONE);
    say_pulse(&desk, 1, SGP_IN, pulse_of(&desk, 2, 3, 4));
    cr_assert(eq(u32, credits_of(&desk, 3), 1), "again, for the source has let go of the first");
    close_desk(&desk);
}

/* In gossip the credits of the next round would wait for the shares of this one. */
Test(window, a_thin_link_is_granted_two_rounds_all_the_same)
{
    struct desk desk;
    open_direct(&desk);
    const struct sgp_core_link *in = sgp_core_find(desk.node, 1, SGP_IN);
    say_pulse(&desk, 1, SGP_IN, pulse_of(&desk, 0, 0, 0));
    cr_assert(eq(u32, in->receiving.slot[1], SGP_SLOT_NONE));
    desk.node->bandwidth_bound = true;
    say_pulse(&desk, 1, SGP_IN, pulse_of(&desk, 0, 0, 1));
    cr_assert(ne(u32, in->receiving.slot[1], SGP_SLOT_NONE));
    close_desk(&desk);
}

/* Who leaves between two cycles gives all that it has in the round in which it would have given a part of the next. */
Test(window, a_bequest_is_no_share_of_its_round)
{
    struct desk desk;
    open_direct(&desk);
    const struct sgp_core_link *in = sgp_core_find(desk.node, 1, SGP_IN);
    struct sgp_pulse pulse = pulse_of(&desk, 0, SGP_ROUND_NONE, 0);
    pulse.state = SGP_NODE_DRAINING;
    say(&desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_SHARE,
            .pulse = pulse,
            .share = {.number = 1,
                .round = 0,
                .fraction = 1,
                .weight = 1,
                .bequest = 1,
                .slice = {0, PARAMETERS},
                .payload_bytes = PAYLOAD}});
    deliver(&desk, 1, 0);
    cr_assert(eq(u64, in->memory.accepted, 1));
    cr_assert(eq(i64, in->receiving.latest, SGP_ROUND_NONE));
    cr_assert(eq(ptr, (void *)sgp_core_missing_of(desk.node, 0), (void *)in));
    close_desk(&desk);
}

/* By two files with other edges: what was granted for the second round does not come first. */
Test(window, a_first_promise_that_changes_voids_both)
{
    struct desk desk;
    open_window(&desk);
    answer(&desk, 1, SGP_REASON_NONE);
    answer(&desk, 2, SGP_REASON_NONE);
    receive(&desk, 1);
    run_jobs(&desk);
    const struct sgp_core_link *in = sgp_core_find(desk.node, 1, SGP_IN);
    say_pulse(&desk, 1, SGP_IN, pulse_of(&desk, 1, 1, 3));
    say_pulse(&desk, 1, SGP_IN, pulse_of(&desk, 1, 2, 3));
    cr_assert(eq(u32, credits_of(&desk, 2), 1));
    cr_assert(eq(u32, credits_of(&desk, 3), 1));
    cr_assert(eq(i64, desk.node->layout.receives[in->receiving.slot[0]].share.round, 2));
    cr_assert(eq(i64, desk.node->layout.receives[in->receiving.slot[1]].share.round, 3));
    close_desk(&desk);
}

/* ---- a target that decodes fewer codings than before ---- */

/* n1 gives all that it has to n0, which gives half of the sum back; n1 decodes no form. */
static void open_up_and_down(struct desk *desk)
{
    static const struct sgp_topology_node names[] = {{.name = "n0"}, {.name = "n1"}};
    static const struct sgp_edge up[] = {{1, 0, 1}}, down[] = {{0, 1, 0.5}};
    const struct sgp_phase_options second = {.name = "down", .rounds = 1, .exchanges = true};
    struct sgp_topology *topology;
    cr_assert(zero(int, sgp_topology_create(names, 2, NULL, &topology)));
    cr_assert(zero(int, sgp_topology_add_phase(topology, "up", 1, false, up, 1, NULL)));
    cr_assert(zero(int, sgp_topology_add(topology, &second, down, 1, NULL)));
    cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
    struct sgp_node_config config = config_of(topology);
    config.compressor = SGP_COMPRESSOR_FP16;
    open_desk(desk, topology, config);
    post_type(desk, SGP_EVENT_START);
    greet_out(desk, 1, pulse_of(desk, 0, SGP_ROUND_NONE, 0), 88, 0);
    greet_in(desk, 1, pulse_of(desk, 0, 0, 2), 88);
}

static void greet_again(struct desk *desk, uint32_t codings)
{
    lose(desk, 1, SGP_OUT);
    desk->codings = codings;
    greet_out(desk, 1, pulse_of(desk, 2, SGP_ROUND_NONE, 0), 88, 0);
}

/* The plain share before the coded one could be sent again, but the cycle cannot end without both.
 * */
Test(window, no_share_is_sent_in_a_form_that_the_target_does_not_decode_any_more)
{
    struct desk desk;
    open_up_and_down(&desk);
    const struct sgp_core_link *out = sgp_core_find(desk.node, 1, SGP_OUT);
    cr_assert(eq(int, (int)average(&desk, 0), SGP_CODING_NONE));
    greet_again(&desk, SGP_CODINGS);
    cr_assert(out->owed[0].exists, "it is sent again");
    grant_round(&desk, 1);
    cr_assert(eq(int, (int)average(&desk, 2), SGP_CODING_FP16));
    greet_again(&desk, 0);
    for (sgp_round round = 1; round <= 3; round += 2) {
        grant_round(&desk, round);
        const struct sgp_effect *sent = find_sent(&desk, SGP_SHARE, 1);
        cr_assert(sent == NULL || sent->send.message.share.coding == SGP_CODING_NONE);
    }
    cr_assert(not(out->owed[0].exists || out->owed[1].exists));
    cr_assert(eq(u64, desk.node->exact.heard.number, 1), "the cycle begins again");
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    close_desk(&desk);
}

/* ---- patience ---- */

/* A cycle waits for its targets as for its sources, however long the round of one of them lasts. */
Test(window, a_target_of_the_cycle_is_waited_for_and_not_overdue)
{
    struct desk desk;
    struct sgp_peer_status peer;
    open_impatient(&desk);
    struct sgp_core_link *out = sgp_core_find(desk.node, 3, SGP_OUT);
    cr_assert(out->patience.overdue, "it is in round 0 still");
    sgp_node_link_status(desk.node, (uint32_t)(out - desk.node->layout.links), &peer);
    cr_assert(not(peer.overdue));
    close_desk(&desk);
}
