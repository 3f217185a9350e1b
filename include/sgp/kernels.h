/* SPDX-License-Identifier: Apache-2.0 */
/* Vector kernels: a plain reference and faster twins, chosen when the program runs.
 *
 * Every twin gives the bits of the reference for every input (only which NaN a NaN is may differ),
 * so that nodes on unlike processors do not drift apart: products and sums are rounded one by one,
 * never contracted, and a sum over many values has one fixed order. Vectors need no alignment beyond
 * a float's; outputs must not overlap inputs unless they are the same argument. A count of 0 does
 * nothing. Any thread; no state.
 *
 * The kernels that take a `scale` work on the estimate z = x / w without ever writing it down:
 * scale is 1/w, rounded to float32. */
#ifndef SGP_KERNELS_H
#define SGP_KERNELS_H

#include "sgp/types.h"

/* One step of Adam or of a rule that is made of it, for every value, in this order of roundings:
 *
 *   t = gradient + coupled * x
 *   mean += first * (t - mean)         square += second * (t * t - square)
 *   r = mean * mean_scale / (sqrt(square) * square_scale + epsilon) + decay * x
 *   x -= rate * r
 *
 * `first` is 1 - beta1 and `second` is 1 - beta2: as float32 these are nearer to what is meant than
 * beta1 and beta2.
 *
 * With `fraction` above 0 a part of the gradient's variance is left out of what is divided by, see
 * sgp/optimizer.h. In r, `kept` then has the place of square:
 *
 *   noise += noise_second * (deviation * deviation - noise)
 *   kept = the larger of fraction * square and square - (1 - fraction) * noise */
struct sgp_adam {
    float rate, coupled, first, second;
    float mean_scale, square_scale; /* 1 / (1 - beta1^t), and 1 / sqrt(1 - beta2^t), in step t */
    float epsilon, decay;
    float fraction, noise_second; /* [0, 1) */
    float spread;                 /* of lamb_moments */
};

struct sgp_lamb_sums {
    double x, r, q; /* sums of squares */
};

struct sgp_kernels {
    const char *name; /* "reference", "portable", "avx2" */

    /* --- mass --- */

    /* y[i] = factor * x[i] */
    void (*scale)(float *y, const float *x, float factor, size_t count);
    /* x[i] += fraction * share[i], the product rounded first */
    void (*absorb)(float *x, const float *share, float fraction, size_t count);
    /* x[i] = 0 + fraction * share[i], the product rounded first: absorbed into zeros. Written past the caches, where the
     * processor can: for more than they keep until it is read. */
    void (*place)(float *x, const float *share, float fraction, size_t count);
    /* share[i] = keep * x[i] + fraction * share[i], the products rounded first: scale, then absorb, in one pass.
     * Measures the share as it was, as `measure` does. */
    float (*fold)(double *ret_squares, float *share, const float *x, float keep, float fraction,
        size_t count);
    /* estimate[i] = x[i] / weight, divided in float64 and rounded once: the nearest float32; both may be the
     * same vector */
    void (*estimate)(float *estimate, const float *x, double weight, size_t count);
    /* The largest magnitude, 0 of no values; infinite if any value is a NaN or an infinity. */
    float (*largest)(const float *values, size_t count);
    /* As `largest`, and *ret_squares = the sum of the squares, infinite or a NaN if any of them is no float32;
     * summed as below. */
    float (*measure)(double *ret_squares, const float *values, size_t count);
    /* *ret_difference = sum (a[i]*a_scale - b[i]*b_scale)^2 and *ret_norm = sum (b[i]*b_scale)^2. Values
     * and squares are float32. SGP_KERNELS_RUN values at a time are summed in float32, in SGP_KERNELS_LANES
     * lanes, value i in lane i modulo that, which are then added pairwise; the sums of these runs are added
     * in float64. */
    void (*distance)(double *ret_difference, double *ret_norm, const float *a, float a_scale,
        const float *b, float b_scale, size_t count);

    /* --- blocks (sgp/block.h): numbers of 16 bits are little-endian; outputs overlap no inputs,
     *     except in fake_quantise --- */

    /* The nearest binary16 of each value, to even; a finite value beyond 65504 is taken for that. A NaN keeps its upper bits
     * and is quiet. */
    void (*to_half)(uint8_t *bytes, const float *values, size_t count);
    /* The value of each, exactly. */
    void (*from_half)(float *values, const uint8_t *bytes, size_t count);
    /* As to_half and from_half, for bfloat16: the upper half of a float32. The greatest finite
     * bfloat16 is 0x7f7f. */
    void (*to_bfloat)(uint8_t *bytes, const float *values, size_t count);
    void (*from_bfloat)(float *values, const uint8_t *bytes, size_t count);
    /* integers[i] = values[i] * inverse, the product rounded to float32, then to the nearest
     * integer, to even. Each product must be below 127.5 in magnitude. */
    void (*quantise)(int8_t *integers, const float *values, float inverse, size_t count);
    /* values[i] = integers[i] * scale */
    void (*dequantise)(float *values, const int8_t *integers, float scale, size_t count);
    /* Quantise, then dequantise: projected[i] is never -0. Both may be the same vector. */
    void (*fake_quantise)(
        float *projected, const float *values, float inverse, float scale, size_t count);
    /* Write the low `bits` of each integer, 1 to 8, as a little-endian bit stream: integer i has
     * the bits i * bits to (i + 1) * bits - 1. Zeros fill the last byte. */
    void (*pack_bits)(uint8_t *bytes, const int8_t *integers, uint32_t bits, size_t count);
    /* The reverse, to integers in two's complement; with 1 bit to 0 or -1. */
    void (*unpack_bits)(int8_t *integers, const uint8_t *bytes, uint32_t bits, size_t count);

    /* --- optimiser updates, one pass over memory; decay is weight_decay / w, so that it acts on z;
     *     t = gradient[i] + decay * x[i] --- */

    /* x[i] -= rate * t */
    void (*sgd)(float *x, const float *gradient, float rate, float decay, size_t count);
    /* u = m * velocity[i] + t; velocity[i] = u; x[i] -= rate * u */
    void (*momentum)(float *x, float *velocity, const float *gradient, float rate, float m,
        float decay, size_t count);
    /* u = m * velocity[i] + t; velocity[i] = u; x[i] -= rate * (t + m * u) */
    void (*nesterov)(float *x, float *velocity, const float *gradient, float rate, float m,
        float decay, size_t count);
    /* u = m * velocity[i] + local * t; velocity[i] = u; x[i] -= rate * u */
    void (*lars)(float *x, float *velocity, const float *gradient, float rate, float m, float local,
        float decay, size_t count);
    /* square[i] += second * (t * t - square[i]); x[i] -= rate * (t / (sqrt(square[i]) + epsilon)) */
    void (*rmsprop)(float *x, float *square, const float *gradient, float rate, float second,
        float epsilon, float decay, size_t count);
    /* The same with fraction above 0: the lines of square and noise, then
     *   x[i] -= rate * (t / (sqrt(kept) + epsilon)) */
    void (*rmsprop_fleet)(float *x, float *square, float *noise, const float *gradient,
        const float *deviation, const struct sgp_adam *adam, size_t count);
    /* All lines of struct sgp_adam. `noise` and `deviation` are not looked at without fraction. */
    void (*adam)(float *x, float *mean, float *square, float *noise, const float *gradient,
        const float *deviation, const struct sgp_adam *adam, size_t count);
    /* All lines but the last, and the sums of the squares of x, of r, and of q, as `squares` adds.
     * Without fraction q is 0, else
     *   q^2 = spread * noise * square_scale^2 / (sqrt(kept) * square_scale + epsilon)^2 */
    void (*lamb_moments)(struct sgp_lamb_sums *ret_sums, float *mean, float *square, float *noise,
        const float *x, const float *gradient, const float *deviation, const struct sgp_adam *adam,
        size_t count);
    /* The last two lines. */
    void (*lamb)(float *x, const float *mean, const float *square, const float *noise,
        const struct sgp_adam *adam, size_t count);
    /* The sum of values[i]^2 in float64, in SGP_KERNELS_LANES lanes, value i in lane i modulo that,
     * which are then added pairwise. */
    double (*squares)(const float *values, size_t count);
    /* values[i] = limit or -limit where its magnitude is above limit >= 0; a NaN stays one */
    void (*clip)(float *values, float limit, size_t count);

    /* --- data --- */

    /* values[i] = bytes[i] / 255, the nearest float32 */
    void (*widen)(float *values, const uint8_t *bytes, size_t count);

    /* --- layers; matrices are rows x columns, row-major, without padding --- */

    /* y[r][c] += scale * bias[c] */
    void (*bias)(float *y, const float *bias, float scale, size_t rows, size_t columns);
    /* y[r][c] = relu(y[r][c] + scale * bias[c]); a NaN stays one */
    void (*bias_relu)(float *y, const float *bias, float scale, size_t rows, size_t columns);
    /* y[r][c] = tanh(y[r][c] + scale * bias[c]), or its sigmoid 1 / (1 + exp(-.)), within 4e-7 of the value
     * relative to it (of a sigmoid: of 1e-31, where that is more); a NaN stays one */
    void (*bias_tanh)(float *y, const float *bias, float scale, size_t rows, size_t columns);
    void (*bias_sigmoid)(float *y, const float *bias, float scale, size_t rows, size_t columns);
    /* sums[c] = delta[0][c] + delta[1][c] + ..., from the first row to the last */
    void (*column_sums)(float *sums, const float *delta, size_t rows, size_t columns);
    /* delta[r][c] = 0 where y[r][c] is not above 0; then as column_sums */
    void (*relu_backward)(float *delta, float *sums, const float *y, size_t rows, size_t columns);

    /* --- matrix products of a layer with few outputs, for which a BLAS is slow; any number works --- */

    /* y[r][o] = scale * sum of features[r][i] * weights[o][i], which runs in SGP_KERNELS_PRODUCT_LANES
     * lanes, input i in lane i modulo that, which are then added pairwise. */
    void (*narrow_product)(float *y, const float *features, const float *weights, float scale,
        size_t rows, size_t inputs, size_t outputs);
    /* gradient[o][i] = features[0][i] * delta[0][o] + features[1][i] * delta[1][o] + ..., from the first
     * row to the last */
    void (*narrow_gradient)(float *gradient, const float *delta, const float *features, size_t rows,
        size_t inputs, size_t outputs);
};

#define SGP_KERNELS_LANES 16u        /* partial sums of a sum over many values */
#define SGP_KERNELS_RUN 1024u        /* values summed in float32; a multiple of the lanes */
#define SGP_KERNELS_PRODUCT_LANES 8u /* partial sums of narrow_product */
#define SGP_KERNELS_TWINS_MAX 3u

/* The plain loops that define every result. */
const struct sgp_kernels *sgp_kernels_reference(void);

/* The fastest twin that this processor can run. */
const struct sgp_kernels *sgp_kernels_best(void);

/* All twins that this processor can run, the reference first, the best last. Fills
 * ret_twins[0..count) and returns count. */
size_t sgp_kernels_all(const struct sgp_kernels *ret_twins[static SGP_KERNELS_TWINS_MAX]);

/* How far two long vectors are apart is well enough known from a sample: of their runs of SGP_KERNELS_RUN values
 * those whose number is a multiple of this, between 64 and 128 of `count` values that have as many, else all. */
uint64_t sgp_kernels_stride(uint64_t count);

/* sqrt(difference) / sqrt(norm), of sums of what `distance` gave: the disagreement |z_a - z_b| / |z_b| of two
 * nodes' estimates. 0 if difference is 0; infinite if only norm is, or if difference is too large for a
 * number. */
double sgp_relative_difference(double difference, double norm);

#endif
