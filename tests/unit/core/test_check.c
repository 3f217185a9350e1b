/* SPDX-License-Identifier: Apache-2.0 */
/* The core's check of itself: a node that is well has no flaw, and each plant is seen by its own rule. */
#include "core/check.h"

#include <signal.h>

#include "core_desk.h"

static void expect_flaw(const struct desk *desk, const char *rule)
{
    const char *flaw = sgp_core_flaw(desk->node);
    cr_assert(flaw != NULL, "not seen: %s", rule);
    cr_assert(eq(str, (char *)flaw, (char *)rule));
}

/* After its first share was sent: something is owed, a snapshot is in use, a credit was used. */
static struct sgp_core_link *open_well(struct desk *desk)
{
    open_pair(desk);
    give_first(desk);
    cr_assert_null(sgp_core_flaw(desk->node));
    return sgp_core_find(desk->node, 1, SGP_OUT);
}

Test(check, weight_out_of_nothing_is_seen)
{
    struct desk desk;
    (void)open_well(&desk);
    desk.node->mass.weight += 1e-6;
    expect_flaw(
        &desk, "weight, held, owed and debt come to what came from outside less what went there");
    desk.node->mass.weight = NAN;
    expect_flaw(
        &desk, "weight is finite and not negative, and no more is covered than was inherited");
    close_desk(&desk);
}

Test(check, a_debt_that_vanishes_is_seen)
{
    struct desk desk;
    struct sgp_core_link *link = open_well(&desk);
    link->owed[0].exists = false;
    expect_flaw(&desk, "what was posted as owed is what the shares of links weigh");
    close_desk(&desk);
}

Test(check, a_snapshot_that_nobody_counts_is_seen)
{
    struct desk desk;
    struct sgp_core_link *link = open_well(&desk);
    desk.node->layout.snapshot_users[link->owed[0].slot]--;
    expect_flaw(&desk, "a snapshot has no fewer users than are known");
    close_desk(&desk);
}

Test(check, a_buffer_without_its_link_is_seen)
{
    struct desk desk;
    (void)open_well(&desk);
    struct sgp_core_link *in = sgp_core_find(desk.node, 1, SGP_IN);
    cr_assert(ne(u32, in->receiving.slot[0], SGP_SLOT_NONE));
    in->receiving.slot[0] = SGP_SLOT_NONE;
    expect_flaw(&desk, "a buffer is granted to one link, which has it");
    close_desk(&desk);
}

Test(check, an_account_that_is_not_counted_is_seen)
{
    struct desk desk;
    (void)open_well(&desk);
    desk.node->accounts.staged++;
    expect_flaw(&desk, "accounts are as many as are counted");
    close_desk(&desk);
}

Test(check, a_link_without_its_connection_is_seen)
{
    struct desk desk;
    struct sgp_core_link *link = open_well(&desk);
    link->connection.id = 0;
    expect_flaw(&desk, "a link that is down has no connection, and what is sent or filled has one");
    close_desk(&desk);
}

/* Of both, and what was given last left first. */
Test(check, two_shares_on_a_link_with_weight_are_seen)
{
    struct desk desk;
    struct sgp_core_link *link = open_well(&desk);
    link->owed[1] = link->owed[0];
    link->owed[1].slot = SGP_SLOT_NONE;
    link->owed[1].share.number++;
    const char *rule = "of two shares owed on a link neither has weight, and the first left first";
    expect_flaw(&desk, rule);
    sgp_mass_post(desk.node, SGP_MASS_ACKNOWLEDGE, link->owed[0].share.weight);
    link->owed[0].share.weight = link->owed[1].share.weight = 0;
    cr_assert_null(sgp_core_flaw(desk.node));
    link->owed[0].sent = false;
    expect_flaw(&desk, rule);
    close_desk(&desk);
}

Test(check, a_stage_that_does_not_fit_the_state_is_seen)
{
    struct desk desk;
    (void)open_well(&desk);
    desk.node->state = SGP_NODE_FINISHED;
    expect_flaw(&desk, "the stage fits the state");
    close_desk(&desk);
}

Test(check, a_finished_node_before_its_last_round_is_seen_unless_it_settles_at_once)
{
    struct desk desk;
    (void)open_well(&desk);
    desk.node->state = SGP_NODE_FINISHED;
    desk.node->stage = SGP_STAGE_END;
    desk.node->ending.fresh = true;
    desk.node->again = false;
    expect_flaw(&desk, "a finished node has come to its last round, or settles at once");
    desk.node->again = true;
    cr_assert_null(sgp_core_flaw(desk.node));
    close_desk(&desk);
}

Test(check, who_trains_and_passes_mass_on_is_seen)
{
    struct desk desk;
    (void)open_well(&desk);
    desk.node->passes = 1;
    expect_flaw(&desk, "mass is passed on by one that has given in its round and takes no steps");
    close_desk(&desk);
}

/* Once finished nobody trains again. */
Test(check, a_state_that_cannot_follow_ends_a_test_build, .signal = SGP_CHECKED ? SIGABRT : 0)
{
    struct desk desk;
    struct sgp_effects effects = {.items = desk.items, .capacity = 256};
    (void)open_well(&desk);
    desk.node->effects = &effects;
    desk.node->state = SGP_NODE_FINISHED;
    sgp_core_become(desk.node, SGP_NODE_TRAINING);
}

Test(check, a_stage_that_cannot_follow_ends_a_test_build, .signal = SGP_CHECKED ? SIGABRT : 0)
{
    struct desk desk;
    (void)open_well(&desk);
    desk.node->stage = SGP_STAGE_END;
    sgp_core_enter(desk.node, SGP_STAGE_TRAIN);
}

Test(check, a_flaw_ends_a_test_build, .signal = SGP_CHECKED ? SIGABRT : 0)
{
    struct desk desk;
    (void)open_well(&desk);
    desk.node->mass.weight *= 2;
    post_type(&desk, SGP_EVENT_TICK);
}

/* What performers rely on is asked on both sides of the wall: here of what leaves the core. */
Test(check, an_effect_out_of_range_is_seen)
{
    struct desk desk;
    (void)open_well(&desk);
    struct sgp_effect items[] = {
        {.type = SGP_EFFECT_PUBLISH, .publish = {.slot = 99, .keep = 0.5}},
        {.type = SGP_EFFECT_PUBLISH, .publish = {.slot = 0, .keep = 1.5}},
        {.type = SGP_EFFECT_ABSORB, .absorb = {.slot = 0, .fraction = NAN}},
        {.type = SGP_EFFECT_RESTORE, .restore = {.slot = SGP_SLOT_NONE, .fraction = 0.5}},
        {.type = SGP_EFFECT_SCALE, .scale = {.factor = -1}},
        {.type = SGP_EFFECT_ADOPT,
            .adopt =
                {.count = 1, .candidates = {{.weight = 1}}, .weight = INFINITY, .slice = {0, 1}}},
        {.type = SGP_EFFECT_ADOPT,
            .adopt = {.count = 1, .candidates = {{.weight = 0}}, .weight = 1, .slice = {0, 1}}},
        {.type = SGP_EFFECT_ADOPT, .adopt = {.count = 0, .weight = 1, .slice = {0, 1}}},
        {.type = SGP_EFFECT_SEND, .send = {.link = {.connection = 0}}},
        {.type = SGP_EFFECT_TRAIN, .weight = 0, .train = {.steps = 1, .pace = 1}},
    };
    for (size_t i = 0; i < sizeof items / sizeof items[0]; i++) {
        const struct sgp_effects one = {.items = &items[i], .count = 1, .capacity = 1};
        cr_assert(not(sgp_core_effects_are_sound(desk.node, &one)), "item %zu", i);
    }
    cr_assert(sgp_core_effects_are_sound(desk.node, &desk.effects));
    close_desk(&desk);
}
