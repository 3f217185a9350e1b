/* SPDX-License-Identifier: Apache-2.0 */
/* [model] class_weights = balanced, by the classes that nodes have told. */
#include "setup/scaling.h"

#include "sgp/loss.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <stdlib.h>

static float *balance(const char *text, char *first, char *second)
{
    char *names[] = {first, second};
    struct sgp_error error = {0};
    float *weights = NULL;
    cr_assert(zero(int, scaling_balance(text, names, 2, &error, &weights)), "%s", error.text);
    return weights;
}

Test(scaling_balance, a_weight_is_the_rows_over_classes_times_rows_of_the_class)
{
    float *weights = balance("{\"classes\": {\"ill\": 10, \"well\": 30}}", "ill", "well");
    cr_assert(epsilon_eq(flt, weights[0], 2, 1e-6F));
    cr_assert(epsilon_eq(flt, weights[1], 2.0F / 3, 1e-6F));
    free(weights);
}

/* The user wrote `balanced`, so there is no number to correct. */
Test(scaling_balance, a_class_of_few_rows_among_millions_has_the_greatest_weight)
{
    float *weights = balance("{\"classes\": {\"ill\": 10, \"well\": 30000000}}", "ill", "well");
    cr_assert(epsilon_eq(flt, weights[0], (float)SGP_CLASS_WEIGHT_MAX, 0));
    free(weights);
}
