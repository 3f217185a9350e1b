/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of optimisers; sgp/optimizer.h has their formulas. Each step advances x by one
 * gradient, which is clipped and finite, with weight > 0 and rate >= 0. optimizer.c has the table
 * of steps. Thread: the trainer's. */
#ifndef SGP_TRAIN_RULE_H
#define SGP_TRAIN_RULE_H

#include "sgp/kernels.h"
#include "sgp/optimizer.h"

/* `deviation` is NULL if it is not known or not used. */
typedef void sgp_rule_step(struct sgp_optimizer *optimizer, float *x, const float *gradient,
    const float *deviation, double weight, double rate);

sgp_rule_step sgp_rule_sgd, sgp_rule_momentum, sgp_rule_nesterov; /* rule_momentum.c */
sgp_rule_step sgp_rule_adam, sgp_rule_adamw, sgp_rule_rmsprop;    /* rule_adam.c */
sgp_rule_step sgp_rule_lars, sgp_rule_lamb;                       /* rule_layer.c */

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
