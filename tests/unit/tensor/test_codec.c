/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of values as payloads, and back: fp16 to the bit, sizes, pieces, bytes that are refused, and where tensors meet.
 * What coded averaging comes to: test_block_average.c. */
#include "sgp/codec.h"
#include "sgp/random.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 700 /* two blocks, and a part of one */
#define BYTES (4 * 3 + 2 * COUNT)

static const struct sgp_codec halves = {.compressor = SGP_COMPRESSOR_FP16};

static float projected(float value)
{
    (void)sgp_codec_project(&halves, &value, &value, 0, 1);
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
    (void)sgp_codec_pack(&halves, bytes, values, 0, 3);
    cr_assert(zero(int, memcmp(bytes, known, sizeof known)));
}

static void fill(float *values, uint64_t count, uint64_t seed)
{
    struct sgp_random random;
    sgp_random_init(&random, seed, 0);
    for (uint64_t i = 0; i < count; i++)
        values[i] = (float)sgp_random_normal(&random) * (i % 7 == 0 ? 1e6F : 1);
}

/* The payload comes so many bytes at a time, to the end of the memory of its values. */
static void decode(struct sgp_decoding *decoding, enum sgp_coding coding, float *into,
    const uint8_t *bytes, size_t size, uint64_t count, size_t piece)
{
    uint8_t *place = sgp_decoding_begin(decoding, coding, into, count, size);
    for (size_t at = 0; at < size; at += piece) {
        piece = size - at < piece ? size - at : piece;
        memcpy(place + at, bytes + at, piece);
        sgp_decoding_go_on(decoding, at + piece);
    }
}

/* Of every number of values, in pieces and at once. */
Test(codec, what_is_decoded_is_what_was_projected)
{
    for (int c = SGP_COMPRESSOR_NONE; c <= (int)SGP_COMPRESSOR_MOST; c++) {
        const struct sgp_codec codec = {.compressor = (enum sgp_compressor)c};
        for (uint64_t count = 4; count <= COUNT; count += count < 20 || count > 505 ? 1 : 11) {
            float values[COUNT], known[COUNT], into[COUNT];
            uint8_t bytes[4 * COUNT];
            struct sgp_decoding decoding;
            fill(values, count, count);
            size_t size = (size_t)sgp_codec_project(&codec, known, values, 0, count);
            cr_assert(eq(u64, sgp_codec_pack(&codec, bytes, values, 0, count), size));
            cr_assert(eq(u64, sgp_codec_bytes(&codec, values, 0, count), size));
            decode(&decoding, sgp_coding_of(codec.compressor), into, bytes, size, count,
                count % 3 == 0 ? size : 1 + count % 50);
            cr_assert(not(decoding.malformed));
            cr_assert(eq(u64, decoding.decoded, count));
            cr_assert(eq(u64, decoding.used, size));
            cr_assert(zero(int, memcmp(into, known, count * sizeof *into)), "%d, %llu", c,
                (unsigned long long)count);
            cr_assert(eq(u64, sgp_codec_project(&codec, known, known, 0, count), size));
            cr_assert(zero(int, memcmp(into, known, count * sizeof *into)));
        }
    }
}

Test(codec, pieces_of_whole_blocks_are_the_whole)
{
    float values[COUNT];
    uint8_t whole[BYTES], pieces[BYTES];
    fill(values, COUNT, 1);
    (void)sgp_codec_pack(&halves, whole, values, 0, COUNT);
    uint64_t first = sgp_codec_pack(&halves, pieces, values, 0, 512);
    (void)sgp_codec_pack(&halves, pieces + first, values + 512, 512, COUNT - 512);
    cr_assert(zero(int, memcmp(whole, pieces, sizeof whole)));
}

static bool accepts(enum sgp_coding coding, const uint8_t *bytes, size_t size, uint64_t count)
{
    float into[COUNT];
    struct sgp_decoding decoding;
    if (!sgp_coding_may_have(coding, count, size))
        return false;
    decode(&decoding, coding, into, bytes, size, count, size);
    cr_assert(decoding.malformed || decoding.decoded == count);
    return !decoding.malformed;
}

Test(codec, what_pack_does_not_write_is_refused)
{
    float values[COUNT];
    uint8_t bytes[BYTES];
    fill(values, COUNT - 1, 1);
    (void)sgp_codec_pack(&halves, bytes, values, 0, COUNT - 1);
    cr_assert(accepts(SGP_CODING_FP16, bytes, BYTES, COUNT - 1));
    cr_assert(accepts(SGP_CODING_BLOCKS, bytes, BYTES, COUNT - 1));
    cr_assert(not(accepts(SGP_CODING_FP16, bytes, BYTES - 4, COUNT - 1)));
    cr_assert(not(accepts(SGP_CODING_BLOCKS, bytes, BYTES - 4, COUNT - 1)));
    cr_assert(not(accepts(SGP_CODING_FP16, bytes, BYTES, COUNT + 1)));
    cr_assert(not(accepts(SGP_CODING_FP16, bytes, BYTES, COUNT - 2)));
    const size_t fixed[] = {1, 2, 3, 517, 518, 519, 1035, BYTES - 2, BYTES - 1};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        bytes[fixed[i]] ^= 1;
        cr_assert(not(accepts(SGP_CODING_FP16, bytes, BYTES, COUNT - 1)), "byte %zu", fixed[i]);
        bytes[fixed[i]] ^= 1;
    }
}

/* What is left for the blocks to come is no more and no less than they can take. */
Test(codec, bytes_left_over_are_refused)
{
    uint8_t bytes[8 + 516] = {0};
    cr_assert(accepts(SGP_CODING_BLOCKS, bytes, 8, 512));
    bytes[4] = 16;
    cr_assert(accepts(SGP_CODING_BLOCKS, bytes, 520, 512));
    cr_assert(not(accepts(SGP_CODING_BLOCKS, bytes, 516, 512)));
    cr_assert(not(accepts(SGP_CODING_BLOCKS, bytes, 524, 512)));
    cr_assert(not(accepts(SGP_CODING_FP16, bytes, 520, 512)));
}

/* A matrix of 300 x 2 values, its 10 biases, and a matrix of 100 x 3. */
Test(codec, no_scale_is_shared_between_tensors)
{
    const struct sgp_tensor_end ends[] = {{600, true}, {610, false}, {910, true}};
    const struct sgp_codec codec = {.compressor = SGP_COMPRESSOR_INT8, .tensors = {ends, 3}};
    float values[910], known[910], half[910];
    for (uint32_t i = 0; i < 910; i++)
        values[i] = sinf((float)i);
    (void)sgp_codec_project(&codec, known, values, 0, 910);
    (void)sgp_codec_project(&halves, half, values, 0, 910);
    uint8_t bytes[4 * 910];
    cr_assert(eq(u64, sgp_codec_pack(&codec, bytes, values, 0, 910), 260 * 2 + 516 + 4 + 144));
    const uint8_t kinds[] = {8, 8, 16, 8};
    for (size_t b = 0, at = 0; b < 4; at += b < 2 ? 260 : 516, b++)
        cr_assert(eq(u8, bytes[at], kinds[b]), "block %zu", b);
    cr_assert(zero(int, memcmp(known + 512, half + 512, 256 * sizeof *known)));
    (void)sgp_codec_project(&codec, known, values + 512, 512, 398);
    cr_assert(zero(int, memcmp(known, half + 512, 256 * sizeof *known)));
}
