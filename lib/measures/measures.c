/* SPDX-License-Identifier: Apache-2.0 */
/* Adds rows to measures, and measures to measures; see sgp/measures.h. */
#include "wide.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* ---- life ---- */

static bool is_kept(enum sgp_measures_kind kind, uint32_t outputs)
{
    return kind != SGP_MEASURES_NUMBERS && outputs <= SGP_MEASURES_CLASSES_MAX;
}

uint64_t sgp_measures_bytes(enum sgp_measures_kind kind, uint32_t outputs)
{
    const uint64_t counts = 2 * SGP_MEASURES_BINS + (kind != SGP_MEASURES_BITS ? outputs : 0);
    const uint64_t each = kind == SGP_MEASURES_NUMBERS ? sizeof(struct sgp_measures_number)
                                                       : sizeof(struct sgp_measures_class);
    return outputs * (each + (is_kept(kind, outputs) ? counts * sizeof(uint64_t) : 0));
}

int sgp_measures_init(struct sgp_measures *measures, enum sgp_measures_kind kind, uint32_t outputs)
{
    const bool classes = kind != SGP_MEASURES_NUMBERS;
    const bool kept = is_kept(kind, outputs);
    const bool confused = kept && kind != SGP_MEASURES_BITS;
    struct sgp_measures made = {.kind = kind, .outputs = outputs};
    sgp_assert(outputs >= 1);
    if (classes)
        made.classes = calloc(outputs, sizeof *made.classes);
    else
        made.numbers = calloc(outputs, sizeof *made.numbers);
    if (confused)
        made.confusion = calloc((size_t)outputs * outputs, sizeof *made.confusion);
    if (kept)
        made.bins = calloc((size_t)outputs * 2 * SGP_MEASURES_BINS, sizeof *made.bins);
    if ((classes ? !made.classes : !made.numbers) || (confused && !made.confusion) ||
        (kept && !made.bins)) {
        sgp_measures_finish(&made);
        return -ENOMEM;
    }
    *measures = made;
    return 0;
}

void sgp_measures_finish(struct sgp_measures *measures)
{
    free(measures->classes);
    free(measures->confusion);
    free(measures->bins);
    free(measures->numbers);
    *measures = (struct sgp_measures){.rows = 0};
}

/* ---- one row ---- */

/* Count a score of a class, of a row that is of the class or not. */
static void count_score(
    struct sgp_measures *measures, uint32_t output, bool is_of_class, double score)
{
    const double reach = asinh(SGP_MEASURES_FINE * SGP_MEASURES_REACH);
    const double place = (asinh(SGP_MEASURES_FINE * score) / reach + 1) * (SGP_MEASURES_BINS / 2.0);
    const uint32_t bin = (uint32_t)fmin(fmax(place, 0), SGP_MEASURES_BINS - 1.0);
    if (measures->bins)
        measures->bins[((size_t)output * 2 + is_of_class) * SGP_MEASURES_BINS + bin]++;
}

static void count_confidence(struct sgp_measures *measures, double confidence, bool correct)
{
    const double place = floor(confidence * SGP_MEASURES_PARTS);
    struct sgp_measures_part *part =
        &measures->parts[(uint32_t)fmin(place, SGP_MEASURES_PARTS - 1)];
    part->rows++;
    part->correct += correct;
    sgp_wide_add(part->confidence, confidence);
}

uint32_t sgp_measures_greatest(const float *outputs, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (outputs[i] > outputs[best])
            best = i;
    return best;
}

/* The sum of exp(z[c] - z[peak]) over all classes but `peak` and `other`. */
static double rest_of(const float *outputs, uint32_t count, uint32_t peak, uint32_t other)
{
    double rest = 0;
    for (uint32_t c = 0; c < count; c++)
        if (c != peak && c != other)
            rest += exp((double)outputs[c] - (double)outputs[peak]);
    return rest;
}

/* The second greatest output, or `count` if there is one output. */
static uint32_t second(const float *outputs, uint32_t count, uint32_t best)
{
    uint32_t next = count;
    for (uint32_t i = 0; i < count; i++)
        if (i != best && (next == count || outputs[i] > outputs[next]))
            next = i;
    return next;
}

/* The logit of each class against all others: its output less the log of the sum of the others'
 * exponentials. The greatest output among the others is subtracted first, so that nothing
 * overflows. */
static void count_logits(struct sgp_measures *measures, const float *outputs, uint32_t label)
{
    const uint32_t count = measures->outputs;
    const uint32_t best = sgp_measures_greatest(outputs, count),
                   next = second(outputs, count, best);
    const double peak = (double)outputs[best];
    const double rest = rest_of(outputs, count, best, best);
    sgp_wide_add(measures->loss, peak - (double)outputs[label] + log1p(rest));
    count_confidence(measures, 1 / (1 + rest), best == label);
    for (uint32_t c = 0; measures->bins && count > 1 && c < count; c++) {
        const double others =
            c == best ? (double)outputs[next] + log1p(rest_of(outputs, count, next, best))
                      : peak + log1p(fmax(rest - exp((double)outputs[c] - peak), 0));
        count_score(measures, c, c == label, (double)outputs[c] - others);
    }
}

void sgp_measures_add_label(struct sgp_measures *measures, const float *outputs, uint32_t label)
{
    const uint32_t count = measures->outputs, best = sgp_measures_greatest(outputs, count);
    sgp_assert(measures->kind == SGP_MEASURES_LOGITS || measures->kind == SGP_MEASURES_SCORES);
    sgp_assert(label < count);
    measures->rows++;
    measures->classes[label].rows++;
    measures->classes[best].said++;
    measures->classes[label].correct += best == label;
    if (measures->confusion)
        measures->confusion[(size_t)label * count + best]++;
    if (measures->kind == SGP_MEASURES_LOGITS)
        count_logits(measures, outputs, label);
    else
        for (uint32_t c = 0; c < count; c++)
            count_score(measures, c, c == label, (double)outputs[c]);
}

/* -log of the probability of a 1 is softplus(-z), and of a 0 softplus(z); see lib/train/loss.c. */
static void add_bit(struct sgp_measures *measures, uint32_t output, double z, bool one)
{
    struct sgp_measures_class *class = &measures->classes[output];
    const bool said = z > 0;
    class->rows += one;
    class->said += said;
    class->correct += one && said;
    sgp_wide_add(measures->loss, log1p(exp(-fabs(z))) + fmax(one ? -z : z, 0));
    count_confidence(measures, 1 / (1 + exp(-fabs(z))), one == said);
    count_score(measures, output, one, z);
}

static void add_number(struct sgp_measures_number *number, double output, double value)
{
    const double error = output - value;
    sgp_wide_add(number->sum, value);
    sgp_wide_add_square(number->squares, value);
    sgp_wide_add(number->error_sum, fabs(error));
    sgp_wide_add_square(number->error_squares, error);
}

void sgp_measures_add_number(
    struct sgp_measures *measures, uint32_t column, double output, double value)
{
    sgp_assert(measures->kind == SGP_MEASURES_NUMBERS && column < measures->outputs);
    measures->rows += column == 0;
    add_number(&measures->numbers[column], output, value);
}

void sgp_measures_add_values(
    struct sgp_measures *measures, const float *outputs, const float *values)
{
    sgp_assert(measures->kind == SGP_MEASURES_BITS || measures->kind == SGP_MEASURES_NUMBERS);
    measures->rows++;
    for (uint32_t c = 0; c < measures->outputs; c++)
        if (measures->kind == SGP_MEASURES_BITS)
            add_bit(measures, c, (double)outputs[c], values[c] > 0.5f);
        else
            add_number(&measures->numbers[c], (double)outputs[c], (double)values[c]);
}

/* ---- other measures ---- */

static void add_counts(uint64_t *counts, const uint64_t *others, size_t count)
{
    for (size_t i = 0; i < count; i++)
        counts[i] += others[i];
}

static void add_numbers(struct sgp_measures_number *into, const struct sgp_measures_number *from)
{
    sgp_wide_add_limbs(into->sum, from->sum, SGP_WIDE_SUM_LIMBS);
    sgp_wide_add_limbs(into->squares, from->squares, SGP_WIDE_SQUARES_LIMBS);
    sgp_wide_add_limbs(into->error_sum, from->error_sum, SGP_WIDE_SUM_LIMBS);
    sgp_wide_add_limbs(into->error_squares, from->error_squares, SGP_WIDE_SQUARES_LIMBS);
}

void sgp_measures_add(struct sgp_measures *measures, const struct sgp_measures *others)
{
    const size_t outputs = measures->outputs;
    sgp_assert(measures->kind == others->kind && measures->outputs == others->outputs);
    measures->rows += others->rows;
    for (size_t i = 0; measures->classes && i < outputs; i++) {
        measures->classes[i].rows += others->classes[i].rows;
        measures->classes[i].said += others->classes[i].said;
        measures->classes[i].correct += others->classes[i].correct;
    }
    if (measures->confusion)
        add_counts(measures->confusion, others->confusion, outputs * outputs);
    if (measures->bins)
        add_counts(measures->bins, others->bins, outputs * 2 * SGP_MEASURES_BINS);
    for (uint32_t p = 0; p < SGP_MEASURES_PARTS; p++) {
        measures->parts[p].rows += others->parts[p].rows;
        measures->parts[p].correct += others->parts[p].correct;
        sgp_wide_add_limbs(
            measures->parts[p].confidence, others->parts[p].confidence, SGP_WIDE_SUM_LIMBS);
    }
    sgp_wide_add_limbs(measures->loss, others->loss, SGP_WIDE_SUM_LIMBS);
    for (size_t i = 0; measures->numbers && i < outputs; i++)
        add_numbers(&measures->numbers[i], &others->numbers[i]);
}
