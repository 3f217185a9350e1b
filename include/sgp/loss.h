/* SPDX-License-Identifier: Apache-2.0 */
/* Losses: what training makes small, and the settings of each.
 *
 * With z the outputs of a row, K their number, y its label or its values:
 *
 *   cross-entropy         -sum over c of w[c] q[c] log p[c], where p is the softmax of z,
 *                         q[y] = 1 - s + s / K, and q[c] = s / K for the other classes: s is
 *                         `label_smoothing` (Szegedy et al. 2016, section 7), w the weights of the
 *                         classes. Without both, -log p[y].
 *   mse                   (z - y)^2, mean over the outputs
 *   huber                 d^2 / 2 where d = |z - y| <= delta, else delta (d - delta / 2)
 *                         (Huber 1964), mean over the outputs
 *   binary-cross-entropy  -w[c] y[c] log p[c] - (1 - y[c]) log(1 - p[c]), mean over the outputs,
 *                         where p[c] = 1 / (1 + exp(-z[c])): each output says yes or no for
 *                         itself, and w[c] is what a yes of it counts
 *
 * The loss of a batch is the mean over its rows: weights are factors, and nothing divides by their
 * sum, since a node whose rows are of one class would then train as if that class had the weight 1.
 * For mse and huber, a class label stands for values of 0, and 1 at the label. The values of label
 * columns may be scaled: then y is (number - mean) / deviation, and so is the error that `delta` is
 * compared with. The loss has no unit then: under mse, 1 is the loss of always saying the mean.
 * Predictions and measures are in the units of the label columns in any case.
 *
 * Any thread; nothing here keeps state. */
#ifndef SGP_LOSS_H
#define SGP_LOSS_H

#include "sgp/dataset.h"
#include "sgp/measures.h"
#include "sgp/status.h"

#define SGP_HUBER_DELTA_MIN 1e-6
#define SGP_HUBER_DELTA_MAX 1e6
#define SGP_LABEL_SMOOTHING_MAX 0.999
#define SGP_CLASS_WEIGHT_MAX 1e6

/* The words of [model] loss, in the order of the enumeration. */
#define SGP_LOSS_WORDS "cross-entropy|mse|huber|binary-cross-entropy"

enum sgp_loss {
    SGP_LOSS_CROSS_ENTROPY = 1,
    SGP_LOSS_MSE,
    SGP_LOSS_HUBER,
    SGP_LOSS_BINARY_CROSS_ENTROPY,
};

struct sgp_loss_settings {
    double label_smoothing;     /* 0..SGP_LABEL_SMOOTHING_MAX */
    double huber_delta;         /* SGP_HUBER_DELTA_MIN..SGP_HUBER_DELTA_MAX */
    const float *class_weights; /* one per output, 0..SGP_CLASS_WEIGHT_MAX; borrowed; NULL: all 1 */
    uint32_t class_weight_count;
    /* How the values are scaled: one for each output; borrowed; NULL: they are not. */
    const struct sgp_target_scale *target_scales;
    uint32_t target_scale_count;
};

/* No smoothing, a delta of 1, all weights 1. */
extern const struct sgp_loss_settings sgp_loss_defaults;

enum sgp_loss_use { /* which settings a loss looks at */
    SGP_LOSS_USES_SMOOTHING = 1,
    SGP_LOSS_USES_DELTA = 2,
    SGP_LOSS_USES_WEIGHTS = 4,
    SGP_LOSS_USES_SCALES = 8, /* of numbers */
};

enum sgp_loss_target { /* what a loss takes as the truth of a row */
    SGP_LOSS_TAKES_CLASS = 1,
    SGP_LOSS_TAKES_NUMBERS = 2,
    SGP_LOSS_TAKES_BITS = 4, /* values that are 0 or 1 */
};

/* The word of a loss. An unknown loss is a programming error, here and below. */
const char *sgp_loss_name(enum sgp_loss loss);
/* The loss of that word, or 0. */
enum sgp_loss sgp_loss_find(const char *name);
/* The enum sgp_loss_use that it looks at, or-ed. */
unsigned sgp_loss_uses(enum sgp_loss loss);
/* The enum sgp_loss_target that it takes, or-ed. */
unsigned sgp_loss_takes(enum sgp_loss loss);
/* The function that a loss brings for the last layer, which then has no activation: "softmax",
 * "sigmoid", or NULL. */
const char *sgp_loss_activation(enum sgp_loss loss);

/* What the outputs of a model with this loss are measured as; `classes`: the truth of a row is a
 * class. */
enum sgp_measures_kind sgp_loss_measures(enum sgp_loss loss, bool classes);

/* Check the settings that the loss uses, for a model of `outputs` outputs. Returns 0;
 * SGP_E_CONFIG with *error filled. */
int sgp_loss_check(enum sgp_loss loss, const struct sgp_loss_settings *settings, uint32_t outputs,
    struct sgp_error *error);

/* XXH3 of the loss and of those settings that it uses and that are not the defaults: for peers. */
uint64_t sgp_loss_digest(enum sgp_loss loss, const struct sgp_loss_settings *settings);

/* The mean loss of outputs that are all zero over the rows of a dataset that the loss takes.
 * Returns 0 or -ENOMEM. */
int sgp_loss_of_zeros(enum sgp_loss loss, const struct sgp_loss_settings *settings,
    const struct sgp_dataset *dataset, double *ret_loss);

/* A list of numbers such as "1, 2.5, 1": malloc'd, the caller's; NULL and 0 for an empty text.
 * SGP_E_CONFIG with *error filled if it is no such list, -ENOMEM. */
int sgp_class_weights_parse(
    const char *text, struct sgp_error *error, float **ret_weights, uint32_t *ret_count);

#endif
