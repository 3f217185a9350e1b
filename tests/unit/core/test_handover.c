/* SPDX-License-Identifier: Apache-2.0 */
/* What goes to an heir before the bequest: every account once, whatever happens meanwhile. */
#include "leave_desk.h"

static void tell(struct desk *desk, uint32_t leaver, struct sgp_bequeath item)
{
    say(desk, leaver, SGP_IN,
        (struct sgp_message){.type = SGP_BEQUEATH, .pulse = pulse_at(0, 0), .bequeath = item});
}

/* n1 accepted `number` of a node that is gone. */
static struct sgp_bequeath accepted_of(uint64_t number)
{
    return (struct sgp_bequeath){.kind = SGP_BEQUEATH_ACCEPTED,
        .source = "n9",
        .target = "n1",
        .source_incarnation = 89,
        .target_incarnation = 81,
        .number = number};
}

/* n1 owes its share 4 to n2. */
static const struct sgp_bequeath debt = {.kind = SGP_BEQUEATH_DEBT,
    .source = "n1",
    .target = "n2",
    .source_incarnation = 81,
    .target_incarnation = 82,
    .number = 4,
    .weight = 0.25};

/* n1 leaves to n0 what it has. */
static void inherit(struct desk *desk)
{
    struct sgp_message message = share_of(1, 0, SGP_ROUND_NONE);
    message.share.fraction = message.share.weight = message.share.bequest = 1;
    say(desk, 1, SGP_IN, message);
    deliver(desk, 1, 0);
    cr_assert_not_null(find_note(desk, SGP_NOTE_INHERITED));
    const struct sgp_effect *absorb = find(desk, SGP_EFFECT_ABSORB);
    if (absorb != NULL)
        post(desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = absorb->absorb.slot});
}

static void leave_at_once(struct desk *desk)
{
    post_type(desk, SGP_EVENT_PAUSE);
    post_type(desk, SGP_EVENT_LEAVE);
    post_type(desk, SGP_EVENT_TRAINED);
    const struct sgp_effect *absorb = find(desk, SGP_EFFECT_ABSORB);
    if (absorb != NULL)
        post(desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = absorb->absorb.slot});
    cr_assert(eq(int, status_of(desk).state, SGP_NODE_DRAINING));
}

/* n1 is the heir, and acknowledges the bequest. */
static void leave_for_good(struct desk *desk)
{
    leave_at_once(desk);
    grant(desk, 1, 0);
    (void)stage(desk, 1);
    post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    acknowledge(desk, 1, bequest_to(desk, 1)->number, SGP_REASON_NONE);
    cr_assert(status_of(desk).left);
}

/* ---- the table changes meanwhile ---- */

/* It was asked about before: the heir answers for it now, and asks again. */
Test(handover, what_is_said_of_a_debt_that_is_handed_over_settles_nothing)
{
    struct desk desk;
    open_beside_two(&desk, 3);
    tell(&desk, 1, debt);
    inherit(&desk);
    for (int i = 0; i < 10 && find(&desk, SGP_EFFECT_INQUIRE) == NULL; i++)
        post_type(&desk, SGP_EVENT_TICK);
    cr_assert_not_null(find(&desk, SGP_EFFECT_INQUIRE));
    leave_at_once(&desk);
    grant(&desk, 1, 0);
    cr_assert_not_null(find_sent(&desk, SGP_BEQUEATH, 1));
    (void)stage(&desk, 1);
    struct sgp_message message = {.type = SGP_ANSWER, .answer = {.known = true, .number = 3}};
    post(&desk, (struct sgp_event){.type = SGP_EVENT_ANSWER, .message = &message});
    cr_assert(eq(dbl, status_of(&desk).weight_debts, 0.25), "the heir has been told of it");
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    cr_assert_not_null(bequest_to(&desk, 1));
    cr_assert(zero(dbl, status_of(&desk).weight));
    close_desk(&desk);
}

Test(handover, one_that_leaves_takes_no_accounts)
{
    struct desk desk;
    open_beside_two(&desk, 3);
    leave_at_once(&desk);
    tell(&desk, 2, accepted_of(1));
    const struct sgp_effect *sent = find_sent(&desk, SGP_ANSWER, 2);
    cr_assert_not_null(sent);
    cr_assert(not(sent->send.message.answer.known));
    close_desk(&desk);
}

/* n2 leaves too, and has told n0 of an account before: what is staged goes with the rest. */
Test(handover, one_that_has_left_keeps_nothing_aside)
{
    struct desk desk;
    open_beside_two(&desk, 3);
    tell(&desk, 2, accepted_of(1));
    leave_for_good(&desk);
    close_desk(&desk);
}

/* Otherwise a source that asked the heir before the bequest, and then the leaver, finds no node that
 * knows. */
Test(handover, one_that_has_left_does_not_deny_what_its_heir_knows)
{
    const struct sgp_inquire question = {.source = "n9",
        .target = "n1",
        .source_incarnation = 89,
        .target_incarnation = 81,
        .number = 5};
    struct sgp_answer answer;
    struct desk desk;
    open_beside_two(&desk, 3);
    tell(&desk, 1, accepted_of(5));
    inherit(&desk);
    cr_assert(sgp_node_answer(desk.node, &question, &answer));
    cr_assert(answer.known);
    leave_for_good(&desk);
    cr_assert(not(sgp_node_answer(desk.node, &question, &answer)));
    close_desk(&desk);
}

/* What n2 staged before makes room for the last of the table when n2 is gone. */
Test(handover, every_account_is_told_once_though_the_table_changes)
{
    enum { ACCOUNTS = 40 };
    struct desk desk;
    uint32_t told[ACCOUNTS + 1] = {0};
    open_beside_two(&desk, 3);
    tell(&desk, 2, accepted_of(1000));
    for (uint64_t i = 1; i <= ACCOUNTS; i++)
        tell(&desk, 1, accepted_of(i));
    inherit(&desk);
    leave_at_once(&desk);
    grant(&desk, 1, 0);
    bool first = true;
    for (uint64_t staged = 0, sent = 0;; first = false) {
        for (uint32_t i = 0; i < desk.effects.count; i++) {
            const struct sgp_effect *effect = &desk.items[i];
            bool item =
                effect->type == SGP_EFFECT_SEND && effect->send.message.type == SGP_BEQUEATH;
            sent += item;
            if (item && effect->send.message.bequeath.source_incarnation == 89)
                told[effect->send.message.bequeath.number]++;
        }
        if (staged == sent)
            break;
        if (first)
            lose(&desk, 2, SGP_IN);
        else
            answer(&desk, 1, true, ++staged);
    }
    for (uint64_t i = 1; i <= ACCOUNTS; i++)
        cr_assert(eq(u32, told[i], 1), "account %d", (int)i);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    cr_assert_not_null(bequest_to(&desk, 1));
    close_desk(&desk);
}

/* ---- the file changes meanwhile ---- */

/* n0 and n1 alone. */
static struct sgp_topology *without_n2(void)
{
    static const struct sgp_edge both[] = {{0, 1, 0.5}, {1, 0, 0.5}};
    const struct sgp_edge *edges[] = {both};
    const uint32_t counts[] = {2};
    return topology_of(2, 1, edges, counts);
}

static void reload(struct desk *desk, struct sgp_topology *topology)
{
    const struct sgp_node_change change = {.topology = topology, .weight_least = 1};
    struct sgp_node_needs needs;
    struct sgp_reload *plan;
    cr_assert(zero(int, sgp_reload_prepare(desk->node, &change, &needs, &plan)));
    sgp_node_reload(desk->node, desk->now, plan, &desk->effects);
    sgp_topology_destroy(desk->topology);
    desk->topology = topology;
}

/* n0 leaves to n1 what it owes to n2, which is gone: 0.25. */
static void pledge(struct desk *desk)
{
    open_beside_two(desk, 3);
    grant(desk, 1, 0);
    grant(desk, 2, 0);
    post_type(desk, SGP_EVENT_TRAINED);
    post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    acknowledge(desk, 1, 1, SGP_REASON_NONE);
    lose(desk, 2, SGP_OUT);
    lose(desk, 2, SGP_IN);
    post_type(desk, SGP_EVENT_PAUSE);
    post_type(desk, SGP_EVENT_LEAVE);
    cr_assert(eq(int, status_of(desk).state, SGP_NODE_DRAINING));
    for (int i = 0; i < 100 && status_of(desk).waiting == SGP_WAITING_ACK; i++) {
        desk->now = sgp_node_deadline(desk->node);
        say(desk, 1, SGP_OUT,
            (struct sgp_message){.type = SGP_BEAT, .pulse = pulse_at(1, SGP_ROUND_NONE)});
    }
    cr_assert(eq(int, status_of(desk).waiting, SGP_WAITING_CREDIT));
    grant(desk, 1, 0);
    cr_assert_not_null(find(desk, SGP_EFFECT_PUBLISH));
    cr_assert(eq(dbl, status_of(desk).weight_in_flight, 0.75));
    (void)stage(desk, 1);
}

/* The share to n2 returns. It must not be the heir's too. */
Test(handover, a_reload_before_the_bequest_is_sent_begins_again)
{
    struct desk desk;
    pledge(&desk);
    reload(&desk, without_n2());
    const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
    cr_assert(end != NULL && end->hang_up.link.peer == 1 && end->hang_up.link.direction == SGP_OUT);
    cr_assert(eq(dbl, status_of(&desk).weight, 0.75));
    cr_assert(zero(dbl, status_of(&desk).weight_in_flight));
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    cr_assert_null(bequest_to(&desk, 1));
    close_desk(&desk);
}

/* The heir may have accepted it, and answer for what n2 is owed. */
Test(handover, a_reload_after_the_bequest_was_sent_takes_nothing_home)
{
    for (int declined = 0; declined < 2; declined++) {
        struct desk desk;
        pledge(&desk);
        post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
        cr_assert_not_null(bequest_to(&desk, 1));
        reload(&desk, without_n2());
        cr_assert(zero(dbl, status_of(&desk).weight));
        cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0.75));
        acknowledge(&desk, 1, 2, declined ? SGP_REASON_LEAVING : SGP_REASON_NONE);
        cr_assert(eq(int, status_of(&desk).left, !declined));
        cr_assert(eq(dbl, status_of(&desk).weight, declined ? 0.5 : 0));
        cr_assert(eq(dbl, status_of(&desk).weight_debts, declined ? 0.25 : 0));
        close_desk(&desk);
    }
}

/* ---- what is told, and answered ---- */

/* 16 accounts may be on their way to an heir that has no room for any. */
Test(handover, an_heir_may_say_more_than_once_that_it_has_no_room)
{
    struct desk desk;
    leave_in_round_one(&desk);
    grant(&desk, 1, 0);
    answer(&desk, 1, false, 0);
    cr_assert_not_null(find(&desk, SGP_EFFECT_RESTORE));
    answer(&desk, 1, false, 0);
    cr_assert_null(find(&desk, SGP_EFFECT_HANG_UP));
    close_desk(&desk);
}

/* n2 was another process when its first share was accepted: its heir, or its ledger, may ask about that. */
Test(handover, what_was_accepted_of_a_sources_former_process_is_handed_over)
{
    struct desk desk;
    open_beside_two(&desk, 3);
    say(&desk, 2, SGP_IN, share_of(5, 0, 1));
    deliver(&desk, 2, 0);
    lose(&desk, 2, SGP_IN);
    greet_in(&desk, 2, pulse_at(0, 1), 92);
    leave_at_once(&desk);
    grant(&desk, 1, 0);
    const struct sgp_bequeath *former = NULL;
    for (uint32_t i = 0; i < desk.effects.count; i++)
        if (desk.items[i].type == SGP_EFFECT_SEND &&
            desk.items[i].send.message.type == SGP_BEQUEATH &&
            desk.items[i].send.message.bequeath.source_incarnation == 82)
            former = &desk.items[i].send.message.bequeath;
    cr_assert_not_null(former);
    cr_assert(eq(int, former->kind, SGP_BEQUEATH_ACCEPTED));
    cr_assert(eq(str, (char *)former->source, (char *)"n2"));
    cr_assert(eq(u64, former->number, 5));
    close_desk(&desk);
}

/* ---- an heir that comes back as another ---- */

/* The bequest was sent to incarnation 81 of n1, which is gone. n1 greets as 91. */
static void come_back_as_another(struct desk *desk)
{
    leave_in_round_one(desk);
    hand_over_to(desk, 1);
    lose(desk, 1, SGP_OUT);
    greet_out(desk, 1, pulse_at(1, SGP_ROUND_NONE), 91, 0);
    cr_assert(eq(dbl, status_of(desk).weight_in_flight, 1.5));
}

/* The incarnation about which n0 asks next. */
static uint64_t asked_about(struct desk *desk)
{
    const struct sgp_effect *question = find(desk, SGP_EFFECT_INQUIRE);
    for (int i = 0; i < 100 && question == NULL; i++) {
        sgp_time deadline = sgp_node_deadline(desk->node);
        cr_assert(ne(i64, deadline, SGP_TIME_NEVER));
        desk->now = deadline;
        post_type(desk, SGP_EVENT_TICK);
        question = find(desk, SGP_EFFECT_INQUIRE);
    }
    cr_assert_not_null(question);
    return question->inquire.question.target_incarnation;
}

Test(handover, the_one_to_whom_the_bequest_was_sent_is_asked_about)
{
    struct desk desk;
    come_back_as_another(&desk);
    cr_assert(eq(u64, asked_about(&desk), 81));
    lose(&desk, 1, SGP_OUT);
    greet_out(&desk, 1, pulse_at(1, SGP_ROUND_NONE), 92, 0);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_ANSWER});
    cr_assert(eq(u64, asked_about(&desk), 81), "91 never got it");
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 1.5));
    close_desk(&desk);
}

Test(handover, the_one_to_whom_the_bequest_was_sent_knows_best)
{
    for (uint64_t accepted = 1; accepted <= 2; accepted++) {
        struct desk desk;
        come_back_as_another(&desk);
        lose(&desk, 1, SGP_OUT);
        greet_out(&desk, 1, pulse_at(1, SGP_ROUND_NONE), 81, accepted);
        cr_assert(eq(int, status_of(&desk).left, accepted == 2));
        cr_assert(zero(dbl, status_of(&desk).weight), "it has it, or is given it again");
        close_desk(&desk);
    }
}

Test(handover, what_another_accepted_is_not_known_by_its_leaving)
{
    struct desk desk;
    struct sgp_pulse pulse = pulse_at(1, SGP_ROUND_NONE);
    pulse.state = SGP_NODE_DRAINING;
    come_back_as_another(&desk);
    say(&desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_GOODBYE,
            .pulse = pulse,
            .goodbye = {.reason = SGP_REASON_LEFT, .text = "left"}});
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 1.5));
    close_desk(&desk);
}

Test(handover, who_may_have_the_bequest_is_on_record)
{
    struct desk desk;
    struct sgp_record record;
    come_back_as_another(&desk);
    record_of(&desk, &record);
    begin_again_from(&desk, &record);
    greet_out(&desk, 1, pulse_at(1, SGP_ROUND_NONE), 91, 0);
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 1.5), "81 may have accepted it");
    cr_assert(eq(u64, asked_about(&desk), 81));
    close_desk(&desk);
}
