/* SPDX-License-Identifier: Apache-2.0 */
/* The table of compressors (sgp/compressor.h), and the sizes of coded payloads (sgp/coding.h). The
 * values are packed in lib/tensor. Pure. Any thread. */
#include "sgp/coding.h"

#include "sgp/status.h"

#include <string.h>

#define WORD_BYTES 4u  /* before a block */
#define PLAIN_BYTES 4u /* binary32 */

/* ---- compressors ---- */

/* A row for each number. The error of integers of b bits is half a step, 1 / (2^b - 2). */
static const struct {
    const char *word;
    enum sgp_coding coding;
    bool of_shares;
    double error;
} compressors[] = {
    [SGP_COMPRESSOR_NONE] = {"none", SGP_CODING_NONE, true, 0},
    [SGP_COMPRESSOR_FP16] = {"fp16", SGP_CODING_FP16, true, 0x1p-11},
    [SGP_COMPRESSOR_BF16] = {"bf16", SGP_CODING_BLOCKS, true, 0x1p-8},
    [SGP_COMPRESSOR_INT8] = {"int8", SGP_CODING_BLOCKS, true, 1 / 254.0},
    [SGP_COMPRESSOR_INT6] = {"int6", SGP_CODING_BLOCKS, true, 1 / 62.0},
    [SGP_COMPRESSOR_INT4] = {"int4", SGP_CODING_BLOCKS, true, 1 / 14.0},
    [SGP_COMPRESSOR_INT4_64] = {"int4:64", SGP_CODING_BLOCKS, true, 1 / 14.0},
    [SGP_COMPRESSOR_INT2] = {"int2", SGP_CODING_BLOCKS, false, 1 / 2.0},
    [SGP_COMPRESSOR_SIGN] = {"sign", SGP_CODING_BLOCKS, false, 1},
    [SGP_COMPRESSOR_SPARSE] = {"sparse", SGP_CODING_BLOCKS, false, 1},
};
_Static_assert(sizeof compressors / sizeof *compressors == SGP_COMPRESSOR_MOST + 1,
    "each compressor has a row");

const char *sgp_compressor_word(enum sgp_compressor compressor)
{
    sgp_assert(compressor <= SGP_COMPRESSOR_MOST);
    return compressors[compressor].word;
}

bool sgp_compressor_is_of_shares(enum sgp_compressor compressor)
{
    sgp_assert(compressor <= SGP_COMPRESSOR_MOST);
    return compressors[compressor].of_shares;
}

double sgp_compressor_error(enum sgp_compressor compressor)
{
    sgp_assert(compressor <= SGP_COMPRESSOR_MOST);
    return compressors[compressor].error;
}

enum sgp_coding sgp_coding_of(enum sgp_compressor compressor)
{
    sgp_assert(compressor <= SGP_COMPRESSOR_MOST);
    return compressors[compressor].coding;
}

int sgp_compressor_of(const char *word)
{
    for (int c = SGP_COMPRESSOR_NONE; c <= SGP_COMPRESSOR_MOST; c++)
        if (strcmp(word, compressors[c].word) == 0)
            return c;
    return -1;
}

/* ---- sizes ---- */

static uint64_t words_of(uint64_t count)
{
    return WORD_BYTES * ((count + SGP_BLOCK_VALUES - 1) / SGP_BLOCK_VALUES);
}

uint64_t sgp_coding_bytes_least(enum sgp_coding coding, uint64_t count)
{
    return coding == SGP_CODING_BLOCKS ? words_of(count) : sgp_coding_bytes_most(coding, count);
}

uint64_t sgp_coding_bytes_most(enum sgp_coding coding, uint64_t count)
{
    sgp_assert(coding <= SGP_CODING_MOST);
    if (coding == SGP_CODING_NONE)
        return PLAIN_BYTES * count;
    uint64_t halves = (count + 1) / 2 * 2; /* whole words */
    return words_of(count) + 2 * halves;
}

bool sgp_coding_may_have(enum sgp_coding coding, uint64_t count, uint64_t bytes)
{
    return bytes % 4 == 0 && bytes >= sgp_coding_bytes_least(coding, count) &&
           bytes <= sgp_coding_bytes_most(coding, count);
}

bool sgp_coding_is_shorter(enum sgp_coding coding, uint64_t count)
{
    return sgp_coding_bytes_most(coding, count) < sgp_coding_bytes_most(SGP_CODING_NONE, count);
}
