/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about what is owed to those who cannot be reached: which answer settles what. */
#include "core_desk.h"

/* n0 has given its share 1 to n1 and n2, both of which are gone before they acknowledged it; n2 first. */
static void owe_both(struct desk *desk)
{
    open_beside_two(desk, 4);
    give_to_two(desk);
    for (uint32_t i = 2; i > 0; i--) {
        lose(desk, i, SGP_OUT);
        desk->now += SGP_SECOND;
    }
    cr_assert(eq(dbl, status_of(desk).weight_in_flight, 0.5));
}

/* ... until n0 asks its next question; n1 and n2 say nothing. */
static const struct sgp_effect *next_asked(struct desk *desk)
{
    const struct sgp_effect *question = NULL;
    for (int i = 0; i < 1000 && question == NULL; i++) {
        desk->now = sgp_node_deadline(desk->node);
        post_type(desk, SGP_EVENT_TICK);
        question = find(desk, SGP_EFFECT_INQUIRE);
    }
    cr_assert_not_null(question);
    return question;
}

static const struct sgp_inquire *next_question(struct desk *desk)
{
    return &next_asked(desk)->inquire.question;
}

static void answer(struct desk *desk, const struct sgp_answer *answer)
{
    struct sgp_message message = {.type = SGP_ANSWER};
    if (answer != NULL)
        message.answer = *answer;
    post(desk,
        (struct sgp_event){.type = SGP_EVENT_ANSWER, .message = answer != NULL ? &message : NULL});
}

static bool owes(struct desk *desk, uint32_t peer)
{
    static struct sgp_record_link links[16];
    static struct sgp_account accounts[SGP_ACCOUNTS_MAX];
    struct sgp_record record = {.link_capacity = 16,
        .links = links,
        .account_capacity = SGP_ACCOUNTS_MAX,
        .accounts = accounts};
    sgp_node_record(desk->node, &record);
    for (uint32_t i = 0; i < record.link_count; i++)
        if (links[i].peer == peer && links[i].out)
            return links[i].owes;
    return false;
}

/* n2 was asked about, is there again, and is gone again. What is said of n1 then is of n1. */
Test(inquiry, an_answer_settles_the_share_that_was_asked_about)
{
    struct desk desk;
    owe_both(&desk);
    cr_assert(eq(str, (char *)next_question(&desk)->target, (char *)"n2"));
    greet_out(&desk, 2, pulse_at(0, SGP_ROUND_NONE), 82, 0);
    answer(&desk, NULL);
    lose(&desk, 2, SGP_OUT);
    cr_assert(eq(str, (char *)next_question(&desk)->target, (char *)"n1"));
    answer(&desk, &(struct sgp_answer){.known = true, .incarnation = 81, .number = 1});
    cr_assert(not(owes(&desk, 1)));
    cr_assert(owes(&desk, 2), "settled by what was said of n1");
    close_desk(&desk);
}

/* n2 said that it had nothing; then it got the share, and was gone before it could say so. */
Test(inquiry, what_was_said_before_the_target_was_there_again_is_void)
{
    struct desk desk;
    owe_both(&desk);
    cr_assert(eq(str, (char *)next_question(&desk)->target, (char *)"n2"));
    greet_out(&desk, 2, pulse_at(0, SGP_ROUND_NONE), 82, 0);
    grant(&desk, 2, 0);
    cr_assert_not_null(find_sent(&desk, SGP_SHARE, 2));
    lose(&desk, 2, SGP_OUT);
    answer(&desk, &(struct sgp_answer){.known = true, .incarnation = 82, .number = 0});
    cr_assert(owes(&desk, 2), "it may have accepted it since");
    close_desk(&desk);
}

/* What a note says must outlive the debt, which may be settled in the same step. */
Test(inquiry, a_dispute_is_told_in_the_names_of_the_file)
{
    struct desk desk;
    owe_both(&desk);
    greet_out(&desk, 2, pulse_at(0, SGP_ROUND_NONE), 92, 0);
    const struct sgp_effect *note = find_note(&desk, SGP_NOTE_DISPUTED);
    cr_assert_not_null(note);
    cr_assert(eq(ptr, (void *)note->note.question.source, desk.topology->nodes[0].name));
    cr_assert(eq(ptr, (void *)note->note.question.target, desk.topology->nodes[2].name));
    close_desk(&desk);
}

/* ---- what weighs nothing ---- */

/* n1 owns the vector, and is gone before it has acknowledged the update of step 0. What it says when asked in the
 * meantime does not bring the update home: nobody would give it again, and the step would never be closed. */
Test(inquiry, nobody_is_asked_about_an_update)
{
    static const struct sgp_edge both[] = {
        {0, 1, SGP_FRACTION_DEFAULT}, {1, 0, SGP_FRACTION_DEFAULT}};
    const struct sgp_topology_node names[] = {
        {.name = "n0"}, {.name = "n1", .relay = true, .owns = true}};
    struct sgp_topology *topology = NULL;
    cr_assert(zero(int, sgp_topology_create(names, 2, NULL, &topology)));
    cr_assert(zero(int, sgp_topology_add_phase(topology, "star", 1, false, both, 2, NULL)));
    cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
    struct sgp_node_config config = config_of(topology);
    config.method = sgp_method_find("backup");
    config.fingerprint.method = config.method->number;
    struct desk desk;
    open_desk(&desk, topology, config);
    desk.peers = config.fingerprint;
    post_type(&desk, SGP_EVENT_START);
    greet_out(&desk, 1, pulse_at(0, SGP_ROUND_NONE), 88, 0);
    greet_in(&desk, 1, pulse_at(0, SGP_ROUND_NONE), 88);
    say(&desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_ESTIMATE,
            .pulse = pulse_at(0, SGP_ROUND_NONE),
            .estimate = {.round = 0, .weight = 1, .payload_bytes = PAYLOAD}});
    deliver(&desk, 1, 0);
    cr_assert_not_null(find(&desk, SGP_EFFECT_TRAIN));
    grant(&desk, 1, 0);
    post_type(&desk, SGP_EVENT_TRAINED);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    cr_assert_not_null(find_sent(&desk, SGP_SHARE, 1));
    lose(&desk, 1, SGP_OUT);
    for (int i = 0; i < 60; i++) {
        desk.now += SGP_SECOND;
        post_type(&desk, SGP_EVENT_TICK);
        cr_assert_null(find(&desk, SGP_EFFECT_INQUIRE));
    }
    greet_out(&desk, 1, pulse_at(0, SGP_ROUND_NONE), 88, 0);
    grant(&desk, 1, 0);
    const struct sgp_effect *again = find_sent(&desk, SGP_SHARE, 1);
    cr_assert_not_null(again);
    cr_assert(eq(u64, again->send.message.share.number, 1));
    close_desk(&desk);
}

/* ---- another file ---- */

static void reload(struct desk *desk)
{
    struct sgp_topology *topology = beside_two(4);
    const struct sgp_node_change change = {.topology = topology, .weight_least = 1};
    struct sgp_node_needs needs;
    struct sgp_reload *plan;
    cr_assert(zero(int, sgp_reload_prepare(desk->node, &change, &needs, &plan)));
    sgp_node_reload(desk->node, desk->now, plan, &desk->effects);
    sgp_topology_destroy(desk->topology);
    desk->topology = topology;
}

/* Whom n0 asks next about what it owes to n2. */
static uint32_t asked_of_n2(struct desk *desk)
{
    const struct sgp_effect *asked = find(desk, SGP_EFFECT_INQUIRE);
    if (asked == NULL)
        asked = next_asked(desk);
    while (strcmp(asked->inquire.question.target, "n2") != 0) {
        answer(desk, NULL);
        asked = next_asked(desk);
    }
    return asked->inquire.peer;
}

/* Its nodes may stand elsewhere: whoever was passed already may not have been asked. */
Test(inquiry, a_reload_begins_every_search_again)
{
    for (int disputed = 0; disputed < 2; disputed++) {
        struct desk desk;
        owe_both(&desk);
        if (disputed)
            greet_out(&desk, 2, pulse_at(0, SGP_ROUND_NONE), 92, 0);
        cr_assert(eq(u32, asked_of_n2(&desk), 2));
        answer(&desk, &(struct sgp_answer){.incarnation = 92});
        cr_assert(eq(u32, asked_of_n2(&desk), 1));
        reload(&desk);
        answer(&desk, NULL);
        cr_assert(eq(u32, asked_of_n2(&desk), 2), "disputed: %d", disputed);
        cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0.5));
        close_desk(&desk);
    }
}
