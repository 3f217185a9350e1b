/* SPDX-License-Identifier: Apache-2.0 */
/* The losses of sgp/loss.h over the outputs of a batch, with their gradients. Rows x columns,
 * row-major. Any thread; no state. */
#ifndef SGP_TRAIN_LOSS_H
#define SGP_TRAIN_LOSS_H

#include "sgp/loss.h"

struct sgp_loss_sum {
    double loss; /* summed over the rows; not finite if an output is NaN or +infinity */
    /* labels, or values of 0 and 1, that outputs were compared with; 0 for numbers */
    uint64_t judged;
    /* The correct ones among these. A label is correct if its output is the greatest of the row
     * (the first of equals). A value of 1 is correct if the output is above 0, a value of 0
     * otherwise. */
    uint64_t correct;
};

/* The loss of a batch. delta is the gradient of the mean over the rows with respect to the outputs.
 * The caller passes exactly one of labels (rows, each below columns) and values (rows x columns),
 * which must be what the loss takes (asserted). */
struct sgp_loss_sum sgp_loss_batch(enum sgp_loss loss, const struct sgp_loss_settings *settings,
    float *delta, const float *outputs, const uint32_t *labels, const float *values, size_t rows,
    size_t columns);

/* Add the rows of a batch to the measures, in the units of the label columns. Labels and values are
 * NULL if the rows have none. Values are what the model learns, scaled if the settings have scales.
 * Outputs are those of the model, and what they stand for is finite. */
void sgp_loss_measure(struct sgp_measures *measures, const struct sgp_loss_settings *settings,
    const float *outputs, const uint32_t *labels, const float *values, size_t rows);

/* predictions = the meaning of the outputs: the probabilities of the classes, the probability of a
 * 1 for each output, or numbers in the units of the label columns. May be the same array. */
void sgp_loss_predict(enum sgp_loss loss, const struct sgp_loss_settings *settings,
    float *predictions, const float *outputs, size_t rows, size_t columns);

#endif
