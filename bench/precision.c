/* SPDX-License-Identifier: Apache-2.0 */
/* Trains one model in one precision: `precision WORD EPOCHS SEED DATA`, with DATA the folder of
 * Fashion-MNIST. WORD is float32, bf16, or reference: bf16's operands multiplied as float32, on
 * every processor. The model is an MLP 784-128-10; batch 64, Nesterov's rule at 0.05, weight decay
 * 1e-4, warm-up over an epoch, then a cosine. Prints one JSON object: accuracy on the test rows,
 * rows a second in training. Where bf16 cannot run, {"refused": why}. */
#include "sgp/learner.h"
#include "stopwatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_rows(
    const char *folder, const char *part, struct sgp_error *error, struct sgp_dataset **ret_dataset)
{
    char images[4096], labels[4096];
    (void)snprintf(images, sizeof images, "%s/%s-images-idx3-ubyte.gz", folder, part);
    (void)snprintf(labels, sizeof labels, "%s/%s-labels-idx1-ubyte.gz", folder, part);
    return sgp_dataset_read_idx(images, labels, NULL, 0, error, ret_dataset);
}

static int train(struct sgp_learner *learner, uint32_t epochs)
{
    struct sgp_trainer *trainer = sgp_learner_trainer(learner);
    struct sgp_training training = {.loss = 0};
    struct sgp_evaluation evaluation = {.accuracy = 0};
    uint32_t steps = epochs * (uint32_t)sgp_learner_steps_per_epoch(learner);
    struct stopwatch start = stopwatch_now();
    int code = trainer->methods->train(trainer, 1.0, steps, 1.0, &training);
    double seconds = stopwatch_since(start, 1).seconds;
    if (code == 0)
        code = trainer->methods->evaluate(trainer, 1.0, &evaluation);
    if (code == 0)
        (void)printf("{\"accuracy\": %.4f, \"rows\": %.6g}\n", evaluation.accuracy,
            (double)training.samples / seconds);
    return code;
}

static enum sgp_precision precision_of(const char *word)
{
    if (strcmp(word, "reference") == 0)
        return SGP_PRECISION_BF16_REFERENCE;
    return strcmp(word, "bf16") == 0 ? SGP_PRECISION_BF16 : SGP_PRECISION_FLOAT32;
}

int main(int count, char **arguments)
{
    if (count != 5) {
        (void)fprintf(stderr, "Usage: %s WORD EPOCHS SEED DATA\n", arguments[0]);
        return 2;
    }
    struct sgp_error error = {0};
    struct sgp_dataset *rows = NULL, *test = NULL;
    struct sgp_learner *learner = NULL;
    uint32_t epochs = (uint32_t)strtoul(arguments[2], NULL, 10);
    struct sgp_learner_settings settings = {
        .optimizer = {.kind = SGP_OPTIMIZER_NESTEROV, .momentum = 0.9, .weight_decay = 1e-4},
        .schedule = {.kind = SGP_SCHEDULE_COSINE,
            .learning_rate = 0.05,
            .warmup_epochs = 1,
            .epochs = epochs},
        .batch = 64,
        .threads = 1,
        .precision = precision_of(arguments[1]),
        .seed = strtoul(arguments[3], NULL, 10)};
    if (sgp_precision_check(settings.precision, &error) < 0) {
        (void)printf("{\"refused\": \"%s\"}\n", error.text);
        return 0;
    }
    int code = read_rows(arguments[4], "train", &error, &rows);
    if (code == 0)
        code = read_rows(arguments[4], "t10k", &error, &test);
    settings.train = rows;
    settings.evaluation = test;
    if (code == 0)
        code = sgp_model_init(&settings.model, "dense 128 relu, dense 10", SGP_LOSS_CROSS_ENTROPY,
            rows->features, &error);
    if (code == 0)
        code = sgp_learner_create(&settings, &error, &learner);
    if (code == 0)
        code = train(learner, epochs);
    if (code < 0)
        (void)fprintf(stderr, "precision: %s\n", error.code ? error.text : sgp_strerror(code));
    sgp_learner_destroy(learner);
    sgp_dataset_destroy(rows);
    sgp_dataset_destroy(test);
    return code < 0 ? 1 : 0;
}
