/* The plain loops that define what every kernel computes, to the bit. They are written to be read,
 * not to be fast. Any thread; no state. */
#include "twins.h"

#include <math.h>

static void publish(float *snapshot, float *x, float keep, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        snapshot[i] = x[i];
        x[i] *= keep;
    }
}

static void absorb(float *x, const float *share, float fraction, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] += fraction * share[i];
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
    double differences[SGP_KERNELS_LANES] = {0};
    double norms[SGP_KERNELS_LANES] = {0};
    for (size_t i = 0; i < count; i++) {
        double estimate_b = (double)b[i] * b_scale;
        double difference = (double)a[i] * a_scale - estimate_b;
        differences[i % SGP_KERNELS_LANES] += difference * difference;
        norms[i % SGP_KERNELS_LANES] += estimate_b * estimate_b;
    }
    *ret_difference = fold(differences);
    *ret_norm = fold(norms);
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

const struct sgp_kernels sgp_kernels_table_reference = {.name = "reference",
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
