/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of updates; see sgp/update.h. */
#include "sgp/update.h"

#include <xxhash.h>

/* Place k of a sample of `count` values. A small vector is sampled whole, in order. Otherwise the
 * sample is spread by a low-discrepancy sequence (multiples of the golden ratio: Knuth, TAOCP 3,
 * 6.4). Such a sequence follows no stride of a layer. */
static uint64_t place(uint32_t k, uint64_t count)
{
    if (count <= SGP_UPDATE_VALUES)
        return k;
    uint64_t bits = (k + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint64_t)((double)(bits >> 11) * 0x1p-53 * (double)count);
}

static uint64_t sound(uint64_t digest)
{
    return digest != 0 ? digest : 1;
}

uint64_t sgp_update_digest(
    const float *after, const float *before, uint64_t count, uint64_t earlier)
{
    float sample[SGP_UPDATE_VALUES];
    uint32_t values = count < SGP_UPDATE_VALUES ? (uint32_t)count : SGP_UPDATE_VALUES;
    bool any = false;
    for (uint32_t k = 0; k < values; k++) {
        uint64_t i = place(k, count);
        sample[k] = before != NULL ? after[i] - before[i] : after[i];
        any = any || sample[k] < 0 || sample[k] > 0;
    }
    return any ? sound(XXH3_64bits_withSeed(sample, values * sizeof *sample, earlier)) : earlier;
}

uint64_t sgp_update_chain(uint64_t earlier, uint64_t later)
{
    if (earlier == 0 || later == 0)
        return earlier | later;
    return sound(XXH3_64bits_withSeed(&later, sizeof later, earlier));
}
