/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisers against a plain float64 transcription of the formulas, with w != 1 and decay on z. */
#include "sgp/optimizer.h"
#include "sgp/random.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

#define PARAMETERS 101
#define STEPS 20

static void against_reference(enum sgp_optimizer_kind kind)
{
    const struct sgp_optimizer_settings settings = {kind, 0.9, 0.01};
    const double weight = 0.37;
    struct sgp_optimizer optimizer;
    cr_assert(eq(int, sgp_optimizer_init(&optimizer, &settings, PARAMETERS), 0));
    struct sgp_random random;
    sgp_random_init(&random, 1, 0);
    float x[PARAMETERS];
    double expected[PARAMETERS];
    double u[PARAMETERS] = {0};
    for (size_t i = 0; i < PARAMETERS; i++)
        expected[i] = x[i] = (float)sgp_random_normal(&random);
    for (int step = 0; step < STEPS; step++) {
        float gradient[PARAMETERS];
        const double rate = 0.1 / (1 + step);
        for (size_t i = 0; i < PARAMETERS; i++) {
            gradient[i] = (float)sgp_random_normal(&random);
            double g = (double)gradient[i] + 0.01 * (expected[i] / weight);
            u[i] = 0.9 * u[i] + g;
            expected[i] -= rate * (kind == SGP_OPTIMIZER_SGD           ? g
                                      : kind == SGP_OPTIMIZER_MOMENTUM ? u[i]
                                                                       : g + 0.9 * u[i]);
        }
        sgp_optimizer_step(&optimizer, x, gradient, weight, rate);
    }
    for (size_t i = 0; i < PARAMETERS; i++)
        cr_assert(epsilon_eq(dbl, (double)x[i], expected[i], 2e-6 * (1.0 + fabs(expected[i]))));
    sgp_optimizer_finish(&optimizer);
}

Test(optimizer, sgd)
{
    against_reference(SGP_OPTIMIZER_SGD);
}

Test(optimizer, momentum)
{
    against_reference(SGP_OPTIMIZER_MOMENTUM);
}

Test(optimizer, nesterov)
{
    against_reference(SGP_OPTIMIZER_NESTEROV);
}

Test(optimizer, sgd_needs_no_velocity)
{
    const struct sgp_optimizer_settings settings = {.kind = SGP_OPTIMIZER_SGD};
    struct sgp_optimizer optimizer;
    cr_assert(eq(int, sgp_optimizer_init(&optimizer, &settings, 3), 0));
    cr_assert(eq(ptr, optimizer.vectors[0], NULL));
    sgp_optimizer_finish(&optimizer);
    cr_assert(eq(int, sgp_optimizer_init(&optimizer, &settings, 0), SGP_E_LIMIT));
    cr_assert(
        eq(int, sgp_optimizer_init(&optimizer, &settings, SGP_PARAMETERS_MAX + 1), SGP_E_LIMIT));
}

static void refuse(struct sgp_optimizer_settings settings, const char *text)
{
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_optimizer_check(&settings, &error), SGP_E_CONFIG));
    cr_assert(eq(str, error.text, (char *)text));
}

Test(optimizer, refuses_settings_out_of_range)
{
    const struct sgp_optimizer_settings good = {SGP_OPTIMIZER_NESTEROV, 0.9, 1e-4};
    cr_assert(eq(int, sgp_optimizer_check(&good, NULL), 0));
    refuse((struct sgp_optimizer_settings){SGP_OPTIMIZER_NESTEROV, 1.0, 0.0},
        "a momentum of 1 is not at least 0 and below 1; 0.9 is usual");
    refuse((struct sgp_optimizer_settings){SGP_OPTIMIZER_NESTEROV, 0.9, INFINITY},
        "a weight decay of inf is not finite and at least 0; 1e-4 is usual");
    refuse((struct sgp_optimizer_settings){0}, "unknown optimizer kind 0");
}
