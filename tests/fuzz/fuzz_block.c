/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a block. An input is one byte, the number of values less 1, and the block. If a
 * source would choose the kind of an accepted block for its values, then they project onto
 * themselves and pack to the same bytes. */
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

static void check_dense(const struct block *block, enum sgp_compressor compressor, bool fits)
{
    float again[SGP_BLOCK_VALUES];
    uint8_t bytes[SGP_BLOCK_BYTES_MOST];
    size_t size = sgp_block_project(again, compressor, false, block->values, block->count);
    sgp_assert(sgp_block_pack(bytes, compressor, false, block->values, block->count) == size);
    if (!fits)
        return;
    sgp_assert(size == block->size && same(again, block->values, block->count));
    bool nan = false;
    for (uint32_t i = 0; i < block->count; i++)
        nan = nan || isnan(block->values[i]);
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
static void list_kinds(enum sgp_compressor compressors[static UINT8_MAX + 1])
{
    float ones[SGP_BLOCK_VALUES];
    uint8_t bytes[SGP_BLOCK_BYTES_MOST];
    for (uint32_t i = 0; i < SGP_BLOCK_VALUES; i++)
        ones[i] = 1;
    for (int c = SGP_COMPRESSOR_FP16; c <= (int)SGP_COMPRESSOR_MOST; c++) {
        if (c == (int)SGP_COMPRESSOR_SPARSE)
            continue;
        (void)sgp_block_pack(bytes, (enum sgp_compressor)c, false, ones, SGP_BLOCK_VALUES);
        compressors[bytes[0]] = (enum sgp_compressor)c;
    }
}

/* NONE: no compressor has dense blocks of this kind. */
static enum sgp_compressor compressor_of(uint32_t kind)
{
    static enum sgp_compressor compressors[UINT8_MAX + 1];
    if (compressors[16] == SGP_COMPRESSOR_NONE)
        list_kinds(compressors);
    return compressors[kind];
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
    else if (kind == 16 || kind == 17)
        check_dense(&block, compressor_of(kind), true);
    else if (kind == 0)
        check_dense(&block, SGP_COMPRESSOR_INT8, true);
    else if (kind == 68) /* a source writes it of more than a quarter */
        check_dense(&block, compressor_of(kind), block.count > 64 && is_full(&block, 4, 4));
    else if (kind <= 8 && compressor_of(kind) != SGP_COMPRESSOR_NONE)
        check_dense(&block, compressor_of(kind), is_full(&block, kind, 1));
    return 0;
}
