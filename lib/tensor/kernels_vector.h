/* SPDX-License-Identifier: Apache-2.0 */
/* The fast twin, written once for a vector of VECTOR_BYTES bytes, with the vector extension that
 * gcc and clang share. kernels_portable.c and kernels_avx2.c include this file, each compiled for
 * its own processor. Before that they define VECTOR_BYTES, TABLE and NAME. If they have
 * instructions for these, they also define LARGER, STREAM, END_STREAM, ROOT, TO_HALF and FROM_HALF.
 *
 * The body of each loop does what kernels_reference.c does, with the same order of rounding. The
 * remainder after the last whole vector is passed to the reference, or for sums is followed by
 * zeros. Any thread; no state. */
#include "bfloat.h"
#include "bits.h"
#include "kernels_tables.h"

#include <string.h>

#define FLOATS ((size_t)VECTOR_BYTES / sizeof(float))   /* floats in a vector */
#define DOUBLES ((size_t)VECTOR_BYTES / sizeof(double)) /* doubles in a vector */
#define ALWAYS __attribute__((always_inline))
#define WHOLE(count) ((count) - (count) % FLOATS)

/* Under-aligned, so that a row of any length may begin anywhere. */
#define VECTOR(type, bytes) type __attribute__((vector_size(bytes), aligned(4), may_alias))
typedef VECTOR(float, VECTOR_BYTES) floats;
typedef VECTOR(int32_t, VECTOR_BYTES) integers;
typedef VECTOR(uint32_t, VECTOR_BYTES) words;
typedef VECTOR(double, VECTOR_BYTES) doubles;
typedef VECTOR(float, VECTOR_BYTES / 2) halves; /* as many floats as a vector has doubles */

static const struct sgp_kernels *const reference = &sgp_kernels_table_reference;

#ifndef STREAM /* writes past the caches; END_STREAM makes the data visible to other threads */
#define STREAM(address, vector) (*(floats *)(address) = (vector))
#define END_STREAM() ((void)0)
#endif

#ifndef ROOT /* the nearest float32 to the square root, like sqrtf */
#include <math.h>
static inline floats root_of(floats vector)
{
    for (size_t i = 0; i < FLOATS; i++)
        vector[i] = sqrtf(vector[i]);
    return vector;
}
#define ROOT(vector) root_of(vector)
#endif

#ifndef LARGER /* the larger integer, lane by lane */
#define LARGER(a, b) (((a) & ((a) > (b))) | ((b) & ~((a) > (b))))
#endif

static void scale(float *y, const float *x, float factor, size_t count)
{
    size_t whole = WHOLE(count);
    for (size_t i = 0; i < whole; i += FLOATS)
        *(floats *)(y + i) = *(const floats *)(x + i) * factor;
    reference->scale(y + whole, x + whole, factor, count - whole);
}

static void absorb(float *x, const float *share, float fraction, size_t count)
{
    size_t whole = WHOLE(count);
    for (size_t i = 0; i < whole; i += FLOATS)
        *(floats *)(x + i) += *(const floats *)(share + i) * fraction;
    reference->absorb(x + whole, share + whole, fraction, count - whole);
}

/* Vectors that are written past the caches begin at a multiple of their size. */
static void place(float *x, const float *share, float fraction, size_t count)
{
    size_t head = (size_t)(-(uintptr_t)x % VECTOR_BYTES) / sizeof *x;
    head = head < count ? head : count;
    size_t end = head + WHOLE(count - head);
    const floats zeros = {0};
    reference->place(x, share, fraction, head);
    for (size_t i = head; i < end; i += FLOATS)
        STREAM(x + i, *(const floats *)(share + i) * fraction + zeros);
    END_STREAM();
    reference->place(x + end, share + end, fraction, count - end);
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

#define INFINITE 0x7f800000 /* the bits of infinity */

/* Floats without their sign are ordered like their bits, and NaNs come after infinity. */
static float largest(const float *values, size_t count)
{
    /* independent chains, because otherwise each step would wait for the previous one */
    enum { CHAINS = 4 };
    size_t whole = count - count % (CHAINS * FLOATS);
    integers most[CHAINS] = {{0}};
    for (size_t i = 0; i < whole; i += CHAINS * FLOATS)
        for (size_t j = 0; j < CHAINS; j++) {
            integers magnitude = *(const integers *)(values + i + j * FLOATS) & 0x7fffffff;
            most[j] = LARGER(most[j], magnitude);
        }
    most[0] = LARGER(LARGER(most[0], most[1]), LARGER(most[2], most[3]));
    float rest = whole < count ? reference->largest(values + whole, count - whole) : 0;
    int32_t lanes[FLOATS], largest_lane;
    memcpy(lanes, most, sizeof lanes);
    memcpy(&largest_lane, &rest, sizeof rest);
    for (size_t i = 0; i < FLOATS; i++)
        largest_lane = lanes[i] > largest_lane ? lanes[i] : largest_lane;
    largest_lane = largest_lane < INFINITE ? largest_lane : INFINITE;
    memcpy(&rest, &largest_lane, sizeof rest);
    return rest;
}

static double pairwise(const floats run[SGP_KERNELS_LANES / FLOATS])
{
    float lanes[SGP_KERNELS_LANES];
    memcpy(lanes, run, sizeof lanes);
    for (size_t half = SGP_KERNELS_LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return (double)lanes[0];
}

/* What `measure`, `fold` and `fold_distance` record of the values: the largest of all, and the
 * squares of a run. */
struct seen {
    integers most[SGP_KERNELS_LANES / FLOATS];
    floats squares[SGP_KERNELS_LANES / FLOATS];
};

static inline ALWAYS void see(struct seen *seen, size_t lane, floats values)
{
    seen->most[lane] = LARGER(seen->most[lane], (integers)values & 0x7fffffff);
    seen->squares[lane] += values * values;
}

static float largest_seen(const struct seen *seen)
{
    float lanes[SGP_KERNELS_LANES];
    memcpy(lanes, seen->most, sizeof lanes);
    return reference->largest(lanes, SGP_KERNELS_LANES);
}

static size_t run_of(size_t count)
{
    return count < SGP_KERNELS_RUN ? count : SGP_KERNELS_RUN;
}

static inline ALWAYS void measure_lanes(struct seen *seen, const float *values)
{
    for (size_t j = 0; j < SGP_KERNELS_LANES / FLOATS; j++)
        see(seen, j, *(const floats *)(values + j * FLOATS));
}

/* The remainder after the last whole lanes is followed by zeros, which change nothing. The copy
 * stays in registers. */
static void measure_run(struct seen *all, const float *values, size_t count)
{
    struct seen seen = *all;
    size_t i = 0;
    for (; i + SGP_KERNELS_LANES <= count; i += SGP_KERNELS_LANES)
        measure_lanes(&seen, values + i);
    if (i < count) {
        float rest[SGP_KERNELS_LANES] = {0};
        memcpy(rest, values + i, (count - i) * sizeof *rest);
        measure_lanes(&seen, rest);
    }
    *all = seen;
}

static float measure(double *ret_squares, const float *values, size_t count)
{
    double sum = 0;
    struct seen seen = {0};
    for (size_t run; count > 0; values += run, count -= run) {
        run = run_of(count);
        measure_run(&seen, values, run);
        sum += pairwise(seen.squares);
        memset(seen.squares, 0, sizeof seen.squares);
    }
    *ret_squares = sum;
    return largest_seen(&seen);
}

/* `differences` is NULL in `fold`, where its part vanishes. */
static inline ALWAYS void fold_lanes(struct seen *seen, floats *differences, float *share,
    const float *x, const struct sgp_fold_factors *factors)
{
    for (size_t j = 0; j < SGP_KERNELS_LANES / FLOATS; j++) {
        floats *place = (floats *)(share + j * FLOATS);
        floats values = *place, own = *(const floats *)(x + j * FLOATS);
        see(seen, j, values);
        if (differences != NULL) {
            floats difference = values * factors->share_scale - own * factors->x_scale;
            differences[j] += difference * difference;
        }
        *place = own * factors->keep + values * factors->fraction;
    }
}

/* Like measure_run. Zeros are no distance apart. */
static inline ALWAYS void fold_run(struct seen *all, floats *all_differences, float *share,
    const float *x, const struct sgp_fold_factors *factors, size_t count)
{
    struct seen seen = *all;
    const struct sgp_fold_factors by = *factors;
    floats differences[SGP_KERNELS_LANES / FLOATS] = {0};
    floats *measured = all_differences != NULL ? differences : NULL;
    size_t i = 0;
    for (; i + SGP_KERNELS_LANES <= count; i += SGP_KERNELS_LANES)
        fold_lanes(&seen, measured, share + i, x + i, &by);
    if (i < count) {
        float rest[SGP_KERNELS_LANES] = {0}, own[SGP_KERNELS_LANES] = {0};
        memcpy(rest, share + i, (count - i) * sizeof *rest);
        memcpy(own, x + i, (count - i) * sizeof *own);
        fold_lanes(&seen, measured, rest, own, &by);
        memcpy(share + i, rest, (count - i) * sizeof *rest);
    }
    *all = seen;
    if (all_differences != NULL)
        memcpy(all_differences, differences, sizeof differences);
}

static inline ALWAYS float fold_runs(double *ret_squares, double *ret_difference, float *share,
    const float *x, const struct sgp_fold_factors *factors, size_t count)
{
    double sum = 0, difference_sum = 0;
    struct seen seen = {0};
    for (size_t run; count > 0; share += run, x += run, count -= run) {
        floats differences[SGP_KERNELS_LANES / FLOATS];
        run = run_of(count);
        fold_run(&seen, ret_difference != NULL ? differences : NULL, share, x, factors, run);
        sum += pairwise(seen.squares);
        memset(seen.squares, 0, sizeof seen.squares);
        if (ret_difference != NULL)
            difference_sum += pairwise(differences);
    }
    *ret_squares = sum;
    if (ret_difference != NULL)
        *ret_difference = difference_sum;
    return largest_seen(&seen);
}

static float fold(
    double *ret_squares, float *share, const float *x, float keep, float fraction, size_t count)
{
    const struct sgp_fold_factors factors = {.keep = keep, .fraction = fraction};
    return fold_runs(ret_squares, NULL, share, x, &factors, count);
}

static float fold_distance(double *ret_squares, double *ret_difference, float *share,
    const float *x, const struct sgp_fold_factors *factors, size_t count)
{
    return fold_runs(ret_squares, ret_difference, share, x, factors, count);
}

/* Values beyond the last whole row of lanes go into the lanes where the reference has them. */
static void distance(double *ret_difference, double *ret_norm, const float *a, float a_scale,
    const float *b, float b_scale, size_t count)
{
    double difference_sum = 0, norm_sum = 0;
    for (size_t run; count > 0; a += run, b += run, count -= run) {
        floats differences[SGP_KERNELS_LANES / FLOATS] = {0};
        floats norms[SGP_KERNELS_LANES / FLOATS] = {0};
        run = run_of(count);
        size_t whole = run - run % SGP_KERNELS_LANES;
        for (size_t i = 0; i < whole; i += SGP_KERNELS_LANES)
            for (size_t j = 0; j < SGP_KERNELS_LANES / FLOATS; j++) {
                floats estimate_b = *(const floats *)(b + i + j * FLOATS) * b_scale;
                floats difference = *(const floats *)(a + i + j * FLOATS) * a_scale - estimate_b;
                differences[j] += difference * difference;
                norms[j] += estimate_b * estimate_b;
            }
        for (size_t i = whole; i < run; i++) {
            size_t lane = i - whole;
            float estimate_b = b[i] * b_scale;
            float difference = a[i] * a_scale - estimate_b;
            differences[lane / FLOATS][lane % FLOATS] += difference * difference;
            norms[lane / FLOATS][lane % FLOATS] += estimate_b * estimate_b;
        }
        difference_sum += pairwise(differences);
        norm_sum += pairwise(norms);
    }
    *ret_difference = difference_sum;
    *ret_norm = norm_sum;
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

/* Compilers vectorise a loop that widens, but gcc does not convert a vector of bytes. */
static void widen(float *restrict values, const uint8_t *restrict bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)bytes[i] / 255.0f;
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

static floats choose(integers mask, floats yes, floats no)
{
    return (floats)((mask & (integers)yes) | (~mask & (integers)no));
}

/* Like the reference, and so are the next two functions. */
static floats exponential(floats *ret_power, floats value)
{
    floats rounded = value * EXP_LOG2_E + EXP_ROUNDER;
    floats n = rounded - EXP_ROUNDER;
    *ret_power = (floats)(((words)rounded << EXP_SHIFT) + EXP_BIAS);
    floats r = (value - n * EXP_LN2_HIGH) - n * EXP_LN2_LOW;
    floats sum = r * (1.0f / 5040) + 1.0f / 720;
    sum = sum * r + 1.0f / 120;
    sum = sum * r + 1.0f / 24;
    sum = sum * r + 1.0f / 6;
    sum = sum * r + 0.5f;
    sum = sum * r + 1.0f;
    return sum * r;
}

static floats hyperbolic_tangent(floats value)
{
    integers sign = (integers)value & INT32_MIN;
    floats magnitude = (floats)((integers)value & INT32_MAX);
    floats most = (floats){0} + TANH_GREATEST;
    magnitude = choose(magnitude > most, most, magnitude);
    floats power;
    floats part = exponential(&power, magnitude + magnitude);
    floats above = power * part + (power - 1.0f);
    return (floats)((integers)(above / (above + 2.0f)) | sign);
}

static floats sigmoid(floats value)
{
    floats most = (floats){0} + EXP_GREATEST;
    floats least = (floats){0} + EXP_LEAST;
    floats opposite = choose(-value > most, most, -value);
    opposite = choose(opposite < least, least, opposite);
    floats power;
    floats part = exponential(&power, opposite);
    return 1.0f / (1.0f + (power * part + power));
}

static void bias_tanh(float *y, const float *b, float scale, size_t rows, size_t columns)
{
    size_t whole = WHOLE(columns);
    for (size_t r = 0; r < rows; r++, y += columns) {
        for (size_t c = 0; c < whole; c += FLOATS)
            *(floats *)(y + c) =
                hyperbolic_tangent(*(floats *)(y + c) + *(const floats *)(b + c) * scale);
        reference->bias_tanh(y + whole, b + whole, scale, 1, columns - whole);
    }
}

static void bias_sigmoid(float *y, const float *b, float scale, size_t rows, size_t columns)
{
    size_t whole = WHOLE(columns);
    for (size_t r = 0; r < rows; r++, y += columns) {
        for (size_t c = 0; c < whole; c += FLOATS)
            *(floats *)(y + c) = sigmoid(*(floats *)(y + c) + *(const floats *)(b + c) * scale);
        reference->bias_sigmoid(y + whole, b + whole, scale, 1, columns - whole);
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

/* Without an instruction for the conversion there is no gain. */
static void to_half(uint8_t *bytes, const float *values, size_t count)
{
    size_t whole = 0;
#ifdef TO_HALF
    for (; whole + FLOATS <= count; whole += FLOATS)
        TO_HALF(bytes + 2 * whole, values + whole);
#endif
    reference->to_half(bytes + 2 * whole, values + whole, count - whole);
}

static void from_half(float *values, const uint8_t *bytes, size_t count)
{
    size_t whole = 0;
#ifdef FROM_HALF
    for (; whole + FLOATS <= count; whole += FLOATS)
        FROM_HALF(values + whole, bytes + 2 * whole);
#endif
    reference->from_half(values + whole, bytes + 2 * whole, count - whole);
}

/* Compilers vectorise these loops, like that of widen. */
static void to_bfloat(uint8_t *restrict bytes, const float *restrict values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t bfloat = bfloat_of(values[i]);
        memcpy(bytes + 2 * i, &bfloat, sizeof bfloat);
    }
}

static void from_bfloat(float *restrict values, const uint8_t *restrict bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t bfloat;
        memcpy(&bfloat, bytes + 2 * i, sizeof bfloat);
        values[i] = float_of_bfloat(bfloat);
    }
}

/* Adding 1.5 * 2^23 rounds to the nearest integer, to even, and leaves it in the low bits of the
 * sum. */
#define ROUNDER 0x1.8p+23f

static void quantise(
    int8_t *restrict whole, const float *restrict values, float inverse, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float sum = values[i] * inverse + ROUNDER;
        uint32_t bits;
        memcpy(&bits, &sum, sizeof bits);
        whole[i] = (int8_t)bits;
    }
}

static void dequantise(
    float *restrict values, const int8_t *restrict whole, float scale, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)whole[i] * scale;
}

/* Eight integers of b bits have b bytes, and are joined in a word. All words of a run are joined
 * together, so that compilers can vectorise it. */
#define BITS_RUN 32u

static void pack_bits(uint8_t *bytes, const int8_t *next, uint32_t bits, size_t count)
{
    uint64_t joined[BITS_RUN];
    uint8_t *end = bytes + bits * (count / 8);
    for (size_t run; count >= 8; next += 8 * run, count -= 8 * run) {
        run = count / 8 < BITS_RUN ? count / 8 : BITS_RUN;
        memcpy(joined, next, 8 * run);
        for (size_t i = 0; i < run; i++)
            joined[i] = bits_join(joined[i], bits);
        for (size_t i = 0; i < run; i++, bytes += bits)
            if (end - bytes >= 8)
                bits_store(bytes, joined[i]);
            else
                bits_store_some(bytes, joined[i], bits);
    }
    reference->pack_bits(bytes, next, bits, count);
}

static void unpack_bits(int8_t *next, const uint8_t *bytes, uint32_t bits, size_t count)
{
    uint64_t parted[BITS_RUN];
    const uint8_t *end = bytes + bits * (count / 8);
    const int8_t sign = (int8_t)(1u << (bits - 1));
    for (size_t run; count >= 8; next += 8 * run, count -= 8 * run) {
        run = count / 8 < BITS_RUN ? count / 8 : BITS_RUN;
        for (size_t i = 0; i < run; i++, bytes += bits)
            parted[i] = end - bytes >= 8 ? bits_load(bytes) : bits_load_some(bytes, bits);
        for (size_t i = 0; i < run; i++)
            parted[i] = bits_part(parted[i], bits);
        memcpy(next, parted, 8 * run);
        for (size_t i = 0; i < 8 * run; i++)
            next[i] = (int8_t)((next[i] ^ sign) - sign);
    }
    reference->unpack_bits(next, bytes, bits, count);
}

static void fake_quantise(
    float *projected, const float *values, float inverse, float scale, size_t count)
{
    size_t whole = WHOLE(count);
    for (size_t i = 0; i < whole; i += FLOATS) {
        floats rounded = (*(const floats *)(values + i) * inverse + ROUNDER) - ROUNDER;
        *(floats *)(projected + i) = rounded * scale;
    }
    reference->fake_quantise(projected + whole, values + whole, inverse, scale, count - whole);
}

#include "kernels_narrow.h"
#include "kernels_step.h"

const struct sgp_kernels TABLE = {.name = NAME,
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
