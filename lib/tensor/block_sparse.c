/* SPDX-License-Identifier: Apache-2.0 */
/* The source of sparse blocks, in which only values that the caller has chosen are sent; see
 * sgp/block.h. Owns nothing. Any thread. */
#include "block.h"

#include <math.h>
#include <string.h>

struct sparse {
    struct block_form form;       /* without integers: the form of all values */
    uint32_t chosen;              /* number of chosen values, none of which is 0 */
    float kept[SGP_BLOCK_VALUES]; /* the chosen values in their places, and 0 elsewhere */
};

static uint32_t keep(float *kept, const uint64_t *chosen, const float *values, uint32_t count)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool is_kept = (chosen[i / 64] >> i % 64 & 1) != 0 && values[i] != 0;
        kept[i] = is_kept ? values[i] : 0;
        number += is_kept;
    }
    return number;
}

/* The shortest layout. A dense block of 1 bit cannot express 0. So if a value is not chosen, the
 * block has 2 bits, and k is -1, 0 or 1. */
static struct block_form shortest(struct block_form form, uint32_t chosen, uint32_t count)
{
    struct block_form best = form;
    best.bits = form.bits == 1 && chosen < count ? 2 : form.bits;
    for (enum block_layout layout = BLOCK_PLACES; layout <= BLOCK_BITMAP; layout++) {
        form.layout = layout;
        bool possible = layout == BLOCK_BITMAP || chosen < SGP_BLOCK_VALUES;
        if (possible && block_bytes(&form, count, chosen) < block_bytes(&best, count, chosen))
            best = form;
    }
    return best;
}

static void choose(struct sparse *sparse, uint32_t bits, const uint64_t *chosen,
    const float *values, uint32_t count)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    sgp_assert(bits > 0 && bits <= 8 && count > 0 && count <= SGP_BLOCK_VALUES);
    sparse->chosen = keep(sparse->kept, chosen, values, count);
    float all = kernels->largest(values, count), largest = kernels->largest(sparse->kept, count);
    float scale = largest / block_levels(bits);
    if (bits == 1 && sparse->chosen > 0)
        scale = (float)(sgp_block_sum_magnitudes(sparse->kept, count) / sparse->chosen);
    struct block_form form = {BLOCK_DENSE, bits, {sgp_block_scale_up(scale)}};
    form = sgp_block_fit(form, isfinite(all) ? &largest : &all, 1);
    sparse->form = form.layout == BLOCK_DENSE ? shortest(form, sparse->chosen, count) : form;
}

/* The integer of each value: at least 1 in magnitude for a chosen value, and 1 if the scale is a
 * mean. */
static void quantise(int8_t integers[static SGP_BLOCK_VALUES], const struct sparse *sparse,
    uint32_t bits, uint32_t count)
{
    memset(integers, 0, SGP_BLOCK_VALUES);
    if (bits > 1)
        sgp_kernels_best()->quantise(integers, sparse->kept, 1 / sparse->form.scales[0], count);
    for (uint32_t i = 0; i < count; i++)
        if (integers[i] == 0 && sparse->kept[i] != 0)
            integers[i] = sparse->kept[i] < 0 ? -1 : 1;
}

size_t sgp_block_project_chosen(float *projected, uint32_t bits,
    const uint64_t chosen[static SGP_BLOCK_PLACE_WORDS], const float *values, uint32_t count)
{
    struct sparse sparse;
    int8_t integers[SGP_BLOCK_VALUES];
    choose(&sparse, bits, chosen, values, count);
    if (sparse.form.bits == 0)
        return sgp_block_project_as(projected, &sparse.form, values, count);
    quantise(integers, &sparse, bits, count);
    sgp_kernels_best()->dequantise(projected, integers, sparse.form.scales[0], count);
    return block_bytes(&sparse.form, count, sparse.chosen);
}

/* Write the places or the bitmap, and move the integers of the chosen values to the front. Returns
 * the position after the bytes. */
static uint8_t *write_places(
    uint8_t *bytes, const struct sparse *sparse, int8_t integers[static SGP_BLOCK_VALUES])
{
    bool bitmap = sparse->form.layout == BLOCK_BITMAP;
    uint8_t *next = bitmap ? bytes : bytes + 1;
    if (bitmap)
        memset(bytes, 0, BLOCK_BITMAP_BYTES);
    else
        *bytes = (uint8_t)sparse->chosen;
    uint32_t number = 0;
    for (uint32_t i = 0; number < sparse->chosen; i++) {
        if (integers[i] == 0)
            continue;
        integers[number++] = integers[i];
        if (bitmap)
            bytes[i / 8] |= (uint8_t)(1u << i % 8);
        else
            *next++ = (uint8_t)i;
    }
    return bitmap ? bytes + BLOCK_BITMAP_BYTES : next;
}

size_t sgp_block_pack_chosen(uint8_t *bytes, uint32_t bits,
    const uint64_t chosen[static SGP_BLOCK_PLACE_WORDS], const float *values, uint32_t count)
{
    struct sparse sparse;
    int8_t integers[SGP_BLOCK_VALUES];
    choose(&sparse, bits, chosen, values, count);
    if (sparse.form.bits == 0)
        return sgp_block_pack_as(bytes, &sparse.form, values, count);
    quantise(integers, &sparse, bits, count);
    size_t size = block_bytes(&sparse.form, count, sparse.chosen);
    memset(bytes + size - BLOCK_WORD_BYTES, 0, BLOCK_WORD_BYTES);
    uint8_t *rest = sgp_block_write_words(bytes, &sparse.form);
    uint32_t number = count;
    if (sparse.form.layout != BLOCK_DENSE) {
        rest = write_places(rest, &sparse, integers);
        number = sparse.chosen;
    }
    for (uint32_t i = 0; i < number && sparse.form.bits == 1; i++)
        integers[i] = integers[i] < 0;
    sgp_kernels_best()->pack_bits(rest, integers, sparse.form.bits, number);
    return size;
}
