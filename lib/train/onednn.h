/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by oneDNN, whose operands are bfloat16 and whose results are float32.
 *
 * The library is libdnnl.so.2, version 2.6 or a later 2.x. It is loaded when a first product is
 * requested, so a process that trains in float32 neither needs nor loads it. The library stays
 * loaded, because it generates code for this processor and keeps threads. A build without its
 * header uses onednn_absent.c instead of onednn.c.
 *
 * oneDNN 2.6 has a matmul for bfloat16 if the processor has AVX-512 (BW, DQ, VL). Without
 * AVX512-BF16 it emulates bfloat16, which is slower than float32 (developer guide, "Data types").
 * So that case is refused here.
 *
 * Thread: one at a time for each engine. No other call may run beside the first create(). The
 * number of threads of a product is set for the calling thread alone. */
#ifndef SGP_TRAIN_ONEDNN_H
#define SGP_TRAIN_ONEDNN_H

#include "sgp/status.h"

enum sgp_onednn_operands {
    SGP_ONEDNN_BF16,
    SGP_ONEDNN_FLOAT32, /* on every processor: tests check the layout of matrices with it */
};

/* c = a b, row-major. The form says how a and b lie in memory, and whether the product is added to
 * c. c is rows x columns. */
enum sgp_onednn_form {
    SGP_ONEDNN_B_TRANSPOSED,       /* a: rows x inner, b: columns x inner */
    SGP_ONEDNN_A_TRANSPOSED,       /* a: inner x rows, b: inner x columns */
    SGP_ONEDNN_A_TRANSPOSED_ADDED, /* a: inner x rows, b: inner x columns, and c = c + a b */
    SGP_ONEDNN_PLAIN,              /* a: rows x inner, b: inner x columns */
    SGP_ONEDNN_FORMS,
};

struct sgp_onednn;

/* Load oneDNN, prepare the products and try one of them. Returns 0, -ENOMEM, or SGP_E_CONFIG with
 * *error (may be NULL) filled. The error says what is missing, but not what to configure
 * instead. */
int sgp_onednn_create(enum sgp_onednn_operands operands, uint32_t threads, struct sgp_error *error,
    struct sgp_onednn **ret_onednn);
void sgp_onednn_destroy(struct sgp_onednn *onednn); /* NULL is fine */

/* c = a b for sizes of at least 1; every value of c is written. a and b have the engine's operand
 * type (bfloat16: uint16_t in the processor's byte order). Allocates within oneDNN. Returns 0,
 * -ENOMEM, or SGP_E_STATE if oneDNN refuses. */
int sgp_onednn_multiply(struct sgp_onednn *onednn, enum sgp_onednn_form form, float *c,
    const void *a, const void *b, size_t rows, size_t columns, size_t inner);

#endif
