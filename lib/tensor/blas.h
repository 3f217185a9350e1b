/* SPDX-License-Identifier: Apache-2.0 */
/* Which BLAS this process has, and what it does, for blas_fit.c. On the caller's thread; nothing is
 * kept. */
#ifndef SGP_TENSOR_BLAS_H
#define SGP_TENSOR_BLAS_H

#include "sgp/blas.h"

/* The kernels in use. */
void sgp_blas_kernels(char ret_name[SGP_BLAS_NAME_BYTES]);

/* Whether these kernels use all that this processor can do. Unknown kernels count as suitable. */
bool sgp_blas_suit(const char *name);

/* Kernels worth trying on this processor, the best guess first; ends with NULL. */
const char *const *sgp_blas_candidates(void);

/* Processor and library, as far as the choice depends on them. */
void sgp_blas_key(char ret_text[SGP_TEXT_BYTES]);

/* Check products of the layers, and of odd sizes in all transpositions, against plain sums. Returns
 * 0, -ENOMEM, or SGP_E_STATE with *error filled: which product is wrong. */
int sgp_blas_verify(const struct sgp_blas_layer *layers, uint32_t count, struct sgp_error *error);

/* Multiplications and additions a second in the products of the layers, on one thread. 0 if there
 * is no memory. */
double sgp_blas_rate(const struct sgp_blas_layer *layers, uint32_t count);

#endif
