/* SPDX-License-Identifier: Apache-2.0 */
/* A program's trainer: updates count once, values w times, and what is not finite not at all. */
#include "sgp/attached.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <string.h>

#define COUNT 4u

static struct sgp_attached *attached;
static struct sgp_trainer *trainer;
static float memory[COUNT];

static void begin_with(const float x[COUNT])
{
    const struct sgp_attached_settings settings = {.parameters = COUNT, .values_from = 3};
    cr_assert(zero(int, sgp_attached_create(&settings, NULL, &attached)));
    trainer = sgp_attached_trainer(attached);
    const struct sgp_trainer_state state = {.x = x};
    trainer->methods->resume(trainer, &state);
}

static void expect_x(const float x[COUNT])
{
    struct sgp_trainer_state state;
    trainer->methods->state(trainer, &state);
    for (uint32_t i = 0; i < COUNT; i++)
        cr_assert(eq(flt, state.x[i], x[i]), "value %u", i);
}

Test(attached, an_update_counts_once_and_a_value_as_often_as_it_weighs)
{
    begin_with((const float[COUNT]){1, 2, 3, 4});
    cr_assert(sgp_attached_hand_out(attached, 0.25, memory), "it was resumed");
    cr_assert(eq(flt, memory[0], 4));
    memory[0] += 1;
    memory[3] = 17; /* z is 17 from now on, whoever else gave mass */
    uint64_t update, first;
    cr_assert(zero(int, sgp_attached_take_back(attached, 0.25, 1, false, memory, &update, &first)));
    expect_x((const float[COUNT]){2, 2, 3, 17 * 0.25f});
    cr_assert(not(sgp_attached_hand_out(attached, 0.25, memory)));
    for (uint32_t i = 0; i < COUNT; i++)
        memory[i] = 5;
    cr_assert(zero(int, sgp_attached_take_back(attached, 0.25, 1, true, memory, &update, &first)));
    expect_x((const float[COUNT]){1.25f, 1.25f, 1.25f, 1.25f});
    trainer->methods->destroy(trainer);
}

/* A share comes while the program has its turn, and the step is shortened by its pace. */
Test(attached, a_turn_is_no_job)
{
    begin_with((const float[COUNT]){1, 1, 1, 1});
    (void)sgp_attached_hand_out(attached, 1, memory);
    float values[COUNT] = {8, 8, 8, 8}, *share = values;
    trainer->methods->restore(trainer, share, 0.5f, 0, COUNT);
    memory[1] -= 2;
    uint64_t update, first;
    cr_assert(zero(int, sgp_attached_take_back(attached, 1, 0.5, false, memory, &update, &first)));
    expect_x((const float[COUNT]){5, 4, 5, 5});
    trainer->methods->destroy(trainer);
}

Test(attached, what_is_not_finite_changes_nothing)
{
    const float x[COUNT] = {1, 2, 3, 4}, wrong[] = {NAN, INFINITY, -INFINITY, 3e18f};
    begin_with(x);
    for (uint32_t i = 0; i < 4; i++) {
        (void)sgp_attached_hand_out(attached, 1, memory);
        memory[0] = 100;
        memory[2] = wrong[i];
        uint64_t update, first = 0;
        cr_assert(eq(int, sgp_attached_take_back(attached, 1, 1, false, memory, &update, &first),
            SGP_E_DIVERGED));
        cr_assert(eq(u64, first, 2));
        expect_x(x);
    }
    trainer->methods->destroy(trainer);
}

/* Where nothing was changed x stays to the bit, however many turns there are and whatever the weight. */
Test(attached, turns_without_a_step_do_not_drift)
{
    const float x[COUNT] = {0.1f, -1e-30f, 3e7f, 0.3f};
    begin_with(x);
    uint64_t update, first;
    for (uint32_t turn = 0; turn < 1000; turn++) {
        (void)sgp_attached_hand_out(attached, 0.17, memory);
        cr_assert(
            zero(int, sgp_attached_take_back(attached, 0.17, 1, false, memory, &update, &first)));
    }
    expect_x(x);
    trainer->methods->destroy(trainer);
}

Test(attached, another_s_model_is_told_as_a_jump)
{
    begin_with((const float[COUNT]){1, 2, 3, 4});
    (void)sgp_attached_hand_out(attached, 1, memory);
    trainer->methods->adopt(trainer, (const float[COUNT]){4, 4, 4, 4}, 0.5);
    cr_assert(sgp_attached_hand_out(attached, 0.5, memory));
    cr_assert(eq(flt, memory[1], 4));
    trainer->methods->destroy(trainer);
}
