/* SPDX-License-Identifier: Apache-2.0 */
/* The passes of a model over a batch of rows, in memory allocated at init. The model in use is the
 * estimate z = x / w, but z is never stored: each layer gets the factor 1/w (layer.h). Gradients
 * are those with respect to z. Thread: the trainer's. */
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
    /* the memory that the other pointers point into, owned */
    float *memory;
    float *activations[SGP_LAYERS_MAX + 1]; /* [0] the features, [l + 1] the output of layer l */
    float *ordered;              /* the features as pixels; NULL: the features are used directly */
    float *kept[SGP_LAYERS_MAX]; /* each layer's own memory, */
    float *own[SGP_LAYERS_MAX];  /* and what it keeps of each row's gradient; or NULL */
    float *scratch;
    float *delta[2]; /* gradients with respect to outputs, of this layer and the one below */
    uint32_t lowest; /* lowest layer with parameters: below it no gradient is needed */

    /* The parameters of local layers, at weight 1, and where backward writes their gradient.
     * Borrowed; set by the caller, and NULL if no layer is local. */
    float *local, *local_gradient;
    /* Set by the caller: the other layers stay as they are, in training too. */
    bool frozen;

    /* The facts of the last forward pass. */
    bool training;
    size_t before; /* rows of the same step that earlier passes had */
    uint64_t chance;
};

/* The floats of memory that batches of up to rows_max rows need, and measure_rows and weigh_rows of
 * up to rows_own rows; 0: these are not called. SGP_E_LIMIT. */
int sgp_network_floats(const struct sgp_model *model, enum sgp_precision precision,
    uint32_t rows_max, uint32_t rows_own, uint64_t *ret_floats);

/* Load the library that multiplies (sgp_blas_load), if a layer needs its products in this
 * precision. Returns 0, or SGP_E_CONFIG with *error filled. */
int sgp_network_load(
    const struct sgp_model *model, enum sgp_precision precision, struct sgp_error *error);

/* Allocate the memory of sgp_network_floats, and prepare products of this precision on so
 * many threads (sgp_product_init). Returns 0, SGP_E_LIMIT, SGP_E_CONFIG or -ENOMEM. On failure
 * *network is all zero. */
int sgp_network_init(struct sgp_network *network, const struct sgp_model *model,
    enum sgp_precision precision, uint32_t rows_max, uint32_t rows_own, uint32_t threads);
void sgp_network_finish(struct sgp_network *network);

/* Compute the outputs at x / weight from the features in activations[0] (rows x inputs). The
 * outputs are rows x outputs, borrowed until the next call. For cross-entropy these are logits.
 * Dropout drops nothing, and norm batch uses its running statistics. */
const float *sgp_network_forward(
    struct sgp_network *network, const float *x, double weight, size_t rows);

/* The forward pass in training. A step may have several passes, each over other rows of its batch:
 * `before` is the number of rows of the earlier passes. `chance` determines the dropped values, and
 * must differ from pass to pass. */
const float *sgp_network_forward_training(struct sgp_network *network, const float *x,
    double weight, size_t before, size_t rows, uint64_t chance);

/* The loss of the forward pass's outputs, see sgp_loss_batch. Prepares the backward pass. */
struct sgp_loss_sum sgp_network_loss(
    struct sgp_network *network, const uint32_t *labels, const float *values, size_t rows);

/* gradient[0..parameters) = the gradient of the mean loss with respect to z. The call must follow
 * forward and loss with the same x, weight and rows. Every value is written, also of the gradient
 * of local layers; the gradients of statistics are 0. */
void sgp_network_backward(
    struct sgp_network *network, float *gradient, const float *x, double weight, size_t rows);

/* The number 1, 2, ... of the first layer in which rows meet; 0: there is none. */
uint32_t sgp_network_meets(const struct sgp_model *model);

/* squares[0..rows) = the square of the length of each row's own gradient, of its loss alone. It is
 * not finite if the row's values overflow. For a model in which rows do not meet. The call must
 * follow forward and loss, and uses up what loss has prepared. `gradient` is scratch. */
void sgp_network_measure_rows(struct sgp_network *network, float *gradient, const float *x,
    double weight, size_t rows, double *squares);

/* gradient = the sum over rows of factors[row] in 0..1 times the row's own gradient, which is what
 * measure_rows has measured, bit for bit. So no row is longer here. A row of factor 0 counts
 * nothing, even if its values are not finite. The call must follow measure_rows, and uses up what
 * that has left. */
void sgp_network_weigh_rows(
    struct sgp_network *network, float *gradient, size_t rows, const float *factors);

/* After a step, write the running statistics to x and to local layers, or only to these if x is
 * NULL. They follow those of all rows that the step's passes had, and replace what the optimiser
 * made of them. */
void sgp_network_settle(struct sgp_network *network, float *x);

#endif
