/* SPDX-License-Identifier: Apache-2.0 */
/* Losses over the outputs of a batch, with their gradients. Rows x columns, row-major. Any thread;
 * no state. */
#ifndef SGP_TRAIN_LOSS_H
#define SGP_TRAIN_LOSS_H

#include "sgp/model.h"

struct sgp_loss_sum {
    double loss;      /* summed over the rows; not finite as soon as one output is not */
    uint64_t correct; /* rows whose greatest output (the first of equals) is the label's */
};

/* The loss of a batch, and delta = its gradient with respect to the outputs of the mean over the
 * rows. Exactly one of labels (rows, each below columns; asserted) and values (rows x columns) is
 * given; cross-entropy wants labels. */
struct sgp_loss_sum sgp_loss_batch(enum sgp_loss loss, float *delta, const float *outputs,
    const uint32_t *labels, const float *values, size_t rows, size_t columns);

/* probabilities = softmax of each row of logits; may be the same array. */
void sgp_softmax(float *probabilities, const float *logits, size_t rows, size_t columns);

#endif
