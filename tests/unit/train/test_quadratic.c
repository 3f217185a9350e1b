/* SPDX-License-Identifier: Apache-2.0 */
/* The quadratic trainer, by hand-computed numbers. */
#include "sgp/buffer.h"
#include "sgp/quadratic.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <float.h>
#include <math.h>

static struct sgp_trainer *create(const float *start, double eta)
{
    const float centre[2] = {4.0f, -8.0f};
    struct sgp_trainer *trainer = NULL;
    cr_assert(eq(int, sgp_quadratic_create(2, centre, start, eta, &trainer), 0));
    cr_assert(eq(u64, trainer->parameters, 2));
    return trainer;
}

Test(quadratic, steps_from_the_estimate_and_moves_the_numerator)
{
    const float start[2] = {2.0f, 0.0f};
    struct sgp_trainer *trainer = create(start, 0.5);
    struct sgp_training training;
    /* z = x / 0.5 = (4, 0): gradient (0, 8), loss 32; then x = (2, -4), z = (4, -8), loss 0 */
    cr_assert(eq(int, trainer->methods->train(trainer, 0.5, 2, 1.0, &training), 0));
    cr_assert(eq(u64, training.samples, 2));
    cr_assert(eq(dbl, training.loss, 16.0));
    cr_assert(eq(dbl, training.epoch, 2.0));
    cr_assert(eq(dbl, training.learning_rate, 0.5));
    float z[2];
    trainer->methods->estimate(trainer, 0.5, z);
    cr_assert(eq(flt, z[0], 4.0f));
    cr_assert(eq(flt, z[1], -8.0f));
    struct sgp_evaluation evaluation;
    cr_assert(eq(int, trainer->methods->evaluate(trainer, 1.0, &evaluation), 0));
    cr_assert(eq(dbl, evaluation.loss, 10.0)); /* z = (2, -4): (4 + 16) / 2 */
    cr_assert(isnan(evaluation.accuracy));
    trainer->methods->destroy(trainer);
}

Test(quadratic, eta_zero_changes_nothing)
{
    const float start[2] = {2.0f, -0.0f};
    struct sgp_trainer *trainer = create(start, 0.0);
    uint64_t digest = trainer->methods->digest(trainer);
    struct sgp_training training;
    cr_assert(eq(int, trainer->methods->train(trainer, 1.0, 5, 1.0, &training), 0));
    cr_assert(eq(u64, trainer->methods->digest(trainer), digest));
    trainer->methods->destroy(trainer);
}

Test(quadratic, publish_and_absorb_move_mass)
{
    const float start[2] = {2.0f, 6.0f};
    struct sgp_trainer *source = create(start, 0.0);
    struct sgp_trainer *target = create(NULL, 0.0);
    float *snapshot = NULL;
    cr_assert(eq(int, sgp_vector_create(2, &snapshot), 0));
    source->methods->publish(source, &snapshot, 0.5f);
    target->methods->restore(target, snapshot + 1, 0.5f, 1, 1);
    float z[2];
    source->methods->estimate(source, 0.5, z);
    cr_assert(eq(flt, z[0], 2.0f));
    cr_assert(eq(flt, z[1], 6.0f));
    target->methods->estimate(target, 1.0, z);
    cr_assert(eq(flt, z[0], 0.0f));
    cr_assert(eq(flt, z[1], 3.0f));
    source->methods->destroy(source);
    target->methods->destroy(target);
    sgp_vector_destroy(snapshot);
}

Test(quadratic, divergence_leaves_x)
{
    const float start[2] = {FLT_MAX, FLT_MAX};
    struct sgp_trainer *trainer = create(start, 0.1);
    uint64_t digest = trainer->methods->digest(trainer);
    struct sgp_training training = {.samples = 77};
    cr_assert(eq(int, trainer->methods->train(trainer, 1e-300, 1, 1.0, &training), SGP_E_DIVERGED));
    cr_assert(eq(u64, trainer->methods->digest(trainer), digest));
    cr_assert(eq(u64, training.samples, 77));
    trainer->methods->destroy(trainer);
}

Test(quadratic, refuses_sizes_out_of_range)
{
    struct sgp_trainer *trainer = NULL;
    float value = 0.0f;
    cr_assert(eq(int, sgp_quadratic_create(0, &value, NULL, 0.1, &trainer), SGP_E_LIMIT));
    cr_assert(eq(int, sgp_quadratic_create(SGP_PARAMETERS_MAX + 1, &value, NULL, 0.1, &trainer),
        SGP_E_LIMIT));
    cr_assert(eq(ptr, trainer, NULL));
}
