/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of kernels from which kernels.c chooses; see sgp/kernels.h for what each kernel
 * does. */
#ifndef SGP_TENSOR_KERNELS_TABLES_H
#define SGP_TENSOR_KERNELS_TABLES_H

#include "sgp/kernels.h"

/* Constants of the exponential in every twin: exp(v) = 2^n exp(r) with an integer n and |r| <=
 * ln(2) / 2. Adding EXP_ROUNDER leaves n, rounded to the nearest, in the low bits of the sum.
 * Shifted to the place of a float's exponent and biased, these bits are 2^n. EXP_LN2_HIGH has so
 * few bits that n times it is exact. exp(r) - 1 is its series to r^7 / 7!. */
#define EXP_LOG2_E 0x1.715476p+0f
#define EXP_ROUNDER 0x1.8p+23f
#define EXP_LN2_HIGH 0x1.62e4p-1f
#define EXP_LN2_LOW 0x1.7f7d1cp-20f
#define EXP_SHIFT 23
#define EXP_BIAS (127u << EXP_SHIFT)
#define EXP_LEAST (-87.0f)  /* smaller values are clamped, because 2^n must be a normal number */
#define EXP_GREATEST 88.0f  /* greater values are clamped */
#define TANH_GREATEST 10.0f /* tanh of it is 1 to the last bit */

extern const struct sgp_kernels sgp_kernels_table_reference;
extern const struct sgp_kernels sgp_kernels_table_portable;
#ifdef __x86_64__
extern const struct sgp_kernels sgp_kernels_table_avx2;
#endif

#endif
