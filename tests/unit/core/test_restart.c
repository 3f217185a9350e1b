/* SPDX-License-Identifier: Apache-2.0 */
/* What the next process relies on: when a checkpoint is exact, whether it asks for an estimate, what it is, and
 * which shares can return to the bit. */
#include "sgp/restart.h"

#include "core_desk.h"

struct case_of {
    struct sgp_record_link links[3];
    struct sgp_record record;
    struct sgp_recovery_point point;
    struct sgp_past past;
};

/* A record with shares of rounds 5 and 4 owed, and a checkpoint of the same moment with both kept. */
static void set_up(struct case_of *it)
{
    *it = (struct case_of){
        .links = {{.peer = 1,
                      .out = true,
                      .number = 3,
                      .owes = true,
                      .owed_round = 5,
                      .owed_fraction = 0.5},
            {.peer = 2,
                .out = true,
                .number = 3,
                .owes = true,
                .owed_round = 4,
                .owed_fraction = 0.25},
            {.peer = 1, .number = 2}},
        .record =
            {.incarnation = 77, .round = 6, .weight = 0.75, .link_count = 3, .link_capacity = 3},
        .point = {.incarnation = 77,
            .sequence = 12,
            .round = 6,
            .weight = 0.75,
            .kept_count = 2,
            .kept = {4, 5}},
    };
    it->record.links = it->links;
    it->past = (struct sgp_past){
        .record = &it->record, .sequence = 12, .evident = true, .point = &it->point};
}

static struct sgp_restart judge(const struct case_of *it, uint32_t slots)
{
    struct sgp_restart restart;
    sgp_restart(&it->past, 99, slots, &restart);
    return restart;
}

Test(restart, a_checkpoint_of_the_record_s_moment_is_exact)
{
    struct case_of it;
    set_up(&it);
    struct sgp_restart restart = judge(&it, 4);
    cr_assert(restart.exact && restart.current && !restart.seeks && !restart.minted);
    cr_assert(eq(u64, restart.incarnation, 77));
    cr_assert(eq(dbl, restart.scale, 1));
    cr_assert(it.links[0].owed_kept && it.links[1].owed_kept && !it.links[2].owed_kept);
    cr_assert(eq(u32, it.links[0].owed_slot, 1), "the place of round 5");
    cr_assert(eq(u32, it.links[1].owed_slot, 0));
}

Test(restart, there_must_be_a_slot_for_what_was_kept)
{
    struct case_of it;
    set_up(&it);
    cr_assert(judge(&it, 1).exact);
    cr_assert(not(it.links[0].owed_kept));
    cr_assert(it.links[1].owed_kept);
}

/* One commit later, of another life, a guess, or changed meanwhile: an estimate, and no more. */
Test(restart, a_superseded_checkpoint_is_an_estimate)
{
    for (int what = 0; what < 6; what++) {
        struct case_of it;
        set_up(&it);
        it.past.sequence += what == 0;
        it.point.incarnation += what == 1;
        it.point.round += what == 2;
        it.point.weight *= what == 3 ? 1 + 0x1p-52 : 1;
        it.past.altered = what == 4;
        if (what == 5)
            it.past.sequence = it.point.sequence = 0;
        it.links[0].owed_kept = true; /* as the late process had it */
        struct sgp_restart restart = judge(&it, 4);
        cr_assert(not(restart.exact), "%d", what);
        cr_assert(eq(int, restart.current, what == 3),
            "a weight alone changes nothing that was left out");
        cr_assert(restart.seeks && !restart.minted, "%d", what);
        cr_assert(eq(u64, restart.incarnation, 77));
        cr_assert(eq(dbl, restart.scale, 1 / it.point.weight), "%d", what);
        cr_assert(not(it.links[0].owed_kept), "%d", what);
        cr_assert(not(it.links[1].owed_kept), "%d", what);
    }
}

Test(restart, without_a_record_an_evident_past_mints)
{
    for (int evident = 0; evident < 2; evident++) {
        struct case_of it;
        set_up(&it);
        it.past.record = NULL;
        it.past.evident = evident;
        struct sgp_restart restart = judge(&it, 4);
        cr_assert(not(restart.exact));
        cr_assert(eq(int, restart.minted, evident));
        cr_assert(eq(int, restart.seeks, evident));
        cr_assert(eq(u64, restart.incarnation, 99));
        cr_assert(eq(dbl, restart.scale, 1 / 0.75));
    }
}

Test(restart, mass_without_weight_has_no_estimate)
{
    struct case_of it;
    set_up(&it);
    it.past.sequence++;
    it.point.weight = 0;
    cr_assert(eq(dbl, judge(&it, 4).scale, 0));
    it.past.point = NULL;
    cr_assert(eq(dbl, judge(&it, 4).scale, 0));
}

/* ---- the recovery point of a checkpoint ---- */

static struct sgp_recovery_point point_of(const struct desk *desk, uint32_t slots[SGP_KEPT_MAX])
{
    static struct sgp_record_link links[16];
    struct sgp_record record = {.links = links, .link_capacity = 16};
    struct sgp_recovery_point point;
    sgp_node_record(desk->node, &record);
    sgp_node_recovery_point(desk->node, &record, 31, &point, slots);
    return point;
}

/* While rounds are made the next commit supersedes it at once; in a pause what is owed is worth its room. */
Test(restart, what_is_owed_is_kept_in_a_pause_alone)
{
    struct desk desk;
    uint32_t slots[SGP_KEPT_MAX] = {99, 99, 99, 99};
    open_pair(&desk);
    give_first(&desk);
    struct sgp_recovery_point point = point_of(&desk, slots);
    cr_assert(eq(u64, point.sequence, 31));
    cr_assert(eq(u64, point.incarnation, 77));
    cr_assert(eq(dbl, point.weight, 0.5));
    cr_assert(eq(u32, point.kept_count, 0));
    post_type(&desk, SGP_EVENT_PAUSE);
    point = point_of(&desk, slots);
    cr_assert(eq(u32, point.kept_count, 1));
    cr_assert(eq(i64, point.kept[0], 0), "the round in which it was given");
    cr_assert(lt(u32, slots[0], 4));
    close_desk(&desk);
}
