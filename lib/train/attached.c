/* SPDX-License-Identifier: Apache-2.0 */
/* Owns x of a program's model, and the estimate that the program was given; see sgp/attached.h. */
#include "sgp/attached.h"

#include "sgp/buffer.h"
#include "vector_trainer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sgp_attached {
    struct sgp_vector_trainer vector; /* first */
    uint64_t values_from;
    float *given; /* z of the turn; then what the program added to it */
    uint64_t steps;
    bool jumped; /* x was replaced since z was given last */
};

/* ---- turns ---- */

bool sgp_attached_hand_out(struct sgp_attached *attached, double weight, float *memory)
{
    const struct sgp_trainer *trainer = &attached->vector.trainer;
    bool jumped = attached->jumped;
    attached->jumped = false;
    sgp_vector_trainer_estimate(trainer, weight, attached->given);
    memcpy(memory, attached->given, trainer->parameters * sizeof *memory);
    return jumped;
}

static uint64_t first_unsound(const float *values, uint64_t count)
{
    uint64_t i = 0;
    while (i < count && fabsf(values[i]) <= SGP_ATTACHED_STEP_MAX)
        i++;
    return i;
}

/* Another process may write there at any time: what is looked at is what was read, and is taken. */
static int difference(struct sgp_attached *attached, const float *memory, uint64_t *ret_first)
{
    uint64_t count = attached->vector.trainer.parameters;
    float *given = attached->given;
    for (uint64_t at = 0; at < count; at += SGP_KERNELS_RUN) {
        uint64_t run = count - at < SGP_KERNELS_RUN ? count - at : SGP_KERNELS_RUN;
        for (uint64_t i = at; i < at + run; i++)
            given[i] = memory[i] - given[i];
        if (attached->vector.kernels->largest(given + at, run) <= SGP_ATTACHED_STEP_MAX)
            continue;
        *ret_first = at + first_unsound(given + at, run);
        return SGP_E_DIVERGED;
    }
    return 0;
}

int sgp_attached_take_back(struct sgp_attached *attached, double weight, double pace, bool assigned,
    const float *memory, uint64_t *ret_first)
{
    struct sgp_vector_trainer *vector = &attached->vector;
    int status = difference(attached, memory, ret_first);
    if (status < 0)
        return status;
    uint64_t count = vector->trainer.parameters, updates = assigned ? 0 : attached->values_from;
    float *x = sgp_vector_trainer_x(vector);
    vector->kernels->absorb(x, attached->given, (float)pace, updates);
    vector->kernels->absorb(x + updates, attached->given + updates, (float)weight, count - updates);
    attached->steps++;
    return 0;
}

/* ---- as a trainer ---- */

static void attached_adopt(struct sgp_trainer *trainer, const float *values, double factor)
{
    sgp_vector_trainer_adopt(trainer, values, factor);
    ((struct sgp_attached *)trainer)->jumped = true;
}

static void attached_state(struct sgp_trainer *trainer, struct sgp_trainer_state *ret_state)
{
    sgp_vector_trainer_state(trainer, ret_state);
    ret_state->steps = ((struct sgp_attached *)trainer)->steps;
}

static void attached_resume(struct sgp_trainer *trainer, const struct sgp_trainer_state *state)
{
    struct sgp_attached *attached = (struct sgp_attached *)trainer;
    sgp_vector_trainer_resume(trainer, state);
    attached->steps = state->steps;
    attached->jumped = true;
}

static int attached_evaluate(
    struct sgp_trainer *trainer, double weight, struct sgp_evaluation *ret_evaluation)
{
    (void)trainer;
    (void)weight;
    *ret_evaluation = (struct sgp_evaluation){.samples = 0, .loss = NAN, .accuracy = NAN};
    return 0;
}

static void attached_destroy(struct sgp_trainer *trainer)
{
    struct sgp_attached *attached = (struct sgp_attached *)trainer;
    if (!attached)
        return;
    sgp_vector_trainer_finish(&attached->vector);
    sgp_vector_destroy(attached->given);
    free(attached);
}

static const struct sgp_trainer_methods methods = {.train = NULL,
    .publish = sgp_vector_trainer_publish,
    .absorb = sgp_vector_trainer_absorb,
    .take = sgp_vector_trainer_take,
    .restore = sgp_vector_trainer_restore,
    .adopt = attached_adopt,
    .copy = sgp_vector_trainer_copy,
    .scale = sgp_vector_trainer_scale,
    .outer = sgp_vector_trainer_outer,
    .exchange = sgp_vector_trainer_exchange,
    .evaluate = attached_evaluate,
    .estimate = sgp_vector_trainer_estimate,
    .sketch = sgp_vector_trainer_sketch,
    .digest = sgp_vector_trainer_digest,
    .state = attached_state,
    .resume = attached_resume,
    .go_to = sgp_vector_trainer_go_to,
    .destroy = attached_destroy};

struct sgp_trainer *sgp_attached_trainer(struct sgp_attached *attached)
{
    return &attached->vector.trainer;
}

int sgp_attached_create(const struct sgp_attached_settings *settings, struct sgp_error *error,
    struct sgp_attached **ret_attached)
{
    sgp_assert(settings->values_from <= settings->parameters);
    int status = sgp_outer_check(&settings->outer, error);
    if (status < 0)
        return status;
    struct sgp_attached *attached = calloc(1, sizeof *attached);
    if (!attached)
        return -ENOMEM;
    attached->values_from = settings->values_from;
    status = sgp_vector_trainer_init(&attached->vector, &methods, settings->parameters);
    if (status == 0)
        status = sgp_vector_create(settings->parameters, &attached->given);
    if (status == 0)
        status = sgp_vector_trainer_begin_outer(&attached->vector, &settings->outer);
    if (status < 0) {
        attached_destroy(&attached->vector.trainer);
        return status;
    }
    *ret_attached = attached;
    return 0;
}
