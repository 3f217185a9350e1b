/* SPDX-License-Identifier: Apache-2.0 */
/* Bias and activation of a layer, forward and backward. Any thread; no state. */
#include "activation.h"

#include "sgp/kernels.h"

#include <string.h>

void sgp_activation_forward(enum sgp_activation activation, float *y, const float *bias,
    float scale, size_t rows, size_t columns)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    switch (activation) {
    case SGP_ACTIVATION_NONE:
        kernels->bias(y, bias, scale, rows, columns);
        break;
    case SGP_ACTIVATION_RELU:
        kernels->bias_relu(y, bias, scale, rows, columns);
        break;
    case SGP_ACTIVATION_TANH:
        kernels->bias_tanh(y, bias, scale, rows, columns);
        break;
    case SGP_ACTIVATION_SIGMOID:
        kernels->bias_sigmoid(y, bias, scale, rows, columns);
        break;
    }
}

void sgp_activation_backward(enum sgp_activation activation, float *delta, float *bias_gradient,
    const float *y, size_t rows, size_t columns)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    if (activation == SGP_ACTIVATION_NONE) {
        kernels->column_sums(bias_gradient, delta, rows, columns);
        return;
    }
    if (activation == SGP_ACTIVATION_RELU) {
        kernels->relu_backward(delta, bias_gradient, y, rows, columns);
        return;
    }
    memset(bias_gradient, 0, columns * sizeof *bias_gradient);
    bool tanh_layer = activation == SGP_ACTIVATION_TANH;
    for (size_t r = 0; r < rows; r++, delta += columns, y += columns)
        for (size_t c = 0; c < columns; c++) {
            delta[c] *= tanh_layer ? 1.0f - y[c] * y[c] : y[c] * (1.0f - y[c]);
            bias_gradient[c] += delta[c];
        }
}

#define STRIP 256u /* values processed together, as columns without a bias */

void sgp_activation_plain(enum sgp_activation activation, float *y, size_t count)
{
    static const float zeros[STRIP];
    if (activation == SGP_ACTIVATION_NONE)
        return;
    sgp_activation_forward(activation, y, zeros, 0.0f, count / STRIP, STRIP);
    sgp_activation_forward(activation, y + count / STRIP * STRIP, zeros, 0.0f, 1, count % STRIP);
}

void sgp_activation_plain_backward(
    enum sgp_activation activation, float *delta, const float *y, size_t count)
{
    float sums[STRIP];
    size_t whole = count / STRIP * STRIP;
    if (activation == SGP_ACTIVATION_NONE)
        return;
    sgp_activation_backward(activation, delta, sums, y, count / STRIP, STRIP);
    sgp_activation_backward(activation, delta + whole, sums, y + whole, 1, count % STRIP);
}
