/* SPDX-License-Identifier: Apache-2.0 */
/* Bias and activation of a layer in one pass over its outputs, and the backward pass. Matrices are
 * rows x columns, row-major. Any thread; no state. */
#ifndef SGP_TRAIN_ACTIVATION_H
#define SGP_TRAIN_ACTIVATION_H

#include "sgp/model.h"

/* y = activation(y + scale * bias). A NaN remains a NaN. */
void sgp_activation_forward(enum sgp_activation activation, float *y, const float *bias,
    float scale, size_t rows, size_t columns);

/* delta *= activation'(.), computed from the activated y. bias_gradient[c] = sum of column c of
 * delta. */
void sgp_activation_backward(enum sgp_activation activation, float *delta, float *bias_gradient,
    const float *y, size_t rows, size_t columns);

/* As sgp_activation_forward without a bias, for any number of values. */
void sgp_activation_plain(enum sgp_activation activation, float *y, size_t count);
void sgp_activation_plain_backward(
    enum sgp_activation activation, float *delta, const float *y, size_t count);

#endif
