/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of optimisers, see sgp/optimizer.h for their formulas. Each advances x by one gradient, which is clipped
 * and finite, with weight > 0 and rate >= 0. optimizer.c has their table. Thread: the one of the trainer. */
#ifndef SGP_TRAIN_RULE_H
#define SGP_TRAIN_RULE_H

#include "sgp/kernels.h"
#include "sgp/optimizer.h"

/* `deviation` is NULL where it is not known or not used. */
typedef void sgp_rule_step(struct sgp_optimizer *optimizer, float *x, const float *gradient,
    const float *deviation, double weight, double rate);

sgp_rule_step sgp_rule_sgd, sgp_rule_momentum, sgp_rule_nesterov; /* rule_momentum.c */
sgp_rule_step sgp_rule_adam, sgp_rule_adamw, sgp_rule_rmsprop;    /* rule_adam.c */
sgp_rule_step sgp_rule_lars, sgp_rule_lamb;                       /* rule_layer.c */

/* rule_adam.c: the constants of a step of Adam; weight decay, coupled or not, is left at 0. */
struct sgp_adam sgp_rule_adam_of(
    const struct sgp_optimizer *optimizer, const float *deviation, double rate);

/* Of a vector that may be NULL. */
static inline float *sgp_rule_part(float *vector, uint64_t first)
{
    return vector != NULL ? vector + first : NULL;
}

/* What to give to a kernel that reads a deviation, which is multiplied by 0 if there is none. */
static inline const float *sgp_rule_deviation(const float *gradient, const float *deviation)
{
    return deviation != NULL ? deviation : gradient;
}

/* rule_tensors.c: |g| of `count` values, less the noise that the mean over nodes does not have. */
double sgp_rule_norm(const struct sgp_optimizer *optimizer, const float *gradient,
    const float *deviation, uint64_t count);

/* A tensor of the parameters. */
struct sgp_rule_tensor {
    uint64_t first, count;
    bool has_columns; /* two dimensions or more: no biases */
};

/* rule_tensors.c: how many tensors there are, at least 1, and one of them. */
uint32_t sgp_rule_tensors(const struct sgp_optimizer *optimizer);
struct sgp_rule_tensor sgp_rule_tensor_at(const struct sgp_optimizer *optimizer, uint32_t index);

#endif
