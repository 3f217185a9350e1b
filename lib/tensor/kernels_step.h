/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of optimisers that need a root or a norm, for the fast twin. kernels_vector.h includes
 * this file. */
#define STEP static inline ALWAYS
#define LANE_VECTORS (SGP_KERNELS_LANES / FLOATS) /* vectors of floats in all lanes */
#define LANE_DOUBLES (SGP_KERNELS_LANES / DOUBLES)

static void lars(float *x, float *velocity, const float *gradient, float rate, float m, float local,
    float decay, size_t count)
{
    size_t whole = WHOLE(count);
    for (size_t i = 0; i < whole; i += FLOATS) {
        floats value = *(floats *)(x + i);
        floats t = *(const floats *)(gradient + i) + value * decay;
        floats u = *(floats *)(velocity + i) * m + t * local;
        *(floats *)(velocity + i) = u;
        *(floats *)(x + i) = value - u * rate;
    }
    reference->lars(
        x + whole, velocity + whole, gradient + whole, rate, m, local, decay, count - whole);
}

static void rmsprop(float *x, float *square, const float *gradient, float rate, float second,
    float epsilon, float decay, size_t count)
{
    size_t whole = WHOLE(count);
    for (size_t i = 0; i < whole; i += FLOATS) {
        floats value = *(floats *)(x + i), s = *(floats *)(square + i);
        floats t = *(const floats *)(gradient + i) + value * decay;
        s += (t * t - s) * second;
        *(floats *)(square + i) = s;
        *(floats *)(x + i) = value - t / (ROOT(s) + epsilon) * rate;
    }
    reference->rmsprop(
        x + whole, square + whole, gradient + whole, rate, second, epsilon, decay, count - whole);
}

/* --- Adam and LAMB --- */

/* For consecutive values: updates mean and square. */
STEP void moments(
    float *mean, float *square, floats x, const float *gradient, const struct sgp_adam *adam)
{
    floats m = *(floats *)mean, s = *(floats *)square;
    floats t = *(const floats *)gradient + x * adam->coupled;
    *(floats *)mean = m + (t - m) * adam->first;
    *(floats *)square = s + (t * t - s) * adam->second;
}

STEP floats direction(floats x, const float *mean, const float *square, const struct sgp_adam *adam)
{
    floats root = ROOT(*(const floats *)square) * adam->square_scale + adam->epsilon;
    return *(const floats *)mean * adam->mean_scale / root + x * adam->decay;
}

static void adam(float *x, float *mean, float *square, const float *gradient,
    const struct sgp_adam *adam, size_t count)
{
    const struct sgp_adam held = *adam; /* a copy that no store can change */
    size_t whole = WHOLE(count);
    for (size_t i = 0; i < whole; i += FLOATS) {
        floats value = *(floats *)(x + i);
        moments(mean + i, square + i, value, gradient + i, &held);
        *(floats *)(x + i) = value - direction(value, mean + i, square + i, &held) * held.rate;
    }
    reference->adam(x + whole, mean + whole, square + whole, gradient + whole, adam, count - whole);
}

static void lamb(
    float *x, const float *mean, const float *square, const struct sgp_adam *adam, size_t count)
{
    const struct sgp_adam held = *adam;
    size_t whole = WHOLE(count);
    for (size_t i = 0; i < whole; i += FLOATS) {
        floats value = *(floats *)(x + i);
        *(floats *)(x + i) = value - direction(value, mean + i, square + i, &held) * held.rate;
    }
    reference->lamb(x + whole, mean + whole, square + whole, adam, count - whole);
}

/* --- sums in float64 --- */

/* Add the squares of a vector to its lanes. */
STEP void add_squares(doubles sums[FLOATS / DOUBLES], floats values)
{
    halves parts[FLOATS / DOUBLES];
    memcpy(parts, &values, sizeof parts);
    for (size_t i = 0; i < FLOATS / DOUBLES; i++) {
        doubles wide = __builtin_convertvector(parts[i], doubles);
        sums[i] += wide * wide;
    }
}

static double pairwise_double(const doubles sums[LANE_DOUBLES])
{
    double lanes[SGP_KERNELS_LANES];
    memcpy(lanes, sums, sizeof lanes);
    for (size_t half = SGP_KERNELS_LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

/* The remainder after the last whole lanes is followed by zeros, which change nothing. */
static double squares(const float *values, size_t count)
{
    doubles sums[LANE_DOUBLES] = {0};
    size_t i = 0;
    for (; i + SGP_KERNELS_LANES <= count; i += SGP_KERNELS_LANES)
        for (size_t j = 0; j < LANE_VECTORS; j++)
            add_squares(sums + j * FLOATS / DOUBLES, *(const floats *)(values + i + j * FLOATS));
    if (i < count) {
        float rest[SGP_KERNELS_LANES] = {0};
        memcpy(rest, values + i, (count - i) * sizeof *rest);
        for (size_t j = 0; j < LANE_VECTORS; j++)
            add_squares(sums + j * FLOATS / DOUBLES, *(const floats *)(rest + j * FLOATS));
    }
    return pairwise_double(sums);
}

struct lamb_sums {
    doubles x[LANE_DOUBLES], r[LANE_DOUBLES];
};

STEP void lamb_lanes(struct lamb_sums *sums, float *mean, float *square, const float *x,
    const float *gradient, const struct sgp_adam *adam)
{
    for (size_t j = 0; j < LANE_VECTORS; j++) {
        size_t at = j * FLOATS, sum = at / DOUBLES;
        floats value = *(const floats *)(x + at);
        moments(mean + at, square + at, value, gradient + at, adam);
        add_squares(sums->x + sum, value);
        add_squares(sums->r + sum, direction(value, mean + at, square + at, adam));
    }
}

static void lamb_moments(double *ret_x, double *ret_r, float *mean, float *square, const float *x,
    const float *gradient, const struct sgp_adam *adam, size_t count)
{
    const struct sgp_adam held = *adam;
    struct lamb_sums sums = {0};
    size_t i = 0;
    for (; i + SGP_KERNELS_LANES <= count; i += SGP_KERNELS_LANES)
        lamb_lanes(&sums, mean + i, square + i, x + i, gradient + i, &held);
    if (i < count) {
        float rest[4][SGP_KERNELS_LANES] = {0};
        size_t bytes = (count - i) * sizeof(float);
        memcpy(rest[0], mean + i, bytes);
        memcpy(rest[1], square + i, bytes);
        memcpy(rest[2], x + i, bytes);
        memcpy(rest[3], gradient + i, bytes);
        lamb_lanes(&sums, rest[0], rest[1], rest[2], rest[3], &held);
        memcpy(mean + i, rest[0], bytes);
        memcpy(square + i, rest[1], bytes);
    }
    *ret_x = pairwise_double(sums.x);
    *ret_r = pairwise_double(sums.r);
}

static void clip(float *values, float limit, size_t count)
{
    size_t whole = WHOLE(count);
    const floats most = (floats){0} + limit;
    for (size_t i = 0; i < whole; i += FLOATS) {
        floats value = *(floats *)(values + i);
        value = choose(value > most, most, value);
        *(floats *)(values + i) = choose(value < -most, -most, value);
    }
    reference->clip(values + whole, limit, count - whole);
}
