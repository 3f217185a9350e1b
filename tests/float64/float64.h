/* SPDX-License-Identifier: Apache-2.0 */
/* What the sources of the library are compiled with for a simulator whose vectors are float64: the same text, with
 * another type of value. Put before everything else by the compiler's -include, so all that is declared by
 * others comes first, and means what it says. */
#ifndef FLOAT64_H
#define FLOAT64_H

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define float double
#define fabsf fabs
#define copysignf copysign
#define sqrtf sqrt
#undef FLT_EPSILON
#define FLT_EPSILON DBL_EPSILON
#undef FLT_MIN
#define FLT_MIN DBL_MIN

/* The plain loops alone: the other kernels are written for 32 bits. */
#define sgp_kernels_table_portable sgp_kernels_table_reference
#define sgp_kernels_table_avx2 sgp_kernels_table_reference

#endif
