/* SPDX-License-Identifier: Apache-2.0 */
/* The account of differential privacy beside known numbers: of another program by other formulas (binomial sums by the log of
 * the gamma function, checked by quadrature), and of published accountants. */
#include "sgp/privacy.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>

#define DELTA 1e-5

static unsigned index_of(unsigned order)
{
    for (unsigned i = 0; i < SGP_PRIVACY_ORDERS; i++)
        if (sgp_privacy_order(i) == order)
            return i;
    cr_assert(false, "no order %u", order);
    return 0;
}

static double divergence(double chance, double noise, unsigned order)
{
    struct sgp_privacy_cost cost;
    sgp_privacy_step(chance, noise, &cost);
    return cost.divergence[index_of(order)];
}

static double epsilon(double chance, double noise, uint64_t steps)
{
    struct sgp_privacy_cost step, total = {0};
    sgp_privacy_step(chance, noise, &step);
    sgp_privacy_add(&total, &step, steps);
    return sgp_privacy_epsilon(&total, DELTA);
}

Test(privacy, divergence_of_a_step)
{
    const struct {
        double chance, noise;
        unsigned order;
        double divergence;
    } known[] = {{0.1, 2, 5, 0.00773696848979605}, {0.01, 4, 32, 0.00010526360659076},
        {0.032, 1, 8, 0.164681523918928}, {0.5, 0.8, 3, 1.38195364514361},
        {0.004266666, 1.5, 64, 8.67868185111027}, {0.2, 0.5, 512, 1022.38741250261},
        {0.001, 10, 256, 1.28972425838895e-06}, {1, 3, 7, 7.0 / 18},
        {0.9, 0.7, 128, 130.506054771942}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double found = divergence(known[i].chance, known[i].noise, known[i].order);
        cr_assert(epsilon_eq(dbl, found / known[i].divergence, 1, 1e-9), "at %zu", i);
    }
    cr_assert(epsilon_eq(dbl, 10 * divergence(0.1, 2, 5), 0.07737, 5e-6));
    cr_assert(epsilon_eq(dbl, divergence(0.5, 0.8, 3), 1.38195364, 6e-9));
}

/* The first terms of the series in the chance: order / 2 * chance^2 * (exp(1 / noise^2) - 1). */
Test(privacy, a_small_chance_keeps_its_digits)
{
    double expected = 5 / 2.0 * 1e-16 * expm1(0.25);
    cr_assert(epsilon_eq(dbl, divergence(1e-8, 2, 5) / expected, 1, 1e-6));
    expected = 5 / 2.0 * 1e-4 * expm1(1e-8);
    cr_assert(epsilon_eq(dbl, divergence(0.01, 1e4, 5) / expected, 1, 1e-6));
}

Test(privacy, epsilon_of_many_steps)
{
    const struct {
        double chance, noise;
        uint64_t steps;
        double epsilon;
    } known[] = {{0.01, 4, 10000, 1.03549006603656}, {32 / 1e3, 1, 640, 5.78767309300244},
        {32 / 1e3, 1.5, 640, 2.8758381577143}, {32 / 1e3, 2, 640, 1.92823065013984},
        {32 / 1e3, 4, 640, 0.835937418185163}, {64 / 15e3, 1, 2350, 1.35449678808561},
        {64 / 15e3, 1.5, 2350, 0.629936697069805}, {64 / 15e3, 2, 2350, 0.427580822810474},
        {64 / 15e3, 4, 2350, 0.190532329088956}, {64 / 359.0, 1, 180, 19.6972721602451},
        {64 / 359.0, 3, 180, 3.92947606335165}, {1, 5, 10, 2.81410916784553}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        cr_assert(epsilon_eq(dbl, epsilon(known[i].chance, known[i].noise, known[i].steps),
                      known[i].epsilon, 1e-9),
            "at %zu", i);
    cr_assert(epsilon_eq(dbl, epsilon(0.01, 4, 10000), 1.0355, 5e-5));
}

Test(privacy, nothing_told_costs_nothing)
{
    struct sgp_privacy_cost nothing = {0};
    cr_assert(eq(dbl, sgp_privacy_epsilon(&nothing, DELTA), 0));
    cr_assert(eq(dbl, epsilon(0.5, 1, 0), 0));
    cr_assert(gt(dbl, epsilon(0.5, 1, 1), 0));
}

Test(privacy, more_is_told_by_more_steps_greater_chance_and_less_noise)
{
    cr_assert(gt(dbl, epsilon(0.1, 1, 101), epsilon(0.1, 1, 100)));
    cr_assert(gt(dbl, epsilon(0.11, 1, 100), epsilon(0.1, 1, 100)));
    cr_assert(gt(dbl, epsilon(1, 1, 100), epsilon(0.999, 1, 100)));
    cr_assert(gt(dbl, epsilon(0.1, 0.99, 100), epsilon(0.1, 1, 100)));
}

Test(privacy, least_noise_for_an_epsilon)
{
    const struct {
        double chance;
        uint64_t steps;
        double epsilon, noise;
    } known[] = {{64 / 359.0, 180, 1, 9.82227}, {64 / 359.0, 180, 3, 3.75107},
        {64 / 359.0, 180, 8, 1.76152}, {256 / 15e3, 1180, 1, 2.52910},
        {256 / 15e3, 1180, 3, 1.15498}, {256 / 15e3, 1180, 8, 0.74551}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double noise = 0;
        cr_assert(eq(int,
            sgp_privacy_noise_for(
                known[i].epsilon, DELTA, known[i].chance, known[i].steps, NULL, &noise),
            0));
        cr_assert(epsilon_eq(dbl, noise, known[i].noise, 1.1e-3), "at %zu", i);
        cr_assert(le(dbl, epsilon(known[i].chance, noise, known[i].steps), known[i].epsilon));
        cr_assert(
            gt(dbl, epsilon(known[i].chance, noise - 2e-3, known[i].steps), known[i].epsilon));
    }
}

Test(privacy, no_noise_is_enough_for_an_epsilon_of_nearly_zero)
{
    struct sgp_error error = {0};
    double noise = 7;
    cr_assert(eq(int, sgp_privacy_noise_for(0.001, DELTA, 0.1, 10, &error, &noise), SGP_E_LIMIT));
    cr_assert(eq(dbl, noise, 7));
    cr_assert(ne(ptr, strstr(error.text, "larger epsilon or delta"), NULL));
}

Test(privacy, steps_that_are_left)
{
    struct sgp_privacy_cost step, total = {0};
    sgp_privacy_step(0.032, 2, &step);
    uint64_t left = sgp_privacy_steps_left(&total, &step, 2, DELTA);
    cr_assert(le(dbl, epsilon(0.032, 2, left), 2));
    cr_assert(gt(dbl, epsilon(0.032, 2, left + 1), 2));
    sgp_privacy_add(&total, &step, left - 3);
    cr_assert(eq(u64, sgp_privacy_steps_left(&total, &step, 2, DELTA), 3));
    sgp_privacy_add(&total, &step, 4);
    cr_assert(eq(u64, sgp_privacy_steps_left(&total, &step, 2, DELTA), 0));
}
