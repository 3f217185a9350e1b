/* SPDX-License-Identifier: Apache-2.0 */
/* The fast twin for x86-64 with AVX2: compiled with -mavx2, run only where the processor has it. */
#define VECTOR_BYTES 32
#define TABLE sgp_kernels_table_avx2
#define NAME "avx2"
#include "kernels_vector.h"
