/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of coded payloads; see sgp/coding.h. Pure. Any thread. */
#include "sgp/coding.h"

#include "sgp/status.h"

#include <string.h>

#define WORD_BYTES 4u  /* before a block */
#define PLAIN_BYTES 4u /* binary32 */

enum sgp_coding sgp_coding_of(enum sgp_compressor compressor)
{
    return compressor == SGP_COMPRESSOR_NONE   ? SGP_CODING_NONE
           : compressor == SGP_COMPRESSOR_FP16 ? SGP_CODING_FP16
                                               : SGP_CODING_BLOCKS;
}

static const char *const compressor_words[] = {
    [SGP_COMPRESSOR_NONE] = "none",
    [SGP_COMPRESSOR_FP16] = "fp16",
    [SGP_COMPRESSOR_BF16] = "bf16",
    [SGP_COMPRESSOR_INT8] = "int8",
    [SGP_COMPRESSOR_INT6] = "int6",
    [SGP_COMPRESSOR_INT4] = "int4",
    [SGP_COMPRESSOR_INT4_64] = "int4:64",
    [SGP_COMPRESSOR_INT2] = "int2",
    [SGP_COMPRESSOR_SIGN] = "sign",
    [SGP_COMPRESSOR_SPARSE] = "sparse",
};

const char *sgp_compressor_word(enum sgp_compressor compressor)
{
    sgp_assert(compressor <= SGP_COMPRESSOR_MOST);
    return compressor_words[compressor];
}

int sgp_compressor_of(const char *word)
{
    for (int c = SGP_COMPRESSOR_NONE; c <= SGP_COMPRESSOR_MOST; c++)
        if (strcmp(word, compressor_words[c]) == 0)
            return c;
    return -1;
}

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
    sgp_assert(coding <= SGP_CODING_BLOCKS);
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
