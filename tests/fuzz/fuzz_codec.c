/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a coded payload, which comes in pieces to the end of the memory of its values. An input is two bytes
 * (big-endian), the number of values; one, the length of a piece; and the payload. What is accepted is the same at once,
 * in pieces, and block by block from memory of its own; of the form FP16 it is what packing writes, but for which NaN a NaN is. */
#include "sgp/block.h"
#include "sgp/codec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Decode to `values`. Returns whether the payload is well-formed. */
static bool decode(float *values, enum sgp_coding coding, const uint8_t *data, size_t size,
    uint64_t count, size_t piece)
{
    struct sgp_decoding decoding;
    uint8_t *place = sgp_decoding_begin(&decoding, coding, values, count, size);
    for (size_t at = 0; at < size; at += piece) {
        piece = size - at < piece ? size - at : piece;
        memcpy(place + at, data + at, piece);
        sgp_decoding_go_on(&decoding, at + piece);
    }
    sgp_assert(decoding.malformed || (decoding.decoded == count && decoding.used == size));
    return !decoding.malformed;
}

/* The same without sgp_decoding, from bytes that the values do not overlap. */
static bool decode_apart(
    float *values, enum sgp_coding coding, const uint8_t *data, size_t size, uint64_t count)
{
    for (uint64_t at = 0; at < count; at += SGP_BLOCK_VALUES) {
        uint32_t block = (uint32_t)(count - at < SGP_BLOCK_VALUES ? count - at : SGP_BLOCK_VALUES);
        int bytes = sgp_block_bytes(data, size, block);
        bool whole = bytes > 0 && (size_t)bytes <= size;
        if (!whole || (coding == SGP_CODING_FP16 && data[0] != 16) ||
            sgp_block_unpack(values + at, data, (size_t)bytes, block) < 0)
            return false;
        data += bytes;
        size -= (size_t)bytes;
    }
    return size == 0;
}

static void check_halves(const float *values, uint64_t count, const uint8_t *data, size_t size)
{
    const struct sgp_codec halves = {.compressor = SGP_COMPRESSOR_FP16};
    uint8_t *again = malloc(size);
    sgp_assert(again != NULL && sgp_codec_bytes(&halves, values, 0, count) == size);
    (void)sgp_codec_pack(&halves, again, values, 0, count);
    bool nan = false;
    for (uint64_t i = 0; i < count; i++)
        nan = nan || isnan(values[i]);
    sgp_assert(nan || memcmp(again, data, size) == 0);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    uint64_t count = (uint64_t)data[0] << 8 | data[1];
    size_t piece = 1 + (size_t)data[2];
    data += 3;
    size -= 3;
    for (enum sgp_coding coding = SGP_CODING_FP16; coding <= SGP_CODING_MOST; coding++) {
        if (count == 0 || size > 4 * count || !sgp_coding_may_have(coding, count, size))
            continue;
        float *whole = malloc(count * sizeof *whole), *parts = malloc(count * sizeof *parts);
        sgp_assert(whole != NULL && parts != NULL);
        bool good = decode(whole, coding, data, size, count, size);
        sgp_assert(decode(parts, coding, data, size, count, piece) == good);
        sgp_assert(!good || memcmp(whole, parts, count * sizeof *whole) == 0);
        sgp_assert(decode_apart(parts, coding, data, size, count) == good);
        sgp_assert(!good || memcmp(whole, parts, count * sizeof *whole) == 0);
        if (good && coding == SGP_CODING_FP16)
            check_halves(whole, count, data, size);
        free(whole);
        free(parts);
    }
    return 0;
}
