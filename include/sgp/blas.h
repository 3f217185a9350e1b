/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by OpenBLAS, with kernels that fit the processor.
 *
 * OpenBLAS (libopenblas.so.0) is loaded when a product is needed, because its threads begin when it
 * is loaded. It then chooses its kernels by the model of the processor. It takes a model that is
 * newer than the library for an old one, and everything trains at a fifth of the speed, without a
 * message. Here a program compares the choice with the processor's abilities before it loads the
 * library. If they do not fit, it tries other kernels, each in a process of its own: their products
 * of the model's shapes and of odd ones are compared with plain sums, and timed. Then it loads the
 * library with the fastest correct kernels. A user's setting of OPENBLAS_CORETYPE is never
 * overridden.
 *
 * Thread: of sgp_blas_fit the only one of the process. Of the others any, one call at a time:
 * OpenBLAS has one pool of threads for the process. */
#ifndef SGP_BLAS_H
#define SGP_BLAS_H

#include "sgp/sink.h"
#include "sgp/status.h"

#define SGP_BLAS_NAME_BYTES 32u /* of kernels, as OpenBLAS calls them */
#define SGP_BLAS_TEXT_BYTES 128u

/* ---- products ---- */

/* A product of two row-major matrices without padding: left (rows x inner, or its transpose) by
 * right (inner x columns, or its transpose). Each size from 1 to INT_MAX. */
struct sgp_blas_product {
    bool left_transposed, right_transposed;
    size_t rows, columns, inner;
};

/* Load OpenBLAS, unless it is loaded. Returns 0, or SGP_E_CONFIG with *error filled: the library
 * that is missing, and its package. */
int sgp_blas_load(struct sgp_error *error);

/* out[rows x columns] = scale * left * right; with `add`, that is added to out. Every value of out
 * is written, and out must not overlap the operands. If OpenBLAS is not loaded yet, this loads it.
 * If it cannot be loaded, out is filled with NaN. */
void sgp_blas_multiply(const struct sgp_blas_product *product, float scale, const float *left,
    const float *right, bool add, float *out);

/* So many threads multiply from now on in this process, at least 1; without a call as many as
 * OpenBLAS begins. Nothing is loaded. */
void sgp_blas_set_threads(uint32_t threads);

/* ---- kernels ---- */

/* A product that the program will need: `rows` of `inputs` values by a matrix of outputs x inputs,
 * and its two backward products. Each from 1 to 2^22; above 1024, a part of about that size is
 * tried. */
struct sgp_blas_layer {
    uint32_t rows, inputs, outputs;
};

struct sgp_blas {
    char kernels[SGP_BLAS_NAME_BYTES]; /* in use; "": OpenBLAS is not needed, and not loaded */
    /* The kernels that OpenBLAS would have chosen by mistake; "": none. */
    char instead[SGP_BLAS_NAME_BYTES];
    bool by_user; /* OPENBLAS_CORETYPE was set when the program was started */
    bool tried;   /* the kernels do not use the processor's abilities; no better ones were found */
};

struct sgp_blas_wish {
    /* The directory that stores the choice (a file `blas`), by processor and library; NULL: it is
     * not stored. */
    const char *directory;
    const struct sgp_blas_layer *layers;
    uint32_t count;   /* of layers; 0: the program needs no product, and nothing is done */
    uint32_t threads; /* that will multiply; no others are begun. 0: as OpenBLAS chooses */
    /* Gets the tried kernels, and why they were excluded; may be NULL. */
    const struct sgp_sink *sink;
};

/* Load OpenBLAS with kernels that fit. The processes that try kernels are forks of this one, which
 * keep none of its descriptors. Returns 0 with *ret_blas filled, also if nothing better was found;
 * SGP_E_STATE with *error filled if the products of the layers are wrong with the kernels in use;
 * SGP_E_CONFIG as sgp_blas_load; -ENOMEM. If OpenBLAS was loaded before, its kernels are only
 * checked. */
int sgp_blas_fit(
    const struct sgp_blas_wish *wish, struct sgp_error *error, struct sgp_blas *ret_blas);

/* "SkylakeX", "Cooperlake (chosen: OpenBLAS took this processor for Prescott)", "Haswell (by
 * OPENBLAS_CORETYPE)", "unused". */
void sgp_blas_text(const struct sgp_blas *blas, char ret_text[SGP_BLAS_TEXT_BYTES]);

#endif
