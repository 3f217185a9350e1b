/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse blocks: the chosen values and no others, in the shortest layout. */
#include "block_plain.h"

#include <criterion/criterion.h>
#include <assertions.h>

typedef uint64_t places[SGP_BLOCK_PLACE_WORDS];

static bool is_chosen(const places chosen, uint32_t i)
{
    return (chosen[i / 64] >> i % 64 & 1) != 0;
}

/* About one value of so many. */
static void choose(places chosen, uint32_t one_of, uint64_t seed)
{
    struct sgp_random random;
    sgp_random_init(&random, seed, 1);
    memset(chosen, 0, sizeof(places));
    for (uint32_t i = 0; i < SGP_BLOCK_VALUES; i++)
        if (sgp_random_below(&random, one_of) == 0)
            chosen[i / 64] |= (uint64_t)1 << i % 64;
}

/* The rule, value by value. */
static void plain_project(
    float *projected, uint32_t bits, const places chosen, const float *values, uint32_t count)
{
    float kept[SGP_BLOCK_VALUES];
    uint32_t number = 0;
    for (uint32_t i = 0; i < count; i++) {
        kept[i] = is_chosen(chosen, i) ? values[i] : 0;
        number += kept[i] != 0;
    }
    float scale = plain_scale(kept, count, bits);
    if (bits == 1 && number > 0) {
        double lanes[8] = {0};
        for (uint32_t i = 0; i < count; i++)
            lanes[i % 8] += fabs((double)kept[i]);
        double sum = ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
                     ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
        scale = plain_up((float)(sum / number));
    }
    for (uint32_t i = 0; i < count; i++) {
        int k = bits > 1 ? plain_nearest(kept[i] * (1 / scale)) : 0;
        k = k == 0 ? (kept[i] > 0) - (kept[i] < 0) : k;
        projected[i] = number == 0 ? 0 : (float)k * scale;
    }
}

static void check_ways(uint32_t bits, const places chosen, const float *values, uint32_t count)
{
    float projected[SGP_BLOCK_VALUES], again[SGP_BLOCK_VALUES];
    uint8_t bytes[SGP_BLOCK_BYTES_MOST], twice[SGP_BLOCK_BYTES_MOST];
    size_t size = sgp_block_project_chosen(projected, bits, chosen, values, count);
    memset(bytes, 0xff, sizeof bytes);
    cr_assert(eq(sz, sgp_block_pack_chosen(bytes, bits, chosen, values, count), size));
    cr_assert(size == SGP_BLOCK_BYTES_MOST || bytes[size] == 0xff);
    cr_assert(
        zero(int, sgp_block_unpack(again, bytes, size, count)), "%u bits, %u values", bits, count);
    cr_assert(zero(int, memcmp(again, projected, count * sizeof *again)),
        "%u bits, %u values, kind %u", bits, count, bytes[0]);
    cr_assert(eq(sz, sgp_block_project_chosen(again, bits, chosen, again, count), size));
    cr_assert(zero(int, memcmp(again, projected, count * sizeof *again)));
    cr_assert(eq(sz, sgp_block_pack_chosen(twice, bits, chosen, projected, count), size));
    cr_assert(zero(int, memcmp(twice, bytes, size)));
}

Test(block_sparse, what_is_unpacked_is_what_was_projected)
{
    float values[SGP_BLOCK_VALUES], known[SGP_BLOCK_VALUES], projected[SGP_BLOCK_VALUES];
    places chosen;
    for (uint32_t count = 1; count <= SGP_BLOCK_VALUES; count += count < 40 ? 1 : 9)
        for (uint32_t bits = 1; bits <= 8; bits++)
            for (uint32_t one_of = 1; one_of <= 300; one_of = one_of * 3 / 2 + 1) {
                choose(chosen, one_of, count);
                plain_fill(values, count, count, 3);
                plain_project(known, bits, chosen, values, count);
                sgp_block_project_chosen(projected, bits, chosen, values, count);
                for (uint32_t i = 0; i < count; i++)
                    cr_assert(projected[i] == known[i] && bits_of(projected[i]) != 0x80000000u,
                        "%u bits, value %u of %u: %a and not %a", bits, i, count, projected[i],
                        known[i]);
                check_ways(bits, chosen, values, count);
            }
}

static void check_bytes(uint32_t bits, const places chosen, const float *values, uint32_t count,
    const uint8_t *known, size_t size)
{
    uint8_t bytes[SGP_BLOCK_BYTES_MOST];
    cr_assert(eq(sz, sgp_block_pack_chosen(bytes, bits, chosen, values, count), size));
    for (size_t i = 0; i < size; i++)
        cr_assert(eq(u8, bytes[i], known[i]), "byte %zu", i);
}

/* Scale 0.75 is 0x3f400000. */
Test(block_sparse, bytes)
{
    float values[SGP_BLOCK_VALUES] = {[0] = 9, [3] = -0.5F, [200] = 1, [255] = 0.75F};
    const places chosen = {8, 0, 0, (uint64_t)1 << 63 | (uint64_t)1 << 8};
    const uint8_t sign[] = {129, 0, 0x40, 0x3f, 3, 3, 200, 255, 1, 0, 0, 0};
    const uint8_t four[] = {132, 0x4a, 0x12, 0x3e, 3, 3, 200, 255, 0x7d, 0x05, 0, 0};
    check_bytes(1, chosen, values, SGP_BLOCK_VALUES, sign, sizeof sign);
    check_bytes(4, chosen, values, SGP_BLOCK_VALUES, four, sizeof four);
    uint8_t bitmap[36 + 16] = {194, 0, 0x80, 0x3f};
    places many = {0};
    for (uint32_t i = 0; i < 64; i++) {
        values[4 * i] = i % 2 == 0 ? 1 : -1;
        many[i / 16] |= (uint64_t)1 << i % 16 * 4;
    }
    memset(bitmap + 4, 0x11, 32);
    memset(bitmap + 36, 0xdd, 16); /* 1, -1, 1, -1 */
    check_bytes(2, many, values, SGP_BLOCK_VALUES, bitmap, sizeof bitmap);
}

/* The first so many of `count` values. */
static uint8_t kind_of(uint32_t bits, uint32_t number, uint32_t count, size_t *ret_size)
{
    float values[SGP_BLOCK_VALUES];
    uint8_t bytes[SGP_BLOCK_BYTES_MOST];
    places chosen = {0};
    for (uint32_t i = 0; i < SGP_BLOCK_VALUES; i++) {
        values[i] = 1;
        chosen[i / 64] |= (uint64_t)(i < number) << i % 64;
    }
    *ret_size = sgp_block_pack_chosen(bytes, bits, chosen, values, count);
    return bytes[0];
}

Test(block_sparse, the_shortest_layout)
{
    const struct {
        uint32_t bits, number, count;
        uint8_t kind;
        size_t size;
    } known[] = {{4, 0, 256, 0, 4}, {4, 3, 256, 132, 12}, {4, 28, 256, 132, 48},
        {4, 40, 256, 196, 56}, {4, 184, 256, 196, 128}, {4, 185, 256, 4, 132},
        {4, 192, 256, 4, 132}, {1, 3, 256, 129, 12}, {1, 100, 256, 193, 52}, {1, 255, 256, 2, 68},
        {1, 256, 256, 1, 36}, {1, 40, 64, 2, 20}, {8, 1, 1, 8, 8}, {2, 1, 3, 2, 8}};
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        size_t size;
        uint8_t kind = kind_of(known[k].bits, known[k].number, known[k].count, &size);
        cr_assert(eq(u8, kind, known[k].kind), "%zu", k);
        cr_assert(eq(sz, size, known[k].size), "%zu", k);
    }
}

Test(block_sparse, what_integers_cannot_say_travels_as_16_bits)
{
    const float special[] = {NAN, INFINITY, -INFINITY, 0x1p127F, -0x1.fffffep127F};
    float values[SGP_BLOCK_VALUES], projected[SGP_BLOCK_VALUES];
    const places chosen = {2};
    for (size_t s = 0; s < sizeof special / sizeof special[0]; s++)
        for (uint32_t at = 1; at < 3; at++) {
            plain_fill(values, SGP_BLOCK_VALUES, s, 1);
            values[at] = special[s];
            size_t size = sgp_block_project_chosen(projected, 4, chosen, values, SGP_BLOCK_VALUES);
            bool sent = !isfinite(special[s]) || at == 1;
            cr_assert(eq(sz, size, sent ? 516 : 8));
            check_ways(4, chosen, values, SGP_BLOCK_VALUES);
        }
}

/* A chosen value that is small beside the largest does not become 0. */
Test(block_sparse, chosen_values_are_never_zero)
{
    const float values[4] = {7, -1e-3F, 1e-3F, -0.0F};
    const places chosen = {15};
    float projected[4];
    sgp_block_project_chosen(projected, 4, chosen, values, 4);
    cr_assert(projected[0] == 7 && projected[1] == -1 && projected[2] == 1);
    cr_assert(eq(u32, bits_of(projected[3]), 0));
    sgp_block_project_chosen(projected, 1, chosen, (const float[]){1, -3, 2, 0}, 4);
    cr_assert(projected[0] == 2 && projected[1] == -2 && projected[2] == 2 && projected[3] == 0);
}
