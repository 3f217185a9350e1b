/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of coded payloads; see sgp/coding.h. Pure. Any thread. */
#include "sgp/coding.h"

#include "sgp/status.h"

#define WORD_BYTES 4u  /* in front of a block */
#define PLAIN_BYTES 4u /* binary32 */

uint64_t sgp_coding_bytes_most(enum sgp_coding coding, uint64_t count)
{
    sgp_assert(coding <= SGP_CODING_FP16);
    if (coding == SGP_CODING_NONE)
        return PLAIN_BYTES * count;
    uint64_t blocks = (count + SGP_CODING_BLOCK - 1) / SGP_CODING_BLOCK;
    uint64_t halves = (count + 1) / 2 * 2; /* whole words */
    return WORD_BYTES * blocks + 2 * halves;
}
