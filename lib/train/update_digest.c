/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of updates; see sgp/update.h. */
#include "sgp/update.h"

#include <string.h>
#include <xxhash.h>

/* Place k of a sample of a large vector. The sample is spread by a low-discrepancy sequence
 * (multiples of the golden ratio: Knuth, TAOCP 3, 6.4). Such a sequence follows no stride of a
 * layer. */
static uint64_t place(uint32_t k, uint64_t count)
{
    uint64_t bits = (k + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint64_t)((double)(bits >> 11) * 0x1p-53 * (double)count);
}

static float change(const float *after, const float *before, uint64_t i)
{
    return before != NULL ? after[i] - before[i] : after[i];
}

/* The bits of a value without its sign: 0 only for a zero. */
static uint32_t magnitude(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits << 1;
}

static uint64_t sound(uint64_t digest)
{
    return digest != 0 ? digest : 1;
}

uint64_t sgp_update_digest(
    const float *after, const float *before, uint64_t count, uint64_t earlier)
{
    float sample[SGP_UPDATE_VALUES];
    uint32_t values = count < SGP_UPDATE_VALUES ? (uint32_t)count : SGP_UPDATE_VALUES, any = 0;
    if (count <= SGP_UPDATE_VALUES) /* all, in order, by vector instructions */
        for (uint32_t k = 0; k < values; k++)
            any |= magnitude(sample[k] = change(after, before, k));
    else
        for (uint32_t k = 0; k < values; k++)
            any |= magnitude(sample[k] = change(after, before, place(k, count)));
    return any != 0 ? sound(XXH3_64bits_withSeed(sample, values * sizeof *sample, earlier))
                    : earlier;
}

uint64_t sgp_update_chain(uint64_t earlier, uint64_t later)
{
    if (earlier == 0 || later == 0)
        return earlier | later;
    return sound(XXH3_64bits_withSeed(&later, sizeof later, earlier));
}
