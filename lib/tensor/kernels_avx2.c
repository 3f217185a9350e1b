/* SPDX-License-Identifier: Apache-2.0 */
/* The fast twin for x86-64 with AVX2: compiled with -mavx2, run only where the processor has it. */
#include <immintrin.h>

#define VECTOR_BYTES 32
#define TABLE sgp_kernels_table_avx2
#define NAME "avx2"
#define LARGER(a, b) ((integers)_mm256_max_epi32((__m256i)(a), (__m256i)(b)))
#define STREAM(address, vector) _mm256_stream_ps((address), (__m256)(vector))
#define END_STREAM() _mm_sfence()
#include "kernels_vector.h"
