/* SPDX-License-Identifier: Apache-2.0 */
/* One float32 as bfloat16 and back, by bits. There are no branches, so that compilers can vectorise
 * loops over these functions. */
#ifndef SGP_TENSOR_BFLOAT_H
#define SGP_TENSOR_BFLOAT_H

#include <stdint.h>
#include <string.h>

#define BFLOAT_GREATEST 0x7f7f
#define BFLOAT_INFINITY 0x7f80
#define BFLOAT_QUIET 0x0040 /* of a NaN */

/* Rounds to the nearest, to even. A finite value above the greatest bfloat16 becomes that. */
static inline uint16_t bfloat_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    int32_t sign = (int32_t)(bits >> 16 & 0x8000u);
    int32_t magnitude = (int32_t)(bits & 0x7fffffffu);
    int32_t cut = magnitude >> 16;
    int32_t nearest = (int32_t)(((uint32_t)magnitude + 0x7fffu + (uint32_t)(cut & 1)) >> 16);
    nearest = nearest > BFLOAT_GREATEST ? BFLOAT_GREATEST : nearest;
    int32_t special = magnitude > BFLOAT_INFINITY << 16 ? cut | BFLOAT_QUIET : cut;
    return (uint16_t)(sign | (cut >= BFLOAT_INFINITY ? special : nearest));
}

static inline float float_of_bfloat(uint16_t bfloat)
{
    uint32_t bits = (uint32_t)bfloat << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
