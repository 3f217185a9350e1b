/* SPDX-License-Identifier: Apache-2.0 */
/* A kind of layer: one file lib/train/layer_NOUN.c with one table, and one row in layer.c.
 *
 * Between two layers a row lies pixel after pixel: height x width x channels. So a batch is a
 * matrix with a line for each pixel and a column for each channel. Functions for the outputs of
 * dense layers therefore also work for channels. Parameters are in the order of sgp_model_tensors.
 *
 * The model in use is z = x / w, which is never stored: a pass has `scale` = 1 / w. Gradients are
 * those with respect to z.
 *
 * Thread: the trainer's; a layer has no state but `kept` and `own`. */
#ifndef SGP_TRAIN_LAYER_H
#define SGP_TRAIN_LAYER_H

#include "product.h"
#include "words.h"

/* The arguments of a layer. Matrices are rows x values of a row. Borrowed, and valid for one
 * call. */
struct sgp_pass {
    const struct sgp_layer *layer;
    struct sgp_product *product; /* multiplies matrices in the precision of the network */
    const float *x;              /* all parameters, biased; of a local layer, those of local ones */
    float scale;                 /* 1 / w; 1 of a local layer */
    size_t rows;
    size_t rows_before;  /* of the earlier passes of this step; read by norm batch in training */
    const float *input;  /* the input of the layer */
    float *output;       /* the output of the layer: forward writes it, backward reads it */
    const float *around; /* residual: the input of the first layer of its span */
    float *kept;         /* the layer's own `kept` floats, from forward to backward and settle */
    float *scratch;      /* `scratch` floats until the call returns */
    bool training;       /* read by dropout and norm batch */
    bool frozen;         /* statistics stay as they are; read by norm batch in training */
    uint64_t chance;     /* random number that differs by layer, step and node */

    /* backward only */
    float *delta; /* gradient with respect to `output`; may be overwritten */
    /* Written: gradient with respect to `input`. NULL: not needed. There is room for the output,
     * too. */
    float *below;
    float *gradient; /* as x; the gradients of the layer are written */
    /* Not NULL: instead of the gradients, add for each row the square of the length of its own
     * gradient, and write to `own` what weigh needs. `gradient` is then scratch. No layer in which
     * rows meet is asked. */
    double *squares;

    float *own;           /* the layer's `own` floats of each row, from backward to weigh */
    const float *factors; /* weigh only: one for each row */
};

struct sgp_layer_methods {
    const char *word; /* the first word of a layer */
    /* Read the other words into *layer. Returns 0, or SGP_E_CONFIG with the error filled. */
    int (*read)(struct sgp_words *words, struct sgp_layer *layer);
    /* Fill layer->output, or report why the layer does not fit its input. layer->input is known and
     * has at most SGP_INPUTS_MAX values. layer - number + 1 is the first layer of the model. The
     * caller refuses a layer with too many values or parameters. */
    int (*suit)(struct sgp_layer *layer, uint32_t number, struct sgp_error *error);
    /* Write the words behind the first. */
    void (*write)(const struct sgp_layer *layer, struct sgp_text *text);
    /* The layer's tensors: names, shapes and initial values. The caller counts and places them.
     * NULL: none. */
    uint32_t (*tensors)(const struct sgp_layer *layer,
        struct sgp_model_tensor ret_tensors[static SGP_LAYER_TENSORS_MAX]);
    /* Floats of the layer's own memory for batches of up to `rows` rows. NULL: 0. */
    uint64_t (*kept)(const struct sgp_layer *layer, uint64_t rows);
    uint64_t (*scratch)(const struct sgp_layer *layer, uint64_t rows);
    /* The largest product of a step of `rows` rows, which is always written. Returns whether
     * OpenBLAS computes it, in the backward pass if `back`. NULL: the layer has none. */
    bool (*product)(const struct sgp_layer *layer, uint32_t rows, bool back,
        struct sgp_blas_layer *ret_product);
    void (*forward)(const struct sgp_pass *pass);
    void (*backward)(const struct sgp_pass *pass);
    /* After a backward pass with squares: write the gradients, the sum over rows of factors[row]
     * times the row's own. The row's own is that which was measured, to the bit, so no row adds
     * more, however its terms have cancelled. May change `own` and `kept`. NULL: the layer has no
     * parameters. */
    void (*weigh)(const struct sgp_pass *pass);
    /* Floats that weigh needs of each row; they lie row after row. NULL: 0. */
    uint64_t (*own)(const struct sgp_layer *layer);
    /* After the optimiser's step, write to x the statistics that forward left in `kept`. NULL: the
     * layer has none. */
    void (*settle)(const struct sgp_layer *layer, const float *kept, float *x);
    /* the layer depends on the input's shape, not only on the number of its values */
    bool by_shape;
    /* Whether rows meet in the layer, so that none has a gradient of its own. NULL: they do not. */
    bool (*meets)(const struct sgp_layer *layer);
};

/* The methods of a layer's kind. */
const struct sgp_layer_methods *sgp_layer_methods(enum sgp_layer_kind kind);

/* The kind with that word, or 0. */
enum sgp_layer_kind sgp_layer_find(const char *word);

/* All words, "dense, conv, ...". */
void sgp_layer_words(struct sgp_text *text);

extern const struct sgp_layer_methods sgp_layer_dense, sgp_layer_conv, sgp_layer_pool,
    sgp_layer_norm, sgp_layer_dropout, sgp_layer_embedding, sgp_layer_residual;

#endif
