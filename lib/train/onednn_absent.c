/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces onednn.c in a build without oneDNN: creation fails, so no product is ever requested. */
#include "onednn.h"

int sgp_onednn_create(enum sgp_onednn_operands operands, uint32_t threads, struct sgp_error *error,
    struct sgp_onednn **ret_onednn)
{
    (void)operands;
    (void)threads;
    (void)ret_onednn;
    return sgp_fail(error, SGP_E_CONFIG, "this sgpd was built without oneDNN");
}

void sgp_onednn_destroy(struct sgp_onednn *onednn)
{
    sgp_assert(onednn == NULL);
}

int sgp_onednn_multiply(struct sgp_onednn *onednn, enum sgp_onednn_form form, float *c,
    const void *a, const void *b, size_t rows, size_t columns, size_t inner)
{
    (void)onednn;
    (void)form;
    (void)c;
    (void)a;
    (void)b;
    (void)rows;
    (void)columns;
    (void)inner;
    return SGP_E_STATE;
}
