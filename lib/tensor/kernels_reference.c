/* SPDX-License-Identifier: Apache-2.0 */
/* The plain loops that define what every kernel computes, to the bit. They are written for reading,
 * not for speed. Any thread; no state. */
#include "bfloat.h"
#include "half.h"
#include "kernels_tables.h"

#include "sgp/status.h"

#include <math.h>
#include <string.h>

static void scale(float *y, const float *x, float factor, size_t count)
{
    for (size_t i = 0; i < count; i++)
        y[i] = factor * x[i];
}

static void absorb(float *x, const float *share, float fraction, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] += fraction * share[i];
}

static void place(float *x, const float *share, float fraction, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] = 0.0f + fraction * share[i];
}

static void estimate(float *z, const float *x, double weight, size_t count)
{
    for (size_t i = 0; i < count; i++)
        z[i] = (float)((double)x[i] / weight);
}

static float largest(const float *values, size_t count)
{
    float most = 0;
    for (size_t i = 0; i < count; i++) {
        float magnitude = isfinite(values[i]) ? fabsf(values[i]) : INFINITY;
        most = magnitude > most ? magnitude : most;
    }
    return most;
}

static void to_half(uint8_t *bytes, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t half = half_of(values[i]);
        memcpy(bytes + 2 * i, &half, sizeof half);
    }
}

static void from_half(float *values, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, bytes + 2 * i, sizeof half);
        values[i] = float_of_half(half);
    }
}

static void to_bfloat(uint8_t *bytes, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t bfloat = bfloat_of(values[i]);
        memcpy(bytes + 2 * i, &bfloat, sizeof bfloat);
    }
}

static void from_bfloat(float *values, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t bfloat;
        memcpy(&bfloat, bytes + 2 * i, sizeof bfloat);
        values[i] = float_of_bfloat(bfloat);
    }
}

static void quantise(int8_t *integers, const float *values, float inverse, size_t count)
{
    for (size_t i = 0; i < count; i++)
        integers[i] = (int8_t)rintf(values[i] * inverse);
}

static void dequantise(float *values, const int8_t *integers, float scale, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)integers[i] * scale;
}

static void pack_bits(uint8_t *bytes, const int8_t *integers, uint32_t bits, size_t count)
{
    memset(bytes, 0, (count * bits + 7) / 8);
    for (size_t at = 0; at < count * bits; at++) {
        unsigned bit = (uint8_t)integers[at / bits] >> at % bits & 1;
        bytes[at / 8] |= (uint8_t)(bit << at % 8);
    }
}

static void unpack_bits(int8_t *integers, const uint8_t *bytes, uint32_t bits, size_t count)
{
    sgp_assert(bits > 0 && bits <= 8);
    for (size_t i = 0; i < count; i++) {
        int integer = 0;
        for (size_t bit = 0, at = i * bits; bit < bits; bit++, at++)
            integer |= (bytes[at / 8] >> at % 8 & 1) << bit;
        int sign = 1 << (bits - 1);
        integers[i] = (int8_t)((integer ^ sign) - sign);
    }
}

static void fake_quantise(
    float *projected, const float *values, float inverse, float scale, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int8_t integer;
        quantise(&integer, values + i, inverse, 1);
        dequantise(projected + i, &integer, scale, 1);
    }
}

static float pairwise(float lanes[SGP_KERNELS_LANES])
{
    for (size_t half = SGP_KERNELS_LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

static float measure(double *ret_squares, const float *values, size_t count)
{
    double sum = 0;
    for (size_t first = 0; first < count; first += SGP_KERNELS_RUN) {
        float lanes[SGP_KERNELS_LANES] = {0};
        for (size_t i = first; i < count && i < first + SGP_KERNELS_RUN; i++)
            lanes[i % SGP_KERNELS_LANES] += values[i] * values[i];
        sum += (double)pairwise(lanes);
    }
    *ret_squares = sum;
    return largest(values, count);
}

static float fold(
    double *ret_squares, float *share, const float *x, float keep, float fraction, size_t count)
{
    float most = measure(ret_squares, share, count);
    for (size_t i = 0; i < count; i++)
        share[i] = keep * x[i] + fraction * share[i];
    return most;
}

static void distance(double *ret_difference, double *ret_norm, const float *a, float a_scale,
    const float *b, float b_scale, size_t count)
{
    double difference_sum = 0, norm_sum = 0;
    for (size_t first = 0; first < count; first += SGP_KERNELS_RUN) {
        float differences[SGP_KERNELS_LANES] = {0};
        float norms[SGP_KERNELS_LANES] = {0};
        for (size_t i = first; i < count && i < first + SGP_KERNELS_RUN; i++) {
            float estimate_b = b[i] * b_scale;
            float difference = a[i] * a_scale - estimate_b;
            differences[i % SGP_KERNELS_LANES] += difference * difference;
            norms[i % SGP_KERNELS_LANES] += estimate_b * estimate_b;
        }
        difference_sum += (double)pairwise(differences);
        norm_sum += (double)pairwise(norms);
    }
    *ret_difference = difference_sum;
    *ret_norm = norm_sum;
}

static float fold_distance(double *ret_squares, double *ret_difference, float *share,
    const float *x, const struct sgp_fold_factors *factors, size_t count)
{
    double norm;
    distance(ret_difference, &norm, share, factors->share_scale, x, factors->x_scale, count);
    return fold(ret_squares, share, x, factors->keep, factors->fraction, count);
}

static void sgd(float *x, const float *gradient, float rate, float decay, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] -= rate * (gradient[i] + decay * x[i]);
}

static void momentum(float *x, float *velocity, const float *gradient, float rate, float m,
    float decay, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        velocity[i] = m * velocity[i] + (gradient[i] + decay * x[i]);
        x[i] -= rate * velocity[i];
    }
}

static void nesterov(float *x, float *velocity, const float *gradient, float rate, float m,
    float decay, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float t = gradient[i] + decay * x[i];
        velocity[i] = m * velocity[i] + t;
        x[i] -= rate * (t + m * velocity[i]);
    }
}

static void lars(float *x, float *velocity, const float *gradient, float rate, float m, float local,
    float decay, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        velocity[i] = m * velocity[i] + local * (gradient[i] + decay * x[i]);
        x[i] -= rate * velocity[i];
    }
}

static void rmsprop(float *x, float *square, const float *gradient, float rate, float second,
    float epsilon, float decay, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float t = gradient[i] + decay * x[i];
        square[i] += second * (t * t - square[i]);
        x[i] -= rate * (t / (sqrtf(square[i]) + epsilon));
    }
}

static void moments(
    float *mean, float *square, float x, float gradient, const struct sgp_adam *adam)
{
    float t = gradient + adam->coupled * x;
    *mean += adam->first * (t - *mean);
    *square += adam->second * (t * t - *square);
}

/* Brings noise i forward; no vector of it without fraction. */
static void add_noise(float *noise, const float *deviation, size_t i, const struct sgp_adam *adam)
{
    if (adam->fraction > 0)
        noise[i] += adam->noise_second * (deviation[i] * deviation[i] - noise[i]);
}

/* What a step is divided by. */
static float divisor(float square, const float *noise, size_t i, const struct sgp_adam *adam)
{
    if (adam->fraction > 0) {
        float least = adam->fraction * square, rest = square - (1 - adam->fraction) * noise[i];
        square = rest > least ? rest : least;
    }
    return sqrtf(square) * adam->square_scale + adam->epsilon;
}

static float direction(float x, float mean, float root, const struct sgp_adam *adam)
{
    return mean * adam->mean_scale / root + adam->decay * x;
}

static void adam(float *x, float *mean, float *square, float *noise, const float *gradient,
    const float *deviation, const struct sgp_adam *adam, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        moments(mean + i, square + i, x[i], gradient[i], adam);
        add_noise(noise, deviation, i, adam);
        x[i] -= adam->rate * direction(x[i], mean[i], divisor(square[i], noise, i, adam), adam);
    }
}

static void rmsprop_fleet(float *x, float *square, float *noise, const float *gradient,
    const float *deviation, const struct sgp_adam *adam, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float t = gradient[i] + adam->coupled * x[i];
        square[i] += adam->second * (t * t - square[i]);
        add_noise(noise, deviation, i, adam);
        x[i] -= adam->rate * (t / divisor(square[i], noise, i, adam));
    }
}

static double pairwise_double(double lanes[SGP_KERNELS_LANES])
{
    for (size_t half = SGP_KERNELS_LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

static void lamb_moments(struct sgp_lamb_sums *ret_sums, float *mean, float *square, float *noise,
    const float *x, const float *gradient, const float *deviation, const struct sgp_adam *adam,
    size_t count)
{
    double x_lanes[SGP_KERNELS_LANES] = {0}, r_lanes[SGP_KERNELS_LANES] = {0};
    double q_lanes[SGP_KERNELS_LANES] = {0};
    for (size_t i = 0; i < count; i++) {
        moments(mean + i, square + i, x[i], gradient[i], adam);
        add_noise(noise, deviation, i, adam);
        float root = divisor(square[i], noise, i, adam);
        double r = (double)direction(x[i], mean[i], root, adam);
        x_lanes[i % SGP_KERNELS_LANES] += (double)x[i] * (double)x[i];
        r_lanes[i % SGP_KERNELS_LANES] += r * r;
        if (!(adam->fraction > 0))
            continue;
        double q = (double)(sqrtf(adam->spread * noise[i]) * adam->square_scale / root);
        q_lanes[i % SGP_KERNELS_LANES] += q * q;
    }
    *ret_sums = (struct sgp_lamb_sums){.x = pairwise_double(x_lanes),
        .r = pairwise_double(r_lanes),
        .q = pairwise_double(q_lanes)};
}

static void lamb(float *x, const float *mean, const float *square, const float *noise,
    const struct sgp_adam *adam, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] -= adam->rate * direction(x[i], mean[i], divisor(square[i], noise, i, adam), adam);
}

static double squares(const float *values, size_t count)
{
    double lanes[SGP_KERNELS_LANES] = {0};
    for (size_t i = 0; i < count; i++)
        lanes[i % SGP_KERNELS_LANES] += (double)values[i] * (double)values[i];
    return pairwise_double(lanes);
}

static void clip(float *values, float limit, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        values[i] = values[i] > limit ? limit : values[i];
        values[i] = values[i] < -limit ? -limit : values[i];
    }
}

static void widen(float *values, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)bytes[i] / 255.0f;
}

static void bias(float *y, const float *b, float scale, size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            y[r * columns + c] += scale * b[c];
}

static void bias_relu(float *y, const float *b, float scale, size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            float value = y[r * columns + c] + scale * b[c];
            y[r * columns + c] = value < 0.0f ? 0.0f : value;
        }
}

/* exp(value) = *ret_power * (1 + result), for EXP_LEAST <= value <= EXP_GREATEST. */
static float exponential(float *ret_power, float value)
{
    float rounded = value * EXP_LOG2_E + EXP_ROUNDER;
    float n = rounded - EXP_ROUNDER;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    bits = (bits << EXP_SHIFT) + EXP_BIAS;
    memcpy(ret_power, &bits, sizeof bits);
    float r = (value - n * EXP_LN2_HIGH) - n * EXP_LN2_LOW;
    float sum = 1.0f / 5040;
    sum = sum * r + 1.0f / 720;
    sum = sum * r + 1.0f / 120;
    sum = sum * r + 1.0f / 24;
    sum = sum * r + 1.0f / 6;
    sum = sum * r + 0.5f;
    sum = sum * r + 1.0f;
    return sum * r;
}

/* (exp(2v) - 1) / (exp(2v) + 1) of |v|, so that there is no cancellation near 0. */
static float hyperbolic_tangent(float value)
{
    float magnitude = fabsf(value);
    magnitude = magnitude > TANH_GREATEST ? TANH_GREATEST : magnitude;
    float power;
    float part = exponential(&power, magnitude + magnitude);
    float above = power * part + (power - 1.0f);
    return copysignf(above / (above + 2.0f), value);
}

static float sigmoid(float value)
{
    float opposite = -value > EXP_GREATEST ? EXP_GREATEST : -value;
    opposite = opposite < EXP_LEAST ? EXP_LEAST : opposite;
    float power;
    float part = exponential(&power, opposite);
    return 1.0f / (1.0f + (power * part + power));
}

static void bias_tanh(float *y, const float *b, float scale, size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            y[r * columns + c] = hyperbolic_tangent(y[r * columns + c] + scale * b[c]);
}

static void bias_sigmoid(float *y, const float *b, float scale, size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            y[r * columns + c] = sigmoid(y[r * columns + c] + scale * b[c]);
}

static void column_sums(float *sums, const float *delta, size_t rows, size_t columns)
{
    for (size_t c = 0; c < columns; c++)
        sums[c] = 0.0f;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            sums[c] += delta[r * columns + c];
}

static void relu_backward(float *delta, float *sums, const float *y, size_t rows, size_t columns)
{
    for (size_t i = 0; i < rows * columns; i++)
        delta[i] = y[i] > 0.0f ? delta[i] : 0.0f;
    column_sums(sums, delta, rows, columns);
}

static float product(const float *row, const float *weights, float scale, size_t inputs)
{
    float lanes[SGP_KERNELS_PRODUCT_LANES] = {0};
    for (size_t i = 0; i < inputs; i++)
        lanes[i % SGP_KERNELS_PRODUCT_LANES] += row[i] * weights[i];
    for (size_t half = SGP_KERNELS_PRODUCT_LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return scale * lanes[0];
}

static void narrow_product(float *y, const float *features, const float *weights, float scale,
    size_t rows, size_t inputs, size_t outputs)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < outputs; o++)
            y[r * outputs + o] =
                product(features + r * inputs, weights + o * inputs, scale, inputs);
}

static void narrow_gradient(float *gradient, const float *delta, const float *features, size_t rows,
    size_t inputs, size_t outputs)
{
    for (size_t o = 0; o < outputs; o++)
        for (size_t i = 0; i < inputs; i++) {
            gradient[o * inputs + i] = 0.0f;
            for (size_t r = 0; r < rows; r++)
                gradient[o * inputs + i] += features[r * inputs + i] * delta[r * outputs + o];
        }
}

const struct sgp_kernels sgp_kernels_table_reference = {.name = "reference",
    .scale = scale,
    .absorb = absorb,
    .place = place,
    .fold = fold,
    .fold_distance = fold_distance,
    .estimate = estimate,
    .largest = largest,
    .measure = measure,
    .distance = distance,
    .to_half = to_half,
    .from_half = from_half,
    .to_bfloat = to_bfloat,
    .from_bfloat = from_bfloat,
    .quantise = quantise,
    .dequantise = dequantise,
    .pack_bits = pack_bits,
    .unpack_bits = unpack_bits,
    .fake_quantise = fake_quantise,
    .sgd = sgd,
    .momentum = momentum,
    .nesterov = nesterov,
    .lars = lars,
    .rmsprop = rmsprop,
    .rmsprop_fleet = rmsprop_fleet,
    .adam = adam,
    .lamb_moments = lamb_moments,
    .lamb = lamb,
    .squares = squares,
    .clip = clip,
    .widen = widen,
    .bias = bias,
    .bias_relu = bias_relu,
    .bias_tanh = bias_tanh,
    .bias_sigmoid = bias_sigmoid,
    .column_sums = column_sums,
    .relu_backward = relu_backward,
    .narrow_product = narrow_product,
    .narrow_gradient = narrow_gradient};
