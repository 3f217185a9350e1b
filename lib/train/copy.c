/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's operations on its copy, and an owner's on an update or an estimate; see sgp/copy.h.
 * Thread: that of the trainer. */
#include "sgp/copy.h"

#include "sgp/kernels.h"

#include <string.h>

/* Set a part of x: make it zeros, then add the values. */
static void put(
    struct sgp_trainer *trainer, const float *values, double factor, struct sgp_slice slice)
{
    trainer->methods->scale(trainer, 0, slice.first, slice.count);
    trainer->methods->restore(trainer, values, (float)factor, slice.first, slice.count);
}

void sgp_copy_follow(
    float *copy, struct sgp_trainer *trainer, float **values, struct sgp_slice slice)
{
    memcpy(copy + slice.first, *values, slice.count * sizeof *copy);
    if (slice.count == trainer->parameters)
        trainer->methods->exchange(trainer, values);
    else
        put(trainer, *values, 1, slice);
}

void sgp_copy_return(const float *copy, struct sgp_trainer *trainer, struct sgp_slice slice)
{
    put(trainer, copy + slice.first, 1, slice);
}

void sgp_copy_add(float *copy, const float *values, struct sgp_slice slice)
{
    sgp_kernels_best()->absorb(copy + slice.first, values, 1, slice.count);
}

void sgp_copy_lacks(
    const float *copy, struct sgp_trainer *trainer, float *values, struct sgp_slice slice)
{
    struct sgp_trainer_state now;
    trainer->methods->state(trainer, &now);
    for (uint64_t i = 0; i < slice.count; i++)
        values[i] = now.x[slice.first + i] - copy[slice.first + i];
}

void sgp_copy_take(float *copy, struct sgp_trainer *trainer, float *values, struct sgp_slice slice)
{
    struct sgp_trainer_state now;
    trainer->methods->state(trainer, &now);
    memcpy(copy + slice.first, now.x + slice.first, slice.count * sizeof *copy);
    memcpy(values, now.x + slice.first, slice.count * sizeof *values);
}

void sgp_copy_adopt(
    struct sgp_trainer *trainer, const float *values, double factor, struct sgp_slice slice)
{
    if (slice.count == trainer->parameters)
        trainer->methods->adopt(trainer, values, factor);
    else
        put(trainer, values, factor, slice);
}

void sgp_copy_push(const float *copy, struct sgp_trainer *trainer, float **snapshot)
{
    memcpy(*snapshot, copy, trainer->parameters * sizeof *copy);
    trainer->methods->exchange(trainer, snapshot);
    sgp_kernels_best()->absorb(*snapshot, copy, -1, trainer->parameters);
}

void sgp_copy_offer(const float *copy, struct sgp_trainer *trainer, float *snapshot)
{
    struct sgp_trainer_state now;
    trainer->methods->state(trainer, &now);
    for (uint64_t i = 0; i < trainer->parameters; i++)
        snapshot[i] = now.x[i] - copy[i];
}

void sgp_copy_give(float *copy, struct sgp_trainer *trainer, float **snapshot, float part)
{
    struct sgp_trainer_state now;
    trainer->methods->state(trainer, &now);
    for (uint64_t i = 0; i < trainer->parameters; i++)
        copy[i] = part < 1 ? copy[i] + part * (now.x[i] - copy[i]) : now.x[i];
    memcpy(*snapshot, copy, trainer->parameters * sizeof *copy);
    trainer->methods->exchange(trainer, snapshot);
    memcpy(*snapshot, copy, trainer->parameters * sizeof *copy);
}

void sgp_copy_collect(float *update, const float *token, float fraction, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        update[i] = fraction > 0 ? token[i] + fraction * update[i] : token[i];
}

/* The update that was offered is (collected - token) / fraction. x also keeps its change since
 * then. */
void sgp_copy_receive_token(float *copy, struct sgp_trainer *trainer, float **token,
    const float *collected, float fraction, bool computes)
{
    struct sgp_trainer_state now;
    trainer->methods->state(trainer, &now);
    float *x = *token, scale = fraction > 0 ? 1 / fraction : 1;
    for (uint64_t i = 0; i < trainer->parameters; i++) {
        float told = scale * (collected[i] - x[i]);
        x[i] = computes ? collected[i] + ((now.x[i] - copy[i]) - told) : collected[i];
    }
    memcpy(copy, collected, trainer->parameters * sizeof *copy);
    trainer->methods->exchange(trainer, token);
}

void sgp_copy_compensate(float *update, struct sgp_trainer *trainer, const float *base,
    float factor, struct sgp_slice slice)
{
    struct sgp_trainer_state now;
    trainer->methods->state(trainer, &now);
    const float *x = now.x + slice.first, *then = base + slice.first;
    for (uint64_t i = 0; i < slice.count; i++)
        update[i] -= factor * update[i] * update[i] * (x[i] - then[i]);
}
