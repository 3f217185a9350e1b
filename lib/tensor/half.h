/* SPDX-License-Identifier: Apache-2.0 */
/* One float32 as binary16 and back, by bits. Every twin of the kernels computes this, and the plain
 * kernels use these functions. */
#ifndef SGP_TENSOR_HALF_H
#define SGP_TENSOR_HALF_H

#include <stdint.h>
#include <string.h>

#define HALF_INFINITY 0x7c00u
#define HALF_QUIET 0x0200u         /* of a NaN */
#define HALF_GREATEST 0x7bffu      /* 65504 */
#define FLOAT_GREATEST 0x477fe000u /* 65504 as a float */
#define FLOAT_INFINITY 0x7f800000u
#define FLOAT_LEAST 0x38800000u /* 2^-14, the least normal half */
#define FLOAT_HALF 0x3f000000u  /* 0.5, whose last bit is 2^-24, like that of a subnormal half */
#define HALF_BIAS (112u << 23) /* difference of the exponents, in the place of a float's exponent */

/* Rounds to the nearest, to even. Finite values above the greatest half become that. */
static inline uint16_t half_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000u;
    bits &= 0x7fffffffu;
    if (bits > FLOAT_INFINITY)
        return (uint16_t)(sign | HALF_INFINITY | HALF_QUIET | (bits >> 13 & 0x3ffu));
    if (bits == FLOAT_INFINITY)
        return (uint16_t)(sign | HALF_INFINITY);
    if (bits > FLOAT_GREATEST)
        return (uint16_t)(sign | HALF_GREATEST);
    if (bits >= FLOAT_LEAST)
        return (uint16_t)(sign | (bits - HALF_BIAS + 0xfffu + (bits >> 13 & 1u)) >> 13);
    float sum; /* the addition rounds */
    memcpy(&sum, &bits, sizeof sum);
    sum += 0.5f;
    memcpy(&bits, &sum, sizeof bits);
    return (uint16_t)(sign | (bits - FLOAT_HALF));
}

static inline float float_of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = half & 0x7fffu, bits;
    float value = (float)rest * 0x1p-24f; /* of a subnormal half */
    memcpy(&bits, &value, sizeof bits);
    if (rest > HALF_INFINITY)
        bits = FLOAT_INFINITY | (rest | HALF_QUIET) << 13;
    else if (rest == HALF_INFINITY)
        bits = FLOAT_INFINITY;
    else if (rest >= 0x400u)
        bits = (rest << 13) + HALF_BIAS;
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
