/* The fast twin for x86-64 with AVX-512 F and DQ: run only where the processor has them. */
#define VECTOR_BYTES 64
#define TABLE sgp_kernels_table_avx512
#define NAME "avx512"
#include "kernels_vector.h"
