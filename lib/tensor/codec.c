/* SPDX-License-Identifier: Apache-2.0 */
/* The codecs; see sgp/codec.h. Owns nothing. Any thread.
 *
 * Blocks are unpacked from a copy of their bytes, which is made before anything is written: so a payload may lie at the end
 * of the memory that its values go to, where a block of values reaches into the bytes of the next. */
#include "sgp/codec.h"

#include "sgp/kernels.h"

#include <string.h>

#define WORD_BYTES 4u
#define BLOCK_BYTES (WORD_BYTES + 2 * SGP_CODING_BLOCK) /* of fp16 */
#define KIND_FP16 16u

/* ---- none ---- */

static void project_none(float *projected, const float *values, uint64_t count)
{
    memmove(projected, values, count * sizeof *values);
}

static void pack_none(uint8_t *bytes, const float *values, uint64_t count)
{
    memcpy(bytes, values, count * sizeof *values);
}

static int unpack_none(float *values, const uint8_t *bytes, size_t size, uint64_t count)
{
    if (size != count * sizeof *values)
        return SGP_E_FRAME;
    memmove(values, bytes, size);
    return 0;
}

/* ---- fp16 ---- */

static uint64_t block_after(uint64_t at, uint64_t count)
{
    return count - at < SGP_CODING_BLOCK ? count - at : SGP_CODING_BLOCK;
}

static void project_fp16(float *projected, const float *values, uint64_t count)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    uint8_t halves[2 * SGP_CODING_BLOCK];
    for (uint64_t at = 0; at < count; at += SGP_CODING_BLOCK) {
        uint64_t block = block_after(at, count);
        kernels->to_half(halves, values + at, block);
        kernels->from_half(projected + at, halves, block);
    }
}

static void pack_fp16(uint8_t *bytes, const float *values, uint64_t count)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    const uint8_t word[WORD_BYTES] = {KIND_FP16};
    for (uint64_t at = 0; at < count; at += SGP_CODING_BLOCK, bytes += BLOCK_BYTES) {
        uint64_t block = block_after(at, count);
        memcpy(bytes, word, sizeof word);
        kernels->to_half(bytes + WORD_BYTES, values + at, block);
        if (block % 2 != 0)
            memset(bytes + WORD_BYTES + 2 * block, 0, 2);
    }
}

/* The bytes of the block with so many values, and whether they are such. */
static size_t block_bytes(uint64_t block)
{
    return (size_t)sgp_coding_bytes_most(SGP_CODING_FP16, block);
}

static bool is_fp16(const uint8_t *bytes, uint64_t block)
{
    static const uint8_t word[WORD_BYTES] = {KIND_FP16}, padding[2];
    return memcmp(bytes, word, sizeof word) == 0 &&
           (block % 2 == 0 || memcmp(bytes + WORD_BYTES + 2 * block, padding, sizeof padding) == 0);
}

static int unpack_fp16(float *values, const uint8_t *bytes, size_t size, uint64_t count)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    uint8_t copies[2][BLOCK_BYTES];
    if (count > SGP_PARAMETERS_MAX || size != sgp_coding_bytes_most(SGP_CODING_FP16, count))
        return SGP_E_FRAME;
    memcpy(copies[0], bytes, block_bytes(block_after(0, count)));
    for (uint64_t at = 0, i = 0; at < count; at += SGP_CODING_BLOCK, i++) {
        uint64_t block = block_after(at, count), next = block_after(at + block, count);
        if (next > 0)
            memcpy(copies[(i + 1) % 2], bytes + (i + 1) * BLOCK_BYTES, block_bytes(next));
        if (!is_fp16(copies[i % 2], block))
            return SGP_E_FRAME;
        kernels->from_half(values + at, copies[i % 2] + WORD_BYTES, block);
    }
    return 0;
}

const struct sgp_codec *sgp_codec_of(enum sgp_coding coding)
{
    static const struct sgp_codec codecs[] = {
        [SGP_CODING_NONE] = {"none", project_none, pack_none, unpack_none},
        [SGP_CODING_FP16] = {"fp16", project_fp16, pack_fp16, unpack_fp16},
    };
    sgp_assert(coding <= SGP_CODING_FP16);
    return &codecs[coding];
}
