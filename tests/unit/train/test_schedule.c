/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rates and batches at chosen epochs, by formulas written anew here, and the refusal of every field out of range. */
#include "sgp/schedule.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <string.h>

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

/* ---- every schedule by another formula, at many epochs ---- */

/* The triangle of Smith's listing (2017, section 3.1), with a step size of half a period. */
static double listing(double epoch, double period)
{
    double size = period / 2;
    double cycle = floor(1 + epoch / (2 * size));
    double x = fabs(epoch / size - 2 * cycle + 1);
    return fmax(0, 1 - x);
}

static double formula(const struct sgp_schedule *s, double e)
{
    double r = s->learning_rate, end = s->epochs, low = s->low_fraction * r;
    double final = s->final_fraction * r, passed = 0, later = 0;
    for (uint32_t i = 0; i < s->milestone_count; i++) {
        passed += s->milestones[i] <= e;
        later += s->milestones[i] <= e && i >= s->growths;
    }
    switch (s->kind) {
    case SGP_SCHEDULE_CONSTANT:
        return r;
    case SGP_SCHEDULE_STEP:
        return r * pow(s->factor, passed);
    case SGP_SCHEDULE_COSINE:
        return e >= end ? 0 : r * pow(cos(M_PI * e / end / 2), 2);
    case SGP_SCHEDULE_INVERSE_SQRT:
        return e > s->warmup_epochs ? r * sqrt(s->warmup_epochs) / sqrt(e) : r;
    case SGP_SCHEDULE_LINEAR:
        return e >= end ? final : (r * (end - e) + final * e) / end;
    case SGP_SCHEDULE_CYCLIC:
        return low + (r - low) * listing(e, s->period_epochs);
    case SGP_SCHEDULE_ONE_CYCLE:
        return e < s->period_epochs ? low + (r - low) * listing(e, s->period_epochs)
               : e >= end
                   ? final
                   : (low * (end - e) + final * (e - s->period_epochs)) / (end - s->period_epochs);
    case SGP_SCHEDULE_GROWING_BATCH:
        return r * pow(s->factor, later);
    }
    cr_fatal("no such kind");
}

static double with_warmup(const struct sgp_schedule *s, double e)
{
    double from = s->warmup_fraction, w = s->warmup_epochs;
    return formula(s, e) * (e >= w ? 1 : (from * (w - e) + e) / w);
}

static struct sgp_schedule of_kind(enum sgp_schedule_kind kind)
{
    return (struct sgp_schedule){.kind = kind,
        .learning_rate = 0.4,
        .epochs = 90,
        .warmup_epochs = 5,
        .factor = 0.2,
        .final_fraction = 0.01,
        .low_fraction = 0.1,
        .period_epochs = 36,
        .growths = 2,
        .milestone_count = 3,
        .milestones = {30, 60, 80}};
}

/* Whole and fractional epochs, just before and at each bend, at the end and beyond it. */
Test(schedule, every_kind_is_its_formula)
{
    static const double bends[] = {5, 18, 30, 36, 54, 60, 72, 80, 90, 108};
    for (int kind = 1; kind <= (int)SGP_SCHEDULE_KINDS; kind++)
        for (int warmup = 0; warmup < 3; warmup++) {
            struct sgp_schedule s = of_kind((enum sgp_schedule_kind)kind);
            s.warmup_epochs = warmup == 0 && kind != SGP_SCHEDULE_INVERSE_SQRT ? 0 : 5;
            s.warmup_fraction = warmup == 2 ? 0.125 : 0;
            cr_assert(eq(int, sgp_schedule_check(&s, NULL), 0), "kind %d", kind);
            for (int i = 0; i <= 130 * 16; i++)
                cr_assert(epsilon_eq(dbl, sgp_schedule_rate(&s, i / 16.0),
                              with_warmup(&s, i / 16.0), 1e-14),
                    "kind %d at %g", kind, i / 16.0);
            for (size_t i = 0; i < sizeof bends / sizeof *bends; i++)
                for (int side = -1; side <= 1; side++) {
                    double e = side == 0 ? bends[i] : nextafter(bends[i], side * 1e9);
                    cr_assert(epsilon_eq(dbl, sgp_schedule_rate(&s, e), with_warmup(&s, e), 1e-13),
                        "kind %d at %a", kind, e);
                }
            double far = kind == SGP_SCHEDULE_CYCLIC ? 36e6 : 1e9; /* the listing loses digits */
            cr_assert(epsilon_eq(dbl, sgp_schedule_rate(&s, far), with_warmup(&s, far), 1e-14));
        }
}

/* As the page of the documents says them. */
Test(schedule, known_rates)
{
    static const struct {
        enum sgp_schedule_kind kind;
        double epoch, rate;
    } known[] = {{SGP_SCHEDULE_INVERSE_SQRT, 2.5, 0.2}, {SGP_SCHEDULE_INVERSE_SQRT, 20, 0.2},
        {SGP_SCHEDULE_INVERSE_SQRT, 80, 0.1}, {SGP_SCHEDULE_LINEAR, 45, 0.202},
        {SGP_SCHEDULE_LINEAR, 90, 0.004}, {SGP_SCHEDULE_CYCLIC, 18, 0.4},
        {SGP_SCHEDULE_CYCLIC, 36, 0.04}, {SGP_SCHEDULE_CYCLIC, 1e9, 0.2},
        {SGP_SCHEDULE_CYCLIC, 45, 0.22}, {SGP_SCHEDULE_ONE_CYCLE, 18, 0.4},
        {SGP_SCHEDULE_ONE_CYCLE, 36, 0.04}, {SGP_SCHEDULE_ONE_CYCLE, 63, 0.022},
        {SGP_SCHEDULE_ONE_CYCLE, 90, 0.004}, {SGP_SCHEDULE_GROWING_BATCH, 79, 0.4},
        {SGP_SCHEDULE_GROWING_BATCH, 80, 0.08}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct sgp_schedule s = of_kind(known[i].kind);
        cr_assert(
            epsilon_eq(dbl, sgp_schedule_rate(&s, known[i].epoch), known[i].rate, 1e-15), "%zu", i);
    }
}

/* What configurations had before this header had more than three schedules, to the bit. */
Test(schedule, earlier_schedules_keep_their_bits)
{
    for (int kind = 1; kind <= (int)SGP_SCHEDULE_COSINE; kind++) {
        struct sgp_schedule s = of_kind((enum sgp_schedule_kind)kind);
        for (double e = 0; e < 100; e += 0.3125 / 3) {
            double rate = s.learning_rate;
            if (kind == SGP_SCHEDULE_STEP)
                for (uint32_t i = 0; i < s.milestone_count && s.milestones[i] <= e; i++)
                    rate *= s.factor;
            if (kind == SGP_SCHEDULE_COSINE)
                rate = e < s.epochs ? 0.5 * rate * (1.0 + cos(M_PI * e / s.epochs)) : 0.0;
            if (e < s.warmup_epochs)
                rate *= e / s.warmup_epochs;
            cr_assert(eq(dbl, sgp_schedule_rate(&s, e), rate), "kind %d at %g", kind, e);
        }
    }
}

Test(schedule, words_are_those_of_the_rows)
{
    char words[SGP_SCHEDULE_WORDS_BYTES] = "";
    for (int kind = 1; kind <= (int)SGP_SCHEDULE_KINDS; kind++) {
        (void)strcat(words, kind > 1 ? "|" : "");
        (void)strcat(words, sgp_schedule_word((enum sgp_schedule_kind)kind));
    }
    cr_assert(eq(str, words, (char *)SGP_SCHEDULE_WORDS));
    sgp_schedule_users(SGP_SCHEDULE_MILESTONES, words);
    cr_assert(eq(str, words, (char *)"step, growing-batch"));
    sgp_schedule_users(SGP_SCHEDULE_FINAL, words);
    cr_assert(eq(str, words, (char *)"linear, one-cycle"));
}

/* ---- the batch ---- */

Test(schedule, a_batch_grows_at_the_first_milestones)
{
    struct sgp_schedule s = of_kind(SGP_SCHEDULE_GROWING_BATCH);
    const double at[][2] = {
        {0, 32}, {29.9, 32}, {30, 160}, {59, 160}, {60, 800}, {80, 800}, {SGP_EPOCHS_MAX, 800}};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        cr_assert(eq(u32, sgp_schedule_batch(&s, 32, at[i][0]), (uint32_t)at[i][1]), "%zu", i);
    s.growths = 32;
    cr_assert(eq(u32, sgp_schedule_batch(&s, 32, 80), 4000));
    cr_assert(eq(dbl, sgp_schedule_rate(&s, 80), 0.4), "the rate stays");
    s.factor = 1e-6;
    cr_assert(eq(u32, sgp_schedule_batch(&s, 32, 80), UINT32_MAX));
    s.kind = SGP_SCHEDULE_STEP;
    cr_assert(eq(u32, sgp_schedule_batch(&s, 32, 80), 32));
}

/* Counted step by step: an epoch ends when it has taken every row. */
static void walk(const struct sgp_schedule *s, uint64_t rows, uint32_t batch, uint64_t epochs)
{
    uint64_t steps = 0;
    for (uint64_t epoch = 0; epoch < epochs; epoch++) {
        uint64_t grown = sgp_schedule_batch(s, batch, (double)epoch), step = 0;
        grown = grown < rows ? grown : rows;
        cr_assert(eq(u64, sgp_schedule_steps(s, rows, batch, epoch), steps));
        for (uint64_t taken = 0; taken < rows; taken += grown, step++, steps++) {
            struct sgp_schedule_place place = sgp_schedule_find(s, rows, batch, steps);
            double of = (double)((rows + grown - 1) / grown);
            cr_assert(eq(u64, place.epoch, epoch));
            cr_assert(eq(u64, place.step, step));
            cr_assert(eq(u32, place.batch, (uint32_t)grown));
            cr_assert(eq(u64, place.steps_per_epoch, (rows + grown - 1) / grown));
            cr_assert(epsilon_eq(dbl, place.done, (double)epoch + (double)step / of, 1e-12));
            cr_assert(
                epsilon_eq(dbl, place.middle, (double)epoch + ((double)step + 0.5) / of, 1e-12));
        }
    }
    cr_assert(eq(u64, sgp_schedule_steps(s, rows, batch, epochs), steps));
    cr_assert(eq(dbl, sgp_schedule_find(s, rows, batch, steps).done, (double)epochs));
}

Test(schedule, places_are_those_of_a_walk)
{
    static const uint64_t rows[] = {1, 31, 32, 33, 100, 1000};
    for (int kind = 1; kind <= (int)SGP_SCHEDULE_KINDS; kind++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            struct sgp_schedule s = of_kind((enum sgp_schedule_kind)kind);
            walk(&s, rows[i], 8, 95);
        }
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

Test(schedule, refuses_what_a_kind_lacks)
{
    struct sgp_schedule s = of_kind(SGP_SCHEDULE_INVERSE_SQRT);
    s.warmup_epochs = 0;
    refuse(s, "an inverse-sqrt schedule falls from the end of its warm-up on; give warmup_epochs");
    s.warmup_fraction = 1.5;
    refuse(s, "a warm-up from 1.5 of the rate does not begin between 0 and 1");
    s = of_kind(SGP_SCHEDULE_LINEAR);
    s.epochs = 5;
    refuse(
        s, "a linear schedule over 5 epochs does not outlast its warm-up of 5; give more epochs");
    s = of_kind(SGP_SCHEDULE_LINEAR);
    s.final_fraction = 1.5;
    refuse(s, "a linear schedule's final_fraction of 1.5 is not between 0 and 1");
    s = of_kind(SGP_SCHEDULE_CYCLIC);
    s.period_epochs = NAN;
    refuse(s, "a cyclic schedule needs the length of its cycle; give period_epochs");
    s.period_epochs = 0;
    refuse(s, "a cyclic schedule's period_epochs of 0 is not above 0 and at most 1e+09");
    s = of_kind(SGP_SCHEDULE_CYCLIC);
    s.low_fraction = -0.5;
    refuse(s, "a cyclic schedule's low_fraction of -0.5 is not between 0 and 1; 0.1 is usual");
    s = of_kind(SGP_SCHEDULE_ONE_CYCLE);
    s.period_epochs = 91;
    refuse(s, "a one-cycle schedule's period_epochs of 91 is above the 90 epochs of training");
    s = of_kind(SGP_SCHEDULE_ONE_CYCLE);
    s.final_fraction = 0.5;
    refuse(s, "a one-cycle schedule falls at the end, and its final_fraction of 0.5 is above its "
              "low_fraction of 0.1");
    s = of_kind(SGP_SCHEDULE_GROWING_BATCH);
    s.milestones[1] = 60.5;
    refuse(s, "milestone 60.5 is not a whole epoch; a batch grows between two epochs");
    s = of_kind(SGP_SCHEDULE_GROWING_BATCH);
    s.factor = 0;
    refuse(s, "a growing-batch schedule's factor of 0 is not above 0 and at most 1; 0.1 is usual");
    s.kind = 99;
    refuse(s, "unknown schedule kind 99");
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
