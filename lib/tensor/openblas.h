/* SPDX-License-Identifier: Apache-2.0 */
/* The loaded OpenBLAS: what it says of itself. Products are in sgp/blas.h. Any thread, after
 * sgp_blas_load or a product has loaded it. */
#ifndef SGP_TENSOR_OPENBLAS_H
#define SGP_TENSOR_OPENBLAS_H

#include "sgp/blas.h"

/* Whether OpenBLAS is loaded. */
bool sgp_openblas_is_loaded(void);

/* The kernels in use, as OpenBLAS calls them; borrowed. */
const char *sgp_openblas_kernels(void);

/* Version and build of the library; borrowed. */
const char *sgp_openblas_build(void);

#endif
