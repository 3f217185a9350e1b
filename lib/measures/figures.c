/* SPDX-License-Identifier: Apache-2.0 */
/* Ratios of the counts and sums of measures; see sgp/measures.h. */
#include "wide.h"

#include <math.h>

/* count / all; 0 for 0 / 0 */
static double ratio(uint64_t count, uint64_t all)
{
    return all > 0 ? (double)count / (double)all : 0;
}

static bool has_probabilities(const struct sgp_measures *measures)
{
    return measures->kind == SGP_MEASURES_LOGITS || measures->kind == SGP_MEASURES_BITS;
}

/* ---- classes ---- */

/* What is judged: a row, or each of its bits. */
static uint64_t judged(const struct sgp_measures *measures)
{
    return measures->kind == SGP_MEASURES_BITS ? measures->rows * measures->outputs
                                               : measures->rows;
}

bool sgp_measures_accuracy(const struct sgp_measures *measures, double *ret_accuracy)
{
    uint64_t correct = 0;
    if (!measures->classes || measures->rows == 0)
        return false;
    for (uint32_t c = 0; c < measures->outputs; c++) {
        const struct sgp_measures_class *class = &measures->classes[c];
        correct += class->correct;
        if (measures->kind == SGP_MEASURES_BITS) /* bits that are 0 and said to be */
            correct += measures->rows + class->correct - class->rows - class->said;
    }
    *ret_accuracy = ratio(correct, judged(measures));
    return true;
}

bool sgp_measures_log_loss(const struct sgp_measures *measures, double *ret_loss)
{
    if (!has_probabilities(measures) || measures->rows == 0)
        return false;
    *ret_loss = sgp_wide_sum(measures->loss) / (double)judged(measures);
    return true;
}

bool sgp_measures_calibration_error(const struct sgp_measures *measures, double *ret_error)
{
    double sum = 0;
    if (!has_probabilities(measures) || measures->rows == 0)
        return false;
    for (uint32_t p = 0; p < SGP_MEASURES_PARTS; p++)
        sum += fabs(sgp_wide_less(measures->parts[p].confidence, measures->parts[p].correct));
    *ret_error = sum / (double)judged(measures);
    return true;
}

bool sgp_measures_confidence(
    const struct sgp_measures *measures, uint32_t part, double *ret_confidence)
{
    if (measures->parts[part].rows == 0)
        return false;
    *ret_confidence =
        sgp_wide_sum(measures->parts[part].confidence) / (double)measures->parts[part].rows;
    return true;
}

double sgp_measures_precision(const struct sgp_measures *measures, uint32_t output)
{
    return ratio(measures->classes[output].correct, measures->classes[output].said);
}

double sgp_measures_recall(const struct sgp_measures *measures, uint32_t output)
{
    return ratio(measures->classes[output].correct, measures->classes[output].rows);
}

double sgp_measures_f1(const struct sgp_measures *measures, uint32_t output)
{
    const struct sgp_measures_class *class = &measures->classes[output];
    return ratio(2 * class->correct, class->said + class->rows);
}

bool sgp_measures_macro_f1(const struct sgp_measures *measures, double *ret_f1)
{
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t c = 0; measures->classes && c < measures->outputs; c++) {
        sum += sgp_measures_f1(measures, c);
        count += measures->classes[c].rows + measures->classes[c].said > 0;
    }
    if (count == 0)
        return false;
    *ret_f1 = sum / count;
    return true;
}

/* The chance is the sum over the bins of own * (others below + others here / 2), over all pairs.
 * Pairs within a bin are the doubt. */
bool sgp_measures_auc(
    const struct sgp_measures *measures, uint32_t output, double *ret_auc, double *ret_bound)
{
    const uint64_t *others =
        measures->bins ? measures->bins + (size_t)output * 2 * SGP_MEASURES_BINS : NULL;
    const uint64_t *own = others ? others + SGP_MEASURES_BINS : NULL;
    double below = 0, all = 0, won = 0, tied = 0;
    for (uint32_t b = 0; others && b < SGP_MEASURES_BINS; b++) {
        won += (double)own[b] * (below + (double)others[b] / 2);
        tied += (double)own[b] * (double)others[b];
        below += (double)others[b];
        all += (double)own[b];
    }
    if (below == 0 || all == 0)
        return false;
    *ret_auc = won / (below * all);
    *ret_bound = tied / (below * all) / 2;
    return true;
}

bool sgp_measures_macro_auc(const struct sgp_measures *measures, double *ret_auc)
{
    double sum = 0, auc, bound;
    uint32_t count = 0;
    for (uint32_t c = 0; measures->classes && c < measures->outputs; c++)
        if (sgp_measures_auc(measures, c, &auc, &bound)) {
            sum += auc;
            count++;
        }
    if (count == 0)
        return false;
    *ret_auc = sum / count;
    return true;
}

/* ---- numbers ---- */

typedef bool figure(const struct sgp_measures *measures, const struct sgp_measures_number *number,
    double *ret_value);

static bool r2_of(const struct sgp_measures *measures, const struct sgp_measures_number *number,
    double *ret_value)
{
    const double deviations = sgp_wide_variance(measures->rows, number->sum, number->squares);
    if (!(deviations > 0))
        return false;
    *ret_value = 1 - sgp_wide_squares(number->error_squares) * (double)measures->rows / deviations;
    return true;
}

static bool absolute_of(const struct sgp_measures *measures,
    const struct sgp_measures_number *number, double *ret_value)
{
    *ret_value = sgp_wide_sum(number->error_sum) / (double)measures->rows;
    return true;
}

static bool squared_of(const struct sgp_measures *measures,
    const struct sgp_measures_number *number, double *ret_value)
{
    *ret_value = sgp_wide_squares(number->error_squares) / (double)measures->rows;
    return true;
}

/* A figure of one column, or the mean over all. */
static bool take(
    const struct sgp_measures *measures, uint32_t output, figure *of, double *ret_value)
{
    const bool all = output == measures->outputs;
    double sum = 0, value;
    if (!measures->numbers || measures->rows == 0)
        return false;
    for (uint32_t c = all ? 0 : output; c < (all ? measures->outputs : output + 1); c++) {
        if (!of(measures, &measures->numbers[c], &value))
            return false;
        sum += value;
    }
    *ret_value = all ? sum / measures->outputs : sum;
    return true;
}

bool sgp_measures_r2(const struct sgp_measures *measures, uint32_t output, double *ret_r2)
{
    return take(measures, output, r2_of, ret_r2);
}

bool sgp_measures_absolute_error(
    const struct sgp_measures *measures, uint32_t output, double *ret_error)
{
    return take(measures, output, absolute_of, ret_error);
}

bool sgp_measures_squared_error(
    const struct sgp_measures *measures, uint32_t output, double *ret_error)
{
    return take(measures, output, squared_of, ret_error);
}
