/* SPDX-License-Identifier: Apache-2.0 */
/* A slow model to judge the fast one by: float64, one row and one unit at a time, and gradients by
 * central differences of the loss alone, so that no derivative is written down twice. */
#ifndef REFERENCE_MODEL_H
#define REFERENCE_MODEL_H

#include "sgp/model.h"

#include <math.h>
#include <string.h>

#define REFERENCE_UNITS 16 /* inputs and outputs of any layer in these tests, at most */

static inline double reference_activation(enum sgp_activation activation, double value)
{
    switch (activation) {
    case SGP_ACTIVATION_RELU:
        return value > 0.0 ? value : 0.0;
    case SGP_ACTIVATION_TANH:
        return tanh(value);
    case SGP_ACTIVATION_SIGMOID:
        return 1.0 / (1.0 + exp(-value));
    default:
        return value;
    }
}

/* Outputs of one row at the estimate z. */
static inline void reference_outputs(
    const struct sgp_model *model, const double *z, const float *features, double *outputs)
{
    double a[REFERENCE_UNITS];
    for (uint32_t i = 0; i < model->inputs; i++)
        a[i] = (double)features[i];
    for (uint32_t l = 0; l < model->layer_count; l++) {
        const struct sgp_layer *layer = &model->layers[l];
        for (uint32_t o = 0; o < layer->outputs; o++) {
            double sum = z[layer->biases + o];
            for (uint32_t i = 0; i < layer->inputs; i++)
                sum += z[layer->weights + o * layer->inputs + i] * a[i];
            outputs[o] = reference_activation(layer->activation, sum);
        }
        memcpy(a, outputs, layer->outputs * sizeof *a);
    }
}

/* Mean loss over the rows; labels or values, the other NULL. */
static inline double reference_loss(const struct sgp_model *model, const double *z,
    const float *features, const uint32_t *labels, const float *values, size_t rows)
{
    double total = 0.0;
    for (size_t r = 0; r < rows; r++) {
        double y[REFERENCE_UNITS];
        reference_outputs(model, z, features + r * model->inputs, y);
        double sum = 0.0;
        for (uint32_t o = 0; o < model->outputs; o++)
            if (model->loss == SGP_LOSS_CROSS_ENTROPY)
                sum += exp(y[o]);
            else {
                double target = labels ? (o == labels[r]) : (double)values[r * model->outputs + o];
                sum += (y[o] - target) * (y[o] - target);
            }
        total +=
            model->loss == SGP_LOSS_CROSS_ENTROPY ? log(sum) - y[labels[r]] : sum / model->outputs;
    }
    return total / (double)rows;
}

/* Gradient of that with respect to z; z is changed and put back. */
static inline void reference_gradient(const struct sgp_model *model, double *z, double *gradient,
    const float *features, const uint32_t *labels, const float *values, size_t rows)
{
    const double h = 1e-5;
    for (uint64_t i = 0; i < model->parameters; i++) {
        double kept = z[i];
        z[i] = kept + h;
        double above = reference_loss(model, z, features, labels, values, rows);
        z[i] = kept - h;
        double below = reference_loss(model, z, features, labels, values, rows);
        z[i] = kept;
        gradient[i] = (above - below) / (2.0 * h);
    }
}

#endif
