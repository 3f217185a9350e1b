/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rates at chosen epochs, and the refusal of every field out of range. */
#include "sgp/schedule.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

Test(schedule, constant)
{
    struct sgp_schedule s = {.kind = SGP_SCHEDULE_CONSTANT, .learning_rate = 0.25};
    cr_assert(eq(int, sgp_schedule_check(&s, NULL), 0));
    cr_assert(eq(dbl, sgp_schedule_rate(&s, 0.0), 0.25));
    cr_assert(eq(dbl, sgp_schedule_rate(&s, 1e6), 0.25));
}

Test(schedule, step_multiplies_at_each_milestone)
{
    struct sgp_schedule s = {.kind = SGP_SCHEDULE_STEP, .learning_rate = 8.0, .factor = 0.5};
    cr_assert(eq(int, sgp_schedule_milestones_parse(&s, " 30 60,\t80.5 ", NULL), 0));
    cr_assert(eq(u32, s.milestone_count, 3));
    cr_assert(eq(int, sgp_schedule_check(&s, NULL), 0));
    const double at[][2] = {
        {0.0, 8.0}, {29.999, 8.0}, {30.0, 4.0}, {60.0, 2.0}, {80.0, 2.0}, {80.5, 1.0}, {1e9, 1.0}};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        cr_assert(eq(dbl, sgp_schedule_rate(&s, at[i][0]), at[i][1]), "at epoch %g", at[i][0]);
}

Test(schedule, cosine_falls_from_full_to_zero)
{
    struct sgp_schedule s = {.kind = SGP_SCHEDULE_COSINE, .learning_rate = 2.0, .epochs = 10.0};
    cr_assert(eq(int, sgp_schedule_check(&s, NULL), 0));
    cr_assert(eq(dbl, sgp_schedule_rate(&s, 0.0), 2.0));
    cr_assert(epsilon_eq(dbl, sgp_schedule_rate(&s, 5.0), 1.0, 1e-15));
    cr_assert(epsilon_eq(dbl, sgp_schedule_rate(&s, 10.0 / 3.0), 1.5, 1e-15));
    cr_assert(eq(dbl, sgp_schedule_rate(&s, 10.0), 0.0));
    cr_assert(eq(dbl, sgp_schedule_rate(&s, 15.0), 0.0));
}

Test(schedule, warmup_is_proportional_and_multiplies)
{
    struct sgp_schedule s = {
        .kind = SGP_SCHEDULE_COSINE, .learning_rate = 2.0, .epochs = 10.0, .warmup_epochs = 5.0};
    struct sgp_schedule cold = s;
    cold.warmup_epochs = 0.0;
    cr_assert(eq(int, sgp_schedule_check(&s, NULL), 0));
    cr_assert(eq(dbl, sgp_schedule_rate(&s, 0.0), 0.0));
    cr_assert(eq(dbl, sgp_schedule_rate(&s, 2.5), 0.5 * sgp_schedule_rate(&cold, 2.5)));
    cr_assert(eq(dbl, sgp_schedule_rate(&s, 5.0), sgp_schedule_rate(&cold, 5.0)));
}

static void refuse(struct sgp_schedule s, const char *text)
{
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_schedule_check(&s, &error), SGP_E_CONFIG));
    cr_assert(eq(str, error.text, (char *)text));
}

Test(schedule, refuses_fields_out_of_range)
{
    const struct sgp_schedule step = {.kind = SGP_SCHEDULE_STEP,
        .learning_rate = 1.0,
        .factor = 0.1,
        .milestone_count = 2,
        .milestones = {3.0, 6.0}};
    struct sgp_schedule s = step;
    cr_assert(eq(int, sgp_schedule_check(&s, NULL), 0));
    s.learning_rate = NAN;
    refuse(s, "a learning rate of nan is not finite and at least 0");
    s = step;
    s.warmup_epochs = -1.0;
    refuse(s, "a warm-up of -1 epochs is not between 0 and 1e+09");
    s = step;
    s.factor = 1.5;
    refuse(s, "a step schedule's factor of 1.5 is not above 0 and at most 1; 0.1 is usual");
    s = step;
    s.milestone_count = 0;
    refuse(s, "a step schedule has 0 milestones; give 1 to 32 epochs");
    s = step;
    s.milestones[1] = 3.0;
    refuse(s, "milestone 3 does not follow 3; give rising epochs, at most 1e+09");
    s.kind = SGP_SCHEDULE_COSINE;
    s.epochs = 5.0;
    s.warmup_epochs = 5.0;
    refuse(
        s, "a cosine schedule over 5 epochs does not outlast its warm-up of 5; give more epochs");
}

Test(schedule, parsing_refuses_what_it_does_not_know)
{
    struct sgp_error error = {0};
    struct sgp_schedule s = {.milestone_count = 1, .milestones = {7.0}};
    error = (struct sgp_error){0};
    cr_assert(eq(int, sgp_schedule_milestones_parse(&s, "30 6x", &error), SGP_E_CONFIG));
    cr_assert(
        eq(str, error.text, (char *)"'6x' is not a list of epochs; write for example 30 60 80"));
    cr_assert(eq(u32, s.milestone_count, 1));
    char many[2 * (SGP_MILESTONES_MAX + 1) + 1];
    for (size_t i = 0; i + 1 < sizeof many; i += 2) {
        many[i] = '1';
        many[i + 1] = ' ';
    }
    many[sizeof many - 1] = '\0';
    error = (struct sgp_error){0};
    cr_assert(eq(int, sgp_schedule_milestones_parse(&s, many, &error), SGP_E_CONFIG));
    cr_assert(eq(str, error.text, (char *)"more than 32 milestones; leave some out"));
}
