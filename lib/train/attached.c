/* SPDX-License-Identifier: Apache-2.0 */
/* Owns x of a program's model, and the estimate that the program was given; see sgp/attached.h. */
#include "sgp/attached.h"

#include "sgp/buffer.h"
#include "sgp/update.h"
#include "vector_trainer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sgp_attached {
    struct sgp_vector_trainer vector; /* first */
    uint64_t values_from;
    float *given; /* z of the turn; later that plus the program's change */
    uint64_t steps;
    bool jumped; /* x was replaced since z was last handed out */
};

/* ---- turns ---- */

/* The values of one block, so that each vector passes through the cache once. */
static uint64_t run_from(uint64_t count, uint64_t at)
{
    return count - at < SGP_KERNELS_RUN ? count - at : SGP_KERNELS_RUN;
}

bool sgp_attached_hand_out(struct sgp_attached *attached, double weight, float *memory)
{
    const struct sgp_trainer *trainer = &attached->vector.trainer;
    bool jumped = attached->jumped;
    attached->jumped = false;
    for (uint64_t at = 0; at < trainer->parameters; at += SGP_KERNELS_RUN) {
        uint64_t run = run_from(trainer->parameters, at);
        sgp_vector_trainer_estimate_part(trainer, weight, at, run, attached->given + at);
        memcpy(memory + at, attached->given + at, run * sizeof *memory);
    }
    return jumped;
}

static uint64_t first_unsound(const float *values, uint64_t count)
{
    uint64_t i = 0;
    while (i < count && fabsf(values[i]) <= SGP_ATTACHED_STEP_MAX)
        i++;
    return i;
}

/* given[i] = x[i] + factor times the program's change at i. Returns how many values of the run were
 * finite and in range: all, or those before the first that was not. Another process may write to
 * `memory` at any time, so each value is read once, checked, and used. */
static uint64_t add_run(struct sgp_attached *attached, const float *x, float factor, uint64_t at,
    uint64_t run, const float *memory)
{
    float added[SGP_KERNELS_RUN], *given = attached->given + at;
    sgp_assert(run > 0 && run <= SGP_KERNELS_RUN);
    for (uint64_t i = 0; i < run; i++)
        added[i] = memory[at + i] - given[i];
    if (!(attached->vector.kernels->largest(added, run) <= SGP_ATTACHED_STEP_MAX))
        return first_unsound(added, run);
    memcpy(given, x + at, run * sizeof *given);
    attached->vector.kernels->absorb(given, added, factor, run);
    return run;
}

/* x is unchanged until all values have passed. Then x and `given` are exchanged. */
int sgp_attached_take_back(struct sgp_attached *attached, double weight, double pace, bool assigned,
    const float *memory, uint64_t *ret_update, uint64_t *ret_first)
{
    struct sgp_vector_trainer *vector = &attached->vector;
    uint64_t count = vector->trainer.parameters, updates = assigned ? 0 : attached->values_from;
    const float *x = sgp_vector_trainer_x(vector);
    for (uint64_t at = 0, run; at < count; at += run) {
        run = run_from(at < updates ? updates : count, at);
        double factor = at < updates ? pace : weight;
        uint64_t sound = add_run(attached, x, (float)factor, at, run, memory);
        if (sound == run)
            continue;
        *ret_first = at + sound;
        return SGP_E_DIVERGED;
    }
    *ret_update = updates > 0 ? sgp_update_digest(attached->given, x, updates, 0) : 0;
    sgp_vector_trainer_take(&vector->trainer, &attached->given);
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
    sgp_state_add_counter(ret_state, SGP_STATE_STEPS, ((struct sgp_attached *)trainer)->steps);
}

static void attached_resume(struct sgp_trainer *trainer, const struct sgp_trainer_state *state)
{
    struct sgp_attached *attached = (struct sgp_attached *)trainer;
    sgp_vector_trainer_resume(trainer, state);
    attached->steps = sgp_state_counter(state, SGP_STATE_STEPS);
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
    .model = sgp_vector_trainer_estimate,
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
