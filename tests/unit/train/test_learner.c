/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in trainer: against a slow float64 reference, over epochs, when it diverges, and without
 * a single allocation once it exists. */
#include "learner_rows.h"

#include <errno.h>

/* --- counting allocations; a sanitizer brings an allocator of its own --- */

#if defined(__SANITIZE_ADDRESS__)
#define COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COUNTS_ALLOCATIONS 0
#endif
#endif
#ifndef COUNTS_ALLOCATIONS
#define COUNTS_ALLOCATIONS 1
#endif

#if COUNTS_ALLOCATIONS
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static uint64_t allocations; /* of the whole process, BLAS included */

/* These take the place of libc's for everything that the test is linked with. */
void *malloc(size_t size)
{
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_memalign(alignment, size);
}
#endif

/* --- tools --- */

/* --- training --- */

/* Whole-batch Nesterov steps with decay, warm-up and w != 1, against the same in float64 with
 * gradients by differences. */
static void against_reference(const char *layers, enum sgp_loss loss, double weight)
{
    enum { ROWS = 12, STEPS = 8, PARAMETERS_MAX = 200 };
    struct sgp_random random;
    sgp_random_init(&random, 5, 0);
    float features[ROWS * 4];
    uint32_t labels[ROWS];
    for (size_t i = 0; i < ROWS * 4; i++)
        features[i] = (float)sgp_random_normal(&random);
    for (size_t i = 0; i < ROWS; i++)
        labels[i] = (uint32_t)sgp_random_below(&random, 3);
    struct sgp_dataset *dataset = NULL;
    cr_assert(
        eq(int, sgp_dataset_create_memory(features, labels, NULL, ROWS, 4, 3, 1, &dataset), 0));
    struct sgp_learner_settings settings = settings_of(layers, loss, dataset, ROWS);
    settings.optimizer = (struct sgp_optimizer_settings){
        .kind = SGP_OPTIMIZER_NESTEROV, .momentum = 0.9, .weight_decay = 0.01};
    settings.schedule.warmup_epochs = 4.0;
    struct sgp_trainer *trainer = create(&settings);
    uint64_t parameters = trainer->parameters;
    cr_assert(le(u64, parameters, PARAMETERS_MAX));

    float start[PARAMETERS_MAX];
    trainer->methods->estimate(trainer, 1.0, start);
    double x[PARAMETERS_MAX];
    double z[PARAMETERS_MAX];
    double u[PARAMETERS_MAX] = {0};
    double gradient[PARAMETERS_MAX];
    for (uint64_t i = 0; i < parameters; i++)
        x[i] = (double)start[i];
    for (int step = 0; step < STEPS; step++) {
        double rate = 0.1 * (step < 4 ? (step + 0.5) / 4.0 : 1.0); /* one step an epoch */
        for (uint64_t i = 0; i < parameters; i++)
            z[i] = x[i] / weight;
        double expected = reference_loss(&settings.model, z, features, labels, NULL, ROWS);
        reference_gradient(&settings.model, z, gradient, features, labels, NULL, ROWS);
        for (uint64_t i = 0; i < parameters; i++) {
            double g = gradient[i] + 0.01 * z[i];
            u[i] = 0.9 * u[i] + g;
            x[i] -= rate * (g + 0.9 * u[i]);
        }
        struct sgp_training training = train(trainer, weight, 1);
        cr_assert(epsilon_eq(dbl, training.loss, expected, 1e-5 * (1.0 + expected)));
        cr_assert(epsilon_eq(dbl, training.learning_rate, rate, 1e-12));
        cr_assert(eq(dbl, training.epoch, step + 1.0));
        cr_assert(eq(u64, training.samples, ROWS));
    }
    float got[PARAMETERS_MAX];
    trainer->methods->estimate(trainer, weight, got);
    for (uint64_t i = 0; i < parameters; i++)
        cr_assert(epsilon_eq(dbl, (double)got[i], x[i] / weight, 2e-5), "parameter %lu",
            (unsigned long)i);
    trainer->methods->destroy(trainer);
    sgp_dataset_destroy(dataset);
}

Test(learner, follows_the_slow_reference)
{
    against_reference("dense 3", SGP_LOSS_CROSS_ENTROPY, 1.0);
    against_reference("dense 8 tanh, dense 3", SGP_LOSS_CROSS_ENTROPY, 0.6);
    against_reference("dense 8 relu, dense 5 sigmoid, dense 3", SGP_LOSS_CROSS_ENTROPY, 1.7);
    against_reference("dense 8 sigmoid, dense 3", SGP_LOSS_MSE, 0.6);
}

Test(learner, learns_clusters_and_predicts_them)
{
    struct sgp_dataset *dataset = clusters(240, 1);
    struct sgp_dataset *held = clusters(700, 2); /* more than two evaluation blocks */
    struct sgp_learner_settings settings =
        settings_of("dense 16 relu, dense 3", SGP_LOSS_CROSS_ENTROPY, dataset, 32);
    settings.evaluation = held;
    struct sgp_learner *learner = NULL;
    cr_assert(eq(int, sgp_learner_create(&settings, NULL, &learner), 0));
    struct sgp_trainer *trainer = sgp_learner_trainer(learner);
    cr_assert(eq(u64, sgp_learner_steps_per_epoch(learner), 8));
    /* 256 rows at once: features, both layers, two deltas of the wider one; order, block, labels. */
    uint64_t workspace;
    cr_assert(eq(int, sgp_learner_check(&settings, NULL, &workspace), 0));
    cr_assert(eq(u64, workspace, 4 * (256 * (FEATURES + 16 + CLASSES + 2 * 16) + 240 + 2 * 256)));
    struct sgp_training training = train(trainer, 1.0, 80);
    cr_assert(eq(u64, training.samples, 2400));
    cr_assert(eq(dbl, training.epoch, 10.0));
    struct sgp_evaluation evaluation;
    uint64_t digest = trainer->methods->digest(trainer);
    cr_assert(eq(int, trainer->methods->evaluate(trainer, 1.0, &evaluation), 0));
    cr_assert(eq(u64, trainer->methods->digest(trainer), digest), "evaluation only reads");
    cr_assert(eq(u64, evaluation.samples, 700));
    cr_assert(eq(dbl, evaluation.accuracy, 1.0));
    cr_assert(lt(dbl, evaluation.loss, 0.1));
    struct sgp_measures measures;
    struct sgp_evaluation same;
    double value;
    cr_assert(eq(int, trainer->methods->measure(trainer, 1.0, &same, &measures), 0));
    cr_assert(eq(dbl, same.loss, evaluation.loss));
    cr_assert(eq(u64, measures.rows, 700));
    for (uint32_t c = 0; c < CLASSES; c++)
        cr_assert(eq(u64, measures.confusion[c * CLASSES + c], measures.classes[c].rows));
    cr_assert(sgp_measures_log_loss(&measures, &value));
    cr_assert(epsilon_eq(dbl, value, evaluation.loss, 1e-6));
    sgp_measures_finish(&measures);
    atomic_bool cut = true;
    trainer->cut = &cut;
    cr_assert(eq(int, trainer->methods->evaluate(trainer, 1.0, &same), -ECANCELED));
    cr_assert(eq(int, trainer->methods->measure(trainer, 1.0, &same, &measures), -ECANCELED));
    atomic_store(&cut, false);
    cr_assert(eq(int, trainer->methods->evaluate(trainer, 1.0, &same), 0));
    trainer->cut = NULL;

    static float features[700 * FEATURES];
    static float outputs[700 * CLASSES];
    for (uint32_t r = 0; r < 700; r++)
        sgp_dataset_gather(held, features + r * FEATURES, NULL, NULL, &r, 1, 0);
    sgp_learner_predict(learner, 1.0, features, 700, outputs);
    double loss = 0.0;
    for (size_t r = 0; r < 700; r++) {
        const float *p = outputs + r * CLASSES;
        cr_assert(epsilon_eq(flt, p[0] + p[1] + p[2], 1.0f, 1e-6f));
        loss -= log((double)p[r % CLASSES]);
    }
    cr_assert(epsilon_eq(dbl, loss / 700.0, evaluation.loss, 1e-5));
    sgp_learner_destroy(learner);
    sgp_dataset_destroy(dataset);
    sgp_dataset_destroy(held);
}

Test(learner, the_estimate_alone_matters)
{
    /* Twice the mass, twice the rate: the same estimates, since every product by 2 is exact. */
    struct sgp_dataset *dataset = clusters(60, 1);
    struct sgp_learner_settings settings =
        settings_of("dense 9 relu, dense 3", SGP_LOSS_CROSS_ENTROPY, dataset, 16);
    settings.optimizer = (struct sgp_optimizer_settings){
        .kind = SGP_OPTIMIZER_NESTEROV, .momentum = 0.5, .weight_decay = 0.01};
    struct sgp_trainer *one = create(&settings);
    settings.schedule.learning_rate *= 2.0;
    struct sgp_trainer *two = create(&settings);
    static float x[200];
    two->methods->scale(two, 2.0, 0, two->parameters);
    train(one, 1.0, 20);
    train(two, 2.0, 20);
    static float z[200];
    one->methods->estimate(one, 1.0, x);
    two->methods->estimate(two, 2.0, z);
    for (uint64_t i = 0; i < one->parameters; i++)
        cr_assert(epsilon_eq(flt, x[i], z[i], 1e-6f));
    one->methods->destroy(one);
    two->methods->destroy(two);
    sgp_dataset_destroy(dataset);
}

/* --- the order of rows --- */

#define VISITED_ROWS 10

/* Row r has the target 2^r and no features, and the model stays at 0, so that the loss of a step is
 * the sum of 4^r over its rows: it says which rows they were. */
static struct sgp_trainer *visitor(const struct sgp_dataset *dataset, uint32_t node)
{
    struct sgp_learner_settings settings = settings_of("dense 1", SGP_LOSS_MSE, dataset, 4);
    settings.schedule.learning_rate = 0.0;
    settings.node = node;
    return create(&settings);
}

static uint32_t visited(struct sgp_trainer *trainer, uint64_t rows)
{
    struct sgp_training training = train(trainer, 1.0, 1);
    cr_assert(eq(u64, training.samples, rows));
    uint64_t sum = (uint64_t)llround(training.loss * (double)training.samples);
    uint32_t bits = 0;
    for (uint32_t r = 0; r < VISITED_ROWS; r++)
        bits |= (uint32_t)(sum >> (2 * r) & 1) << r;
    return bits;
}

Test(learner, an_epoch_visits_every_row_once)
{
    const float features[VISITED_ROWS] = {0};
    float values[VISITED_ROWS];
    for (int r = 0; r < VISITED_ROWS; r++)
        values[r] = ldexpf(1.0f, r);
    struct sgp_dataset *dataset = NULL;
    cr_assert(eq(int,
        sgp_dataset_create_memory(features, NULL, values, VISITED_ROWS, 1, 0, 1, &dataset), 0));
    struct sgp_trainer *node = visitor(dataset, 0);
    struct sgp_trainer *again = visitor(dataset, 0);
    struct sgp_trainer *other = visitor(dataset, 1);
    bool epochs_differ = false;
    bool nodes_differ = false;
    uint32_t first[3] = {0};
    for (int epoch = 0; epoch < 4; epoch++) {
        uint32_t seen = 0;
        for (int step = 0; step < 3; step++) {
            uint64_t rows = step < 2 ? 4 : 2;
            uint32_t rows_seen = visited(node, rows);
            cr_assert(eq(u32, seen & rows_seen, 0));
            seen |= rows_seen;
            cr_assert(eq(u32, visited(again, rows), rows_seen));
            nodes_differ |= visited(other, rows) != rows_seen;
            epochs_differ |= epoch > 0 && first[step] != rows_seen;
            first[step] = epoch == 0 ? rows_seen : first[step];
        }
        cr_assert(eq(u32, seen, (1u << VISITED_ROWS) - 1));
    }
    cr_assert(epochs_differ);
    cr_assert(nodes_differ);
    node->methods->destroy(node);
    again->methods->destroy(again);
    other->methods->destroy(other);
    sgp_dataset_destroy(dataset);
}

/* 10 rows: two epochs of 5 steps, then 2 steps of 8 rows and what is left. From epoch 4 on the rate falls instead. */
Test(learner, a_batch_that_grows_visits_every_row_once_in_an_epoch)
{
    const float features[VISITED_ROWS] = {0};
    float values[VISITED_ROWS];
    for (int r = 0; r < VISITED_ROWS; r++)
        values[r] = ldexpf(1.0f, r);
    struct sgp_dataset *dataset = NULL;
    cr_assert(eq(int,
        sgp_dataset_create_memory(features, NULL, values, VISITED_ROWS, 1, 0, 1, &dataset), 0));
    struct sgp_learner_settings settings = settings_of("dense 1", SGP_LOSS_MSE, dataset, 2);
    settings.schedule = growing;
    settings.schedule.learning_rate = 0;
    struct sgp_trainer *node = create(&settings);
    for (int epoch = 0; epoch < 6; epoch++) {
        uint32_t seen = 0;
        int steps = epoch < 2 ? 5 : 2;
        for (int step = 0; step < steps; step++) {
            uint32_t now = visited(node, epoch < 2 ? 2 : step == 0 ? 8 : 2);
            cr_assert(eq(u32, seen & now, 0));
            seen |= now;
        }
        cr_assert(eq(u32, seen, (1u << VISITED_ROWS) - 1));
        cr_assert(
            eq(u64, sgp_learner_steps_per_epoch((struct sgp_learner *)node), epoch < 1 ? 5 : 2));
    }
    node->methods->destroy(node);
    sgp_dataset_destroy(dataset);
}

/* --- trouble --- */

#if COUNTS_ALLOCATIONS
Test(learner, nothing_allocates_after_create)
{
    struct sgp_dataset *dataset = clusters(300, 1);
    struct sgp_learner_settings settings =
        settings_of("dense 100 relu, dense 50 tanh, dense 3", SGP_LOSS_CROSS_ENTROPY, dataset, 64);
    settings.optimizer = (struct sgp_optimizer_settings){
        .kind = SGP_OPTIMIZER_NESTEROV, .momentum = 0.9, .weight_decay = 1e-4};
    settings.evaluation = dataset;
    struct sgp_trainer *trainer = create(&settings);
    static float z[10000];
    float *share = NULL;
    cr_assert(eq(int, sgp_vector_create(trainer->parameters, &share), 0));
    static float outputs[2 * CLASSES];
    cr_assert(le(u64, trainer->parameters, 10000));
    struct sgp_training training;
    struct sgp_evaluation evaluation;
    uint64_t before = allocations;
    cr_assert(gt(u64, before, 0), "the counter counts");
    int status = trainer->methods->train(trainer, 1.0, 20, 1.0, &training); /* four epochs */
    trainer->methods->publish(trainer, &share, 0.5f);
    status |= trainer->methods->train(trainer, 1.0, 1, 1.0, &training);
    trainer->methods->absorb(trainer, &share, 0.5f, 0, trainer->parameters, NULL);
    status |= trainer->methods->evaluate(trainer, 1.0, &evaluation);
    trainer->methods->estimate(trainer, 1.0, z);
    sgp_learner_predict((struct sgp_learner *)trainer, 1.0, z, 2, outputs);
    (void)trainer->methods->digest(trainer);
    uint64_t after = allocations;
    cr_assert(eq(int, status, 0));
    cr_assert(eq(u64, after, before));
    sgp_vector_destroy(share);
    trainer->methods->destroy(trainer);
    sgp_dataset_destroy(dataset);
}
#endif
