/* A record that is older than what the neighbours have seen, and lineages that come and go. The node is n0
 * of a pair, made from a record; n1 is played. */
#include "test_core_desk.h"

/* n0 had 0.75 and was in round 9; to n1 it had given 1.5 up to share 5, of which the last, of 0.25, is
 * not settled; from n1 it had accepted 2.0 up to share 3. */
static struct sgp_record saved(struct sgp_record_link links[2])
{
    links[0] = (struct sgp_record_link){.peer = 1,
        .out = true,
        .lineage = 88,
        .number = 5,
        .owes = true,
        .owed_round = 8,
        .owed_fraction = 0.5,
        .owed_weight = 0.25,
        .passed = 1.25};
    links[1] = (struct sgp_record_link){.peer = 1, .lineage = 88, .number = 3, .passed = 2};
    return (struct sgp_record){.lineage = 77,
        .round = 9,
        .gave = true,
        .weight = 0.75,
        .link_count = 2,
        .link_capacity = 2,
        .links = links};
}

static void open_with(struct desk *desk, const struct sgp_record *record)
{
    struct sgp_topology *topology = pair();
    struct sgp_node_config config = config_of(topology);
    config.record = record;
    open_desk(desk, topology, config);
    post_type(desk, SGP_EVENT_START);
}

static void open_saved(struct desk *desk)
{
    struct sgp_record_link links[2];
    struct sgp_record record = saved(links);
    open_with(desk, &record);
}

/* n1 answers: of n0's lineage it has accepted so much. */
static void welcome(struct desk *desk, uint64_t lineage, uint64_t accepted, double weight)
{
    come_up(desk, 1, SGP_OUT);
    say(desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_WELCOME,
            .pulse = pulse_at(9, SGP_ROUND_NONE),
            .welcome = {.target = "n1",
                .lineage = lineage,
                .accepted = accepted,
                .accepted_weight = weight,
                .fingerprint = prints}});
}

/* n1 greets: to `target_lineage` it has given so much. Returns the answer. */
static const struct sgp_welcome *hello(
    struct desk *desk, uint64_t lineage, uint64_t target_lineage, uint64_t settled, double weight)
{
    come_up(desk, 1, SGP_IN);
    say(desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_HELLO,
            .pulse = pulse_at(9, SGP_ROUND_NONE),
            .hello = {.source = "n1",
                .target = "n0",
                .lineage = lineage,
                .parameters = PARAMETERS,
                .target_lineage = target_lineage,
                .settled = settled,
                .settled_weight = weight,
                .fingerprint = prints}});
    const struct sgp_effect *sent = find_sent(desk, SGP_WELCOME, 1);
    return sent != NULL ? &sent->message.welcome : NULL;
}

static double scaled(const struct desk *desk)
{
    double factor = 1;
    for (uint32_t i = 0; i < desk->effects.count; i++)
        if (desk->items[i].type == SGP_EFFECT_SCALE)
            factor *= desk->items[i].factor;
    return factor;
}

Test(outdated, a_record_of_the_last_moment_is_not)
{
    struct desk desk;
    open_saved(&desk);
    welcome(&desk, 88, 5, 1.5);
    cr_assert_null(find_note(&desk, SGP_NOTE_OUTDATED));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0));
    const struct sgp_welcome *answer = hello(&desk, 88, 77, 3, 2);
    cr_assert_null(find_note(&desk, SGP_NOTE_OUTDATED));
    cr_assert(eq(u64, answer->accepted, 3));
    cr_assert(eq(dbl, answer->accepted_weight, 2));
    cr_assert(eq(dbl, status_of(&desk).weight, 0.75));
    cr_assert(eq(dbl, status_of(&desk).unsettled, 0));
    close_desk(&desk);
}

Test(outdated, what_came_since_is_made_at_its_own_estimate)
{
    struct desk desk;
    open_saved(&desk);
    welcome(&desk, 88, 5, 1.5);
    const struct sgp_welcome *answer = hello(&desk, 88, 77, 9, 2.5);
    cr_assert(eq(u64, answer->accepted, 9), "numbers go on from there");
    cr_assert(eq(dbl, answer->accepted_weight, 2.5));
    cr_assert(eq(dbl, find_note(&desk, SGP_NOTE_OUTDATED)->factor, -0.5));
    cr_assert(eq(int, find_note(&desk, SGP_NOTE_OUTDATED)->link.direction, SGP_IN));
    cr_assert(eq(dbl, find_note(&desk, SGP_NOTE_CORRECTED)->factor, 0.5));
    cr_assert(sgp_node_record_changed(desk.node));
    cr_assert(eq(dbl, status_of(&desk).weight, 1.25));
    cr_assert(epsilon_eq(dbl, scaled(&desk), 1.25 / 0.75, 1e-15));
    cr_assert(eq(dbl, status_of(&desk).unsettled, 0));
    close_desk(&desk);
}

/* Share 5 and three more have left, 0.625 in all; the next one is share 9. */
Test(outdated, what_left_since_is_dissolved_as_a_surplus)
{
    struct desk desk;
    open_saved(&desk);
    (void)hello(&desk, 88, 77, 3, 2);
    welcome(&desk, 88, 8, 2.125);
    cr_assert(eq(dbl, find_note(&desk, SGP_NOTE_OUTDATED)->factor, 0.625));
    cr_assert(eq(int, find_note(&desk, SGP_NOTE_OUTDATED)->link.direction, SGP_OUT));
    cr_assert(eq(dbl, find_note(&desk, SGP_NOTE_CORRECTED)->factor, -0.625));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0));
    /* 0.375 at once: it keeps half, and does not starve */
    cr_assert(eq(dbl, status_of(&desk).weight, 0.375));
    cr_assert(eq(dbl, scaled(&desk), 0.5));
    cr_assert(eq(dbl, status_of(&desk).surplus, 0.25));
    cr_assert(eq(dbl, status_of(&desk).unsettled, 0));
    struct sgp_record_link links[2];
    struct sgp_record record = {.link_capacity = 2, .links = links};
    sgp_node_record(desk.node, &record);
    cr_assert(eq(u64, links[0].number, 8));
    cr_assert(eq(dbl, links[0].passed, 2.125));
    close_desk(&desk);
}

/* n1 still owes what n0 has accepted, and had not acknowledged. */
Test(outdated, what_is_owed_and_here_is_no_difference)
{
    struct desk desk;
    open_saved(&desk);
    come_up(&desk, 1, SGP_IN);
    struct sgp_message message = {.type = SGP_HELLO,
        .pulse = pulse_at(9, SGP_ROUND_NONE),
        .hello = {.source = "n1",
            .target = "n0",
            .lineage = 88,
            .parameters = PARAMETERS,
            .target_lineage = 77,
            .settled = 2,
            .settled_weight = 1.5,
            .owed_weight = 0.5,
            .fingerprint = prints}};
    say(&desk, 1, SGP_IN, message);
    cr_assert(eq(dbl, status_of(&desk).unsettled, 0));
    cr_assert(eq(u64, find_sent(&desk, SGP_WELCOME, 1)->message.welcome.accepted, 3));
    close_desk(&desk);

    open_saved(&desk); /* it has had an old ledger too since, and agreed with an older one of n0 */
    come_up(&desk, 1, SGP_IN);
    message.hello.owed_weight = 0;
    say(&desk, 1, SGP_IN, message);
    cr_assert(eq(dbl, status_of(&desk).unsettled, 0.5));
    cr_assert(eq(u64, find_sent(&desk, SGP_WELCOME, 1)->message.welcome.accepted, 3));
    cr_assert(eq(dbl, find_sent(&desk, SGP_WELCOME, 1)->message.welcome.accepted_weight, 1.5));
    close_desk(&desk);
}

/* Six times as much has come as it has, and nearly as much has gone again: neither counts alone. */
Test(outdated, nothing_is_corrected_before_all_have_told)
{
    struct desk desk;
    open_saved(&desk);
    (void)hello(&desk, 88, 77, 30, 8);
    cr_assert(eq(dbl, status_of(&desk).unsettled, -6));
    cr_assert(eq(dbl, status_of(&desk).weight, 0.75));
    cr_assert_null(find_note(&desk, SGP_NOTE_CORRECTED));

    struct sgp_record_link links[2]; /* it is killed now: that is on record */
    struct sgp_record record = {.link_capacity = 2, .links = links};
    sgp_node_record(desk.node, &record);
    close_desk(&desk);
    cr_assert(eq(dbl, record.unsettled, -6));
    cr_assert(eq(u64, links[1].number, 30));
    cr_assert(sgp_record_is_sound(&record, 2));

    open_with(&desk, &record);
    welcome(&desk, 88, 29, 7.25);
    cr_assert(eq(dbl, status_of(&desk).unsettled, -0.25));
    cr_assert_null(find_note(&desk, SGP_NOTE_CORRECTED), "n1 may have given more since");
    (void)hello(&desk, 88, 77, 30, 8);
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    cr_assert(eq(dbl, status_of(&desk).unsettled, 0));
    close_desk(&desk);
}

/* No node of two has more than two: what is beyond that is not known here. */
Test(outdated, what_cannot_be_is_told_and_not_corrected)
{
    struct desk desk;
    open_saved(&desk);
    welcome(&desk, 88, 5, 1.5);
    (void)hello(&desk, 88, 77, 30, 4.125);
    cr_assert(eq(dbl, status_of(&desk).unsettled, -2.125));
    cr_assert(eq(dbl, status_of(&desk).weight, 0.75));
    close_desk(&desk);
}

/* Once a link has greeted, a peer that says more has passed is no reason to make weight of nothing. */
Test(outdated, a_node_that_has_greeted_is_not_talked_into_it)
{
    struct desk desk;
    open_saved(&desk);
    welcome(&desk, 88, 5, 1.5);
    (void)hello(&desk, 88, 77, 3, 2);
    const struct sgp_welcome *answer = hello(&desk, 88, 77, 9, 3);
    cr_assert(eq(u64, answer->accepted, 3));
    welcome(&desk, 88, 12, 3.5);
    cr_assert(eq(dbl, status_of(&desk).unsettled, 0));
    cr_assert(eq(dbl, status_of(&desk).weight, 0.75));
    struct sgp_record_link links[2];
    struct sgp_record record = {.link_capacity = 2, .links = links};
    sgp_node_record(desk.node, &record);
    cr_assert(eq(u64, links[0].number, 12), "but a share with a lower number would be refused");
    close_desk(&desk);
}

/* A target that forgot counts from nothing, so its source does; both were greeted by another one before. */
Test(outdated, an_end_that_forgot_is_not_outdated)
{
    struct desk desk;
    open_saved(&desk);
    welcome(&desk, 99, 0, 0);
    cr_assert(eq(dbl, status_of(&desk).weight, 1), "share 5 came home");
    (void)hello(&desk, 99, 0, 0, 0);
    cr_assert(eq(dbl, status_of(&desk).unsettled, 0));
    come_up(&desk, 1, SGP_OUT);
    const struct sgp_hello *said = &find_sent(&desk, SGP_HELLO, 1)->message.hello;
    cr_assert(eq(u64, said->target_lineage, 99));
    cr_assert(eq(u64, said->settled, 5));
    cr_assert(eq(dbl, said->settled_weight, 0));
    close_desk(&desk);

    open_saved(&desk); /* what n1 has given to another n0 than this is not missing here */
    (void)hello(&desk, 88, 76, 40, 12);
    cr_assert(eq(dbl, status_of(&desk).unsettled, 0));
    close_desk(&desk);
}

Test(outdated, a_ledger_that_did_not_count_takes_numbers_and_begins_to_count)
{
    struct sgp_record_link links[2];
    struct sgp_record record = saved(links);
    links[0].passed = links[1].passed = 0;
    links[0].uncounted = links[1].uncounted = true;
    struct desk desk;
    open_with(&desk, &record);
    come_up(&desk, 1, SGP_OUT);
    cr_assert(eq(u64, find_sent(&desk, SGP_HELLO, 1)->message.hello.target_lineage, 0));
    welcome(&desk, 88, 8, 2.125);
    (void)hello(&desk, 88, 77, 9, 3);
    cr_assert(eq(dbl, status_of(&desk).unsettled, 0));
    sgp_node_record(desk.node, &record);
    cr_assert(eq(u64, links[0].number, 8));
    cr_assert(eq(dbl, links[0].passed, 2.125));
    cr_assert(not(links[0].uncounted));
    cr_assert(not(links[1].uncounted));
    close_desk(&desk);
}

Test(outdated, what_cannot_have_passed_is_refused)
{
    struct desk desk;
    open_saved(&desk);
    welcome(&desk, 88, UINT64_MAX, 2);
    cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP)->reason, SGP_REASON_RANGE));
    welcome(&desk, 88, 9, 0x1p53);
    cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP)->reason, SGP_REASON_RANGE));
    cr_assert_null(hello(&desk, 88, 77, UINT64_MAX, 3));
    cr_assert_null(hello(&desk, 88, 77, 9, -1));
    cr_assert_null(hello(&desk, 88, 77, 9, NAN));
    cr_assert(eq(dbl, status_of(&desk).weight, 0.75));
    close_desk(&desk);
}

Test(outdated, both_ends_count_what_is_accepted_and_nothing_else)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    acknowledge(&desk, 1, 1, SGP_REASON_NOT_FINITE); /* refused: it comes home */
    post(&desk, (struct sgp_event){.type = SGP_EVENT_RESTORED, .slot = 0});
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    deliver(&desk, 1, SGP_E_NOT_FINITE);
    struct sgp_record_link links[2];
    struct sgp_record record = {.link_capacity = 2, .links = links};
    sgp_node_record(desk.node, &record);
    cr_assert(eq(dbl, links[0].passed, 0));
    cr_assert(eq(dbl, links[1].passed, 0));
    close_desk(&desk);

    open_pair(&desk);
    give_first(&desk);
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    deliver(&desk, 1, 0);
    sgp_node_record(desk.node, &record);
    cr_assert(eq(dbl, links[0].passed, 0.5));
    cr_assert(eq(dbl, links[1].passed, 0.5));
    close_desk(&desk);
}

/* ---- lineages ---- */

static uint64_t accepted_of(const struct desk *desk, uint64_t lineage)
{
    uint64_t number = 1000;
    bool known = sgp_node_accepted(desk->node, 1, lineage, &number);
    cr_assert(eq(u64, known, number != 1000));
    return number;
}

/* Strangers in the name of n1 push each other out, and not what was accepted from n1. */
Test(outdated, a_source_that_returns_finds_its_number_again)
{
    struct desk desk;
    open_saved(&desk);
    cr_assert(eq(u64, accepted_of(&desk, 88), 3));
    for (uint64_t lineage = 90; lineage < 95; lineage++) {
        cr_assert(zero(u64, hello(&desk, lineage, 0, 0, 0)->accepted), "nothing of this one");
        cr_assert(eq(u64, accepted_of(&desk, lineage), 0));
        cr_assert(eq(u64, accepted_of(&desk, 88), 3));
    }
    cr_assert(eq(u64, accepted_of(&desk, 90), 1000));
    cr_assert(eq(u64, accepted_of(&desk, 0), 1000));
    struct sgp_record_link links[2]; /* whatever happens to this process */
    struct sgp_record record = {.link_capacity = 2, .links = links};
    sgp_node_record(desk.node, &record);
    close_desk(&desk);
    cr_assert(sgp_record_is_sound(&record, 2));
    open_with(&desk, &record);
    const struct sgp_welcome *answer = hello(&desk, 88, 77, 3, 2);
    cr_assert(eq(u64, answer->accepted, 3));
    cr_assert(eq(dbl, answer->accepted_weight, 2));
    cr_assert(eq(u64, accepted_of(&desk, 94), 1000), "it had given nothing");
    close_desk(&desk);

    open_saved(&desk); /* nor do they stand before what it has to tell */
    (void)hello(&desk, 90, 77, 0, 0);
    answer = hello(&desk, 88, 77, 9, 2.5);
    cr_assert(eq(u64, answer->accepted, 9));
    cr_assert(eq(dbl, status_of(&desk).unsettled, -0.5));
    close_desk(&desk);
}

/* n1 lost its ledger, gave anew, and has got the old one back: the two change places. */
Test(outdated, two_lineages_that_gave_change_places)
{
    struct sgp_record_link links[2];
    struct sgp_record record = saved(links);
    links[1].former = (struct sgp_former){.lineage = 87, .number = 41, .passed = 20};
    struct desk desk;
    open_with(&desk, &record);
    const struct sgp_welcome *answer = hello(&desk, 87, 77, 41, 20);
    cr_assert(eq(u64, answer->accepted, 41));
    cr_assert(eq(dbl, answer->accepted_weight, 20));
    cr_assert(eq(u64, accepted_of(&desk, 88), 3));
    cr_assert(eq(u64, hello(&desk, 88, 77, 3, 2)->accepted, 3));
    cr_assert(eq(u64, accepted_of(&desk, 87), 41));
    close_desk(&desk);
}
