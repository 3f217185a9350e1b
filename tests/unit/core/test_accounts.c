/* SPDX-License-Identifier: Apache-2.0 */
/* What an heir answers for: accounts that are handed over, kept, asked about and settled. */
#include "core_desk.h"

/* ---- the heir ---- */

static void tell_as(struct desk *desk, uint32_t leaver, struct sgp_bequeath item)
{
    say(desk, leaver, SGP_IN,
        (struct sgp_message){.type = SGP_BEQUEATH, .pulse = pulse_at(0, 0), .bequeath = item});
}

static void tell(struct desk *desk, struct sgp_bequeath item)
{
    tell_as(desk, 1, item);
}

/* n1 accepted numbers up to 7 of n3, and owes n2 its share 4 of weight 0.25. */
static void tell_both(struct desk *desk)
{
    tell(desk, (struct sgp_bequeath){.kind = SGP_BEQUEATH_ACCEPTED,
                   .source = "n3",
                   .target = "n1",
                   .source_incarnation = 83,
                   .target_incarnation = 81,
                   .number = 7});
    tell(desk, (struct sgp_bequeath){.kind = SGP_BEQUEATH_DEBT,
                   .source = "n1",
                   .target = "n2",
                   .source_incarnation = 81,
                   .target_incarnation = 82,
                   .number = 4,
                   .weight = 0.25});
    const struct sgp_effect *answer = find_sent(desk, SGP_ANSWER, 1);
    cr_assert_not_null(answer);
    cr_assert(answer->send.message.answer.known);
    cr_assert(eq(u64, answer->send.message.answer.number, 2));
}

static void bequeath_as(struct desk *desk, uint32_t leaver)
{
    struct sgp_message message = share_of(1, 0, SGP_ROUND_NONE);
    message.share.fraction = message.share.weight = message.share.bequest = 1;
    say(desk, leaver, SGP_IN, message);
    deliver(desk, leaver, 0);
    const struct sgp_effect *absorb = find(desk, SGP_EFFECT_ABSORB);
    if (absorb != NULL)
        post(desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = absorb->absorb.slot});
}

static void bequeath(struct desk *desk)
{
    bequeath_as(desk, 1);
}

static bool knows(const struct desk *desk, uint64_t *ret_number)
{
    const struct sgp_inquire question = {.source = "n3",
        .target = "n1",
        .source_incarnation = 83,
        .target_incarnation = 81,
        .number = 7};
    struct sgp_answer answer;
    cr_assert(sgp_node_answer(desk->node, &question, &answer));
    *ret_number = answer.number;
    return answer.known;
}

Test(accounts, they_are_in_force_with_the_bequest_and_not_before)
{
    struct desk desk;
    uint64_t number;
    open_beside_two(&desk, 4);
    tell_both(&desk);
    cr_assert(not(knows(&desk, &number)));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0));
    bequeath(&desk);
    cr_assert(knows(&desk, &number));
    cr_assert(eq(u64, number, 7));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0.25));
    cr_assert(eq(dbl, status_of(&desk).weight_debts, 0.25));
    close_desk(&desk);
}

Test(accounts, those_of_a_broken_connection_are_forgotten)
{
    struct desk desk;
    uint64_t number;
    open_beside_two(&desk, 4);
    tell_both(&desk);
    lose(&desk, 1, SGP_IN);
    greet_in(&desk, 1, pulse_at(0, 0), 81);
    bequeath(&desk);
    cr_assert(not(knows(&desk, &number)));
    cr_assert(eq(dbl, status_of(&desk).weight_debts, 0));
    close_desk(&desk);
}

Test(accounts, they_survive_the_process)
{
    struct desk desk;
    static struct sgp_record_link links[16];
    static struct sgp_account accounts[SGP_ACCOUNTS_MAX];
    struct sgp_record record = {.link_capacity = 16,
        .links = links,
        .account_capacity = SGP_ACCOUNTS_MAX,
        .accounts = accounts};
    uint64_t number;
    open_beside_two(&desk, 4);
    tell_both(&desk);
    bequeath(&desk);
    sgp_node_record(desk.node, &record);
    cr_assert(eq(u32, record.account_count, 2));
    cr_assert(sgp_record_is_sound(&record, desk.topology->node_count));
    struct sgp_node_config config = config_of(desk.topology);
    config.record = &record;
    begin_again(&desk, &config);
    cr_assert(knows(&desk, &number));
    cr_assert(eq(dbl, status_of(&desk).weight_debts, 0.25));
    accounts[0].kind = (enum sgp_account_kind)0;
    cr_assert(not(sgp_record_is_sound(&record, desk.topology->node_count)));
    close_desk(&desk);
}

/* `leaver` tells of `count` processes of `source`, until there is no room; returns for how many there was. */
static uint32_t fill_as(struct desk *desk, uint32_t leaver, const char *source, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        tell_as(desk, leaver,
            (struct sgp_bequeath){.kind = SGP_BEQUEATH_ACCEPTED,
                .source = source,
                .target = "n1",
                .source_incarnation = i + 1,
                .target_incarnation = 81,
                .number = 7});
        if (!find_sent(desk, SGP_ANSWER, leaver)->send.message.answer.known)
            return i;
    }
    return count;
}

static bool knows_of(const struct desk *desk, const char *source, uint64_t incarnation)
{
    const struct sgp_inquire question = {.source = source,
        .target = "n1",
        .source_incarnation = incarnation,
        .target_incarnation = 81,
        .number = 7};
    struct sgp_answer answer;
    cr_assert(sgp_node_answer(desk->node, &question, &answer));
    return answer.known;
}

/* The table is bounded: the leaver is told, before it gives anything. */
Test(accounts, an_heir_without_room_says_so)
{
    struct desk desk;
    open_beside_two(&desk, 4);
    cr_assert(eq(u32, fill_as(&desk, 1, "n3", 1000), SGP_ACCOUNTS_MAX - 64), "64 are kept free");
    cr_assert(eq(u32, fill_as(&desk, 1, "n3", 1), 0));
    close_desk(&desk);
}

/* Words alone drive nothing out, though no file names its source any more. */
Test(accounts, what_is_staged_takes_the_place_of_none_in_force)
{
    struct desk desk;
    open_beside_two(&desk, 4);
    (void)fill_as(&desk, 1, "gone", 1);
    bequeath(&desk);
    cr_assert(knows_of(&desk, "gone", 1));
    (void)fill_as(&desk, 2, "n3", 1000);
    cr_assert(knows_of(&desk, "gone", 1));
    close_desk(&desk);
}

Test(accounts, one_who_stages_without_end_leaves_room_for_another)
{
    struct desk desk;
    open_beside_two(&desk, 4);
    (void)fill_as(&desk, 2, "n3", 1000);
    cr_assert(ge(u32, fill_as(&desk, 1, "n3", 1000), 100));
    bequeath(&desk);
    cr_assert(knows_of(&desk, "n3", 100));
    close_desk(&desk);
}

/* Each alone would find room: the second is refused, and takes another heir. */
Test(accounts, two_bequests_that_have_no_room_together_are_not_both_accepted)
{
    struct desk desk;
    open_beside_two(&desk, 4);
    cr_assert(eq(u32, fill_as(&desk, 1, "n3", 400), 400));
    cr_assert(eq(u32, fill_as(&desk, 2, "n3", 300), 300));
    bequeath_as(&desk, 1);
    post_type(&desk, SGP_EVENT_TICK);
    bequeath_as(&desk, 2);
    cr_assert(eq(dbl, status_of(&desk).surplus, 1));
    cr_assert(knows_of(&desk, "n3", 400));
    close_desk(&desk);
}

/* The oldest of which the file names not both give way, 64 at most at a time. */
Test(accounts, an_heir_that_is_full_takes_a_bequest_in_the_place_of_old_ones)
{
    struct desk desk;
    open_beside_two(&desk, 4);
    cr_assert(eq(u32, fill_as(&desk, 1, "gone", 448), 448));
    bequeath_as(&desk, 1);
    cr_assert(eq(u32, fill_as(&desk, 2, "n3", 100), 64));
    bequeath_as(&desk, 2);
    cr_assert(eq(dbl, status_of(&desk).surplus, 2));
    cr_assert(not(knows_of(&desk, "gone", 64)));
    cr_assert(knows_of(&desk, "gone", 65));
    cr_assert(knows_of(&desk, "n3", 64));
    close_desk(&desk);
}

/* A debt is weight like any other: together with the bequest it must not be absurd. */
Test(accounts, debts_that_are_absurd_are_refused_with_their_bequest)
{
    struct desk desk;
    open_beside_two(&desk, 4);
    tell(&desk, (struct sgp_bequeath){.kind = SGP_BEQUEATH_DEBT,
                    .source = "n1",
                    .target = "n2",
                    .source_incarnation = 81,
                    .target_incarnation = 82,
                    .number = 4,
                    .weight = 1000});
    bequeath(&desk);
    cr_assert(eq(int, find_sent(&desk, SGP_ACK, 1)->send.message.ack.reason, SGP_REASON_RANGE));
    cr_assert(eq(dbl, status_of(&desk).weight_debts, 0));
    close_desk(&desk);
}

/* ---- settling a debt ---- */

static void answer(struct desk *desk, struct sgp_answer answer)
{
    struct sgp_message message = {.type = SGP_ANSWER, .answer = answer};
    post(desk, (struct sgp_event){.type = SGP_EVENT_ANSWER, .message = &message});
}

/* ... until n0 asks its next question. */
static const struct sgp_effect *next_question(struct desk *desk)
{
    for (int i = 0; i < 1000 && find(desk, SGP_EFFECT_INQUIRE) == NULL; i++) {
        sgp_time deadline = sgp_node_deadline(desk->node);
        cr_assert(ne(i64, deadline, SGP_TIME_NEVER));
        desk->now = deadline > desk->now ? deadline : desk->now;
        post_type(desk, SGP_EVENT_TICK);
    }
    cr_assert_not_null(find(desk, SGP_EFFECT_INQUIRE));
    return find(desk, SGP_EFFECT_INQUIRE);
}

static void inherit_debt(struct desk *desk)
{
    open_beside_two(desk, 4);
    tell_both(desk);
    bequeath(desk);
    const struct sgp_effect *question = next_question(desk);
    cr_assert(eq(u32, question->inquire.peer, 2), "the target itself");
    cr_assert(eq(str, (char *)question->inquire.question.source, (char *)"n1"));
    cr_assert(eq(u64, question->inquire.question.number, 4));
}

Test(accounts, a_debt_that_was_accepted_is_the_targets)
{
    struct desk desk;
    inherit_debt(&desk);
    double weight = status_of(&desk).weight;
    answer(&desk, (struct sgp_answer){.known = true, .incarnation = 82, .number = 4});
    cr_assert_not_null(find_note(&desk, SGP_NOTE_SETTLED));
    cr_assert(eq(dbl, status_of(&desk).weight_debts, 0));
    cr_assert(eq(dbl, status_of(&desk).weight, weight));
    close_desk(&desk);
}

Test(accounts, a_debt_that_was_not_accepted_comes_home_to_the_heir)
{
    struct desk desk;
    inherit_debt(&desk);
    double weight = status_of(&desk).weight;
    answer(&desk, (struct sgp_answer){.known = true, .incarnation = 82, .number = 3});
    cr_assert_not_null(find(&desk, SGP_EFFECT_SCALE), "at its own estimate");
    cr_assert(eq(dbl, status_of(&desk).weight_debts, 0));
    cr_assert(eq(dbl, status_of(&desk).weight, weight + 0.25));
    close_desk(&desk);
}

/* n2 is another now. Its out-neighbours are asked, and n3 last; who knows nothing leaves it open. */
Test(accounts, all_are_asked_before_a_debt_of_one_that_is_gone_comes_home)
{
    struct desk desk;
    inherit_debt(&desk);
    double weight = status_of(&desk).weight;
    answer(&desk, (struct sgp_answer){.incarnation = 92});
    cr_assert(eq(u32, next_question(&desk)->inquire.peer, 1));
    answer(&desk, (struct sgp_answer){.incarnation = 0});
    cr_assert(eq(u32, next_question(&desk)->inquire.peer, 3));
    cr_assert(eq(dbl, status_of(&desk).weight_debts, 0.25));
    answer(&desk, (struct sgp_answer){.incarnation = 0});
    for (int i = 0; i < 3; i++) {
        desk.now += SGP_SECOND;
        post_type(&desk, SGP_EVENT_TICK);
    }
    cr_assert(eq(dbl, status_of(&desk).weight_debts, 0));
    cr_assert(ge(dbl, status_of(&desk).weight, weight + 0.25 - 1), "less what was dissolved");
    close_desk(&desk);
}

/* Nobody answers: it stays in flight, and the questions become rare. */
Test(accounts, a_debt_of_one_that_is_dead_stays_one)
{
    struct desk desk;
    inherit_debt(&desk);
    sgp_time begin = desk.now;
    uint32_t questions = 0;
    while (desk.now < begin + 1000 * SGP_SECOND) {
        desk.now += SGP_SECOND;
        post(&desk, (struct sgp_event){.type = SGP_EVENT_ANSWER});
        questions += find(&desk, SGP_EFFECT_INQUIRE) != NULL;
    }
    cr_assert(eq(dbl, status_of(&desk).weight_debts, 0.25));
    cr_assert(lt(u32, questions, 50));
    close_desk(&desk);
}

/* ---- what is owed to one that has left ---- */

/* n0's share 1 to n1 was sent, and n1 is gone; its heir says what n1 had accepted. */
static void owe_one_that_is_gone(struct desk *desk)
{
    open_beside_two(desk, 4);
    grant(desk, 1, 0);
    grant(desk, 2, 0);
    post_type(desk, SGP_EVENT_TRAINED);
    post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    acknowledge(desk, 2, 1, SGP_REASON_NONE);
    lose(desk, 1, SGP_OUT);
    cr_assert(eq(dbl, status_of(desk).weight_in_flight, 0.25));
}

Test(accounts, an_heir_tells_what_the_one_before_it_had_accepted)
{
    for (uint64_t accepted = 0; accepted < 2; accepted++) {
        struct desk desk;
        owe_one_that_is_gone(&desk);
        const struct sgp_effect *question = next_question(&desk);
        cr_assert(eq(u32, question->inquire.peer, 1));
        double weight = status_of(&desk).weight;
        post(&desk, (struct sgp_event){.type = SGP_EVENT_ANSWER});
        (void)next_question(&desk);
        answer(&desk, (struct sgp_answer){.known = true, .number = accepted});
        cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0));
        cr_assert(eq(dbl, status_of(&desk).weight, weight + (accepted == 1 ? 0 : 0.25)));
        close_desk(&desk);
    }
}

/* It comes back as a new member before anybody was asked. What the one before had accepted is not taken
 * home: it would be there twice. */
Test(accounts, a_target_that_comes_back_as_another_does_not_double_what_it_was_owed)
{
    struct desk desk;
    owe_one_that_is_gone(&desk);
    double weight = status_of(&desk).weight;
    greet_out(&desk, 1, pulse_at(0, SGP_ROUND_NONE), 91, 0);
    cr_assert(eq(dbl, status_of(&desk).weight, weight));
    cr_assert(eq(dbl, status_of(&desk).weight_debts, 0.25));
    cr_assert(eq(u32, next_question(&desk)->inquire.peer, 1));
    answer(&desk, (struct sgp_answer){.incarnation = 91});
    cr_assert(eq(u32, next_question(&desk)->inquire.peer, 2));
    answer(&desk, (struct sgp_answer){.known = true, .number = 1});
    cr_assert(eq(dbl, status_of(&desk).weight_debts, 0));
    cr_assert(eq(dbl, status_of(&desk).weight, weight));
    close_desk(&desk);
}

/* However much others stage. */
Test(accounts, a_dispute_finds_room)
{
    struct desk desk;
    owe_one_that_is_gone(&desk);
    (void)fill_as(&desk, 2, "n3", 1000);
    double weight = status_of(&desk).weight;
    greet_out(&desk, 1, pulse_at(0, SGP_ROUND_NONE), 91, 0);
    cr_assert(eq(dbl, status_of(&desk).weight, weight));
    cr_assert(eq(dbl, status_of(&desk).weight_debts, 0.25));
    close_desk(&desk);
}

/* ---- what this node says itself ---- */

Test(accounts, a_node_says_what_it_accepted_unless_more_may_come)
{
    struct desk desk;
    struct sgp_answer told;
    open_beside_two(&desk, 4);
    say(&desk, 1, SGP_IN, share_of(5, 0, 1));
    deliver(&desk, 1, 0);
    struct sgp_inquire question = {.source = "n1",
        .target = "n0",
        .source_incarnation = 81,
        .target_incarnation = 77,
        .number = 5};
    cr_assert(sgp_node_answer(desk.node, &question, &told));
    cr_assert(told.known && told.number == 5 && told.incarnation == 77);
    question.number = 6;
    cr_assert(not(sgp_node_answer(desk.node, &question, &told)), "it may be on the line");
    lose(&desk, 1, SGP_IN);
    cr_assert(sgp_node_answer(desk.node, &question, &told));
    cr_assert(told.known && told.number == 5);
    question.target_incarnation = 76;
    cr_assert(sgp_node_answer(desk.node, &question, &told));
    cr_assert(not(told.known));
    cr_assert(eq(u64, told.incarnation, 0), "it is another, and does not say which");
    close_desk(&desk);
}
