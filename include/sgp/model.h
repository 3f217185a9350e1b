/* SPDX-License-Identifier: Apache-2.0 */
/* Models: a chain of layers, and their losses.
 *
 * A model is a description without any learnt number: plain data, copied by assignment. A text
 * names its layers from input to output, separated by commas:
 *
 *   input CxHxW                     the shape of a row; only before the first layer
 *   dense N [ACT]                   y = act(W a + b)
 *   conv N WINDOW [stride S] [PAD] [ACT]
 *                                   N channels of weighted sums over a window, with a bias
 *   pool [max|avg] WINDOW|all [stride S] [PAD]
 *                                   the greatest value or the mean of a window, of each channel
 *   norm batch|layer|group G [ACT]  (a - mean) / sqrt(variance + epsilon) * scale + shift
 *   dropout P                       in training each value is 0 with probability P, and is
 *                                   otherwise multiplied by 1 / (1 - P)
 *   embedding V x D                 D values for each feature, a whole number below V
 *   residual K [ACT]                the output of the last K layers plus the input of the first
 *
 * ACT is none, relu, tanh or sigmoid; the default is none. WINDOW and S are a number or HxW. PAD is
 * `same` or `valid`. With `same`, a window begins (window - 1) / 2 before its pixel, and the output
 * has ceil(size / stride) pixels. Zeros surround the image, but pooling leaves them out. With
 * `valid`, all windows lie within the image, which has floor((size - window) / stride) + 1 of them.
 * The default of conv is `same`, and that of pool `valid`. The default stride of conv is 1, and
 * that of pool its window. Cross-entropy includes a softmax, so its last layer has no activation.
 *
 * `norm batch` uses the mean and variance of each channel over rows and pixels of the batch (Ioffe,
 * Szegedy 2015). `norm group G` uses those of each row over the pixels of a group of channels (Wu,
 * He 2018), and `norm layer` has one group. For evaluation `norm batch` keeps running statistics.
 * They are values of the parameter vector, see sgp_model_tensor.statistic.
 *
 * Parameters are one flat float32 vector, layer after layer, tensor after tensor, row-major. Shapes
 * and names are those of sgp_model_tensors, and of PyTorch. A row is read and written plane after
 * plane (channels x height x width).
 *
 * Layers may be local (sgp_model_set_local): each node trains them alone, and they never travel.
 * Their parameters are a second vector, in the same order. The first vector, of the shared layers,
 * is the x of a trainer, which nodes average. A model file has the tensors of both, layer after
 * layer, whichever are local.
 *
 * Any thread; nothing here allocates. */
#ifndef SGP_MODEL_H
#define SGP_MODEL_H

#include "sgp/blas.h"
#include "sgp/codec.h"
#include "sgp/loss.h"
#include "sgp/shape.h"
#include "sgp/status.h"

#define SGP_LAYERS_MAX 64u
#define SGP_UNITS_MAX 65536u       /* outputs of a dense layer, channels, vectors of an embedding */
#define SGP_INPUTS_MAX (1u << 22)  /* values of a row, between any two layers */
#define SGP_WINDOW_MAX 1024u       /* pixels of a side of a window, and of a stride */
#define SGP_MODEL_TEXT_BYTES 5120u /* any canonical text of layers, with its terminating zero */
#define SGP_LAYER_TENSORS_MAX 4u
#define SGP_MODEL_TENSORS_MAX (SGP_LAYER_TENSORS_MAX * SGP_LAYERS_MAX)
#define SGP_TENSOR_DIMENSIONS_MAX 4u
#define SGP_NORM_EPSILON 1e-5f /* added to each variance */
/* weight of the batch's statistics when a step updates the running statistics */
#define SGP_NORM_MOMENTUM 0.1

enum sgp_activation {
    SGP_ACTIVATION_NONE = 1,
    SGP_ACTIVATION_RELU,
    SGP_ACTIVATION_TANH,
    SGP_ACTIVATION_SIGMOID
};

enum sgp_layer_kind {
    SGP_LAYER_DENSE = 1,
    SGP_LAYER_CONV,
    SGP_LAYER_POOL,
    SGP_LAYER_NORM,
    SGP_LAYER_DROPOUT,
    SGP_LAYER_EMBEDDING,
    SGP_LAYER_RESIDUAL
};

struct sgp_window {
    uint32_t height, width;
};

struct sgp_layer {
    enum sgp_layer_kind kind;
    enum sgp_activation activation;
    struct sgp_shape input, output; /* of a row */
    uint32_t inputs, outputs;       /* values of a row: the products of these shapes */
    bool local;                     /* its parameters are in the vector of local layers */
    uint64_t weights; /* where the layer's parameters, its first tensor, begin in its vector */
    uint64_t biases;  /* where the layer's second tensor begins */
    uint64_t end;     /* behind the layer's last parameter; `weights` if it has none */

    /* The words of the layer's text; 0 if the kind has no such word. */
    uint32_t units;           /* dense: outputs; conv, embedding: channels of the output */
    struct sgp_window window; /* conv, pool; pool all: 0 */
    struct sgp_window stride; /* conv, pool */
    bool same;                /* conv, pool: padding */
    bool average;             /* pool */
    bool batch;               /* norm */
    uint32_t groups;          /* norm: of channels; 1 for layer, 0 for batch */
    uint32_t vocabulary;      /* embedding */
    uint32_t span;            /* residual: how many layers the connection skips */
    double rate;              /* dropout: chance of a zero, [0, 1) */
};

struct sgp_model {
    enum sgp_loss loss;
    struct sgp_loss_settings loss_settings;
    struct sgp_shape input; /* of a row */
    /* values of a row; 0: unknown until the rows are known, see sgp_model_read */
    uint32_t inputs;
    uint32_t outputs;     /* of the last layer */
    uint32_t layer_count; /* >= 1 */
    uint64_t parameters;  /* d, of the shared layers; at most SGP_PARAMETERS_MAX with the local */
    uint64_t local_parameters; /* of the local layers; 0: all layers are shared */
    struct sgp_layer layers[SGP_LAYERS_MAX];
};

/* A named slice of the parameters, or of those of local layers. */
struct sgp_model_tensor {
    const char *name; /* within its layer: weight, bias, running_mean, running_var; static */
    uint32_t layer;   /* its index */
    uint32_t dimensions;
    uint64_t shape[SGP_TENSOR_DIMENSIONS_MAX]; /* rows, columns, ...; zeros follow */
    bool local;
    uint64_t first, count; /* in the vector of shared or of local layers */
    /* A running statistic. Its gradient is 0, and the optimiser's step does not change it. Training
     * moves a statistic towards that of the batch. Statistics lie among the parameters, so that
     * nodes average them in the same way: an averaged model has averaged statistics. */
    bool statistic;
    double deviation; /* initial values are normal with this deviation; 0: all are `value` */
    double value;
};

/* Read the text alone, before the rows are known: words, loss, limits. Shapes stay unknown (zero).
 * `outputs` is the number of outputs of the last dense, conv or embedding. Returns 0; SGP_E_CONFIG
 * or SGP_E_LIMIT with *error filled and *model unchanged. */
int sgp_model_read(
    struct sgp_model *model, const char *layers, enum sgp_loss loss, struct sgp_error *error);

/* Describe a model for rows of a shape, of 1..SGP_INPUTS_MAX values. If `layers` begins with
 * `input`, that shape is used instead, and must have as many values. Errors as sgp_model_read. */
int sgp_model_init_shaped(struct sgp_model *model, const char *layers, enum sgp_loss loss,
    struct sgp_shape input, struct sgp_error *error);

/* As sgp_model_init_shaped, for flat rows of `inputs` features. */
int sgp_model_init(struct sgp_model *model, const char *layers, enum sgp_loss loss, uint32_t inputs,
    struct sgp_error *error);

/* Replace the settings of the model's loss. The arrays of it must outlive the model. Returns 0;
 * SGP_E_CONFIG with *error filled and *model unchanged. */
int sgp_model_set_loss(
    struct sgp_model *model, const struct sgp_loss_settings *settings, struct sgp_error *error);

/* Choose the local layers of a described model: a list of names, separated by commas.
 *
 *   head       the last layer with parameters
 *   KIND       all layers whose first word is KIND: dense, conv, norm, embedding
 *   layers.N   layer N, from 0, as the tensors of a model file name it
 *
 * An empty list: none. It replaces an earlier choice. Returns 0; SGP_E_CONFIG with *error filled
 * and *model unchanged, if a name is unknown, or adds no layer with parameters, or if no layer with
 * parameters is shared. */
int sgp_model_set_local(struct sgp_model *model, const char *names, struct sgp_error *error);

#define SGP_MODEL_LOCAL_BYTES 1024u /* any canonical text of local layers */

/* The canonical list of the local layers, "layers.1, layers.4"; empty: there are none. */
void sgp_model_local_text(const struct sgp_model *model, char ret_text[SGP_MODEL_LOCAL_BYTES]);

/* The canonical text of the layers: single blanks, and no defaults. The text has `input` if a layer
 * depends on the shape of the rows. Reading the text gives the same model, whose layers are all
 * shared. */
void sgp_model_text(const struct sgp_model *model, char ret_text[SGP_MODEL_TEXT_BYTES]);

/* The matrix products that a step with `batch` rows asks of OpenBLAS. The caller uses them to check
 * that OpenBLAS's kernels fit (sgp/blas.h). Returns how many. */
uint32_t sgp_model_products(const struct sgp_model *model, uint32_t batch,
    struct sgp_blas_layer ret_layers[static SGP_LAYERS_MAX]);

/* The tensors of the model, in the order of the layers. Those of shared layers tile one vector, and
 * those of local layers the other. Returns how many. */
uint32_t sgp_model_tensors(const struct sgp_model *model,
    struct sgp_model_tensor ret_tensors[static SGP_MODEL_TENSORS_MAX]);

/* Where each tensor of the shared layers, or of the local layers, ends. Returns how many. */
uint32_t sgp_model_ends(const struct sgp_model *model, bool local,
    struct sgp_tensor_end ret_ends[static SGP_MODEL_TENSORS_MAX]);

/* The number of values in a model file: those of shared and of local layers. */
uint64_t sgp_model_values(const struct sgp_model *model);

/* The values of a model file, sgp_model_values of them, from x (at weight 1) and from `local`,
 * which is NULL if there are no local layers. */
void sgp_model_join(
    const struct sgp_model *model, const float *x, const float *local, float *values);

/* Exchange them: x and `local` get those of the model file, and `values` theirs. */
void sgp_model_exchange(const struct sgp_model *model, float *x, float *local, float *values);

/* If the model takes whole numbers as features, the bound that they must be below. 0: the model
 * takes any numbers. */
uint32_t sgp_model_vocabulary(const struct sgp_model *model);

/* XXH3 of the canonical texts, for the fingerprint that peers compare. Equal shape digests mean
 * equal shapes (inputs included), and the same local layers. Equal loss digests mean equal losses
 * with equal settings. */
uint64_t sgp_model_shape_digest(const struct sgp_model *model);
uint64_t sgp_model_loss_digest(const struct sgp_model *model);

/* Set the initial parameters. Weights of dense and conv are normal with variance 2 / (values that
 * enter a sum) (He et al. 2015). Weights of embedding have variance 1. Scales and variances are 1,
 * and all else is 0. The same seed gives the same parameters on every node, whichever layers are
 * local. x has model->parameters floats, and `local` has model->local_parameters (NULL for 0). */
void sgp_model_initialise(const struct sgp_model *model, uint64_t seed, float *x, float *local);

#endif
