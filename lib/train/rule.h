/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of optimisers, see sgp/optimizer.h for their formulas. Each advances x by one gradient, which is clipped
 * and finite, with weight > 0 and rate >= 0. optimizer.c has their table. Thread: the one of the trainer. */
#ifndef SGP_TRAIN_RULE_H
#define SGP_TRAIN_RULE_H

#include "sgp/kernels.h"
#include "sgp/optimizer.h"

typedef void sgp_rule_step(
    struct sgp_optimizer *optimizer, float *x, const float *gradient, double weight, double rate);

sgp_rule_step sgp_rule_sgd, sgp_rule_momentum, sgp_rule_nesterov; /* rule_momentum.c */
sgp_rule_step sgp_rule_adam, sgp_rule_adamw, sgp_rule_rmsprop;    /* rule_adam.c */
sgp_rule_step sgp_rule_lars, sgp_rule_lamb;                       /* rule_layer.c */

/* rule_adam.c: the constants of a step of Adam; weight decay, coupled or not, is left at 0. */
struct sgp_adam sgp_rule_adam_of(const struct sgp_optimizer *optimizer, double rate);

/* A tensor of the parameters. */
struct sgp_rule_tensor {
    uint64_t first, count;
    bool has_columns; /* two dimensions or more: no biases */
};

/* rule_tensors.c: how many tensors there are, at least 1, and one of them. */
uint32_t sgp_rule_tensors(const struct sgp_optimizer *optimizer);
struct sgp_rule_tensor sgp_rule_tensor_at(const struct sgp_optimizer *optimizer, uint32_t index);

#endif
