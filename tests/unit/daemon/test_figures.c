/* SPDX-License-Identifier: Apache-2.0 */
/* When training counts as diverging, and what never does. */
#include "util/figures.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <string.h>

#define ZERO_LOSS 2.0 /* of a model whose outputs are all zero */

static struct figures begin(void)
{
    struct figures figures;
    figures_init(&figures, NULL, ZERO_LOSS, 0);
    return figures;
}

/* Rounds of `samples` rows each, so many an epoch, all with this loss. */
static void train(struct figures *figures, int rounds, uint64_t samples, double loss)
{
    for (int i = 0; i < rounds; i++) {
        struct sgp_training training = {
            .samples = samples, .loss = loss, .epoch = figures->training.epoch + 0.25};
        (void)figures_trained(figures, &training, 0);
    }
}

static void test(struct figures *figures, double loss)
{
    figures_tested(figures, 0, &(struct sgp_evaluation){.samples = 10, .loss = loss});
}

#define cr_diverges(figures, word)                                                                 \
    do {                                                                                           \
        const char *found = figures_diverging(figures);                                            \
        cr_assert(found != NULL && strcmp(found, word) == 0, "%s", found ? found : "well");        \
    } while (0)
#define cr_well(figures) cr_assert(figures_diverging(figures) == NULL)

Test(figures, nothing_is_known_before_training)
{
    struct figures figures = begin();
    cr_well(&figures);
}

Test(figures, a_test_loss_far_above_both_losses_diverges_until_it_comes_back)
{
    struct figures figures = begin();
    train(&figures, 4, 32, 1.0);
    test(&figures, 99 * ZERO_LOSS);
    cr_well(&figures);
    test(&figures, 101 * ZERO_LOSS);
    cr_diverges(&figures, "test_loss");
    test(&figures, 1.0);
    cr_well(&figures);
}

Test(figures, training_may_begin_high)
{
    struct figures figures = begin();
    train(&figures, 1, 32, 5e6); /* columns that are not scaled, and a rate that suits them */
    train(&figures, 3, 32, 4e6);
    test(&figures, 3e6);
    cr_well(&figures);
    test(&figures, 6e8);
    cr_diverges(&figures, "test_loss");
}

Test(figures, one_row_far_off_is_noise)
{
    struct figures figures = begin();
    train(&figures, 40, 1, 1.0);
    train(&figures, 1, 1, 1e4 * ZERO_LOSS);
    cr_well(&figures);
}

Test(figures, an_epoch_is_judged_where_nothing_is_tested)
{
    struct figures figures = begin();
    train(&figures, 4, 32, 1.0);
    train(&figures, 4, 32, 300 * ZERO_LOSS);
    cr_diverges(&figures, "loss");
    train(&figures, 4, 32, 1.0);
    cr_well(&figures);
}

Test(figures, early_is_the_mean_of_the_first_rows)
{
    struct figures figures = begin();
    train(&figures, 1, 8, 0.1);
    train(&figures, 1, 8, 79.9);
    cr_assert(ieee_ulp_eq(dbl, figures.early_loss, 40.0, 4));
    train(&figures, 1, 16, 60.0);
    cr_assert(ieee_ulp_eq(dbl, figures.early_loss, 50.0, 4));
    train(&figures, 9, 16, 1e9);
    cr_assert(ieee_ulp_eq(dbl, figures.early_loss, 50.0, 4));
}

Test(figures, what_an_earlier_process_has_ruined_is_no_beginning)
{
    struct figures figures = begin();
    figures.training.epoch = 7;
    train(&figures, 4, 32, 1e12);
    test(&figures, 1e12);
    cr_diverges(&figures, "test_loss");
}

Test(figures, a_loss_that_is_not_finite)
{
    struct figures figures = begin();
    figures_tested(&figures, SGP_E_DIVERGED, NULL);
    cr_diverges(&figures, "not_finite");
    test(&figures, 1.0);
    cr_well(&figures);
    figures.failed = true;
    cr_diverges(&figures, "not_finite");
}

Test(figures, zeros_for_zeros_say_nothing)
{
    struct figures figures;
    figures_init(&figures, NULL, 0, 0);
    test(&figures, 1e-9);
    cr_well(&figures);
}

/* Shares tell of rounds; the end is compared by itself. */
Test(figures, disagreement_is_that_of_the_latest_cycle_and_in_the_end_that_of_the_ends)
{
    const struct sgp_topology topology = {.rounds_per_cycle = 2};
    struct figures figures;
    figures_init(&figures, &topology, ZERO_LOSS, 0);
    cr_assert(isnan(figures_disagreement(&figures, false, NAN)));
    figures_distance(&figures, 0, 0.5);
    cr_assert(eq(dbl, figures_disagreement(&figures, false, NAN), 0.5));
    figures_distance(&figures, 1, 0.25);
    figures_distance(&figures, 2, 0.125); /* the first cycle is complete */
    cr_assert(eq(dbl, figures_disagreement(&figures, false, NAN), 0.5));
    cr_assert(eq(dbl, figures_disagreement(&figures, true, NAN), 0.125));
    cr_assert(eq(dbl, figures_disagreement(&figures, true, 1e-6), 1e-6));
}
