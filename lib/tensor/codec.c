/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of values as blocks, and back; see sgp/codec.h. Owns nothing. Any thread. */
#include "sgp/codec.h"

#include "block.h"

#include <string.h>

static uint32_t block_after(uint64_t at, uint64_t count)
{
    return (uint32_t)(count - at < SGP_BLOCK_VALUES ? count - at : SGP_BLOCK_VALUES);
}

/* ---- values to bytes ---- */

uint32_t sgp_codec_tensor_at(const struct sgp_tensors *tensors, uint64_t at)
{
    uint32_t low = 0, high = tensors->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (tensors->ends[middle].end > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

bool sgp_codec_is_fine(
    const struct sgp_tensors *tensors, uint32_t *tensor, uint64_t first, uint32_t count)
{
    while (*tensor < tensors->count && tensors->ends[*tensor].end <= first)
        ++*tensor;
    if (*tensor == tensors->count)
        return false;
    const struct sgp_tensor_end *end = &tensors->ends[*tensor];
    return !end->has_columns || end->end < first + count;
}

/* The places of the values that are not 0. Returns whether blocks of the compressor have places. */
static bool choose_places(uint64_t places[static SGP_BLOCK_PLACE_WORDS],
    enum sgp_compressor compressor, bool fine, const float *values, uint32_t count)
{
    if (compressor != SGP_COMPRESSOR_SPARSE || fine)
        return false;
    memset(places, 0, SGP_BLOCK_PLACE_WORDS * sizeof *places);
    for (uint32_t i = 0; i < count; i++)
        places[i / 64] |= (uint64_t)(values[i] != 0) << i % 64;
    return true;
}

/* The compressor of a block without places. With SPARSE only blocks of 16-bit floats have none. */
static enum sgp_compressor without_places(enum sgp_compressor compressor)
{
    return compressor == SGP_COMPRESSOR_SPARSE ? SGP_COMPRESSOR_BF16 : compressor;
}

size_t sgp_codec_project_block(float *projected, enum sgp_compressor compressor, bool fine,
    const float *values, uint32_t count)
{
    uint64_t places[SGP_BLOCK_PLACE_WORDS];
    if (choose_places(places, compressor, fine, values, count))
        return sgp_block_project_chosen(projected, BLOCK_SPARSE_BITS, places, values, count);
    return sgp_block_project(projected, without_places(compressor), fine, values, count);
}

static size_t pack_block(
    uint8_t *bytes, enum sgp_compressor compressor, bool fine, const float *values, uint32_t count)
{
    uint64_t places[SGP_BLOCK_PLACE_WORDS];
    if (choose_places(places, compressor, fine, values, count))
        return sgp_block_pack_chosen(bytes, BLOCK_SPARSE_BITS, places, values, count);
    return sgp_block_pack(bytes, without_places(compressor), fine, values, count);
}

uint64_t sgp_codec_project(const struct sgp_codec *codec, float *projected, const float *values,
    uint64_t first, uint64_t count)
{
    uint32_t tensor = sgp_codec_tensor_at(&codec->tensors, first);
    uint64_t bytes = 0;
    if (codec->compressor == SGP_COMPRESSOR_NONE) {
        memmove(projected, values, count * sizeof *values);
        return count * sizeof *values;
    }
    for (uint64_t at = 0; at < count; at += SGP_BLOCK_VALUES) {
        uint32_t block = block_after(at, count);
        bool fine = sgp_codec_is_fine(&codec->tensors, &tensor, first + at, block);
        bytes +=
            sgp_codec_project_block(projected + at, codec->compressor, fine, values + at, block);
    }
    return bytes;
}

uint64_t sgp_codec_pack(const struct sgp_codec *codec, uint8_t *bytes, const float *values,
    uint64_t first, uint64_t count)
{
    uint32_t tensor = sgp_codec_tensor_at(&codec->tensors, first);
    const uint8_t *begin = bytes;
    if (codec->compressor == SGP_COMPRESSOR_NONE) {
        memcpy(bytes, values, count * sizeof *values);
        return count * sizeof *values;
    }
    for (uint64_t at = 0; at < count; at += SGP_BLOCK_VALUES) {
        uint32_t block = block_after(at, count);
        bool fine = sgp_codec_is_fine(&codec->tensors, &tensor, first + at, block);
        bytes += pack_block(bytes, codec->compressor, fine, values + at, block);
    }
    return (uint64_t)(bytes - begin);
}

uint64_t sgp_codec_bytes(
    const struct sgp_codec *codec, const float *values, uint64_t first, uint64_t count)
{
    float projected[SGP_BLOCK_VALUES];
    enum sgp_coding coding = sgp_coding_of(codec->compressor);
    uint64_t bytes = 0;
    if (coding != SGP_CODING_BLOCKS)
        return sgp_coding_bytes_most(coding, count);
    for (uint64_t at = 0; at < count; at += SGP_BLOCK_VALUES)
        bytes +=
            sgp_codec_project(codec, projected, values + at, first + at, block_after(at, count));
    return bytes;
}

/* ---- bytes to values ---- */

uint8_t *sgp_decoding_begin(struct sgp_decoding *decoding, enum sgp_coding coding, float *values,
    uint64_t count, uint64_t size)
{
    sgp_assert(sgp_coding_may_have(coding, count, size) && size <= count * sizeof *values);
    *decoding =
        (struct sgp_decoding){.coding = coding, .values = values, .count = count, .size = size};
    return (uint8_t *)(values + count) - size;
}

/* Whether the next block can be decoded. `bytes` is its size (< 0: malformed), and `have` bytes
 * have arrived. The following data must be as long as announced. If the last block has one value,
 * its 8 bytes overlap the place of the values before. Then all bytes must have arrived. */
static bool can_take(struct sgp_decoding *decoding, int bytes, uint64_t have, uint64_t rest)
{
    uint64_t left = decoding->size - decoding->used, size = bytes > 0 ? (uint64_t)bytes : 0;
    bool whole = size > 0 && size <= have && (rest != 1 || have == left);
    decoding->malformed =
        bytes < 0 || (have == left && !whole) ||
        (whole && (left < size || !sgp_coding_may_have(decoding->coding, rest, left - size)));
    return whole && !decoding->malformed;
}

/* Decode the next block if it has arrived. It is copied first, because its values may go where it
 * is. A block is at most as long as its values, except a block of one value, so later data are
 * further back. A block of one value is kept in `last`. */
static bool take_block(struct sgp_decoding *decoding, uint64_t received)
{
    const uint8_t *bytes = (const uint8_t *)(decoding->values + decoding->count) - decoding->size;
    const uint8_t *from = bytes + decoding->used;
    uint32_t count = block_after(decoding->decoded, decoding->count);
    uint64_t have = received - decoding->used, rest = decoding->count - decoding->decoded - count;
    if (rest == 0 && decoding->kept)
        from = decoding->last;
    bool foreign = decoding->coding == SGP_CODING_FP16 && have > 0 && from[0] != BLOCK_KIND_HALF;
    int size = foreign ? SGP_E_FRAME : sgp_block_bytes(from, have, count);
    if (!can_take(decoding, size, have, rest))
        return false;
    uint8_t copy[SGP_BLOCK_BYTES_MOST];
    memcpy(copy, from, (size_t)size);
    decoding->kept = rest == 1;
    if (decoding->kept)
        memcpy(decoding->last, from + size, have - (uint64_t)size);
    float *values = decoding->values + decoding->decoded;
    decoding->malformed = sgp_block_unpack(values, copy, (size_t)size, count) < 0;
    if (decoding->malformed)
        return false;
    decoding->used += (uint64_t)size;
    decoding->decoded += count;
    return true;
}

void sgp_decoding_go_on(struct sgp_decoding *decoding, uint64_t received)
{
    if (decoding->coding == SGP_CODING_NONE) {
        decoding->used = received;
        decoding->decoded = received / sizeof *decoding->values;
        return;
    }
    while (!decoding->malformed && decoding->decoded < decoding->count &&
           take_block(decoding, received)) {
    }
}
