/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix products of layers: float32, bfloat16, and the slow reference for bfloat16; see
 * product.h. */
#include "product.h"

#include "onednn.h"
#include "sgp/blas.h"
#include "sgp/buffer.h"
#include "sgp/kernels.h"

#include <errno.h>
#include <math.h>

#define LINE (SGP_BUFFER_ALIGNMENT / sizeof(float))
#define RUN 256u /* values rounded at a time, which stay in the first cache */

int sgp_precision_check(enum sgp_precision precision, struct sgp_error *error)
{
    struct sgp_onednn *onednn = NULL;
    struct sgp_error why = {0};
    if (precision != SGP_PRECISION_BF16)
        return 0;
    int code = sgp_onednn_create(SGP_ONEDNN_BF16, 1, &why, &onednn);
    sgp_onednn_destroy(onednn);
    if (code == SGP_E_CONFIG)
        return sgp_fail(
            error, code, "bf16 cannot run here: %s; write precision = float32", why.text);
    return code < 0 ? sgp_fail(error, code, "out of memory for oneDNN") : 0;
}

/* ---- life ---- */

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t whole_lines(uint64_t floats)
{
    return (floats + LINE - 1) / LINE * LINE;
}

void sgp_product_fit(struct sgp_product_room *room, const struct sgp_product_shape *shape)
{
    uint64_t rows = shape->rows, inputs = shape->inputs, outputs = shape->outputs;
    room->left = greater(room->left, rows * greater(inputs, outputs));
    room->right = greater(room->right, inputs * greater(outputs, rows));
}

/* The floats that so many rounded values need: a bfloat16 is half a float. */
static uint64_t room_for(enum sgp_precision precision, uint64_t values)
{
    if (precision == SGP_PRECISION_FLOAT32)
        return 0;
    return whole_lines(precision == SGP_PRECISION_BF16 ? (values + 1) / 2 : values);
}

uint64_t sgp_product_floats(enum sgp_precision precision, const struct sgp_product_room *room)
{
    return room_for(precision, room->left) + room_for(precision, room->right);
}

int sgp_product_init(struct sgp_product *product, enum sgp_precision precision, uint32_t threads,
    const struct sgp_product_room *room, float *memory)
{
    *product = (struct sgp_product){.precision = precision, .left = memory};
    product->right = memory + room_for(precision, room->left);
    if (precision != SGP_PRECISION_BF16)
        return 0;
    return sgp_onednn_create(SGP_ONEDNN_BF16, threads, NULL, &product->onednn);
}

void sgp_product_finish(struct sgp_product *product)
{
    sgp_onednn_destroy(product->onednn);
    *product = (struct sgp_product){0};
}

/* ---- operands ---- */

/* The nearest bfloat16 of each scale * from[i], stored as bfloat16, or as the float32 of the same
 * value. */
static void round_values(
    const struct sgp_product *product, float *to, const float *from, float scale, size_t count)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    bool keep = product->precision == SGP_PRECISION_BF16;
    float scaled[RUN];
    uint8_t rounded[2 * RUN];
    for (size_t first = 0; first < count; first += RUN) {
        size_t run = count - first < RUN ? count - first : RUN;
        kernels->scale(scaled, from + first, scale, run);
        kernels->to_bfloat(keep ? (uint8_t *)to + 2 * first : rounded, scaled, run);
        if (!keep)
            kernels->from_bfloat(to + first, rounded, run);
    }
}

/* Compute one product by oneDNN. If it fails for lack of memory, no number would be right. So the
 * result is filled with NaN, which the loss then shows. */
static void multiply_rounded(struct sgp_product *product, enum sgp_onednn_form form, float *c,
    size_t rows, size_t columns, size_t inner)
{
    if (sgp_onednn_multiply(
            product->onednn, form, c, product->left, product->right, rows, columns, inner) == 0)
        return;
    for (size_t i = 0; i < rows * columns; i++)
        c[i] = NAN;
}

/* ---- float32 ---- */

static void forward(const struct sgp_product_shape *shape, float *y, const float *features,
    const float *weights, float scale)
{
    const struct sgp_blas_product product = {
        false, true, shape->rows, shape->outputs, shape->inputs};
    if (shape->outputs <= SGP_NARROW_OUTPUTS_MAX)
        sgp_kernels_best()->narrow_product(
            y, features, weights, scale, shape->rows, shape->inputs, shape->outputs);
    else
        sgp_blas_multiply(&product, scale, features, weights, false, y);
}

static void gradient_of(const struct sgp_product_shape *shape, float *gradient, const float *delta,
    const float *features, bool add)
{
    const struct sgp_blas_product product = {
        true, false, shape->outputs, shape->inputs, shape->rows};
    if (shape->outputs <= SGP_NARROW_OUTPUTS_MAX && !add)
        sgp_kernels_best()->narrow_gradient(
            gradient, delta, features, shape->rows, shape->inputs, shape->outputs);
    else
        sgp_blas_multiply(&product, 1.0f, delta, features, add, gradient);
}

static void back(const struct sgp_product_shape *shape, float *below, const float *delta,
    const float *weights, float scale)
{
    const struct sgp_blas_product product = {
        false, false, shape->rows, shape->inputs, shape->outputs};
    sgp_blas_multiply(&product, scale, delta, weights, false, below);
}

/* ---- the three products ---- */

void sgp_product_forward(struct sgp_product *product, const struct sgp_product_shape *shape,
    float *y, const float *features, const float *weights, float scale)
{
    if (product->precision == SGP_PRECISION_FLOAT32) {
        forward(shape, y, features, weights, scale);
        return;
    }
    round_values(product, product->left, features, 1.0f, shape->rows * shape->inputs);
    round_values(product, product->right, weights, scale, shape->outputs * shape->inputs);
    if (product->precision == SGP_PRECISION_BF16)
        multiply_rounded(
            product, SGP_ONEDNN_B_TRANSPOSED, y, shape->rows, shape->outputs, shape->inputs);
    else
        forward(shape, y, product->left, product->right, 1.0f);
}

void sgp_product_gradient(struct sgp_product *product, const struct sgp_product_shape *shape,
    float *gradient, const float *delta, const float *features, bool add)
{
    if (product->precision == SGP_PRECISION_FLOAT32) {
        gradient_of(shape, gradient, delta, features, add);
        return;
    }
    round_values(product, product->left, delta, 1.0f, shape->rows * shape->outputs);
    round_values(product, product->right, features, 1.0f, shape->rows * shape->inputs);
    if (product->precision == SGP_PRECISION_BF16)
        multiply_rounded(product, add ? SGP_ONEDNN_A_TRANSPOSED_ADDED : SGP_ONEDNN_A_TRANSPOSED,
            gradient, shape->outputs, shape->inputs, shape->rows);
    else
        gradient_of(shape, gradient, product->left, product->right, add);
}

void sgp_product_back(struct sgp_product *product, const struct sgp_product_shape *shape,
    float *below, const float *delta, const float *weights, float scale)
{
    if (product->precision == SGP_PRECISION_FLOAT32) {
        back(shape, below, delta, weights, scale);
        return;
    }
    round_values(product, product->left, delta, 1.0f, shape->rows * shape->outputs);
    round_values(product, product->right, weights, scale, shape->outputs * shape->inputs);
    if (product->precision == SGP_PRECISION_BF16)
        multiply_rounded(
            product, SGP_ONEDNN_PLAIN, below, shape->rows, shape->inputs, shape->outputs);
    else
        back(shape, below, product->left, product->right, 1.0f);
}
