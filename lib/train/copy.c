/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker does with its copy, and an owner with an update; see sgp/copy.h. Thread: that of the trainer. */
#include "sgp/copy.h"

#include "sgp/kernels.h"

#include <string.h>

void sgp_copy_follow(float *copy, struct sgp_trainer *trainer, float **values)
{
    memcpy(copy, *values, trainer->parameters * sizeof *copy);
    trainer->methods->exchange(trainer, values);
}

void sgp_copy_push(const float *copy, struct sgp_trainer *trainer, float **snapshot)
{
    memcpy(*snapshot, copy, trainer->parameters * sizeof *copy);
    trainer->methods->exchange(trainer, snapshot);
    sgp_kernels_best()->absorb(*snapshot, copy, -1, trainer->parameters);
}

void sgp_copy_compensate(
    float *update, struct sgp_trainer *trainer, const float *base, float factor)
{
    struct sgp_trainer_state now;
    trainer->methods->state(trainer, &now);
    for (uint64_t i = 0; i < trainer->parameters; i++)
        update[i] -= factor * update[i] * update[i] * (now.x[i] - base[i]);
}
