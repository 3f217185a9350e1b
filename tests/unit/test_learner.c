/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in trainer: against a slow float64 reference, over epochs, when it diverges, and without
 * a single allocation once it exists. */
#include "reference_model.h"
#include "sgp/buffer.h"
#include "sgp/checkpoint.h"
#include "sgp/learner.h"
#include "sgp/random.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static struct sgp_learner_settings settings_of(
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
    cr_assert(eq(int, sgp_model_init(&settings.model, layers, loss, train->features, NULL), 0));
    return settings;
}

static struct sgp_trainer *create(const struct sgp_learner_settings *settings)
{
    struct sgp_learner *learner = NULL;
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_learner_create(settings, &error, &learner), 0), "%s", error.text);
    return sgp_learner_trainer(learner);
}

static struct sgp_training train(struct sgp_trainer *trainer, double weight, uint32_t steps)
{
    struct sgp_training training;
    cr_assert(eq(int, trainer->methods->train(trainer, weight, steps, 1.0, &training), 0));
    return training;
}

/* Rows around one centre a class, far enough apart to be told from each other. */
#define FEATURES 6
#define CLASSES 3

static struct sgp_dataset *clusters(uint64_t rows, uint64_t seed)
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

static const struct sgp_schedule growing = {.kind = SGP_SCHEDULE_GROWING_BATCH,
    .learning_rate = 0.1,
    .factor = 0.25,
    .growths = 1,
    .milestone_count = 2,
    .milestones = {2, 4}};

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

/* --- resuming --- */

/* Stopped anywhere, also at a milestone, a second learner goes on with the same rows, batches and rates. */
Test(learner, a_schedule_goes_on_from_the_position_alone)
{
    struct sgp_dataset *dataset = clusters(50, 1);
    struct sgp_learner_settings settings =
        settings_of("dense 4 tanh, dense 3", SGP_LOSS_CROSS_ENTROPY, dataset, 8);
    for (int kind = 1; kind <= (int)SGP_SCHEDULE_KINDS; kind++) {
        settings.schedule = growing;
        settings.schedule.kind = (enum sgp_schedule_kind)kind;
        settings.schedule.epochs = 6;
        settings.schedule.warmup_epochs = 0.5;
        settings.schedule.period_epochs = 3;
        settings.schedule.low_fraction = 0.1;
        struct sgp_trainer *whole = create(&settings);
        for (uint32_t stop = 1; stop < 26; stop += 4) {
            struct sgp_trainer *later = create(&settings);
            struct sgp_trainer_state state;
            whole->methods->state(whole, &state);
            later->methods->resume(later, &state);
            struct sgp_training a = train(whole, 1, 4), b = train(later, 1, 4);
            cr_assert(eq(dbl, a.learning_rate, b.learning_rate));
            cr_assert(eq(dbl, a.epoch, b.epoch));
            cr_assert(eq(u64, a.samples, b.samples));
            cr_assert(eq(u64, whole->methods->digest(whole), later->methods->digest(later)));
            later->methods->destroy(later);
        }
        whole->methods->destroy(whole);
    }
    sgp_dataset_destroy(dataset);
}

/* In the middle of an epoch, with momentum: position, x, velocity and those of the outer step are all that matters. */
Test(learner, a_resumed_learner_goes_on_to_the_bit)
{
    struct sgp_dataset *dataset = clusters(50, 1);
    struct sgp_learner_settings settings =
        settings_of("dense 8 tanh, dense 3", SGP_LOSS_CROSS_ENTROPY, dataset, 8);
    settings.optimizer =
        (struct sgp_optimizer_settings){.kind = SGP_OPTIMIZER_NESTEROV, .momentum = 0.9};
    settings.outer = (struct sgp_outer_settings){SGP_OUTER_SLOWMO, 0.8, 0.5};
    struct sgp_trainer *first = create(&settings), *second = create(&settings);
    train(first, 0.7, 10);
    first->methods->outer(first, 0.7);
    train(first, 0.7, 7);
    struct sgp_trainer_state state;
    first->methods->state(first, &state);
    cr_assert_not_null(sgp_state_vector(&state, "outer velocity"));
    cr_assert_not_null(sgp_state_vector(&state, "velocity"));
    cr_assert(eq(u32, state.counter_count, 1));
    cr_assert(eq(u64, state.counters[0].value, 17));
    state.counters[0].value = 3;
    second->methods->resume(second, &state);
    second->methods->go_to(second, 17);
    cr_assert(eq(u64, second->methods->digest(second), first->methods->digest(first)));
    train(first, 0.7, 20);
    train(second, 0.7, 20);
    first->methods->outer(first, 0.7);
    second->methods->outer(second, 0.7);
    cr_assert(eq(u64, second->methods->digest(second), first->methods->digest(first)));

    /* A state without parameters, as of a new run, leaves the outer step as it is. */
    struct sgp_trainer_state nothing = {0};
    first->methods->resume(first, &nothing);
    first->methods->outer(first, 0.7);
    second->methods->outer(second, 0.7);
    cr_assert(eq(u64, second->methods->digest(second), first->methods->digest(first)));

    /* Without its velocity it goes elsewhere, and so does one that adopted its own x. */
    first->methods->state(first, &state);
    second->methods->adopt(second, state.x, 1);
    cr_assert(eq(u64, second->methods->digest(second), first->methods->digest(first)));
    train(first, 0.7, 1);
    train(second, 0.7, 1);
    cr_assert(ne(u64, second->methods->digest(second), first->methods->digest(first)));
    sgp_learner_destroy((struct sgp_learner *)first);
    sgp_learner_destroy((struct sgp_learner *)second);
    sgp_dataset_destroy(dataset);
}

/* --- every rule --- */

static struct sgp_learner_settings settings_of_rule(
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

static struct sgp_trainer *read_checkpoint(
    const struct sgp_learner_settings *settings, const char *path)
{
    struct sgp_trainer *trainer = create(settings);
    struct sgp_checkpoint back;
    struct sgp_error error = {0};
    float *memory;
    cr_assert(zero(int, sgp_checkpoint_read(path, trainer->parameters, 7, &error, &back, &memory)),
        "%s", error.text);
    cr_assert(eq(u32, back.state.vector_count, sgp_optimizer_vectors(&settings->optimizer)));
    trainer->methods->resume(trainer, &back.state);
    free(memory);
    return trainer;
}

/* In the middle of an epoch. What the rule keeps goes through the file by its names. */
Test(learner, every_rule_goes_on_from_its_checkpoint_to_the_bit)
{
    struct sgp_dataset *dataset = clusters(50, 1);
    char path[] = "/tmp/test_learner.XXXXXX", older[sizeof path + 2];
    (void)close(mkstemp(path));
    (void)snprintf(older, sizeof older, "%s.1", path);
    for (int kind = SGP_OPTIMIZER_SGD; kind <= SGP_OPTIMIZER_LAMB; kind++) {
        struct sgp_learner_settings settings =
            settings_of_rule((enum sgp_optimizer_kind)kind, dataset);
        struct sgp_trainer *first = create(&settings);
        struct sgp_training before = train(first, 0.7, 1);
        train(first, 0.7, 17);
        struct sgp_checkpoint checkpoint = {.parameters = first->parameters, .shape = 7};
        first->methods->state(first, &checkpoint.state);
        struct sgp_error error = {0};
        cr_assert(zero(int, sgp_checkpoint_write(path, &checkpoint, &error)), "%s", error.text);
        struct sgp_trainer *second = read_checkpoint(&settings, path);
        struct sgp_training after = train(first, 0.7, 40);
        train(second, 0.7, 40);
        cr_assert(eq(u64, second->methods->digest(second), first->methods->digest(first)), "%s",
            sgp_optimizer_name(settings.optimizer.kind));
        cr_assert(lt(dbl, after.loss, before.loss), "%s learns",
            sgp_optimizer_name(settings.optimizer.kind));
        first->methods->destroy(first);
        second->methods->destroy(second);
    }
    (void)unlink(path);
    (void)unlink(older);
    sgp_dataset_destroy(dataset);
}

/* Neither clipping nor a quotient of norms hides it. */
Test(learner, a_gradient_that_is_no_number_changes_nothing_of_any_rule)
{
    struct sgp_dataset *dataset = clusters(50, 1);
    for (int kind = SGP_OPTIMIZER_SGD; kind <= SGP_OPTIMIZER_LAMB; kind++) {
        struct sgp_learner_settings settings =
            settings_of_rule((enum sgp_optimizer_kind)kind, dataset);
        settings.optimizer.clip_value = 1;
        struct sgp_trainer *trainer = create(&settings);
        train(trainer, 1, 3);
        struct sgp_trainer_state state;
        static float kept[SGP_STATE_VECTORS_MAX][200];
        trainer->methods->state(trainer, &state);
        size_t bytes = trainer->parameters * sizeof(float);
        for (uint32_t i = 0; i < state.vector_count; i++)
            memcpy(kept[i], state.vectors[i].values, bytes);
        uint64_t counters[] = {state.counters[0].value, state.counters[1].value};
        const float bad = NAN;
        trainer->methods->restore(trainer, &bad, 1.0f, 2, 1);
        uint64_t before = trainer->methods->digest(trainer);
        struct sgp_training training;
        cr_assert(
            eq(int, trainer->methods->train(trainer, 1.0, 1, 1.0, &training), SGP_E_DIVERGED));
        cr_assert(eq(u64, trainer->methods->digest(trainer), before));
        trainer->methods->state(trainer, &state);
        for (uint32_t i = 0; i < state.vector_count; i++)
            cr_assert(zero(int, memcmp(kept[i], state.vectors[i].values, bytes)));
        for (uint32_t i = 0; i < state.counter_count; i++)
            cr_assert(eq(u64, state.counters[i].value, counters[i]));
        trainer->methods->destroy(trainer);
    }
    sgp_dataset_destroy(dataset);
}

/* After one step of AdamW over all rows: the gradient, from its first moment, and the noise. */
static void see_noise(const struct sgp_dataset *rows, float *gradient, float *noise)
{
    struct sgp_learner_settings settings = settings_of_rule(SGP_OPTIMIZER_ADAMW, rows);
    settings.optimizer.clip_norm = 0;
    settings.batch = (uint32_t)rows->rows;
    struct sgp_trainer *trainer = create(&settings);
    struct sgp_training training = train(trainer, 0.5, 1);
    cr_assert(eq(u64, training.samples, rows->rows));
    struct sgp_trainer_state state;
    trainer->methods->state(trainer, &state);
    for (uint64_t i = 0; i < trainer->parameters; i++) {
        gradient[i] = sgp_state_vector(&state, "first moment")[i] / (float)(1 - 0.9);
        noise[i] = sgp_state_vector(&state, "noise")[i] / (float)(1 - 0.999);
    }
    trainer->methods->destroy(trainer);
}

/* Of two rows the halves are the rows. Of one row nothing is known. */
Test(learner, noise_is_seen_in_two_halves_of_a_batch)
{
    enum { PARAMETERS = 8 * FEATURES + 8 + 3 * 8 + 3 };
    struct sgp_dataset *both = clusters(2, 1), *rows[2];
    static float gradients[3][PARAMETERS], noises[3][PARAMETERS];
    for (int r = 0; r < 2; r++) {
        cr_assert(zero(int, sgp_dataset_create_memory(both->floats + r * FEATURES, both->labels + r,
                                NULL, 1, FEATURES, CLASSES, 1, &rows[r])));
        see_noise(rows[r], gradients[r], noises[r]);
        sgp_dataset_destroy(rows[r]);
    }
    see_noise(both, gradients[2], noises[2]);
    for (int i = 0; i < PARAMETERS; i++) {
        float a = gradients[0][i], b = gradients[1][i];
        cr_assert(epsilon_eq(flt, gradients[2][i], (a + b) / 2, 1e-5f), "%d", i);
        cr_assert(epsilon_eq(flt, noises[2][i], (a - b) * (a - b) / 4, 1e-5f), "%d", i);
        cr_assert(eq(flt, noises[0][i], 0));
    }
    sgp_dataset_destroy(both);
}

/* --- trouble --- */

Test(learner, divergence_leaves_the_model)
{
    struct sgp_dataset *dataset = clusters(30, 1);
    struct sgp_learner_settings settings =
        settings_of("dense 9 relu, dense 3", SGP_LOSS_MSE, dataset, 10);
    settings.schedule.learning_rate = 1e6;
    settings.evaluation = dataset;
    struct sgp_trainer *trainer = create(&settings);
    struct sgp_training training;
    int status = 0;
    uint64_t before = 0;
    for (int step = 0; step < 100 && status == 0; step++) {
        before = trainer->methods->digest(trainer);
        status = trainer->methods->train(trainer, 1.0, 1, 1.0, &training);
    }
    cr_assert(eq(int, status, SGP_E_DIVERGED));
    cr_assert(eq(u64, trainer->methods->digest(trainer), before));

    float bad = NAN; /* a poisoned bias of the first layer must not be hidden by its relu */
    struct sgp_trainer *poisoned = create(&settings);
    poisoned->methods->restore(poisoned, &bad, 1.0f, FEATURES * 9, 1);
    before = poisoned->methods->digest(poisoned);
    cr_assert(eq(int, poisoned->methods->train(poisoned, 1.0, 1, 1.0, &training), SGP_E_DIVERGED));
    cr_assert(eq(u64, poisoned->methods->digest(poisoned), before));
    struct sgp_evaluation evaluation = {.samples = 77};
    cr_assert(eq(int, poisoned->methods->evaluate(poisoned, 1.0, &evaluation), SGP_E_DIVERGED));
    cr_assert(eq(u64, evaluation.samples, 77));
    struct sgp_measures measures;
    cr_assert(
        eq(int, poisoned->methods->measure(poisoned, 1.0, &evaluation, &measures), SGP_E_DIVERGED));
    cr_assert(eq(u64, evaluation.samples, 77));
    trainer->methods->destroy(trainer);
    poisoned->methods->destroy(poisoned);
    sgp_dataset_destroy(dataset);
}

static void refuse(const struct sgp_learner_settings *settings, int code, const char *text)
{
    struct sgp_error error = {0};
    struct sgp_learner *learner = NULL;
    cr_assert(eq(int, sgp_learner_create(settings, &error, &learner), code));
    cr_assert(eq(str, error.text, (char *)text));
    cr_assert(eq(ptr, learner, NULL));
}

/* Each of two values is the sign of a feature: all are learnt, and each is judged for itself. */
Test(learner, learns_several_labels)
{
    enum { N = 200 };
    float features[N * 2], values[N * 2], probabilities[N * 2];
    struct sgp_random random;
    struct sgp_dataset *dataset = NULL;
    struct sgp_learner *learner = NULL;
    struct sgp_training training;
    struct sgp_evaluation evaluation;
    sgp_random_init(&random, 5, 0);
    for (size_t i = 0; i < (size_t)N * 2; i++) {
        features[i] = (float)sgp_random_normal(&random);
        values[i] = features[i] > 0;
    }
    cr_assert(eq(int, sgp_dataset_create_memory(features, NULL, values, N, 2, 0, 2, &dataset), 0));
    struct sgp_learner_settings settings =
        settings_of("dense 2", SGP_LOSS_BINARY_CROSS_ENTROPY, dataset, 20);
    settings.evaluation = dataset;
    cr_assert(eq(int, sgp_learner_create(&settings, NULL, &learner), 0));
    struct sgp_trainer *trainer = sgp_learner_trainer(learner);
    cr_assert(eq(int, trainer->methods->train(trainer, 1, 400, 1, &training), 0));
    cr_assert(eq(int, trainer->methods->evaluate(trainer, 1, &evaluation), 0));
    sgp_learner_predict(learner, 1, features, N, probabilities);
    uint32_t right = 0;
    double loss = 0;
    for (size_t i = 0; i < (size_t)N * 2; i++) {
        right += (probabilities[i] > 0.5f) == (values[i] > 0);
        loss -= log(values[i] > 0 ? (double)probabilities[i] : 1 - (double)probabilities[i]);
    }
    cr_assert(gt(dbl, evaluation.accuracy, 0.95));
    cr_assert(eq(dbl, evaluation.accuracy, right / (N * 2.0)));
    cr_assert(epsilon_eq(dbl, evaluation.loss, loss / (N * 2.0), 1e-5));
    trainer->methods->destroy(trainer);
    sgp_dataset_destroy(dataset);
}

/* Two columns of numbers in deviations from their means: the loss has no unit, and what leaves has
 * those of the columns. */
Test(learner, scaled_numbers_leave_in_their_units)
{
    enum { N = 300 };
    float features[N * 2], values[N * 2], predictions[N * 2];
    struct sgp_target_scale scales[] = {{.name = "a", .mean = 152.25, .deviation = 77},
        {.name = "b", .mean = -3, .deviation = 0.01}};
    struct sgp_random random;
    struct sgp_dataset *dataset = NULL;
    struct sgp_learner *learner = NULL;
    struct sgp_evaluation evaluation;
    struct sgp_measures measures;
    double value;
    sgp_random_init(&random, 5, 0);
    for (size_t i = 0; i < N; i++) {
        features[2 * i] = (float)sgp_random_normal(&random);
        features[2 * i + 1] = (float)sgp_random_normal(&random);
        values[2 * i] = 0.6f * features[2 * i] - 0.8f * features[2 * i + 1];
        values[2 * i + 1] = (float)sgp_random_normal(&random);
    }
    cr_assert(eq(int, sgp_dataset_create_memory(features, NULL, values, N, 2, 0, 2, &dataset), 0));
    dataset->scaled_targets = true;
    struct sgp_learner_settings settings = settings_of("dense 2", SGP_LOSS_MSE, dataset, 20);
    struct sgp_loss_settings loss = sgp_loss_defaults;
    loss.target_scales = scales;
    loss.target_scale_count = 2;
    cr_assert(eq(int, sgp_model_set_loss(&settings.model, &loss, NULL), 0));
    settings.evaluation = dataset;
    cr_assert(eq(int, sgp_learner_create(&settings, NULL, &learner), 0));
    struct sgp_trainer *trainer = sgp_learner_trainer(learner);
    train(trainer, 1, 300);
    cr_assert(eq(int, trainer->methods->measure(trainer, 1, &evaluation, &measures), 0));
    sgp_learner_predict(learner, 1, features, N, predictions);
    double squares[2] = {0, 0}, scaled[2] = {0, 0};
    for (size_t i = 0; i < (size_t)N * 2; i++) {
        const struct sgp_target_scale *scale = &scales[i % 2];
        const double truth = scale->mean + scale->deviation * (double)values[i];
        const double error = (double)predictions[i] - truth;
        squares[i % 2] += error * error / N;
        scaled[i % 2] += error * error / N / scale->deviation / scale->deviation;
    }
    cr_assert(lt(dbl, scaled[0], 1e-6), "the first follows from the features");
    cr_assert(epsilon_eq(dbl, scaled[1], 1, 0.2), "the second is chance: its mean is all there is");
    cr_assert(epsilon_eq(dbl, evaluation.loss, (scaled[0] + scaled[1]) / 2, 1e-4));
    for (uint32_t c = 0; c < 2; c++) {
        cr_assert(sgp_measures_squared_error(&measures, c, &value));
        const double rounding = 1e-9 * scales[c].deviation * scales[c].deviation;
        cr_assert(epsilon_eq(dbl, value, squares[c], 1e-3 * squares[c] + rounding));
    }
    sgp_measures_finish(&measures);
    trainer->methods->destroy(trainer);
    sgp_dataset_destroy(dataset);
}

Test(learner, refuses_truths_that_a_loss_does_not_take)
{
    const float row[FEATURES] = {0}, values[CLASSES] = {1, 0, 0.5f};
    struct sgp_dataset *numbers = NULL, *classes = clusters(30, 1);
    cr_assert(eq(
        int, sgp_dataset_create_memory(row, NULL, values, 1, FEATURES, 0, CLASSES, &numbers), 0));
    struct sgp_learner_settings bad =
        settings_of("dense 3", SGP_LOSS_BINARY_CROSS_ENTROPY, numbers, 10);
    refuse(&bad, SGP_E_DATA,
        "the training data have the value 0.5 in row 1, and binary-cross-entropy takes 0 and 1");
    bad = settings_of("dense 3", SGP_LOSS_BINARY_CROSS_ENTROPY, classes, 10);
    refuse(&bad, SGP_E_DATA,
        "the training data have classes, and binary-cross-entropy takes label columns of 0 and 1; "
        "use loss = cross-entropy, or columns of 0 and 1 without classes");
    sgp_dataset_destroy(numbers);
    sgp_dataset_destroy(classes);
}

Test(learner, refuses_settings_that_do_not_fit)
{
    struct sgp_dataset *dataset = clusters(30, 1);
    const struct sgp_learner_settings good =
        settings_of("dense 3", SGP_LOSS_CROSS_ENTROPY, dataset, 10);
    struct sgp_learner_settings bad = good;
    bad.batch = 0;
    refuse(&bad, SGP_E_CONFIG, "a batch of 0 rows; give 1 to 65536");
    bad = good;
    bad.schedule = growing;
    bad.schedule.factor = 1e-4;
    refuse(&bad, SGP_E_CONFIG,
        "the batch of 10 rows grows to 100000, above 65536; give fewer growths, or a larger "
        "factor");
    bad = good;
    bad.threads = SGP_THREADS_MAX + 1;
    refuse(&bad, SGP_E_CONFIG, "1025 threads for training; give 1 to 1024");
    bad = settings_of("dense 4", SGP_LOSS_CROSS_ENTROPY, dataset, 10);
    refuse(&bad, SGP_E_DATA,
        "the training data have 3 classes, but the model ends in 4 outputs; end the layers with "
        "'dense 3'");
    bad = good;
    cr_assert(eq(int, sgp_model_init(&bad.model, "dense 3", SGP_LOSS_CROSS_ENTROPY, 7, NULL), 0));
    refuse(&bad, SGP_E_DATA,
        "the training data have 6 features, but the model takes 7; use the same columns and "
        "scaling everywhere");
    const float row[FEATURES] = {0};
    const float values[CLASSES] = {0};
    struct sgp_dataset *regression = NULL;
    cr_assert(eq(int,
        sgp_dataset_create_memory(row, NULL, values, 1, FEATURES, 0, CLASSES, &regression), 0));
    bad = good;
    bad.evaluation = regression;
    refuse(&bad, SGP_E_DATA,
        "the evaluation data have no classes, which cross-entropy needs; use loss = mse or name "
        "the classes");
    bad = settings_of("dense 3", SGP_LOSS_MSE, dataset, 10);
    bad.evaluation = regression;
    refuse(&bad, SGP_E_DATA,
        "the training data have 3 classes and the evaluation data 0; give them the same");
    sgp_dataset_destroy(dataset);
    sgp_dataset_destroy(regression);
}

Test(learner, without_evaluation_rows)
{
    struct sgp_dataset *dataset = clusters(30, 1);
    struct sgp_learner_settings settings =
        settings_of("dense 3", SGP_LOSS_CROSS_ENTROPY, dataset, 1000);
    struct sgp_trainer *trainer = create(&settings);
    cr_assert(eq(u64, sgp_learner_steps_per_epoch((struct sgp_learner *)trainer), 1));
    struct sgp_evaluation evaluation;
    cr_assert(eq(int, trainer->methods->evaluate(trainer, 1.0, &evaluation), 0));
    cr_assert(eq(u64, evaluation.samples, 0));
    cr_assert(isnan(evaluation.loss));
    cr_assert(isnan(evaluation.accuracy));
    trainer->methods->destroy(trainer);
    sgp_dataset_destroy(dataset);
}

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
