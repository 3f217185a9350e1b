/* SPDX-License-Identifier: Apache-2.0 */
/* Trains one model by one step rule: `rule WORD RATE BATCH EPOCHS SEED DATA`, with DATA the folder of Fashion-MNIST. The
 * model is an MLP 196-64-10 on images of 14 x 14, means of 2 x 2. An epoch has the first 59,392 rows, which batches of 128
 * and of 2,048 divide. Warm-up over an epoch, then a cosine; weight decay 1e-4. Prints one JSON object. */
#include "sgp/learner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE 28u
#define HALF (SIDE / 2)
#define ROWS 59392u
#define TEST_ROWS 10000u

/* The means of 2 x 2 pixels of the first rows. */
static int shrink(const struct sgp_dataset *images, uint64_t rows, struct sgp_error *error,
    struct sgp_dataset **ret_dataset)
{
    if (images->features != SIDE * SIDE || images->rows < rows)
        return sgp_fail(error, SGP_E_DATA, "not the images of Fashion-MNIST");
    float *features = calloc(rows * HALF * HALF, sizeof *features);
    if (!features)
        return -ENOMEM;
    for (uint64_t r = 0; r < rows; r++)
        for (uint32_t i = 0; i < SIDE * SIDE; i++)
            features[r * HALF * HALF + i / SIDE / 2 * HALF + i % SIDE / 2] +=
                (float)images->bytes[r * SIDE * SIDE + i] / (4 * 255);
    int code = sgp_dataset_create_memory(
        features, images->labels, NULL, rows, HALF * HALF, images->classes, 1, ret_dataset);
    free(features);
    return code;
}

static int read_rows(const char *folder, const char *part, uint64_t rows, struct sgp_error *error,
    struct sgp_dataset **ret_dataset)
{
    char images[4096], labels[4096];
    (void)snprintf(images, sizeof images, "%s/%s-images-idx3-ubyte.gz", folder, part);
    (void)snprintf(labels, sizeof labels, "%s/%s-labels-idx1-ubyte.gz", folder, part);
    struct sgp_dataset *whole = NULL;
    int code = sgp_dataset_read_idx(images, labels, NULL, 0, error, &whole);
    if (code == 0)
        code = shrink(whole, rows, error, ret_dataset);
    sgp_dataset_destroy(whole);
    return code;
}

static int train(struct sgp_learner *learner, uint32_t epochs)
{
    struct sgp_trainer *trainer = sgp_learner_trainer(learner);
    struct sgp_training training = {.loss = 0};
    struct sgp_evaluation evaluation = {.accuracy = 0};
    uint32_t steps = epochs * (uint32_t)sgp_learner_steps_per_epoch(learner);
    int code = trainer->methods->train(trainer, 1.0, steps, 1.0, &training);
    if (code == 0)
        code = trainer->methods->evaluate(trainer, 1.0, &evaluation);
    (void)printf("{\"accuracy\": %.4f, \"steps\": %u, \"diverged\": %s}\n", evaluation.accuracy,
        steps, code < 0 ? "true" : "false");
    return 0;
}

/* Settings that are as by default, see docs/CONFIGURATION.md, but for the weight decay. */
static struct sgp_optimizer_settings settings_of(const char *word)
{
    struct sgp_optimizer_settings settings = {.kind = SGP_OPTIMIZER_LAMB,
        .momentum = 0.9,
        .weight_decay = 1e-4,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .alpha = 0.99,
        .epsilon = 1e-8,
        .trust = 1e-3};
    while (settings.kind > 0 && strcmp(sgp_optimizer_name(settings.kind), word) != 0)
        settings.kind--;
    return settings;
}

int main(int count, char **arguments)
{
    if (count != 7) {
        (void)fprintf(stderr, "Usage: %s WORD RATE BATCH EPOCHS SEED DATA\n", arguments[0]);
        return 2;
    }
    struct sgp_error error = {0};
    struct sgp_dataset *rows = NULL, *test = NULL;
    struct sgp_learner *learner = NULL;
    uint32_t epochs = (uint32_t)strtoul(arguments[4], NULL, 10);
    struct sgp_learner_settings settings = {.optimizer = settings_of(arguments[1]),
        .schedule = {.kind = SGP_SCHEDULE_COSINE,
            .learning_rate = strtod(arguments[2], NULL),
            .warmup_epochs = 1,
            .epochs = epochs},
        .batch = (uint32_t)strtoul(arguments[3], NULL, 10),
        .threads = 1,
        .seed = strtoul(arguments[5], NULL, 10)};
    int code = read_rows(arguments[6], "train", ROWS, &error, &rows);
    if (code == 0)
        code = read_rows(arguments[6], "t10k", TEST_ROWS, &error, &test);
    settings.train = rows;
    settings.evaluation = test;
    if (code == 0)
        code = sgp_model_init(&settings.model, "dense 64 relu, dense 10", SGP_LOSS_CROSS_ENTROPY,
            HALF * HALF, &error);
    if (code == 0)
        code = sgp_learner_create(&settings, &error, &learner);
    if (code == 0)
        code = train(learner, epochs);
    else
        (void)fprintf(stderr, "rule: %s\n", error.text);
    sgp_learner_destroy(learner);
    sgp_dataset_destroy(rows);
    sgp_dataset_destroy(test);
    return code < 0 ? 1 : 0;
}
