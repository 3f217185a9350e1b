/* SPDX-License-Identifier: Apache-2.0 */
/* Trains one model by one step rule: `train_rule WORD RATE BATCH EPOCHS SEED DATA [NODES NOISE]`, with DATA the folder of
 * Fashion-MNIST. The model is an MLP 196-64-10 on images of 14 x 14, means of 2 x 2. An epoch has the first 59,392 rows, which
 * batches of 128 and of 2,048 divide. Warm-up over an epoch, then a cosine; weight decay 1e-4. Prints one JSON object. With NODES, a
 * power of two, as many learners take a part of each batch, and average along the one-peer exponential graph after each step; NOISE is
 * node or fleet. */
#include "sgp/buffer.h"
#include "sgp/learner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE 28u
#define HALF (SIDE / 2)
#define ROWS 59392u
#define TEST_ROWS 10000u
#define NODES_MAX 64u

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

struct fleet {
    uint32_t nodes;
    struct sgp_dataset *rows[NODES_MAX];
    struct sgp_learner *learners[NODES_MAX];
    float *x[NODES_MAX]; /* as the learners published it */
};

/* One round of the graph: each node keeps a half of its x, and has one from the node that is `hop` before it. */
static void mix(struct fleet *fleet, uint32_t hop)
{
    for (uint32_t i = 0; i < fleet->nodes; i++) {
        struct sgp_trainer *trainer = sgp_learner_trainer(fleet->learners[i]);
        trainer->methods->copy(trainer, &fleet->x[i], 0.5f, 0, trainer->parameters);
    }
    for (uint32_t i = 0; i < fleet->nodes; i++) {
        struct sgp_trainer *trainer = sgp_learner_trainer(fleet->learners[i]);
        const float *share = fleet->x[(i + fleet->nodes - hop) % fleet->nodes];
        trainer->methods->restore(trainer, share, 0.5f, 0, trainer->parameters);
    }
}

/* *loss: the mean of the steps' rows. */
static int take_steps(struct fleet *fleet, uint32_t steps, uint32_t *hop, double *loss)
{
    *loss = 0;
    for (uint32_t step = 0; step < steps; step++) {
        for (uint32_t i = 0; i < fleet->nodes; i++) {
            struct sgp_trainer *trainer = sgp_learner_trainer(fleet->learners[i]);
            struct sgp_training training;
            int code = trainer->methods->train(trainer, 1.0, 1, 1.0, &training);
            if (code < 0)
                return code;
            *loss += training.loss / fleet->nodes / steps;
        }
        if (fleet->nodes > 1)
            mix(fleet, *hop);
        *hop = 2 * *hop < fleet->nodes ? 2 * *hop : 1;
    }
    return 0;
}

/* Loss of the rows of every epoch, and accuracy of the first node after a last exact average. */
static int train(struct fleet *fleet, uint32_t epochs)
{
    struct sgp_trainer *trainer = sgp_learner_trainer(fleet->learners[0]);
    struct sgp_evaluation evaluation = {.accuracy = 0};
    uint32_t steps = (uint32_t)sgp_learner_steps_per_epoch(fleet->learners[0]), hop = 1;
    int code = 0;
    (void)printf("{\"losses\": [");
    for (uint32_t epoch = 0; epoch < epochs && code == 0; epoch++) {
        double loss;
        code = take_steps(fleet, steps, &hop, &loss);
        (void)printf("%s%.4f", epoch > 0 ? ", " : "", code == 0 ? loss : -1);
    }
    for (hop = 1; hop < fleet->nodes; hop *= 2)
        mix(fleet, hop);
    if (code == 0)
        code = trainer->methods->evaluate(trainer, 1.0, &evaluation);
    (void)printf("], \"accuracy\": %.4f, \"steps\": %u, \"diverged\": %s}\n", evaluation.accuracy,
        epochs * steps, code < 0 ? "true" : "false");
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
        .trust = 1e-3,
        .noise_fraction = 1};
    while (settings.kind > 0 && strcmp(sgp_optimizer_name(settings.kind), word) != 0)
        settings.kind--;
    return settings;
}

/* Rows node, node + nodes, ... of the whole. */
static int deal(
    const struct sgp_dataset *whole, uint32_t node, uint32_t nodes, struct sgp_dataset **ret_rows)
{
    uint64_t rows = whole->rows / nodes;
    size_t bytes = whole->features * sizeof(float);
    float *features = calloc(rows, bytes);
    uint32_t *labels = calloc(rows, sizeof *labels);
    int code = features && labels ? 0 : -ENOMEM;
    for (uint64_t r = 0; code == 0 && r < rows; r++) {
        memcpy(features + r * whole->features, whole->floats + (r * nodes + node) * whole->features,
            bytes);
        labels[r] = whole->labels[r * nodes + node];
    }
    if (code == 0)
        code = sgp_dataset_create_memory(
            features, labels, NULL, rows, (uint32_t)whole->features, whole->classes, 1, ret_rows);
    free(features);
    free(labels);
    return code;
}

/* `settings` is that of all but the node. */
static int begin(struct fleet *fleet, struct sgp_learner_settings settings,
    const struct sgp_dataset *whole, struct sgp_error *error)
{
    int code = 0;
    settings.batch /= fleet->nodes;
    for (uint32_t i = 0; i < fleet->nodes && code == 0; i++) {
        code = deal(whole, i, fleet->nodes, &fleet->rows[i]);
        settings.train = fleet->rows[i];
        settings.node = i;
        if (code == 0)
            code = sgp_vector_create(settings.model.parameters, &fleet->x[i]);
        if (code == 0)
            code = sgp_learner_create(&settings, error, &fleet->learners[i]);
    }
    return code;
}

static void finish(struct fleet *fleet)
{
    for (uint32_t i = 0; i < fleet->nodes; i++) {
        sgp_learner_destroy(fleet->learners[i]);
        sgp_dataset_destroy(fleet->rows[i]);
        sgp_vector_destroy(fleet->x[i]);
    }
}

static int read_nodes(int count, char **arguments, struct fleet *fleet)
{
    fleet->nodes = count == 9 ? (uint32_t)strtoul(arguments[7], NULL, 10) : 1;
    bool power = fleet->nodes > 0 && (fleet->nodes & (fleet->nodes - 1)) == 0;
    if ((count == 7 || count == 9) && power && fleet->nodes <= NODES_MAX)
        return 0;
    (void)fprintf(
        stderr, "Usage: %s WORD RATE BATCH EPOCHS SEED DATA [NODES node|fleet]\n", arguments[0]);
    return 2;
}

int main(int count, char **arguments)
{
    struct fleet fleet = {0};
    if (read_nodes(count, arguments, &fleet) != 0)
        return 2;
    struct sgp_error error = {0};
    struct sgp_dataset *rows = NULL, *test = NULL;
    uint32_t epochs = (uint32_t)strtoul(arguments[4], NULL, 10);
    struct sgp_learner_settings settings = {.optimizer = settings_of(arguments[1]),
        .schedule = {.kind = SGP_SCHEDULE_COSINE,
            .learning_rate = strtod(arguments[2], NULL),
            .warmup_epochs = 1,
            .epochs = epochs},
        .batch = (uint32_t)strtoul(arguments[3], NULL, 10),
        .threads = 1,
        .seed = strtoul(arguments[5], NULL, 10)};
    if (count == 9 && strcmp(arguments[8], "fleet") == 0)
        settings.optimizer.noise_fraction = 1.0 / fleet.nodes;
    int code = read_rows(arguments[6], "train", ROWS, &error, &rows);
    if (code == 0)
        code = read_rows(arguments[6], "t10k", TEST_ROWS, &error, &test);
    settings.evaluation = test;
    if (code == 0)
        code = sgp_model_init(&settings.model, "dense 64 relu, dense 10", SGP_LOSS_CROSS_ENTROPY,
            HALF * HALF, &error);
    if (code == 0)
        code = begin(&fleet, settings, rows, &error);
    if (code == 0)
        code = train(&fleet, epochs);
    else
        (void)fprintf(stderr, "train_rule: %s\n", error.text);
    finish(&fleet);
    sgp_dataset_destroy(rows);
    sgp_dataset_destroy(test);
    return code < 0 ? 1 : 0;
}
