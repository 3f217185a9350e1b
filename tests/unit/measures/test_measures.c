/* SPDX-License-Identifier: Apache-2.0 */
/* Measures: known figures, a slow reference, and sums that depend on no order. */
#include "drawn_model.h"
#include "measures/wide.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 400u
#define CLASSES 4u

/* ---- wide sums ---- */

Test(measures, wide_sums_have_no_rounding)
{
    uint32_t sum[SGP_WIDE_SUM_LIMBS] = {0};
    const double numbers[] = {
        1e16, 1, -1e16, 0x1p-149, 3.4e38, -3.4e38, -2, 0x1p-192, 0, -0x1p-149};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sgp_wide_add(sum, numbers[i]);
    cr_assert(eq(dbl, sgp_wide_sum(sum), -1)); /* -1 + 2^-192, rounded to a double */
    sgp_wide_add(sum, 1);
    cr_assert(eq(dbl, sgp_wide_sum(sum), 0x1p-192));
    sgp_wide_add(sum, -0x1p-192);
    cr_assert(eq(dbl, sgp_wide_sum(sum), 0));
    sgp_wide_add(sum, -0.75);
    cr_assert(eq(dbl, sgp_wide_less(sum, 3), -3.75));
}

/* Every double of 53 bits comes back; so does the nearest one of a sum with more bits. */
Test(measures, wide_sums_round_to_the_nearest)
{
    uint64_t state = 1;
    for (int i = 0; i < 2000; i++) {
        uint32_t sum[SGP_WIDE_SUM_LIMBS] = {0}, squares[SGP_WIDE_SQUARES_LIMBS] = {0};
        state = state * 6364136223846793005u + 1442695040888963407u;
        const double one = ldexp((double)(state >> 11), (int)(state % 200) - 150);
        const double other = ldexp((double)(state >> 9 & 0x7ffffffff), (int)(state % 90) - 100);
        sgp_wide_add(sum, i % 2 ? -one : one);
        cr_assert(eq(dbl, sgp_wide_sum(sum), i % 2 ? -one : one));
        sgp_wide_add(sum, i % 2 ? -other : other);
        cr_assert(eq(dbl, sgp_wide_sum(sum), i % 2 ? -(one + other) : one + other));
        sgp_wide_add_square(squares, i % 2 ? -one : one);
        cr_assert(eq(dbl, sgp_wide_squares(squares), one * one));
    }
}

Test(measures, the_variance_beside_a_great_mean_is_exact)
{
    uint32_t sum[SGP_WIDE_SUM_LIMBS] = {0}, squares[SGP_WIDE_SQUARES_LIMBS] = {0};
    for (int i = 0; i < 1000; i++) {
        sgp_wide_add(sum, 1e15 + i % 2);
        sgp_wide_add_square(squares, 1e15 + i % 2);
    }
    cr_assert(eq(dbl, sgp_wide_variance(1000, sum, squares), 250000)); /* n^2 / 4 */
    cr_assert(eq(dbl, sgp_wide_variance(0, sum, squares), 0));         /* no sums of numbers */
}

/* Means and deviations of all magnitudes beside Python's are in tests/system/test_statistics.py. */
Test(measures, means_and_deviations_are_rounded_once)
{
    uint32_t sum[SGP_WIDE_SUM_LIMBS] = {0}, squares[SGP_WIDE_SQUARES_LIMBS] = {0};
    cr_assert(sgp_wide_is_possible(0, sum, squares));
    for (int i = 0; i < 3; i++) {
        sgp_wide_add(sum, i == 0 ? -1 : 0);
        sgp_wide_add_square(squares, i == 0 ? -1 : 0);
    }
    cr_assert(eq(dbl, sgp_wide_mean(3, sum), -1.0 / 3));
    cr_assert(eq(dbl, sgp_wide_deviation(3, sum, squares), sqrt(2.0 / 9)));
    cr_assert(eq(dbl, sgp_wide_mean(((uint64_t)1 << 48) - 1, sum), -1 / 281474976710655.0));
    cr_assert(sgp_wide_is_possible(1, sum, squares));
    cr_assert_not(sgp_wide_is_possible(0, sum, squares));
    sgp_wide_add(sum, -1);
    cr_assert_not(sgp_wide_is_possible(3, sum, squares));
    cr_assert(eq(dbl, sgp_wide_deviation(3, sum, squares), 0));
}

Test(measures, wide_sums_have_one_text)
{
    static const double numbers[] = {0, 1, -1, 0x1p-192, -0x1p-192, 3e38, -3e38, 0x1.8p-100};
    static const char *const wrong[] = {
        "", "-", "-0", "00", "01", "+1", " 1", "1 ", "A", "0x1", "g"};
    uint32_t again[SGP_WIDE_SUM_LIMBS];
    char text[SGP_WIDE_TEXT_BYTES], longest[90];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint32_t sum[SGP_WIDE_SUM_LIMBS] = {0};
        sgp_wide_add(sum, numbers[i]);
        sgp_wide_write(sum, SGP_WIDE_SUM_LIMBS, text);
        cr_assert(sgp_wide_read(text, 88, again, SGP_WIDE_SUM_LIMBS), "%s", text);
        cr_assert(eq(int, memcmp(sum, again, sizeof sum), 0), "%s", text);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_not(sgp_wide_read(wrong[i], 88, again, SGP_WIDE_SUM_LIMBS), "%s", wrong[i]);
    memset(longest, 'f', sizeof longest - 1);
    longest[89] = '\0';
    cr_assert_not(sgp_wide_read(longest, 88, again, SGP_WIDE_SUM_LIMBS));
    cr_assert(sgp_wide_read(longest + 1, 88, again, SGP_WIDE_SUM_LIMBS));
    memset(again, 0xff, sizeof again);
    sgp_wide_write(again, SGP_WIDE_SUM_LIMBS, text);
    cr_assert(eq(str, text, "-1"));
}

/* ---- known figures ---- */

/* A macro, because the figure must be read before its value is. */
#define expect(known, value, expected)                                                             \
    do {                                                                                           \
        cr_assert(known);                                                                          \
        cr_assert(epsilon_eq(dbl, value, expected, 1e-14));                                        \
    } while (0)

Test(measures, classes_by_hand)
{
    struct sgp_measures m;
    double value = 7, bound = 7;
    const float sure = logf(3); /* with two classes: 3/4 */
    cr_assert(eq(int, sgp_measures_init(&m, SGP_MEASURES_LOGITS, 3), 0));
    sgp_measures_add_label(&m, (float[]){sure, 0, -200}, 0);
    sgp_measures_add_label(&m, (float[]){sure, 0, -200}, 1);
    sgp_measures_add_label(&m, (float[]){0, sure, -200}, 1);
    sgp_measures_add_label(&m, (float[]){0, sure, -200}, 1);
    cr_assert(eq(u64, m.rows, 4));
    static const uint64_t confusion[] = {1, 0, 0, 1, 2, 0, 0, 0, 0};
    cr_assert(eq(int, memcmp(m.confusion, confusion, sizeof confusion), 0));
    expect(sgp_measures_accuracy(&m, &value), value, 0.75);
    expect(true, sgp_measures_precision(&m, 0), 0.5);
    expect(true, sgp_measures_recall(&m, 0), 1);
    expect(true, sgp_measures_f1(&m, 0), 2.0 / 3);
    expect(true, sgp_measures_precision(&m, 1), 1);
    expect(true, sgp_measures_recall(&m, 1), 2.0 / 3);
    expect(true, sgp_measures_f1(&m, 2), 0);
    expect(sgp_measures_macro_f1(&m, &value), value, (2.0 / 3 + 0.8) / 2); /* no class 2 */
    cr_assert(sgp_measures_log_loss(&m, &value));
    cr_assert(epsilon_eq(dbl, value, -(3 * log(0.75) + log(0.25)) / 4, 1e-7)); /* float32 logits */
    cr_assert(sgp_measures_calibration_error(&m, &value));
    cr_assert(epsilon_eq(dbl, value, 0, 1e-7)); /* 3 of 4 at 3/4 */
    cr_assert(sgp_measures_confidence(&m, 11, &value));
    cr_assert(epsilon_eq(dbl, value, 0.75, 1e-7));
    cr_assert_not(sgp_measures_confidence(&m, 12, &value));
    /* class 0: its row has the score log 3, as one of three others; the other two are below */
    cr_assert(sgp_measures_auc(&m, 0, &value, &bound));
    expect(true, value, 2.5 / 3);
    expect(true, bound, 0.5 / 3);
    cr_assert_not(sgp_measures_auc(&m, 2, &value, &bound)); /* no row of it */
    expect(sgp_measures_macro_auc(&m, &value), value, 2.5 / 3);
    cr_assert_not(sgp_measures_r2(&m, 0, &value));
    sgp_measures_finish(&m);
}

Test(measures, bits_by_hand)
{
    struct sgp_measures m;
    double value = 7;
    cr_assert(eq(int, sgp_measures_init(&m, SGP_MEASURES_BITS, 2), 0));
    sgp_measures_add_values(&m, (float[]){1, -1}, (float[]){1, 1});
    sgp_measures_add_values(&m, (float[]){-1, 0}, (float[]){0, 0});
    expect(sgp_measures_accuracy(&m, &value), value, 0.75);
    expect(sgp_measures_log_loss(&m, &value), value,
        (2 * log1p(exp(-1)) + log1p(exp(1)) + log(2)) / 4);
    expect(true, sgp_measures_recall(&m, 1), 0);
    expect(true, sgp_measures_f1(&m, 0), 1);
    expect(sgp_measures_macro_f1(&m, &value), value, 0.5);
    sgp_measures_finish(&m);
}

Test(measures, numbers_by_hand)
{
    struct sgp_measures m;
    double value = 7;
    cr_assert(eq(int, sgp_measures_init(&m, SGP_MEASURES_NUMBERS, 2), 0));
    sgp_measures_add_values(&m, (float[]){1, 5}, (float[]){1, 4});
    cr_assert_not(sgp_measures_r2(&m, 0, &value)); /* one row has no deviation */
    sgp_measures_add_values(&m, (float[]){2, 5}, (float[]){2, 4});
    sgp_measures_add_values(&m, (float[]){4, 6}, (float[]){3, 4});
    expect(sgp_measures_r2(&m, 0, &value), value, 0.5);
    cr_assert_not(sgp_measures_r2(&m, 1, &value)); /* a constant column */
    cr_assert_not(sgp_measures_r2(&m, 2, &value));
    expect(sgp_measures_absolute_error(&m, 0, &value), value, 1.0 / 3);
    expect(sgp_measures_absolute_error(&m, 2, &value), value, (1.0 / 3 + 4.0 / 3) / 2);
    expect(sgp_measures_squared_error(&m, 1, &value), value, 2);
    cr_assert_not(sgp_measures_accuracy(&m, &value));
    cr_assert_not(sgp_measures_log_loss(&m, &value));
    cr_assert_not(sgp_measures_macro_f1(&m, &value));
    sgp_measures_finish(&m);
}

Test(measures, no_rows_say_nothing)
{
    static const enum sgp_measures_kind kinds[] = {
        SGP_MEASURES_LOGITS, SGP_MEASURES_SCORES, SGP_MEASURES_BITS, SGP_MEASURES_NUMBERS};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct sgp_measures m;
        double value = 7, bound = 7;
        cr_assert(eq(int, sgp_measures_init(&m, kinds[k], 3), 0));
        cr_assert_not(sgp_measures_accuracy(&m, &value) || sgp_measures_log_loss(&m, &value) ||
                      sgp_measures_calibration_error(&m, &value) ||
                      sgp_measures_macro_f1(&m, &value) || sgp_measures_macro_auc(&m, &value) ||
                      sgp_measures_auc(&m, 0, &value, &bound) || sgp_measures_r2(&m, 3, &value) ||
                      sgp_measures_absolute_error(&m, 0, &value) ||
                      sgp_measures_squared_error(&m, 3, &value));
        cr_assert(eq(dbl, value, 7));
        if (m.classes)
            cr_assert(eq(dbl, sgp_measures_precision(&m, 1) + sgp_measures_recall(&m, 1), 0));
        sgp_measures_finish(&m);
    }
}

Test(measures, extreme_outputs_stay_finite)
{
    struct sgp_measures m;
    double value, bound;
    const float most = 3.4e38f;
    cr_assert(eq(int, sgp_measures_init(&m, SGP_MEASURES_LOGITS, 3), 0));
    sgp_measures_add_label(&m, (float[]){most, -most, 0}, 1);
    sgp_measures_add_label(&m, (float[]){most, most, most}, 2);
    sgp_measures_add_label(&m, (float[]){-most, 1e-45f, -0.0f}, 0);
    cr_assert(sgp_measures_log_loss(&m, &value));
    cr_assert(epsilon_eq(dbl, value, 3 * (double)most / 3, 1e30));
    cr_assert(sgp_measures_calibration_error(&m, &value) && isfinite(value));
    for (uint32_t c = 0; c < 3; c++)
        cr_assert(sgp_measures_auc(&m, c, &value, &bound) && isfinite(value) && isfinite(bound));
    sgp_measures_finish(&m);
    cr_assert(eq(int, sgp_measures_init(&m, SGP_MEASURES_LOGITS, 1), 0)); /* one class alone */
    sgp_measures_add_label(&m, &most, 0);
    expect(sgp_measures_log_loss(&m, &value), value, 0);
    cr_assert_not(sgp_measures_auc(&m, 0, &value, &bound));
    sgp_measures_finish(&m);
    cr_assert(eq(int, sgp_measures_init(&m, SGP_MEASURES_NUMBERS, 1), 0));
    sgp_measures_add_values(&m, &(float){most}, &(float){-most});
    sgp_measures_add_values(&m, &(float){most}, &(float){most});
    cr_assert(sgp_measures_r2(&m, 0, &value));
    cr_assert(epsilon_eq(dbl, value, -1, 1e-15));
    sgp_measures_finish(&m);
}

Test(measures, many_classes_keep_counts_alone)
{
    struct sgp_measures m;
    const uint32_t classes = SGP_MEASURES_CLASSES_MAX + 1;
    float *outputs = calloc(classes, sizeof *outputs);
    double value, bound;
    cr_assert(eq(int, sgp_measures_init(&m, SGP_MEASURES_LOGITS, classes), 0));
    cr_assert(eq(ptr, m.confusion, NULL));
    outputs[7] = 1;
    sgp_measures_add_label(&m, outputs, 7);
    expect(sgp_measures_macro_f1(&m, &value), value, 1);
    cr_assert_not(sgp_measures_auc(&m, 7, &value, &bound));
    sgp_measures_finish(&m);
    free(outputs);
}

/* ---- a slow reference ---- */

struct table {
    float outputs[ROWS][CLASSES];
    uint32_t labels[ROWS];
};

static void fill(struct table *table, double sure)
{
    uint64_t state = 5;
    for (uint32_t r = 0; r < ROWS; r++)
        table->labels[r] = draw_row(&state, sure, CLASSES, table->outputs[r], NULL);
}

static long double logit_of(const float *outputs, uint32_t class)
{
    long double peak = -1e4900L, sum = 0;
    for (uint32_t c = 0; c < CLASSES; c++)
        if (c != class && outputs[c] > peak)
            peak = outputs[c];
    for (uint32_t c = 0; c < CLASSES; c++)
        if (c != class)
            sum += expl(outputs[c] - peak);
    return outputs[class] - peak - logl(sum);
}

/* The chance that a row of the class has a greater logit than another row, pair by pair. */
static double auc_of_pairs(const struct table *table, uint32_t class)
{
    double won = 0, pairs = 0;
    for (uint32_t i = 0; i < ROWS; i++)
        for (uint32_t j = 0; j < ROWS; j++) {
            if (table->labels[i] != class || table->labels[j] == class)
                continue;
            const long double one = logit_of(table->outputs[i], class);
            const long double other = logit_of(table->outputs[j], class);
            won += one > other ? 1 : one == other ? 0.5 : 0;
            pairs++;
        }
    return won / pairs;
}

static double log_loss_of(const struct table *table)
{
    long double loss = 0;
    for (uint32_t r = 0; r < ROWS; r++)
        loss += log1pl(expl(-logit_of(table->outputs[r], table->labels[r])));
    return (double)(loss / ROWS);
}

static double calibration_of(const struct table *table)
{
    double confidence[SGP_MEASURES_PARTS] = {0}, correct[SGP_MEASURES_PARTS] = {0}, error = 0;
    for (uint32_t r = 0; r < ROWS; r++) {
        uint32_t best = 0;
        for (uint32_t c = 1; c < CLASSES; c++)
            best = table->outputs[r][c] > table->outputs[r][best] ? c : best;
        const double sure = (double)(1 / (1 + expl(-logit_of(table->outputs[r], best))));
        const uint32_t part = (uint32_t)fmin(sure * SGP_MEASURES_PARTS, SGP_MEASURES_PARTS - 1);
        confidence[part] += sure;
        correct[part] += best == table->labels[r];
    }
    for (uint32_t p = 0; p < SGP_MEASURES_PARTS; p++)
        error += fabs(confidence[p] - correct[p]);
    return error / ROWS;
}

static void measure(struct sgp_measures *m, const struct table *table, uint32_t first, uint32_t by)
{
    cr_assert(eq(int, sgp_measures_init(m, SGP_MEASURES_LOGITS, CLASSES), 0));
    for (uint32_t r = first; r < ROWS; r += by)
        sgp_measures_add_label(m, table->outputs[r], table->labels[r]);
}

Test(measures, figures_are_those_of_a_slow_reference)
{
    static struct table table;
    static const double sure[] = {0.3, 1, 300};
    for (size_t s = 0; s < sizeof sure / sizeof *sure; s++) {
        struct sgp_measures m;
        double value, bound;
        fill(&table, sure[s]);
        measure(&m, &table, 0, 1);
        cr_assert(sgp_measures_log_loss(&m, &value));
        cr_assert(epsilon_eq(dbl, value / log_loss_of(&table), 1, 1e-13));
        cr_assert(sgp_measures_calibration_error(&m, &value));
        cr_assert(epsilon_eq(dbl, value, calibration_of(&table), 1e-13));
        for (uint32_t c = 0; c < CLASSES; c++) {
            cr_assert(sgp_measures_auc(&m, c, &value, &bound));
            const double exact = auc_of_pairs(&table, c);
            cr_assert(le(dbl, fabs(value - exact), bound + 1e-12));
            cr_assert(lt(dbl, fabs(value - exact), 5e-3), "%g: class %u, off by %g", sure[s], c,
                fabs(value - exact));
        }
        sgp_measures_finish(&m);
    }
}

/* The scores are those of a hardly trained model up to those of a model that is far too sure. */
Test(measures, the_auc_of_many_rows_is_close)
{
    enum { MANY = 20000 };
    static struct scored rows[MANY];
    static const double sure[] = {0.01, 0.1, 1, 30, 1000};
    for (size_t s = 0; s < sizeof sure / sizeof *sure; s++) {
        struct sgp_measures m;
        double value, bound;
        uint64_t state = 3;
        cr_assert(eq(int, sgp_measures_init(&m, SGP_MEASURES_BITS, 1), 0));
        for (uint32_t r = 0; r < MANY; r++) {
            rows[r] = draw_scored(&state, sure[s]);
            sgp_measures_add_values(&m, &rows[r].score, &(float){rows[r].own});
        }
        cr_assert(sgp_measures_auc(&m, 0, &value, &bound));
        cr_assert(
            lt(dbl, fabs(value - auc_of_ranks(rows, MANY)), 1e-4), "%g times as sure", sure[s]);
        sgp_measures_finish(&m);
    }
}

/* All counts of one structure, as bytes. */
static void expect_equal(const struct sgp_measures *one, const struct sgp_measures *other)
{
    cr_assert(eq(u64, one->rows, other->rows));
    cr_assert(eq(int, memcmp(one->classes, other->classes, CLASSES * sizeof *one->classes), 0));
    cr_assert(
        eq(int, memcmp(one->confusion, other->confusion, sizeof(uint64_t) * CLASSES * CLASSES), 0));
    cr_assert(eq(int,
        memcmp(one->bins, other->bins, sizeof(uint64_t) * CLASSES * 2 * SGP_MEASURES_BINS), 0));
    cr_assert(eq(int, memcmp(one->parts, other->parts, sizeof one->parts), 0));
    cr_assert(eq(int, memcmp(one->loss, other->loss, sizeof one->loss), 0));
}

Test(measures, parts_add_up_to_the_same_bits)
{
    static struct table table;
    struct sgp_measures whole;
    fill(&table, 1);
    measure(&whole, &table, 0, 1);
    for (uint32_t nodes = 1; nodes <= 12; nodes += nodes == 1 ? 2 : 3) {
        struct sgp_measures sum, part;
        cr_assert(eq(int, sgp_measures_init(&sum, SGP_MEASURES_LOGITS, CLASSES), 0));
        for (uint32_t n = nodes; n > 0; n--) { /* the last first */
            measure(&part, &table, n - 1, nodes);
            sgp_measures_add(&sum, &part);
            sgp_measures_finish(&part);
        }
        expect_equal(&sum, &whole);
        sgp_measures_finish(&sum);
    }
    sgp_measures_finish(&whole);
}

/* A node with one class, and a node without rows: no figure is lost, and none is invented. */
Test(measures, a_node_of_one_class_and_a_node_without_rows_add_up)
{
    static struct table table;
    struct sgp_measures whole, sum, part;
    double value, bound;
    fill(&table, 1);
    measure(&whole, &table, 0, 1);
    cr_assert(eq(int, sgp_measures_init(&sum, SGP_MEASURES_LOGITS, CLASSES), 0));
    for (uint32_t c = 0; c <= CLASSES; c++) { /* the last has no row */
        cr_assert(eq(int, sgp_measures_init(&part, SGP_MEASURES_LOGITS, CLASSES), 0));
        for (uint32_t r = 0; r < ROWS; r++)
            if (table.labels[r] == c)
                sgp_measures_add_label(&part, table.outputs[r], c);
        cr_assert_not(sgp_measures_auc(&part, 0, &value, &bound));
        cr_assert(eq(int, sgp_measures_accuracy(&part, &value), c < CLASSES));
        sgp_measures_add(&sum, &part);
        sgp_measures_finish(&part);
    }
    expect_equal(&sum, &whole);
    sgp_measures_finish(&sum);
    sgp_measures_finish(&whole);
}
