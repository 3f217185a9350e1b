/* SPDX-License-Identifier: Apache-2.0 */
/* Outer steps against the formulas in double, at weights other than 1. */
#include "sgp/outer.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>

#define VALUES 7u

static void open_outer(struct sgp_outer *outer, struct sgp_outer_settings settings)
{
    cr_assert(zero(int, sgp_outer_check(&settings, NULL)));
    cr_assert(zero(int, sgp_outer_init(outer, &settings, VALUES)));
}

/* What training made of an estimate: something else for each value and step. */
static double drift(uint32_t step, uint32_t i)
{
    return sin((double)(step * VALUES + i)) / 4;
}

static void against_reference(struct sgp_outer_settings settings)
{
    struct sgp_outer outer;
    float x[VALUES];
    double b[VALUES], v[VALUES] = {0}, weight = 0.625;
    open_outer(&outer, settings);
    for (uint32_t i = 0; i < VALUES; i++)
        x[i] = (float)(weight * (b[i] = i));
    sgp_outer_begin(&outer, x, weight);
    for (uint32_t step = 0; step < 20; step++) {
        weight = step % 2 ? 0.625 : 1.5;
        for (uint32_t i = 0; i < VALUES; i++) {
            double z = b[i] + drift(step, i), way = b[i] - z;
            x[i] = (float)(weight * z);
            v[i] = settings.momentum * v[i] + way;
            double along =
                settings.kind == SGP_OUTER_SLOWMO ? v[i] : way + settings.momentum * v[i];
            b[i] -= settings.learning_rate * along;
        }
        sgp_outer_step(&outer, x, weight);
        for (uint32_t i = 0; i < VALUES; i++)
            cr_assert(epsilon_eq(dbl, (double)x[i] / weight, b[i], 2e-5));
    }
    sgp_outer_finish(&outer);
}

Test(outer, slowmo)
{
    against_reference((struct sgp_outer_settings){SGP_OUTER_SLOWMO, 0.9, 0.6});
}

Test(outer, nesterov)
{
    against_reference((struct sgp_outer_settings){SGP_OUTER_NESTEROV, 0.7, 0.9});
}

Test(outer, of_size_one_without_momentum_at_weight_one_not_a_bit_changes)
{
    struct sgp_outer outer;
    float x[VALUES] = {1, 2, 3}, z[VALUES] = {0.1F, -7, 1e-7F, 0, 3e7F, 1.0F / 3, -0.3F};
    open_outer(&outer, (struct sgp_outer_settings){SGP_OUTER_SLOWMO, 1, 0});
    sgp_outer_begin(&outer, x, 1);
    for (uint32_t i = 0; i < VALUES; i++)
        x[i] = z[i];
    sgp_outer_step(&outer, x, 1);
    for (uint32_t i = 0; i < VALUES; i++)
        cr_assert(eq(flt, x[i], z[i]));
    sgp_outer_finish(&outer);
}

Test(outer, one_that_does_not_know_where_it_was_begins_where_it_is)
{
    struct sgp_outer outer;
    float x[VALUES] = {0.5F, 1}, y[VALUES] = {0.5F, 1};
    open_outer(&outer, (struct sgp_outer_settings){SGP_OUTER_NESTEROV, 0.7, 0.9});
    sgp_outer_begin(&outer, (float[VALUES]){9, 9}, 1);
    sgp_outer_step(&outer, (float[VALUES]){4, 4}, 1); /* which gives it a velocity, too */
    sgp_outer_forget(&outer);
    for (int step = 0; step < 2; step++) {
        sgp_outer_step(&outer, x, 0.5);
        for (uint32_t i = 0; i < VALUES; i++)
            cr_assert(eq(flt, x[i], y[i]));
    }
    sgp_outer_finish(&outer);
}

Test(outer, settings_out_of_range_are_refused_by_name)
{
    static const struct {
        struct sgp_outer_settings settings;
        const char *text;
    } wrong[] = {
        {{SGP_OUTER_SLOWMO, 0, 0.5},
            "an outer learning rate of 0 is not above 0 and at most 100; 1 is usual"},
        {{SGP_OUTER_SLOWMO, NAN, 0.5},
            "an outer learning rate of nan is not above 0 and at most 100; 1 is usual"},
        {{SGP_OUTER_NESTEROV, 1, 1},
            "an outer momentum of 1 is not at least 0 and below 1; 0.5 is usual"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct sgp_error error = {0};
        cr_assert(eq(int, sgp_outer_check(&wrong[i].settings, &error), SGP_E_CONFIG));
        cr_assert(eq(str, error.text, (char *)wrong[i].text));
    }
    enum sgp_outer_kind kind;
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_outer_kind_parse("adam", &error, &kind), SGP_E_CONFIG));
    cr_assert(zero(int, sgp_outer_kind_parse("nesterov", NULL, &kind)));
    cr_assert(eq(int, (int)kind, SGP_OUTER_NESTEROV));
}

Test(outer, one_of_no_kind_takes_no_memory)
{
    struct sgp_outer outer;
    open_outer(&outer, (struct sgp_outer_settings){.kind = SGP_OUTER_NONE});
    cr_assert_null(outer.anchor);
    sgp_outer_begin(&outer, (float[VALUES]){1}, 1);
    cr_assert(not(outer.begun));
    sgp_outer_finish(&outer);
}
