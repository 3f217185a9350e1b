/* SPDX-License-Identifier: Apache-2.0 */
/* Eight integers of b bits, 1 to 8, next to each other in a word of b bytes. */
#ifndef SGP_TENSOR_BITS_H
#define SGP_TENSOR_BITS_H

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "words are read and written as they lie in memory, which is little-endian in a block"
#endif

static inline uint64_t bits_load(const void *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static inline void bits_store(void *bytes, uint64_t word)
{
    memcpy(bytes, &word, sizeof word);
}

/* Join the low `bits` of each of 8 bytes: first in pairs, then in pairs of pairs. */
static inline uint64_t bits_join(uint64_t word, uint32_t bits)
{
    const uint64_t two = 0x00ff00ff00ff00ffu, four = 0x0000ffff0000ffffu;
    word &= 0x0101010101010101u * ((1u << bits) - 1);
    word = (word & two) | (word >> 8 & two) << bits;
    word = (word & four) | (word >> 16 & four) << 2 * bits;
    return (word & UINT32_MAX) | (word >> 32) << 4 * bits;
}

/* The reverse, from the lowest 8 * bits of a word. */
static inline uint64_t bits_part(uint64_t word, uint32_t bits)
{
    const uint64_t one = 0x0001000100010001u * ((1u << bits) - 1);
    const uint64_t two = 0x0000000100000001u * ((1u << 2 * bits) - 1);
    const uint64_t four = ((uint64_t)1 << 4 * bits) - 1;
    word = (word & four) | (word >> 4 * bits & four) << 32;
    word = (word & two) | (word >> 2 * bits & two) << 16;
    return (word & one) | (word >> bits & one) << 8;
}

/* Like load and store, for fewer bytes. */
static inline uint64_t bits_load_some(const uint8_t *bytes, uint32_t count)
{
    uint64_t word = 0;
    memcpy(&word, bytes, count);
    return word;
}

static inline void bits_store_some(uint8_t *bytes, uint64_t word, uint32_t count)
{
    memcpy(bytes, &word, count);
}

#endif
