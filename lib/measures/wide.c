/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on arrays of limbs; see wide.h. */
#include "wide.h"

#include <math.h>
#include <stdio.h>
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

static bool is_zero(const uint32_t *limbs, uint32_t count)
{
    while (count > 0 && limbs[count - 1] == 0)
        count--;
    return count == 0;
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

/* spread = count * squares - sum^2. Returns whether it is below 0, which it is only if the sums are
 * not those of numbers. */
static bool spread_of(uint64_t count, const uint32_t sum[SGP_WIDE_SUM_LIMBS],
    const uint32_t squares[SGP_WIDE_SQUARES_LIMBS], uint32_t spread[SGP_WIDE_VARIANCE_LIMBS])
{
    uint32_t size[SGP_WIDE_SUM_LIMBS], square[SGP_WIDE_VARIANCE_LIMBS];
    const uint32_t value[] = {(uint32_t)count, (uint32_t)(count >> LIMB_BITS)};
    (void)size_of(sum, size);
    multiply(square, size, SGP_WIDE_SUM_LIMBS, size, SGP_WIDE_SUM_LIMBS);
    multiply(spread, squares, SGP_WIDE_SQUARES_LIMBS, value, 2);
    subtract_limbs(spread, square, SGP_WIDE_VARIANCE_LIMBS);
    return is_negative(spread, SGP_WIDE_VARIANCE_LIMBS);
}

double sgp_wide_variance(uint64_t count, const uint32_t sum[SGP_WIDE_SUM_LIMBS],
    const uint32_t squares[SGP_WIDE_SQUARES_LIMBS])
{
    uint32_t spread[SGP_WIDE_VARIANCE_LIMBS];
    return spread_of(count, sum, squares, spread)
               ? 0
               : to_double(spread, SGP_WIDE_VARIANCE_LIMBS, 2 * SGP_WIDE_BITS);
}

bool sgp_wide_is_possible(uint64_t count, const uint32_t sum[SGP_WIDE_SUM_LIMBS],
    const uint32_t squares[SGP_WIDE_SQUARES_LIMBS])
{
    uint32_t spread[SGP_WIDE_VARIANCE_LIMBS];
    if (count == 0)
        return is_zero(sum, SGP_WIDE_SUM_LIMBS) && is_zero(squares, SGP_WIDE_SQUARES_LIMBS);
    return !is_negative(squares, SGP_WIDE_SQUARES_LIMBS) && !spread_of(count, sum, squares, spread);
}

/* ---- means ---- */

/* limbs /= divisor, by half limbs. Returns whether there is a remainder. */
static bool divide(uint32_t *limbs, uint32_t count, uint64_t divisor)
{
    uint64_t rest = 0;
    sgp_assert(divisor > 0 && divisor < (uint64_t)1 << 48);
    for (uint32_t i = count; i-- > 0;) {
        const uint64_t high = rest << 16 | limbs[i] >> 16;
        const uint64_t low = high % divisor << 16 | (limbs[i] & 0xffff);
        limbs[i] = (uint32_t)(high / divisor << 16 | low / divisor);
        rest = low % divisor;
    }
    return rest != 0;
}

/* The nearest double of value / divisor^times. More limbs behind the point give the quotient of any
 * value above 0 at least 64 bits. Its last bit is 1 if there is a remainder. */
static double quotient(
    const uint32_t *value, uint32_t count, uint64_t divisor, uint32_t times, int bits_behind_point)
{
    enum { MORE = 5 };
    uint32_t limbs[SGP_WIDE_VARIANCE_LIMBS + MORE] = {0};
    bool more = false;
    sgp_assert(count <= SGP_WIDE_VARIANCE_LIMBS && times <= 2);
    memcpy(limbs + MORE, value, count * sizeof *limbs);
    for (uint32_t i = 0; i < times; i++)
        more = divide(limbs, count + MORE, divisor) || more;
    limbs[0] |= more;
    return to_double(limbs, count + MORE, bits_behind_point + MORE * LIMB_BITS);
}

double sgp_wide_mean(uint64_t count, const uint32_t sum[SGP_WIDE_SUM_LIMBS])
{
    uint32_t size[SGP_WIDE_SUM_LIMBS];
    const bool negative = size_of(sum, size);
    const double mean = quotient(size, SGP_WIDE_SUM_LIMBS, count, 1, SGP_WIDE_BITS);
    return negative ? -mean : mean;
}

double sgp_wide_deviation(uint64_t count, const uint32_t sum[SGP_WIDE_SUM_LIMBS],
    const uint32_t squares[SGP_WIDE_SQUARES_LIMBS])
{
    uint32_t spread[SGP_WIDE_VARIANCE_LIMBS];
    if (spread_of(count, sum, squares, spread))
        return 0;
    return sqrt(quotient(spread, SGP_WIDE_VARIANCE_LIMBS, count, 2, 2 * SGP_WIDE_BITS));
}

/* ---- text ---- */

void sgp_wide_write(const uint32_t *limbs, uint32_t count, char text[SGP_WIDE_TEXT_BYTES])
{
    uint32_t size[SGP_WIDE_SQUARES_LIMBS];
    sgp_assert(count > 0 && count <= SGP_WIDE_SQUARES_LIMBS);
    memcpy(size, limbs, count * sizeof *size);
    if (is_negative(limbs, count)) {
        negate(size, count);
        *text++ = '-';
    }
    while (count > 1 && size[count - 1] == 0)
        count--;
    text += snprintf(text, 9, "%x", size[count - 1]);
    while (--count > 0)
        text += snprintf(text, 9, "%08x", size[count - 1]);
}

static int digit_of(char character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

bool sgp_wide_read(const char *text, uint32_t digits, uint32_t *limbs, uint32_t count)
{
    const bool negative = text[0] == '-';
    const char *first = text + negative;
    const size_t length = strnlen(first, (size_t)digits + 1);
    sgp_assert(digits < 8 * count);
    if (length == 0 || length > digits || (first[0] == '0' && (length > 1 || negative)))
        return false;
    memset(limbs, 0, count * sizeof *limbs);
    for (size_t i = 0; i < length; i++) {
        const int digit = digit_of(first[length - 1 - i]);
        if (digit < 0)
            return false;
        limbs[i / 8] |= (uint32_t)digit << 4 * (i % 8);
    }
    if (negative)
        negate(limbs, count);
    return true;
}
