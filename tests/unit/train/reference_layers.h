/* SPDX-License-Identifier: Apache-2.0 */
/* Slow layers to judge the fast ones by: float64, plane after plane, one value at a time,
 * straight from the formulas of sgp/model.h. Gradients are central differences of the loss, so
 * no derivative is written down twice. Batches go through whole, for norm batch. */
#ifndef REFERENCE_LAYERS_H
#define REFERENCE_LAYERS_H

#include "reference_model.h"

#include <stdlib.h>

/* What leaves each layer: rows x values, planes; [0] are the features. */
struct reference_net {
    const struct sgp_model *model;
    size_t rows;
    bool training;
    double *values[SGP_LAYERS_MAX + 1];
};

static inline void reference_net_init(
    struct reference_net *net, const struct sgp_model *model, const float *features, size_t rows)
{
    *net = (struct reference_net){.model = model, .rows = rows, .training = true};
    for (uint32_t l = 0; l <= model->layer_count; l++) {
        size_t width = l == 0 ? model->inputs : model->layers[l - 1].outputs;
        net->values[l] = calloc(rows * width, sizeof(double));
    }
    for (size_t i = 0; i < rows * model->inputs; i++)
        net->values[0][i] = (double)features[i];
}

static inline void reference_net_finish(struct reference_net *net)
{
    for (uint32_t l = 0; l <= net->model->layer_count; l++)
        free(net->values[l]);
}

/* A pixel of a plane, or NULL outside of it. */
static inline double *reference_pixel(
    double *image, struct sgp_shape shape, uint32_t channel, int64_t y, int64_t x)
{
    bool inside = y >= 0 && x >= 0 && y < shape.height && x < shape.width;
    return inside ? image + ((size_t)channel * shape.height + (size_t)y) * shape.width + x : NULL;
}

/* Where a window begins. */
static inline int64_t reference_begin(uint32_t at, uint32_t stride, uint32_t window, bool same)
{
    return (int64_t)at * stride - (same ? (window - 1) / 2 : 0);
}

static inline double reference_conv(const struct sgp_layer *layer, const double *z, double *image,
    uint32_t o, uint32_t y, uint32_t x)
{
    const double *w = z + layer->weights;
    double sum = z[layer->biases + o];
    for (uint32_t c = 0; c < layer->input.channels; c++)
        for (uint32_t i = 0; i < layer->window.height; i++)
            for (uint32_t j = 0; j < layer->window.width; j++) {
                const double *pixel = reference_pixel(image, layer->input, c,
                    reference_begin(y, layer->stride.height, layer->window.height, layer->same) + i,
                    reference_begin(x, layer->stride.width, layer->window.width, layer->same) + j);
                size_t at = (((size_t)o * layer->input.channels + c) * layer->window.height + i) *
                                layer->window.width +
                            j;
                sum += pixel ? w[at] * *pixel : 0;
            }
    return sum;
}

static inline double reference_pool(
    const struct sgp_layer *layer, double *image, uint32_t c, uint32_t y, uint32_t x)
{
    bool all = layer->window.height == 0;
    uint32_t height = all ? layer->input.height : layer->window.height;
    uint32_t width = all ? layer->input.width : layer->window.width;
    double most = -INFINITY, sum = 0, count = 0;
    for (uint32_t i = 0; i < height; i++)
        for (uint32_t j = 0; j < width; j++) {
            const double *pixel = reference_pixel(image, layer->input, c,
                reference_begin(y, layer->stride.height, height, layer->same) + i,
                reference_begin(x, layer->stride.width, width, layer->same) + j);
            if (!pixel)
                continue;
            most = *pixel > most ? *pixel : most;
            sum += *pixel;
            count++;
        }
    return layer->average ? sum / count : most;
}

/* Mean and variance over rows first..end of the batch and channels from..to. */
static inline void reference_moments(const struct sgp_layer *layer, const double *values,
    size_t first, size_t end, uint32_t from, uint32_t to, double *ret_mean, double *ret_variance)
{
    size_t pixels = (size_t)layer->input.height * layer->input.width;
    double count = (double)((end - first) * (to - from) * pixels), sum = 0, squares = 0;
    for (int turn = 0; turn < 2; turn++)
        for (size_t r = first; r < end; r++)
            for (size_t i = from * pixels; i < to * pixels; i++) {
                double value = values[r * layer->inputs + i];
                if (turn == 0)
                    sum += value;
                else
                    squares += (value - sum / count) * (value - sum / count);
            }
    *ret_mean = sum / count;
    *ret_variance = squares / count;
}

static inline void reference_norm(const struct reference_net *net, const struct sgp_layer *layer,
    const double *z, const double *in, double *out)
{
    size_t pixels = (size_t)layer->input.height * layer->input.width;
    for (size_t r = 0; r < net->rows; r++)
        for (uint32_t c = 0; c < layer->input.channels; c++) {
            double mean, variance;
            if (!layer->batch) {
                uint32_t wide = layer->input.channels / layer->groups, from = c / wide * wide;
                reference_moments(layer, in, r, r + 1, from, from + wide, &mean, &variance);
            } else if (net->training) {
                reference_moments(layer, in, 0, net->rows, c, c + 1, &mean, &variance);
            } else {
                mean = z[layer->biases + layer->input.channels + c];
                variance = z[layer->biases + 2 * layer->input.channels + c];
            }
            for (size_t p = 0; p < pixels; p++) {
                size_t at = r * layer->inputs + c * pixels + p;
                double normal = (in[at] - mean) / sqrt(variance + (double)SGP_NORM_EPSILON);
                out[at] = reference_activation(
                    layer->activation, normal * z[layer->weights + c] + z[layer->biases + c]);
            }
        }
}

static inline void reference_image(
    const struct sgp_layer *layer, const double *z, double *in, double *out)
{
    for (uint32_t c = 0; c < layer->output.channels; c++)
        for (uint32_t y = 0; y < layer->output.height; y++)
            for (uint32_t x = 0; x < layer->output.width; x++)
                *reference_pixel(out, layer->output, c, y, x) =
                    reference_activation(layer->activation,
                        layer->kind == SGP_LAYER_CONV ? reference_conv(layer, z, in, c, y, x)
                                                      : reference_pool(layer, in, c, y, x));
}

static inline void reference_row(
    const struct sgp_layer *layer, const double *z, double *in, const double *around, double *out)
{
    switch (layer->kind) {
    case SGP_LAYER_CONV:
    case SGP_LAYER_POOL:
        reference_image(layer, z, in, out);
        break;
    case SGP_LAYER_DENSE:
        for (uint32_t o = 0; o < layer->outputs; o++) {
            double sum = z[layer->biases + o];
            for (uint32_t i = 0; i < layer->inputs; i++)
                sum += z[layer->weights + (size_t)o * layer->inputs + i] * in[i];
            out[o] = reference_activation(layer->activation, sum);
        }
        break;
    case SGP_LAYER_EMBEDDING:
        for (uint32_t i = 0; i < layer->inputs; i++)
            for (uint32_t d = 0; d < layer->units; d++)
                out[(size_t)d * layer->inputs + i] =
                    z[layer->weights + (size_t)in[i] * layer->units + d];
        break;
    case SGP_LAYER_RESIDUAL:
        for (uint32_t i = 0; i < layer->outputs; i++)
            out[i] = reference_activation(layer->activation, in[i] + around[i]);
        break;
    default:
        abort();
    }
}

static inline void reference_net_forward(struct reference_net *net, const double *z)
{
    for (uint32_t l = 0; l < net->model->layer_count; l++) {
        const struct sgp_layer *layer = &net->model->layers[l];
        const double *around = layer->span > 0 ? net->values[l - layer->span] : NULL;
        if (layer->kind == SGP_LAYER_NORM)
            reference_norm(net, layer, z, net->values[l], net->values[l + 1]);
        else
            for (size_t r = 0; r < net->rows; r++)
                reference_row(layer, z, net->values[l] + r * layer->inputs,
                    around ? around + r * layer->outputs : NULL,
                    net->values[l + 1] + r * layer->outputs);
    }
}

/* Mean cross-entropy, or mean square of outputs minus one-hot labels. */
static inline double reference_net_loss(
    struct reference_net *net, const double *z, const uint32_t *labels)
{
    const struct sgp_model *model = net->model;
    reference_net_forward(net, z);
    double total = 0;
    for (size_t r = 0; r < net->rows; r++) {
        const double *y = net->values[model->layer_count] + r * model->outputs;
        double sum = 0;
        for (uint32_t o = 0; o < model->outputs; o++)
            sum += model->loss == SGP_LOSS_CROSS_ENTROPY
                       ? exp(y[o])
                       : (y[o] - (o == labels[r])) * (y[o] - (o == labels[r]));
        total +=
            model->loss == SGP_LOSS_CROSS_ENTROPY ? log(sum) - y[labels[r]] : sum / model->outputs;
    }
    return total / (double)net->rows;
}

static inline void reference_net_gradient(
    struct reference_net *net, double *z, double *gradient, const uint32_t *labels)
{
    const double h = 1e-5;
    for (uint64_t i = 0; i < net->model->parameters; i++) {
        double kept = z[i];
        z[i] = kept + h;
        double above = reference_net_loss(net, z, labels);
        z[i] = kept - h;
        double below = reference_net_loss(net, z, labels);
        z[i] = kept;
        gradient[i] = (above - below) / (2.0 * h);
    }
}

#endif
