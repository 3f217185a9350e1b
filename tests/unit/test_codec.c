/* SPDX-License-Identifier: Apache-2.0 */
/* What codings make of values: the numbers that the format promises, bytes that are refused, and that nothing of a sum
 * is lost by them. */
#include "sgp/codec.h"
#include "sgp/random.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 700 /* two blocks, and a part of one */
#define BYTES (4 * 3 + 2 * COUNT)

static float projected(float value)
{
    sgp_codec_of(SGP_CODING_FP16)->project(&value, &value, 1);
    return value;
}

static float bits_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

Test(codec, fp16_is_the_nearest_half_to_even)
{
    const struct {
        float value, half;
    } known[] = {{0, 0}, {1, 1}, {-1.5F, -1.5F}, {2049, 2048}, {2051, 2052}, {0.1F, 0x1.998p-4F},
        {65504, 65504}, {65519, 65504}, {65520, 65504}, {-1e30F, -65504}, {INFINITY, INFINITY},
        {-INFINITY, -INFINITY}, {0x1p-14F, 0x1p-14F}, {0x1p-24F, 0x1p-24F}, {0x1p-25F, 0},
        {0x1.000002p-25F, 0x1p-24F}, {0x1.8p-24F, 0x1p-23F}, {0x1.ffep-15F, 0x1p-14F}, {1e-30F, 0}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        cr_assert(eq(flt, projected(known[i].value), known[i].half), "%a", known[i].value);
    cr_assert(isnan(projected(NAN)));
    cr_assert(signbit(projected(-0.0F)) && signbit(projected(-1e-30F)));
}

/* Of two floats side by side none has a half that is farther away than another. */
Test(codec, no_other_half_is_nearer)
{
    for (uint32_t bits = 0; bits < 0x47800000u; bits += 9973) {
        float value = bits_of(bits), half = projected(value);
        float step = value < 0x1p-14F ? 0x1p-24F : ldexpf(1, ilogbf(value) - 10);
        cr_assert(value > 65504 || fabsf(value - half) <= step / 2, "%a", value);
        cr_assert(eq(flt, projected(half), half));
        cr_assert(eq(flt, projected(-value), -half));
    }
}

Test(codec, sizes)
{
    const struct {
        uint64_t count, plain, fp16;
    } known[] = {{0, 0, 0}, {1, 4, 8}, {2, 8, 8}, {3, 12, 12}, {4, 16, 12}, {256, 1024, 516},
        {257, 1028, 524}, {25000000, 100000000, 50390628}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        cr_assert(eq(u64, sgp_coding_bytes_most(SGP_CODING_NONE, known[i].count), known[i].plain));
        cr_assert(eq(u64, sgp_coding_bytes_most(SGP_CODING_FP16, known[i].count), known[i].fp16));
    }
}

Test(codec, bytes_of_fp16)
{
    const float values[3] = {1, -2, 65504};
    const uint8_t known[12] = {16, 0, 0, 0, 0x00, 0x3c, 0x00, 0xc0, 0xff, 0x7b, 0, 0};
    uint8_t bytes[12];
    memset(bytes, 0xff, sizeof bytes);
    sgp_codec_of(SGP_CODING_FP16)->pack(bytes, values, 3);
    cr_assert(zero(int, memcmp(bytes, known, sizeof known)));
}

static void fill(float *values, uint64_t count, uint64_t seed)
{
    struct sgp_random random;
    sgp_random_init(&random, seed, 0);
    for (uint64_t i = 0; i < count; i++)
        values[i] = (float)sgp_random_normal(&random) * (i % 7 == 0 ? 1e6F : 1);
}

/* Of every number of values, from the end of the memory that they go to, as a link has them. */
Test(codec, what_is_unpacked_is_what_was_projected)
{
    for (int form = SGP_CODING_NONE; form <= SGP_CODING_FP16; form++) {
        const struct sgp_codec *codec = sgp_codec_of((enum sgp_coding)form);
        for (uint64_t count = 4; count <= COUNT; count += count < 20 || count > 505 ? 1 : 11) {
            float values[COUNT], known[COUNT], into[COUNT];
            size_t size = (size_t)sgp_coding_bytes_most((enum sgp_coding)form, count);
            fill(values, count, count);
            codec->project(known, values, count);
            uint8_t *bytes = (uint8_t *)(into + count) - size;
            codec->pack(bytes, values, count);
            cr_assert(zero(int, codec->unpack(into, bytes, size, count)));
            cr_assert(zero(int, memcmp(into, known, count * sizeof *into)), "%s, %llu", codec->name,
                (unsigned long long)count);
            codec->project(known, known, count);
            cr_assert(zero(int, memcmp(into, known, count * sizeof *into)));
        }
    }
}

Test(codec, pieces_of_whole_blocks_are_the_whole)
{
    const struct sgp_codec *codec = sgp_codec_of(SGP_CODING_FP16);
    float values[COUNT];
    uint8_t whole[BYTES], pieces[BYTES];
    fill(values, COUNT, 1);
    codec->pack(whole, values, COUNT);
    codec->pack(pieces, values, 512);
    codec->pack(pieces + sgp_coding_bytes_most(SGP_CODING_FP16, 512), values + 512, COUNT - 512);
    cr_assert(zero(int, memcmp(whole, pieces, sizeof whole)));
}

static int unpack(const uint8_t *bytes, size_t size, uint64_t count)
{
    float values[COUNT];
    return sgp_codec_of(SGP_CODING_FP16)->unpack(values, bytes, size, count);
}

Test(codec, what_pack_does_not_write_is_refused)
{
    float values[COUNT];
    uint8_t bytes[BYTES];
    fill(values, COUNT - 1, 1);
    sgp_codec_of(SGP_CODING_FP16)->pack(bytes, values, COUNT - 1);
    cr_assert(zero(int, unpack(bytes, BYTES, COUNT - 1)));
    cr_assert(eq(int, unpack(bytes, BYTES - 4, COUNT - 1), SGP_E_FRAME));
    cr_assert(eq(int, unpack(bytes, BYTES, COUNT + 1), SGP_E_FRAME));
    cr_assert(eq(int, unpack(bytes, BYTES, COUNT - 2), SGP_E_FRAME));
    const size_t fixed[] = {0, 1, 2, 3, 516, 517, 518, 519, 1032, 1035, BYTES - 2, BYTES - 1};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        bytes[fixed[i]] ^= 1;
        cr_assert(eq(int, unpack(bytes, BYTES, COUNT - 1), SGP_E_FRAME), "byte %zu", fixed[i]);
        bytes[fixed[i]] ^= 1;
    }
    cr_assert(eq(int, sgp_codec_of(SGP_CODING_NONE)->unpack(values, bytes, 8, 3), SGP_E_FRAME));
}

/* ---- averaging with coded shares ---- */

#define NODES 8
#define VALUES 1024

struct fleet {
    float x[NODES][VALUES];
    double mean[VALUES], total;
};

static void begin(struct fleet *fleet, double offset)
{
    fleet->total = 0;
    for (int64_t c = 0; c < VALUES; c++) {
        fleet->mean[c] = 0;
        for (int64_t i = 0; i < NODES; i++) {
            int64_t k = (131 * i + 71 * c * c + 17 * i * c) % 8191 - 4095;
            fleet->x[i][c] = (float)(offset + (double)k / 2048);
            fleet->mean[c] += (double)fleet->x[i][c] / NODES;
            fleet->total += (double)fleet->x[i][c];
        }
    }
}

/* Each gives half of it to the node so many places on: x = (x - s / 2) + s' / 2, s' being its source's. */
static void average(struct fleet *fleet, const struct sgp_codec *codec, uint32_t hop)
{
    static float given[NODES][VALUES];
    for (uint32_t i = 0; i < NODES; i++)
        codec->project(given[i], fleet->x[i], VALUES);
    for (uint32_t i = 0; i < NODES; i++)
        for (uint32_t c = 0; c < VALUES; c++) {
            float kept = fleet->x[i][c] - 0.5F * given[i][c];
            fleet->x[i][c] = kept + 0.5F * given[(i + NODES - hop) % NODES][c];
        }
}

static void error_of(const struct fleet *fleet, double *ret_greatest, double *ret_rms)
{
    double greatest = 0, squares = 0;
    for (uint32_t i = 0; i < NODES; i++)
        for (uint32_t c = 0; c < VALUES; c++) {
            double error = fabs((double)fleet->x[i][c] - fleet->mean[c]);
            greatest = fmax(greatest, error);
            squares += error * error;
        }
    *ret_greatest = greatest;
    *ret_rms = sqrt(squares / (NODES * VALUES));
}

/* The numbers come from a calculation in another language. */
Test(codec, coded_averaging_keeps_the_sum_and_comes_as_near_as_is_known)
{
    static struct fleet fleet;
    const struct {
        double offset, greatest, rms;
    } known[] = {{5, 2.9297e-03, 8.8013e-04}, {0, 7.3242e-04, 7.8532e-05}};
    for (size_t k = 0; k < 2; k++) {
        double greatest, rms, total = 0;
        begin(&fleet, known[k].offset);
        for (uint32_t t = 0; t < 60; t++)
            average(&fleet, sgp_codec_of(SGP_CODING_FP16), 1u << t % 3);
        error_of(&fleet, &greatest, &rms);
        cr_assert(epsilon_eq(dbl, greatest, known[k].greatest, 1e-4 * known[k].greatest));
        cr_assert(epsilon_eq(dbl, rms, known[k].rms, 1e-4 * known[k].rms));
        for (uint32_t i = 0; i < NODES; i++)
            for (uint32_t c = 0; c < VALUES; c++)
                total += (double)fleet.x[i][c];
        cr_assert(eq(dbl, total, fleet.total));
        for (uint32_t t = 60; t < 66; t++)
            average(&fleet, sgp_codec_of(SGP_CODING_NONE), 1u << t % 3);
        error_of(&fleet, &greatest, &rms);
        cr_assert(le(dbl, greatest, 1e-6));
    }
}
