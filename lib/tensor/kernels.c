/* SPDX-License-Identifier: Apache-2.0 */
/* The choice between the twins of a kernel. Any thread.
 *
 * There is no twin for AVX-512, because these kernels wait for memory. Vectors of 64 bytes were
 * measured to be no faster than those of 32, in the cache and out of it. */
#include "kernels_tables.h"

#include <math.h>
#include <stdatomic.h>
#ifdef __x86_64__
#include <cpuid.h>

/* Not every compiler's __builtin_cpu_supports knows F16C. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

size_t sgp_kernels_all(const struct sgp_kernels *ret_twins[static SGP_KERNELS_TWINS_MAX])
{
    size_t count = 0;
    ret_twins[count++] = &sgp_kernels_table_reference;
    ret_twins[count++] = &sgp_kernels_table_portable;
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && has_f16c())
        ret_twins[count++] = &sgp_kernels_table_avx2;
#endif
    return count;
}

const struct sgp_kernels *sgp_kernels_reference(void)
{
    return &sgp_kernels_table_reference;
}

/* The processor is queried once. In a virtual machine each query takes a microsecond, and the
 * kernels are chosen for every block. */
const struct sgp_kernels *sgp_kernels_best(void)
{
    static _Atomic(const struct sgp_kernels *) best;
    const struct sgp_kernels *known = atomic_load_explicit(&best, memory_order_relaxed);
    if (known == NULL) {
        const struct sgp_kernels *twins[SGP_KERNELS_TWINS_MAX];
        known = twins[sgp_kernels_all(twins) - 1];
        atomic_store_explicit(&best, known, memory_order_relaxed);
    }
    return known;
}

uint64_t sgp_kernels_stride(uint64_t count)
{
    const uint64_t least = 64;
    uint64_t stride = count / SGP_KERNELS_RUN / least;
    return stride > 0 ? stride : 1;
}

double sgp_relative_difference(double difference, double norm)
{
    if (difference == 0.0)
        return 0.0;
    return isfinite(difference) ? sqrt(difference) / sqrt(norm) : INFINITY;
}
