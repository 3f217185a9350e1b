/* SPDX-License-Identifier: Apache-2.0 */
/* Measures of a model on rows whose labels are known; see score.h. */
#include "score.h"

#include "loss.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int sgp_score_begin(struct sgp_score_sum *sum, enum sgp_loss loss, uint32_t outputs)
{
    *sum = (struct sgp_score_sum){.loss = loss, .outputs = outputs};
    sum->columns = calloc(outputs, sizeof *sum->columns);
    sum->delta = calloc(outputs, sizeof *sum->delta);
    return sum->columns && sum->delta ? 0 : -ENOMEM;
}

void sgp_score_finish(struct sgp_score_sum *sum)
{
    free(sum->columns);
    free(sum->delta);
}

void sgp_score_row(
    struct sgp_score_sum *sum, const float *outputs, const uint32_t *label, const float *values)
{
    const struct sgp_loss_sum part = sgp_loss_batch(sum->loss, &sgp_loss_defaults, sum->delta,
        outputs, label, label ? NULL : values, 1, sum->outputs);
    sum->rows++;
    sum->judged += part.judged;
    sum->correct += part.correct;
    sum->loss_sum += part.loss;
    for (uint32_t c = 0; values && c < sum->outputs; c++) {
        struct sgp_score_column *column = &sum->columns[c];
        const double off = (double)outputs[c] - (double)values[c];
        const double before = (double)values[c] - column->mean;
        column->mean += before / (double)sum->rows;
        column->squares += before * ((double)values[c] - column->mean);
        column->squared_errors += off * off;
        column->absolute_errors += fabs(off);
    }
}

struct sgp_score sgp_score_of(const struct sgp_score_sum *sum)
{
    struct sgp_score score = {
        .rows = sum->rows, .accuracy = NAN, .log_loss = NAN, .r2 = NAN, .absolute_error = NAN};
    if (sum->judged > 0)
        score.accuracy = (double)sum->correct / (double)sum->judged;
    if (sum->rows > 0 && !(sgp_loss_takes(sum->loss) & SGP_LOSS_TAKES_NUMBERS))
        score.log_loss = sum->loss_sum / (double)sum->rows;
    if (sum->rows == 0 || sum->judged > 0)
        return score;
    score.r2 = score.absolute_error = 0;
    for (uint32_t c = 0; c < sum->outputs; c++) {
        const struct sgp_score_column *column = &sum->columns[c];
        /* A constant column has no deviation to explain. */
        const double part =
            column->squares > 0 ? 1 - column->squared_errors / column->squares : NAN;
        score.r2 += part / sum->outputs;
        score.absolute_error += column->absolute_errors / (double)sum->rows / sum->outputs;
    }
    return score;
}
