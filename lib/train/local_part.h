/* SPDX-License-Identifier: Apache-2.0 */
/* The local layers of a model in training (sgp_model_set_local): their parameters, which never
 * leave the learner but in a checkpoint and in a model file, and their optimiser. They are no mass:
 * they have no push-sum weight, so steps are taken at weight 1. Thread: the trainer's. */
#ifndef SGP_TRAIN_LOCAL_PART_H
#define SGP_TRAIN_LOCAL_PART_H

#include "sgp/model.h"
#include "sgp/optimizer.h"

struct sgp_local_part {
    uint64_t count; /* of values; 0: no layer is local, and the vectors are NULL */
    float *values;
    float *gradient, *deviation; /* as those of the learner */
    struct sgp_optimizer optimizer;
    struct sgp_tensor_end ends[SGP_MODEL_TENSORS_MAX];
};

/* Allocate the vectors, all zeros, with the deviation only if `deviates`. The settings must be
 * checked. No node averages local layers, so `noise = fleet` does not hold for them: the noise of
 * their gradient is the node's own. Returns 0, SGP_E_LIMIT or -ENOMEM; finish it in any case. */
int sgp_local_part_init(struct sgp_local_part *part, const struct sgp_model *model,
    const struct sgp_optimizer_settings *settings, bool deviates);
void sgp_local_part_finish(struct sgp_local_part *part);

/* One step with the gradient, as sgp_optimizer_step. */
void sgp_local_part_step(struct sgp_local_part *part, double rate);

/* Forget what the optimiser keeps from step to step. */
void sgp_local_part_forget(struct sgp_local_part *part);

/* Add the values and the optimiser's state to *state, borrowed until the next step. */
void sgp_local_part_state(const struct sgp_local_part *part, struct sgp_trainer_state *state);
/* Resume from a part of *state, which is copied. Without values in it, the present ones stay. */
void sgp_local_part_resume(struct sgp_local_part *part, const struct sgp_trainer_state *state);

#endif
