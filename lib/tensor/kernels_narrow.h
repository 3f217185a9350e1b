/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix products of a layer with few outputs, for the fast twin. kernels_vector.h includes
 * this file.
 *
 * The products keep a tile of sums in registers: OUTPUTS_AT_ONCE outputs of two rows, or of two
 * vectors of inputs. With their operands these fill the 16 registers of x86-64. Gradients are
 * summed over ROWS_AT_ONCE rows at a time, which are still in the cache for the next inputs. */
#define PARTS (SGP_KERNELS_PRODUCT_LANES / FLOATS) /* vectors in the lanes of a sum */
#define OUTPUTS_AT_ONCE 5u
#define ROWS_AT_ONCE 32u
#define INLINE static inline __attribute__((always_inline))

/* Keep a vector in its register. gcc would load it again for each of its two uses, and these loops
 * are limited by loads. */
#ifdef __x86_64__
#define HOLD(vector) __asm__("" : "+x"(vector))
#else
#define HOLD(vector) (void)(vector)
#endif

typedef VECTOR(float, SGP_KERNELS_PRODUCT_LANES * 2) half_lanes; /* half the lanes of a sum */

INLINE float add_lanes(const floats sums[PARTS])
{
    half_lanes half[2];
    memcpy(half, sums, sizeof half);
    half[0] += half[1];
    return (half[0][0] + half[0][2]) + (half[0][1] + half[0][3]);
}

/* One more input in each lane. The two counts are constants in every call. */
INLINE void product_step(floats sums[2][OUTPUTS_AT_ONCE][PARTS], const float *rows,
    size_t row_stride, const float *weights, size_t weight_stride, size_t row_count,
    size_t output_count)
{
    for (size_t p = 0; p < PARTS; p++) {
        floats first = *(const floats *)(rows + p * FLOATS);
        floats second = row_count > 1 ? *(const floats *)(rows + row_stride + p * FLOATS) : first;
        for (size_t o = 0; o < output_count; o++) {
            floats weight = *(const floats *)(weights + o * weight_stride + p * FLOATS);
            HOLD(weight);
            sums[0][o][p] += first * weight;
            if (row_count > 1)
                sums[1][o][p] += second * weight;
        }
    }
}

/* The inputs after the last whole lanes, followed by zeros. The zeros change no bit of a sum,
 * because a sum that began with 0 is never -0. */
static void copy_rest(float *rest, const float *vectors, size_t stride, size_t count, size_t length)
{
    memset(rest, 0, count * SGP_KERNELS_PRODUCT_LANES * sizeof *rest);
    for (size_t v = 0; v < count; v++)
        for (size_t i = 0; i < length; i++)
            rest[v * SGP_KERNELS_PRODUCT_LANES + i] = vectors[v * stride + i];
}

/* Some outputs of one or two rows. */
INLINE void product_tile(float *y, const float *rows, const float *weights, float scale,
    size_t inputs, size_t outputs, size_t row_count, size_t output_count)
{
    floats sums[2][OUTPUTS_AT_ONCE][PARTS] = {0};
    size_t whole = inputs - inputs % SGP_KERNELS_PRODUCT_LANES;
    for (size_t i = 0; i < whole; i += SGP_KERNELS_PRODUCT_LANES)
        product_step(sums, rows + i, inputs, weights + i, inputs, row_count, output_count);
    if (whole < inputs) {
        float row_rest[2 * SGP_KERNELS_PRODUCT_LANES];
        float weight_rest[OUTPUTS_AT_ONCE * SGP_KERNELS_PRODUCT_LANES];
        copy_rest(row_rest, rows + whole, inputs, row_count, inputs - whole);
        copy_rest(weight_rest, weights + whole, inputs, output_count, inputs - whole);
        product_step(sums, row_rest, SGP_KERNELS_PRODUCT_LANES, weight_rest,
            SGP_KERNELS_PRODUCT_LANES, row_count, output_count);
    }
    for (size_t r = 0; r < row_count; r++)
        for (size_t o = 0; o < output_count; o++)
            y[r * outputs + o] = scale * add_lanes(sums[r][o]);
}

/* Some outputs of all rows. */
INLINE void product_outputs(float *y, const float *features, const float *weights, float scale,
    size_t rows, size_t inputs, size_t outputs, size_t output_count)
{
    size_t r = 0;
    for (; r + 2 <= rows; r += 2)
        product_tile(y + r * outputs, features + r * inputs, weights, scale, inputs, outputs, 2,
            output_count);
    if (r < rows)
        product_tile(y + r * outputs, features + r * inputs, weights, scale, inputs, outputs, 1,
            output_count);
}

/* The number of remaining outputs to compute next: about equal each time, and at most
 * OUTPUTS_AT_ONCE. */
static size_t next_outputs(size_t left)
{
    size_t times = (left + OUTPUTS_AT_ONCE - 1) / OUTPUTS_AT_ONCE;
    return (left + times - 1) / times;
}

/* Call an inline function with its last argument, 1 to OUTPUTS_AT_ONCE, as a constant. */
#define WITH_CONSTANT(count, function, ...)                                                        \
    switch (count) {                                                                               \
    case 1:                                                                                        \
        function(__VA_ARGS__, 1);                                                                  \
        break;                                                                                     \
    case 2:                                                                                        \
        function(__VA_ARGS__, 2);                                                                  \
        break;                                                                                     \
    case 3:                                                                                        \
        function(__VA_ARGS__, 3);                                                                  \
        break;                                                                                     \
    case 4:                                                                                        \
        function(__VA_ARGS__, 4);                                                                  \
        break;                                                                                     \
    default:                                                                                       \
        function(__VA_ARGS__, OUTPUTS_AT_ONCE);                                                    \
    }

static void narrow_product(float *y, const float *features, const float *weights, float scale,
    size_t rows, size_t inputs, size_t outputs)
{
    for (size_t o = 0, count; o < outputs; o += count) {
        count = next_outputs(outputs - o);
        WITH_CONSTANT(count, product_outputs, y + o, features, weights + o * inputs, scale, rows,
            inputs, outputs)
    }
}

/* Continue the gradients of some outputs, with respect to two vectors of inputs, over some rows. */
INLINE void gradient_tile(float *gradient, const float *delta, const float *features, size_t rows,
    size_t inputs, size_t outputs, bool first, size_t output_count)
{
    floats sums[OUTPUTS_AT_ONCE][2] = {0};
    for (size_t o = 0; o < output_count && !first; o++) {
        sums[o][0] = *(const floats *)(gradient + o * inputs);
        sums[o][1] = *(const floats *)(gradient + o * inputs + FLOATS);
    }
    for (size_t r = 0; r < rows; r++) {
        floats low = *(const floats *)(features + r * inputs);
        floats high = *(const floats *)(features + r * inputs + FLOATS);
        for (size_t o = 0; o < output_count; o++) {
            float factor = delta[r * outputs + o];
            sums[o][0] += low * factor;
            sums[o][1] += high * factor;
        }
    }
    for (size_t o = 0; o < output_count; o++) {
        *(floats *)(gradient + o * inputs) = sums[o][0];
        *(floats *)(gradient + o * inputs + FLOATS) = sums[o][1];
    }
}

/* The same for one input and one output, for the remainder after the last whole vectors. */
static void gradient_value(float *gradient, const float *delta, const float *features, size_t rows,
    size_t inputs, size_t outputs, bool first)
{
    float sum = first ? 0.0f : *gradient;
    for (size_t r = 0; r < rows; r++)
        sum += features[r * inputs] * delta[r * outputs];
    *gradient = sum;
}

/* Continue the gradients of all outputs over some rows. */
static void gradient_rows(float *gradient, const float *delta, const float *features, size_t rows,
    size_t inputs, size_t outputs, bool first)
{
    size_t whole = inputs - inputs % (2 * FLOATS);
    for (size_t i = 0; i < whole; i += 2 * FLOATS) {
        for (size_t o = 0, count; o < outputs; o += count) {
            count = next_outputs(outputs - o);
            WITH_CONSTANT(count, gradient_tile, gradient + o * inputs + i, delta + o, features + i,
                rows, inputs, outputs, first)
        }
    }
    for (size_t i = whole; i < inputs; i++)
        for (size_t o = 0; o < outputs; o++)
            gradient_value(
                gradient + o * inputs + i, delta + o, features + i, rows, inputs, outputs, first);
}

static void narrow_gradient(float *gradient, const float *delta, const float *features, size_t rows,
    size_t inputs, size_t outputs)
{
    size_t r = 0;
    do {
        size_t count = rows - r < ROWS_AT_ONCE ? rows - r : ROWS_AT_ONCE;
        gradient_rows(
            gradient, delta + r * outputs, features + r * inputs, count, inputs, outputs, r == 0);
        r += count;
    } while (r < rows);
}
