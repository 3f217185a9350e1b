/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks (sgp/block.h) written and read bit by bit, without the library: the slow reference for the
 * tests of blocks. */
#ifndef BLOCK_PLAIN_H
#define BLOCK_PLAIN_H

#include "sgp/block.h"
#include "sgp/random.h"

#include <math.h>
#include <string.h>

static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The least float whose low byte is 0 and that is not below. */
static inline float plain_up(float scale)
{
    uint32_t cut = bits_of(scale) / 256 * 256;
    return float_of(cut) < scale ? float_of(cut + 256) : float_of(cut);
}

/* The nearest whole number, to even; 0 of what is none, as of 0 / 0 in a block of zeros. */
static inline int plain_nearest(float value)
{
    if (!isfinite(value))
        return 0;
    double floor_of = floor((double)value), over = (double)value - floor_of;
    bool up = over > 0.5 || (over == 0.5 && fmod(floor_of, 2) != 0);
    return (int)floor_of + up;
}

static inline float plain_mean(const float *values, uint32_t count)
{
    double lanes[8] = {0};
    for (uint32_t i = 0; i < count; i++)
        lanes[i % 8] += fabs((double)values[i]);
    double sum = ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
                 ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
    return plain_up((float)(sum / count));
}

static inline float plain_scale(const float *values, uint32_t count, uint32_t bits)
{
    float most = 0;
    for (uint32_t i = 0; i < count; i++)
        most = fabsf(values[i]) > most ? fabsf(values[i]) : most;
    return bits == 1 ? plain_mean(values, count) : plain_up(most / (float)((1 << (bits - 1)) - 1));
}

static inline void plain_word(uint8_t *bytes, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(word >> 8 * i);
}

static inline void plain_put(uint8_t *bytes, size_t first, uint32_t bits, int integer)
{
    for (uint32_t bit = 0; bit < bits; bit++)
        if (((unsigned)integer >> bit & 1) != 0)
            bytes[(first + bit) / 8] |= (uint8_t)(1u << (first + bit) % 8);
}

static inline int plain_get(const uint8_t *bytes, size_t first, uint32_t bits)
{
    int integer = 0;
    for (uint32_t bit = 0; bit < bits; bit++)
        integer |= (bytes[(first + bit) / 8] >> (first + bit) % 8 & 1) << bit;
    return bits > 1 && integer >= 1 << (bits - 1) ? integer - (1 << bits) : integer;
}

/* A dense block of one scale, or of four (kind 64 + bits). The values are finite, and no scale is
 * below 2^-110. */
static inline size_t plain_pack(
    uint8_t *bytes, uint32_t bits, uint32_t parts, const float *values, uint32_t count)
{
    size_t size = 4 * parts + (count * bits + 31) / 32 * 4;
    memset(bytes, 0, size);
    for (uint32_t p = 0; p < parts; p++) {
        uint32_t first = 64 * p, end = parts == 1 ? count : first + 64;
        end = end < count ? end : count;
        float scale = end > first ? plain_scale(values + first, end - first, bits) : 0;
        plain_word(bytes + 4 * p, bits_of(scale) | (p > 0 ? 0 : parts == 1 ? bits : 64 + bits));
        float inverse = scale > 0 ? 1 / scale : 0;
        for (uint32_t i = first; i < end; i++)
            plain_put(bytes + 4 * parts, i * bits, bits,
                bits == 1 ? values[i] < 0 : plain_nearest(values[i] * inverse));
    }
    return size;
}

static inline void plain_unpack(
    float *values, uint32_t bits, uint32_t parts, const uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *word = bytes + (parts == 1 ? 0 : i / 64 * 4);
        uint32_t scale = (uint32_t)word[3] << 24 | (uint32_t)word[2] << 16 | (uint32_t)word[1] << 8;
        int integer = plain_get(bytes + 4 * parts, i * bits, bits);
        values[i] = (float)(bits > 1 ? integer : 1 - 2 * integer) * float_of(scale);
    }
}

/* The forms of integers, each with its compressor. */
static const struct {
    enum sgp_compressor compressor;
    uint32_t bits, parts;
} plain_forms[] = {{SGP_COMPRESSOR_INT8, 8, 1}, {SGP_COMPRESSOR_INT6, 6, 1},
    {SGP_COMPRESSOR_INT4, 4, 1}, {SGP_COMPRESSOR_INT4_64, 4, 4}, {SGP_COMPRESSOR_INT2, 2, 1},
    {SGP_COMPRESSOR_SIGN, 1, 1}};
#define PLAIN_FORMS (sizeof plain_forms / sizeof plain_forms[0])

/* Normal values times `size`, some of them 0. */
static inline void plain_fill(float *values, uint32_t count, uint64_t seed, float size)
{
    struct sgp_random random;
    sgp_random_init(&random, seed, 0);
    for (uint32_t i = 0; i < count; i++)
        values[i] = i % 11 == 5 ? 0 : (float)sgp_random_normal(&random) * size;
}

#endif
