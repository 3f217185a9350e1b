/* The tables of kernels that kernels.c chooses from; see sgp/kernels.h for what each kernel does. */
#ifndef SGP_TENSOR_TWINS_H
#define SGP_TENSOR_TWINS_H

#include "sgp/kernels.h"

extern const struct sgp_kernels sgp_kernels_table_reference;
extern const struct sgp_kernels sgp_kernels_table_portable;
#ifdef __x86_64__
extern const struct sgp_kernels sgp_kernels_table_avx2;
#endif

#endif
