/* SPDX-License-Identifier: Apache-2.0 */
/* The fast twin for any processor: vectors of 16 bytes (SSE2, NEON). */
#ifdef __SSE2__
#include <emmintrin.h>
#define ROOT(vector) ((floats)_mm_sqrt_ps((__m128)(vector)))
#elif defined(__aarch64__)
#include <arm_neon.h>
#define ROOT(vector) ((floats)vsqrtq_f32((float32x4_t)(vector)))
#endif
#define VECTOR_BYTES 16
#define TABLE sgp_kernels_table_portable
#define NAME "portable"
#include "kernels_vector.h"
