/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on arrays of limbs; see wide.h. */
#include "wide.h"

#include <math.h>
#include <string.h>

#define LIMB_BITS 32
#define MANTISSA_BITS 53

/* ---- integers ---- */

void sgp_wide_add_limbs(uint32_t *limbs, const uint32_t *others, uint32_t count)
{
    uint64_t carry = 0;
    for (uint32_t i = 0; i < count; i++) {
        carry += (uint64_t)limbs[i] + others[i];
        limbs[i] = (uint32_t)carry;
        carry >>= LIMB_BITS;
    }
}

static void subtract_limbs(uint32_t *limbs, const uint32_t *others, uint32_t count)
{
    uint64_t borrow = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t difference = (uint64_t)limbs[i] - others[i] - borrow;
        limbs[i] = (uint32_t)difference;
        borrow = difference >> LIMB_BITS != 0;
    }
}

/* product = one * other; the product has as many limbs as both together. */
static void multiply(uint32_t *product, const uint32_t *one, uint32_t one_count,
    const uint32_t *other, uint32_t other_count)
{
    memset(product, 0, (one_count + other_count) * sizeof *product);
    for (uint32_t i = 0; i < one_count; i++) {
        uint64_t carry = 0;
        for (uint32_t j = 0; j < other_count; j++) {
            carry += (uint64_t)one[i] * other[j] + product[i + j];
            product[i + j] = (uint32_t)carry;
            carry >>= LIMB_BITS;
        }
        product[i + other_count] = (uint32_t)carry;
    }
}

static bool is_negative(const uint32_t *limbs, uint32_t count)
{
    return limbs[count - 1] >> (LIMB_BITS - 1) != 0;
}

static void negate(uint32_t *limbs, uint32_t count)
{
    uint64_t carry = 1;
    for (uint32_t i = 0; i < count; i++) {
        carry += (uint32_t)~limbs[i];
        limbs[i] = (uint32_t)carry;
        carry >>= LIMB_BITS;
    }
}

/* limbs = value << shift */
static void place(
    uint32_t *limbs, uint32_t count, const uint32_t *value, uint32_t value_count, int shift)
{
    const uint32_t word = (uint32_t)shift / LIMB_BITS;
    const int bits = shift % LIMB_BITS;
    uint64_t carry = 0;
    memset(limbs, 0, count * sizeof *limbs);
    sgp_assert(word + value_count < count);
    for (uint32_t i = 0; i <= value_count; i++) {
        carry |= (i < value_count ? (uint64_t)value[i] : 0) << bits;
        limbs[word + i] = (uint32_t)carry;
        carry >>= LIMB_BITS;
    }
}

/* The nearest double of a number that is not negative. It is that of the highest 64 bits, with a 1
 * at their end if there are more ones below. */
static double to_double(const uint32_t *limbs, uint32_t count, int bits_behind_point)
{
    while (count > 0 && limbs[count - 1] == 0)
        count--;
    if (count == 0)
        return 0;
    uint64_t top = 0;
    for (uint32_t i = 0; i < 2; i++)
        top = top << LIMB_BITS | (count > i ? limbs[count - 1 - i] : 0);
    int exponent = ((int)count - 2) * LIMB_BITS;
    uint64_t next = count > 2 ? limbs[count - 3] : 0;
    for (int i = 0; top >> 63 == 0; i++, exponent--) {
        top = top << 1 | (next >> (LIMB_BITS - 1) & 1);
        next = next << 1 & UINT32_MAX;
    }
    bool more = next != 0;
    for (uint32_t i = 3; i < count; i++)
        more = more || limbs[count - 1 - i] != 0;
    return ldexp((double)(top | more), exponent - bits_behind_point);
}

/* ---- numbers ---- */

/* The size of a number as mantissa << *ret_shift, in multiples of 2^-192. */
static uint64_t split(double number, int *ret_shift)
{
    int exponent;
    const double size = fabs(number);
    sgp_assert(size < ldexp(1, 129));
    const double fraction = frexp(size, &exponent);
    *ret_shift = exponent - MANTISSA_BITS + SGP_WIDE_BITS;
    if (*ret_shift >= 0)
        return (uint64_t)ldexp(fraction, MANTISSA_BITS);
    *ret_shift = 0;
    return (uint64_t)floor(ldexp(size, SGP_WIDE_BITS) + 0.5);
}

void sgp_wide_add(uint32_t sum[SGP_WIDE_SUM_LIMBS], double number)
{
    uint32_t limbs[SGP_WIDE_SUM_LIMBS];
    int shift;
    const uint64_t mantissa = split(number, &shift);
    const uint32_t value[] = {(uint32_t)mantissa, (uint32_t)(mantissa >> LIMB_BITS)};
    place(limbs, SGP_WIDE_SUM_LIMBS, value, 2, shift);
    if (number < 0)
        subtract_limbs(sum, limbs, SGP_WIDE_SUM_LIMBS);
    else
        sgp_wide_add_limbs(sum, limbs, SGP_WIDE_SUM_LIMBS);
}

void sgp_wide_add_square(uint32_t squares[SGP_WIDE_SQUARES_LIMBS], double number)
{
    uint32_t limbs[SGP_WIDE_SQUARES_LIMBS], square[4];
    int shift;
    const uint64_t mantissa = split(number, &shift);
    const uint32_t value[] = {(uint32_t)mantissa, (uint32_t)(mantissa >> LIMB_BITS)};
    multiply(square, value, 2, value, 2);
    place(limbs, SGP_WIDE_SQUARES_LIMBS, square, 4, 2 * shift);
    sgp_wide_add_limbs(squares, limbs, SGP_WIDE_SQUARES_LIMBS);
}

/* The size of a sum, and whether it is negative. */
static bool size_of(const uint32_t sum[SGP_WIDE_SUM_LIMBS], uint32_t size[SGP_WIDE_SUM_LIMBS])
{
    const bool negative = is_negative(sum, SGP_WIDE_SUM_LIMBS);
    memcpy(size, sum, SGP_WIDE_SUM_LIMBS * sizeof *size);
    if (negative)
        negate(size, SGP_WIDE_SUM_LIMBS);
    return negative;
}

double sgp_wide_sum(const uint32_t sum[SGP_WIDE_SUM_LIMBS])
{
    uint32_t size[SGP_WIDE_SUM_LIMBS];
    const bool negative = size_of(sum, size);
    const double number = to_double(size, SGP_WIDE_SUM_LIMBS, SGP_WIDE_BITS);
    return negative ? -number : number;
}

double sgp_wide_squares(const uint32_t squares[SGP_WIDE_SQUARES_LIMBS])
{
    return to_double(squares, SGP_WIDE_SQUARES_LIMBS, 2 * SGP_WIDE_BITS);
}

double sgp_wide_less(const uint32_t sum[SGP_WIDE_SUM_LIMBS], uint64_t count)
{
    uint32_t difference[SGP_WIDE_SUM_LIMBS], limbs[SGP_WIDE_SUM_LIMBS];
    const uint32_t value[] = {(uint32_t)count, (uint32_t)(count >> LIMB_BITS)};
    memcpy(difference, sum, sizeof difference);
    place(limbs, SGP_WIDE_SUM_LIMBS, value, 2, SGP_WIDE_BITS);
    subtract_limbs(difference, limbs, SGP_WIDE_SUM_LIMBS);
    return sgp_wide_sum(difference);
}

double sgp_wide_variance(uint64_t count, const uint32_t sum[SGP_WIDE_SUM_LIMBS],
    const uint32_t squares[SGP_WIDE_SQUARES_LIMBS])
{
    uint32_t size[SGP_WIDE_SUM_LIMBS];
    uint32_t square[SGP_WIDE_VARIANCE_LIMBS], product[SGP_WIDE_VARIANCE_LIMBS];
    const uint32_t value[] = {(uint32_t)count, (uint32_t)(count >> LIMB_BITS)};
    (void)size_of(sum, size);
    multiply(square, size, SGP_WIDE_SUM_LIMBS, size, SGP_WIDE_SUM_LIMBS);
    multiply(product, squares, SGP_WIDE_SQUARES_LIMBS, value, 2);
    subtract_limbs(product, square, SGP_WIDE_VARIANCE_LIMBS);
    /* Below 0 only if the sums are not those of numbers. */
    return is_negative(product, SGP_WIDE_VARIANCE_LIMBS)
               ? 0
               : to_double(product, SGP_WIDE_VARIANCE_LIMBS, 2 * SGP_WIDE_BITS);
}
