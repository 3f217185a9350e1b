/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of numbers as wide integers: they have no rounding, so they depend on no order.
 *
 * A sum is an integer of multiples of 2^-192, a sum of squares one of multiples of 2^-384. Both are
 * arrays of limbs of 32 bits, the lowest first, in two's complement. A float32 is a whole multiple
 * of 2^-192. Smaller parts of a double are rounded to the nearest multiple. Numbers are below 2^129
 * in size, and at most 2^60 of them are added. Pure; no state. */
#ifndef SGP_MEASURES_WIDE_H
#define SGP_MEASURES_WIDE_H

#include "sgp/measures.h"

#define SGP_WIDE_BITS 192           /* of a sum, behind the point */
#define SGP_WIDE_VARIANCE_LIMBS 24u /* of sgp_wide_variance */

/* sum += number */
void sgp_wide_add(uint32_t sum[SGP_WIDE_SUM_LIMBS], double number);
/* squares += number^2 */
void sgp_wide_add_square(uint32_t squares[SGP_WIDE_SQUARES_LIMBS], double number);

/* limbs += others, both of `count` limbs */
void sgp_wide_add_limbs(uint32_t *limbs, const uint32_t *others, uint32_t count);

/* The nearest doubles; -0 never. */
double sgp_wide_sum(const uint32_t sum[SGP_WIDE_SUM_LIMBS]);
double sgp_wide_squares(const uint32_t squares[SGP_WIDE_SQUARES_LIMBS]);

/* sum - count, rounded once. */
double sgp_wide_less(const uint32_t sum[SGP_WIDE_SUM_LIMBS], uint64_t count);

/* count * squares - sum^2, rounded once: count^2 times the variance, never below 0. */
double sgp_wide_variance(uint64_t count, const uint32_t sum[SGP_WIDE_SUM_LIMBS],
    const uint32_t squares[SGP_WIDE_SQUARES_LIMBS]);

/* ---- of 0 < count < 2^48 numbers (asserted) ---- */

/* sum / count, rounded once. */
double sgp_wide_mean(uint64_t count, const uint32_t sum[SGP_WIDE_SUM_LIMBS]);

/* The population deviation: the root of the variance, each rounded once. 0 only if all numbers are
 * equal. */
double sgp_wide_deviation(uint64_t count, const uint32_t sum[SGP_WIDE_SUM_LIMBS],
    const uint32_t squares[SGP_WIDE_SQUARES_LIMBS]);

/* Whether the sums can be those of `count` numbers: count * squares >= sum^2. */
bool sgp_wide_is_possible(uint64_t count, const uint32_t sum[SGP_WIDE_SUM_LIMBS],
    const uint32_t squares[SGP_WIDE_SQUARES_LIMBS]);

/* ---- as text: hexadecimal digits, "-" before them if below 0, no zeros in front; 0 is "0" ---- */

#define SGP_WIDE_TEXT_BYTES (8 * SGP_WIDE_SQUARES_LIMBS + 2) /* of a sum or a sum of squares */

/* The text of an integer of `count` limbs, at most those of a sum of squares. */
void sgp_wide_write(const uint32_t *limbs, uint32_t count, char text[SGP_WIDE_TEXT_BYTES]);

/* The integer of a text with at most `digits` digits, at most 8 * count - 1. False for any other
 * text; *limbs is then undefined. */
bool sgp_wide_read(const char *text, uint32_t digits, uint32_t *limbs, uint32_t count);

#endif
