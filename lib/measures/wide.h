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

#endif
