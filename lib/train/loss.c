/* SPDX-License-Identifier: Apache-2.0 */
/* Losses over the outputs of a batch, with their gradients. Any thread; no state. */
#include "loss.h"

#include <math.h>

static size_t greatest(const float *row, size_t columns)
{
    size_t best = 0;
    for (size_t c = 1; c < columns; c++)
        if (row[c] > row[best])
            best = c;
    return best;
}

/* Softmax of one row; returns log of the sum of the exponentials, which is the loss plus the
 * label's logit. The greatest logit is taken out first, so that no exponential overflows. */
static double softmax_row(float *probabilities, const float *logits, size_t columns)
{
    float peak = logits[greatest(logits, columns)];
    float sum = 0.0f;
    for (size_t c = 0; c < columns; c++) {
        probabilities[c] = expf(logits[c] - peak);
        sum += probabilities[c];
    }
    for (size_t c = 0; c < columns; c++)
        probabilities[c] /= sum;
    return (double)peak + log((double)sum);
}

void sgp_softmax(float *probabilities, const float *logits, size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r++)
        (void)softmax_row(probabilities + r * columns, logits + r * columns, columns);
}

static double cross_entropy_row(
    float *delta, const float *logits, uint32_t label, float per_row, size_t columns)
{
    double loss = softmax_row(delta, logits, columns) - (double)logits[label];
    delta[label] -= 1.0f;
    for (size_t c = 0; c < columns; c++)
        delta[c] *= per_row;
    return loss;
}

/* values NULL: the target is one-hot of label. */
static double squared_row(float *delta, const float *outputs, uint32_t label, const float *values,
    float per_row, size_t columns)
{
    double sum = 0.0;
    float factor = 2.0f * per_row / (float)columns;
    for (size_t c = 0; c < columns; c++) {
        float target = values ? values[c] : (c == label ? 1.0f : 0.0f);
        float difference = outputs[c] - target;
        sum += (double)difference * (double)difference;
        delta[c] = factor * difference;
    }
    return sum / (double)columns;
}

struct sgp_loss_sum sgp_loss_batch(enum sgp_loss loss, float *delta, const float *outputs,
    const uint32_t *labels, const float *values, size_t rows, size_t columns)
{
    sgp_assert(labels ? !values : values && loss == SGP_LOSS_MSE);
    struct sgp_loss_sum sum = {0};
    float per_row = 1.0f / (float)rows;
    for (size_t r = 0; r < rows; r++, delta += columns, outputs += columns) {
        uint32_t label = labels ? labels[r] : 0;
        sgp_assert(label < columns);
        if (loss == SGP_LOSS_CROSS_ENTROPY)
            sum.loss += cross_entropy_row(delta, outputs, label, per_row, columns);
        else
            sum.loss += squared_row(
                delta, outputs, label, values ? values + r * columns : NULL, per_row, columns);
        if (labels)
            sum.correct += greatest(outputs, columns) == label;
    }
    return sum;
}
