/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the quadratic trainer: a centre, a step size, a count of steps. Thread: the trainer's. */
#include "sgp/quadratic.h"

#include "sgp/buffer.h"
#include "vector_trainer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sgp_quadratic {
    struct sgp_vector_trainer vector; /* first */
    float *centre;
    float eta;
    uint64_t steps;
};

static double loss(struct sgp_quadratic *quadratic, double weight)
{
    const float *x = sgp_vector_trainer_x(&quadratic->vector);
    double sum = 0.0;
    for (uint64_t i = 0; i < quadratic->vector.trainer.parameters; i++) {
        double distance = (double)x[i] / weight - (double)quadratic->centre[i];
        sum += distance * distance;
    }
    return 0.5 * sum;
}

static int quadratic_train(struct sgp_trainer *trainer, double weight, uint32_t steps, double pace,
    struct sgp_training *ret_training)
{
    struct sgp_quadratic *quadratic = (struct sgp_quadratic *)trainer;
    float *x = sgp_vector_trainer_x(&quadratic->vector);
    float eta = (float)(pace * (double)quadratic->eta);
    double sum = 0.0;
    for (uint32_t step = 0; step < steps; step++) {
        double before = loss(quadratic, weight);
        if (!isfinite(before))
            return SGP_E_DIVERGED;
        sum += before;
        for (uint64_t i = 0; i < trainer->parameters && eta > 0.0f; i++)
            x[i] -= eta * ((float)((double)x[i] / weight) - quadratic->centre[i]);
        quadratic->steps++;
    }
    *ret_training = (struct sgp_training){.samples = steps,
        .loss = steps > 0 ? sum / steps : loss(quadratic, weight),
        .epoch = (double)quadratic->steps,
        .learning_rate = (double)eta};
    return 0;
}

static int quadratic_evaluate(
    struct sgp_trainer *trainer, double weight, struct sgp_evaluation *ret_evaluation)
{
    double value = loss((struct sgp_quadratic *)trainer, weight);
    if (!isfinite(value))
        return SGP_E_DIVERGED;
    *ret_evaluation = (struct sgp_evaluation){.samples = 1, .loss = value, .accuracy = NAN};
    return 0;
}

static void quadratic_destroy(struct sgp_trainer *trainer)
{
    struct sgp_quadratic *quadratic = (struct sgp_quadratic *)trainer;
    if (!quadratic)
        return;
    sgp_vector_trainer_finish(&quadratic->vector);
    sgp_vector_destroy(quadratic->centre);
    free(quadratic);
}

static const struct sgp_trainer_methods methods = {.train = quadratic_train,
    .publish = sgp_vector_trainer_publish,
    .absorb = sgp_vector_trainer_absorb,
    .take = sgp_vector_trainer_take,
    .restore = sgp_vector_trainer_restore,
    .adopt = sgp_vector_trainer_adopt,
    .copy = sgp_vector_trainer_copy,
    .scale = sgp_vector_trainer_scale,
    .outer = sgp_vector_trainer_outer,
    .exchange = sgp_vector_trainer_exchange,
    .evaluate = quadratic_evaluate,
    .estimate = sgp_vector_trainer_estimate,
    .model = sgp_vector_trainer_estimate,
    .sketch = sgp_vector_trainer_sketch,
    .digest = sgp_vector_trainer_digest,
    .state = sgp_vector_trainer_state,
    .resume = sgp_vector_trainer_resume,
    .go_to = sgp_vector_trainer_go_to,
    .destroy = quadratic_destroy};

int sgp_quadratic_create(uint64_t parameters, const float *centre, const float *start, double eta,
    struct sgp_trainer **ret_trainer)
{
    sgp_assert(isfinite(eta) && eta >= 0.0);
    struct sgp_quadratic *quadratic = calloc(1, sizeof *quadratic);
    if (!quadratic)
        return -ENOMEM;
    int status = sgp_vector_trainer_init(&quadratic->vector, &methods, parameters);
    if (status == 0)
        status = sgp_vector_create(parameters, &quadratic->centre);
    if (status < 0) {
        quadratic_destroy(&quadratic->vector.trainer);
        return status;
    }
    memcpy(quadratic->centre, centre, parameters * sizeof *centre);
    if (start)
        memcpy(quadratic->vector.x, start, parameters * sizeof *start);
    quadratic->eta = (float)eta;
    *ret_trainer = &quadratic->vector.trainer;
    return 0;
}

int sgp_quadratic_begin_outer(
    struct sgp_trainer *trainer, const struct sgp_outer_settings *settings)
{
    return sgp_vector_trainer_begin_outer((struct sgp_vector_trainer *)trainer, settings);
}
