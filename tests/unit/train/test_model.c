/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of models, and the passes through them against finite differences in float64. */
#include "reference_model.h"
#include "sgp/random.h"
#include "train/network.h"

#include <criterion/criterion.h>
#include <assertions.h>

#define ROWS 9
#define PARAMETERS_MAX 400

static struct sgp_model describe(const char *layers, enum sgp_loss loss, uint32_t inputs)
{
    struct sgp_model model;
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_model_init(&model, layers, loss, inputs, &error), 0), "%s", error.text);
    return model;
}

Test(model, lays_parameters_out_as_documented)
{
    struct sgp_model model =
        describe(" dense 512  relu ,dense\t512 relu, dense 10 none ", SGP_LOSS_CROSS_ENTROPY, 784);
    cr_assert(eq(u32, model.layer_count, 3));
    cr_assert(eq(u32, model.outputs, 10));
    cr_assert(eq(u64, model.parameters, 784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10));
    cr_assert(eq(u64, model.layers[0].biases, 784 * 512));
    cr_assert(eq(u64, model.layers[1].weights, 784 * 512 + 512));
    char text[SGP_MODEL_TEXT_BYTES];
    sgp_model_text(&model, text);
    cr_assert(eq(str, text, (char *)"dense 512 relu, dense 512 relu, dense 10"));
}

Test(model, the_longest_text_fits)
{
    char layers[SGP_LAYERS_MAX * 20 + 1] = "";
    for (uint32_t i = 0; i < SGP_LAYERS_MAX; i++)
        strcat(layers, i == 0 ? "dense 99 sigmoid" : ", dense 99 sigmoid");
    struct sgp_model model = describe(layers, SGP_LOSS_MSE, 1);
    char text[SGP_MODEL_TEXT_BYTES];
    sgp_model_text(&model, text);
    cr_assert(eq(str, text, layers));
}

Test(model, digests_tell_shapes_and_losses_apart)
{
    struct sgp_model a = describe("dense 4 relu, dense 3", SGP_LOSS_MSE, 5);
    struct sgp_model same = describe("dense  4 relu,dense 3 none", SGP_LOSS_CROSS_ENTROPY, 5);
    struct sgp_model wider = describe("dense 4 relu, dense 3", SGP_LOSS_MSE, 6);
    struct sgp_model other = describe("dense 4 tanh, dense 3", SGP_LOSS_MSE, 5);
    cr_assert(eq(u64, sgp_model_shape_digest(&a), sgp_model_shape_digest(&same)));
    cr_assert(ne(u64, sgp_model_shape_digest(&a), sgp_model_shape_digest(&wider)));
    cr_assert(ne(u64, sgp_model_shape_digest(&a), sgp_model_shape_digest(&other)));
    cr_assert(ne(u64, sgp_model_loss_digest(&a), sgp_model_loss_digest(&same)));
    cr_assert(eq(u64, sgp_model_loss_digest(&a), sgp_model_loss_digest(&other)));
}

static void refuse(const char *layers, int code, const char *text)
{
    struct sgp_error error = {0};
    struct sgp_model model = {.inputs = 77};
    cr_assert(eq(int, sgp_model_init(&model, layers, SGP_LOSS_CROSS_ENTROPY, 5, &error), code));
    cr_assert(eq(str, error.text, (char *)text));
    cr_assert(eq(u32, model.inputs, 77), "a failure leaves the model unchanged");
}

Test(model, refuses_what_is_not_a_list_of_layers)
{
#define INSTEAD                                                                                    \
    "; write for example 'dense 512 relu', or another of dense, conv, pool, norm, dropout, "       \
    "embedding, residual"
    refuse("", SGP_E_CONFIG, "layer 1 begins with ''" INSTEAD);
    refuse("sparse 5", SGP_E_CONFIG, "layer 1 begins with 'sparse'" INSTEAD);
    refuse("dense 5,", SGP_E_CONFIG, "layer 2 begins with ''" INSTEAD);
    refuse("dense 5, dense", SGP_E_CONFIG, "layer 2 has '' outputs; give a number from 1 to 65536");
    refuse("dense 0", SGP_E_CONFIG, "layer 1 has '0' outputs; give a number from 1 to 65536");
    refuse("dense -3", SGP_E_CONFIG, "layer 1 has '-3' outputs; give a number from 1 to 65536");
    refuse(
        "dense 65537", SGP_E_CONFIG, "layer 1 has '65537' outputs; give a number from 1 to 65536");
    refuse("dense 99999999999999999999", SGP_E_CONFIG,
        "layer 1 has '99999999999999999999' outputs; give a number from 1 to 65536");
    refuse("dense 5 rlu", SGP_E_CONFIG,
        "layer 1 has the unknown activation 'rlu'; it is one of none, relu, tanh, sigmoid");
    refuse("dense 5 relu dense 3", SGP_E_CONFIG,
        "layer 1 goes on after its activation with 'dense 3'; separate layers by commas");
    refuse("dense 5 relu", SGP_E_CONFIG,
        "the last layer has the activation relu under cross-entropy, which brings a softmax of its "
        "own; leave the activation out");
    refuse("dense 65536, dense 65536, dense 65536, dense 65536", SGP_E_LIMIT,
        "the model has more than 8589934592 parameters; use smaller layers");
}

Test(model, refuses_too_many_layers)
{
    char layers[(SGP_LAYERS_MAX + 1) * 10] = "dense 1";
    for (uint32_t i = 0; i < SGP_LAYERS_MAX; i++)
        strcat(layers, ", dense 1");
    refuse(layers, SGP_E_LIMIT, "the model has more than 64 layers; use fewer");
    struct sgp_model model;
    struct sgp_error error = {0};
    cr_assert(
        eq(int, sgp_model_init(&model, "dense 1", SGP_LOSS_CROSS_ENTROPY, 0, &error), SGP_E_LIMIT));
    cr_assert(eq(str, error.text, (char *)"a model of 0 inputs; it has 1 to 4194304"));
}

Test(model, he_initialisation)
{
    struct sgp_model model = describe("dense 300 relu, dense 10", SGP_LOSS_CROSS_ENTROPY, 200);
    static float x[63310];
    static float again[63310];
    cr_assert(eq(u64, model.parameters, 63310));
    sgp_model_initialise(&model, 7, x, NULL);
    sgp_model_initialise(&model, 7, again, NULL);
    cr_assert(eq(int, memcmp(x, again, sizeof x), 0));
    double sum = 0.0;
    double squares = 0.0;
    for (size_t i = 0; i < 60000; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    /* 5 deviations of the mean and of the variance of 60,000 draws of variance 0.01 */
    cr_assert(lt(dbl, fabs(sum / 60000.0), 5.0 * 0.1 / sqrt(60000.0)));
    cr_assert(lt(dbl, fabs(squares / 60000.0 / 0.01 - 1.0), 5.0 * sqrt(2.0 / 60000.0)));
    for (size_t i = 60000; i < 60300; i++)
        cr_assert(eq(flt, x[i], 0.0f));
    sgp_model_initialise(&model, 8, again, NULL);
    cr_assert(ne(int, memcmp(x, again, sizeof x), 0));
}

/* Loss and gradient at x / weight against the reference, for a batch of normal features. */
static void against_reference(
    const char *layers, enum sgp_loss loss, double weight, bool regression)
{
    struct sgp_model model = describe(layers, loss, 5);
    struct sgp_network network;
    cr_assert(
        eq(int, sgp_network_init(&network, &model, SGP_PRECISION_FLOAT32, ROWS + 3, 0, 1), 0));
    struct sgp_random random;
    sgp_random_init(&random, 11, 0);
    float x[PARAMETERS_MAX];
    double z[PARAMETERS_MAX];
    for (uint64_t i = 0; i < model.parameters; i++) {
        z[i] = 0.4 * sgp_random_normal(&random); /* biases too */
        x[i] = (float)(z[i] * weight);
        z[i] = (double)x[i] / weight;
    }
    float features[ROWS * 5];
    uint32_t labels[ROWS];
    float values[ROWS * REFERENCE_UNITS];
    for (size_t i = 0; i < ROWS * 5; i++)
        network.activations[0][i] = features[i] = (float)sgp_random_normal(&random);
    for (size_t i = 0; i < ROWS; i++)
        labels[i] = (uint32_t)sgp_random_below(&random, model.outputs);
    for (size_t i = 0; i < (size_t)ROWS * model.outputs; i++)
        values[i] = (float)sgp_random_normal(&random);
    const uint32_t *own_labels = regression ? NULL : labels;
    const float *own_values = regression ? values : NULL;

    double expected[PARAMETERS_MAX];
    reference_gradient(&model, z, expected, features, own_labels, own_values, ROWS);
    double expected_loss = reference_loss(&model, z, features, own_labels, own_values, ROWS);
    sgp_network_forward(&network, x, weight, ROWS);
    double got_loss = sgp_network_loss(&network, own_labels, own_values, ROWS).loss / ROWS;
    cr_assert(epsilon_eq(dbl, got_loss, expected_loss, 1e-5 * (1.0 + expected_loss)));
    float gradient[PARAMETERS_MAX];
    memset(gradient, 0xff, sizeof gradient); /* NaN: every value must be written */
    sgp_network_backward(&network, gradient, x, weight, ROWS);
    for (uint64_t i = 0; i < model.parameters; i++)
        cr_assert(epsilon_eq(dbl, (double)gradient[i], expected[i], 2e-6),
            "%s, parameter %lu: %g, not %g", layers, (unsigned long)i, (double)gradient[i],
            expected[i]);
    sgp_network_finish(&network);
}

Test(model, gradients_of_cross_entropy)
{
    against_reference("dense 3", SGP_LOSS_CROSS_ENTROPY, 1.0, false);
    against_reference("dense 7 relu, dense 3", SGP_LOSS_CROSS_ENTROPY, 0.37, false);
    against_reference("dense 16 tanh, dense 9 relu, dense 2", SGP_LOSS_CROSS_ENTROPY, 1.9, false);
    against_reference("dense 8 sigmoid, dense 5 none, dense 4", SGP_LOSS_CROSS_ENTROPY, 0.6, false);
}

Test(model, gradients_of_mean_squared_error)
{
    against_reference("dense 1", SGP_LOSS_MSE, 1.0, true);
    against_reference("dense 7 relu, dense 3 tanh", SGP_LOSS_MSE, 0.37, true);
    against_reference("dense 9 tanh, dense 16 relu", SGP_LOSS_MSE, 1.9, true);
    against_reference("dense 9 sigmoid, dense 3 sigmoid", SGP_LOSS_MSE, 0.6, false);
}

Test(model, softmax_of_great_logits_stays_finite)
{
    const float logits[3] = {1000.0f, 998.0f, -3e38f};
    const uint32_t label = 1;
    float delta[3];
    struct sgp_loss_sum sum = sgp_loss_batch(
        SGP_LOSS_CROSS_ENTROPY, &sgp_loss_defaults, delta, logits, &label, NULL, 1, 3);
    cr_assert(epsilon_eq(dbl, sum.loss, log(1.0 + exp(-2.0)) + 2.0, 1e-4));
    cr_assert(eq(u64, sum.correct, 0));
    cr_assert(epsilon_eq(flt, delta[0], 0.880797f, 1e-6f));
    cr_assert(eq(flt, delta[2], 0.0f));
}

Test(model, workspace_refuses_sizes_out_of_range)
{
    struct sgp_model model = describe("dense 65536", SGP_LOSS_MSE, 4194304 / 64);
    struct sgp_network network;
    cr_assert(
        eq(int, sgp_network_init(&network, &model, SGP_PRECISION_FLOAT32, 0, 0, 1), SGP_E_LIMIT));
    cr_assert(eq(int, sgp_network_init(&network, &model, SGP_PRECISION_FLOAT32, UINT32_MAX, 0, 1),
        SGP_E_LIMIT));
    cr_assert(eq(ptr, network.memory, NULL));
}
