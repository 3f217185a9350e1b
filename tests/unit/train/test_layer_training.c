/* SPDX-License-Identifier: Apache-2.0 */
/* Layers in a learner: a run that is interrupted, evaluation, weight decay, and running statistics. */
#include "layers.h"

#define ROWS 40
#define SIDE 6

static struct sgp_dataset *images(void)
{
    static float features[ROWS * SIDE * SIDE];
    static uint32_t labels[ROWS];
    struct sgp_random random;
    sgp_random_init(&random, 3, 0);
    for (size_t r = 0; r < ROWS; r++) {
        labels[r] = (uint32_t)sgp_random_below(&random, 2);
        for (size_t i = 0; i < SIDE * SIDE; i++) /* bars that lie or stand */
            features[r * SIDE * SIDE + i] = (float)((labels[r] ? i % SIDE : i / SIDE) % 2) +
                                            0.3f * (float)sgp_random_normal(&random);
    }
    struct sgp_dataset *dataset;
    cr_assert(eq(int,
        sgp_dataset_create_memory(features, labels, NULL, ROWS, SIDE * SIDE, 2, 0, &dataset), 0));
    return dataset;
}

static struct sgp_learner_settings settings_of(
    const struct sgp_dataset *data, const char *layers, uint32_t node)
{
    return (struct sgp_learner_settings){
        .model = describe(layers, SGP_LOSS_CROSS_ENTROPY, (struct sgp_shape){1, SIDE, SIDE}),
        .optimizer = {.kind = SGP_OPTIMIZER_NESTEROV, .momentum = 0.9, .weight_decay = 0.1},
        .schedule = {.kind = SGP_SCHEDULE_CONSTANT, .learning_rate = 0.02},
        .batch = 8,
        .threads = 1,
        .seed = 9,
        .node = node,
        .train = data,
        .evaluation = data};
}

static struct sgp_learner *learner_of(const struct sgp_learner_settings *settings)
{
    struct sgp_learner *learner;
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_learner_create(settings, &error, &learner), 0), "%s", error.text);
    return learner;
}

static struct sgp_learner *plain_learner(
    const struct sgp_dataset *data, const char *layers, uint32_t node)
{
    struct sgp_learner_settings settings = settings_of(data, layers, node);
    return learner_of(&settings);
}

static void train(struct sgp_learner *learner, uint32_t steps)
{
    struct sgp_trainer *trainer = sgp_learner_trainer(learner);
    struct sgp_training training;
    cr_assert(eq(int, trainer->methods->train(trainer, 1.25, steps, 1, &training), 0));
}

static uint64_t digest(struct sgp_learner *learner)
{
    struct sgp_trainer *trainer = sgp_learner_trainer(learner);
    return trainer->methods->digest(trainer);
}

#define LAYERS                                                                                     \
    "conv 4 3x3, norm batch relu, conv 4 3x3, norm layer, residual 2 relu, pool 2, dropout 0.3, "  \
    "dense 8 relu, norm batch, dropout 0.5, dense 2"

Test(layer_training, a_run_that_was_interrupted_ends_as_one_that_was_not)
{
    struct sgp_dataset *data = images();
    struct sgp_learner *whole = plain_learner(data, LAYERS, 1),
                       *first = plain_learner(data, LAYERS, 1),
                       *second = plain_learner(data, LAYERS, 1),
                       *other = plain_learner(data, LAYERS, 2);
    train(whole, 17);
    train(first, 8);
    struct sgp_trainer_state state = {0};
    sgp_learner_trainer(first)->methods->state(sgp_learner_trainer(first), &state);
    sgp_learner_trainer(second)->methods->resume(sgp_learner_trainer(second), &state);
    train(second, 9);
    cr_assert(eq(u64, digest(second), digest(whole)));
    train(other, 17);
    cr_assert(ne(u64, digest(other), digest(whole)));
    sgp_learner_destroy(whole);
    sgp_learner_destroy(first);
    sgp_learner_destroy(second);
    sgp_learner_destroy(other);
    sgp_dataset_destroy(data);
}

Test(layer_training, evaluation_changes_nothing_and_training_learns)
{
    struct sgp_dataset *data = images();
    struct sgp_learner *learner = plain_learner(data, LAYERS, 0);
    struct sgp_trainer *trainer = sgp_learner_trainer(learner);
    struct sgp_evaluation one, two;
    train(learner, 150);
    uint64_t before = digest(learner);
    cr_assert(eq(int, trainer->methods->evaluate(trainer, 1.25, &one), 0));
    cr_assert(eq(int, trainer->methods->evaluate(trainer, 1.25, &two), 0));
    cr_assert(eq(u64, digest(learner), before));
    cr_assert(eq(dbl, one.loss, two.loss));
    cr_assert(ge(dbl, one.accuracy, 0.95));
    sgp_learner_destroy(learner);
    sgp_dataset_destroy(data);
}

/* Weight decay, momentum and clipping reach all but the statistics: without any data in them,
 * variance and mean go to those of the batch, which are far from 0. */
Test(layer_training, weight_decay_does_not_reach_statistics)
{
    struct sgp_dataset *data = images();
    struct sgp_learner *learner = plain_learner(data, "norm batch, dense 2", 0);
    struct sgp_trainer *trainer = sgp_learner_trainer(learner);
    train(learner, 300);
    float z[4 + 2 * SIDE * SIDE + 2];
    trainer->methods->estimate(trainer, 1.25, z);
    cr_assert(epsilon_eq(dbl, (double)z[2], 0.5, 0.02));  /* bars of 0 and 1, */
    cr_assert(epsilon_eq(dbl, (double)z[3], 0.34, 0.03)); /* and noise of 0.3 */
    sgp_learner_destroy(learner);
    sgp_dataset_destroy(data);
}

/* With `noise = fleet` a step has two passes, over the halves of its batch. */
Test(layer_training, running_statistics_of_a_step_in_two_halves_are_those_of_its_batch)
{
    struct sgp_dataset *data = images();
    float z[2][4 + 2 * SIDE * SIDE + 2];
    for (int halves = 0; halves < 2; halves++) {
        struct sgp_learner_settings settings = settings_of(data, "norm batch, dense 2", 0);
        settings.batch = 9;
        settings.optimizer = (struct sgp_optimizer_settings){.kind = SGP_OPTIMIZER_ADAM,
            .beta1 = 0.9,
            .beta2 = 0.999,
            .epsilon = 1e-8,
            .noise_fraction = halves ? 0.25 : 1};
        struct sgp_learner *learner = learner_of(&settings);
        train(learner, 3);
        struct sgp_trainer *trainer = sgp_learner_trainer(learner);
        trainer->methods->estimate(trainer, 1.25, z[halves]);
        sgp_learner_destroy(learner);
    }
    cr_assert(epsilon_eq(flt, z[1][2], z[0][2], 1e-6f));
    cr_assert(epsilon_eq(flt, z[1][3], z[0][3], 1e-6f));
    sgp_dataset_destroy(data);
}

Test(layer_training, an_embedding_refuses_features_that_are_no_whole_numbers)
{
    const float features[4] = {0, 1, 2, 2.5f};
    const uint32_t labels[2] = {0, 1};
    struct sgp_dataset *data;
    cr_assert(eq(int, sgp_dataset_create_memory(features, labels, NULL, 2, 2, 2, 0, &data), 0));
    struct sgp_learner_settings settings = {.optimizer = {.kind = SGP_OPTIMIZER_SGD},
        .schedule = {.kind = SGP_SCHEDULE_CONSTANT, .learning_rate = 0.02},
        .batch = 2,
        .threads = 1,
        .train = data};
    struct sgp_error error = {0};
    uint64_t bytes;
    cr_assert(eq(int,
        sgp_model_init(
            &settings.model, "embedding 3 x 4, dense 2", SGP_LOSS_CROSS_ENTROPY, 2, NULL),
        0));
    cr_assert(eq(int, sgp_learner_check(&settings, &error, &bytes), SGP_E_DATA));
    cr_assert(eq(str, error.text,
        (char *)"row 2 of the training data has the feature 2.5; an embedding of 3 takes whole "
                "numbers from 0 to 2"));
    sgp_dataset_destroy(data);
}
