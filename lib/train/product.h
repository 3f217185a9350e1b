/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix products of layers, in one precision (sgp/precision.h).
 *
 * A layer has weights W, outputs x inputs, and passes rows of features. All matrices are row-major
 * without padding. `scale` is 1/w, which turns the weights of x into those of the estimate z = x /
 * w. If operands are rounded, scale * W is rounded. So the operand is that of z whatever the
 * push-sum weight. Every value of a result is written. Results must not overlap operands. float32:
 * layers of at most SGP_NARROW_OUTPUTS_MAX outputs use the narrow kernels, others OpenBLAS.
 *
 * Thread: the trainer's. No other thread calls BLAS, which has one pool of threads for the
 * process. */
#ifndef SGP_TRAIN_PRODUCT_H
#define SGP_TRAIN_PRODUCT_H

#include "sgp/precision.h"

/* Layers with so few outputs use the kernels. A BLAS packs its operands into panels that are as
 * wide as this. */
#define SGP_NARROW_OUTPUTS_MAX 15u

struct sgp_product_shape {
    size_t rows, inputs, outputs;
};

/* Values of the largest left and right operands, initially zero. */
struct sgp_product_room {
    uint64_t left, right;
};

struct sgp_product {
    enum sgp_precision precision;
    struct sgp_onednn *onednn; /* for BF16, else NULL */
    float *left, *right;       /* rounded operands, in borrowed memory; float32 needs none */
};

/* Widen the room so that the three products of this shape fit. */
void sgp_product_fit(struct sgp_product_room *room, const struct sgp_product_shape *shape);

/* Floats of memory that the operands need, in whole cache lines: 0 for float32. */
uint64_t sgp_product_floats(enum sgp_precision precision, const struct sgp_product_room *room);

/* `memory` has sgp_product_floats floats, begins on a cache line and outlives the product.
 * `threads` applies to oneDNN; OpenBLAS's threads are set for the process. Returns 0, -ENOMEM, or
 * SGP_E_CONFIG if sgp_precision_check refuses the precision. */
int sgp_product_init(struct sgp_product *product, enum sgp_precision precision, uint32_t threads,
    const struct sgp_product_room *room, float *memory);
void sgp_product_finish(struct sgp_product *product);

/* y[rows x outputs] = scale * features[rows x inputs] * W^T */
void sgp_product_forward(struct sgp_product *product, const struct sgp_product_shape *shape,
    float *y, const float *features, const float *weights, float scale);

/* gradient[outputs x inputs] = delta[rows x outputs]^T * features. With `add` the product is added
 * to gradient, for rows that come in several parts. */
void sgp_product_gradient(struct sgp_product *product, const struct sgp_product_shape *shape,
    float *gradient, const float *delta, const float *features, bool add);

/* below[rows x inputs] = scale * delta * W */
void sgp_product_back(struct sgp_product *product, const struct sgp_product_shape *shape,
    float *below, const float *delta, const float *weights, float scale);

#endif
