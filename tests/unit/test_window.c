/* SPDX-License-Identifier: Apache-2.0 */
/* Two shares under way on one link, as an exact cycle has them: credits that come early, and what becomes of both. */
#include "test_core_desk.h"

#include "sgp/generate.h"

static struct sgp_pulse pulse_of(
    const struct desk *desk, sgp_round round, sgp_round next, sgp_round then)
{
    struct sgp_pulse pulse = pulse_at(round, next);
    pulse.then_round = then;
    pulse.epoch = desk->node->exact.epoch;
    pulse.epoch.topology = desk->topology->digest;
    return pulse;
}

static void grant_round(struct desk *desk, sgp_round round)
{
    say(desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_CREDIT,
            .pulse = pulse_of(desk, 0, SGP_ROUND_NONE, 0),
            .credit = {.round = round}});
}

static void answer(struct desk *desk, uint64_t number, enum sgp_reason reason)
{
    say(desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_ACK,
            .pulse = pulse_of(desk, 0, SGP_ROUND_NONE, 0),
            .ack = {.number = number, .reason = reason}});
}

/* n0 of two that average directly, in two rounds for each piece: greeted both ways, its steps under way. */
static void open_cut(struct desk *desk, uint32_t pieces)
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

static void open_direct(struct desk *desk)
{
    open_cut(desk, 1);
}

/* What the node does by itself: jobs, and ticks. */
static void settle_jobs(struct desk *desk)
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
    cr_assert(out->owed.exists && out->owed.sent && out->owed_then.exists && out->owed_then.sent);
    return out;
}

Test(window, credits_of_two_rounds_come_before_the_first_share)
{
    struct desk desk;
    open_direct(&desk);
    const struct sgp_core_link *in = sgp_core_find(desk.node, 1, SGP_IN);
    const struct sgp_core_link *out = sgp_core_find(desk.node, 1, SGP_OUT);
    cr_assert(eq(i64, desk.node->layout.receives[in->receiving.slot].share.round, 0));
    cr_assert(eq(i64, desk.node->layout.receives[in->receiving.slot_then].share.round, 1));
    cr_assert(eq(i64, out->giving.announced, 0));
    cr_assert(eq(i64, out->giving.announced_then, 1));
    grant_round(&desk, 0);
    grant_round(&desk, 1);
    cr_assert(eq(i64, out->giving.credit, 0));
    cr_assert(eq(i64, out->giving.credit_then, 1));
    grant_round(&desk, 2); /* which is too early */
    cr_assert(eq(i64, out->giving.credit, 0));
    cr_assert(eq(i64, out->giving.credit_then, 1));
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
    cr_assert(ne(u32, in->receiving.slot, SGP_SLOT_NONE));
    cr_assert(eq(u32, in->receiving.slot_then, SGP_SLOT_NONE));
    close_desk(&desk);
}

/* A change of plan makes the second void as it does the first, at both ends. */
Test(window, a_credit_that_came_early_holds_as_long_as_its_promise)
{
    struct desk desk;
    open_direct(&desk);
    const struct sgp_core_link *in = sgp_core_find(desk.node, 1, SGP_IN);
    uint32_t first = in->receiving.slot;
    say_pulse(&desk, 1, SGP_IN, pulse_of(&desk, 0, 0, 0));
    cr_assert(eq(u32, in->receiving.slot, first));
    cr_assert(eq(u32, in->receiving.slot_then, SGP_SLOT_NONE));
    say_pulse(&desk, 1, SGP_IN, pulse_of(&desk, 0, SGP_ROUND_NONE, 0));
    cr_assert(eq(u32, in->receiving.slot, SGP_SLOT_NONE));
    close_desk(&desk);
}

Test(window, two_shares_are_under_way_and_a_third_waits)
{
    struct desk desk;
    const struct sgp_core_link *out = open_window(&desk);
    cr_assert(eq(u64, out->owed.share.number, 1));
    cr_assert(eq(i64, out->owed.share.round, 0));
    cr_assert(eq(u64, out->owed_then.share.number, 2));
    cr_assert(eq(i64, out->owed_then.share.round, 1));
    cr_assert(eq(dbl, out->owed.share.weight + out->owed_then.share.weight, 0));
    cr_assert(not(sgp_core_may_owe(desk.node, out)));
    answer(&desk, 1, SGP_REASON_NONE);
    cr_assert(eq(u64, out->owed.share.number, 2));
    cr_assert(not(out->owed_then.exists));
    cr_assert(sgp_core_may_owe(desk.node, out));
    answer(&desk, 2, SGP_REASON_NONE);
    cr_assert(not(out->owed.exists));
    close_desk(&desk);
}

Test(window, the_second_cannot_be_acknowledged_before_the_first)
{
    struct desk desk;
    const struct sgp_core_link *out = open_window(&desk);
    answer(&desk, 2, SGP_REASON_NONE);
    cr_assert_not_null(find(&desk, SGP_EFFECT_HANG_UP));
    cr_assert(out->owed.exists && !out->owed.sent && out->owed_then.exists && !out->owed_then.sent);
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
        cr_assert(eq(int, out->owed.exists, accepted < 2));
        cr_assert(eq(int, out->owed_then.exists, accepted < 1));
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
            cr_assert(eq(u64, out->owed.share.number, 2));
        answer(&desk, 2, refused == 2 ? SGP_REASON_CHANGED : SGP_REASON_NONE);
        cr_assert(not(out->owed.exists));
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
    cr_assert(not(out->owed.exists));
    sgp_node_record(desk.node, &record);
    cr_assert(not(links[0].owes));
    close_desk(&desk);
}

/* ---- of two pieces: rounds that wait for what their next one touches ---- */

/* n1's share of a round: of piece 0 in rounds 0 and 2, of piece 1 in 1 and 3. */
static void receive_piece(struct desk *desk, sgp_round round)
{
    const struct sgp_topology *topology = desk->topology;
    uint32_t count;
    const struct sgp_edge *edge = sgp_phase_in(sgp_topology_phase(topology, round), 0, &count);
    struct sgp_slice slice = sgp_topology_values(topology, edge, PARAMETERS);
    say(desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_SHARE,
            .pulse = pulse_of(desk, round, round + 1, round + 2),
            .share = {.number = (uint64_t)round + 1,
                .round = round,
                .fraction = edge->fraction,
                .slice = slice,
                .payload_bytes = 4 * slice.count}});
    deliver(desk, 1, 0);
}

/* Jobs are done as they come, and ticks are asked for. */
static void run_jobs(struct desk *desk)
{
    for (uint32_t steps = 0; steps < 8; steps++) {
        settle_jobs(desk);
        post_type(desk, SGP_EVENT_TICK);
    }
}

Test(window, a_round_waits_for_what_its_next_one_touches)
{
    struct desk desk;
    open_cut(&desk, 2);
    const struct sgp_core_link *out = sgp_core_find(desk.node, 1, SGP_OUT);
    grant_round(&desk, 0);
    grant_round(&desk, 1);
    post_type(&desk, SGP_EVENT_TRAINED);
    run_jobs(&desk);
    cr_assert(eq(i64, desk.node->round, 1), "piece 1 goes out before anything of piece 0 has come");
    cr_assert(out->owed.sent && out->owed_then.sent);
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_SHARE), "for that of round 0");
    receive_piece(&desk, 0);
    run_jobs(&desk);
    cr_assert(eq(i64, desk.node->round, 2), "piece 0 goes on before that of round 1 has come");
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_ACK));
    answer(&desk, 1, SGP_REASON_NONE);
    grant_round(&desk, 2);
    run_jobs(&desk);
    cr_assert(eq(i64, out->owed_then.share.round, 2));
    cr_assert(eq(i64, desk.node->round, 2), "which round 3 gives on");
    receive_piece(&desk, 1);
    answer(&desk, 2, SGP_REASON_NONE);
    grant_round(&desk, 3);
    run_jobs(&desk);
    cr_assert(eq(i64, desk.node->round, 3));
    receive_piece(&desk, 2);
    run_jobs(&desk);
    cr_assert(eq(i64, desk.node->round, 3), "the last round of the cycle waits for all");
    receive_piece(&desk, 3);
    run_jobs(&desk);
    cr_assert(eq(i64, desk.node->round, 4));
    close_desk(&desk);
}
