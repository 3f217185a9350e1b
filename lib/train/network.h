/* SPDX-License-Identifier: Apache-2.0 */
/* The passes of a model over a batch of rows, in memory set aside at init.
 *
 * The model used is the estimate z = x / w, but z is never written down: each layer is given the
 * factor 1/w (layer.h). Gradients are those with respect to z.
 *
 * Thread: the trainer's. */
#ifndef SGP_TRAIN_NETWORK_H
#define SGP_TRAIN_NETWORK_H

#include "loss.h"
#include "product.h"
#include "sgp/model.h"

#define SGP_WORKSPACE_FLOATS_MAX ((uint64_t)1 << 34) /* activations of a batch, 64 GiB */

struct sgp_network {
    const struct sgp_model *model; /* borrowed */
    uint32_t rows_max;
    struct sgp_product product;
    float *memory;                          /* owns what the others point into */
    float *activations[SGP_LAYERS_MAX + 1]; /* [0] the features, [l + 1] what layer l puts out */
    float *ordered;              /* the features as pixels; NULL: they are taken as they are */
    float *kept[SGP_LAYERS_MAX]; /* of each layer's own */
    float *scratch;
    float *delta[2]; /* gradients with respect to outputs, of this layer and the one below */
    uint32_t lowest; /* layer with parameters: below it no gradient is needed */

    /* Of the last forward pass. */
    bool training;
    uint64_t chance;
};

/* The floats of memory that batches of up to rows_max rows take. SGP_E_LIMIT. */
int sgp_network_floats(const struct sgp_model *model, enum sgp_precision precision,
    uint32_t rows_max, uint64_t *ret_floats);

/* Set memory aside for batches of up to rows_max rows, and ready products of this precision on
 * so many threads (sgp_product_init). Returns 0, SGP_E_LIMIT, SGP_E_CONFIG or -ENOMEM; on failure
 * *network is all zero. */
int sgp_network_init(struct sgp_network *network, const struct sgp_model *model,
    enum sgp_precision precision, uint32_t rows_max, uint32_t threads);
void sgp_network_finish(struct sgp_network *network);

/* From the features in activations[0] (rows x inputs) to the outputs at x / weight: rows x outputs,
 * borrowed until the next call. For cross-entropy these are logits. Dropout drops nothing, and norm
 * batch goes by its running statistics. */
const float *sgp_network_forward(
    struct sgp_network *network, const float *x, double weight, size_t rows);

/* The same in training; `chance` decides what is dropped, and must differ from step to step. */
const float *sgp_network_forward_training(
    struct sgp_network *network, const float *x, double weight, size_t rows, uint64_t chance);

/* The loss of what forward put out, see sgp_loss_batch; readies backward. */
struct sgp_loss_sum sgp_network_loss(
    struct sgp_network *network, const uint32_t *labels, const float *values, size_t rows);

/* gradient[0..parameters) = that of the mean loss with respect to z, after forward and loss with
 * the same x, weight and rows. Every value is written; those of statistics are 0. */
void sgp_network_backward(
    struct sgp_network *network, float *gradient, const float *x, double weight, size_t rows);

/* After a step whose forward pass was in training: write the running statistics to x, whatever the
 * optimiser made of them. */
void sgp_network_settle(struct sgp_network *network, float *x, double weight, size_t rows);

#endif
