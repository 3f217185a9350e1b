/* SPDX-License-Identifier: Apache-2.0 */
/* Owns x, the flat vector behind a trainer. Thread: the trainer's.
 *
 * A publication does not copy x. The vector of x is lent to the snapshot, and scaling x by `keep`
 * is deferred until x next changes. The next change is mostly a share of the same length. Then the
 * sum is written over the share, whose memory becomes x. The addition happens here, or while the
 * share arrives (`take`). Parts of x are deferred by ranges. When a share is added to a deferred
 * range, one pass scales and adds. */
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
    vector->trainer = (struct sgp_trainer){
        .methods = methods, .parameters = parameters, .model_values = parameters};
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

/* Values that stay in the cache between two reads. */
#define BLOCK_VALUES ((uint64_t)SGP_KERNELS_RUN)
/* So many values do not fit in a core's own cache. */
#define STREAM_VALUES ((uint64_t)1 << 18)

static uint64_t block_after(uint64_t at, uint64_t count)
{
    return count - at < BLOCK_VALUES ? count - at : BLOCK_VALUES;
}

/* ---- ranges of x whose scaling is deferred ---- */

/* y[0..count) = x[first..first + count), which lies in the deferred range. */
static void write_range(const struct sgp_vector_trainer *vector,
    const struct sgp_vector_range *range, uint64_t first, uint64_t count, float *y)
{
    if (range->keep > 0)
        vector->kernels->scale(y, vector->source + first, range->keep, count);
    else
        memset(y, 0, count * sizeof *y);
}

static bool holds(const struct sgp_vector_range *range, uint64_t first, uint64_t count)
{
    return range->first <= first && first + count <= range->first + range->count;
}

/* The deferred range that holds all of these values, or NULL. */
static const struct sgp_vector_range *range_of(
    const struct sgp_vector_trainer *vector, uint64_t first, uint64_t count)
{
    for (uint32_t i = 0; i < vector->range_count; i++)
        if (holds(&vector->ranges[i], first, count))
            return &vector->ranges[i];
    return NULL;
}

/* Drop all deferred ranges: the memory of x is valid. */
static void forget(struct sgp_vector_trainer *vector)
{
    vector->range_count = 0;
    vector->source = NULL;
}

float *sgp_vector_trainer_x(struct sgp_vector_trainer *vector)
{
    for (uint32_t i = 0; i < vector->range_count; i++) {
        const struct sgp_vector_range *range = &vector->ranges[i];
        write_range(vector, range, range->first, range->count, vector->x + range->first);
    }
    forget(vector);
    return vector->x;
}

/* Add a deferred range. If there are too many ranges, write its values instead. */
static void remember(struct sgp_vector_trainer *vector, struct sgp_vector_range range)
{
    if (range.count == 0)
        return;
    if (vector->range_count < SGP_VECTOR_RANGES_MAX)
        vector->ranges[vector->range_count++] = range;
    else
        write_range(vector, &range, range.first, range.count, vector->x + range.first);
}

/* x[first..first + count) is about to be written, so remove it from all deferred ranges. */
static void cut(struct sgp_vector_trainer *vector, uint64_t first, uint64_t count)
{
    for (uint32_t i = vector->range_count; i-- > 0;) {
        struct sgp_vector_range range = vector->ranges[i];
        uint64_t end = range.first + range.count;
        if (end <= first || first + count <= range.first)
            continue;
        vector->ranges[i] = vector->ranges[--vector->range_count];
        if (range.first < first)
            remember(
                vector, (struct sgp_vector_range){range.first, first - range.first, range.keep});
        if (first + count < end)
            remember(
                vector, (struct sgp_vector_range){first + count, end - first - count, range.keep});
    }
}

/* y[0..count) = x[first..first + count), but only the values in deferred ranges are written. */
static void write_known(
    const struct sgp_vector_trainer *vector, uint64_t first, uint64_t count, float *y)
{
    for (uint32_t i = 0; i < vector->range_count; i++) {
        const struct sgp_vector_range *range = &vector->ranges[i];
        uint64_t low = range->first > first ? range->first : first;
        uint64_t end = range->first + range->count;
        end = first + count < end ? first + count : end;
        if (low < end)
            write_range(vector, range, low, end - low, y + (low - first));
    }
}

/* Make x[first..first + count) valid in memory, to be read and written. */
static float *settle(struct sgp_vector_trainer *vector, uint64_t first, uint64_t count)
{
    write_known(vector, first, count, vector->x + first);
    cut(vector, first, count);
    return vector->x + first;
}

/* Defer: from now on, these values of x are keep times the source. */
static void know(struct sgp_vector_trainer *vector, uint64_t first, uint64_t count, float keep)
{
    cut(vector, first, count);
    remember(vector, (struct sgp_vector_range){first, count, keep});
}

/* ---- the methods ---- */

void sgp_vector_trainer_publish(struct sgp_trainer *trainer, float **snapshot, float keep)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    float *spare = *snapshot;
    *snapshot = sgp_vector_trainer_x(vector);
    vector->x = spare;
    vector->source = *snapshot;
    know(vector, 0, trainer->parameters, keep);
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

/* x[first..first + count) += fraction * share, where x is deferred in `range`, or valid in memory
 * if `range` is NULL. */
static void add(struct sgp_vector_trainer *vector, const struct sgp_vector_range *range,
    const float *share, float fraction, uint64_t first, uint64_t count)
{
    float *x = vector->x + first;
    if (range != NULL)
        write_range(vector, range, first, count, x);
    vector->kernels->absorb(x, share, fraction, count);
}

/* As add, but the sum is written over the share. */
static void add_over(
    struct sgp_vector_trainer *vector, float *share, float fraction, uint64_t first, uint64_t count)
{
    double squares; /* not used: the share was measured when it arrived */
    (void)vector->kernels->fold(
        &squares, share, vector->source + first, vector->ranges[0].keep, fraction, count);
}

void sgp_vector_trainer_absorb(struct sgp_trainer *trainer, float **share, float fraction,
    uint64_t first, uint64_t count, struct sgp_comparison *comparison)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    sgp_assert(first <= trainer->parameters && count <= trainer->parameters - first);
    const struct sgp_vector_range *known = range_of(vector, first, count);
    bool exchange = known != NULL && vector->source != NULL && count == trainer->parameters;
    /* Zeros that would leave the cache before their next use need not be read into the cache. */
    bool streams = known != NULL && known->keep <= 0 && !exchange && comparison == NULL &&
                   count >= STREAM_VALUES;
    struct sgp_vector_range range = known != NULL ? *known : (struct sgp_vector_range){0};
    if (known == NULL)
        (void)settle(vector, first, count);
    else if (!exchange)
        cut(vector, first, count);
    if (streams) {
        vector->kernels->place(vector->x + first, *share, fraction, count);
        return;
    }
    if (comparison)
        comparison->difference = comparison->norm = 0;
    uint64_t stride = sgp_kernels_stride(count);
    for (uint64_t at = 0, block; at < count; at += block) {
        block = block_after(at, count);
        if (comparison && at / BLOCK_VALUES % stride == 0)
            compare(vector->kernels, comparison, *share + at, first + at, block);
        if (exchange)
            add_over(vector, *share + at, fraction, at, block);
        else
            add(vector, known != NULL ? &range : NULL, *share + at, fraction, first + at, block);
    }
    if (exchange)
        sgp_vector_trainer_take(trainer, share);
}

void sgp_vector_trainer_take(struct sgp_trainer *trainer, float **values)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    float *spare = vector->x;
    vector->x = *values;
    forget(vector);
    *values = spare;
}

void sgp_vector_trainer_restore(
    struct sgp_trainer *trainer, const float *share, float fraction, uint64_t first, uint64_t count)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    sgp_assert(first <= trainer->parameters && count <= trainer->parameters - first);
    vector->kernels->absorb(settle(vector, first, count), share, fraction, count);
}

void sgp_vector_trainer_adopt(struct sgp_trainer *trainer, const float *values, double factor)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    forget(vector);
    for (uint64_t i = 0; i < trainer->parameters; i++)
        vector->x[i] = (float)(factor * (double)values[i]);
    sgp_outer_forget(&vector->outer);
}

void sgp_vector_trainer_copy(
    struct sgp_trainer *trainer, float *const *snapshot, float keep, uint64_t first, uint64_t count)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    sgp_assert(first <= trainer->parameters && count <= trainer->parameters - first);
    if (*snapshot == vector->source) /* the source is about to be written */
        (void)sgp_vector_trainer_x(vector);
    float *x = settle(vector, first, count);
    memcpy(*snapshot + first, x, count * sizeof *x);
    if (!(keep > 0))
        know(vector, first, count, 0);
    else if (keep < 1)
        vector->kernels->scale(x, *snapshot + first, keep, count);
}

void sgp_vector_trainer_scale(
    struct sgp_trainer *trainer, double factor, uint64_t first, uint64_t count)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    sgp_assert(first <= trainer->parameters && count <= trainer->parameters - first);
    const struct sgp_vector_range *range = range_of(vector, first, count);
    bool unscaled = range != NULL && range->keep >= 1 && range->keep <= 1;
    bool exact = (double)(float)factor >= factor && (double)(float)factor <= factor;
    if (factor <= 0 && count == trainer->parameters)
        forget(vector);
    if (factor <= 0 || (unscaled && exact)) {
        know(vector, first, count, factor <= 0 ? 0 : (float)factor);
        return;
    }
    float *x = settle(vector, first, count);
    for (uint64_t i = 0; i < count; i++)
        x[i] = (float)(factor * (double)x[i]);
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
    if (vector->range_count == 0) {
        vector->kernels->estimate(estimate, vector->x + first, weight, count);
        return;
    }
    if (range_of(vector, first, count) == NULL)
        memcpy(estimate, vector->x + first, count * sizeof *estimate);
    write_known(vector, first, count, estimate);
    vector->kernels->estimate(estimate, estimate, weight, count);
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
    *ret_state = (struct sgp_trainer_state){.x = sgp_vector_trainer_x(vector)};
    sgp_outer_state(&vector->outer, ret_state);
}

void sgp_vector_trainer_resume(struct sgp_trainer *trainer, const struct sgp_trainer_state *state)
{
    struct sgp_vector_trainer *vector = (struct sgp_vector_trainer *)trainer;
    if (!state->x)
        return;
    memcpy(sgp_vector_trainer_x(vector), state->x, trainer->parameters * sizeof *state->x);
    sgp_outer_resume(&vector->outer, state);
}

void sgp_vector_trainer_go_to(struct sgp_trainer *trainer, uint64_t steps)
{
    (void)trainer;
    (void)steps;
}
