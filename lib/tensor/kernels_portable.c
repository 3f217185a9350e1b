/* SPDX-License-Identifier: Apache-2.0 */
/* The fast twin for any processor: vectors of 16 bytes (SSE2, NEON). */
#define VECTOR_BYTES 16
#define TABLE sgp_kernels_table_portable
#define NAME "portable"
#include "kernels_vector.h"
