/* SPDX-License-Identifier: Apache-2.0 */
/* What an heir does with mass that is not its own, by hand. */
#include "leave_desk.h"

static void inherit(struct desk *desk, double weight, double members)
{
    struct sgp_message message = share_of(1, 0, SGP_ROUND_NONE);
    message.pulse.state = SGP_NODE_DRAINING;
    message.share.fraction = 1;
    message.share.weight = weight;
    message.share.bequest = members;
    say(desk, 1, SGP_IN, message);
    deliver(desk, 1, 0);
    const struct sgp_effect *note = find_note(desk, SGP_NOTE_INHERITED);
    cr_assert_not_null(note);
    cr_assert(eq(dbl, note->note.amount, weight));
    const struct sgp_effect *absorb = find(desk, SGP_EFFECT_ABSORB);
    if (absorb != NULL)
        post(desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = absorb->absorb.slot});
}

/* Ends round `k`, in which nobody gives or gets anything. */
static void end_round(struct desk *desk)
{
    if (find(desk, SGP_EFFECT_TRAIN) == NULL)
        post_type(desk, SGP_EVENT_TRAINED);
    post_type(desk, SGP_EVENT_TICK);
}

/* n0 hears of n1 alone and gives to nobody. */
static void open_heir_of(struct desk *desk, double weight_least)
{
    static const struct sgp_edge in[] = {{1, 0, 0.5}};
    const struct sgp_edge *edges[] = {in};
    const uint32_t counts[] = {1};
    struct sgp_topology *topology = topology_of(3, 1, edges, counts);
    struct sgp_node_config config = config_of(topology);
    config.weight_least = weight_least;
    open_desk(desk, topology, config);
    post_type(desk, SGP_EVENT_START);
    greet_in(desk, 1, pulse_at(0, 0), 88);
    cr_assert_not_null(find(desk, SGP_EFFECT_TRAIN));
}

static void open_heir(struct desk *desk)
{
    open_heir_of(desk, 1);
}

/* Three members' mass is told, and none comes: nothing may be taken off for it. */
Test(heir, a_bequest_without_weight_is_refused)
{
    struct desk desk;
    struct sgp_message message = share_of(1, 0, SGP_ROUND_NONE);
    message.share.fraction = message.share.weight = 0;
    message.share.payload_bytes = 0;
    message.share.bequest = 3;
    open_heir(&desk);
    say(&desk, 1, SGP_IN, message);
    const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
    cr_assert_not_null(end, "surplus is %g", status_of(&desk).surplus);
    cr_assert(eq(int, end->hang_up.reason, SGP_REASON_RANGE));
    cr_assert(zero(dbl, status_of(&desk).surplus));
    close_desk(&desk);

    message = share_of(1, 0, SGP_ROUND_NONE); /* half of what it has is no bequest */
    message.share.bequest = 1;
    open_heir(&desk);
    say(&desk, 1, SGP_IN, message);
    cr_assert_not_null(find(&desk, SGP_EFFECT_HANG_UP));
    close_desk(&desk);
}

/* The rest stays told: the total is more than the members by so much. */
Test(heir, an_heir_takes_off_no_more_than_came_with_the_bequest)
{
    struct desk desk;
    open_heir(&desk);
    inherit(&desk, 0.25, 3);
    for (int i = 0; i < 3; i++)
        post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    cr_assert(eq(dbl, status_of(&desk).surplus, 2.75));
    close_desk(&desk);
}

Test(heir, an_heir_scales_itself_down_where_its_estimate_stays)
{
    struct desk desk;
    open_heir(&desk);
    inherit(&desk, 1.25, 1);
    cr_assert(eq(dbl, status_of(&desk).weight, 2.25));
    cr_assert(eq(dbl, status_of(&desk).surplus, 1));
    cr_assert_null(find(&desk, SGP_EFFECT_SCALE), "a job is under way");
    post_type(&desk, SGP_EVENT_TRAINED);
    const struct sgp_effect *scale = find(&desk, SGP_EFFECT_SCALE);
    cr_assert_not_null(scale);
    cr_assert(eq(dbl, scale->scale.factor, 1.25 / 2.25));
    cr_assert(eq(dbl, find_note(&desk, SGP_NOTE_DISSOLVED)->note.amount, 1));
    cr_assert(eq(dbl, status_of(&desk).weight, 1.25));
    cr_assert(eq(dbl, status_of(&desk).surplus, 0));
    cr_assert(eq(dbl, find(&desk, SGP_EFFECT_TRAIN)->weight, 1.25));
    close_desk(&desk);
}

/* At most half at a time, and never below 0.75 w_min: 4 -> 2 -> 1.5. */
Test(heir, an_heir_never_starves_itself)
{
    struct desk desk;
    open_heir_of(&desk, 2);
    inherit(&desk, 3, 3);
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(dbl, status_of(&desk).weight, 2));
    cr_assert(eq(dbl, status_of(&desk).surplus, 1));
    end_round(&desk);
    cr_assert(eq(dbl, status_of(&desk).weight, 2));
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(dbl, status_of(&desk).weight, 1.5));
    cr_assert(eq(dbl, status_of(&desk).surplus, 0.5), "the rest when it has more again");
    post_type(&desk, SGP_EVENT_TRAINED);
    cr_assert(eq(dbl, status_of(&desk).weight, 1.5));
    close_desk(&desk);
}

Test(heir, a_surplus_survives_the_process)
{
    struct desk desk;
    struct sgp_record record;
    open_heir(&desk);
    inherit(&desk, 1.25, 1);
    record_of(&desk, &record);
    cr_assert(eq(dbl, record.surplus, 1));
    struct sgp_node_config config = config_of(desk.topology);
    config.record = &record;
    begin_again(&desk, &config);
    cr_assert(eq(dbl, status_of(&desk).surplus, 1));
    cr_assert(eq(dbl, status_of(&desk).weight, 2.25));
    close_desk(&desk);
}

/* A neighbour that claims to leave again and again cannot make what we inherit unspeakable. */
Test(heir, what_is_inherited_stays_within_what_a_message_and_a_record_can_say)
{
    struct desk desk;
    struct sgp_record record;
    open_heir(&desk);
    post_type(&desk, SGP_EVENT_PAUSE);
    for (uint64_t number = 1; number <= SGP_NODES_MAX; number++) {
        struct sgp_message message = share_of(number, 0, 0);
        message.share.fraction = 1;
        message.share.weight = 0x1p-40;
        message.share.bequest = 3;
        say(&desk, 1, SGP_IN, message);
        deliver(&desk, 1, 0);
        const struct sgp_effect *absorb = find(&desk, SGP_EFFECT_ABSORB);
        if (absorb != NULL)
            post(
                &desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = absorb->absorb.slot});
    }
    record_of(&desk, &record);
    cr_assert(eq(dbl, record.surplus, SGP_NODES_MAX - 1));
    cr_assert(eq(dbl, status_of(&desk).surplus, SGP_NODES_MAX - 1));
    close_desk(&desk);
}
