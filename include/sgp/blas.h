/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of OpenBLAS that fit the processor.
 *
 * OpenBLAS chooses its kernels when it is loaded, by the model of the processor. It takes a model
 * that is newer than the library for an old one, and everything trains at a fifth of the speed,
 * without a message. Here a program compares the choice with the processor's abilities. If they do
 * not fit, it tries other kernels, each in a process of its own: their products of the model's
 * shapes and of odd ones are compared with plain sums, and timed. Then it starts again with the
 * fastest correct kernels (OPENBLAS_CORETYPE). A user's setting of that variable is never
 * overridden.
 *
 * Thread: the first of the process, before it has others of its own. */
#ifndef SGP_BLAS_H
#define SGP_BLAS_H

#include "sgp/sink.h"
#include "sgp/status.h"

#define SGP_BLAS_NAME_BYTES 32u /* of kernels, as OpenBLAS calls them */
#define SGP_BLAS_LAYERS_MAX 64u
#define SGP_BLAS_TEXT_BYTES 128u

/* A product that the program will need: `rows` of `inputs` values by a matrix of outputs x inputs,
 * and its two backward products. Each from 1 to 2^22; above 1024, a part of about that size is
 * tried. */
struct sgp_blas_layer {
    uint32_t rows, inputs, outputs;
};

struct sgp_blas {
    char kernels[SGP_BLAS_NAME_BYTES]; /* in use */
    /* The kernels that OpenBLAS had chosen by mistake; "": none. */
    char instead[SGP_BLAS_NAME_BYTES];
    bool by_user; /* OPENBLAS_CORETYPE was set when the program was started */
    bool fit;     /* the kernels use the processor's abilities, as far as known */
    bool tried;   /* they do not, and no better ones were found */
};

struct sgp_blas_wish {
    char *const *arguments; /* of main, for starting again */
    /* The directory that stores the choice (a file `blas`), by processor and library; NULL: it is
     * not stored. */
    const char *directory;
    const struct sgp_blas_layer *layers; /* NULL: nothing is tried, and the stored choice is used */
    uint32_t count;
    /* Gets the tried kernels, and why they were excluded; may be NULL. */
    const struct sgp_sink *sink;
    /* Called with true at once before the program starts again, and with false if that fails; may
     * be NULL. What it leaves open in between, and the variables that it sets, reach the next start
     * and no trial. */
    void (*hand_over)(void *context, bool on);
    void *context; /* of hand_over */
};

/* In a process that was started to try kernels: try them, and end. In any other: return. Call it
 * first in main. */
void sgp_blas_begin(void);

/* Make the kernels fit. It does not return if it starts the program again: the process stays, its
 * memory and its close-on-exec file descriptors do not. Returns 0 with *ret_blas filled, also if
 * nothing better was found; SGP_E_STATE with *error filled if the products of the layers are wrong
 * with the present kernels. */
int sgp_blas_fit(
    const struct sgp_blas_wish *wish, struct sgp_error *error, struct sgp_blas *ret_blas);

/* "SkylakeX", "Cooperlake (chosen: OpenBLAS took this processor for Prescott)", "Haswell (by
 * OPENBLAS_CORETYPE)". */
void sgp_blas_text(const struct sgp_blas *blas, char ret_text[SGP_BLAS_TEXT_BYTES]);

#endif
