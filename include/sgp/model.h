/* SPDX-License-Identifier: Apache-2.0 */
/* Models: multi-layer perceptrons of any shape, softmax regression included, and their losses.
 *
 * A model is a description without any number learnt: plain data, copied by assignment. Its
 * parameters are one flat float32 vector: for each layer in turn its matrix W, outputs x inputs,
 * row-major (row o holds what leads to output o), then its outputs biases b. A layer computes
 * y = activation(W a + b) of the row a that enters it.
 *
 * Any thread; nothing here allocates. */
#ifndef SGP_MODEL_H
#define SGP_MODEL_H

#include "sgp/blas.h"
#include "sgp/codec.h"
#include "sgp/status.h"

#define SGP_LAYERS_MAX 64u
#define SGP_UNITS_MAX 65536u       /* outputs of a layer */
#define SGP_INPUTS_MAX (1u << 22)  /* features that enter the first layer */
#define SGP_MODEL_TEXT_BYTES 2048u /* any canonical text of layers, with its terminating zero */

enum sgp_activation {
    SGP_ACTIVATION_NONE = 1,
    SGP_ACTIVATION_RELU,
    SGP_ACTIVATION_TANH,
    SGP_ACTIVATION_SIGMOID
};

enum sgp_loss {
    /* Softmax of the outputs, then -log of the label's probability; mean over the rows. */
    SGP_LOSS_CROSS_ENTROPY = 1,
    /* (output - target)^2, mean over outputs and rows; the targets of a label are one-hot. */
    SGP_LOSS_MSE
};

struct sgp_layer {
    uint32_t inputs;
    uint32_t outputs;
    enum sgp_activation activation;
    uint64_t weights; /* where W begins in the parameter vector */
    uint64_t biases;  /* where b begins */
};

struct sgp_model {
    enum sgp_loss loss;
    uint32_t inputs;      /* of the first layer */
    uint32_t outputs;     /* of the last layer */
    uint32_t layer_count; /* >= 1 */
    uint64_t parameters;  /* d, at most SGP_PARAMETERS_MAX */
    struct sgp_layer layers[SGP_LAYERS_MAX];
};

/* Describe a model for rows of `inputs` features (1..SGP_INPUTS_MAX). `layers` is a list such as
 * "dense 512 relu, dense 10": each layer the word dense, its outputs (1..SGP_UNITS_MAX), and none,
 * relu, tanh or sigmoid (none if left out). Cross-entropy brings its own softmax, so its last layer
 * has no activation. Returns 0; SGP_E_CONFIG or SGP_E_LIMIT with *error filled and *model
 * unchanged. */
SGP_API int sgp_model_init(struct sgp_model *model, const char *layers, enum sgp_loss loss,
    uint32_t inputs, struct sgp_error *error);

/* The canonical text of the layers: single blanks, no "none". Reading it gives the same model. */
SGP_API void sgp_model_text(const struct sgp_model *model, char ret_text[SGP_MODEL_TEXT_BYTES]);

/* The products of a step with `batch` rows that OpenBLAS is asked for, to see to it that its kernels fit them
 * (sgp/blas.h). Returns how many. */
SGP_API uint32_t sgp_model_products(const struct sgp_model *model, uint32_t batch,
    struct sgp_blas_layer ret_layers[static SGP_LAYERS_MAX]);

/* The tensors of its parameters: the matrix and the biases of each layer; ret_ends has room for 2 a layer. Returns how many. */
SGP_API uint32_t sgp_model_tensors(const struct sgp_model *model, struct sgp_tensor_end *ret_ends);

/* XXH3 of the canonical texts, for the fingerprint that peers compare: equal digests, equal shape
 * (inputs included), equal loss. */
SGP_API uint64_t sgp_model_shape_digest(const struct sgp_model *model);
SGP_API uint64_t sgp_model_loss_digest(const struct sgp_model *model);

/* He initialisation (He et al. 2015): every weight normal with variance 2 / inputs, biases 0. The
 * same seed gives the same parameters on every node; x has model->parameters floats. */
SGP_API void sgp_model_initialise(const struct sgp_model *model, uint64_t seed, float *x);

#endif
