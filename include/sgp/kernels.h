/* SPDX-License-Identifier: Apache-2.0 */
/* Vector kernels: a plain reference, and faster twins that are chosen at run time.
 *
 * Every twin gives the same bits as the reference for every input. Only the payload of a NaN may
 * differ. So nodes on unlike processors do not drift apart. Products and sums are rounded one by
 * one and never contracted, and a sum over many values has one fixed order. Vectors need no
 * alignment beyond that of a float. Outputs must not overlap inputs unless they are the same
 * argument. A count of 0 does nothing. Any thread; no state.
 *
 * The kernels with a `scale` parameter work on the estimate z = x / w without storing it. Scale is
 * 1/w, rounded to float32. */
#ifndef SGP_KERNELS_H
#define SGP_KERNELS_H

#include "sgp/types.h"

/* One step of Adam or of a rule derived from it, for every value, in this order of roundings:
 *
 *   t = gradient + coupled * x
 *   mean += first * (t - mean)         square += second * (t * t - square)
 *   r = mean * mean_scale / (sqrt(square) * square_scale + epsilon) + decay * x
 *   x -= rate * r
 *
 * `first` is 1 - beta1 and `second` is 1 - beta2. As float32, these are more precise than beta1 and
 * beta2.
 *
 * If `fraction` is above 0, a part of the gradient's variance is left out of the divisor, see
 * sgp/optimizer.h. In r, `kept` then replaces square:
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

/* Of `fold_distance`: those of `fold`, and those of `distance`, where share is a and x is b. */
struct sgp_fold_factors {
    float keep, fraction;
    float share_scale, x_scale;
};

struct sgp_kernels {
    const char *name; /* "reference", "portable", "avx2" */

    /* --- mass --- */

    /* y[i] = factor * x[i] */
    void (*scale)(float *y, const float *x, float factor, size_t count);
    /* x[i] += fraction * share[i], the product rounded first */
    void (*absorb)(float *x, const float *share, float fraction, size_t count);
    /* x[i] = 0 + fraction * share[i], the product rounded first. This is `absorb` into zeros. Where
     * the processor can, the stores bypass the caches. So this kernel suits vectors that would
     * leave the caches before they are read. */
    void (*place)(float *x, const float *share, float fraction, size_t count);
    /* share[i] = keep * x[i] + fraction * share[i], the products rounded first. This is scale, then
     * absorb, in one pass. The share's old content is measured as by `measure`. */
    float (*fold)(double *ret_squares, float *share, const float *x, float keep, float fraction,
        size_t count);
    /* As `fold`, and *ret_difference is that of `distance` from share to x, with the scales of
     * `factors`, before share changes. */
    float (*fold_distance)(double *ret_squares, double *ret_difference, float *share,
        const float *x, const struct sgp_fold_factors *factors, size_t count);
    /* estimate[i] = x[i] / weight, divided in float64 and rounded once to the nearest float32. Both
     * may be the same vector. */
    void (*estimate)(float *estimate, const float *x, double weight, size_t count);
    /* The largest magnitude, 0 for an empty vector. Infinite if any value is a NaN or an
     * infinity. */
    float (*largest)(const float *values, size_t count);
    /* As `largest`, and *ret_squares = the sum of the squares, added as `distance` adds. The sum is
     * infinite or a NaN if a square is not a finite float32. */
    float (*measure)(double *ret_squares, const float *values, size_t count);
    /* *ret_difference = sum (a[i]*a_scale - b[i]*b_scale)^2 and *ret_norm = sum (b[i]*b_scale)^2.
     * Values and squares are float32. Runs of SGP_KERNELS_RUN values are summed in float32, in
     * SGP_KERNELS_LANES lanes. Value i is in lane i modulo SGP_KERNELS_LANES. The lanes are then
     * added pairwise, and the sums of the runs are added in float64. */
    void (*distance)(double *ret_difference, double *ret_norm, const float *a, float a_scale,
        const float *b, float b_scale, size_t count);

    /* --- blocks (sgp/block.h) ---
     *
     * Numbers of 16 bits are little-endian. Outputs overlap no inputs, except in fake_quantise. */

    /* The nearest binary16 of each value, ties to even. A finite value beyond 65504 becomes 65504.
     * A NaN keeps its upper bits and becomes quiet. */
    void (*to_half)(uint8_t *bytes, const float *values, size_t count);
    /* The value of each binary16, exactly. */
    void (*from_half)(float *values, const uint8_t *bytes, size_t count);
    /* As to_half and from_half, for bfloat16: the upper half of a float32. The greatest finite
     * bfloat16 is 0x7f7f. */
    void (*to_bfloat)(uint8_t *bytes, const float *values, size_t count);
    void (*from_bfloat)(float *values, const uint8_t *bytes, size_t count);
    /* integers[i] = values[i] * inverse, the product rounded to float32, then to the nearest
     * integer, ties to even. Each product must be below 127.5 in magnitude. */
    void (*quantise)(int8_t *integers, const float *values, float inverse, size_t count);
    /* values[i] = integers[i] * scale */
    void (*dequantise)(float *values, const int8_t *integers, float scale, size_t count);
    /* Quantise, then dequantise: projected[i] is never -0. Both may be the same vector. */
    void (*fake_quantise)(
        float *projected, const float *values, float inverse, float scale, size_t count);
    /* Write the low `bits` of each integer, 1 to 8, as a little-endian bit stream. Integer i has
     * the bits i * bits to (i + 1) * bits - 1. Zeros fill the last byte. */
    void (*pack_bits)(uint8_t *bytes, const int8_t *integers, uint32_t bits, size_t count);
    /* The reverse of pack_bits, to integers in two's complement. One bit becomes 0 or -1. */
    void (*unpack_bits)(int8_t *integers, const uint8_t *bytes, uint32_t bits, size_t count);

    /* --- optimiser updates, one pass over memory ---
     *
     * decay is weight_decay / w, so that it acts on z. t = gradient[i] + decay * x[i]. */

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
    /* square[i] += second * (t * t - square[i]);
     * x[i] -= rate * (t / (sqrt(square[i]) + epsilon)) */
    void (*rmsprop)(float *x, float *square, const float *gradient, float rate, float second,
        float epsilon, float decay, size_t count);
    /* rmsprop with fraction above 0: the formulas of square and noise, then
     *
     *   x[i] -= rate * (t / (sqrt(kept) + epsilon)) */
    void (*rmsprop_fleet)(float *x, float *square, float *noise, const float *gradient,
        const float *deviation, const struct sgp_adam *adam, size_t count);
    /* All formulas of struct sgp_adam. Without fraction, `noise` and `deviation` are not read. */
    void (*adam)(float *x, float *mean, float *square, float *noise, const float *gradient,
        const float *deviation, const struct sgp_adam *adam, size_t count);
    /* All formulas but the last. Returns the sums of the squares of x, of r, and of q, added as by
     * `squares`. Without fraction q is 0. With fraction:
     *
     *   q^2 = spread * noise * square_scale^2 / (sqrt(kept) * square_scale + epsilon)^2 */
    void (*lamb_moments)(struct sgp_lamb_sums *ret_sums, float *mean, float *square, float *noise,
        const float *x, const float *gradient, const float *deviation, const struct sgp_adam *adam,
        size_t count);
    /* The last two formulas of struct sgp_adam. */
    void (*lamb)(float *x, const float *mean, const float *square, const float *noise,
        const struct sgp_adam *adam, size_t count);
    /* The sum of values[i]^2 in float64, in SGP_KERNELS_LANES lanes. Value i is in lane i modulo
     * SGP_KERNELS_LANES. The lanes are then added pairwise. */
    double (*squares)(const float *values, size_t count);
    /* values[i] = limit or -limit where its magnitude is above limit >= 0. A NaN remains a NaN. */
    void (*clip)(float *values, float limit, size_t count);

    /* --- data --- */

    /* values[i] = bytes[i] / 255, the nearest float32 */
    void (*widen)(float *values, const uint8_t *bytes, size_t count);

    /* --- layers; matrices are rows x columns, row-major, without padding --- */

    /* y[r][c] += scale * bias[c] */
    void (*bias)(float *y, const float *bias, float scale, size_t rows, size_t columns);
    /* y[r][c] = relu(y[r][c] + scale * bias[c]). A NaN remains a NaN. */
    void (*bias_relu)(float *y, const float *bias, float scale, size_t rows, size_t columns);
    /* y[r][c] = tanh(y[r][c] + scale * bias[c]), or its sigmoid 1 / (1 + exp(-.)). The error is
     * below 4e-7 times the value. For a sigmoid below 1e-31, the error is below 4e-7 times 1e-31. A
     * NaN remains a NaN. */
    void (*bias_tanh)(float *y, const float *bias, float scale, size_t rows, size_t columns);
    void (*bias_sigmoid)(float *y, const float *bias, float scale, size_t rows, size_t columns);
    /* sums[c] = delta[0][c] + delta[1][c] + ..., from the first row to the last */
    void (*column_sums)(float *sums, const float *delta, size_t rows, size_t columns);
    /* delta[r][c] = 0 where y[r][c] is not above 0; then as column_sums */
    void (*relu_backward)(float *delta, float *sums, const float *y, size_t rows, size_t columns);

    /* --- matrix products of a layer with few outputs ---
     *
     * A BLAS is slow for these. Any number of outputs works. */

    /* y[r][o] = scale * sum of features[r][i] * weights[o][i]. The sum has
     * SGP_KERNELS_PRODUCT_LANES lanes. Input i is in lane i modulo SGP_KERNELS_PRODUCT_LANES. The
     * lanes are then added pairwise. */
    void (*narrow_product)(float *y, const float *features, const float *weights, float scale,
        size_t rows, size_t inputs, size_t outputs);
    /* gradient[o][i] = features[0][i] * delta[0][o] + features[1][i] * delta[1][o] + ..., from the
     * first row to the last. */
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

/* The stride of the sample that estimates the distance of two long vectors. The sample has the runs
 * of SGP_KERNELS_RUN values whose number is a multiple of the stride. If `count` values have enough
 * runs, the sample has 64 to 128 of them, else all. */
uint64_t sgp_kernels_stride(uint64_t count);

/* sqrt(difference) / sqrt(norm), of sums that `distance` gave: the disagreement |z_a - z_b| / |z_b|
 * of two nodes' estimates. The result is 0 if difference is 0. The result is infinite if only norm
 * is 0, or if difference overflows. */
double sgp_relative_difference(double difference, double norm);

#endif
