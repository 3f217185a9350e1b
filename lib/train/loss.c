/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of losses. For each loss it has the word, the targets, the function over a row,
 * and the meaning of its outputs. Any thread; no state. */
#include "loss.h"

#include "target_scale.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

const struct sgp_loss_settings sgp_loss_defaults = {.huber_delta = 1.0};

/* One row of a batch. */
struct row {
    const struct sgp_loss_settings *settings;
    float *delta;         /* out: the gradient, times `share` */
    const float *outputs; /* `columns` values, as in the next array */
    const float *values;  /* NULL: the label is the target */
    size_t label;
    size_t columns;
    float share; /* weight of a row in the mean of the batch */
};

struct loss {
    const char *name;
    unsigned takes; /* enum sgp_loss_target */
    unsigned uses;  /* enum sgp_loss_use */
    const char *activation;
    double (*row)(const struct row *row); /* the loss; fills delta */
    void (*predict)(float *predictions, const float *outputs, size_t columns);
};

static float weight_of(const struct sgp_loss_settings *settings, size_t column)
{
    return settings->class_weights ? settings->class_weights[column] : 1.0f;
}

/* The target value of one output. */
static float target_of(const struct row *row, size_t column)
{
    return row->values ? row->values[column] : (column == row->label ? 1.0f : 0.0f);
}

/* ---- cross-entropy ---- */

/* Softmax of one row. Returns the log of the sum of the exponentials, which is the loss plus the
 * label's logit. The greatest logit is subtracted first, so that no exponential overflows. */
static double softmax(float *probabilities, const float *logits, size_t columns)
{
    float peak = logits[sgp_measures_greatest(logits, (uint32_t)columns)];
    float sum = 0.0f;
    for (size_t c = 0; c < columns; c++) {
        probabilities[c] = expf(logits[c] - peak);
        sum += probabilities[c];
    }
    for (size_t c = 0; c < columns; c++)
        probabilities[c] /= sum;
    return (double)peak + log((double)sum);
}

/* With smoothing, m[c] = w[c] q[c] is the weight of class c, and the gradient is p[c] * (sum of m)
 * - m[c]. */
static double smoothed_row(const struct row *row, double log_sum)
{
    const double rest = row->settings->label_smoothing / (double)row->columns;
    double total = 0.0;
    double loss = 0.0;
    for (size_t c = 0; c < row->columns; c++) {
        double part = c == row->label ? 1.0 - row->settings->label_smoothing + rest : rest;
        double counted = (double)weight_of(row->settings, c) * part;
        total += counted;
        loss += counted * (log_sum - (double)row->outputs[c]);
    }
    for (size_t c = 0; c < row->columns; c++) {
        double part = c == row->label ? 1.0 - row->settings->label_smoothing + rest : rest;
        double counted = (double)weight_of(row->settings, c) * part;
        row->delta[c] = row->share * (float)((double)row->delta[c] * total - counted);
    }
    return loss;
}

static double cross_entropy_row(const struct row *row)
{
    double log_sum = softmax(row->delta, row->outputs, row->columns);
    if (row->settings->label_smoothing > 0.0)
        return smoothed_row(row, log_sum);
    const float weight = weight_of(row->settings, row->label);
    const float factor = row->share * weight;
    row->delta[row->label] -= 1.0f;
    for (size_t c = 0; c < row->columns; c++)
        row->delta[c] *= factor;
    return (double)weight * (log_sum - (double)row->outputs[row->label]);
}

static void softmax_predict(float *predictions, const float *outputs, size_t columns)
{
    (void)softmax(predictions, outputs, columns);
}

/* ---- mse and huber ---- */

static double squared_row(const struct row *row)
{
    double sum = 0.0;
    float factor = 2.0f * row->share / (float)row->columns;
    for (size_t c = 0; c < row->columns; c++) {
        float difference = row->outputs[c] - target_of(row, c);
        sum += (double)difference * (double)difference;
        row->delta[c] = factor * difference;
    }
    return sum / (double)row->columns;
}

/* The comparisons let a NaN pass into the gradient and into the sum. */
static double huber_row(const struct row *row)
{
    const double limit = row->settings->huber_delta;
    double sum = 0.0;
    float factor = row->share / (float)row->columns;
    for (size_t c = 0; c < row->columns; c++) {
        double difference = (double)row->outputs[c] - (double)target_of(row, c);
        double size = fabs(difference);
        sum += size <= limit ? 0.5 * difference * difference : limit * (size - 0.5 * limit);
        double slope = difference > limit ? limit : difference < -limit ? -limit : difference;
        row->delta[c] = factor * (float)slope;
    }
    return sum / (double)row->columns;
}

static void plain_predict(float *predictions, const float *outputs, size_t columns)
{
    memmove(predictions, outputs, columns * sizeof *predictions);
}

/* ---- binary cross-entropy ---- */

/* 1 / (1 + exp(-x)). If the exponential overflows to infinity, the quotient is still correct. */
static float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* -log of the probability of a 1 is softplus(-z), and of a 0 softplus(z). softplus(z) = log(1 +
 * exp(z)) = max(z, 0) + log1p(exp(-|z|)) does not overflow. The slope of each side is a sigmoid, so
 * that neither cancels. */
static double binary_row(const struct row *row)
{
    double sum = 0.0;
    float factor = row->share / (float)row->columns;
    for (size_t c = 0; c < row->columns; c++) {
        float z = row->outputs[c];
        float yes = weight_of(row->settings, c) * row->values[c];
        float no = 1.0f - row->values[c];
        double rest = log1p(exp(-fabs((double)z)));
        sum += (double)yes * (rest + fmax(-(double)z, 0.0)) +
               (double)no * (rest + fmax((double)z, 0.0));
        row->delta[c] = factor * (no * sigmoid(z) - yes * sigmoid(-z));
    }
    return sum / (double)row->columns;
}

static void sigmoid_predict(float *predictions, const float *outputs, size_t columns)
{
    for (size_t c = 0; c < columns; c++)
        predictions[c] = sigmoid(outputs[c]);
}

/* ---- the table ---- */

static const struct loss losses[] = {
    [SGP_LOSS_CROSS_ENTROPY] = {"cross-entropy", SGP_LOSS_TAKES_CLASS,
        SGP_LOSS_USES_SMOOTHING | SGP_LOSS_USES_WEIGHTS, "softmax", cross_entropy_row,
        softmax_predict},
    [SGP_LOSS_MSE] = {"mse", SGP_LOSS_TAKES_CLASS | SGP_LOSS_TAKES_NUMBERS, SGP_LOSS_USES_SCALES,
        NULL, squared_row, plain_predict},
    [SGP_LOSS_HUBER] = {"huber", SGP_LOSS_TAKES_CLASS | SGP_LOSS_TAKES_NUMBERS,
        SGP_LOSS_USES_DELTA | SGP_LOSS_USES_SCALES, NULL, huber_row, plain_predict},
    [SGP_LOSS_BINARY_CROSS_ENTROPY] = {"binary-cross-entropy", SGP_LOSS_TAKES_BITS,
        SGP_LOSS_USES_WEIGHTS, "sigmoid", binary_row, sigmoid_predict},
};

#define LOSS_COUNT (sizeof losses / sizeof losses[0])

static const struct loss *find(enum sgp_loss loss)
{
    sgp_assert((size_t)loss > 0 && (size_t)loss < LOSS_COUNT);
    return &losses[loss];
}

const char *sgp_loss_name(enum sgp_loss loss)
{
    return find(loss)->name;
}

enum sgp_loss sgp_loss_find(const char *name)
{
    for (size_t i = 1; i < LOSS_COUNT; i++)
        if (strcmp(losses[i].name, name) == 0)
            return (enum sgp_loss)i;
    return 0;
}

unsigned sgp_loss_uses(enum sgp_loss loss)
{
    return find(loss)->uses;
}

unsigned sgp_loss_takes(enum sgp_loss loss)
{
    return find(loss)->takes;
}

const char *sgp_loss_activation(enum sgp_loss loss)
{
    return find(loss)->activation;
}

enum sgp_measures_kind sgp_loss_measures(enum sgp_loss loss, bool classes)
{
    if (find(loss)->takes & SGP_LOSS_TAKES_BITS)
        return SGP_MEASURES_BITS;
    if (!classes)
        return SGP_MEASURES_NUMBERS;
    return find(loss)->activation ? SGP_MEASURES_LOGITS : SGP_MEASURES_SCORES;
}

static int check_weights(
    const struct sgp_loss_settings *settings, uint32_t outputs, struct sgp_error *error)
{
    float most = 0.0f;
    if (settings->class_weight_count != outputs)
        return sgp_fail(error, SGP_E_CONFIG,
            "%u class weights, but the model ends in %u outputs; give one weight for each",
            settings->class_weight_count, outputs);
    for (uint32_t i = 0; i < outputs; i++) {
        float weight = settings->class_weights[i];
        if (!(weight >= 0.0f && weight <= (float)SGP_CLASS_WEIGHT_MAX))
            return sgp_fail(error, SGP_E_CONFIG,
                "class weight %u is %g; numbers from 0 to %g would be right", i + 1, (double)weight,
                SGP_CLASS_WEIGHT_MAX);
        most = weight > most ? weight : most;
    }
    return most > 0.0f ? 0
                       : sgp_fail(error, SGP_E_CONFIG,
                             "all class weights are 0, so there is nothing to learn; give at least "
                             "one above 0");
}

static int check_scales(enum sgp_loss loss, const struct sgp_loss_settings *settings,
    uint32_t outputs, struct sgp_error *error)
{
    if (!(find(loss)->uses & SGP_LOSS_USES_SCALES))
        return sgp_fail(error, SGP_E_CONFIG,
            "%s takes no numbers that could be scaled; use loss = mse or huber", find(loss)->name);
    return settings->target_scale_count == outputs
               ? 0
               : sgp_fail(error, SGP_E_CONFIG,
                     "%u label columns are scaled, but the model ends in %u outputs; end the "
                     "layers with 'dense %u'",
                     settings->target_scale_count, outputs, settings->target_scale_count);
}

int sgp_loss_check(enum sgp_loss loss, const struct sgp_loss_settings *settings, uint32_t outputs,
    struct sgp_error *error)
{
    unsigned uses = find(loss)->uses;
    double smoothing = settings->label_smoothing;
    double delta = settings->huber_delta;
    if (uses & SGP_LOSS_USES_SMOOTHING &&
        !(smoothing >= 0.0 && smoothing <= SGP_LABEL_SMOOTHING_MAX))
        return sgp_fail(error, SGP_E_CONFIG,
            "a label smoothing of %g; a number from 0 to %g would be right, 0.1 is usual",
            smoothing, SGP_LABEL_SMOOTHING_MAX);
    if (uses & SGP_LOSS_USES_DELTA &&
        !(delta >= SGP_HUBER_DELTA_MIN && delta <= SGP_HUBER_DELTA_MAX))
        return sgp_fail(error, SGP_E_CONFIG, "a delta of %g; a number from %g to %g would be right",
            delta, SGP_HUBER_DELTA_MIN, SGP_HUBER_DELTA_MAX);
    if (settings->target_scales)
        return check_scales(loss, settings, outputs, error);
    return uses & SGP_LOSS_USES_WEIGHTS && settings->class_weights
               ? check_weights(settings, outputs, error)
               : 0;
}

/* The digest covers text, so that machines of either byte order agree. */
static uint64_t add_number(uint64_t digest, const char *name, double number)
{
    char text[64];
    int length = snprintf(text, sizeof text, "%s=%.17g", name, number);
    return XXH3_64bits_withSeed(text, (size_t)length, digest);
}

uint64_t sgp_loss_digest(enum sgp_loss loss, const struct sgp_loss_settings *settings)
{
    const struct loss *row = find(loss);
    uint64_t digest = XXH3_64bits(row->name, strlen(row->name));
    if (row->uses & SGP_LOSS_USES_SMOOTHING && settings->label_smoothing > 0.0)
        digest = add_number(digest, "label_smoothing", settings->label_smoothing);
    if (row->uses & SGP_LOSS_USES_DELTA)
        digest = add_number(digest, "huber_delta", settings->huber_delta);
    for (uint32_t i = 0; row->uses & SGP_LOSS_USES_WEIGHTS && settings->class_weights &&
                         i < settings->class_weight_count;
         i++)
        digest = add_number(digest, "class_weight", (double)settings->class_weights[i]);
    return digest;
}

/* ---- batches ---- */

static uint64_t correct_bits(const float *outputs, const float *values, size_t columns)
{
    uint64_t correct = 0;
    for (size_t c = 0; c < columns; c++)
        correct += (outputs[c] > 0.0f) == (values[c] > 0.5f);
    return correct;
}

struct sgp_loss_sum sgp_loss_batch(enum sgp_loss loss, const struct sgp_loss_settings *settings,
    float *delta, const float *outputs, const uint32_t *labels, const float *values, size_t rows,
    size_t columns)
{
    const struct loss *table = find(loss);
    const bool bits = table->takes & SGP_LOSS_TAKES_BITS;
    sgp_assert(labels ? !values && table->takes & SGP_LOSS_TAKES_CLASS
                      : values && table->takes & (SGP_LOSS_TAKES_NUMBERS | SGP_LOSS_TAKES_BITS));
    struct sgp_loss_sum sum = {.judged = labels ? rows : bits ? rows * columns : 0};
    struct row row = {.settings = settings, .columns = columns, .share = 1.0f / (float)rows};
    for (size_t r = 0; r < rows; r++) {
        row.delta = delta + r * columns;
        row.outputs = outputs + r * columns;
        row.values = values ? values + r * columns : NULL;
        row.label = labels ? labels[r] : 0;
        sgp_assert(row.label < columns);
        sum.loss += table->row(&row);
        if (labels)
            sum.correct += sgp_measures_greatest(row.outputs, (uint32_t)columns) == row.label;
        else if (bits)
            sum.correct += correct_bits(row.outputs, row.values, columns);
    }
    return sum;
}

/* ---- in the units of the label columns ---- */

static double number_of(const struct sgp_loss_settings *settings, size_t column, float scaled)
{
    return settings->target_scales
               ? sgp_target_scale_number(&settings->target_scales[column], scaled)
               : (double)scaled;
}

static void measure_numbers(struct sgp_measures *measures, const struct sgp_loss_settings *settings,
    const float *outputs, const float *values)
{
    for (uint32_t c = 0; c < measures->outputs; c++)
        sgp_measures_add_number(
            measures, c, number_of(settings, c, outputs[c]), number_of(settings, c, values[c]));
}

void sgp_loss_measure(struct sgp_measures *measures, const struct sgp_loss_settings *settings,
    const float *outputs, const uint32_t *labels, const float *values, size_t rows)
{
    const size_t columns = measures->outputs;
    for (size_t r = 0; labels && r < rows; r++)
        sgp_measures_add_label(measures, outputs + r * columns, labels[r]);
    for (size_t r = 0; values && r < rows; r++)
        if (measures->kind == SGP_MEASURES_NUMBERS)
            measure_numbers(measures, settings, outputs + r * columns, values + r * columns);
        else
            sgp_measures_add_values(measures, outputs + r * columns, values + r * columns);
}

void sgp_loss_predict(enum sgp_loss loss, const struct sgp_loss_settings *settings,
    float *predictions, const float *outputs, size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r++) {
        float *row = predictions + r * columns;
        find(loss)->predict(row, outputs + r * columns, columns);
        for (size_t c = 0; settings->target_scales && c < columns; c++)
            row[c] = sgp_target_scale_restore(&settings->target_scales[c], row[c]);
    }
}

/* ---- outputs that are all zero ---- */

/* Sums by class, because rows of labels differ only in their class. */
static double zeros_of_labels(const struct loss *loss, const struct row *row,
    const struct sgp_dataset *dataset, uint64_t *counts)
{
    double sum = 0.0;
    struct row one = *row;
    for (uint64_t r = 0; r < dataset->rows; r++)
        counts[dataset->labels[r]]++;
    for (one.label = 0; one.label < row->columns; one.label++)
        if (counts[one.label] > 0)
            sum += (double)counts[one.label] * loss->row(&one);
    return sum;
}

int sgp_loss_of_zeros(enum sgp_loss loss, const struct sgp_loss_settings *settings,
    const struct sgp_dataset *dataset, double *ret_loss)
{
    const size_t columns = dataset->classes > 0 ? dataset->classes : dataset->targets;
    float *vectors = calloc(2 * columns, sizeof *vectors);
    uint64_t *counts = calloc(columns, sizeof *counts);
    struct row row = {.settings = settings,
        .delta = vectors,
        .outputs = vectors ? vectors + columns : NULL,
        .columns = columns,
        .share = 1.0f};
    double sum = 0.0;
    if (vectors && counts && dataset->labels)
        sum = zeros_of_labels(find(loss), &row, dataset, counts);
    for (uint64_t r = 0; vectors && counts && dataset->values && r < dataset->rows; r++) {
        row.values = dataset->values + r * columns;
        sum += find(loss)->row(&row);
    }
    free(vectors);
    free(counts);
    if (!vectors || !counts)
        return -ENOMEM;
    *ret_loss = sum / (double)dataset->rows;
    return 0;
}
