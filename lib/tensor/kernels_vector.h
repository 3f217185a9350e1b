/* The fast twin, written once for a vector of VECTOR_BYTES bytes with the vector extension that gcc
 * and clang share. kernels_portable.c and kernels_avx2.c include it, each compiled for its own
 * processor, after defining VECTOR_BYTES, TABLE and NAME.
 *
 * The body of each loop does what kernels_reference.c does, in the same order of roundings; what is
 * left after the last whole vector is given to the reference. Any thread; no state. */
#include "twins.h"

#include <string.h>

#define FLOATS ((size_t)VECTOR_BYTES / sizeof(float))   /* floats in a vector */
#define DOUBLES ((size_t)VECTOR_BYTES / sizeof(double)) /* doubles in a vector */
#define WHOLE(count) ((count) - (count) % FLOATS)

/* Under-aligned, so that a row of any length may begin anywhere. */
#define VECTOR(type, bytes) type __attribute__((vector_size(bytes), aligned(4), may_alias))
typedef VECTOR(float, VECTOR_BYTES) floats;
typedef VECTOR(int32_t, VECTOR_BYTES) integers;
typedef VECTOR(double, VECTOR_BYTES) doubles;
typedef VECTOR(
    float, VECTOR_BYTES / 2) halves; /* as many floats as there are doubles in a vector */

static const struct sgp_kernels *const reference = &sgp_kernels_table_reference;

static void publish(float *snapshot, float *x, float keep, size_t count)
{
    size_t whole = WHOLE(count);
    for (size_t i = 0; i < whole; i += FLOATS) {
        floats value = *(floats *)(x + i);
        *(floats *)(snapshot + i) = value;
        *(floats *)(x + i) = value * keep;
    }
    reference->publish(snapshot + whole, x + whole, keep, count - whole);
}

static void absorb(float *x, const float *share, float fraction, size_t count)
{
    size_t whole = WHOLE(count);
    for (size_t i = 0; i < whole; i += FLOATS)
        *(floats *)(x + i) += *(const floats *)(share + i) * fraction;
    reference->absorb(x + whole, share + whole, fraction, count - whole);
}

static void estimate(float *z, const float *x, double weight, size_t count)
{
    size_t whole = count - count % DOUBLES;
    for (size_t i = 0; i < whole; i += DOUBLES) {
        doubles quotient = __builtin_convertvector(*(const halves *)(x + i), doubles) / weight;
        *(halves *)(z + i) = __builtin_convertvector(quotient, halves);
    }
    reference->estimate(z + whole, x + whole, weight, count - whole);
}

/* Without their sign, floats are in the order of their bits, and NaNs come after infinity. */
static float largest(const float *values, size_t count)
{
    size_t whole = WHOLE(count);
    integers most = {0};
    for (size_t i = 0; i < whole; i += FLOATS) {
        integers magnitude = *(const integers *)(values + i) & 0x7fffffff;
        integers above = magnitude > most;
        most = (magnitude & above) | (most & ~above);
    }
    float lanes[FLOATS + 1];
    memcpy(lanes, &most, sizeof most);
    lanes[FLOATS] = reference->largest(values + whole, count - whole);
    return reference->largest(lanes, FLOATS + 1);
}

static double fold(double lanes[SGP_KERNELS_LANES])
{
    for (size_t half = SGP_KERNELS_LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

static void distance(double *ret_difference, double *ret_norm, const float *a, double a_scale,
    const float *b, double b_scale, size_t count)
{
    doubles differences[SGP_KERNELS_LANES / DOUBLES] = {0};
    doubles norms[SGP_KERNELS_LANES / DOUBLES] = {0};
    size_t whole = count - count % SGP_KERNELS_LANES;
    for (size_t i = 0; i < whole; i += SGP_KERNELS_LANES)
        for (size_t j = 0; j < SGP_KERNELS_LANES / DOUBLES; j++) {
            halves part_a = *(const halves *)(a + i + j * DOUBLES);
            halves part_b = *(const halves *)(b + i + j * DOUBLES);
            doubles estimate_b = __builtin_convertvector(part_b, doubles) * b_scale;
            doubles difference = __builtin_convertvector(part_a, doubles) * a_scale - estimate_b;
            differences[j] += difference * difference;
            norms[j] += estimate_b * estimate_b;
        }
    double difference_lanes[SGP_KERNELS_LANES];
    double norm_lanes[SGP_KERNELS_LANES];
    memcpy(difference_lanes, differences, sizeof difference_lanes);
    memcpy(norm_lanes, norms, sizeof norm_lanes);
    for (size_t i = whole; i < count; i++) {
        double estimate_b = (double)b[i] * b_scale;
        double difference = (double)a[i] * a_scale - estimate_b;
        difference_lanes[i - whole] += difference * difference;
        norm_lanes[i - whole] += estimate_b * estimate_b;
    }
    *ret_difference = fold(difference_lanes);
    *ret_norm = fold(norm_lanes);
}

static void sgd(float *x, const float *gradient, float rate, float decay, size_t count)
{
    size_t whole = WHOLE(count);
    for (size_t i = 0; i < whole; i += FLOATS) {
        floats value = *(floats *)(x + i);
        *(floats *)(x + i) = value - (*(const floats *)(gradient + i) + value * decay) * rate;
    }
    reference->sgd(x + whole, gradient + whole, rate, decay, count - whole);
}

static void momentum(float *x, float *velocity, const float *gradient, float rate, float m,
    float decay, size_t count)
{
    size_t whole = WHOLE(count);
    for (size_t i = 0; i < whole; i += FLOATS) {
        floats value = *(floats *)(x + i);
        floats t = *(const floats *)(gradient + i) + value * decay;
        floats u = *(floats *)(velocity + i) * m + t;
        *(floats *)(velocity + i) = u;
        *(floats *)(x + i) = value - u * rate;
    }
    reference->momentum(
        x + whole, velocity + whole, gradient + whole, rate, m, decay, count - whole);
}

static void nesterov(float *x, float *velocity, const float *gradient, float rate, float m,
    float decay, size_t count)
{
    size_t whole = WHOLE(count);
    for (size_t i = 0; i < whole; i += FLOATS) {
        floats value = *(floats *)(x + i);
        floats t = *(const floats *)(gradient + i) + value * decay;
        floats u = *(floats *)(velocity + i) * m + t;
        *(floats *)(velocity + i) = u;
        *(floats *)(x + i) = value - (t + u * m) * rate;
    }
    reference->nesterov(
        x + whole, velocity + whole, gradient + whole, rate, m, decay, count - whole);
}

static void bias(float *y, const float *b, float scale, size_t rows, size_t columns)
{
    size_t whole = WHOLE(columns);
    for (size_t r = 0; r < rows; r++, y += columns) {
        for (size_t c = 0; c < whole; c += FLOATS)
            *(floats *)(y + c) += *(const floats *)(b + c) * scale;
        reference->bias(y + whole, b + whole, scale, 1, columns - whole);
    }
}

static void bias_relu(float *y, const float *b, float scale, size_t rows, size_t columns)
{
    size_t whole = WHOLE(columns);
    for (size_t r = 0; r < rows; r++, y += columns) {
        for (size_t c = 0; c < whole; c += FLOATS) {
            floats value = *(floats *)(y + c) + *(const floats *)(b + c) * scale;
            integers below = value < (floats){0};
            *(integers *)(y + c) = (integers)value & ~below;
        }
        reference->bias_relu(y + whole, b + whole, scale, 1, columns - whole);
    }
}

static void column_sums(float *sums, const float *delta, size_t rows, size_t columns)
{
    memset(sums, 0, columns * sizeof *sums);
    size_t whole = WHOLE(columns);
    for (size_t r = 0; r < rows; r++, delta += columns) {
        for (size_t c = 0; c < whole; c += FLOATS)
            *(floats *)(sums + c) += *(const floats *)(delta + c);
        for (size_t c = whole; c < columns; c++)
            sums[c] += delta[c];
    }
}

static void relu_backward(float *delta, float *sums, const float *y, size_t rows, size_t columns)
{
    memset(sums, 0, columns * sizeof *sums);
    size_t whole = WHOLE(columns);
    for (size_t r = 0; r < rows; r++, delta += columns, y += columns) {
        for (size_t c = 0; c < whole; c += FLOATS) {
            integers above = *(const floats *)(y + c) > (floats){0};
            integers kept = *(integers *)(delta + c) & above;
            *(integers *)(delta + c) = kept;
            *(floats *)(sums + c) += (floats)kept;
        }
        for (size_t c = whole; c < columns; c++) {
            delta[c] = y[c] > 0.0f ? delta[c] : 0.0f;
            sums[c] += delta[c];
        }
    }
}

const struct sgp_kernels TABLE = {.name = NAME,
    .publish = publish,
    .absorb = absorb,
    .estimate = estimate,
    .largest = largest,
    .distance = distance,
    .sgd = sgd,
    .momentum = momentum,
    .nesterov = nesterov,
    .bias = bias,
    .bias_relu = bias_relu,
    .column_sums = column_sums,
    .relu_backward = relu_backward};
