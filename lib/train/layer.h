/* SPDX-License-Identifier: Apache-2.0 */
/* A kind of layer: one file lib/train/layer_NOUN.c with one table, one row in layer.c.
 *
 * Between two layers a row lies pixel after pixel: height x width x channels. So a batch is a
 * matrix with a line for each pixel and a column for each channel, and what is good for the outputs
 * of dense layers is good for channels. Parameters are in the order of sgp_model_tensors.
 *
 * The model used is z = x / w and is never written down: a pass has `scale` = 1 / w. Gradients
 * are those with respect to z. Thread: the trainer's; a layer has no state but `kept`. */
#ifndef SGP_TRAIN_LAYER_H
#define SGP_TRAIN_LAYER_H

#include "product.h"
#include "words.h"

/* What a layer is handed. Matrices are rows x values of a row. Borrowed, and valid for one call. */
struct sgp_pass {
    const struct sgp_layer *layer;
    struct sgp_product *product; /* multiplies matrices in the precision of the network */
    const float *x;              /* all parameters, biased */
    float scale;                 /* 1 / w */
    size_t rows;
    const float *input;  /* what entered the layer */
    float *output;       /* what left it: forward writes it, backward reads it */
    const float *around; /* residual: what entered the first layer of its span */
    float *kept;         /* `kept` floats of the layer's own, from forward to backward and settle */
    float *scratch;      /* `scratch` floats until the call returns */
    bool training;       /* dropout and norm batch look at it */
    uint64_t chance;     /* differs from layer to layer, step to step and node to node */

    /* backward only */
    float *delta;    /* gradient with respect to `output`; may be overwritten */
    float *below;    /* written: with respect to `input`. NULL: not needed */
    float *gradient; /* all parameters; those of the layer are written */
};

struct sgp_layer_methods {
    const char *word; /* that a layer begins with */
    /* Read the other words into *layer. 0, or SGP_E_CONFIG with the error filled. */
    int (*read)(struct sgp_words *words, struct sgp_layer *layer);
    /* layer->input is known and has at most SGP_INPUTS_MAX values: fill layer->output, or say
     * why it does not suit. layer - number + 1 is the first layer of the model. What has too
     * many values or parameters is the caller's to refuse. */
    int (*suit)(struct sgp_layer *layer, uint32_t number, struct sgp_error *error);
    /* Write the words behind the first. */
    void (*write)(const struct sgp_layer *layer, struct sgp_text *text);
    /* Its tensors: names, shapes and first values; the caller counts and places them. NULL:
     * none. */
    uint32_t (*tensors)(const struct sgp_layer *layer,
        struct sgp_model_tensor ret_tensors[static SGP_LAYER_TENSORS_MAX]);
    /* Floats of its own for batches of up to `rows` rows. NULL: 0. */
    uint64_t (*kept)(const struct sgp_layer *layer, uint64_t rows);
    uint64_t (*scratch)(const struct sgp_layer *layer, uint64_t rows);
    /* The largest product of a step of `rows` rows (written in any case), and whether OpenBLAS is asked
     * for it, on the way back if `back`. NULL: the layer has none. */
    bool (*product)(const struct sgp_layer *layer, uint32_t rows, bool back,
        struct sgp_blas_layer *ret_product);
    void (*forward)(const struct sgp_pass *pass);
    void (*backward)(const struct sgp_pass *pass);
    /* After the optimiser's step: write the statistics that forward readied to x. NULL: it has
     * none. */
    void (*settle)(const struct sgp_pass *pass, float *x);
    bool by_shape; /* it goes by more of the input's shape than the number of its values */
};

/* Of a layer's kind. */
const struct sgp_layer_methods *sgp_layer_methods(enum sgp_layer_kind kind);

/* The kind whose word that is, or 0. */
enum sgp_layer_kind sgp_layer_find(const char *word);

/* All words, "dense, conv, ...". */
void sgp_layer_words(struct sgp_text *text);

extern const struct sgp_layer_methods sgp_layer_dense, sgp_layer_conv, sgp_layer_pool,
    sgp_layer_norm, sgp_layer_dropout, sgp_layer_embedding, sgp_layer_residual;

#endif
