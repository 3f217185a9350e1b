/* SPDX-License-Identifier: Apache-2.0 */
/* The source of blocks: the numbers that the format promises, for every count and magnitude of
 * values. */
#include "block_plain.h"

#include "sgp/kernels.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <float.h>

/* v_i = ((37 i mod 101) - 50) / 8, in a calculation in another language. */
static void fill_known(float values[SGP_BLOCK_VALUES])
{
    for (uint32_t i = 0; i < SGP_BLOCK_VALUES; i++)
        values[i] = (float)((int)(37 * i % 101) - 50) / 8;
}

static const struct {
    enum sgp_compressor compressor;
    uint32_t bits, scale;
    int first[8], sum, magnitudes;
    float error;
    size_t bytes;
} known_blocks[] = {
    {SGP_COMPRESSOR_INT8, 8, 0x3d499400, {-127, -33, 61, -102, -8, 86, -76, 18}, -131, 16435,
        0.0245552F, 260},
    {SGP_COMPRESSOR_INT4, 4, 0x3f649300, {-7, -2, 3, -6, 0, 5, -4, 1}, -8, 904, 0.446396F, 132},
    {SGP_COMPRESSOR_INT2, 2, 0x40c80000, {-1, 0, 0, -1, 0, 1, -1, 0}, -1, 127, 3.125F, 68},
};
#define KNOWN_BLOCKS (sizeof known_blocks / sizeof known_blocks[0])

static void check_integers(size_t known, const int8_t *integers)
{
    int sum = 0, magnitudes = 0;
    for (uint32_t i = 0; i < SGP_BLOCK_VALUES; i++) {
        cr_assert(i >= 8 || integers[i] == known_blocks[known].first[i]);
        sum += integers[i];
        magnitudes += integers[i] < 0 ? -integers[i] : integers[i];
    }
    cr_assert(eq(int, sum, known_blocks[known].sum));
    cr_assert(eq(int, magnitudes, known_blocks[known].magnitudes));
}

static float greatest_error(const float *a, const float *b, uint32_t count)
{
    float most = 0;
    for (uint32_t i = 0; i < count; i++)
        most = fmaxf(most, fabsf(a[i] - b[i]));
    return most;
}

Test(block, known_integers_of_every_twin)
{
    const struct sgp_kernels *twins[SGP_KERNELS_TWINS_MAX];
    float values[SGP_BLOCK_VALUES], decoded[SGP_BLOCK_VALUES], projected[SGP_BLOCK_VALUES];
    int8_t integers[SGP_BLOCK_VALUES];
    size_t count = sgp_kernels_all(twins);
    fill_known(values);
    for (size_t t = 0; t < count; t++)
        for (size_t k = 0; k < KNOWN_BLOCKS; k++) {
            float scale = float_of(known_blocks[k].scale);
            twins[t]->quantise(integers, values, 1 / scale, SGP_BLOCK_VALUES);
            check_integers(k, integers);
            twins[t]->dequantise(decoded, integers, scale, SGP_BLOCK_VALUES);
            twins[t]->fake_quantise(projected, values, 1 / scale, scale, SGP_BLOCK_VALUES);
            cr_assert(zero(int, memcmp(decoded, projected, sizeof decoded)));
            float error = greatest_error(decoded, values, SGP_BLOCK_VALUES);
            cr_assert(epsilon_eq(flt, error, known_blocks[k].error, 1e-6F));
        }
}

Test(block, known_bytes)
{
    float values[SGP_BLOCK_VALUES], projected[SGP_BLOCK_VALUES];
    uint8_t bytes[SGP_BLOCK_BYTES_MOST];
    fill_known(values);
    for (size_t k = 0; k < KNOWN_BLOCKS; k++) {
        size_t size =
            sgp_block_pack(bytes, known_blocks[k].compressor, false, values, SGP_BLOCK_VALUES);
        uint32_t word = known_blocks[k].scale | known_blocks[k].bits;
        int8_t integers[SGP_BLOCK_VALUES];
        cr_assert(eq(sz, size, known_blocks[k].bytes));
        for (uint32_t i = 0; i < 4; i++)
            cr_assert(eq(u8, bytes[i], (uint8_t)(word >> 8 * i)));
        for (uint32_t i = 0; i < SGP_BLOCK_VALUES; i++)
            integers[i] =
                (int8_t)plain_get(bytes + 4, i * known_blocks[k].bits, known_blocks[k].bits);
        check_integers(k, integers);
        cr_assert(eq(sz, size,
            sgp_block_project(
                projected, known_blocks[k].compressor, false, values, SGP_BLOCK_VALUES)));
        float error = greatest_error(projected, values, SGP_BLOCK_VALUES);
        cr_assert(epsilon_eq(flt, error, known_blocks[k].error, 1e-6F));
    }
}

/* The largest error of 25,600 values, in parts of the largest magnitude of their block. */
static double error_of(enum sgp_compressor compressor)
{
    float values[SGP_BLOCK_VALUES], projected[SGP_BLOCK_VALUES];
    double most = 0;
    for (uint32_t block = 0; block < 100; block++) {
        plain_fill(values, SGP_BLOCK_VALUES, block, 1);
        sgp_block_project(projected, compressor, false, values, SGP_BLOCK_VALUES);
        float error = greatest_error(projected, values, SGP_BLOCK_VALUES);
        float largest = sgp_kernels_reference()->largest(values, SGP_BLOCK_VALUES);
        most = fmax(most, (double)(error / largest));
    }
    return most;
}

/* Blocks of SPARSE do not have all values. */
static bool is_dense(int compressor)
{
    return compressor != (int)SGP_COMPRESSOR_SPARSE;
}

/* A scale is rounded up, to a float32 whose low byte is 0. */
Test(block, the_error_is_that_of_the_table_of_compressors)
{
    for (int c = SGP_COMPRESSOR_FP16; c <= (int)SGP_COMPRESSOR_MOST; c++) {
        if (!is_dense(c))
            continue;
        double bound = sgp_compressor_error((enum sgp_compressor)c);
        double error = error_of((enum sgp_compressor)c);
        cr_assert(le(dbl, error, bound * (1 + 0x1p-14)), "compressor %d", c);
        cr_assert(gt(dbl, error, bound / 2), "compressor %d", c);
    }
}

static void check_bytes(enum sgp_compressor compressor, bool fine, const float *values,
    uint32_t count, const uint8_t *known, size_t size)
{
    uint8_t bytes[SGP_BLOCK_BYTES_MOST];
    memset(bytes, 0xff, sizeof bytes);
    cr_assert(eq(sz, sgp_block_pack(bytes, compressor, fine, values, count), size));
    for (size_t i = 0; i < size; i++)
        cr_assert(eq(u8, bytes[i], known[i]), "byte %zu of compressor %d", i, (int)compressor);
    cr_assert(eq(u8, bytes[size], 0xff));
}

/* Scale 1.5 is 0x3fc00000. */
Test(block, bytes_of_short_blocks)
{
    const float values[5] = {1.5F, -1.5F, 0, 1, 1.5F}, halves[3] = {1, -2, 65504};
    const uint8_t fp16[] = {16, 0, 0, 0, 0x00, 0x3c, 0x00, 0xc0, 0xff, 0x7b, 0, 0};
    const uint8_t bf16[] = {17, 0, 0, 0, 0x80, 0x3f, 0x00, 0xc0, 0x80, 0x47, 0, 0};
    const uint8_t int2[] = {2, 0, 0xc0, 0x3f, 0x4d, 1, 0, 0};
    const uint8_t sign[] = {1, 0xcd, 0x8c, 0x3f, 2, 0, 0, 0}; /* 1.1, rounded up */
    const uint8_t zeros[] = {0, 0, 0, 0};
    check_bytes(SGP_COMPRESSOR_FP16, false, halves, 3, fp16, sizeof fp16);
    check_bytes(SGP_COMPRESSOR_INT8, true, halves, 3, fp16, sizeof fp16);
    check_bytes(SGP_COMPRESSOR_BF16, true, halves, 3, fp16, sizeof fp16);
    check_bytes(SGP_COMPRESSOR_BF16, false, halves, 3, bf16, sizeof bf16);
    check_bytes(SGP_COMPRESSOR_INT2, false, values, 5, int2, sizeof int2);
    check_bytes(SGP_COMPRESSOR_SIGN, false, values, 5, sign, sizeof sign);
    check_bytes(SGP_COMPRESSOR_SIGN, false, values + 2, 1, zeros, sizeof zeros);
    check_bytes(SGP_COMPRESSOR_INT4_64, false, values + 2, 1, zeros, sizeof zeros);
}

/* What a block of these values comes to, however it is come by. */
static void check_ways(
    enum sgp_compressor compressor, bool fine, const float *values, uint32_t count)
{
    float known[SGP_BLOCK_VALUES], again[SGP_BLOCK_VALUES];
    uint8_t bytes[SGP_BLOCK_BYTES_MOST], twice[SGP_BLOCK_BYTES_MOST];
    size_t most = 4 + (count + 1) / 2 * 4;
    size_t size = sgp_block_project(known, compressor, fine, values, count);
    cr_assert(size % 4 == 0 && size <= most, "%zu bytes of %u values", size, count);
    cr_assert(eq(sz, sgp_block_pack(bytes, compressor, fine, values, count), size));
    cr_assert(eq(int, sgp_block_bytes(bytes, size, count), (int)size));
    cr_assert(zero(int, sgp_block_unpack(again, bytes, size, count)));
    cr_assert(zero(int, memcmp(again, known, count * sizeof *known)), "compressor %d, %u values",
        (int)compressor, count);
    cr_assert(eq(sz, sgp_block_project(again, compressor, fine, again, count), size));
    cr_assert(zero(int, memcmp(again, known, count * sizeof *known)), "compressor %d, %u values",
        (int)compressor, count);
    cr_assert(eq(sz, sgp_block_pack(twice, compressor, fine, known, count), size));
    cr_assert(zero(int, memcmp(twice, bytes, size)));
}

static void check_all_ways(const float *values, uint32_t count)
{
    for (int c = SGP_COMPRESSOR_FP16; c <= (int)SGP_COMPRESSOR_MOST; c++)
        for (int fine = 0; is_dense(c) && fine < 2; fine++)
            check_ways((enum sgp_compressor)c, fine != 0, values, count);
}

Test(block, what_is_unpacked_is_what_was_projected)
{
    float values[SGP_BLOCK_VALUES];
    for (uint32_t count = 1; count <= SGP_BLOCK_VALUES; count++)
        for (float size = 1e-38F; size < 3e38F; size *= 97) {
            plain_fill(values, count, count, size);
            check_all_ways(values, count);
        }
}

Test(block, bytes_are_those_written_bit_by_bit)
{
    float values[SGP_BLOCK_VALUES], known[SGP_BLOCK_VALUES], projected[SGP_BLOCK_VALUES];
    uint8_t plain[SGP_BLOCK_BYTES_MOST], bytes[SGP_BLOCK_BYTES_MOST];
    for (uint32_t count = 1; count <= SGP_BLOCK_VALUES; count++)
        for (size_t f = 0; f < PLAIN_FORMS; f++) {
            uint32_t parts = count <= 64 ? 1 : plain_forms[f].parts;
            plain_fill(values, count, count * 7, 0.1F);
            values[count - 1] = 0.3F; /* a quarter of one value is not 0 */
            size_t size = plain_pack(plain, plain_forms[f].bits, parts, values, count);
            cr_assert(eq(
                sz, sgp_block_pack(bytes, plain_forms[f].compressor, false, values, count), size));
            cr_assert(zero(int, memcmp(bytes, plain, size)), "form %zu, %u values", f, count);
            plain_unpack(known, plain_forms[f].bits, parts, plain, count);
            sgp_block_project(projected, plain_forms[f].compressor, false, values, count);
            for (uint32_t i = 0; i < count; i++)
                cr_assert(projected[i] == known[i], "form %zu, value %u of %u", f, i, count);
        }
}

/* Kinds 0, 16 and 17 where integers will not do. */
static uint8_t kind_of(
    enum sgp_compressor compressor, bool fine, const float *values, uint32_t count)
{
    uint8_t bytes[SGP_BLOCK_BYTES_MOST];
    sgp_block_pack(bytes, compressor, fine, values, count);
    return bytes[0];
}

/* Of 200 values around 0.1, one of which is this. */
static void check_kinds(float value, uint8_t integers, uint8_t fine)
{
    float values[200];
    for (uint32_t at = 0; at < 200; at += 199) {
        plain_fill(values, 200, 3, 0.1F);
        values[at] = value;
        for (size_t f = 0; f < PLAIN_FORMS; f++) {
            uint8_t own = (uint8_t)(plain_forms[f].bits + (plain_forms[f].parts > 1 ? 64 : 0));
            uint8_t kind = kind_of(plain_forms[f].compressor, false, values, 200);
            cr_assert(eq(u8, kind, integers == 0 ? own : integers), "%a", value);
            cr_assert(eq(u8, kind_of(plain_forms[f].compressor, true, values, 200), fine));
        }
        cr_assert(eq(u8, kind_of(SGP_COMPRESSOR_FP16, false, values, 200), 16));
        cr_assert(eq(u8, kind_of(SGP_COMPRESSOR_FP16, true, values, 200), 16));
        cr_assert(eq(u8, kind_of(SGP_COMPRESSOR_BF16, false, values, 200), 17));
        cr_assert(eq(u8, kind_of(SGP_COMPRESSOR_BF16, true, values, 200), fine));
        check_all_ways(values, 200);
    }
}

Test(block, what_integers_cannot_say_travels_as_16_bits)
{
    check_kinds(-0.5F, 0, 16);
    check_kinds(65504, 0, 16);
    check_kinds(-65505, 0, 17);
    check_kinds(0x1.ffp126F, 0, 17);
    check_kinds(0x1p127F, 17, 17);
    check_kinds(-FLT_MAX, 17, 17);
    check_kinds(INFINITY, 16, 16);
    check_kinds(-INFINITY, 16, 16);
    check_kinds(NAN, 16, 16);
}

/* Around the border of bfloat16, where a scale that is rounded up reaches it. */
Test(block, no_product_of_a_scale_is_infinite)
{
    float values[SGP_BLOCK_VALUES], projected[SGP_BLOCK_VALUES];
    for (uint32_t bits = bits_of(0x1.fep126F); bits < bits_of(0x1.01p127F); bits += 101)
        for (uint32_t count = 1; count < 80; count = 2 * count + 1) {
            for (uint32_t i = 0; i < count; i++)
                values[i] = float_of(i % 3 == 0 ? bits : bits - 300) * (i % 2 == 0 ? 1 : -1);
            check_all_ways(values, count);
            for (size_t f = 0; f < PLAIN_FORMS; f++) {
                sgp_block_project(projected, plain_forms[f].compressor, false, values, count);
                for (uint32_t i = 0; i < count; i++)
                    cr_assert(fabsf(projected[i] - values[i]) <= 0x1p119F, "%a", values[i]);
            }
        }
}

Test(block, infinities_and_nans_reach_the_target_with_the_values_beside_them)
{
    const float values[4] = {1e30F, NAN, -INFINITY, -0.1F};
    float projected[4];
    sgp_block_project(projected, SGP_COMPRESSOR_INT4, false, values, 4);
    cr_assert(projected[0] == 65504 && isnan(projected[1]) && projected[2] == -INFINITY);
    cr_assert(eq(flt, projected[3], -0x1.998p-4F));
    sgp_block_project(projected, SGP_COMPRESSOR_INT4, true, values, 4);
    cr_assert(projected[0] == 0x1.94p99F && isnan(projected[1]) && projected[2] == -INFINITY);
    cr_assert(eq(flt, projected[3], -0x1.9ap-4F));
}

/* INT8 has a scale of 2^-110 for a magnitude of 127 * 2^-110, and none for less. */
Test(block, scales_below_the_least_are_zeros)
{
    const float least = 127 * 0x1p-110F, below = float_of(bits_of(least) - 1000);
    float values[2] = {least, -0.0F}, projected[2];
    cr_assert(eq(u8, kind_of(SGP_COMPRESSOR_INT8, false, values, 2), 8));
    sgp_block_project(projected, SGP_COMPRESSOR_INT8, false, values, 2);
    cr_assert(projected[0] == least && bits_of(projected[1]) == 0);
    values[0] = below;
    cr_assert(eq(u8, kind_of(SGP_COMPRESSOR_INT8, false, values, 2), 0));
    cr_assert(eq(sz, sgp_block_project(projected, SGP_COMPRESSOR_INT8, false, values, 2), 4));
    cr_assert(bits_of(projected[0]) == 0 && bits_of(projected[1]) == 0);
}

/* 16 bits keep the sign of a zero; integers lose it; to a sign block both zeros are positive. */
Test(block, negative_zeros)
{
    const float values[3] = {-0.0F, 1, -1e-3F};
    const struct {
        enum sgp_compressor compressor;
        float first, last;
    } known[] = {{SGP_COMPRESSOR_FP16, -0.0F, -0x1.064p-10F},
        {SGP_COMPRESSOR_BF16, -0.0F, -0x1.06p-10F}, {SGP_COMPRESSOR_INT8, 0, 0},
        {SGP_COMPRESSOR_INT2, 0, 0}, {SGP_COMPRESSOR_SIGN, 0x1.55aep-2F, -0x1.55aep-2F}};
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        float projected[3];
        sgp_block_project(projected, known[k].compressor, false, values, 3);
        cr_assert(eq(u32, bits_of(projected[0]), bits_of(known[k].first)), "%zu", k);
        cr_assert(
            eq(u32, bits_of(projected[2]), bits_of(known[k].last)), "%zu: %a", k, projected[2]);
    }
    const float zeros[5] = {-0.0F, 0, -0.0F, 0, 0};
    check_all_ways(zeros, 5);
}

Test(block, four_scales_keep_small_quarters)
{
    float values[SGP_BLOCK_VALUES], projected[SGP_BLOCK_VALUES];
    for (uint32_t i = 0; i < SGP_BLOCK_VALUES; i++)
        values[i] = i < 64 ? 1000 : i < 128 ? 0.001F : i < 192 ? 0 : -1e-35F;
    sgp_block_project(projected, SGP_COMPRESSOR_INT4, false, values, SGP_BLOCK_VALUES);
    cr_assert(projected[64] == 0);
    size_t size =
        sgp_block_project(projected, SGP_COMPRESSOR_INT4_64, false, values, SGP_BLOCK_VALUES);
    cr_assert(eq(sz, size, 144));
    cr_assert(fabsf(projected[64] - 0.001F) < 1e-7F && projected[128] == 0 && projected[192] == 0);
    check_all_ways(values, SGP_BLOCK_VALUES);
}

static size_t size_of(enum sgp_compressor compressor, uint32_t count)
{
    float values[SGP_BLOCK_VALUES];
    plain_fill(values, count, 1, 1);
    return sgp_block_project(values, compressor, false, values, count);
}

Test(block, sizes)
{
    const struct {
        enum sgp_compressor compressor;
        size_t of_256, of_65, of_3;
    } known[] = {{SGP_COMPRESSOR_FP16, 516, 136, 12}, {SGP_COMPRESSOR_BF16, 516, 136, 12},
        {SGP_COMPRESSOR_INT8, 260, 72, 8}, {SGP_COMPRESSOR_INT6, 196, 56, 8},
        {SGP_COMPRESSOR_INT4, 132, 40, 8}, {SGP_COMPRESSOR_INT4_64, 144, 52, 8},
        {SGP_COMPRESSOR_INT2, 68, 24, 8}, {SGP_COMPRESSOR_SIGN, 36, 16, 8}};
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        cr_assert(eq(sz, size_of(known[k].compressor, 256), known[k].of_256));
        cr_assert(eq(sz, size_of(known[k].compressor, 65), known[k].of_65));
        cr_assert(eq(sz, size_of(known[k].compressor, 3), known[k].of_3));
    }
}
