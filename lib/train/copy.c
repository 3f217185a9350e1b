/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker does with its copy; see sgp/copy.h. Thread: that of the trainer. */
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
