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

/* --- Adam and LAMB. If `fleet`, a constant: adam->fraction is above 0, and noise and deviation
 * are there --- */

/* For consecutive values: updates mean and square. */
STEP void moments(
    float *mean, float *square, floats x, const float *gradient, const struct sgp_adam *adam)
{
    floats m = *(floats *)mean, s = *(floats *)square;
    floats t = *(const floats *)gradient + x * adam->coupled;
    *(floats *)mean = m + (t - m) * adam->first;
    *(floats *)square = s + (t * t - s) * adam->second;
}

STEP void add_noise(float *noise, const float *deviation, const struct sgp_adam *adam)
{
    floats n = *(floats *)noise, d = *(const floats *)deviation;
    *(floats *)noise = n + (d * d - n) * adam->noise_second;
}

/* What a step is divided by. */
STEP floats divisor(
    const float *square, const float *noise, const struct sgp_adam *adam, bool fleet)
{
    floats s = *(const floats *)square;
    if (fleet) {
        floats least = s * adam->fraction;
        floats rest = s - *(const floats *)noise * (1 - adam->fraction);
        s = choose(rest > least, rest, least);
    }
    return ROOT(s) * adam->square_scale + adam->epsilon;
}

STEP floats direction(floats x, const float *mean, floats root, const struct sgp_adam *adam)
{
    return *(const floats *)mean * adam->mean_scale / root + x * adam->decay;
}

STEP void adam_whole(float *x, float *mean, float *square, float *noise, const float *gradient,
    const float *deviation, const struct sgp_adam *adam, size_t whole, bool fleet)
{
    for (size_t i = 0; i < whole; i += FLOATS) {
        floats value = *(floats *)(x + i);
        moments(mean + i, square + i, value, gradient + i, adam);
        if (fleet)
            add_noise(noise + i, deviation + i, adam);
        floats root = divisor(square + i, fleet ? noise + i : NULL, adam, fleet);
        *(floats *)(x + i) = value - direction(value, mean + i, root, adam) * adam->rate;
    }
}

static void adam(float *x, float *mean, float *square, float *noise, const float *gradient,
    const float *deviation, const struct sgp_adam *adam, size_t count)
{
    const struct sgp_adam held = *adam; /* which no store can change */
    size_t whole = WHOLE(count), rest = count - whole;
    if (held.fraction > 0) {
        adam_whole(x, mean, square, noise, gradient, deviation, &held, whole, true);
        reference->adam(x + whole, mean + whole, square + whole, noise + whole, gradient + whole,
            deviation + whole, adam, rest);
    } else {
        adam_whole(x, mean, square, NULL, gradient, NULL, &held, whole, false);
        reference->adam(
            x + whole, mean + whole, square + whole, NULL, gradient + whole, NULL, adam, rest);
    }
}

static void rmsprop_fleet(float *x, float *square, float *noise, const float *gradient,
    const float *deviation, const struct sgp_adam *adam, size_t count)
{
    const struct sgp_adam held = *adam;
    size_t whole = WHOLE(count);
    for (size_t i = 0; i < whole; i += FLOATS) {
        floats value = *(floats *)(x + i), s = *(floats *)(square + i);
        floats t = *(const floats *)(gradient + i) + value * held.coupled;
        *(floats *)(square + i) = s + (t * t - s) * held.second;
        add_noise(noise + i, deviation + i, &held);
        *(floats *)(x + i) = value - t / divisor(square + i, noise + i, &held, true) * held.rate;
    }
    reference->rmsprop_fleet(x + whole, square + whole, noise + whole, gradient + whole,
        deviation + whole, adam, count - whole);
}

STEP void lamb_whole(float *x, const float *mean, const float *square, const float *noise,
    const struct sgp_adam *adam, size_t whole, bool fleet)
{
    for (size_t i = 0; i < whole; i += FLOATS) {
        floats value = *(floats *)(x + i);
        floats root = divisor(square + i, fleet ? noise + i : NULL, adam, fleet);
        *(floats *)(x + i) = value - direction(value, mean + i, root, adam) * adam->rate;
    }
}

static void lamb(float *x, const float *mean, const float *square, const float *noise,
    const struct sgp_adam *adam, size_t count)
{
    const struct sgp_adam held = *adam;
    size_t whole = WHOLE(count);
    bool fleet = held.fraction > 0;
    if (fleet)
        lamb_whole(x, mean, square, noise, &held, whole, true);
    else
        lamb_whole(x, mean, square, NULL, &held, whole, false);
    reference->lamb(
        x + whole, mean + whole, square + whole, fleet ? noise + whole : NULL, adam, count - whole);
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

struct lamb_lanes {
    doubles x[LANE_DOUBLES], r[LANE_DOUBLES], q[LANE_DOUBLES];
};

STEP void add_moments(struct lamb_lanes *sums, float *mean, float *square, float *noise,
    const float *x, const float *gradient, const float *deviation, const struct sgp_adam *adam,
    bool fleet)
{
    for (size_t j = 0; j < LANE_VECTORS; j++) {
        size_t at = j * FLOATS, sum = at / DOUBLES;
        floats value = *(const floats *)(x + at);
        moments(mean + at, square + at, value, gradient + at, adam);
        if (fleet)
            add_noise(noise + at, deviation + at, adam);
        floats root = divisor(square + at, fleet ? noise + at : NULL, adam, fleet);
        add_squares(sums->x + sum, value);
        add_squares(sums->r + sum, direction(value, mean + at, root, adam));
        if (fleet)
            add_squares(sums->q + sum,
                ROOT(*(floats *)(noise + at) * adam->spread) * adam->square_scale / root);
    }
}

/* What is left after the last whole lanes is followed by zeros here, too. */
STEP void sum_moments(struct lamb_lanes *sums, float *mean, float *square, float *noise,
    const float *x, const float *gradient, const float *deviation, const struct sgp_adam *adam,
    size_t count, bool fleet)
{
    size_t i = 0;
    for (; i + SGP_KERNELS_LANES <= count; i += SGP_KERNELS_LANES)
        add_moments(sums, mean + i, square + i, fleet ? noise + i : NULL, x + i, gradient + i,
            fleet ? deviation + i : NULL, adam, fleet);
    if (i == count)
        return;
    float rest[6][SGP_KERNELS_LANES] = {0};
    size_t bytes = (count - i) * sizeof(float);
    memcpy(rest[0], mean + i, bytes);
    memcpy(rest[1], square + i, bytes);
    memcpy(rest[2], x + i, bytes);
    memcpy(rest[3], gradient + i, bytes);
    if (fleet)
        memcpy(rest[4], noise + i, bytes);
    if (fleet)
        memcpy(rest[5], deviation + i, bytes);
    add_moments(sums, rest[0], rest[1], rest[4], rest[2], rest[3], rest[5], adam, fleet);
    memcpy(mean + i, rest[0], bytes);
    memcpy(square + i, rest[1], bytes);
    if (fleet)
        memcpy(noise + i, rest[4], bytes);
}

static void lamb_moments(struct sgp_lamb_sums *ret_sums, float *mean, float *square, float *noise,
    const float *x, const float *gradient, const float *deviation, const struct sgp_adam *adam,
    size_t count)
{
    const struct sgp_adam held = *adam;
    struct lamb_lanes sums = {0};
    if (held.fraction > 0)
        sum_moments(&sums, mean, square, noise, x, gradient, deviation, &held, count, true);
    else
        sum_moments(&sums, mean, square, NULL, x, gradient, NULL, &held, count, false);
    *ret_sums = (struct sgp_lamb_sums){
        .x = pairwise_double(sums.x), .r = pairwise_double(sums.r), .q = pairwise_double(sums.q)};
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
