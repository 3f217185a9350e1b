/* SPDX-License-Identifier: Apache-2.0 */
/* A share that is added to x while it comes: when it may be, what waits for it, and what ends it. */
#include "core_desk.h"

#include <errno.h>

/* n0 gives to n1, and n1 and n2 give to n0, in every round. */
static struct sgp_topology *two_sources(void)
{
    static const struct sgp_edge all[] = {
        {0, 1, SGP_FRACTION_DEFAULT}, {1, 0, SGP_FRACTION_DEFAULT}, {2, 0, SGP_FRACTION_DEFAULT}};
    const struct sgp_edge *edges[] = {all};
    const uint32_t counts[] = {3};
    return topology_of(3, 1, edges, counts);
}

static void open_three(struct desk *desk)
{
    struct sgp_topology *topology = two_sources();
    open_desk(desk, topology, config_of(topology));
    post_type(desk, SGP_EVENT_START);
    greet_out(desk, 1, pulse_at(0, SGP_ROUND_NONE), 88, 0);
    greet_in(desk, 1, pulse_at(0, 0), 88);
    greet_in(desk, 2, pulse_at(0, 0), 99);
    give_first(desk);
}

static bool is_folded(const struct desk *desk)
{
    return find(desk, SGP_EFFECT_FOLD) != NULL;
}

/* The share of n1 for round 0 begins to come, and is folded. */
static void begin_fold(struct desk *desk)
{
    open_pair(desk);
    give_first(desk);
    say(desk, 1, SGP_IN, share_of(1, 0, 1));
    cr_assert(is_folded(desk));
}

static uint32_t users(const struct desk *desk)
{
    uint32_t all = 0;
    for (uint32_t i = 0; i < desk->node->layout.snapshot_count; i++)
        all += desk->node->layout.snapshot_users[i];
    return all;
}

static enum sgp_reason answer_to(const struct desk *desk, uint32_t peer)
{
    const struct sgp_effect *ack = find_sent(desk, SGP_ACK, peer);
    cr_assert_not_null(ack);
    return ack->send.message.ack.reason;
}

/* n1 ends its connection over what it was given, which returns at once. */
static void would_not_have_it(struct desk *desk)
{
    say(desk, 1, SGP_OUT,
        (struct sgp_message){.type = SGP_GOODBYE,
            .pulse = pulse_at(0, SGP_ROUND_NONE),
            .goodbye = {.reason = SGP_REASON_RANGE, .text = "range"}});
}

Test(fold, x_is_what_was_kept_of_the_snapshot)
{
    struct desk desk;
    begin_fold(&desk);
    const struct sgp_fold *fold = &find(&desk, SGP_EFFECT_FOLD)->fold.how;
    cr_assert(eq(u32, fold->snapshot, 0));
    cr_assert(eq(dbl, fold->keep, 0.5));
    cr_assert(eq(dbl, fold->fraction, 0.5));
    deliver(&desk, 1, 0);
    cr_assert(eq(int, answer_to(&desk, 1), SGP_REASON_NONE));
    cr_assert(find(&desk, SGP_EFFECT_ABSORB)->absorb.folded);
    cr_assert_not_null(find(&desk, SGP_EFFECT_TRAIN), "that was all that the round waited for");
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    close_desk(&desk);
}

Test(fold, the_snapshot_stays_although_its_share_was_acknowledged)
{
    struct desk desk;
    begin_fold(&desk);
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    cr_assert(eq(u32, users(&desk), 1));
    deliver(&desk, 1, 0);
    cr_assert(eq(u32, users(&desk), 0));
    close_desk(&desk);
}

Test(fold, x_that_is_not_at_rest_is_let_alone)
{
    struct desk desk;
    open_pair(&desk); /* it trains */
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    cr_assert_not(is_folded(&desk));
    deliver(&desk, 1, 0);
    cr_assert_null(find(&desk, SGP_EFFECT_ABSORB));
    close_desk(&desk);

    open_pair(&desk);
    grant(&desk, 1, 0);
    post_type(&desk, SGP_EVENT_TRAINED); /* the snapshot is being made */
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    cr_assert_not(is_folded(&desk));
    close_desk(&desk);

    open_pair(&desk);
    give_first(&desk);
    acknowledge(&desk, 1, 1, SGP_REASON_NOT_FINITE);
    cr_assert_not_null(find(&desk, SGP_EFFECT_RESTORE)); /* what was given returned */
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    cr_assert_not(is_folded(&desk));
    close_desk(&desk);
}

/* It began to come before the snapshot was made. */
Test(fold, a_share_that_is_arriving_is_folded_from_the_moment_that_x_rests)
{
    struct desk desk;
    open_pair(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    cr_assert_not(is_folded(&desk));
    give_first(&desk);
    cr_assert(is_folded(&desk));
    deliver(&desk, 1, 0);
    cr_assert(find(&desk, SGP_EFFECT_ABSORB)->absorb.folded);
    close_desk(&desk);
}

Test(fold, a_share_of_a_later_round_is_not_folded)
{
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    say_pulse(&desk, 1, SGP_IN, pulse_at(1, 1));
    say(&desk, 1, SGP_IN, share_of(1, 1, 2));
    cr_assert_not(is_folded(&desk));
    close_desk(&desk);
}

/* Sums have an order: by source. */
Test(fold, only_the_share_of_the_first_source_is_folded)
{
    struct desk desk;
    open_three(&desk);
    say(&desk, 2, SGP_IN, share_of(1, 0, 1));
    cr_assert_not(is_folded(&desk), "n1 comes first");
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    cr_assert(is_folded(&desk));
    deliver(&desk, 2, 0);
    cr_assert_null(find(&desk, SGP_EFFECT_ABSORB));
    deliver(&desk, 1, 0);
    cr_assert(find(&desk, SGP_EFFECT_ABSORB)->absorb.folded);
    cr_assert(eq(u32, find(&desk, SGP_EFFECT_ABSORB)->absorb.peer, 1));
    cr_assert(eq(dbl, status_of(&desk).weight, 1.5), "and n2's behind it");
    close_desk(&desk);

    open_three(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    cr_assert(is_folded(&desk));
    say(&desk, 2, SGP_IN, share_of(1, 0, 1));
    cr_assert_not(is_folded(&desk), "one at a time");
    close_desk(&desk);
}

Test(fold, a_damaged_or_refused_share_is_dropped)
{
    const int codes[] = {SGP_E_CHECKSUM, SGP_E_NOT_FINITE, SGP_E_OUTSIZED};
    for (size_t i = 0; i < 3; i++) {
        struct desk desk;
        begin_fold(&desk);
        acknowledge(&desk, 1, 1, SGP_REASON_NONE);
        deliver(&desk, 1, codes[i]);
        cr_assert_null(find(&desk, SGP_EFFECT_ABSORB));
        cr_assert(eq(u32, users(&desk), 0));
        cr_assert(eq(dbl, status_of(&desk).weight, 0.5));
        cr_assert(eq(int, find(&desk, SGP_EFFECT_HANG_UP) != NULL, i == 0));
        close_desk(&desk);
    }
}

Test(fold, a_fold_ends_with_its_connection_and_x_rests_for_the_next)
{
    struct desk desk;
    begin_fold(&desk);
    lose(&desk, 1, SGP_IN);
    cr_assert(eq(u32, users(&desk), 1), "the share that was given");
    greet_in(&desk, 1, pulse_at(0, 0), 88);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    cr_assert(is_folded(&desk));
    close_desk(&desk);
}

/* What a target refuses returns, which changes x: so it waits. */
Test(fold, a_refused_share_returns_after_the_fold)
{
    struct desk desk;
    begin_fold(&desk);
    acknowledge(&desk, 1, 1, SGP_REASON_NOT_FINITE);
    cr_assert_null(find(&desk, SGP_EFFECT_RESTORE));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0.5), "still owed");
    deliver(&desk, 1, 0);
    cr_assert(eq(int, answer_to(&desk, 1), SGP_REASON_NONE));
    cr_assert(find(&desk, SGP_EFFECT_ABSORB)->absorb.folded);
    cr_assert_not_null(find(&desk, SGP_EFFECT_RESTORE));
    cr_assert(eq(dbl, status_of(&desk).weight, 1.5));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0));
    close_desk(&desk);
}

Test(fold, an_answer_is_given_once)
{
    struct desk desk;
    begin_fold(&desk);
    acknowledge(&desk, 1, 1, SGP_REASON_NOT_FINITE);
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    cr_assert_not_null(find(&desk, SGP_EFFECT_HANG_UP));
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0.5), "settled when they meet again");
    close_desk(&desk);
}

/* A refusal that was not taken up is as good as lost with its connection. */
Test(fold, a_refusal_is_forgotten_when_its_connection_ends)
{
    struct desk desk;
    begin_fold(&desk);
    acknowledge(&desk, 1, 1, SGP_REASON_NOT_FINITE);
    lose(&desk, 1, SGP_OUT);
    deliver(&desk, 1, 0);
    cr_assert_null(find(&desk, SGP_EFFECT_RESTORE));
    greet_out(&desk, 1, pulse_at(0, SGP_ROUND_NONE), 88, 1); /* it has accepted it after all */
    cr_assert(eq(dbl, status_of(&desk).weight_in_flight, 0));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    close_desk(&desk);
}

/* A target that would not have the share ends its connection: that returns at once, and what came is of no use. */
Test(fold, a_fold_over_an_x_that_has_changed_is_refused)
{
    struct desk desk;
    begin_fold(&desk);
    would_not_have_it(&desk);
    cr_assert_not_null(find(&desk, SGP_EFFECT_RESTORE));
    deliver(&desk, 1, 0);
    cr_assert(eq(int, answer_to(&desk, 1), SGP_REASON_CHANGED));
    cr_assert_null(find(&desk, SGP_EFFECT_ABSORB));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    close_desk(&desk);
}

/* A clean stop absorbs what is held, so that its last checkpoint is exact; what is still coming goes home. */
Test(fold, a_stop_does_not_wait_for_a_fold)
{
    struct desk desk;
    open_three(&desk);
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    say(&desk, 2, SGP_IN, share_of(1, 0, 1));
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    cr_assert(is_folded(&desk));
    deliver(&desk, 2, 0);
    cr_assert_null(find(&desk, SGP_EFFECT_ABSORB));
    post_type(&desk, SGP_EVENT_STOP);
    cr_assert_not_null(find(&desk, SGP_EFFECT_ABSORB));
    cr_assert(eq(u32, find(&desk, SGP_EFFECT_ABSORB)->absorb.peer, 2));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    cr_assert(eq(dbl, status_of(&desk).weight_estimate, 1), "nothing is held");
    cr_assert(eq(u32, users(&desk), 0));
    close_desk(&desk);
}

/* It is one of those without whom a round may go on: then what came of it would be of no use. */
Test(fold, no_share_is_folded_where_a_round_may_go_on_without_its_source)
{
    struct desk desk;
    struct sgp_topology *topology = two_sources();
    struct sgp_node_config config = config_of(topology);
    config.backup_neighbours = 1;
    open_desk(&desk, topology, config);
    post_type(&desk, SGP_EVENT_START);
    greet_out(&desk, 1, pulse_at(0, SGP_ROUND_NONE), 88, 0);
    greet_in(&desk, 1, pulse_at(0, 0), 88);
    greet_in(&desk, 2, pulse_at(0, 0), 99);
    give_first(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    cr_assert_not(is_folded(&desk));
    close_desk(&desk);
}

/* x changes while it comes: the snapshot is let go of at once, and the rest of the share is not folded. */
Test(fold, a_fold_is_given_up_as_soon_as_x_changes)
{
    struct desk desk;
    begin_fold(&desk);
    would_not_have_it(&desk);
    cr_assert_not_null(find(&desk, SGP_EFFECT_RESTORE));
    cr_assert(eq(u32, find(&desk, SGP_EFFECT_FOLD)->fold.how.snapshot, SGP_SLOT_NONE));
    cr_assert(eq(u32, users(&desk), 1), "the RESTORE job's");
    close_desk(&desk);
}

/* Where each has its own pace, and where the steps come after the publishing, x is never at rest. */
Test(fold, methods_whose_x_does_not_rest_fold_no_share)
{
    const char *const names[] = {"osgp", "agp"};
    for (size_t i = 0; i < 2; i++) {
        struct desk desk;
        struct sgp_topology *topology = pair();
        struct sgp_node_config config = config_of(topology);
        config.method = sgp_method_find(names[i]);
        open_desk(&desk, topology, config);
        desk.peers.method = config.method->number;
        greet_pair(&desk);
        say(&desk, 1, SGP_IN, share_of(1, 0, 1));
        cr_assert_not(is_folded(&desk));
        close_desk(&desk);
    }
}
