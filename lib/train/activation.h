/* SPDX-License-Identifier: Apache-2.0 */
/* Bias and activation of a layer in one pass over its outputs, and back. Rows x columns, row-major.
 * Any thread; no state. */
#ifndef SGP_TRAIN_ACTIVATION_H
#define SGP_TRAIN_ACTIVATION_H

#include "sgp/model.h"

/* y = activation(y + scale * bias); a NaN stays one. */
void sgp_activation_forward(enum sgp_activation activation, float *y, const float *bias,
    float scale, size_t rows, size_t columns);

/* delta *= activation'(.), told from the activated y; bias_gradient[c] = sum of column c of delta. */
void sgp_activation_backward(enum sgp_activation activation, float *delta, float *bias_gradient,
    const float *y, size_t rows, size_t columns);

/* The same without a bias, of any number of values. */
void sgp_activation_plain(enum sgp_activation activation, float *y, size_t count);
void sgp_activation_plain_backward(
    enum sgp_activation activation, float *delta, const float *y, size_t count);

#endif
