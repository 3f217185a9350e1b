/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels of OpenBLAS suit a processor, whether their products are correct, and how fast they
 * are, for blas_fit.c. On the caller's thread; nothing is kept. */
#ifndef SGP_TENSOR_BLAS_H
#define SGP_TENSOR_BLAS_H

#include "sgp/blas.h"

/* Whether these kernels use all that this processor can do. Unknown kernels count as suitable. */
bool sgp_blas_suit(const char *name);

/* Kernels worth trying on this processor, the best guess first; ends with NULL. */
const char *const *sgp_blas_candidates(void);

/* Processor and library, as far as the choice depends on them. `build` is of sgp_openblas_build. */
void sgp_blas_key(const char *build, char ret_text[SGP_TEXT_BYTES]);

/* Check products of the layers, and of odd sizes in all transpositions, against plain sums. Returns
 * 0, -ENOMEM, or SGP_E_STATE with *error filled: which product is wrong. */
int sgp_blas_verify(const struct sgp_blas_layer *layers, uint32_t count, struct sgp_error *error);

/* Multiplications and additions a second in the products of the layers, on one thread. 0 if there
 * is no memory. */
double sgp_blas_rate(const struct sgp_blas_layer *layers, uint32_t count);

#endif
