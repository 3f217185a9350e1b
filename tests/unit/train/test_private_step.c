/* SPDX-License-Identifier: Apache-2.0 */
/* Private steps: sums of clipped gradients beside those of single rows, and checks of what the account assumes. The checks run
 * on the learner and on a plain node of this file, in which a bug can be planted: each bug fails a check. */
#include "learner_rows.h"

#include "sgp/noise.h"

#include <math.h>

/* ---- clipped sums ---- */

static struct sgp_dataset *one_row(const struct sgp_dataset *from, uint64_t row)
{
    float features[64];
    uint32_t label = from->labels[row];
    struct sgp_dataset *one = NULL;
    uint32_t index = (uint32_t)row;
    sgp_dataset_gather(from, features, &label, NULL, &index, 1, 0);
    cr_assert(eq(int,
        sgp_dataset_create_memory(
            features, &label, NULL, 1, from->features, from->classes, 1, &one),
        0));
    return one;
}

static const float *values_of(struct sgp_trainer *trainer)
{
    struct sgp_trainer_state state = {0};
    trainer->methods->state(trainer, &state);
    return state.x;
}

/* moved[i] = what one step of rate 1 takes off x. */
static void step_once(const struct sgp_learner_settings *settings, double weight, double *moved)
{
    struct sgp_trainer *trainer = create(settings);
    uint64_t count = settings->model.parameters;
    for (uint64_t i = 0; i < count; i++)
        moved[i] = (double)values_of(trainer)[i];
    (void)train(trainer, weight, 1);
    for (uint64_t i = 0; i < count; i++)
        moved[i] -= (double)values_of(trainer)[i];
    trainer->methods->destroy(trainer);
}

static double length_of(const double *values, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += values[i] * values[i];
    return sqrt(sum);
}

/* Words of a vocabulary of 5. Most rows have one of them twice. */
static struct sgp_dataset *words(uint32_t rows)
{
    struct sgp_random random;
    float features[64 * FEATURES];
    uint32_t labels[64];
    struct sgp_dataset *dataset = NULL;
    sgp_random_init(&random, 8, 0);
    for (uint32_t i = 0; i < rows * FEATURES; i++)
        features[i] = (float)sgp_random_below(&random, 5);
    for (uint32_t r = 0; r < rows; r++)
        labels[r] = r % CLASSES;
    cr_assert(eq(int,
        sgp_dataset_create_memory(features, labels, NULL, rows, FEATURES, CLASSES, 1, &dataset),
        0));
    return dataset;
}

static void compare_sums(const char *layers, double clip, double weight)
{
    enum { ROWS = 41, MOST = 400 };
    struct sgp_dataset *rows =
        strncmp(layers, "embedding", 9) == 0 ? words(ROWS) : clusters(ROWS, 5);
    struct sgp_learner_settings settings = settings_of(layers, SGP_LOSS_CROSS_ENTROPY, rows, ROWS);
    settings.schedule.learning_rate = 1;
    const uint64_t count = settings.model.parameters;
    double found[MOST], expected[MOST] = {0}, one[MOST];
    unsigned clipped = 0;
    cr_assert(le(u64, count, MOST));
    for (uint64_t r = 0; r < ROWS; r++) {
        struct sgp_learner_settings alone = settings;
        struct sgp_dataset *row = one_row(rows, r);
        alone.train = row;
        alone.batch = 1;
        step_once(&alone, weight, one);
        double length = length_of(one, count);
        clipped += length > clip;
        for (uint64_t i = 0; i < count; i++)
            expected[i] += one[i] * fmin(1, clip / length) / ROWS;
        sgp_dataset_destroy(row);
    }
    settings.privacy.clip = clip;
    step_once(&settings, weight, found);
    for (uint64_t i = 0; i < count; i++)
        cr_assert(epsilon_eq(dbl, found[i], expected[i], 1e-6), "%s, value %llu", layers,
            (unsigned long long)i);
    cr_assert(clipped > 3 && clipped < ROWS - 3, "%s: %u rows are clipped", layers, clipped);
    sgp_dataset_destroy(rows);
}

Test(private_step, sum_of_clipped_gradients_of_rows)
{
    compare_sums("dense 3", 2.9, 1);
    compare_sums("dense 8 relu, dense 3", 10.5, 0.5);
    compare_sums("dense 6 tanh, dense 6 sigmoid, residual 1 relu, dense 3", 2, 2);
}

/* Of layers whose gradient of a row is a sum over pixels, words, or channels. */
Test(private_step, sum_of_clipped_gradients_of_pixels)
{
    compare_sums("input 1x2x3, conv 3 2x2 relu, dense 3", 2, 1);
    compare_sums("input 2x3x1, conv 4 3x1 tanh, conv 2 2x1 stride 2 valid, dense 3", 3, 0.7);
    compare_sums("input 3x2x1, conv 5 1x1 sigmoid, pool 2x1, dense 3", 1.45, 1.3);
    compare_sums("input 1x2x3, conv 3 2x2, pool avg 2 same, conv 3 1x1 relu, dense 3", 2, 1);
    compare_sums("input 1x3x2, conv 3 3x2 relu, conv 3 3x2, residual 1 relu, dense 3", 5, 1);
    compare_sums("norm layer tanh, dense 3", 2, 1);
    compare_sums("dense 6, norm layer relu, dense 3", 12, 0.4);
    compare_sums("input 2x3x1, conv 4 2x1, norm group 2 tanh, conv 2 1x1, dense 3", 7, 1);
    compare_sums("embedding 5 x 4, dense 3", 5, 0.7);
    compare_sums("embedding 5 x 4, conv 3 1x3 relu, pool avg all, dense 3", 2, 1);
}

static void leave_out_what_overflows(const char *layers)
{
    enum { ROWS = 9, MOST = 200 };
    struct sgp_dataset *rows = clusters(ROWS, 7);
    float features[ROWS * FEATURES];
    uint32_t labels[ROWS], indices[ROWS];
    struct sgp_dataset *wild = NULL, *rest = NULL;
    for (uint32_t i = 0; i < ROWS; i++)
        indices[i] = i;
    sgp_dataset_gather(rows, features, labels, NULL, indices, ROWS, 0);
    cr_assert(eq(int,
        sgp_dataset_create_memory(features, labels, NULL, ROWS - 1, FEATURES, CLASSES, 1, &rest),
        0));
    for (uint32_t f = 0; f < FEATURES; f++)
        features[(ROWS - 1) * FEATURES + f] = 3e38f;
    cr_assert(eq(int,
        sgp_dataset_create_memory(features, labels, NULL, ROWS, FEATURES, CLASSES, 1, &wild), 0));
    double with[MOST], without[MOST];
    struct sgp_learner_settings settings = settings_of(layers, SGP_LOSS_CROSS_ENTROPY, wild, ROWS);
    cr_assert(le(u64, settings.model.parameters, MOST));
    settings.privacy.clip = 1;
    step_once(&settings, 1, with);
    settings.train = rest;
    settings.batch = ROWS - 1;
    step_once(&settings, 1, without);
    for (uint64_t i = 0; i < settings.model.parameters; i++)
        cr_assert(epsilon_eq(dbl, with[i] * ROWS, without[i] * (ROWS - 1), 1e-6), "%s, value %llu",
            layers, (unsigned long long)i);
    sgp_dataset_destroy(rows);
    sgp_dataset_destroy(wild);
    sgp_dataset_destroy(rest);
}

/* A row whose values overflow counts nothing, and does not spoil the others. */
Test(private_step, a_row_that_overflows_is_left_out)
{
    leave_out_what_overflows("dense 8 relu, dense 3");
    leave_out_what_overflows("dense 8 relu, norm layer tanh, dense 3");
    leave_out_what_overflows("input 2x3x1, conv 4 2x1 relu, norm group 2, pool 3x1, dense 3");
    leave_out_what_overflows(
        "input 3x2x1, conv 4 2x1, norm layer relu, residual 1, pool avg all, dense 3");
    leave_out_what_overflows("input 1x2x3, conv 3 2x2, conv 2 1x1, dense 3");
}

/* Whether x is finite after a step from `values`, with rows of one column. */
static bool is_finite_after(const struct sgp_dataset *rows, const float *values)
{
    struct sgp_learner_settings settings =
        settings_of("dense 1 tanh, dense 2", SGP_LOSS_CROSS_ENTROPY, rows, 8);
    settings.privacy = (struct sgp_learner_privacy){.clip = 4};
    struct sgp_trainer *trainer = create(&settings);
    struct sgp_trainer_state state = {0};
    trainer->methods->state(trainer, &state);
    state.x = values;
    trainer->methods->resume(trainer, &state);
    (void)train(trainer, 1, 1);
    bool finite = true;
    for (uint64_t i = 0; i < settings.model.parameters; i++)
        finite = finite && isfinite(values_of(trainer)[i]);
    trainer->methods->destroy(trainer);
    return finite;
}

/* The weights of others may be such that a gradient overflows with some factor, and not with
 * another. Infinity times the 0 of a saturated unit would tell that the row was drawn. */
Test(private_step, huge_weights_do_not_tell_of_a_row)
{
    enum { ROWS = 8 };
    float features[ROWS];
    uint32_t labels[ROWS];
    struct sgp_dataset *rows = NULL;
    for (uint32_t r = 0; r < ROWS; r++) {
        features[r] = -1;
        labels[r] = 0;
    }
    cr_assert(eq(int, sgp_dataset_create_memory(features, labels, NULL, ROWS, 1, 2, 1, &rows), 0));
    for (int power = 118; power < 128; power++) {
        /* The unit is saturated: its derivative is 0. All rows count as the wrong class. */
        const float huge = ldexpf(1.5F, power);
        const float values[] = {100, 0, huge, -huge, 0, 0};
        cr_assert(is_finite_after(rows, values), "2^%d", power);
    }
    sgp_dataset_destroy(rows);
}

/* moved[i] = what a step from `values` takes off x. */
static void step_from(
    const struct sgp_learner_settings *settings, const float *values, double *moved)
{
    struct sgp_trainer *trainer = create(settings);
    struct sgp_trainer_state state = {0};
    trainer->methods->state(trainer, &state);
    state.x = values;
    trainer->methods->resume(trainer, &state);
    (void)train(trainer, 1, 1);
    for (uint64_t i = 0; i < settings->model.parameters; i++)
        moved[i] = (double)values[i] - (double)values_of(trainer)[i];
    trainer->methods->destroy(trainer);
}

/* The weights of the four classes are equal, so that no gradient passes below them: the terms
 * cancel. If rounding came between, the huge weights would make a gradient of it. */
Test(private_step, huge_weights_that_cancel_make_no_gradient)
{
    enum { COUNT = 2 + 2 * 4 };
    const float feature = 1, huge = ldexpf(1, 100);
    const float values[COUNT] = {0, 0, huge, huge, huge, huge};
    for (uint32_t i = 0; i < 4 * 20; i++) {
        const uint32_t label = i % 4;
        const double clip = 0.3 + 0.0071 * (i / 4);
        double moved[COUNT];
        struct sgp_dataset *row = NULL;
        cr_assert(eq(int, sgp_dataset_create_memory(&feature, &label, NULL, 1, 1, 4, 1, &row), 0));
        struct sgp_learner_settings settings =
            settings_of("dense 1, dense 4", SGP_LOSS_CROSS_ENTROPY, row, 1);
        settings.schedule.learning_rate = 1;
        settings.privacy.clip = clip;
        step_from(&settings, values, moved);
        cr_assert(le(dbl, length_of(moved, COUNT), clip * (1 + 1e-5)), "label %u", label);
        sgp_dataset_destroy(row);
    }
}

/* Pixels have a huge weight and its negative, so that the gradient of a row is small while its terms
 * are not; the weights of all classes are huge, and equal for each pixel. Whatever rounding makes of
 * that, it is measured, too. `layers` begins with a convolution of so many taps. */
static void cancel_over_pixels(const char *layers, uint32_t taps)
{
    enum { PIXELS = 4, COUNT_MAX = PIXELS + 1 + 2 * PIXELS + 2 };
    const float features[PIXELS] = {1, -1, 0.7f, -0.3f};
    for (uint32_t i = 0; i < 60; i++) {
        const uint32_t label = i % 2;
        const float huge = ldexpf(1, (int)i / 2);
        const double clip = 0.3 + 0.0071 * i;
        double moved[COUNT_MAX];
        struct sgp_dataset *row = NULL;
        cr_assert(
            eq(int, sgp_dataset_create_memory(features, &label, NULL, 1, PIXELS, 2, 1, &row), 0));
        struct sgp_learner_settings settings = settings_of(layers, SGP_LOSS_CROSS_ENTROPY, row, 1);
        settings.schedule.learning_rate = 1;
        settings.privacy.clip = clip;
        float values[COUNT_MAX] = {0};
        for (uint32_t p = 0; p < PIXELS; p++) /* the second class has none */
            values[taps + 1 + p] = p % 2 ? -huge : huge * (1 + 1e-6f * (float)p);
        step_from(&settings, values, moved);
        cr_assert(le(dbl, length_of(moved, settings.model.parameters), clip * (1 + 1e-5)),
            "%s, 2^%u", layers, i / 2);
        sgp_dataset_destroy(row);
    }
}

/* The gradients of a row are kept if they are smaller than its delta, and else computed twice. */
Test(private_step, huge_weights_that_cancel_over_pixels_make_no_gradient)
{
    cancel_over_pixels("input 1x4x1, conv 1 1x1, dense 2", 1);
    cancel_over_pixels("input 1x4x1, conv 1 4x1 tanh, dense 2", 4);
}

static double length_moved(float feature, uint32_t label, double clip)
{
    enum { COUNT = 2 * 2 + 2 };
    const float features[] = {feature, feature};
    double moved[COUNT];
    struct sgp_dataset *row = NULL;
    cr_assert(eq(int, sgp_dataset_create_memory(features, &label, NULL, 1, 2, 2, 1, &row), 0));
    struct sgp_learner_settings settings = settings_of("dense 2", SGP_LOSS_CROSS_ENTROPY, row, 1);
    settings.schedule.learning_rate = 1 / clip;
    settings.privacy.clip = clip;
    step_once(&settings, 1, moved);
    sgp_dataset_destroy(row);
    return length_of(moved, COUNT) * clip;
}

/* A factor that float32 cannot hold to all digits would not shorten the gradient enough. One of the
 * two labels is wrong, and has a gradient. */
Test(private_step, no_gradient_is_too_long_to_be_clipped)
{
    const double clip = 1e-6;
    for (float feature = 1e30F; feature < 3e38F; feature *= 1.3F)
        for (uint32_t label = 0; label < 2; label++)
            cr_assert(le(dbl, length_moved(feature, label, clip), clip * (1 + 1e-5)), "%g",
                (double)feature);
}

/* Nor would the factor of a row in a large batch. The other rows have no gradient: the class that
 * they are of is certain. */
Test(private_step, no_gradient_is_too_long_to_be_clipped_in_a_large_batch)
{
    enum { ROWS = 4000, COUNT = 2 * 2 + 2 };
    static float features[ROWS * 2];
    static uint32_t labels[ROWS] = {1};
    const float values[COUNT] = {0, 0, 0, 0, 200, 0};
    const double clip = 1e-6;
    for (float feature = 1e26F; feature < 3e38F; feature *= 1.3F) {
        struct sgp_dataset *rows = NULL;
        double moved[COUNT];
        features[0] = features[1] = feature;
        cr_assert(
            eq(int, sgp_dataset_create_memory(features, labels, NULL, ROWS, 2, 2, 1, &rows), 0));
        struct sgp_learner_settings settings =
            settings_of("dense 2", SGP_LOSS_CROSS_ENTROPY, rows, ROWS);
        settings.schedule.learning_rate = ROWS / clip;
        settings.privacy.clip = clip;
        step_from(&settings, values, moved);
        sgp_dataset_destroy(rows);
        cr_assert(le(dbl, length_of(moved, COUNT), 1 + 1e-5), "%g", (double)feature);
    }
}

static void refuse(
    const char *layers, void (*change)(struct sgp_learner_settings *), const char *word)
{
    struct sgp_dataset *rows = clusters(10, 1);
    struct sgp_learner_settings settings = settings_of(layers, SGP_LOSS_CROSS_ENTROPY, rows, 5);
    struct sgp_error error = {0};
    uint64_t bytes;
    settings.privacy.clip = 1;
    if (change)
        change(&settings);
    cr_assert(eq(int, sgp_learner_check(&settings, &error, &bytes), SGP_E_CONFIG));
    cr_assert(strstr(error.text, word) != NULL, "%s", error.text);
    sgp_dataset_destroy(rows);
}

static void keep_local(struct sgp_learner_settings *settings)
{
    cr_assert(eq(int, sgp_model_set_local(&settings->model, "head", NULL), 0));
}

static void leave_noise_out(struct sgp_learner_settings *settings)
{
    settings->optimizer = (struct sgp_optimizer_settings){.kind = SGP_OPTIMIZER_ADAM,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .epsilon = 1e-8,
        .noise_fraction = 0.25};
}

static void grow(struct sgp_learner_settings *settings)
{
    settings->schedule = growing;
}

Test(private_step, what_would_tell_of_rows_is_refused)
{
    refuse("dense 4, norm batch, dense 3", NULL,
        "layer 2 is norm batch, in which each row changes the gradients of all others");
    refuse("dense 4 relu, dense 3", keep_local, "local");
    refuse("dense 3", leave_noise_out, "noise = node");
    refuse("dense 3", grow, "growing batch");
}

/* ---- the checks, and plants ---- */

enum { COLUMNS = 20, VALUES = 2 * COLUMNS + 2, TABLE = 300, STEPS = 400 };
#define CLIP 0.1

enum plant {
    SOUND,
    HALF_THE_NOISE,
    NOISE_OF_THE_MEAN,
    AGREED_SEED,
    NO_CLIPPING,
    BIAS_LEFT_OUT,
    FIXED_ORDER,
    LEARNER
};
static const char *const plants[] = {"sound", "half the noise", "noise of the mean", "agreed seed",
    "no clipping", "bias left out of the norm", "fixed order", "the learner"};

struct table {
    float features[TABLE * COLUMNS];
    uint32_t labels[TABLE];
    uint32_t rows, batch;
    double noise;
    double rate; /* of the learner */
    uint8_t key;
};

/* Fill sums[0..steps) with what a node tells: the noisy sum of each step. */
static void plain_sums(
    enum plant plant, const struct table *table, double (*sums)[VALUES], uint32_t steps)
{
    struct sgp_random random, agreed;
    const double chance = (double)table->batch / table->rows;
    sgp_random_init(&random, table->key, 1);
    sgp_random_init(&agreed, 12345, 1);
    for (uint32_t s = 0; s < steps; s++) {
        double *sum = sums[s];
        memset(sum, 0, sizeof sums[s]);
        for (uint32_t r = 0; r < table->rows; r++) {
            const float *row = table->features + (size_t)r * COLUMNS;
            double square = plant == BIAS_LEFT_OUT ? 0 : 1, delta[2];
            if (plant == FIXED_ORDER ? r >= table->batch : sgp_random_double(&random) >= chance)
                continue;
            for (uint32_t f = 0; f < COLUMNS; f++)
                square += (double)row[f] * (double)row[f];
            for (uint32_t c = 0; c < 2; c++)
                delta[c] = c == table->labels[r] ? -0.5 : 0.5;
            double length = sqrt(0.5 * square);
            double factor = plant == NO_CLIPPING || length <= CLIP ? 1 : CLIP / length;
            for (uint32_t c = 0; c < 2; c++) {
                for (uint32_t f = 0; f < COLUMNS; f++)
                    sum[c * COLUMNS + f] += factor * delta[c] * (double)row[f];
                sum[2 * COLUMNS + c] += factor * delta[c];
            }
        }
        double deviation = table->noise * CLIP * (plant == HALF_THE_NOISE ? 0.5 : 1) /
                           (plant == NOISE_OF_THE_MEAN ? sqrt(table->batch) : 1);
        for (uint32_t i = 0; i < VALUES; i++)
            sum[i] += deviation * sgp_random_normal(plant == AGREED_SEED ? &agreed : &random);
    }
}

/* The same of the learner, from what its steps change in x. */
static void learner_sums(const struct table *table, double (*sums)[VALUES], uint32_t steps)
{
    struct sgp_dataset *rows = NULL;
    cr_assert(eq(int,
        sgp_dataset_create_memory(
            table->features, table->labels, NULL, table->rows, COLUMNS, 2, 1, &rows),
        0));
    struct sgp_learner_settings settings =
        settings_of("dense 2", SGP_LOSS_CROSS_ENTROPY, rows, table->batch);
    settings.schedule.learning_rate = table->rate;
    settings.privacy =
        (struct sgp_learner_privacy){.clip = CLIP, .noise = table->noise, .key = {table->key}};
    struct sgp_trainer *trainer = create(&settings);
    float before[VALUES];
    for (uint32_t s = 0; s < steps; s++) {
        memcpy(before, values_of(trainer), sizeof before);
        (void)train(trainer, 1, 1);
        for (uint32_t i = 0; i < VALUES; i++)
            sums[s][i] =
                ((double)before[i] - (double)values_of(trainer)[i]) * table->batch / table->rate;
    }
    trainer->methods->destroy(trainer);
    sgp_dataset_destroy(rows);
}

static void tell(
    enum plant plant, const struct table *table, double (*sums)[VALUES], uint32_t steps)
{
    if (plant == LEARNER)
        learner_sums(table, sums, steps);
    else
        plain_sums(plant, table, sums, steps);
}

static void fill(struct table *table)
{
    struct sgp_random random;
    sgp_random_init(&random, 2, 0);
    *table = (struct table){.rows = TABLE, .batch = TABLE / 10, .rate = 0.01};
    for (uint32_t i = 0; i < TABLE * COLUMNS; i++)
        table->features[i] = (float)sgp_random_normal(&random);
    for (uint32_t f = 0; f < COLUMNS; f++) {
        table->features[f] = 0; /* a row whose gradient is that of the biases */
        table->features[COLUMNS + f] *= 100;
    }
    for (uint32_t r = 0; r < TABLE; r++)
        table->labels[r] = (uint32_t)sgp_random_below(&random, 2);
}

static double sums[STEPS][VALUES], other[STEPS][VALUES];

/* No row alone may move the sum further than the clipping length. */
static bool sensitivity_is_bounded(enum plant plant)
{
    struct table all, one;
    double longest = 0;
    fill(&all);
    for (uint32_t r = 0; r < TABLE; r++) {
        one = (struct table){.rows = 1, .batch = 1, .rate = 0.01, .labels = {all.labels[r]}};
        memcpy(one.features, all.features + (size_t)r * COLUMNS, COLUMNS * sizeof *one.features);
        tell(plant, &one, sums, 1);
        longest = fmax(longest, length_of(sums[0], VALUES));
    }
    return longest <= CLIP * (1 + 1e-4); /* x is float32, and the step is a difference of it */
}

/* Without features the weights' sums are noise alone. */
static bool noise_is_of_its_size(enum plant plant)
{
    struct table table;
    double square = 0;
    const double count = STEPS * 2.0 * COLUMNS;
    fill(&table);
    memset(table.features, 0, sizeof table.features);
    table.noise = 1;
    table.key = 7;
    tell(plant, &table, sums, STEPS);
    for (uint32_t s = 0; s < STEPS; s++)
        for (uint32_t i = 0; i < 2 * COLUMNS; i++)
            square += sums[s][i] * sums[s][i];
    return fabs(sqrt(square / count) / CLIP - 1) < 3 * 1.96 / sqrt(2 * count);
}

/* Two nodes of one seed must not have one noise. */
static bool noise_is_secret(enum plant plant)
{
    struct table table;
    double product = 0, a = 0, b = 0;
    fill(&table);
    memset(table.features, 0, sizeof table.features);
    table.noise = 1;
    table.key = 7;
    tell(plant, &table, sums, 5);
    table.key = 8;
    tell(plant, &table, other, 5);
    for (uint32_t s = 0; s < 5; s++)
        for (uint32_t i = 0; i < 2 * COLUMNS; i++) {
            product += sums[s][i] * other[s][i];
            a += sums[s][i] * sums[s][i];
            b += other[s][i] * other[s][i];
        }
    return fabs(product) / sqrt(a * b) < 0.5;
}

/* Rows that are all alike tell by the length of the sum how many were drawn. */
static bool batches_are_by_lot(enum plant plant)
{
    struct table table;
    double sum = 0, square = 0;
    fill(&table);
    for (uint32_t r = 1; r < TABLE; r++) {
        memcpy(table.features + (size_t)r * COLUMNS, table.features + 2 * COLUMNS,
            COLUMNS * sizeof *table.features);
        table.labels[r] = table.labels[2];
    }
    memcpy(table.features, table.features + 2 * COLUMNS, COLUMNS * sizeof *table.features);
    table.labels[0] = table.labels[2];
    table.key = 9;
    tell(plant, &table, sums, STEPS);
    for (uint32_t s = 0; s < STEPS; s++) {
        double drawn = length_of(sums[s], VALUES) / CLIP;
        sum += drawn / STEPS;
        square += drawn * drawn / STEPS;
    }
    double ratio = (square - sum * sum) / (TABLE * 0.1 * 0.9);
    return plant == NO_CLIPPING || (ratio > 0.7 && ratio < 1.35 && fabs(sum - TABLE * 0.1) < 1.5);
}

/* The checks that fail: 1, 2, 4 and 8. */
static unsigned failures(enum plant plant)
{
    return (unsigned)!sensitivity_is_bounded(plant) | (unsigned)!noise_is_of_its_size(plant) << 1 |
           (unsigned)!noise_is_secret(plant) << 2 | (unsigned)!batches_are_by_lot(plant) << 3;
}

Test(private_step, checks_pass_the_learner_and_fail_each_plant)
{
    static const unsigned expected[] = {[SOUND] = 0,
        [HALF_THE_NOISE] = 2,
        [NOISE_OF_THE_MEAN] = 2,
        [AGREED_SEED] = 4,
        [NO_CLIPPING] = 1,
        [BIAS_LEFT_OUT] = 1,
        [FIXED_ORDER] = 8,
        [LEARNER] = 0};
    for (enum plant plant = SOUND; plant <= LEARNER; plant++)
        cr_assert(eq(u32, failures(plant), expected[plant]), "%s", plants[plant]);
}

/* A step draws more rows than a pass holds, sooner or later, and none: both are steps like others. */
Test(private_step, more_rows_than_a_pass_and_none)
{
    enum { MANY = 20000 };
    static struct table table;
    static double told[MANY][VALUES];
    unsigned none = 0, above = 0;
    fill(&table);
    for (uint32_t r = 0; r < TABLE; r++) {
        memcpy(table.features + (size_t)r * COLUMNS, table.features + 2 * COLUMNS,
            COLUMNS * sizeof *table.features);
        table.labels[r] = table.labels[2];
    }
    table.rows = 40;
    table.batch = 1; /* a pass holds 5 rows */
    table.rate =
        1e-4; /* so that the rows are not learnt: their gradients stay above the clipping length */
    table.key = 3;
    learner_sums(&table, told, MANY);
    for (uint32_t s = 0; s < MANY; s++) {
        double drawn = length_of(told[s], VALUES) / CLIP;
        cr_assert(lt(dbl, fabs(drawn - round(drawn)), 0.1), "step %u drew %g", s, drawn);
        none += round(drawn) == 0;
        above += round(drawn) > 5;
    }
    cr_assert(epsilon_eq(dbl, none / (double)MANY, pow(1 - 1 / 40.0, 40), 0.015));
    cr_assert(above > 0 && above < MANY / 200, "%u", above);
}

Test(private_step, no_restart_and_no_checkpoint_repeats_the_noise)
{
    struct table table;
    fill(&table);
    table.noise = 1;
    table.key = 1;
    learner_sums(&table, sums, 1);
    table.key = 2; /* the process after a restart draws another key */
    learner_sums(&table, other, 1);
    cr_assert(gt(dbl, fabs(sums[0][0] - other[0][0]), 1e-6));
    struct sgp_dataset *rows = clusters(30, 1);
    struct sgp_learner_settings settings = settings_of("dense 3", SGP_LOSS_CROSS_ENTROPY, rows, 3);
    settings.privacy = (struct sgp_learner_privacy){.clip = 1, .noise = 1};
    struct sgp_trainer *trainer = create(&settings);
    struct sgp_trainer_state state = {0};
    float kept[21], first[21];
    memcpy(kept, values_of(trainer), sizeof kept);
    (void)train(trainer, 1, 1);
    memcpy(first, values_of(trainer), sizeof first);
    trainer->methods->state(trainer, &state);
    state.x = kept;
    state.counters[0].value = 0; /* the position before the step */
    trainer->methods->resume(trainer, &state);
    (void)train(trainer, 1, 1);
    cr_assert(ne(flt, first[0], values_of(trainer)[0]));
    trainer->methods->destroy(trainer);
    sgp_dataset_destroy(rows);
}

/* A place in the pass decides what dropout drops, and another row changes the places. So the agreed seed must not say it. */
Test(private_step, dropped_values_are_secret)
{
    double first[21], again[21], third[21];
    struct sgp_dataset *rows = clusters(30, 1);
    struct sgp_learner_settings settings =
        settings_of("dropout 0.5, dense 3", SGP_LOSS_CROSS_ENTROPY, rows, 30);
    settings.privacy = (struct sgp_learner_privacy){.clip = 1, .key = {1}};
    step_once(&settings, 1, first);
    step_once(&settings, 1, again);
    settings.privacy.key[0] = 2;
    step_once(&settings, 1, third);
    cr_assert(eq(int, memcmp(first, again, sizeof first), 0), "one key gives one step");
    cr_assert(gt(dbl, fabs(first[0] - third[0]), 1e-6));
    sgp_dataset_destroy(rows);
}

/* ---- the noise ---- */

Test(private_step, noise_is_normal)
{
    enum { COUNT = 1000000 };
    static float values[COUNT];
    const uint8_t key[SGP_NOISE_KEY_BYTES] = {5};
    struct sgp_noise *noise = NULL;
    double sum = 0, square = 0, fourth = 0, most = 0;
    unsigned beyond = 0;
    cr_assert(eq(int, sgp_noise_create(key, &noise), 0));
    sgp_noise_add(noise, values, 2, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        double x = (double)values[i] / 2;
        sum += x;
        square += x * x;
        fourth += x * x * x * x;
        most = fmax(most, fabs(x));
        beyond += fabs(x) > 3;
    }
    cr_assert(lt(dbl, fabs(sum / COUNT), 4e-3));
    cr_assert(epsilon_eq(dbl, square / COUNT, 1, 6e-3));
    cr_assert(epsilon_eq(dbl, fourth / COUNT, 3, 0.05));
    cr_assert(epsilon_eq(dbl, beyond / (double)COUNT, 0.0026998, 2.5e-4));
    cr_assert(most > 4.2 && most < 6.5, "%g", most);
    sgp_noise_destroy(noise);
}
