/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of a block (sgp/block.h), shared by its sources and its reader. */
#ifndef SGP_TENSOR_BLOCK_H
#define SGP_TENSOR_BLOCK_H

#include "sgp/block.h"
#include "sgp/codec.h"
#include "sgp/kernels.h"

#define BLOCK_WORD_BYTES 4u
/* A block in quarters has a scale for each 64 values. The first scale is in the first word. */
#define BLOCK_QUARTERS 4u
#define BLOCK_QUARTER (SGP_BLOCK_VALUES / BLOCK_QUARTERS) /* values in a quarter */
#define BLOCK_WORDS_MORE ((BLOCK_QUARTERS - 1) * BLOCK_WORD_BYTES)
#define BLOCK_SPARSE_BITS 1u /* of an integer in a block of SGP_COMPRESSOR_SPARSE */
#define BLOCK_BITMAP_BYTES (SGP_BLOCK_VALUES / 8u)
#define BLOCK_SCALE_LEAST 0x1p-110f
#define BLOCK_TOO_LARGE 0x1p127f

enum block_layout {
    BLOCK_ZEROS,
    BLOCK_HALF,
    BLOCK_BFLOAT,
    BLOCK_DENSE,
    BLOCK_IN_QUARTERS,
    BLOCK_PLACES,
    BLOCK_BITMAP,
};

struct block_form {
    enum block_layout layout;
    uint32_t bits;                /* bits of an integer; 0: no integers */
    float scales[BLOCK_QUARTERS]; /* 0: no scale */
};

/* Kinds. A kind with integers is one of these plus the bits. A dense kind with integers is the
 * number of bits alone. */
#define BLOCK_KIND_HALF 16u
#define BLOCK_KIND_BFLOAT 17u
#define BLOCK_KIND_QUARTERS 64u
#define BLOCK_KIND_PLACES 128u
#define BLOCK_KIND_BITMAP 192u

static inline size_t block_bits_bytes(size_t count, uint32_t bits)
{
    return (count * bits + 7) / 8;
}

/* The bytes of a block of `count` values. In a sparse block, `chosen` of them have an integer. */
static inline size_t block_bytes(const struct block_form *form, size_t count, size_t chosen)
{
    size_t bytes = BLOCK_WORD_BYTES;
    switch (form->layout) {
    case BLOCK_ZEROS:
        break;
    case BLOCK_HALF:
    case BLOCK_BFLOAT:
        bytes += 2 * count;
        break;
    case BLOCK_DENSE:
        bytes += block_bits_bytes(count, form->bits);
        break;
    case BLOCK_IN_QUARTERS:
        bytes += BLOCK_WORDS_MORE + block_bits_bytes(count, form->bits);
        break;
    case BLOCK_PLACES:
        bytes += 1 + chosen + block_bits_bytes(chosen, form->bits);
        break;
    case BLOCK_BITMAP:
        bytes += BLOCK_BITMAP_BYTES + block_bits_bytes(chosen, form->bits);
        break;
    }
    return (bytes + 3) / 4 * 4;
}

/* The number of values in one of `parts` parts, 1 or BLOCK_QUARTERS, of a block. */
static inline uint32_t block_part(uint32_t part, uint32_t parts, uint32_t count)
{
    uint32_t first = part * BLOCK_QUARTER, left = count > first ? count - first : 0;
    return parts == 1 ? count : left < BLOCK_QUARTER ? left : BLOCK_QUARTER;
}

/* The largest k of integers of this number of bits. 1 bit is the sign of the scale. */
static inline float block_levels(uint32_t bits)
{
    return bits > 1 ? (float)((1u << (bits - 1)) - 1) : 1;
}

/* ---- block.c ---- */

/* The least scale of 16 significant bits that is not below `scale`. */
float sgp_block_scale_up(float scale);

/* The sum of the magnitudes, in float64 in 8 lanes, which are then added pairwise. */
double sgp_block_sum_magnitudes(const float *values, uint32_t count);

/* This form of integers, if it can express parts with these largest magnitudes. Otherwise the form
 * that sgp/block.h names instead. */
struct block_form sgp_block_fit(struct block_form form, const float *largest, uint32_t parts);

/* Write the words of a form. Returns the position after them. */
uint8_t *sgp_block_write_words(uint8_t *bytes, const struct block_form *form);

/* Like sgp_block_project and sgp_block_pack, for a form without places. */
size_t sgp_block_project_as(
    float *projected, const struct block_form *form, const float *values, uint32_t count);
size_t sgp_block_pack_as(
    uint8_t *bytes, const struct block_form *form, const float *values, uint32_t count);

/* ---- codec.c ---- */

/* The first tensor that ends after value number `at`. The count if there is none. */
uint32_t sgp_codec_tensor_at(const struct sgp_tensors *tensors, uint64_t at);

/* Whether the block of `count` values from number `first` on has 16-bit floats. *tensor must be the
 * tensor of its first value or an earlier one, and becomes the tensor of that value. */
bool sgp_codec_is_fine(
    const struct sgp_tensors *tensors, uint32_t *tensor, uint64_t first, uint32_t count);

/* Like sgp_block_project, for any compressor. With SPARSE, the chosen values are those that are not
 * 0. */
size_t sgp_codec_project_block(float *projected, enum sgp_compressor compressor, bool fine,
    const float *values, uint32_t count);

#endif
