/* SPDX-License-Identifier: Apache-2.0 */
/* What the BLAS in this process is and does, for blas_fit.c. Thread: the caller's; nothing is kept. */
#ifndef SGP_TENSOR_BLAS_H
#define SGP_TENSOR_BLAS_H

#include "sgp/blas.h"

/* The kernels in use. */
void sgp_blas_kernels(char ret_name[SGP_BLAS_NAME_BYTES]);

/* Whether these kernels use what this processor can do. Those that are not known do. */
bool sgp_blas_suit(const char *name);

/* Kernels worth trying on this processor, the best guess first; ends with NULL. */
const char *const *sgp_blas_candidates(void);

/* Processor and library, as far as a choice depends on them. */
void sgp_blas_key(char ret_text[SGP_TEXT_BYTES]);

/* Products of the layers, and of odd sizes in all transpositions, against plain sums. Returns 0, -ENOMEM, or
 * SGP_E_STATE with *error filled: which product is wrong. */
int sgp_blas_verify(const struct sgp_blas_layer *layers, uint32_t count, struct sgp_error *error);

/* Multiplications and additions a second in the products of the layers, on one thread; 0 if there is no memory. */
double sgp_blas_rate(const struct sgp_blas_layer *layers, uint32_t count);

#endif
