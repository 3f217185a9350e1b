/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over rows with labels, from which the measures of sgp/predictor.h are computed. Any
 * thread. */
#ifndef SGP_TRAIN_SCORE_H
#define SGP_TRAIN_SCORE_H

#include "sgp/predictor.h"

struct sgp_score_column { /* of one label column of numbers */
    double mean, squares; /* Welford's */
    double squared_errors, absolute_errors;
};

struct sgp_score_sum {
    enum sgp_loss loss;
    uint32_t outputs;
    uint64_t rows, judged, correct;
    double loss_sum;
    struct sgp_score_column *columns; /* `outputs` of them */
    float *delta;                     /* for the loss of one row */
};

/* Returns 0 or -ENOMEM. */
int sgp_score_begin(struct sgp_score_sum *sum, enum sgp_loss loss, uint32_t outputs);
void sgp_score_finish(struct sgp_score_sum *sum);

/* Add one row: the outputs of the network, and its label or values, as in sgp_loss_batch. */
void sgp_score_row(
    struct sgp_score_sum *sum, const float *outputs, const uint32_t *label, const float *values);

struct sgp_score sgp_score_of(const struct sgp_score_sum *sum);

#endif
