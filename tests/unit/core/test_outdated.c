/* SPDX-License-Identifier: Apache-2.0 */
/* What the two ends of a link remember of each other: incarnations that come and go, and a record that is older
 * than what the neighbours have seen. */
#include "core_desk.h"

#include "sgp/generate.h"

static void say_hello(struct desk *desk, uint64_t incarnation)
{
    lose(desk, 1, SGP_IN);
    greet_in(desk, 1, pulse_at(1, 1), incarnation);
}

static uint64_t told_accepted(const struct desk *desk)
{
    const struct sgp_effect *welcome = find_sent(desk, SGP_WELCOME, 1);
    cr_assert_not_null(welcome);
    return welcome->send.message.welcome.accepted;
}

/* n1 is dead, and others greet in its name: what came from it is not forgotten. */
Test(outdated, a_greeting_under_another_incarnation_does_not_make_it_forget)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    deliver(&desk, 1, 0);
    for (uint64_t stranger = 500; stranger < 504; stranger++) {
        say_hello(&desk, stranger);
        cr_assert(eq(u64, told_accepted(&desk), 0));
    }
    say_hello(&desk, 88);
    cr_assert(eq(u64, told_accepted(&desk), 1), "it was accepted, and must not come again");
    close_desk(&desk);
}

/* ... even if one of them gives, as long as it gives nothing. */
Test(outdated, empty_shares_under_another_incarnation_do_not_make_it_forget)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    deliver(&desk, 1, 0);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED});
    say_hello(&desk, 500);
    struct sgp_message empty = share_of(1, 1, 1);
    empty.share.fraction = empty.share.weight = 0;
    empty.share.payload_bytes = 0;
    say(&desk, 1, SGP_IN, empty);
    cr_assert(eq(int, find_sent(&desk, SGP_ACK, 1)->send.message.ack.reason, SGP_REASON_NONE));
    say_hello(&desk, 501);
    say_hello(&desk, 88);
    cr_assert(eq(u64, told_accepted(&desk), 1), "its share has come already");
    close_desk(&desk);
}

Test(outdated, an_incarnation_that_was_left_counts_again_after_a_restart)
{
    struct sgp_record_link links[2] = {{.peer = 1, .out = true, .incarnation = 99, .number = 3},
        {.peer = 1, .incarnation = 99, .number = 2, .former_incarnation = 88, .former_number = 7}};
    struct sgp_record record = {.incarnation = 77,
        .round = 5,
        .weight = 1,
        .links = links,
        .link_count = 2,
        .link_capacity = 2};
    struct desk desk;
    open_from(&desk, &record);
    greet_in(&desk, 1, pulse_at(5, 5), 88);
    cr_assert(eq(u64, told_accepted(&desk), 7));
    say_hello(&desk, 99);
    cr_assert(eq(u64, told_accepted(&desk), 2), "the two have changed places");
    close_desk(&desk);
}

static void open_restored(struct desk *desk)
{
    static struct sgp_record_link links[2];
    links[0] = (struct sgp_record_link){.peer = 1,
        .out = true,
        .incarnation = 88,
        .number = 3,
        .owes = true,
        .owed_fraction = 0.5,
        .owed_weight = 0.25,
        .owed_slot = SGP_SLOT_NONE};
    links[1] = (struct sgp_record_link){.peer = 1, .incarnation = 88, .number = 3};
    struct sgp_record record = {.incarnation = 77,
        .round = 5,
        .weight = 0.75,
        .links = links,
        .link_count = 2,
        .link_capacity = 2};
    open_from(desk, &record);
}

Test(outdated, numbers_are_taken_from_a_target_that_has_seen_more)
{
    struct desk desk;
    open_restored(&desk);
    greet_out(&desk, 1, pulse_at(20, SGP_ROUND_NONE), 88, 12);
    cr_assert_null(find(&desk, SGP_EFFECT_HANG_UP));
    const struct sgp_effect *note = find_note(&desk, SGP_NOTE_OUTDATED);
    cr_assert_not_null(note);
    struct sgp_peer_status peer;
    sgp_node_link_status(desk.node, 0, &peer);
    cr_assert(eq(u64, peer.last_number, 12));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0), "settled by a later number");
    cr_assert(eq(dbl, status_of(&desk).unknown, 2), "of a fleet of two");
    lose(&desk, 1, SGP_OUT);
    greet_out(&desk, 1, pulse_at(20, SGP_ROUND_NONE), 88, 12);
    cr_assert_null(find_note(&desk, SGP_NOTE_OUTDATED), "said once");
    close_desk(&desk);
}

/* Both were restored: n1 from an old ledger at first, and then from a later one. n0 refused n1 at every dial. */
Test(outdated, a_target_comes_back_with_a_later_record_than_it_greeted_with)
{
    struct desk desk;
    open_restored(&desk);
    greet_out(&desk, 1, pulse_at(5, SGP_ROUND_NONE), 88, 3);
    cr_assert_null(find_note(&desk, SGP_NOTE_OUTDATED));
    lose(&desk, 1, SGP_OUT);
    greet_out(&desk, 1, pulse_at(20, SGP_ROUND_NONE), 88, 12);
    cr_assert_null(find(&desk, SGP_EFFECT_HANG_UP));
    cr_assert_not_null(find_note(&desk, SGP_NOTE_OUTDATED));
    struct sgp_peer_status peer;
    sgp_node_link_status(desk.node, 0, &peer);
    cr_assert(eq(u64, peer.last_number, 12));
    cr_assert(eq(dbl, status_of(&desk).unknown, 2));
    lose(&desk, 1, SGP_OUT);
    greet_out(&desk, 1, pulse_at(20, SGP_ROUND_NONE), 88, 15);
    cr_assert_null(find(&desk, SGP_EFFECT_HANG_UP));
    cr_assert_null(find_note(&desk, SGP_NOTE_OUTDATED), "said once");
    sgp_node_link_status(desk.node, 0, &peer);
    cr_assert(eq(u64, peer.last_number, 15));
    lose(&desk, 1, SGP_OUT);
    greet_out(&desk, 1, pulse_at(20, SGP_ROUND_NONE), 88, SGP_NUMBER_MAX + 1);
    cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP)->hang_up.reason, SGP_REASON_RANGE));
    close_desk(&desk);
}

/* n1 greets as one that knows of so many acknowledged shares, of this incarnation of n0. */
static void greet_acknowledged(struct desk *desk, uint64_t target_incarnation, uint64_t number)
{
    come_up(desk, 1, SGP_IN);
    say(desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_HELLO,
            .pulse = pulse_at(20, 20),
            .hello = {.source = "n1",
                .target = "n0",
                .incarnation = 88,
                .parameters = PARAMETERS,
                .fingerprint = desk->peers,
                .target_incarnation = target_incarnation,
                .acknowledged = number}});
}

/* Each restore may have lost or made as much, whoever finds it out first, and once. */
/* Else the source would take the lesser number for its own, and a second old ledger would not be found out. */
Test(outdated, a_target_takes_the_number_that_its_source_knows)
{
    const uint64_t beyond = 3 + SGP_NUMBER_GAP_MAX;
    const struct {
        uint64_t acknowledged, accepted;
    } cases[] = {{3, 3}, {9, 9}, {beyond, beyond}, {beyond + 1, 3}, {UINT64_MAX, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct desk desk;
        open_restored(&desk);
        greet_acknowledged(&desk, 77, cases[i].acknowledged);
        cr_assert(eq(u64, told_accepted(&desk), cases[i].accepted), "%zu", i);
        close_desk(&desk);
    }
}

/* The source would give its next shares beyond all numbers, and no target would take them. */
Test(outdated, a_source_takes_no_number_that_no_target_can_have_seen)
{
    const uint64_t beyond = 3 + SGP_NUMBER_GAP_MAX;
    const struct {
        uint64_t accepted, number;
        bool refused;
    } cases[] = {{3, 3, false}, {9, 9, false}, {beyond, beyond, false}, {beyond + 1, 3, true},
        {SGP_NUMBER_MAX, 3, true}, {UINT64_MAX, 3, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct desk desk;
        struct sgp_peer_status peer;
        open_restored(&desk);
        greet_out(&desk, 1, pulse_at(20, SGP_ROUND_NONE), 88, cases[i].accepted);
        const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
        cr_assert(eq(int, end != NULL, cases[i].refused), "%zu", i);
        cr_assert(end == NULL || end->hang_up.reason == SGP_REASON_RANGE, "%zu", i);
        sgp_node_link_status(desk.node, 0, &peer);
        cr_assert(eq(u64, peer.last_number, cases[i].number), "%zu", i);
        cr_assert(eq(dbl, status_of(&desk).unknown, cases[i].number > 3 ? 2 : 0), "%zu", i);
        close_desk(&desk);
    }
}

Test(outdated, what_is_unknown_adds_up_once_a_process)
{
    struct desk desk;
    open_restored(&desk);
    for (int process = 1; process <= 3; process++) {
        greet_out(&desk, 1, pulse_at(20, SGP_ROUND_NONE), 88, 12 + (uint64_t)process);
        cr_assert_not_null(find_note(&desk, SGP_NOTE_OUTDATED));
        cr_assert(eq(dbl, find_note(&desk, SGP_NOTE_OUTDATED)->note.amount, 2 * process));
        greet_acknowledged(&desk, 77, 9 + (uint64_t)process);
        cr_assert_null(find_note(&desk, SGP_NOTE_OUTDATED), "one restore, seen by two links");
        cr_assert(eq(dbl, status_of(&desk).unknown, 2 * process));
        struct sgp_record_link links[2];
        struct sgp_record record = {.links = links, .link_capacity = 2};
        sgp_node_record(desk.node, &record);
        cr_assert(sgp_record_is_sound(&record, 2));
        begin_again_from(&desk, &record);
    }
    close_desk(&desk);
}

Test(outdated, a_source_knows_of_more_acknowledged_shares_than_the_record)
{
    static const struct {
        uint64_t incarnation, number;
        bool outdated;
    } cases[] = {{77, 3, false}, {77, 4, true}, {0, 0, false}, {76, 9, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct desk desk;
        open_restored(&desk);
        greet_acknowledged(&desk, cases[i].incarnation, cases[i].number);
        cr_assert_not_null(find_sent(&desk, SGP_WELCOME, 1));
        cr_assert(
            eq(int, find_note(&desk, SGP_NOTE_OUTDATED) != NULL, cases[i].outdated), "%zu", i);
        cr_assert(eq(dbl, status_of(&desk).unknown, cases[i].outdated ? 2 : 0), "%zu", i);
        close_desk(&desk);
    }
}

/* The record is from before the two had met. */
Test(outdated, a_source_that_is_not_on_record_has_been_acknowledged)
{
    static struct sgp_record_link links[2];
    links[0] = (struct sgp_record_link){.peer = 1, .out = true};
    links[1] = (struct sgp_record_link){.peer = 1};
    struct sgp_record record = {
        .incarnation = 77, .weight = 1, .links = links, .link_count = 2, .link_capacity = 2};
    struct desk desk;
    open_from(&desk, &record);
    greet_acknowledged(&desk, 77, 1);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_OUTDATED));
    close_desk(&desk);
}

/* The record is from before n1 lost its ledger: its number is of an incarnation that is gone. The number that
 * n1 knows is less, and counts for the present incarnation. */
Test(outdated, a_target_takes_the_number_of_an_incarnation_that_is_not_on_record)
{
    static struct sgp_record_link links[2];
    links[0] = (struct sgp_record_link){.peer = 1, .out = true, .incarnation = 87, .number = 6};
    links[1] = (struct sgp_record_link){.peer = 1, .incarnation = 87, .number = 6};
    struct sgp_record record = {
        .incarnation = 77, .weight = 1, .links = links, .link_count = 2, .link_capacity = 2};
    struct desk desk;
    open_from(&desk, &record);
    greet_acknowledged(&desk, 77, 1);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_OUTDATED));
    cr_assert(eq(u64, told_accepted(&desk), 1));
    say_hello(&desk, 87);
    cr_assert(eq(u64, told_accepted(&desk), 6), "the former incarnation keeps its number");
    close_desk(&desk);
}

/* What the target acknowledges is told at the next greeting, also by the next process. */
Test(outdated, a_source_tells_what_was_acknowledged)
{
    struct desk desk;
    open_restored(&desk);
    greet_out(&desk, 1, pulse_at(5, SGP_ROUND_NONE), 88, 3);
    struct sgp_record_link links[2];
    struct sgp_record record = {.links = links, .link_capacity = 2};
    sgp_node_record(desk.node, &record);
    cr_assert(eq(u64, links[0].acknowledged, 3));
    lose(&desk, 1, SGP_OUT);
    begin_again_from(&desk, &record);
    come_up(&desk, 1, SGP_OUT);
    const struct sgp_effect *hello = find_sent(&desk, SGP_HELLO, 1);
    cr_assert_not_null(hello);
    cr_assert(eq(u64, hello->send.message.hello.target_incarnation, 88));
    cr_assert(eq(u64, hello->send.message.hello.acknowledged, 3));
    close_desk(&desk);
}

Test(outdated, a_record_that_is_right_is_not_called_outdated)
{
    struct desk desk;
    open_restored(&desk);
    greet_out(&desk, 1, pulse_at(5, SGP_ROUND_NONE), 88, 3);
    cr_assert_null(find_note(&desk, SGP_NOTE_OUTDATED));
    cr_assert(eq(dbl, status_of(&desk).unknown, 0));
    close_desk(&desk);
}

Test(outdated, a_target_cannot_have_accepted_what_was_not_given_on_a_link_that_greeted)
{
    struct desk desk;
    open_pair(&desk);
    lose(&desk, 1, SGP_OUT);
    greet_out(&desk, 1, pulse_at(0, SGP_ROUND_NONE), 88, 5);
    const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
    cr_assert_not_null(end);
    cr_assert(eq(int, end->hang_up.reason, SGP_REASON_RANGE));
    cr_assert(eq(dbl, status_of(&desk).unknown, 0));
    close_desk(&desk);
}

/* A stranger gives in n1's name: numbers that n1 never comes to would shut it out for good. */
Test(outdated, a_number_far_beyond_what_was_accepted_is_out_of_range)
{
    static const struct {
        uint64_t number;
        bool sound;
    } cases[] = {
        {UINT64_MAX, false},
        {(uint64_t)1 << 63, false},
        {((uint64_t)1 << 62) + 1, false},
        {1 + ((uint64_t)1 << 40) + 1, false},
        {1 + ((uint64_t)1 << 40), true}, /* so many returned one after the other */
        {2, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct desk desk;
        open_pair(&desk);
        give_first(&desk);
        say(&desk, 1, SGP_IN, share_of(1, 0, 1));
        deliver(&desk, 1, 0);
        post(&desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED});
        say(&desk, 1, SGP_IN, share_of(cases[i].number, 1, 2));
        const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
        cr_assert(eq(int, end == NULL, cases[i].sound), "%zu", i);
        if (end != NULL)
            cr_assert(eq(int, end->hang_up.reason, SGP_REASON_RANGE), "%zu", i);
        close_desk(&desk);
    }
}

/* One of three between whom a token goes, with that record, which owes it to n2 if it names a label. */
static void open_token(struct desk *desk, struct sgp_record record, sgp_round owed)
{
    const struct sgp_generate_options options = {
        .family = "token", .nodes = 3, .delay = {.token = SGP_TOKEN_DYNAMIC}};
    struct sgp_topology *topology;
    cr_assert(zero(int, sgp_generate(&options, NULL, &topology)));
    struct sgp_record_link links[4] = {{.peer = 1, .out = true, .incarnation = 81},
        {.peer = 2, .out = true, .incarnation = 82}, {.peer = 1, .incarnation = 81},
        {.peer = 2, .incarnation = 82}};
    if (owed > 0)
        links[1] = (struct sgp_record_link){.peer = 2,
            .out = true,
            .incarnation = 82,
            .number = 1,
            .owes = true,
            .owed_round = owed,
            .owed_fraction = 1,
            .owed_weight = 1};
    record.incarnation = 77;
    record.links = links;
    record.link_count = record.link_capacity = 4;
    struct sgp_node_config config = config_of(topology);
    config.method = sgp_method_find("cyclic");
    config.record = &record;
    config.seeks = record.round > 0;
    open_desk(desk, topology, config);
    desk->peers.method = config.method->number;
    post_type(desk, SGP_EVENT_START);
}

/* ... which n0 has by its record; n1 has greeted. */
static void open_holder(struct desk *desk)
{
    open_token(desk, (struct sgp_record){.weight = 1}, 0);
    greet_out(desk, 1, pulse_at(1, SGP_ROUND_NONE), 81, 0);
    greet_in(desk, 1, pulse_at(1, SGP_ROUND_NONE), 81);
    cr_assert(eq(dbl, status_of(desk).weight, 1));
    cr_assert(eq(int, status_of(desk).waiting, SGP_WAITING_HELLO));
    cr_assert(eq(u32, status_of(desk).waiting_peer, 2));
}

/* n2 was given it since that record was saved. */
Test(outdated, a_token_by_a_record_waits_for_whoever_may_have_been_given_it)
{
    struct desk desk;
    open_holder(&desk);
    greet_out(&desk, 2, pulse_at(1, SGP_ROUND_NONE), 82, 1);
    cr_assert_not_null(find_note(&desk, SGP_NOTE_OUTDATED));
    cr_assert(zero(dbl, status_of(&desk).weight));
    close_desk(&desk);
}

Test(outdated, a_token_by_a_record_does_not_wait_long_for_one_that_is_dead)
{
    struct desk desk;
    open_holder(&desk);
    desk.now += SGP_SILENCE_MIN_NS;
    say_pulse(&desk, 1, SGP_IN, pulse_at(1, SGP_ROUND_NONE));
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_TRAINING));
    close_desk(&desk);
}

/* n1 greets, is asked, and hands out a copy of this label. */
static void hand_copy(struct desk *desk, struct sgp_epoch epoch, sgp_round label, bool former)
{
    struct sgp_pulse pulse = pulse_at(label, SGP_ROUND_NONE);
    pulse.epoch = epoch;
    greet_out(desk, 1, pulse, 81, 0);
    greet_in(desk, 1, pulse, 81);
    desk->now += SGP_SILENCE_MIN_NS - 1;
    say_pulses(desk, 1, pulse);
    desk->now += 1;
    say_pulse(desk, 1, SGP_IN, pulse);
    cr_assert(eq(u32, status_of(desk).waiting_peer, 1));
    say(desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_ESTIMATE,
            .pulse = pulse,
            .estimate = {.round = label, .weight = 1, .payload_bytes = PAYLOAD, .former = former}});
    deliver(desk, 1, 0);
}

/* Two parts of a fleet were cut off from each other. In this one the token was made again, under a
 * label that the other token had passed. */
Test(outdated, a_copy_of_a_former_token_does_not_show_that_the_token_has_left)
{
    static const struct {
        uint64_t epoch; /* that the neighbour has heard of */
        bool former;
        double weight;
    } cases[] = {{1, false, 0}, {1, true, 1}, {0, false, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct desk desk;
        open_token(&desk, (struct sgp_record){.round = 20, .weight = 1, .epoch = {.number = 1}}, 0);
        hand_copy(&desk, (struct sgp_epoch){.number = cases[i].epoch}, 23, cases[i].former);
        cr_expect(eq(dbl, status_of(&desk).weight, cases[i].weight), "%zu", i);
        cr_expect(eq(int, find_note(&desk, SGP_NOTE_OUTDATED) != NULL, cases[i].weight < 1));
        cr_expect(eq(int, status_of(&desk).state, SGP_NODE_TRAINING), "%zu", i);
        close_desk(&desk);
    }
}

static void ask_for_copy(struct desk *desk)
{
    say(desk, 1, SGP_OUT,
        (struct sgp_message){
            .type = SGP_ASK, .pulse = pulse_at(4, SGP_ROUND_NONE), .ask = {.wants = true}});
    cr_assert_not_null(find(desk, SGP_EFFECT_PUBLISH));
}

/* A node may hear of the present token while it has a copy of the former one, or hands it out. */
Test(outdated, a_copy_of_a_former_token_is_called_so)
{
    static const struct {
        bool renewed, asked_before;
    } cases[] = {{false, false}, {true, false}, {true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct desk desk;
        struct sgp_pulse pulse = pulse_at(4, SGP_ROUND_NONE);
        pulse.epoch.number = cases[i].renewed;
        open_token(&desk, (struct sgp_record){.round = 3}, 0);
        hand_copy(&desk, (struct sgp_epoch){.number = 0}, 4, false);
        const uint32_t slot = find(&desk, SGP_EFFECT_FOLLOW)->follow.slot;
        post(&desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = slot});
        if (cases[i].asked_before)
            ask_for_copy(&desk);
        say_pulse(&desk, 1, SGP_IN, pulse);
        cr_assert(eq(int, find_note(&desk, SGP_NOTE_RENEWED) != NULL, cases[i].renewed), "%zu", i);
        if (!cases[i].asked_before)
            ask_for_copy(&desk);
        post(&desk,
            (struct sgp_event){.type = SGP_EVENT_PUBLISHED, .slot = desk.node->handing.slot});
        const struct sgp_effect *sent = find_sent(&desk, SGP_ESTIMATE, 1);
        cr_assert_not_null(sent);
        cr_expect(eq(i64, sent->send.message.estimate.round, 4), "%zu", i);
        cr_expect(eq(int, sent->send.message.estimate.former, cases[i].renewed), "%zu", i);
        close_desk(&desk);
    }
}

/* n2 is asked about the token, and says that it did not accept it. */
static void deny(struct desk *desk)
{
    post_type(desk, SGP_EVENT_TICK);
    while (find(desk, SGP_EFFECT_INQUIRE) == NULL) {
        cr_assert(ne(i64, sgp_node_deadline(desk->node), SGP_TIME_NEVER));
        desk->now = sgp_node_deadline(desk->node);
        post_type(desk, SGP_EVENT_TICK);
    }
    const struct sgp_message message = {
        .type = SGP_ANSWER, .answer = {.known = true, .incarnation = 82}};
    post(desk, (struct sgp_event){.type = SGP_EVENT_ANSWER, .message = &message});
}

/* The target accepted the token, and handed it on. Its ledger was restored from before that. */
Test(outdated, a_token_that_went_on_does_not_return)
{
    static const struct {
        sgp_round copy;
        bool former, asked;
        double weight;
    } cases[] = {{6, false, false, 0}, {5, false, false, 1}, {6, true, false, 1},
        {6, false, true, 0}, {5, false, true, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct desk desk;
        open_token(&desk, (struct sgp_record){.round = 5}, 5);
        hand_copy(&desk, (struct sgp_epoch){.number = 0}, cases[i].copy, cases[i].former);
        cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 1));
        if (cases[i].asked)
            deny(&desk);
        else
            greet_out(&desk, 2, pulse_at(1, SGP_ROUND_NONE), 82, 0);
        bool returned = find_note(&desk, SGP_NOTE_RETURNED) != NULL;
        cr_expect(eq(int, returned, cases[i].weight > 0), "%zu", i);
        cr_expect(eq(dbl, status_of(&desk).weight_in_flight, 0), "%zu", i);
        cr_expect(eq(dbl, status_of(&desk).weight, cases[i].weight), "%zu", i);
        close_desk(&desk);
    }
}
