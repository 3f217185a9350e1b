/* SPDX-License-Identifier: Apache-2.0 */
/* What one that leaves accumulates before it goes, and how long. */
#include "leave_desk.h"

/* n0 has given half of its mass in round 0, wants to leave, and gets `weight` of n1 and of n2 each time;
 * they will give again in round `next`. */
static void want_to_leave_with(struct desk *desk, double weight, sgp_round next)
{
    open_beside_two(desk, 3);
    grant(desk, 1, 0);
    grant(desk, 2, 0);
    post_type(desk, SGP_EVENT_TRAINED);
    post_type(desk, SGP_EVENT_LEAVE);
    post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    for (uint32_t i = 1; i < 3; i++) {
        acknowledge(desk, i, 1, SGP_REASON_NONE);
        struct sgp_message message = share_of(1, 0, next);
        message.share.weight = weight;
        say(desk, i, SGP_IN, message);
        deliver(desk, i, 0);
        const struct sgp_effect *absorb = find(desk, SGP_EFFECT_ABSORB);
        if (absorb != NULL)
            post(desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = absorb->absorb.slot});
    }
    cr_assert(eq(dbl, status_of(desk).weight, 0.5 + 2 * weight));
}

/* In round 1 it gives nothing away, and nobody waits for it. */
Test(accumulate, a_leaver_accumulates_the_mass_of_a_member_first)
{
    struct desk desk;
    want_to_leave_with(&desk, 0.125, 1);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_TRAINING));
    grant(&desk, 1, 1);
    grant(&desk, 2, 1);
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert_null(find(&desk, SGP_EFFECT_PUBLISH));
    for (uint32_t i = 1; i < 3; i++) {
        cr_assert_not_null(find_sent(&desk, SGP_SHARE, i));
        cr_assert(zero(dbl, find_sent(&desk, SGP_SHARE, i)->send.message.share.fraction));
    }
    for (uint32_t i = 1; i < 3; i++) {
        acknowledge(&desk, i, 2, SGP_REASON_NONE);
        struct sgp_message message = share_of(2, 1, 2);
        message.share.weight = 0.125;
        say(&desk, i, SGP_IN, message);
        deliver(&desk, i, 0);
    }
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_DRAINING));
    close_desk(&desk);
}

Test(accumulate, one_to_whom_nobody_gives_leaves_with_what_it_has)
{
    struct desk desk;
    want_to_leave_with(&desk, 0.125, SGP_ROUND_NONE);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_DRAINING));
    cr_assert(eq(dbl, status_of(&desk).weight, 0.75));
    close_desk(&desk);
}

/* n1 and n2 give next to nothing, round after round. */
Test(accumulate, a_leaver_accumulates_for_so_long_and_no_longer)
{
    struct desk desk;
    want_to_leave_with(&desk, 0.125, 1);
    sgp_time until = desk.now + SGP_SILENCE_MAX_NS;
    for (sgp_round k = 1; k < 100 && status_of(&desk).state == SGP_NODE_TRAINING; k++) {
        desk.now += SGP_SECOND;
        grant(&desk, 1, k);
        grant(&desk, 2, k);
        post_type(&desk, SGP_EVENT_TRAINED);
        for (uint32_t i = 1; i < 3; i++) {
            acknowledge(&desk, i, (uint64_t)k + 1, SGP_REASON_NONE);
            struct sgp_message message = share_of((uint64_t)k + 1, k, k + 1);
            message.share.fraction = message.share.weight = 0;
            message.share.payload_bytes = 0;
            say(&desk, i, SGP_IN, message);
        }
    }
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_DRAINING));
    cr_assert(eq(i64, desk.now, until));
    cr_assert(eq(dbl, status_of(&desk).weight, 0.75));
    close_desk(&desk);
}

/* All of its mass is under way: there is nothing to bequeath. */
Test(accumulate, a_leaver_without_mass_waits_for_some_and_says_so)
{
    struct desk desk;
    static const struct sgp_edge all[] = {{0, 1, 0.5}, {0, 2, 0.5}, {1, 0, 0.5}, {2, 1, 0.5}};
    const struct sgp_edge *edges[] = {all};
    const uint32_t counts[] = {4};
    struct sgp_topology *topology = topology_of(3, 1, edges, counts);
    struct sgp_node_config config = config_of(topology);
    config.weight_least = 0;
    open_desk(&desk, topology, config);
    greet_pair(&desk);
    greet_out(&desk, 2, pulse_at(0, SGP_ROUND_NONE), 99, 0);
    grant(&desk, 1, 0);
    grant(&desk, 2, 0);
    post_type(&desk, SGP_EVENT_TRAINED);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    post_type(&desk, SGP_EVENT_PAUSE);
    post_type(&desk, SGP_EVENT_LEAVE);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_PAUSED));
    cr_assert(eq(int, status_of(&desk).waiting, SGP_WAITING_MASS));
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    deliver(&desk, 1, 0);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_DRAINING));
    close_desk(&desk);
}

/* It was told of more members than mass came for: that is not to be dissolved by its heir either. */
Test(accumulate, what_was_never_covered_is_not_bequeathed)
{
    struct desk desk;
    open_beside_two(&desk, 3);
    struct sgp_message message = share_of(1, 0, SGP_ROUND_NONE);
    message.share.fraction = 1;
    message.share.weight = 0.25;
    message.share.bequest = 3;
    say(&desk, 1, SGP_IN, message);
    deliver(&desk, 1, 0);
    post_type(&desk, SGP_EVENT_PAUSE);
    post_type(&desk, SGP_EVENT_LEAVE);
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_DRAINING));
    const struct sgp_effect *absorb = find(&desk, SGP_EFFECT_ABSORB);
    if (absorb != NULL)
        post(&desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = absorb->absorb.slot});
    grant(&desk, 1, 0);
    const struct sgp_effect *told = NULL;
    for (uint32_t i = 0; i < desk.effects.count; i++)
        if (desk.items[i].send.message.bequeath.kind == SGP_BEQUEATH_TOLD)
            told = &desk.items[i];
    cr_assert_not_null(told, "but told of");
    cr_assert(eq(dbl, told->send.message.bequeath.weight, 2.75));
    (void)stage(&desk, 1);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    const struct sgp_share *bequest = bequest_to(&desk, 1);
    cr_assert_not_null(bequest);
    cr_assert(eq(dbl, bequest->weight, 1.25));
    cr_assert(eq(dbl, bequest->bequest, 1.25));
    close_desk(&desk);
}

/* What it cannot know, its heir can not either. */
Test(accumulate, what_is_not_known_is_told_to_the_heir)
{
    struct desk desk;
    struct sgp_record record;
    open_beside_two(&desk, 3);
    record_of(&desk, &record);
    record.unknown = 3;
    begin_again_from(&desk, &record);
    for (uint32_t i = 1; i < 3; i++) {
        greet_out(&desk, i, pulse_at(0, SGP_ROUND_NONE), 80 + i, 0);
        greet_in(&desk, i, pulse_at(0, 0), 80 + i);
    }
    post_type(&desk, SGP_EVENT_PAUSE);
    post_type(&desk, SGP_EVENT_LEAVE);
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_DRAINING));
    grant(&desk, 1, 0);
    const struct sgp_effect *told = NULL;
    for (uint32_t i = 0; i < desk.effects.count; i++)
        if (desk.items[i].send.message.bequeath.kind == SGP_BEQUEATH_UNKNOWN)
            told = &desk.items[i];
    cr_assert_not_null(told);
    cr_assert(eq(dbl, told->send.message.bequeath.weight, 3));
    close_desk(&desk);
}

Test(accumulate, an_heir_tells_what_its_leaver_did_not_know)
{
    struct desk desk;
    open_beside_two(&desk, 3);
    say(&desk, 1, SGP_IN,
        (struct sgp_message){.type = SGP_BEQUEATH,
            .pulse = pulse_at(0, 0),
            .bequeath = {.kind = SGP_BEQUEATH_UNKNOWN,
                .source = "n1",
                .target = "n1",
                .source_incarnation = 81,
                .target_incarnation = 81,
                .weight = 3}});
    cr_assert(eq(dbl, status_of(&desk).unknown, 0), "the bequest may go to another yet");
    struct sgp_message message = share_of(1, 0, SGP_ROUND_NONE);
    message.share.fraction = message.share.bequest = 1;
    message.share.weight = 1;
    say(&desk, 1, SGP_IN, message);
    deliver(&desk, 1, 0);
    cr_assert(eq(dbl, status_of(&desk).unknown, 3));
    close_desk(&desk);
}

/* Its process is killed meanwhile: the next one joins, and continues to accumulate. */
Test(accumulate, a_leaver_that_is_killed_continues_to_accumulate)
{
    struct desk desk;
    struct sgp_record record;
    want_to_leave_with(&desk, 0.125, 1);
    record_of(&desk, &record);
    cr_assert(record.leaving);
    begin_again_from(&desk, &record);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_JOINING));
    for (uint32_t i = 1; i < 3; i++) {
        greet_out(&desk, i, pulse_at(1, SGP_ROUND_NONE), 80 + i, 1);
        greet_in(&desk, i, pulse_at(1, 1), 80 + i);
    }
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_TRAINING));
    for (uint32_t i = 1; i < 3; i++) {
        struct sgp_message message = share_of(2, 1, 2);
        message.share.weight = 0.125;
        say(&desk, i, SGP_IN, message);
        deliver(&desk, i, 0);
    }
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    grant(&desk, 1, 1);
    grant(&desk, 2, 1);
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert_null(find(&desk, SGP_EFFECT_PUBLISH));
    acknowledge(&desk, 1, 2, SGP_REASON_NONE);
    acknowledge(&desk, 2, 2, SGP_REASON_NONE);
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_DRAINING));
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    close_desk(&desk);
}
