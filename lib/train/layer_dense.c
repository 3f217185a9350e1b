/* SPDX-License-Identifier: Apache-2.0 */
/* Dense layers: y = activation(W a + b). The row a of an image is read plane after plane, so that
 * the weights equal those of PyTorch. */
#include "activation.h"
#include "layer.h"
#include "order.h"
#include "sgp/kernels.h"

#include <math.h>
#include <string.h>

static int dense_read(struct sgp_words *words, struct sgp_layer *layer)
{
    const char *word = sgp_words_next(words);
    layer->units = sgp_words_count(word, SGP_UNITS_MAX);
    if (layer->units == 0)
        return sgp_fail(words->error, SGP_E_CONFIG,
            "layer %u has '%s' outputs; give a number from 1 to %u", words->number, word,
            SGP_UNITS_MAX);
    return sgp_words_last_activation(words, layer);
}

static void dense_write(const struct sgp_layer *layer, struct sgp_text *text)
{
    sgp_text_add(text, " %u", layer->units);
    sgp_text_add_activation(text, layer->activation);
}

static int dense_suit(struct sgp_layer *layer, uint32_t number, struct sgp_error *error)
{
    (void)error;
    if (number == 1) /* the dataset's rows are in planes */
        layer->input = (struct sgp_shape){layer->inputs, 1, 1};
    layer->output = (struct sgp_shape){layer->units, 1, 1};
    return 0;
}

static uint32_t dense_tensors(const struct sgp_layer *layer,
    struct sgp_model_tensor ret_tensors[static SGP_LAYER_TENSORS_MAX])
{
    ret_tensors[0] = (struct sgp_model_tensor){.name = "weight",
        .dimensions = 2,
        .shape = {layer->outputs, layer->inputs},
        .deviation = sqrt(2.0 / layer->inputs)};
    ret_tensors[1] =
        (struct sgp_model_tensor){.name = "bias", .dimensions = 1, .shape = {layer->outputs}};
    return 2;
}

/* Memory for the rows as planes; none if pixels and planes have the same order. */
static uint64_t dense_kept(const struct sgp_layer *layer, uint64_t rows)
{
    return sgp_shape_is_ordered(layer->input) ? rows * layer->inputs : 0;
}

static bool dense_product(
    const struct sgp_layer *layer, uint32_t rows, bool back, struct sgp_blas_layer *ret_product)
{
    *ret_product = (struct sgp_blas_layer){rows, layer->inputs, layer->outputs};
    return layer->outputs > SGP_NARROW_OUTPUTS_MAX ||
           back; /* OpenBLAS computes the backward pass even if the layer is narrow */
}

/* The rows as the products read them. */
static const float *planes_of(const struct sgp_pass *pass)
{
    if (!sgp_shape_is_ordered(pass->layer->input))
        return pass->input;
    sgp_order_planes(pass->kept, pass->input, pass->layer->input, pass->rows);
    return pass->kept;
}

static void dense_forward(const struct sgp_pass *pass)
{
    const struct sgp_layer *layer = pass->layer;
    const struct sgp_product_shape shape = {pass->rows, layer->inputs, layer->outputs};
    sgp_product_forward(pass->product, &shape, pass->output, planes_of(pass),
        pass->x + layer->weights, pass->scale);
    sgp_activation_forward(layer->activation, pass->output, pass->x + layer->biases, pass->scale,
        pass->rows, layer->outputs);
}

/* A row's delta, from which weigh computes its gradient. */
static uint64_t dense_own(const struct sgp_layer *layer)
{
    return layer->outputs;
}

/* The gradient of a row is the outer product of delta with (input, 1), so its square is a product
 * of squares (Goodfellow 2015, "Efficient per-example gradient computations"). Squares are in
 * float64, because a square that vanished in float32 would make a row too long. */
static void add_squares(const struct sgp_pass *pass, const float *input)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    const size_t inputs = pass->layer->inputs, outputs = pass->layer->outputs;
    for (size_t r = 0; r < pass->rows; r++)
        pass->squares[r] += kernels->squares(pass->delta + r * outputs, outputs) *
                            (kernels->squares(input + r * inputs, inputs) + 1);
    memcpy(pass->own, pass->delta, pass->rows * outputs * sizeof *pass->own);
}

static void dense_backward(const struct sgp_pass *pass)
{
    const struct sgp_layer *layer = pass->layer;
    bool ordered = sgp_shape_is_ordered(layer->input);
    sgp_activation_backward(layer->activation, pass->delta, pass->gradient + layer->biases,
        pass->output, pass->rows, layer->outputs);
    const struct sgp_product_shape shape = {pass->rows, layer->inputs, layer->outputs};
    const float *input = ordered ? pass->kept : pass->input;
    if (pass->squares)
        add_squares(pass, input);
    else
        sgp_product_gradient(
            pass->product, &shape, pass->gradient + layer->weights, pass->delta, input, false);
    if (!pass->below)
        return;
    float *planes = ordered ? pass->kept : pass->below; /* the rows are no longer needed */
    sgp_product_back(
        pass->product, &shape, planes, pass->delta, pass->x + layer->weights, pass->scale);
    if (ordered)
        sgp_order_pixels(pass->below, planes, layer->input, pass->rows);
}

static void dense_weigh(const struct sgp_pass *pass)
{
    const struct sgp_layer *layer = pass->layer;
    const size_t outputs = layer->outputs;
    for (size_t r = 0; r < pass->rows; r++)
        for (size_t c = 0; c < outputs; c++)
            pass->own[r * outputs + c] *= pass->factors[r];
    sgp_activation_backward(
        SGP_ACTIVATION_NONE, pass->own, pass->gradient + layer->biases, NULL, pass->rows, outputs);
    const struct sgp_product_shape shape = {pass->rows, layer->inputs, outputs};
    sgp_product_gradient(
        pass->product, &shape, pass->gradient + layer->weights, pass->own, planes_of(pass), false);
}

const struct sgp_layer_methods sgp_layer_dense = {.word = "dense",
    .read = dense_read,
    .suit = dense_suit,
    .write = dense_write,
    .tensors = dense_tensors,
    .kept = dense_kept,
    .product = dense_product,
    .forward = dense_forward,
    .backward = dense_backward,
    .weigh = dense_weigh,
    .own = dense_own};
