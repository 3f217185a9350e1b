/* SPDX-License-Identifier: Apache-2.0 */
/* A learner and rows around a few centres, for the tests of learners. */
#ifndef LEARNER_ROWS_H
#define LEARNER_ROWS_H

#include "reference_model.h"
#include "sgp/buffer.h"
#include "sgp/checkpoint.h"
#include "sgp/learner.h"
#include "sgp/random.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <stdlib.h>
#include <string.h>

static __attribute__((unused)) struct sgp_learner_settings settings_of(
    const char *layers, enum sgp_loss loss, const struct sgp_dataset *train, uint32_t batch)
{
    struct sgp_learner_settings settings = {
        .optimizer = {.kind = SGP_OPTIMIZER_SGD},
        .schedule = {.kind = SGP_SCHEDULE_CONSTANT, .learning_rate = 0.1},
        .batch = batch,
        .threads = 1,
        .seed = 3,
        .train = train,
    };
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_model_init(&settings.model, layers, loss, train->features, &error), 0),
        "%s", error.text);
    return settings;
}

static __attribute__((unused)) struct sgp_trainer *create(
    const struct sgp_learner_settings *settings)
{
    struct sgp_learner *learner = NULL;
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_learner_create(settings, &error, &learner), 0), "%s", error.text);
    return sgp_learner_trainer(learner);
}

static __attribute__((unused)) struct sgp_training train(
    struct sgp_trainer *trainer, double weight, uint32_t steps)
{
    struct sgp_training training;
    cr_assert(eq(int, trainer->methods->train(trainer, weight, steps, 1.0, &training), 0));
    return training;
}

/* Rows around one centre a class, far enough apart to be told from each other. */
#define FEATURES 6
#define CLASSES 3

static __attribute__((unused)) struct sgp_dataset *clusters(uint64_t rows, uint64_t seed)
{
    struct sgp_random random;
    sgp_random_init(&random, seed, 0);
    float *features = calloc(rows * FEATURES, sizeof *features);
    uint32_t *labels = calloc(rows, sizeof *labels);
    for (uint64_t r = 0; r < rows; r++) {
        labels[r] = (uint32_t)(r % CLASSES);
        for (uint32_t f = 0; f < FEATURES; f++)
            features[r * FEATURES + f] =
                (float)(0.3 * sgp_random_normal(&random) + (f % CLASSES == labels[r] ? 1.0 : -1.0));
    }
    struct sgp_dataset *dataset = NULL;
    cr_assert(eq(int,
        sgp_dataset_create_memory(features, labels, NULL, rows, FEATURES, CLASSES, 1, &dataset),
        0));
    free(features);
    free(labels);
    return dataset;
}

static __attribute__((unused))
const struct sgp_schedule growing = {.kind = SGP_SCHEDULE_GROWING_BATCH,
    .learning_rate = 0.1,
    .factor = 0.25,
    .growths = 1,
    .milestone_count = 2,
    .milestones = {2, 4}};

static __attribute__((unused)) struct sgp_learner_settings settings_of_rule(
    enum sgp_optimizer_kind kind, const struct sgp_dataset *dataset)
{
    struct sgp_learner_settings settings =
        settings_of("dense 8 tanh, dense 3", SGP_LOSS_CROSS_ENTROPY, dataset, 8);
    settings.optimizer = (struct sgp_optimizer_settings){.kind = kind,
        .momentum = 0.9,
        .weight_decay = 0.01,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .alpha = 0.99,
        .epsilon = 1e-8,
        .trust = 0.1,
        .noise_fraction = 0.25,
        .clip_norm = 1};
    settings.schedule.learning_rate = 0.02;
    return settings;
}

#endif
