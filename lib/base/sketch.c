/* SPDX-License-Identifier: Apache-2.0 */
/* The linear sketch; see sgp/sketch.h. */
#include "sgp/sketch.h"

#define BLOCK 64u /* number of values whose signs are the bits of one word */

/* The signs of a block (splitmix64: Steele, Lea and Flood 2014). */
static uint64_t signs_of(uint64_t block)
{
    uint64_t bits = (block + 1) * UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    return bits ^ bits >> 31;
}

void sgp_sketch_of(struct sgp_sketch *ret_sketch, const float *x, double weight, uint64_t count)
{
    double sums[SGP_SKETCH_VALUES] = {0};
    for (uint64_t first = 0; first < count; first += BLOCK) {
        uint64_t signs = signs_of(first / BLOCK);
        uint64_t values = count - first < BLOCK ? count - first : BLOCK;
        for (uint64_t i = 0; i < values; i++) {
            double value = (double)x[first + i];
            sums[i % SGP_SKETCH_VALUES] += (signs >> i & 1) != 0 ? value : -value;
        }
    }
    for (uint32_t k = 0; k < SGP_SKETCH_VALUES; k++)
        ret_sketch->values[k] = (float)(sums[k] / weight);
}
