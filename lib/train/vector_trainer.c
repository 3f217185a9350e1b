/* SPDX-License-Identifier: Apache-2.0 */
/* Owns x, the flat vector behind a trainer. Thread: the one of the trainer.
 *
 * What is published is not copied: the vector that was x is lent to the snapshot, and x is only known to be
 * `keep` times that until something changes it. Mostly that is the next share, which is as long: then the
 * sum is written over the share, whose memory becomes x: here, or while the share comes (`take`). */
#include "vector_trainer.h"

#include "sgp/buffer.h"

#include <string.h>
#include <xxhash.h>

int sgp_vector_trainer_init(struct sgp_vector_trainer *vector,
    const struct sgp_trainer_methods *methods, uint64_t parameters)
{
    if (parameters == 0 || parameters > SGP_PARAMETERS_MAX)
        return SGP_E_LIMIT;
    int status = sgp_vector_create(parameters, &vector->x);
    if (status < 0)
        return status;
    vector->trainer = (struct sgp_trainer){.methods = methods, .parameters = parameters};
    vector->kernels = sgp_kernels_best();
    return 0;
}

void sgp_vector_trainer_finish(struct sgp_vector_trainer *vector)
{
    sgp_vector_destroy(vector->x);
    vector->x = NULL;
    sgp_outer_finish(&vector->outer);
}

int sgp_vector_trainer_begin_outer(
    struct sgp_vector_trainer *vector, const struct sgp_outer_settings *settings)
{
    int status = sgp_outer_init(&vector->outer, settings, vector->trainer.parameters);
    if (status == 0)
        sgp_outer_begin(&vector->outer, sgp_vector_trainer_x(vector), 1);
    return status;
}

/* Values that stay in the cache from one look at them to the next. */
#define BLOCK_VALUES ((uint64_t)SGP_KERNELS_RUN)

static uint64_t block_after(uint64_t at, uint64_t count)
{
    return count - at < BLOCK_VALUES ? count - at : BLOCK_VALUES;
}

float *sgp_vector_trainer_x(struct sgp_vector_trainer *vector)
{
    if (vector->source)
        vector->kernels->scale(vector->x, vector->source, vector->keep, vector->trainer.parameters);
    vector->source = NULL;
    return vector->x;
}

void sgp_vector_trainer_publish(struct sgp_trainer *trainer, float **snapshot, float keep)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    float *spare = *snapshot;
    *snapshot = sgp_vector_trainer_x(vector);
    vector->x = spare;
    vector->source = *snapshot;
    vector->keep = keep;
}

static void compare(const struct sgp_kernels *kernels, struct sgp_comparison *comparison,
    const float *share, uint64_t first, uint64_t count)
{
    double difference, norm;
    kernels->distance(&difference, &norm, share, (float)(1 / comparison->their_weight),
        comparison->own + first, (float)(1 / comparison->own_weight), count);
    comparison->difference += difference;
    comparison->norm += norm;
}

void sgp_vector_trainer_absorb(struct sgp_trainer *trainer, float **share, float fraction,
    uint64_t first, uint64_t count, struct sgp_comparison *comparison)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    sgp_assert(first <= trainer->parameters && count <= trainer->parameters - first);
    bool exchange = vector->source != NULL && count == trainer->parameters;
    float *x = exchange ? NULL : sgp_vector_trainer_x(vector);
    if (comparison)
        comparison->difference = comparison->norm = 0;
    uint64_t stride = sgp_kernels_stride(count);
    for (uint64_t at = 0, block; at < count; at += block) {
        block = block_after(at, count);
        if (comparison && at / BLOCK_VALUES % stride == 0)
            compare(vector->kernels, comparison, *share + at, first + at, block);
        double squares; /* measured when it came */
        if (exchange)
            (void)vector->kernels->fold(
                &squares, *share + at, vector->source + at, vector->keep, fraction, block);
        else
            vector->kernels->absorb(x + first + at, *share + at, fraction, block);
    }
    if (exchange)
        sgp_vector_trainer_take(trainer, share);
}

void sgp_vector_trainer_take(struct sgp_trainer *trainer, float **values)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    float *spare = vector->x;
    vector->x = *values;
    vector->source = NULL;
    *values = spare;
}

void sgp_vector_trainer_restore(
    struct sgp_trainer *trainer, const float *share, float fraction, uint64_t first, uint64_t count)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    sgp_assert(first <= trainer->parameters && count <= trainer->parameters - first);
    vector->kernels->absorb(sgp_vector_trainer_x(vector) + first, share, fraction, count);
}

void sgp_vector_trainer_adopt(struct sgp_trainer *trainer, const float *values, double factor)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    vector->source = NULL;
    for (uint64_t i = 0; i < trainer->parameters; i++)
        vector->x[i] = (float)(factor * (double)values[i]);
    sgp_outer_forget(&vector->outer);
}

void sgp_vector_trainer_copy(
    struct sgp_trainer *trainer, float *const *snapshot, float keep, uint64_t first, uint64_t count)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    sgp_assert(first <= trainer->parameters && count <= trainer->parameters - first);
    float *x = sgp_vector_trainer_x(vector) + first;
    memcpy(*snapshot + first, x, count * sizeof *x);
    if (!(keep > 0))
        memset(x, 0, count * sizeof *x);
    else if (keep < 1)
        vector->kernels->scale(x, *snapshot + first, keep, count);
}

void sgp_vector_trainer_scale(
    struct sgp_trainer *trainer, double factor, uint64_t first, uint64_t count)
{
    sgp_assert(first <= trainer->parameters && count <= trainer->parameters - first);
    float *x = sgp_vector_trainer_x((struct sgp_vector_trainer *)trainer) + first;
    for (uint64_t i = 0; i < count; i++)
        x[i] = factor <= 0 ? 0 : (float)(factor * (double)x[i]);
}

void sgp_vector_trainer_outer(struct sgp_trainer *trainer, double weight)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    sgp_outer_step(&vector->outer, sgp_vector_trainer_x(vector), weight);
}

void sgp_vector_trainer_exchange(struct sgp_trainer *trainer, float **values)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    float *x = sgp_vector_trainer_x(vector);
    vector->x = *values;
    *values = x;
}

void sgp_vector_trainer_estimate_part(const struct sgp_trainer *trainer, double weight,
    uint64_t first, uint64_t count, float *estimate)
{
    const struct sgp_vector_trainer *vector = (const struct sgp_vector_trainer *)trainer;
    const float *x = vector->x + first;
    if (vector->source) {
        vector->kernels->scale(estimate, vector->source + first, vector->keep, count);
        x = estimate;
    }
    vector->kernels->estimate(estimate, x, weight, count);
}

void sgp_vector_trainer_estimate(const struct sgp_trainer *trainer, double weight, float *estimate)
{
    sgp_vector_trainer_estimate_part(trainer, weight, 0, trainer->parameters, estimate);
}

void sgp_vector_trainer_sketch(
    struct sgp_trainer *trainer, double weight, struct sgp_sketch *ret_sketch)
{
    const float *x = sgp_vector_trainer_x((struct sgp_vector_trainer *)trainer);
    sgp_sketch_of(ret_sketch, x, weight, trainer->parameters);
}

uint64_t sgp_vector_trainer_digest(struct sgp_trainer *trainer)
{
    const float *x = sgp_vector_trainer_x((struct sgp_vector_trainer *)trainer);
    return XXH3_64bits(x, trainer->parameters * sizeof *x);
}

void sgp_vector_trainer_state(struct sgp_trainer *trainer, struct sgp_trainer_state *ret_state)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    const struct sgp_outer *outer = &vector->outer;
    *ret_state = (struct sgp_trainer_state){.x = sgp_vector_trainer_x(vector),
        .outer_anchor = outer->begun ? outer->anchor : NULL,
        .outer_velocity = outer->begun ? outer->velocity : NULL};
}

void sgp_vector_trainer_resume(struct sgp_trainer *trainer, const struct sgp_trainer_state *state)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    struct sgp_outer *outer = &vector->outer;
    size_t bytes = trainer->parameters * sizeof *state->x;
    if (state->x)
        memcpy(sgp_vector_trainer_x(vector), state->x, bytes);
    outer->begun = state->outer_anchor && outer->anchor;
    if (!outer->begun)
        return;
    memcpy(outer->anchor, state->outer_anchor, bytes);
    memcpy(outer->velocity, state->outer_velocity, bytes);
}

void sgp_vector_trainer_go_to(struct sgp_trainer *trainer, uint64_t steps)
{
    (void)trainer;
    (void)steps;
}
