/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of blocks, which trusts nothing in their bytes; see sgp/block.h. Owns nothing. Any
 * thread. */
#include "block.h"

#include <math.h>
#include <string.h>

static uint32_t read_word(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

/* The layout of a kind with integers, and their bits. *ret_bits remains 0 for an unknown kind. */
static enum block_layout layout_of(uint32_t kind, uint32_t *ret_bits)
{
    static const struct {
        uint32_t first, least;
        enum block_layout layout;
    } rows[] = {{0, 1, BLOCK_DENSE}, {BLOCK_KIND_QUARTERS, 2, BLOCK_IN_QUARTERS},
        {BLOCK_KIND_PLACES, 1, BLOCK_PLACES}, {BLOCK_KIND_BITMAP, 1, BLOCK_BITMAP}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (kind >= rows[i].first + rows[i].least && kind <= rows[i].first + 8) {
            *ret_bits = kind - rows[i].first;
            return rows[i].layout;
        }
    return BLOCK_ZEROS;
}

static bool scale_of(float *ret_scale, uint32_t word, bool may_be_zero)
{
    word &= ~0xffu;
    memcpy(ret_scale, &word, sizeof word);
    return (may_be_zero && word == 0) || (*ret_scale >= BLOCK_SCALE_LEAST && isfinite(*ret_scale));
}

/* The form that the first word states. */
static bool form_of(struct block_form *ret_form, uint32_t word)
{
    uint32_t kind = word & 0xffu;
    struct block_form form = {.layout = BLOCK_ZEROS};
    if (kind == BLOCK_KIND_HALF || kind == BLOCK_KIND_BFLOAT)
        form.layout = kind == BLOCK_KIND_HALF ? BLOCK_HALF : BLOCK_BFLOAT;
    else if (kind != 0)
        form.layout = layout_of(kind, &form.bits);
    *ret_form = form;
    if (form.bits == 0) /* kinds without a scale, and unknown ones */
        return word == kind && (kind == 0) == (form.layout == BLOCK_ZEROS);
    return scale_of(&ret_form->scales[0], word, form.layout == BLOCK_IN_QUARTERS);
}

/* Whether all bits from `first` on are 0. */
static bool is_clear(const uint8_t *bytes, size_t first, size_t size)
{
    if (first % 8 != 0 && bytes[first / 8] >> first % 8 != 0)
        return false;
    for (size_t i = (first + 7) / 8; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* The number of values in a sparse block. 0: the block is malformed. */
static uint32_t chosen_of(const struct block_form *form, const uint8_t *bytes, uint32_t count)
{
    uint32_t chosen = 0;
    if (form->layout == BLOCK_PLACES)
        return bytes[0] <= count ? bytes[0] : 0;
    for (uint32_t i = 0; i < BLOCK_BITMAP_BYTES; i++)
        chosen += (uint32_t)__builtin_popcount(bytes[i]);
    return is_clear(bytes, count, BLOCK_BITMAP_BYTES) ? chosen : 0;
}

int sgp_block_bytes(const uint8_t *bytes, size_t have, uint32_t count)
{
    struct block_form form;
    sgp_assert(count > 0 && count <= SGP_BLOCK_VALUES);
    if (have < BLOCK_WORD_BYTES)
        return 0;
    if (!form_of(&form, read_word(bytes)))
        return SGP_E_FRAME;
    size_t most = block_bytes(&(struct block_form){.layout = BLOCK_HALF}, count, 0);
    uint32_t chosen = 0;
    if (form.layout == BLOCK_PLACES || form.layout == BLOCK_BITMAP) {
        size_t head = form.layout == BLOCK_PLACES ? 1 : BLOCK_BITMAP_BYTES;
        if (block_bytes(&form, count, 1) > most)
            return SGP_E_FRAME;
        if (have < BLOCK_WORD_BYTES + head)
            return 0;
        chosen = chosen_of(&form, bytes + BLOCK_WORD_BYTES, count);
        if (chosen == 0)
            return SGP_E_FRAME;
    }
    size_t size = block_bytes(&form, count, chosen);
    return size <= most ? (int)size : SGP_E_FRAME;
}

/* ---- values ---- */

static int read_halves(
    float *values, const struct block_form *form, const uint8_t *bytes, size_t size, uint32_t count)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    if (!is_clear(bytes, 16 * (size_t)count, size))
        return SGP_E_FRAME;
    if (form->layout == BLOCK_HALF)
        kernels->from_half(values, bytes, count);
    else
        kernels->from_bfloat(values, bytes, count);
    return 0;
}

static void decode(
    float *values, const int8_t *integers, uint32_t count, uint32_t bits, float scale)
{
    if (bits > 1) /* otherwise a sign */
        sgp_kernels_best()->dequantise(values, integers, scale, count);
    else
        for (uint32_t i = 0; i < count; i++)
            values[i] = integers[i] != 0 ? -scale : scale;
}

/* Read the stream of `count` integers, which must be the whole rest of the block. */
static bool read_integers(int8_t integers[static SGP_BLOCK_VALUES], const uint8_t *bytes,
    size_t size, uint32_t count, uint32_t bits)
{
    sgp_kernels_best()->unpack_bits(integers, bytes, bits, count);
    return is_clear(bytes, (size_t)count * bits, size);
}

/* A quarter whose scale is 0 must hold zeros. A quarter without values must have the scale 0. */
static int read_quarters(
    float *values, const struct block_form *form, const uint8_t *bytes, size_t size, uint32_t count)
{
    const size_t words = BLOCK_WORDS_MORE;
    int8_t integers[SGP_BLOCK_VALUES];
    if (!read_integers(integers, bytes + words, size - words, count, form->bits))
        return SGP_E_FRAME;
    for (uint32_t p = 0; p < BLOCK_QUARTERS; p++) {
        uint32_t first = p * BLOCK_QUARTER, part = block_part(p, BLOCK_QUARTERS, count);
        float scale = form->scales[0];
        uint32_t word = p > 0 ? read_word(bytes + (p - 1) * BLOCK_WORD_BYTES) : 0;
        if (p > 0 && ((word & 0xffu) != 0 || !scale_of(&scale, word, true)))
            return SGP_E_FRAME;
        if (scale == 0 ? !is_clear((const uint8_t *)integers + first, 0, part) : part == 0)
            return SGP_E_FRAME;
        decode(values + first, integers + first, part, form->bits, scale);
    }
    return 0;
}

static bool read_places(uint8_t places[static SGP_BLOCK_VALUES], const struct block_form *form,
    const uint8_t *bytes, uint32_t chosen, uint32_t count)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < count && form->layout == BLOCK_BITMAP; i++)
        if ((bytes[i / 8] >> i % 8 & 1) != 0)
            places[number++] = (uint8_t)i;
    for (; number < chosen; number++) {
        places[number] = bytes[1 + number];
        if (places[number] >= count || (number > 0 && places[number] <= places[number - 1]))
            return false;
    }
    return true;
}

static int read_sparse(
    float *values, const struct block_form *form, const uint8_t *bytes, size_t size, uint32_t count)
{
    uint32_t chosen = chosen_of(form, bytes, count);
    size_t head = form->layout == BLOCK_BITMAP ? BLOCK_BITMAP_BYTES : 1 + (size_t)chosen;
    uint8_t places[SGP_BLOCK_VALUES];
    int8_t integers[SGP_BLOCK_VALUES];
    float decoded[SGP_BLOCK_VALUES];
    if (!read_places(places, form, bytes, chosen, count) ||
        !read_integers(integers, bytes + head, size - head, chosen, form->bits))
        return SGP_E_FRAME;
    decode(decoded, integers, chosen, form->bits, form->scales[0]);
    memset(values, 0, count * sizeof *values);
    for (uint32_t i = 0; i < chosen; i++)
        values[places[i]] = decoded[i];
    return 0;
}

int sgp_block_unpack(float *values, const uint8_t *bytes, size_t size, uint32_t count)
{
    struct block_form form;
    int8_t integers[SGP_BLOCK_VALUES];
    int known = sgp_block_bytes(bytes, size, count);
    if (known <= 0 || (size_t)known != size || !form_of(&form, read_word(bytes)))
        return SGP_E_FRAME;
    const uint8_t *rest = bytes + BLOCK_WORD_BYTES;
    size -= BLOCK_WORD_BYTES;
    switch (form.layout) {
    case BLOCK_ZEROS:
        memset(values, 0, count * sizeof *values);
        return 0;
    case BLOCK_HALF:
    case BLOCK_BFLOAT:
        return read_halves(values, &form, rest, size, count);
    case BLOCK_IN_QUARTERS:
        return read_quarters(values, &form, rest, size, count);
    case BLOCK_PLACES:
    case BLOCK_BITMAP:
        return read_sparse(values, &form, rest, size, count);
    case BLOCK_DENSE:
        break;
    }
    if (form.bits == 8) {
        sgp_kernels_best()->dequantise(values, (const int8_t *)rest, form.scales[0], count);
        return is_clear(rest, 8 * (size_t)count, size) ? 0 : SGP_E_FRAME;
    }
    if (!read_integers(integers, rest, size, count, form.bits))
        return SGP_E_FRAME;
    decode(values, integers, count, form.bits, form.scales[0]);
    return 0;
}
