/* SPDX-License-Identifier: Apache-2.0 */
/* Losses and their gradients against float64 sums written as the formulas are and central
 * differences of these, known numbers, outputs that overflow, and what is refused. */
#include "sgp/loss.h"
#include "sgp/random.h"
#include "train/loss.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 7u
#define COLUMNS 5u
#define LOSSES 4

static const float weights[COLUMNS] = {1.0f, 2.5f, 0.0f, 0.25f, 7.0f};

static struct sgp_loss_settings settings_of(double smoothing, double delta, bool weighted)
{
    return (struct sgp_loss_settings){.label_smoothing = smoothing,
        .huber_delta = delta,
        .class_weights = weighted ? weights : NULL,
        .class_weight_count = weighted ? COLUMNS : 0};
}

/* ---- the slow reference ---- */

static double weight_of(const struct sgp_loss_settings *settings, size_t column)
{
    return settings->class_weights ? (double)settings->class_weights[column] : 1.0;
}

static double reference_row(enum sgp_loss loss, const struct sgp_loss_settings *settings,
    const double *z, const double *y, size_t label, size_t columns)
{
    double sum = 0.0, total = 0.0;
    for (size_t c = 0; c < columns; c++)
        sum += exp(z[c]);
    for (size_t c = 0; c < columns; c++) {
        double target = y ? y[c] : (double)(c == label);
        double d = fabs(z[c] - target);
        double s = settings->label_smoothing;
        double q = (1.0 - s) * (double)(c == label) + s / (double)columns;
        double p = 1.0 / (1.0 + exp(-z[c]));
        switch (loss) {
        case SGP_LOSS_CROSS_ENTROPY:
            total -= weight_of(settings, c) * q * log(exp(z[c]) / sum);
            break;
        case SGP_LOSS_MSE:
            total += d * d / (double)columns;
            break;
        case SGP_LOSS_HUBER:
            total += (d <= settings->huber_delta
                             ? d * d / 2.0
                             : settings->huber_delta * (d - settings->huber_delta / 2.0)) /
                     (double)columns;
            break;
        case SGP_LOSS_BINARY_CROSS_ENTROPY:
            total -= (weight_of(settings, c) * target * log(p) + (1.0 - target) * log(1.0 - p)) /
                     (double)columns;
        }
    }
    return total;
}

struct batch {
    float outputs[ROWS * COLUMNS];
    uint32_t labels[ROWS];
    float values[ROWS * COLUMNS];
    bool labelled;
};

static double reference_batch(enum sgp_loss loss, const struct sgp_loss_settings *settings,
    const struct batch *batch, const double *outputs)
{
    double total = 0.0;
    for (size_t r = 0; r < ROWS; r++) {
        double y[COLUMNS];
        for (size_t c = 0; c < COLUMNS; c++)
            y[c] = (double)batch->values[r * COLUMNS + c];
        total += reference_row(loss, settings, outputs + r * COLUMNS, batch->labelled ? NULL : y,
            batch->labels[r], COLUMNS);
    }
    return total;
}

static struct batch draw(enum sgp_loss loss, bool labelled, uint64_t seed)
{
    struct batch batch = {.labelled = labelled};
    struct sgp_random random;
    sgp_random_init(&random, seed, 0);
    for (size_t i = 0; i < ROWS; i++)
        batch.labels[i] = (uint32_t)sgp_random_below(&random, COLUMNS);
    for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++) {
        batch.outputs[i] = 3.0f * (float)sgp_random_normal(&random);
        batch.values[i] = loss == SGP_LOSS_BINARY_CROSS_ENTROPY
                              ? (float)sgp_random_below(&random, 2)
                              : 2.0f * (float)sgp_random_normal(&random);
    }
    return batch;
}

static struct sgp_loss_sum run(enum sgp_loss loss, const struct sgp_loss_settings *settings,
    const struct batch *batch, float *delta)
{
    return sgp_loss_batch(loss, settings, delta, batch->outputs,
        batch->labelled ? batch->labels : NULL, batch->labelled ? NULL : batch->values, ROWS,
        COLUMNS);
}

/* Loss to 1e-6 of itself, and each value of the gradient to 1e-6. */
static void against_reference(
    enum sgp_loss loss, const struct sgp_loss_settings *settings, bool labelled)
{
    const double h = 1e-5;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct batch batch = draw(loss, labelled, seed);
        double z[ROWS * COLUMNS];
        float delta[ROWS * COLUMNS];
        memset(delta, 0xff, sizeof delta); /* NaN: every value must be written */
        for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++)
            z[i] = (double)batch.outputs[i];
        double expected = reference_batch(loss, settings, &batch, z);
        double got = run(loss, settings, &batch, delta).loss;
        cr_assert(epsilon_eq(dbl, got, expected, 1e-6 * (1.0 + expected)));
        for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++) {
            double kept = z[i];
            z[i] = kept + h;
            double above = reference_batch(loss, settings, &batch, z);
            z[i] = kept - h;
            double below = reference_batch(loss, settings, &batch, z);
            z[i] = kept;
            double slope = (above - below) / (2.0 * h) / ROWS;
            cr_assert(epsilon_eq(dbl, (double)delta[i], slope, 1e-6), "%s, seed %lu, output %zu",
                sgp_loss_name(loss), (unsigned long)seed, i);
        }
    }
}

Test(loss, gradients_of_cross_entropy)
{
    for (int weighted = 0; weighted < 2; weighted++)
        for (int i = 0; i < 3; i++) {
            struct sgp_loss_settings settings = settings_of(0.3 * i, 1.0, weighted);
            against_reference(SGP_LOSS_CROSS_ENTROPY, &settings, true);
        }
}

Test(loss, gradients_of_numbers)
{
    static const double deltas[] = {0.1, 1.0, 1e6};
    for (int labelled = 0; labelled < 2; labelled++) {
        against_reference(SGP_LOSS_MSE, &sgp_loss_defaults, labelled);
        for (int i = 0; i < 3; i++) {
            struct sgp_loss_settings settings = settings_of(0, deltas[i], false);
            against_reference(SGP_LOSS_HUBER, &settings, labelled);
        }
    }
}

Test(loss, gradients_of_binary_cross_entropy)
{
    for (int weighted = 0; weighted < 2; weighted++) {
        struct sgp_loss_settings settings = settings_of(0, 1.0, weighted);
        against_reference(SGP_LOSS_BINARY_CROSS_ENTROPY, &settings, false);
    }
}

/* ---- known numbers ---- */

Test(loss, smoothing_by_hand)
{
    /* p = 1/4, 1/4, 1/2; q = 0.1, 0.1, 0.8: log 4 * 0.2 + log 2 * 0.8 */
    const float outputs[3] = {0.0f, 0.0f, (float)0.69314718055994531};
    const uint32_t label = 2;
    float delta[3];
    struct sgp_loss_settings settings = settings_of(0.3, 1.0, false);
    struct sgp_loss_sum sum =
        sgp_loss_batch(SGP_LOSS_CROSS_ENTROPY, &settings, delta, outputs, &label, NULL, 1, 3);
    cr_assert(epsilon_eq(dbl, sum.loss, 0.2 * log(4.0) + 0.8 * log(2.0), 1e-7));
    cr_assert(epsilon_eq(flt, delta[0], 0.15f, 1e-7f));
    cr_assert(epsilon_eq(flt, delta[2], -0.3f, 1e-7f));
    cr_assert(eq(u64, sum.correct, 1));
    cr_assert(eq(u64, sum.judged, 1));
}

Test(loss, huber_by_hand)
{
    const float outputs[4] = {0.5f, 3.0f, -3.0f, 1.0f}, values[4] = {0, 0, 0, 0};
    float delta[4];
    struct sgp_loss_sum sum =
        sgp_loss_batch(SGP_LOSS_HUBER, &sgp_loss_defaults, delta, outputs, NULL, values, 1, 4);
    cr_assert(epsilon_eq(dbl, sum.loss, (0.125 + 2.5 + 2.5 + 0.5) / 4, 1e-12));
    cr_assert(eq(flt, delta[0], 0.125f));
    cr_assert(eq(flt, delta[1], 0.25f));
    cr_assert(eq(flt, delta[2], -0.25f));
    cr_assert(eq(u64, sum.judged, 0)); /* of numbers there is no accuracy */
}

Test(loss, binary_by_hand)
{
    const float outputs[4] = {0.0f, 0.0f, 2.0f, -2.0f}, values[4] = {1, 0, 1, 1};
    const float yes[4] = {3.0f, 1.0f, 1.0f, 1.0f};
    float delta[4];
    const struct sgp_loss_settings settings = {.class_weights = yes, .class_weight_count = 4};
    struct sgp_loss_sum sum = sgp_loss_batch(
        SGP_LOSS_BINARY_CROSS_ENTROPY, &settings, delta, outputs, NULL, values, 1, 4);
    double expected = 3 * log(2.0) + log(2.0) + log1p(exp(-2.0)) + log1p(exp(-2.0)) + 2.0;
    cr_assert(epsilon_eq(dbl, sum.loss, expected / 4, 1e-12));
    cr_assert(eq(flt, delta[0], -0.375f));
    cr_assert(eq(flt, delta[1], 0.125f));
    cr_assert(eq(u64, sum.judged, 4));
    cr_assert(eq(u64, sum.correct, 2)); /* an output of 0 says 0: its 1 is missed, its 0 found */
}

/* ---- outputs that overflow ---- */

Test(loss, great_outputs_stay_finite)
{
    const float outputs[3] = {1e4f, -1e4f, 0.0f}, values[3] = {0, 1, 1};
    const uint32_t label = 1;
    float delta[3];
    struct sgp_loss_settings smooth = settings_of(0.3, 1.0, false);
    struct sgp_loss_sum sum = sgp_loss_batch(
        SGP_LOSS_CROSS_ENTROPY, &sgp_loss_defaults, delta, outputs, &label, NULL, 1, 3);
    cr_assert(eq(dbl, sum.loss, 2e4));
    cr_assert(eq(flt, delta[0], 1.0f));
    cr_assert(eq(flt, delta[1], -1.0f));
    sum = sgp_loss_batch(SGP_LOSS_CROSS_ENTROPY, &smooth, delta, outputs, &label, NULL, 1, 3);
    cr_assert(epsilon_eq(dbl, sum.loss, 0.8 * 2e4 + 0.1 * 1e4, 1e-9));
    cr_assert(epsilon_eq(flt, delta[1], -0.8f, 1e-7f));
    sum = sgp_loss_batch(
        SGP_LOSS_BINARY_CROSS_ENTROPY, &sgp_loss_defaults, delta, outputs, NULL, values, 1, 3);
    cr_assert(epsilon_eq(dbl, sum.loss, (2e4 + log(2.0)) / 3, 1e-9));
    cr_assert(epsilon_eq(flt, delta[0], 1.0f / 3, 1e-7f));
    cr_assert(epsilon_eq(flt, delta[1], -1.0f / 3, 1e-7f));
    sum = sgp_loss_batch(SGP_LOSS_HUBER, &sgp_loss_defaults, delta, outputs, NULL, values, 1, 3);
    cr_assert(epsilon_eq(dbl, sum.loss, (9999.5 + 10000.5 + 0.5) / 3, 1e-9));
    float far[3];
    sgp_loss_predict(SGP_LOSS_BINARY_CROSS_ENTROPY, &sgp_loss_defaults, far, outputs, 1, 3);
    cr_assert(eq(flt, far[0], 1.0f));
    cr_assert(eq(flt, far[1], 0.0f));
    cr_assert(eq(flt, far[2], 0.5f));
    sgp_loss_predict(SGP_LOSS_CROSS_ENTROPY, &sgp_loss_defaults, far, outputs, 1, 3);
    cr_assert(eq(flt, far[0], 1.0f));
    cr_assert(eq(flt, far[2], 0.0f));
}

/* A sigmoid close to what is wanted: 1 - p would be 0 in float32, and is not. */
Test(loss, small_binary_gradients_are_kept)
{
    const float outputs[2] = {20.0f, -20.0f}, values[2] = {1, 0};
    float delta[2];
    (void)sgp_loss_batch(
        SGP_LOSS_BINARY_CROSS_ENTROPY, &sgp_loss_defaults, delta, outputs, NULL, values, 1, 2);
    cr_assert(epsilon_eq(dbl, (double)delta[0] / (-0.5 * exp(-20.0)), 1.0, 1e-6));
    cr_assert(epsilon_eq(dbl, (double)delta[1] / (0.5 * exp(-20.0)), 1.0, 1e-6));
}

Test(loss, nan_stays_nan)
{
    for (int loss = 1; loss <= LOSSES; loss++)
        for (size_t column = 0; column < COLUMNS; column++)
            for (int smooth = 0; smooth < 2; smooth++) {
                bool labelled = sgp_loss_takes((enum sgp_loss)loss) & SGP_LOSS_TAKES_CLASS;
                struct batch batch = draw((enum sgp_loss)loss, labelled, 3);
                struct sgp_loss_settings settings = settings_of(0.2 * smooth, 1.0, false);
                float delta[ROWS * COLUMNS];
                batch.outputs[2 * COLUMNS + column] = NAN;
                struct sgp_loss_sum sum = run((enum sgp_loss)loss, &settings, &batch, delta);
                cr_assert(
                    isnan(sum.loss), "%s, column %zu", sgp_loss_name((enum sgp_loss)loss), column);
                cr_assert(isnan(delta[2 * COLUMNS + column]));
                batch.outputs[2 * COLUMNS + column] = INFINITY;
                sum = run((enum sgp_loss)loss, &settings, &batch, delta);
                cr_assert(not(isfinite(sum.loss)));
            }
}

/* ---- the rest of the table ---- */

Test(loss, words_are_those_of_the_table)
{
    char words[128] = "";
    for (int loss = 1; loss <= LOSSES; loss++) {
        const char *name = sgp_loss_name((enum sgp_loss)loss);
        cr_assert(eq(int, (int)sgp_loss_find(name), loss));
        (void)strcat(strcat(words, loss > 1 ? "|" : ""), name);
    }
    cr_assert(eq(str, words, (char *)SGP_LOSS_WORDS));
    cr_assert(eq(int, (int)sgp_loss_find("hinge"), 0));
}

Test(loss, a_digest_tells_settings_that_count)
{
    const struct sgp_loss_settings plain = sgp_loss_defaults;
    struct sgp_loss_settings other = settings_of(0.1, 2.0, true);
    const enum sgp_loss mse = SGP_LOSS_MSE, huber = SGP_LOSS_HUBER, cross = SGP_LOSS_CROSS_ENTROPY;
    const enum sgp_loss binary = SGP_LOSS_BINARY_CROSS_ENTROPY;
    cr_assert(eq(u64, sgp_loss_digest(mse, &plain), sgp_loss_digest(mse, &other)));
    cr_assert(ne(u64, sgp_loss_digest(huber, &plain), sgp_loss_digest(huber, &other)));
    cr_assert(ne(u64, sgp_loss_digest(cross, &plain), sgp_loss_digest(binary, &plain)));
    uint64_t all = sgp_loss_digest(cross, &other), weighted = sgp_loss_digest(binary, &other);
    other.class_weights = NULL;
    cr_assert(ne(u64, sgp_loss_digest(cross, &other), all));
    cr_assert(ne(u64, sgp_loss_digest(binary, &other), weighted));
    cr_assert(eq(u64, sgp_loss_digest(binary, &other), sgp_loss_digest(binary, &plain)));
    other.label_smoothing = 0.2;
    cr_assert(ne(u64, sgp_loss_digest(cross, &other), sgp_loss_digest(cross, &plain)));
}

Test(loss, what_zeros_lose)
{
    const float features[] = {1, 2, 3, 4}, values[] = {3, 0, 1, -2}, bits[] = {1, 0, 1, 1};
    const uint32_t labels[] = {1, 1};
    const float heavy[] = {1, 3, 1, 1};
    const struct sgp_loss_settings weighted = {.class_weights = heavy, .class_weight_count = 4};
    struct sgp_dataset *rows;
    double loss;
    cr_assert(eq(int, sgp_dataset_create_memory(features, NULL, values, 2, 2, 0, 2, &rows), 0));
    cr_assert(eq(int, sgp_loss_of_zeros(SGP_LOSS_MSE, &sgp_loss_defaults, rows, &loss), 0));
    cr_assert(epsilon_eq(dbl, loss, (9.0 + 0 + 1 + 4) / 4, 1e-12));
    cr_assert(eq(int, sgp_loss_of_zeros(SGP_LOSS_HUBER, &sgp_loss_defaults, rows, &loss), 0));
    cr_assert(epsilon_eq(dbl, loss, (2.5 + 0 + 0.5 + 1.5) / 4, 1e-12));
    sgp_dataset_destroy(rows);
    cr_assert(eq(int, sgp_dataset_create_memory(features, NULL, bits, 2, 2, 0, 2, &rows), 0));
    cr_assert(eq(
        int, sgp_loss_of_zeros(SGP_LOSS_BINARY_CROSS_ENTROPY, &sgp_loss_defaults, rows, &loss), 0));
    cr_assert(epsilon_eq(dbl, loss, log(2.0), 1e-12));
    sgp_dataset_destroy(rows);
    cr_assert(eq(int, sgp_dataset_create_memory(features, labels, NULL, 2, 2, 4, 1, &rows), 0));
    cr_assert(eq(int, sgp_loss_of_zeros(SGP_LOSS_CROSS_ENTROPY, &weighted, rows, &loss), 0));
    cr_assert(epsilon_eq(dbl, loss, 3 * log(4.0), 1e-6));
    cr_assert(eq(int, sgp_loss_of_zeros(SGP_LOSS_MSE, &sgp_loss_defaults, rows, &loss), 0));
    cr_assert(epsilon_eq(dbl, loss, 0.25, 1e-12));
    sgp_dataset_destroy(rows);
}

/* ---- scaled label columns ---- */

Test(loss, numbers_leave_in_the_units_of_their_columns)
{
    struct sgp_target_scale scales[] = {{.name = "a", .mean = 152.25, .deviation = 77},
        {.name = "b", .mean = -1e9, .deviation = 1}};
    struct sgp_loss_settings settings = sgp_loss_defaults;
    settings.target_scales = scales;
    settings.target_scale_count = 2;
    const float outputs[] = {1, 0, -0.5f, 64}, values[] = {1, 0, -1.5f, 128};
    float numbers[4];
    sgp_loss_predict(SGP_LOSS_MSE, &settings, numbers, outputs, 2, 2);
    const float expected[] = {229.25f, -1e9f, 113.75f, -1e9f + 64};
    for (size_t i = 0; i < 4; i++)
        cr_assert(eq(flt, numbers[i], expected[i]));
    struct sgp_measures measures;
    double value;
    cr_assert(eq(int, sgp_measures_init(&measures, SGP_MEASURES_NUMBERS, 2), 0));
    sgp_loss_measure(&measures, &settings, outputs, NULL, values, 2);
    cr_assert(eq(u64, measures.rows, 2));
    cr_assert(sgp_measures_squared_error(&measures, 0, &value));
    cr_assert(eq(dbl, value, 77 * 77 / 2.0));
    cr_assert(sgp_measures_absolute_error(&measures, 1, &value));
    cr_assert(eq(dbl, value, 32));
    sgp_measures_finish(&measures);
    /* Training does not know the units. */
    float delta[4];
    const struct sgp_loss_sum sum =
        sgp_loss_batch(SGP_LOSS_MSE, &settings, delta, outputs, NULL, outputs, 2, 2);
    cr_assert(eq(dbl, sum.loss, 0));
    cr_assert(eq(u64, sgp_loss_digest(SGP_LOSS_MSE, &settings),
        sgp_loss_digest(SGP_LOSS_MSE, &sgp_loss_defaults)));
}

/* A float32 near 1e8 is a multiple of 8. The errors of a model are far smaller, and have no mean. */
Test(loss, a_large_mean_takes_nothing_from_the_measures)
{
    struct sgp_target_scale scale = {.name = "a", .mean = 1e8, .deviation = 1};
    struct sgp_loss_settings settings = sgp_loss_defaults;
    settings.target_scales = &scale;
    settings.target_scale_count = 1;
    const float outputs[] = {0.25f, -0.5f}, values[] = {0.5f, -0.25f};
    struct sgp_measures measures;
    double value;
    cr_assert(eq(int, sgp_measures_init(&measures, SGP_MEASURES_NUMBERS, 1), 0));
    sgp_loss_measure(&measures, &settings, outputs, NULL, values, 2);
    cr_assert(sgp_measures_squared_error(&measures, 0, &value));
    cr_assert(eq(dbl, value, 0.0625));
    cr_assert(sgp_measures_absolute_error(&measures, 0, &value));
    cr_assert(eq(dbl, value, 0.25));
    cr_assert(sgp_measures_r2(&measures, 0, &value));
    cr_assert(epsilon_eq(dbl, value, 1 - 0.125 / 0.28125, 1e-15));
    sgp_measures_finish(&measures);
}

/* ---- what is refused ---- */

static void refused(
    enum sgp_loss loss, const struct sgp_loss_settings *settings, const char *message)
{
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_loss_check(loss, settings, COLUMNS, &error), SGP_E_CONFIG));
    cr_assert(eq(str, error.text, (char *)message));
}

Test(loss, settings_out_of_range_are_refused)
{
    struct sgp_loss_settings settings = settings_of(1.0, 0.0, false);
    const float bad[COLUMNS] = {1, 1, NAN, 1, 1}, nothing[COLUMNS] = {0};
    refused(SGP_LOSS_CROSS_ENTROPY, &settings,
        "a label smoothing of 1; a number from 0 to 0.999 would be right, 0.1 is usual");
    refused(SGP_LOSS_HUBER, &settings, "a delta of 0; a number from 1e-06 to 1e+06 would be right");
    cr_assert(eq(int, sgp_loss_check(SGP_LOSS_MSE, &settings, COLUMNS, NULL), 0));
    settings = settings_of(0, 1, true);
    cr_assert(eq(int, sgp_loss_check(SGP_LOSS_CROSS_ENTROPY, &settings, COLUMNS, NULL), 0));
    settings.class_weight_count = 3;
    refused(SGP_LOSS_BINARY_CROSS_ENTROPY, &settings,
        "3 class weights, but the model ends in 5 outputs; give one weight for each");
    settings = (struct sgp_loss_settings){.class_weights = bad, .class_weight_count = COLUMNS};
    refused(SGP_LOSS_CROSS_ENTROPY, &settings,
        "class weight 3 is nan; numbers from 0 to 1e+06 would be right");
    settings.class_weights = nothing;
    refused(SGP_LOSS_CROSS_ENTROPY, &settings,
        "all class weights are 0, so there is nothing to learn; give at least one above 0");
}

Test(loss, class_weights_are_a_list_of_numbers)
{
    static const char *const bad[] = {"1, balanced", "1,0x2", "inf", "1 2.5.1", "nan", "1;2"};
    struct sgp_error error = {0};
    float *list = NULL;
    uint32_t count = 7;
    cr_assert(eq(int, sgp_class_weights_parse(" 1,2.5\t 1e-1 ,", NULL, &list, &count), 0));
    cr_assert(eq(u32, count, 3));
    cr_assert(eq(flt, list[1], 2.5f));
    cr_assert(eq(flt, list[2], 0.1f));
    free(list);
    cr_assert(eq(int, sgp_class_weights_parse(" , ", NULL, &list, &count), 0));
    cr_assert(eq(u32, count, 0));
    cr_assert(eq(ptr, list, NULL));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_assert(eq(int, sgp_class_weights_parse(bad[i], NULL, &list, &count), SGP_E_CONFIG));
    (void)sgp_class_weights_parse("2, balanced", &error, &list, &count);
    cr_assert(eq(str, error.text,
        "'balanced' is not a number; list one number for each class, for example 1, 2.5, 1"));
}
