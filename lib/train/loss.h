/* SPDX-License-Identifier: Apache-2.0 */
/* The losses of sgp/loss.h over the outputs of a batch, with their gradients. Rows x columns,
 * row-major. Any thread; no state. */
#ifndef SGP_TRAIN_LOSS_H
#define SGP_TRAIN_LOSS_H

#include "sgp/loss.h"

struct sgp_loss_sum {
    double loss; /* summed over the rows; not finite if an output is NaN or +infinity */
    uint64_t
        judged; /* labels, or values of 0 and 1, that outputs were compared with; 0: of numbers */
    /* Of these: labels whose output is the greatest of the row (the first of equals), or values
     * that are 1 where the output is above 0, and 0 elsewhere. */
    uint64_t correct;
};

/* The loss of a batch, and delta = its gradient with respect to the outputs of the mean over the
 * rows. Exactly one of labels (rows, each below columns) and values (rows x columns) is
 * given, and the loss takes it (asserted). */
struct sgp_loss_sum sgp_loss_batch(enum sgp_loss loss, const struct sgp_loss_settings *settings,
    float *delta, const float *outputs, const uint32_t *labels, const float *values, size_t rows,
    size_t columns);

/* predictions = what the outputs say: the probabilities of the classes, each one's of a 1, or
 * the outputs themselves. May be the same array. */
void sgp_loss_predict(
    enum sgp_loss loss, float *predictions, const float *outputs, size_t rows, size_t columns);

#endif
