/* SPDX-License-Identifier: Apache-2.0 */
/* What one optimiser is: a row and its step. sgp/optimizer.h has the formulas and the list. Thread:
 * the trainer's. */
#ifndef SGP_TRAIN_RULE_H
#define SGP_TRAIN_RULE_H

#include "sgp/kernels.h"
#include "sgp/optimizer.h"

/* Advance x by one gradient, which is clipped and finite, with weight > 0 and rate >= 0.
 * `deviation` is NULL if it is not known or not used. */
typedef void sgp_rule_step(struct sgp_optimizer *optimizer, float *x, const float *gradient,
    const float *deviation, double weight, double rate);

struct sgp_rule {
    /* the vectors' names in a checkpoint; those in use come first */
    const char *vectors[SGP_OPTIMIZER_VECTORS_MAX];
    bool counts; /* whether the rule counts its steps */
    /* Whether the rule divides by the root of a mean of squares. If noise is left out of that mean,
     * the rule keeps the noise, too, as its last vector. */
    bool divides;
    unsigned uses; /* enum sgp_optimizer_use */
    sgp_rule_step *step;
};

/* sgp_rule_sgd and so on: rule_momentum.c, rule_adam.c, rule_layer.c. */
#define SGP_RULE_ROW(constant, word) extern const struct sgp_rule sgp_rule_##word;
SGP_OPTIMIZERS(SGP_RULE_ROW)
#undef SGP_RULE_ROW

/* What Adam and the rules derived from it have in common. */
#define SGP_RULE_OF_ADAM                                                                           \
    .vectors = {"first moment", "second moment"}, .counts = true, .divides = true,                 \
    .uses = SGP_USES_BETAS | SGP_USES_EPSILON | SGP_USES_NOISE

/* rule_adam.c: the constants of a step of Adam; weight decay, coupled or not, is left at 0. */
struct sgp_adam sgp_rule_adam_of(
    const struct sgp_optimizer *optimizer, const float *deviation, double rate);

/* A part of a vector that may be NULL. */
static inline float *sgp_rule_part(float *vector, uint64_t first)
{
    return vector != NULL ? vector + first : NULL;
}

/* The argument for a kernel that reads a deviation. Without a deviation, the kernel multiplies the
 * argument by 0. */
static inline const float *sgp_rule_deviation(const float *gradient, const float *deviation)
{
    return deviation != NULL ? deviation : gradient;
}

/* rule_tensors.c: |g| of `count` values, less the noise that averaging over nodes removes. */
double sgp_rule_norm(const struct sgp_optimizer *optimizer, const float *gradient,
    const float *deviation, uint64_t count);

/* A tensor of the parameters. */
struct sgp_rule_tensor {
    uint64_t first, count;
    bool has_columns; /* two dimensions or more, so not biases */
};

/* rule_tensors.c: the number of tensors, at least 1, and one tensor. */
uint32_t sgp_rule_tensors(const struct sgp_optimizer *optimizer);
struct sgp_rule_tensor sgp_rule_tensor_at(const struct sgp_optimizer *optimizer, uint32_t index);

#endif
