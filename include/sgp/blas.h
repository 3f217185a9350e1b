/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of OpenBLAS that fit the processor.
 *
 * OpenBLAS chooses its kernels when it is loaded, by the model of the processor. A model that is newer than the
 * library is taken for an old one, and everything trains at a fifth of the speed, in silence. Here a program asks
 * what was chosen, and what the processor can do. Where these do not fit, it tries other kernels, each in a process
 * of its own: their products of the model's shapes and of odd ones are held against plain sums, and timed. Then it
 * starts itself once more with the fastest that were right (OPENBLAS_CORETYPE). What a user has set there
 * is never overridden.
 *
 * Thread: the first of the process, before it has others of its own. */
#ifndef SGP_BLAS_H
#define SGP_BLAS_H

#include "sgp/sink.h"
#include "sgp/status.h"

#define SGP_BLAS_NAME_BYTES 32u /* of kernels, as OpenBLAS calls them */
#define SGP_BLAS_LAYERS_MAX 64u
#define SGP_BLAS_TEXT_BYTES 128u

/* A product that will be asked for: `rows` of `inputs` values by a matrix of outputs x inputs, and what leads
 * back through it. Each from 1 to 2^22; of what is larger than 1024, about as much is tried. */
struct sgp_blas_layer {
    uint32_t rows, inputs, outputs;
};

struct sgp_blas {
    char kernels[SGP_BLAS_NAME_BYTES]; /* in use */
    char instead
        [SGP_BLAS_NAME_BYTES]; /* of these, for which OpenBLAS took the processor; "": of none */
    bool by_user;              /* OPENBLAS_CORETYPE was set when the program was started */
    bool fit;                  /* they use what the processor can do, as far as is known */
    bool tried;                /* they do not, and no others were found to be better */
};

struct sgp_blas_wish {
    char *const *arguments; /* of main, to start again with */
    const char *
        directory; /* to remember the choice in (a file `blas`), by processor and library; NULL: not */
    const struct sgp_blas_layer *layers; /* NULL: nothing is tried, what is remembered is used */
    uint32_t count;
    const struct sgp_sink *sink; /* told of what was tried, and why it was excluded; may be NULL */
};

/* A process that was started to try kernels does that here, and ends. Any other returns. First thing in main. */
SGP_API void sgp_blas_begin(void);

/* See to it that the kernels fit. Does not return if it starts the program again: the process stays, its
 * memory and its file descriptors that are closed on exec do not. Returns 0 with *ret_blas filled, also where nothing
 * better was found; SGP_E_STATE with *error filled if the products of the layers are wrong with the kernels in use. */
SGP_API int sgp_blas_fit(
    const struct sgp_blas_wish *wish, struct sgp_error *error, struct sgp_blas *ret_blas);

/* "SkylakeX", "Cooperlake (chosen: OpenBLAS took this processor for Prescott)", "Haswell (by OPENBLAS_CORETYPE)". */
SGP_API void sgp_blas_text(const struct sgp_blas *blas, char ret_text[SGP_BLAS_TEXT_BYTES]);

#endif
