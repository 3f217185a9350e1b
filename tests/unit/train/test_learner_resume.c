/* SPDX-License-Identifier: Apache-2.0 */
/* A learner that goes on from its position or its checkpoint, under every rule of steps, to the bit. */
#include "learner_rows.h"

#include <stdio.h>
#include <unistd.h>

/* --- resuming --- */

/* Stopped anywhere, also at a milestone, a second learner goes on with the same rows, batches and rates. */
Test(learner_resume, a_schedule_goes_on_from_the_position_alone)
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
Test(learner_resume, a_resumed_learner_goes_on_to_the_bit)
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
    cr_assert_not_null(sgp_state_vector(&state, "outer velocity", first->parameters));
    cr_assert_not_null(sgp_state_vector(&state, "velocity", first->parameters));
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

/* A second learner takes the state of the first through a file. Without local layers and an outer step
 * the state has the vectors of the rule alone. */
static struct sgp_trainer *pass_on(
    const struct sgp_learner_settings *settings, struct sgp_trainer *first, const char *path)
{
    struct sgp_trainer *second = create(settings);
    struct sgp_checkpoint back,
        checkpoint = {
            .parameters = first->parameters, .shape = 7, .point = {.kept_count = 1, .kept = {3}}};
    struct sgp_error error = {0};
    float *memory;
    first->methods->state(first, &checkpoint.state);
    checkpoint.kept[0] = checkpoint.state.x;
    if (settings->model.local_parameters == 0)
        cr_assert(
            eq(u32, checkpoint.state.vector_count, sgp_optimizer_vectors(&settings->optimizer)));
    cr_assert(zero(int, sgp_checkpoint_write(path, &checkpoint, &error)), "%s", error.text);
    cr_assert(zero(int, sgp_checkpoint_read(path, second->parameters, 7, &error, &back, &memory)),
        "%s", error.text);
    second->methods->resume(second, &back.state);
    free(memory);
    return second;
}

static void assert_goes_on(const struct sgp_learner_settings *settings, const char *path)
{
    const char *rule = sgp_optimizer_name(settings->optimizer.kind);
    float a[200], b[200];
    struct sgp_trainer *first = create(settings);
    struct sgp_training before = train(first, 0.7, 1);
    train(first, 0.7, 17);
    struct sgp_trainer *second = pass_on(settings, first, path);
    struct sgp_training after = train(first, 0.7, 40);
    train(second, 0.7, 40);
    cr_assert(le(u64, first->model_values, 200));
    first->methods->model(first, 0.7, a);
    second->methods->model(second, 0.7, b);
    cr_assert(zero(int, memcmp(a, b, first->model_values * sizeof *a)), "%s", rule);
    cr_assert(eq(u64, second->methods->digest(second), first->methods->digest(first)), "%s", rule);
    cr_assert(lt(dbl, after.loss, before.loss), "%s learns", rule);
    first->methods->destroy(first);
    second->methods->destroy(second);
}

/* In the middle of an epoch. What the rule and local layers keep goes through the file by its names. */
Test(learner_resume, every_rule_goes_on_from_its_checkpoint_to_the_bit)
{
    struct sgp_dataset *dataset = clusters(50, 1);
    char path[] = "/tmp/test_learner.XXXXXX", older[sizeof path + 2];
    (void)close(mkstemp(path));
    (void)snprintf(older, sizeof older, "%s.1", path);
    for (int kind = SGP_OPTIMIZER_SGD; kind <= SGP_OPTIMIZER_MOST; kind++) {
        struct sgp_learner_settings settings =
            settings_of_rule((enum sgp_optimizer_kind)kind, dataset);
        assert_goes_on(&settings, path);
        cr_assert(zero(int, sgp_model_init(&settings.model,
                                "dense 8, norm batch tanh, dense 4 tanh, dropout 0.1, dense 3",
                                SGP_LOSS_CROSS_ENTROPY, FEATURES, NULL)));
        cr_assert(zero(int, sgp_model_set_local(&settings.model, "norm, head", NULL)));
        settings.outer = (struct sgp_outer_settings){SGP_OUTER_SLOWMO, 0.8, 0.5};
        assert_goes_on(&settings, path);
    }
    (void)unlink(path);
    (void)unlink(older);
    sgp_dataset_destroy(dataset);
}

/* Neither clipping nor a quotient of norms hides it. */
Test(learner_resume, a_gradient_that_is_no_number_changes_nothing_of_any_rule)
{
    struct sgp_dataset *dataset = clusters(50, 1);
    for (int kind = SGP_OPTIMIZER_SGD; kind <= SGP_OPTIMIZER_MOST; kind++) {
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
        const uint64_t count = trainer->parameters;
        gradient[i] = sgp_state_vector(&state, "first moment", count)[i] / (float)(1 - 0.9);
        noise[i] = sgp_state_vector(&state, "noise", count)[i] / (float)(1 - 0.999);
    }
    trainer->methods->destroy(trainer);
}

/* Of two rows the halves are the rows. Of one row nothing is known. */
Test(learner_resume, noise_is_seen_in_two_halves_of_a_batch)
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

Test(learner_resume, divergence_leaves_the_model)
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
