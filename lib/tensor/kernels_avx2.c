/* SPDX-License-Identifier: Apache-2.0 */
/* The fast twin for x86-64 with AVX2 and F16C. It is compiled for both, and run only if the
 * processor has them. */
#include <immintrin.h>
#include <stdint.h>

/* The conversion turns values that are too large into infinities. So these are clamped first,
 * unless they are infinite. */
static inline void to_half_8(uint8_t *bytes, const float *values)
{
    const __m256 greatest = _mm256_set1_ps(65504), least = _mm256_set1_ps(-65504);
    const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    const __m256 infinite = _mm256_castsi256_ps(_mm256_set1_epi32(0x7f800000));
    __m256 v = _mm256_loadu_ps(values);
    __m256 finite = _mm256_cmp_ps(_mm256_and_ps(v, magnitude), infinite, _CMP_LT_OQ);
    v = _mm256_blendv_ps(v, _mm256_min_ps(_mm256_max_ps(v, least), greatest), finite);
    _mm_storeu_si128((__m128i *)(void *)bytes, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

static inline void from_half_8(float *values, const uint8_t *bytes)
{
    _mm256_storeu_ps(
        values, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)bytes)));
}

#define VECTOR_BYTES 32
#define TABLE sgp_kernels_table_avx2
#define NAME "avx2"
#define LARGER(a, b) ((integers)_mm256_max_epi32((__m256i)(a), (__m256i)(b)))
#define STREAM(address, vector) _mm256_stream_ps((address), (__m256)(vector))
#define END_STREAM() _mm_sfence()
#define ROOT(vector) ((floats)_mm256_sqrt_ps((__m256)(vector)))
#define TO_HALF(bytes, values) to_half_8((bytes), (values))
#define FROM_HALF(values, bytes) from_half_8((values), (bytes))
#include "kernels_vector.h"
