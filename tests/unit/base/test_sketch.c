/* SPDX-License-Identifier: Apache-2.0 */
/* Linear sketches: known lengths, linearity, and how well they tell the distance of two vectors. */
#include <criterion/criterion.h>
#include <assertions.h>

#include "sgp/random.h"
#include "sgp/sketch.h"

#include <math.h>

#define COUNT 1000u

static double squares(const struct sgp_sketch *a, const struct sgp_sketch *b)
{
    double sum = 0;
    for (uint32_t k = 0; k < SGP_SKETCH_VALUES; k++) {
        double apart = (double)a->values[k] - (b != NULL ? (double)b->values[k] : 0);
        sum += apart * apart;
    }
    return sum;
}

Test(sketch, a_single_value_is_told_exactly_by_weight)
{
    float x[COUNT] = {0};
    struct sgp_sketch sketch;
    for (uint32_t i = 0; i < COUNT; i++) {
        x[i] = 3;
        sgp_sketch_of(&sketch, x, 0.5, COUNT);
        cr_assert(eq(dbl, squares(&sketch, NULL), 36), "value %u", i);
        cr_assert(eq(flt, fabsf(sketch.values[i % SGP_SKETCH_VALUES]), 6));
        x[i] = 0;
    }
}

Test(sketch, of_equal_vectors_is_equal_and_of_none_zero)
{
    float x[COUNT];
    struct sgp_sketch a, b;
    for (uint32_t i = 0; i < COUNT; i++)
        x[i] = (float)i - 500;
    sgp_sketch_of(&a, x, 2, COUNT);
    sgp_sketch_of(&b, x, 2, COUNT);
    cr_assert(eq(dbl, squares(&a, &b), 0));
    sgp_sketch_of(&a, x, 2, 0);
    cr_assert(eq(dbl, squares(&a, NULL), 0));
}

/* Half of all signs are positive, so a constant does not add up. */
Test(sketch, tells_the_distance_of_random_vectors_within_its_deviation)
{
    static float a[COUNT], b[COUNT];
    struct sgp_random random;
    double sum = 0, worst = 0, least = INFINITY;
    sgp_random_init(&random, 7, 0);
    for (int trial = 0; trial < 400; trial++) {
        double truth = 0;
        for (uint32_t i = 0; i < COUNT; i++) {
            a[i] = (float)(sgp_random_double(&random) - 0.25);
            b[i] = (float)(sgp_random_double(&random) + trial % 2);
            truth += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        }
        struct sgp_sketch sa, sb;
        sgp_sketch_of(&sa, a, 1, COUNT);
        sgp_sketch_of(&sb, b, 1, COUNT);
        double ratio = squares(&sa, &sb) / truth;
        sum += ratio;
        worst = fmax(worst, ratio);
        least = fmin(least, ratio);
    }
    cr_assert(lt(dbl, fabs(sum / 400 - 1), 0.15));
    cr_assert(gt(dbl, least, 0.1));
    cr_assert(lt(dbl, worst, 4));
}
