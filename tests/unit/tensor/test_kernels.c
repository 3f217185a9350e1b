/* SPDX-License-Identifier: Apache-2.0 */
/* Every twin gives the bits of the reference: odd sizes, odd alignments, special values. And the
 * reference gives the numbers that its header promises. */
#include "sgp/kernels.h"
#include "sgp/random.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define COUNT_MAX 133 /* more than eight of the widest vectors, and odd */
#define OFFSET_MAX 5  /* floats; moves the vectors off every alignment */
#define ROOM 1100     /* floats in an arena: a matrix of 8 x COUNT_MAX, or a vector */

/* Inputs and outputs of one kernel call; two of them start equal and must end equal. */
struct arena {
    float a[ROOM];
    float b[ROOM];
    float c[ROOM];
};

static const float specials[] = {0.0f, -0.0f, 1.0f, -1.0f, FLT_MIN, FLT_MAX, -FLT_MAX, FLT_EPSILON,
    FLT_TRUE_MIN, -FLT_TRUE_MIN, INFINITY, -INFINITY, NAN};

static void fill(struct arena *arena, uint64_t seed, bool special)
{
    struct sgp_random random;
    sgp_random_init(&random, seed, 0);
    float *values = (float *)arena;
    for (size_t i = 0; i < sizeof *arena / sizeof *values; i++) {
        values[i] = (float)sgp_random_normal(&random);
        if (special && sgp_random_below(&random, 4) == 0)
            values[i] = specials[sgp_random_below(&random, sizeof specials / sizeof *specials)];
    }
}

static bool same_bits(const float *left, const float *right, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(left + i, right + i, sizeof *left) != 0 && !(isnan(left[i]) && isnan(right[i])))
            return false;
    return true;
}

/* Run one kernel of a twin over an arena; `size` is a count or a number of columns. */
typedef void call(const struct sgp_kernels *twin, struct arena *arena, size_t offset, size_t size);

#define ROWS(size) (1 + (size) % 7)
#define OUTPUTS(size) (1 + (size) % 8)

/* All 64 bits, unless it is a NaN. */
static void put_double(float place[2], double value)
{
    if (isnan(value))
        place[0] = NAN;
    else
        memcpy(place, &value, sizeof value);
}

static void call_scale(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->scale(r->a + o, r->b + 1, 0.3f, n);
}
static void call_absorb(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->absorb(r->a + o, r->b + 1, 0.3f, n);
}
static void call_place(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->place(r->a + o, r->b + 1, 0.3f, n);
}
static void call_fold(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    double sum;
    r->c[0] = t->fold(&sum, r->a + o, r->b + 1, 0.3f, 0.7f, n);
    put_double(r->c + 1, sum);
}
static void call_fold_distance(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    const struct sgp_fold_factors factors = {0.3f, 0.7f, 1.0f / 0.7f, 1.0f / 1.3f};
    double sums[2];
    r->c[0] = t->fold_distance(&sums[0], &sums[1], r->a + o, r->b + 1, &factors, n);
    put_double(r->c + 1, sums[0]);
    put_double(r->c + 3, sums[1]);
}
static void call_estimate(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->estimate(r->a + o, r->b + 1, 0.7, n);
}
static void call_sgd(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->sgd(r->a + o, r->b + 1, 0.1f, 1e-4f, n);
}
static void call_momentum(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->momentum(r->a + o, r->b + 1, r->c, 0.1f, 0.9f, 1e-4f, n);
}
static void call_nesterov(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->nesterov(r->a + o, r->b + 1, r->c, 0.1f, 0.9f, 1e-4f, n);
}
static void call_lars(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->lars(r->a + o, r->b + 1, r->c, 0.1f, 0.9f, 0.3f, 1e-4f, n);
}
static void call_rmsprop(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->rmsprop(r->a + o, r->b + 1, r->c, 0.1f, 0.01f, 1e-8f, 1e-4f, n);
}
static const struct sgp_adam adam = {.rate = 0.1f,
    .coupled = 1e-3f,
    .first = 0.1f,
    .second = 1e-3f,
    .mean_scale = 3.7f,
    .square_scale = 11.3f,
    .epsilon = 1e-8f,
    .decay = 1e-4f};
static void call_adam(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->adam(r->a + o, r->b + 1, r->b + 300 + o, NULL, r->c, NULL, &adam, n);
}
static void call_lamb_moments(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    struct sgp_lamb_sums sums;
    t->lamb_moments(&sums, r->b + 1, r->b + 300 + o, NULL, r->a + o, r->c + 300, NULL, &adam, n);
    put_double(r->c, sums.x);
    put_double(r->c + 2, sums.r);
}
static const struct sgp_adam fleet_adam = {.rate = 0.1f,
    .coupled = 1e-3f,
    .first = 0.1f,
    .second = 1e-3f,
    .mean_scale = 3.7f,
    .square_scale = 11.3f,
    .epsilon = 1e-8f,
    .decay = 1e-4f,
    .fraction = 0.125f,
    .noise_second = 2e-3f,
    .spread = 0.05f};
static void call_fleet_adam(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->adam(
        r->a + o, r->b + 1, r->b + 300 + o, r->a + 300 + o, r->c, r->c + 300 + o, &fleet_adam, n);
}
static void call_rmsprop_fleet(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->rmsprop_fleet(r->a + o, r->b + 1, r->b + 300 + o, r->c, r->c + 300 + o, &fleet_adam, n);
}
static void call_fleet_moments(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    struct sgp_lamb_sums sums;
    t->lamb_moments(&sums, r->b + 1, r->b + 300 + o, r->a + 300 + o, r->a + o, r->c + 300, r->c,
        &fleet_adam, n);
    put_double(r->c, sums.x);
    put_double(r->c + 2, sums.r);
    put_double(r->c + 4, sums.q);
}
static void call_fleet_lamb(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->lamb(r->a + o, r->b + 1, r->c, r->c + 300 + o, &fleet_adam, n);
}
static void call_lamb(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->lamb(r->a + o, r->b + 1, r->c, NULL, &adam, n);
}
static void call_squares(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    put_double(r->c, t->squares(r->a + o, n));
}
static void call_clip(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->clip(r->a + o, 0.7f, n);
}
static void call_widen(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->widen(r->a + o, (const uint8_t *)r->b + 1, n);
}
static void call_bias(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->bias(r->a + o, r->b + 1, 1.7f, ROWS(n), n);
}
static void call_bias_relu(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->bias_relu(r->a + o, r->b + 1, 1.7f, ROWS(n), n);
}
static void call_bias_tanh(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->bias_tanh(r->a + o, r->b + 1, 1.7f, ROWS(n), n);
}
static void call_bias_sigmoid(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->bias_sigmoid(r->a + o, r->b + 1, 1.7f, ROWS(n), n);
}
static void call_column_sums(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->column_sums(r->a + o, r->b + 1, ROWS(n), n);
}
static void call_relu_backward(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->relu_backward(r->a + o, r->b + 1, r->c, ROWS(n), n);
}
static void call_narrow_product(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->narrow_product(r->a + o, r->b + 1, r->c, 1.7f, ROWS(n), n, OUTPUTS(n));
}
static void call_narrow_gradient(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->narrow_gradient(r->a + o, r->b + 1, r->c, ROWS(n), n, OUTPUTS(n));
}
static void call_distance(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    double sums[2];
    t->distance(&sums[0], &sums[1], r->a + o, 1.0f / 0.7f, r->b + 1, 1.0f / 1.3f, n);
    put_double(r->c, sums[0]);
    put_double(r->c + 2, sums[1]);
}
static void call_to_half(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->to_half((uint8_t *)(r->a + o), r->b + 1, n);
}
static void call_from_half(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->from_half(r->a + o, (const uint8_t *)r->b + 1, n);
}
static void call_to_bfloat(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->to_bfloat((uint8_t *)(r->a + o), r->b + 1, n);
}
static void call_from_bfloat(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->from_bfloat(r->a + o, (const uint8_t *)r->b + 1, n);
}
static void call_dequantise(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->dequantise(r->a + o, (const int8_t *)r->b + 1, 0.3f, n);
}
#define BITS(size) (1 + (uint32_t)(size) % 8)
static void call_pack_bits(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->pack_bits((uint8_t *)r->a + o, (const int8_t *)r->b + 1, BITS(n), n);
    t->pack_bits((uint8_t *)r->c + o, (const int8_t *)r->b + 1, BITS(n + n / 8), 8 * n);
}
static void call_unpack_bits(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    t->unpack_bits((int8_t *)r->a + o, (const uint8_t *)r->b + 1, BITS(n), n);
    t->unpack_bits((int8_t *)r->c + o, (const uint8_t *)r->b + 1, BITS(n + n / 8), 8 * n);
}
static void call_measure(const struct sgp_kernels *t, struct arena *r, size_t o, size_t n)
{
    double sum;
    r->c[0] = t->measure(&sum, r->a + o, n);
    put_double(r->c + 1, sum);
}

static const struct {
    const char *name;
    call *run;
} calls[] = {{"scale", call_scale}, {"absorb", call_absorb}, {"place", call_place},
    {"fold", call_fold}, {"fold_distance", call_fold_distance}, {"measure", call_measure},
    {"estimate", call_estimate}, {"sgd", call_sgd}, {"momentum", call_momentum},
    {"nesterov", call_nesterov}, {"lars", call_lars}, {"rmsprop", call_rmsprop},
    {"adam", call_adam}, {"lamb_moments", call_lamb_moments}, {"lamb", call_lamb},
    {"fleet adam", call_fleet_adam}, {"rmsprop_fleet", call_rmsprop_fleet},
    {"fleet moments", call_fleet_moments}, {"fleet lamb", call_fleet_lamb},
    {"squares", call_squares}, {"clip", call_clip}, {"widen", call_widen}, {"bias", call_bias},
    {"bias_relu", call_bias_relu}, {"column_sums", call_column_sums}, {"bias_tanh", call_bias_tanh},
    {"bias_sigmoid", call_bias_sigmoid}, {"relu_backward", call_relu_backward},
    {"distance", call_distance}, {"to_half", call_to_half}, {"from_half", call_from_half},
    {"to_bfloat", call_to_bfloat}, {"from_bfloat", call_from_bfloat},
    {"dequantise", call_dequantise}, {"pack_bits", call_pack_bits},
    {"unpack_bits", call_unpack_bits}, {"narrow_product", call_narrow_product},
    {"narrow_gradient", call_narrow_gradient}};

static void compare(const struct sgp_kernels *twin, size_t kernel, size_t offset, size_t size,
    uint64_t seed, bool special)
{
    static struct arena expected;
    static struct arena got;
    fill(&expected, seed, special);
    memcpy(&got, &expected, sizeof got);
    calls[kernel].run(sgp_kernels_reference(), &expected, offset, size);
    calls[kernel].run(twin, &got, offset, size);
    cr_assert(same_bits((float *)&expected, (float *)&got, sizeof got / sizeof(float)),
        "%s of %s differs at size %zu, offset %zu, special %d", calls[kernel].name, twin->name,
        size, offset, special);
}

Test(kernels, twins_give_the_bits_of_the_reference)
{
    const struct sgp_kernels *twins[SGP_KERNELS_TWINS_MAX];
    size_t count = sgp_kernels_all(twins);
    cr_assert(ge(sz, count, 2));
    uint64_t seed = 1;
    for (size_t t = 1; t < count; t++)
        for (size_t k = 0; k < sizeof calls / sizeof *calls; k++)
            for (size_t size = 0; size <= COUNT_MAX; size += size < 70 ? 1 : 9)
                for (size_t offset = 0; offset <= OFFSET_MAX; offset += OFFSET_MAX)
                    for (int special = 0; special < 2; special++)
                        compare(twins[t], k, offset, size, seed++, special);
}

/* Products around every whole number and every half, at every offset. */
static void check_quantise(const struct sgp_kernels *twin, size_t offset)
{
    static float values[4 * 254 + OFFSET_MAX], projected[4 * 254 + OFFSET_MAX];
    static int8_t whole[4 * 254 + OFFSET_MAX];
    const size_t count = 4 * 254;
    for (size_t i = 0; i < count; i++) {
        float value = (float)((int)(i / 4) - 127) + 0.5F * (float)(i % 2);
        float beside = nextafterf(value, i % 8 < 4 ? 200.0F : -200.0F);
        values[offset + i] = 2 * (i % 4 < 2 ? value : beside);
    }
    twin->quantise(whole + offset, values + offset, 0.5F, count);
    twin->fake_quantise(projected, values + offset, 0.5F, 0.375F, count);
    for (size_t i = 0; i < count; i++) {
        double product = (double)values[offset + i] / 2, below = floor(product);
        bool up = product - below > 0.5 || (product - below == 0.5 && fmod(below, 2) != 0);
        int nearest = (int)below + up;
        cr_assert(eq(int, whole[offset + i], nearest), "%s: %a", twin->name, product);
        float decoded = (float)nearest * 0.375F;
        cr_assert(eq(int, memcmp(projected + i, &decoded, sizeof decoded), 0), "%s: %a", twin->name,
            product);
    }
}

Test(kernels, quantise_is_the_nearest_integer_to_even)
{
    const struct sgp_kernels *twins[SGP_KERNELS_TWINS_MAX];
    size_t count = sgp_kernels_all(twins);
    for (size_t t = 0; t < count; t++)
        for (size_t offset = 0; offset <= OFFSET_MAX; offset++)
            check_quantise(twins[t], offset);
}

/* The number whose upper half this is, and of the number beside it: which is nearer, by subtraction. */
static void check_bfloat(const struct sgp_kernels *twin, uint32_t upper, uint32_t lower)
{
    uint32_t bits[3] = {upper << 16, (upper + 1) << 16, upper << 16 | lower};
    float numbers[3], decoded[2];
    uint16_t bfloats[2];
    memcpy(numbers, bits, sizeof bits);
    const float values[2] = {numbers[2], -numbers[2]};
    twin->to_bfloat((uint8_t *)bfloats, values, 2);
    twin->from_bfloat(decoded, (const uint8_t *)bfloats, 2);
    double over = (double)numbers[2] - (double)numbers[0];
    double under = isinf(numbers[1]) ? INFINITY : (double)numbers[1] - (double)numbers[2];
    bool up = over > under || (over == under && upper % 2 != 0);
    cr_assert(eq(flt, decoded[0], up ? numbers[1] : numbers[0]), "%s: %a", twin->name, values[0]);
    cr_assert(eq(int, bfloats[1], bfloats[0] + 0x8000), "%s: %a", twin->name, values[1]);
}

Test(kernels, bfloat_is_the_nearest_to_even)
{
    const struct sgp_kernels *twins[SGP_KERNELS_TWINS_MAX];
    size_t count = sgp_kernels_all(twins);
    const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    for (size_t t = 0; t < count; t++) {
        for (uint32_t upper = 0; upper < 0x7f80; upper++)
            check_bfloat(twins[t], upper, lower[upper % 6]);
        for (size_t i = 0; i < 6; i++) {
            check_bfloat(twins[t], 0x7f7f, lower[i]);
            check_bfloat(twins[t], 0x0000, lower[i]);
            check_bfloat(twins[t], 0x3f80, lower[i]);
        }
        const float special[3] = {INFINITY, -INFINITY, NAN};
        float decoded[3];
        uint8_t bytes[6];
        twins[t]->to_bfloat(bytes, special, 3);
        twins[t]->from_bfloat(decoded, bytes, 3);
        cr_assert(decoded[0] == INFINITY && decoded[1] == -INFINITY && isnan(decoded[2]));
    }
}

/* What sums over runs of SGP_KERNELS_RUN values, over more than one. */
static void compare_sums(
    const struct sgp_kernels *twin, const float *a, const float *b, size_t count)
{
    const struct sgp_kernels *table[] = {sgp_kernels_reference(), twin};
    const struct sgp_fold_factors factors = {0.3f, 0.7f, 0.7f, 1.3f};
    static float folded[2][4096], again[2][4096];
    float most[2][3];
    double sums[2][6];
    for (size_t t = 0; t < 2; t++) {
        memcpy(folded[t], a, count * sizeof *a);
        memcpy(again[t], a, count * sizeof *a);
        most[t][0] = table[t]->measure(&sums[t][0], a, count);
        most[t][1] = table[t]->fold(&sums[t][1], folded[t], b, 0.3f, 0.7f, count);
        table[t]->distance(&sums[t][2], &sums[t][3], a, 0.7f, b, 1.3f, count);
        most[t][2] =
            table[t]->fold_distance(&sums[t][4], &sums[t][5], again[t], b, &factors, count);
    }
    cr_assert(eq(int, memcmp(most[0], most[1], sizeof most[0]), 0), "%s, %zu", twin->name, count);
    cr_assert(eq(int, memcmp(sums[0], sums[1], sizeof sums[0]), 0), "%s, %zu", twin->name, count);
    cr_assert(
        eq(int, memcmp(folded[0], folded[1], count * sizeof *a), 0), "%s, %zu", twin->name, count);
    cr_assert(
        eq(int, memcmp(folded[1], again[1], count * sizeof *a), 0), "%s, %zu", twin->name, count);
    cr_assert(eq(dbl, sums[1][0], sums[1][1]));
    cr_assert(eq(dbl, sums[1][0], sums[1][4]));
    cr_assert(eq(dbl, sums[1][2], sums[1][5]));
    cr_assert(eq(flt, most[1][0], most[1][1]));
    cr_assert(eq(flt, most[1][0], most[1][2]));
}

Test(kernels, sums_of_several_runs_are_those_of_the_reference)
{
    const struct sgp_kernels *twins[SGP_KERNELS_TWINS_MAX];
    size_t count = sgp_kernels_all(twins);
    const size_t sizes[] = {1023, 1024, 1025, 1039, 1040, 2047, 2048, 2049, 3000, 4096};
    static float a[4096], b[4096];
    struct sgp_random random;
    sgp_random_init(&random, 7, 7);
    for (size_t i = 0; i < 4096; i++) {
        a[i] = (float)sgp_random_normal(&random);
        b[i] = (float)sgp_random_normal(&random);
    }
    for (size_t t = 1; t < count; t++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            compare_sums(twins[t], a, b, sizes[i]);
}

/* Of the first `size` values of the finite specials, repeated. */
static float largest_special(size_t size)
{
    float most = 0;
    for (size_t i = 0; i < size; i++)
        most = fmaxf(most, fabsf(specials[i % 10]));
    return most;
}

Test(kernels, largest_finds_one_value_anywhere)
{
    const struct sgp_kernels *twins[SGP_KERNELS_TWINS_MAX];
    size_t count = sgp_kernels_all(twins);
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    float values[COUNT_MAX];
    for (size_t t = 0; t < count; t++) {
        for (size_t i = 0; i < COUNT_MAX; i++)
            values[i] = specials[i % 10]; /* all the finite ones */
        for (size_t size = 0; size <= COUNT_MAX; size++)
            cr_assert(eq(flt, twins[t]->largest(values, size), largest_special(size)));
        for (size_t i = 0; i < COUNT_MAX; i++) {
            float kept = values[i];
            values[i] = bad[i % 4];
            cr_assert(isinf(twins[t]->largest(values, COUNT_MAX)), "%s, %zu", twins[t]->name, i);
            cr_assert(eq(flt, twins[t]->largest(values, i), largest_special(i)), "%s reads too far",
                twins[t]->name);
            values[i] = i % 2 ? FLT_MAX : -FLT_MAX;
            cr_assert(eq(flt, twins[t]->largest(values, COUNT_MAX), FLT_MAX));
            values[i] = kept;
        }
    }
}

Test(kernels, scale_and_absorb_conserve_dyadic_mass)
{
    const struct sgp_kernels *best = sgp_kernels_best();
    float x[3] = {1.0f, -2.5f, 3.0f};
    float target[3] = {1.0f, 1.0f, 1.0f};
    best->absorb(target, x, 0.25f, 3);
    best->scale(x, x, 0.75f, 3);
    const float kept[3] = {0.75f, -1.875f, 2.25f};
    const float gained[3] = {1.25f, 0.375f, 1.75f};
    cr_assert(eq(int, memcmp(x, kept, sizeof x), 0));
    cr_assert(eq(int, memcmp(target, gained, sizeof target), 0));
}

Test(kernels, place_is_absorb_into_zeros)
{
    float x[5] = {7, 7, 7, 7, 7}, zeros[5] = {0};
    const float share[5] = {1, -0.0f, -3, FLT_MIN, 0};
    sgp_kernels_best()->place(x, share, 0.3f, 5);
    sgp_kernels_best()->absorb(zeros, share, 0.3f, 5);
    cr_assert(same_bits(x, zeros, 5));
}

Test(kernels, fold_is_scale_then_absorb)
{
    struct sgp_random random;
    sgp_random_init(&random, 5, 5);
    const struct sgp_kernels *best = sgp_kernels_best();
    float x[1000], share[1000], once[1000];
    for (size_t i = 0; i < 1000; i++) {
        x[i] = (float)sgp_random_normal(&random);
        share[i] = (float)sgp_random_normal(&random);
        once[i] = share[i];
    }
    double came, squares;
    float most = best->fold(&came, once, x, 0.3f, 0.7f, 1000);
    cr_assert(eq(flt, most, best->measure(&squares, share, 1000)));
    cr_assert(eq(dbl, came, squares));
    best->scale(x, x, 0.3f, 1000);
    best->absorb(x, share, 0.7f, 1000);
    cr_assert(eq(int, memcmp(once, x, sizeof x), 0));
}

Test(kernels, absorb_rounds_the_product_first)
{
    /* (1 + e) * (1 - e) rounds to 1 in float32, so 1 absorbed into -1 is exactly 0; a contracted
     * multiply-add would leave -e*e. */
    float x = -1.0f;
    float share = 1.0f + FLT_EPSILON;
    sgp_kernels_reference()->absorb(&x, &share, 1.0f - FLT_EPSILON, 1);
    cr_assert(eq(flt, x, 0.0f));
}

Test(kernels, estimate_is_the_nearest_float)
{
    float x[2] = {1.0f, 3.0f};
    float z[2];
    sgp_kernels_best()->estimate(z, x, 3.0, 2);
    cr_assert(eq(flt, z[0], 1.0f / 3.0f));
    cr_assert(eq(flt, z[1], 1.0f));
}

Test(kernels, updates_match_the_formulas)
{
    const struct sgp_kernels *k = sgp_kernels_best();
    float gradient = 2.0f;
    float x = 4.0f; /* t = 2 + 0.25 * 4 = 3 */
    k->sgd(&x, &gradient, 0.5f, 0.25f, 1);
    cr_assert(eq(flt, x, 2.5f));
    x = 4.0f;
    float u = 8.0f; /* u = 0.5 * 8 + 3 = 7 */
    k->momentum(&x, &u, &gradient, 0.5f, 0.5f, 0.25f, 1);
    cr_assert(eq(flt, u, 7.0f));
    cr_assert(eq(flt, x, 0.5f));
    x = 4.0f;
    u = 8.0f; /* step = 3 + 0.5 * 7 = 6.5 */
    k->nesterov(&x, &u, &gradient, 0.5f, 0.5f, 0.25f, 1);
    cr_assert(eq(flt, u, 7.0f));
    cr_assert(eq(flt, x, 0.75f));
}

/* With numbers whose roots and quotients are whole. */
Test(kernels, steps_with_roots_match_the_formulas)
{
    const struct sgp_kernels *twins[SGP_KERNELS_TWINS_MAX];
    size_t count = sgp_kernels_all(twins);
    const struct sgp_adam half = {
        0.5f, 0.25f, 0.5f, 0.25f, 2, 4, 2, 1, 0, 0, 0}; /* t = 2 + 4 / 4 = 3 */
    for (size_t t = 0; t < count; t++) {
        float x[3] = {4, 4, 4}, mean[3] = {7, 7, 7}, square[3] = {2.25f, 2.25f, 2.25f};
        const float gradient[3] = {2, 2, 2};
        struct sgp_lamb_sums sums;
        /* mean = 7 - 4 / 2 = 5, square = 2.25 + 6.75 / 4 = 3.9375 */
        twins[t]->lamb_moments(&sums, mean, square, NULL, x, gradient, NULL, &half, 3);
        cr_assert(eq(flt, mean[2], 5));
        cr_assert(eq(flt, square[2], 3.9375f));
        cr_assert(eq(dbl, sums.x, 48));
        cr_assert(eq(dbl, sums.q, 0));
        float r = 10.0f / (sqrtf(3.9375f) * 4 + 2) + 4;
        cr_assert(epsilon_eq(dbl, sums.r, 3.0 * (double)r * (double)r, 1e-12));
        square[0] = 4; /* r = 5 * 2 / (2 * 4 + 2) + 4 = 5 */
        twins[t]->lamb(x, mean, square, NULL, &half, 1);
        cr_assert(eq(flt, x[0], 1.5f));
        float other[2] = {4, 4}, means[2] = {7, 7}, squares[2] = {5, 5};
        twins[t]->adam(
            other, means, squares, NULL, gradient, NULL, &half, 1); /* square = 5 + 4 / 4 = 6 */
        cr_assert(eq(flt, squares[0], 6));
        cr_assert(eq(flt, other[0], 4 - 0.5f * (10 / (sqrtf(6) * 4 + 2) + 4)));
        cr_assert(eq(flt, other[1], 4));
        float y = 4, s = 1; /* s = 1 + (9 - 1) * 3 / 8 = 4; 3 / (2 + 1) = 1 */
        twins[t]->rmsprop(&y, &s, gradient, 0.5f, 0.375f, 1, 0.25f, 1);
        cr_assert(eq(flt, s, 4));
        cr_assert(eq(flt, y, 3.5f));
        float v = 8, z = 4; /* v = 8 / 2 + 3 * 2 = 10 */
        twins[t]->lars(&z, &v, gradient, 0.25f, 0.5f, 2, 0.25f, 1);
        cr_assert(eq(flt, v, 10));
        cr_assert(eq(flt, z, 1.5f));
    }
}

/* With whole numbers: once the noise is known well, once it is as large as the square. */
Test(kernels, steps_leave_out_noise)
{
    const struct sgp_kernels *twins[SGP_KERNELS_TWINS_MAX];
    size_t count = sgp_kernels_all(twins);
    const struct sgp_adam part = {.rate = 0.5f,
        .first = 0.5f,
        .second = 0.25f,
        .mean_scale = 2,
        .square_scale = 4,
        .epsilon = 2,
        .fraction = 0.25f,
        .noise_second = 0.5f,
        .spread = 0.5f};
    for (size_t t = 0; t < count; t++) {
        /* mean = (1 + 6) / 2; square = 4 + (36 - 4) / 4 = 12; noise = (0 + 16) / 2 = 8; kept = 12 - 3 / 4 * 8 = 6 */
        float x = 4, mean = 1, square = 4, noise = 0, gradient = 6, deviation = -4;
        twins[t]->adam(&x, &mean, &square, &noise, &gradient, &deviation, &part, 1);
        cr_assert(eq(flt, mean, 3.5f));
        cr_assert(eq(flt, square, 12));
        cr_assert(eq(flt, noise, 8));
        cr_assert(eq(flt, x, 4 - 0.5f * (7 / (sqrtf(6) * 4 + 2))));
        /* square = 12 + (64 - 12) / 4 = 25; noise = (18 + 8^2) / 2 = 41; kept = 25 / 4; the root is 2.5 * 4 + 2 = 12 */
        x = 4, mean = 4, square = 12, noise = 18, gradient = 8, deviation = 8;
        struct sgp_lamb_sums sums;
        twins[t]->lamb_moments(&sums, &mean, &square, &noise, &x, &gradient, &deviation, &part, 1);
        cr_assert(eq(flt, mean, 6));
        cr_assert(eq(flt, square, 25));
        cr_assert(eq(flt, noise, 41));
        cr_assert(epsilon_eq(dbl, sums.r, 1, 1e-6));
        cr_assert(epsilon_eq(dbl, sums.q, 0.5 * 41 * 16 / 144, 1e-5));
        twins[t]->lamb(&x, &mean, &square, &noise, &part, 1);
        cr_assert(eq(flt, x, 3.5f));
        /* the same; the root is 2.5 * 4 + 2 = 12 */
        x = 4, square = 12, noise = 18;
        twins[t]->rmsprop_fleet(&x, &square, &noise, &gradient, &deviation, &part, 1);
        cr_assert(eq(flt, square, 25));
        cr_assert(eq(flt, noise, 41));
        cr_assert(eq(flt, x, 4 - 0.5f * (8.0f / 12)));
    }
}

Test(kernels, squares_are_added_in_float64)
{
    const struct sgp_kernels *twins[SGP_KERNELS_TWINS_MAX];
    size_t count = sgp_kernels_all(twins);
    static float values[10007];
    for (size_t i = 0; i < 10007; i++)
        values[i] = i % 2 == 0 ? 1e19f : 1e20f; /* squares that are no float32 */
    double sum = 0;
    for (size_t i = 0; i < 10007; i++)
        sum += (double)values[i] * (double)values[i];
    double first = twins[0]->squares(values, 10007);
    cr_assert(epsilon_eq(dbl, first, sum, 1e-12 * sum));
    for (size_t t = 1; t < count; t++)
        cr_assert(eq(dbl, twins[t]->squares(values, 10007), first), "%s", twins[t]->name);
}

/* Tall batches of small whole numbers, whose products are exact in any order. */
static void check_tall(const struct sgp_kernels *twin, size_t rows, size_t inputs, size_t outputs)
{
    static float features[70 * 19], delta[70 * 15], weights[15 * 19], y[70 * 15], gradient[15 * 19];
    struct sgp_random random;
    sgp_random_init(&random, rows * 1000 + inputs, outputs);
    for (size_t i = 0; i < rows * inputs; i++)
        features[i] = (float)sgp_random_below(&random, 64) - 31.0f;
    for (size_t i = 0; i < rows * outputs; i++)
        delta[i] = (float)sgp_random_below(&random, 64) - 31.0f;
    for (size_t i = 0; i < outputs * inputs; i++)
        weights[i] = (float)sgp_random_below(&random, 64) - 31.0f;
    twin->narrow_product(y, features, weights, 0.5f, rows, inputs, outputs);
    twin->narrow_gradient(gradient, delta, features, rows, inputs, outputs);
    for (size_t o = 0; o < outputs; o++) {
        for (size_t r = 0; r < rows; r++) {
            double sum = 0.0;
            for (size_t i = 0; i < inputs; i++)
                sum += (double)features[r * inputs + i] * (double)weights[o * inputs + i];
            cr_assert(eq(flt, y[r * outputs + o], (float)(0.5 * sum)), "%s", twin->name);
        }
        for (size_t i = 0; i < inputs; i++) {
            double sum = 0.0;
            for (size_t r = 0; r < rows; r++)
                sum += (double)features[r * inputs + i] * (double)delta[r * outputs + o];
            cr_assert(eq(flt, gradient[o * inputs + i], (float)sum), "%s", twin->name);
        }
    }
}

Test(kernels, narrow_products_of_tall_batches)
{
    const struct sgp_kernels *twins[SGP_KERNELS_TWINS_MAX];
    size_t count = sgp_kernels_all(twins);
    const size_t rows[] = {1, 2, 31, 32, 33, 64, 70};
    for (size_t t = 0; t < count; t++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            for (size_t outputs = 1; outputs <= 15; outputs++)
                for (size_t inputs = 1; inputs <= 19; inputs += 3)
                    check_tall(twins[t], rows[r], inputs, outputs);
}

/* One value through a kernel with bias 0. */
static float curve_at(void (*curve)(float *, const float *, float, size_t, size_t), float value)
{
    const float bias = 0.0f;
    curve(&value, &bias, 1.0f, 1, 1);
    return value;
}

static double relative_error(float got, double expected, double least)
{
    return fabs((double)got - expected) / fmax(fabs(expected), least);
}

Test(kernels, curves_are_near_their_functions)
{
    const struct sgp_kernels *k = sgp_kernels_reference(); /* whose bits the others give */
    double worst = 0.0;
    for (double v = 1e-30; v < 200.0; v *= 1.0003) {
        float value = (float)v;
        double x = (double)value;
        double tanh_error = relative_error(curve_at(k->bias_tanh, value), tanh(x), 0.0);
        double above = relative_error(curve_at(k->bias_sigmoid, value), 1 / (1 + exp(-x)), 0.0);
        double below = relative_error(curve_at(k->bias_sigmoid, -value), 1 / (1 + exp(x)), 1e-31);
        worst = fmax(worst, fmax(tanh_error, fmax(above, below)));
        cr_assert(eq(flt, curve_at(k->bias_tanh, -value), -curve_at(k->bias_tanh, value)));
    }
    cr_assert(lt(dbl, worst, 4e-7));
    cr_assert(eq(flt, curve_at(k->bias_tanh, 0.0f), 0.0f));
    cr_assert(eq(flt, curve_at(k->bias_tanh, INFINITY), 1.0f));
    cr_assert(eq(flt, curve_at(k->bias_sigmoid, 0.0f), 0.5f));
    cr_assert(eq(flt, curve_at(k->bias_sigmoid, INFINITY), 1.0f));
    cr_assert(lt(flt, curve_at(k->bias_sigmoid, -INFINITY), 1e-37f));
}

Test(kernels, activations_keep_nan_so_that_divergence_is_seen)
{
    const struct sgp_kernels *twins[SGP_KERNELS_TWINS_MAX];
    size_t count = sgp_kernels_all(twins);
    for (size_t t = 0; t < count; t++) {
        float y[17];
        float bias[17] = {0};
        for (size_t i = 0; i < 17; i++)
            y[i] = NAN;
        twins[t]->bias_relu(y, bias, 1.0f, 1, 17);
        for (size_t i = 0; i < 17; i++)
            cr_assert(isnan(y[i]), "%s", twins[t]->name);
        twins[t]->bias_tanh(y, bias, 1.0f, 1, 17);
        twins[t]->bias_sigmoid(y, bias, 1.0f, 1, 17);
        for (size_t i = 0; i < 17; i++)
            cr_assert(isnan(y[i]), "%s", twins[t]->name);
    }
}

Test(kernels, relative_difference)
{
    float a[2] = {3.0f, 4.0f};
    float b[2] = {6.0f, 8.0f};
    double difference;
    double norm;
    sgp_kernels_reference()->distance(&difference, &norm, a, 1.0f, b, 1.0f, 2);
    cr_assert(eq(dbl, sgp_relative_difference(difference, norm), 0.5));
    sgp_kernels_reference()->distance(&difference, &norm, a, 2.0f, b, 1.0f, 2);
    cr_assert(eq(dbl, sgp_relative_difference(difference, norm), 0.0));
    cr_assert(eq(dbl, sgp_relative_difference(0.0, 0.0), 0.0));
    cr_assert(isinf(sgp_relative_difference(25.0, 0.0)));
    a[0] = FLT_MAX; /* finite, as all that is accepted is; its square is not */
    sgp_kernels_best()->distance(&difference, &norm, a, 1.0f, b, 1.0f, 2);
    cr_assert(isinf(sgp_relative_difference(difference, norm)));
    sgp_kernels_best()->distance(&difference, &norm, a, 2.0f, a, 2.0f, 2);
    cr_assert(isinf(sgp_relative_difference(difference, norm)));
}
