/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of blocks: bytes that no source writes are refused, and how long a block is. */
#include "block_plain.h"

#include <criterion/criterion.h>
#include <assertions.h>

static int unpack(const uint8_t *bytes, size_t size, uint32_t count)
{
    float values[SGP_BLOCK_VALUES];
    return sgp_block_unpack(values, bytes, size, count);
}

/* A block of 5 values as its bytes, and what comes of it. */
static void check(uint32_t count, const uint8_t *bytes, size_t size, int result)
{
    uint8_t copy[64] = {0};
    memcpy(copy, bytes, size);
    cr_assert(eq(int, unpack(copy, size, count), result), "kind %u, byte 3 %u", bytes[0], bytes[3]);
}
#define ACCEPTED(count, ...)                                                                       \
    check((count), (const uint8_t[]){__VA_ARGS__}, sizeof(const uint8_t[]){__VA_ARGS__}, 0)
#define REFUSED(count, ...)                                                                        \
    check((count), (const uint8_t[]){__VA_ARGS__}, sizeof(const uint8_t[]){__VA_ARGS__},           \
        SGP_E_FRAME)

Test(block_read, scales)
{
    ACCEPTED(5, 4, 0, 0x80, 0x08, 0x21, 0x43, 0x05, 0); /* 2^-110 */
    REFUSED(5, 4, 0xff, 0x7f, 0x08, 0x21, 0x43, 0x05, 0);
    REFUSED(5, 4, 0, 0, 0, 0x21, 0x43, 0x05, 0);
    REFUSED(5, 4, 0, 0x80, 0x88, 0x21, 0x43, 0x05, 0); /* negative */
    ACCEPTED(5, 4, 0xff, 0x7f, 0x7f, 0x21, 0x43, 0x05, 0);
    REFUSED(5, 4, 0, 0x80, 0x7f, 0x21, 0x43, 0x05, 0); /* infinite */
    REFUSED(5, 4, 0, 0xc0, 0x7f, 0x21, 0x43, 0x05, 0); /* a NaN */
    ACCEPTED(2, 16, 0, 0, 0, 0, 0x3c, 0, 0xbc);
    REFUSED(2, 16, 0, 0, 0x3f, 0, 0x3c, 0, 0xbc);
    ACCEPTED(2, 17, 0, 0, 0, 0, 0x3c, 0, 0xbc);
    REFUSED(2, 17, 1, 0, 0, 0, 0x3c, 0, 0xbc);
    ACCEPTED(256, 0, 0, 0, 0);
    REFUSED(256, 0, 0, 1, 0);
}

Test(block_read, kinds)
{
    static const uint8_t ranges[][2] = {{0, 8}, {16, 17}, {66, 72}, {129, 136}, {193, 200}};
    for (uint32_t kind = 0; kind < 256; kind++) {
        uint8_t bytes[SGP_BLOCK_BYTES_MOST] = {(uint8_t)kind};
        if (kind != 0 && kind != 16 && kind != 17)
            bytes[2] = 0x80, bytes[3] = 0x3f; /* the scale 1 */
        bytes[4] = 1;
        bool known = false;
        for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; r++)
            known = known || (kind >= ranges[r][0] && kind <= ranges[r][1]);
        int size = sgp_block_bytes(bytes, sizeof bytes, SGP_BLOCK_VALUES);
        cr_assert(known ? size > 0 : size == SGP_E_FRAME, "kind %u", kind);
    }
}

Test(block_read, padding)
{
    ACCEPTED(5, 8, 0, 0x80, 0x3f, 1, 2, 3, 4, 5, 0, 0, 0);
    REFUSED(5, 8, 0, 0x80, 0x3f, 1, 2, 3, 4, 5, 0, 0, 1);
    REFUSED(5, 8, 0, 0x80, 0x3f, 1, 2, 3, 4, 5, 1, 0, 0);
    REFUSED(5, 4, 0, 0x80, 0x3f, 0x21, 0x43, 0x15, 0);
    REFUSED(5, 4, 0, 0x80, 0x3f, 0x21, 0x43, 0x05, 1);
    ACCEPTED(5, 1, 0, 0x80, 0x3f, 0x1f, 0, 0, 0);
    REFUSED(5, 1, 0, 0x80, 0x3f, 0x3f, 0, 0, 0);
    ACCEPTED(1, 16, 0, 0, 0, 0, 0x3c, 0, 0);
    REFUSED(1, 16, 0, 0, 0, 0, 0x3c, 1, 0);
    REFUSED(1, 17, 0, 0, 0, 0, 0x3c, 0, 0x80);
    ACCEPTED(5, 129, 0, 0x80, 0x3f, 2, 0, 4, 3);
    REFUSED(5, 129, 0, 0x80, 0x3f, 2, 0, 4, 4);
}

Test(block_read, sizes)
{
    ACCEPTED(5, 4, 0, 0x80, 0x3f, 0x21, 0x43, 0x05, 0);
    REFUSED(5, 4, 0, 0x80, 0x3f, 0x21, 0x43, 0x05);
    REFUSED(5, 4, 0, 0x80, 0x3f, 0x21, 0x43, 0x05, 0, 0, 0, 0, 0);
    REFUSED(5, 4, 0, 0x80);
    REFUSED(5, 0, 0, 0);
    REFUSED(5, 0, 0, 0, 0, 0, 0, 0, 0);
}

Test(block_read, places)
{
    ACCEPTED(5, 136, 0, 0x80, 0x3f, 1, 4, 9, 0);
    REFUSED(5, 136, 0, 0x80, 0x3f, 0, 0, 0, 0); /* none */
    REFUSED(5, 136, 0, 0x80, 0x3f, 1, 5, 9, 0); /* beyond the count */
    ACCEPTED(5, 130, 0, 0x80, 0x3f, 2, 1, 2, 5);
    REFUSED(5, 130, 0, 0x80, 0x3f, 2, 2, 2, 5);
    REFUSED(5, 130, 0, 0x80, 0x3f, 2, 3, 2, 5);
    REFUSED(2, 129, 0, 0x80, 0x3f, 3, 0, 1, 2, 0, 0, 0); /* more than there are, and too long */
}

Test(block_read, bitmaps)
{
    uint8_t bytes[40] = {193, 0, 0x80, 0x3f};
    cr_assert(eq(int, unpack(bytes, sizeof bytes, 40), SGP_E_FRAME)); /* none */
    bytes[4 + 39 / 8] = 1 << 39 % 8;
    cr_assert(zero(int, unpack(bytes, sizeof bytes, 40)));
    cr_assert(eq(int, unpack(bytes, sizeof bytes, 39), SGP_E_FRAME)); /* beyond the count */
    bytes[39] = 1;
    cr_assert(eq(int, unpack(bytes, sizeof bytes, 40), SGP_E_FRAME));
    bytes[39] = 0;
    bytes[36] = 2;
    cr_assert(eq(int, unpack(bytes, sizeof bytes, 40), SGP_E_FRAME));
    bytes[36] = 1;
    cr_assert(zero(int, unpack(bytes, sizeof bytes, 40)));
    bytes[4] = 1, bytes[39 / 8 + 4] = 0;
    cr_assert(eq(int, unpack(bytes, sizeof bytes, 16), SGP_E_FRAME)); /* binary16: 36 bytes */
    cr_assert(zero(int, unpack(bytes, sizeof bytes, 17)));
}

/* Two quarters of 64 and of 1 value. */
Test(block_read, quarters)
{
    uint8_t bytes[52] = {68, 0, 0x80, 0x3f, 0, 0, 0x80, 0x40};
    bytes[16] = 0x21, bytes[48] = 0x07;
    float values[65];
    cr_assert(zero(int, sgp_block_unpack(values, bytes, sizeof bytes, 65)));
    cr_assert(values[0] == 1 && values[1] == 2 && values[2] == 0 && values[64] == 28);
    const struct {
        uint32_t at;
        uint8_t value;
    } damaged[] = {{4, 1}, {8, 1}, {12, 4}, {7, 0xc0}, {7, 0x7f + 0x80}, {11, 0x3f}, {15, 0x3f},
        {48, 0x17}, {49, 1}, {51, 0x80}};
    for (size_t d = 0; d < sizeof damaged / sizeof damaged[0]; d++) {
        uint8_t kept = bytes[damaged[d].at];
        bytes[damaged[d].at] = damaged[d].value;
        cr_assert(eq(int, unpack(bytes, sizeof bytes, 65), SGP_E_FRAME), "%zu", d);
        bytes[damaged[d].at] = kept;
    }
    bytes[6] = bytes[7] = 0;
    cr_assert(eq(int, unpack(bytes, sizeof bytes, 65), SGP_E_FRAME)); /* 7 times no scale */
    bytes[48] = 0;
    cr_assert(zero(int, unpack(bytes, sizeof bytes, 65)));
    cr_assert(eq(int, unpack(bytes, 20, 1), SGP_E_FRAME)); /* longer than binary16 */
}

/* A source never writes the least integer of two's complement; a target reads it. */
Test(block_read, the_least_integer)
{
    const uint8_t bytes[] = {8, 0, 0xc0, 0x3f, 0x80, 0x7f, 0, 0};
    float values[2];
    cr_assert(zero(int, sgp_block_unpack(values, bytes, sizeof bytes, 2)));
    cr_assert(values[0] == -192 && values[1] == 190.5F);
}

/* The size of a packed block is known once its head has arrived, and not before. */
static void check_head(const uint8_t *bytes, size_t size)
{
    size_t head = bytes[0] > 192 ? 36 : bytes[0] > 128 ? 5 : 4;
    for (size_t have = 0; have <= SGP_BLOCK_BYTES_MOST; have++)
        cr_assert(
            eq(int, sgp_block_bytes(bytes, have, SGP_BLOCK_VALUES), have < head ? 0 : (int)size));
    cr_assert(zero(int, unpack(bytes, size, SGP_BLOCK_VALUES)));
}

/* Of every kind. SPARSE has a list of few places, or a bitmap of many. */
Test(block_read, the_size_is_known_from_the_head)
{
    float values[SGP_BLOCK_VALUES];
    uint8_t bytes[SGP_BLOCK_BYTES_MOST];
    uint64_t few[SGP_BLOCK_PLACE_WORDS] = {9}, many[SGP_BLOCK_PLACE_WORDS] = {~0u};
    plain_fill(values, SGP_BLOCK_VALUES, 1, 1);
    for (int c = SGP_COMPRESSOR_FP16; c <= (int)SGP_COMPRESSOR_MOST; c++)
        if (c != (int)SGP_COMPRESSOR_SPARSE)
            check_head(bytes,
                sgp_block_pack(bytes, (enum sgp_compressor)c, false, values, SGP_BLOCK_VALUES));
    check_head(bytes, sgp_block_pack_chosen(bytes, 4, few, values, SGP_BLOCK_VALUES));
    check_head(bytes, sgp_block_pack_chosen(bytes, 4, many, values, SGP_BLOCK_VALUES));
}
