/* SPDX-License-Identifier: Apache-2.0 */
/* Several labels, scaled numbers, and the truths and settings that a learner refuses. */
#include "learner_rows.h"

static void refuse(const struct sgp_learner_settings *settings, int code, const char *text)
{
    struct sgp_error error = {0};
    struct sgp_learner *learner = NULL;
    cr_assert(eq(int, sgp_learner_create(settings, &error, &learner), code));
    cr_assert(eq(str, error.text, (char *)text));
    cr_assert(eq(ptr, learner, NULL));
}

/* Each of two values is the sign of a feature: all are learnt, and each is judged for itself. */
Test(learner_targets, learns_several_labels)
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
Test(learner_targets, scaled_numbers_leave_in_their_units)
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

Test(learner_targets, refuses_truths_that_a_loss_does_not_take)
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

Test(learner_targets, refuses_settings_that_do_not_fit)
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

Test(learner_targets, without_evaluation_rows)
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
