/* SPDX-License-Identifier: Apache-2.0 */
/* Rows a second of a built-in model in training: `learn LAYERS BATCH THREADS SECONDS DATA
 * [PRECISION [NOISE]]`, with LAYERS as in a configuration, DATA the folder of Fashion-MNIST, and
 * PRECISION float32 (the default) or bf16. With NOISE steps are private. Nesterov's rule with weight decay, as in the demo. Prints one JSON
 * object: rows a second, rows a second of processor time (all threads), the last loss, and the
 * kernels of OpenBLAS in use. Where bf16 cannot run, {"refused": why}. */
#include "sgp/learner.h"
#include "stopwatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARMUP_STEPS 30u
#define STEPS_AT_ONCE 10u

static int measure(struct sgp_trainer *trainer, double seconds, const char *kernels)
{
    struct sgp_training training;
    uint64_t rows = 0;
    if (trainer->methods->train(trainer, 1.0, WARMUP_STEPS, 1.0, &training) < 0)
        return 1;
    struct stopwatch start = stopwatch_now();
    do {
        if (trainer->methods->train(trainer, 1.0, STEPS_AT_ONCE, 1.0, &training) < 0)
            return 1;
        rows += training.samples;
    } while (stopwatch_since(start, 1).seconds < seconds);
    struct stopwatch each = stopwatch_since(start, rows);
    (void)printf("{\"rows\": %.6g, \"rows_by_cpu\": %.6g, \"loss\": %.6g, \"kernels\": \"%s\"}\n",
        1.0 / each.seconds, 1.0 / each.cpu_seconds, training.loss, kernels);
    return 0;
}

/* Choose kernels as the daemon does: only for a model that needs OpenBLAS. */
static int fit(
    const struct sgp_learner_settings *settings, struct sgp_error *error, struct sgp_blas *ret_blas)
{
    struct sgp_blas_layer layers[SGP_LAYERS_MAX];
    uint32_t products = sgp_model_products(&settings->model, settings->batch, layers);
    const struct sgp_blas_wish wish = {
        .layers = layers, .count = products, .threads = settings->threads};
    return sgp_blas_fit(&wish, error, ret_blas);
}

static enum sgp_precision precision_of(const char *word)
{
    return strcmp(word, "bf16") == 0 ? SGP_PRECISION_BF16 : SGP_PRECISION_FLOAT32;
}

int main(int count, char **arguments)
{
    if (count < 6 || count > 8) {
        (void)fprintf(stderr, "Usage: %s LAYERS BATCH THREADS SECONDS DATA [PRECISION [NOISE]]\n",
            arguments[0]);
        return 2;
    }
    char rows[4096], labels[4096];
    (void)snprintf(rows, sizeof rows, "%s/train-images-idx3-ubyte.gz", arguments[5]);
    (void)snprintf(labels, sizeof labels, "%s/train-labels-idx1-ubyte.gz", arguments[5]);
    struct sgp_error error = {0};
    struct sgp_dataset *data = NULL;
    struct sgp_learner *learner = NULL;
    struct sgp_blas blas = {.by_user = false};
    struct sgp_learner_settings settings = {
        .optimizer = {.kind = SGP_OPTIMIZER_NESTEROV, .momentum = 0.9, .weight_decay = 1e-4},
        .schedule = {.kind = SGP_SCHEDULE_CONSTANT, .learning_rate = 0.01},
        .batch = (uint32_t)strtoul(arguments[2], NULL, 10),
        .threads = (uint32_t)strtoul(arguments[3], NULL, 10),
        .precision = precision_of(count > 6 ? arguments[6] : "float32"),
        .seed = 1};
    if (count == 8) /* the key is known, which costs the same */
        settings.privacy =
            (struct sgp_learner_privacy){.clip = 1, .noise = strtod(arguments[7], NULL)};
    if (sgp_precision_check(settings.precision, &error) < 0) {
        (void)printf("{\"refused\": \"%s\"}\n", error.text);
        return 0;
    }
    int code = sgp_dataset_read_idx(rows, labels, NULL, 0, &error, &data);
    if (code == 0)
        code = sgp_model_init_shaped(
            &settings.model, arguments[1], SGP_LOSS_CROSS_ENTROPY, data->shape, &error);
    settings.train = data;
    if (code == 0)
        code = fit(&settings, &error, &blas);
    if (code == 0)
        code = sgp_learner_create(&settings, &error, &learner);
    if (code < 0)
        (void)fprintf(stderr, "learn: %s\n", error.text);
    int status =
        code < 0 ? 1
                 : measure(sgp_learner_trainer(learner), strtod(arguments[4], NULL), blas.kernels);
    sgp_learner_destroy(learner);
    sgp_dataset_destroy(data);
    return status;
}
