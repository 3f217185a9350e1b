/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a block. An input is one byte, the number of values less 1, and the block. Each
 * compressor of its kind packs the values of an accepted block. If a source would choose the form of
 * the block for its values, then they project onto themselves and pack to the same bytes. */
#include "sgp/block.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct block {
    const uint8_t *bytes;
    size_t size;
    uint32_t count;
    float values[SGP_BLOCK_VALUES];
};

static bool same(const float *a, const float *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (memcmp(a + i, b + i, sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

static float largest(const float *values, uint32_t count)
{
    float most = 0;
    for (uint32_t i = 0; i < count; i++)
        most = isfinite(values[i]) ? fmaxf(most, fabsf(values[i])) : INFINITY;
    return most;
}

static float scale_at(const uint8_t *word)
{
    uint32_t bits = (uint32_t)word[3] << 24 | (uint32_t)word[2] << 16 | (uint32_t)word[1] << 8;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return scale;
}

/* A source chooses the scale so that the largest integer is the greatest, and none too large. */
static bool is_full(const struct block *block, uint32_t bits, uint32_t parts)
{
    float all = 0, levels = bits == 1 ? 1 : (float)((1 << (bits - 1)) - 1);
    for (uint32_t p = 0; p < parts; p++) {
        uint32_t first = p * 64, end = parts == 1 ? block->count : first + 64;
        end = end < block->count ? end : block->count;
        float most = end > first ? largest(block->values + first, end - first) : 0;
        if (most != levels * scale_at(block->bytes + 4 * p) || most >= 0x1p127F)
            return false;
        all = fmaxf(all, most);
    }
    return all > 0; /* else the source writes kind 0 */
}

static bool has_nan(const float *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (isnan(values[i]))
            return true;
    return false;
}

/* What sgp/block.h says of every compressor; and, if the values fit it, of these bytes. */
static void check_dense(const struct block *block, enum sgp_compressor compressor, bool fits)
{
    uint32_t count = block->count;
    float projected[SGP_BLOCK_VALUES], back[SGP_BLOCK_VALUES];
    uint8_t bytes[SGP_BLOCK_BYTES_MOST], again[SGP_BLOCK_BYTES_MOST];
    bool nan = has_nan(block->values, count); /* its payload may change */
    size_t size = sgp_block_project(projected, compressor, false, block->values, count);
    sgp_assert(sgp_block_pack(bytes, compressor, false, block->values, count) == size);
    sgp_assert(sgp_block_unpack(back, bytes, size, count) == 0 && same(back, projected, count));
    sgp_assert(sgp_block_project(back, compressor, false, projected, count) == size);
    sgp_assert(same(back, projected, count));
    sgp_assert(sgp_block_pack(again, compressor, false, projected, count) == size);
    sgp_assert(nan || memcmp(again, bytes, size) == 0);
    if (!fits)
        return;
    sgp_assert(size == block->size && same(projected, block->values, count));
    sgp_assert(nan || memcmp(bytes, block->bytes, size) == 0);
}

static void check_sparse(const struct block *block, uint32_t bits)
{
    float again[SGP_BLOCK_VALUES];
    uint64_t chosen[SGP_BLOCK_PLACE_WORDS] = {0};
    for (uint32_t i = 0; i < block->count; i++)
        chosen[i / 64] |= (uint64_t)(block->values[i] != 0) << i % 64;
    size_t size = sgp_block_project_chosen(again, bits, chosen, block->values, block->count);
    bool fits = is_full(block, bits, 1);
    sgp_assert(!fits || (size <= block->size && same(again, block->values, block->count)));
}

/* The kind of a compressor's dense block of ones is the kind of its blocks. */
static uint32_t kind_of(enum sgp_compressor compressor)
{
    float ones[SGP_BLOCK_VALUES];
    uint8_t bytes[SGP_BLOCK_BYTES_MOST];
    for (uint32_t i = 0; i < SGP_BLOCK_VALUES; i++)
        ones[i] = 1;
    (void)sgp_block_pack(bytes, compressor, false, ones, SGP_BLOCK_VALUES);
    return bytes[0];
}

/* Of the compressors that have one kind, the first takes its scale from the largest magnitude, and
 * `fits` is for it. A later one may choose another scale. */
static void check_kind(const struct block *block, uint32_t kind, bool fits)
{
    static uint32_t kinds[SGP_COMPRESSOR_MOST + 1];
    for (int c = SGP_COMPRESSOR_FP16; c <= (int)SGP_COMPRESSOR_MOST; c++) {
        if (c == (int)SGP_COMPRESSOR_SPARSE)
            continue;
        if (kinds[c] == 0)
            kinds[c] = kind_of((enum sgp_compressor)c);
        if (kinds[c] != kind)
            continue;
        check_dense(block, (enum sgp_compressor)c, fits);
        fits = false;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct block block = {.bytes = data + 1, .size = size - 1, .count = data[0] + 1u};
    int known = sgp_block_bytes(block.bytes, block.size, block.count);
    sgp_assert(known == SGP_E_FRAME || (known >= 0 && known % 4 == 0));
    sgp_assert(known <= 4 + (int)(block.count + 1) / 2 * 4);
    if (sgp_block_unpack(block.values, block.bytes, block.size, block.count) != 0)
        return 0;
    sgp_assert((size_t)known == block.size);
    uint32_t kind = block.bytes[0];
    if (kind > 128)
        check_sparse(&block, kind % 64);
    else if (kind == 0)
        check_dense(&block, SGP_COMPRESSOR_INT8, true);
    else if (kind == 16 || kind == 17)
        check_kind(&block, kind, true);
    else if (kind == 68) /* a source writes it of more than a quarter */
        check_kind(&block, kind, block.count > 64 && is_full(&block, 4, 4));
    else if (kind <= 8)
        check_kind(&block, kind, is_full(&block, kind, 1));
    return 0;
}
