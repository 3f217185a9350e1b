/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of layer: its words, its shapes, and its passes against slow ones in float64. */
#include "reference_layers.h"
#include "sgp/learner.h"
#include "sgp/random.h"
#include "train/layer.h"
#include "train/network.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#define PARAMETERS_MAX 2000

static struct sgp_model describe(const char *layers, enum sgp_loss loss, struct sgp_shape input)
{
    struct sgp_model model;
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_model_init_shaped(&model, layers, loss, input, &error), 0), "%s: %s",
        layers, error.text);
    return model;
}

/* ---- words ---- */

static void text_of(struct sgp_shape input, const char *layers, const char *text)
{
    struct sgp_model model = describe(layers, SGP_LOSS_MSE, input), again;
    char got[SGP_MODEL_TEXT_BYTES];
    sgp_model_text(&model, got);
    cr_assert(eq(str, got, (char *)text));
    cr_assert(eq(int, sgp_model_init(&again, got, SGP_LOSS_MSE, model.inputs, NULL), 0));
    char twice[SGP_MODEL_TEXT_BYTES];
    sgp_model_text(&again, twice);
    cr_assert(eq(str, twice, (char *)text), "the text alone tells the model");
    cr_assert(eq(u64, again.parameters, model.parameters));
    cr_assert(eq(u64, sgp_model_shape_digest(&again), sgp_model_shape_digest(&model)));
}

Test(layers, texts_say_no_more_than_is_needed)
{
    struct sgp_shape image = {1, 28, 28};
    text_of(image, "conv 32 3x3 same stride 1 relu,pool max 2x2 valid,dense 10 none",
        "input 1x28x28, conv 32 3x3 relu, pool 2, dense 10");
    text_of(image,
        "conv 8 5 stride 2x1 valid tanh, pool avg 3 stride 2 same, pool avg all, dense 2",
        "input 1x28x28, conv 8 5x5 stride 2x1 valid tanh, pool avg 3 stride 2 same, pool avg all, "
        "dense 2");
    text_of(image,
        "norm batch, conv 8 1, norm layer relu, norm group 4 sigmoid, norm group 1, "
        "residual 1 relu, dropout 0.50, pool all, dense 1",
        "input 1x28x28, norm batch, conv 8 1x1, norm layer relu, norm group 4 sigmoid, norm layer, "
        "residual 1 relu, dropout 0.5, pool all, dense 1");
    text_of((struct sgp_shape){12, 1, 1}, "embedding 100 16, conv 3 1x3, pool all, dense 1",
        "embedding 100 x 16, conv 3 1x3, pool all, dense 1");
    text_of(image, "input 2x14x28, conv 1 2x1 stride 2x1, dense 1",
        "input 2x14x28, conv 1 2x1 stride 2x1, dense 1");
    /* behind a dense layer no shape is left, so rows are only so many values */
    text_of(image, "dropout 0.00, dropout 0.1000004, dropout .0000006, dropout 0.999999, dense 1",
        "dropout 0, dropout 0.1, dropout 0.000001, dropout 0.999999, dense 1");
    text_of(image, "dropout 0.1, dense 3 relu, norm batch, dense 2",
        "dropout 0.1, dense 3 relu, norm batch, dense 2");
}

Test(layers, the_longest_text_fits)
{
    char layers[64 * 80] = "input 1x2048x2048";
    for (uint32_t i = 0; i + 1 < SGP_LAYERS_MAX; i++)
        strcat(layers, ", conv 1 1023x1024 stride 1024x1023 valid sigmoid");
    strcat(layers, ", dense 65536 sigmoid");
    struct sgp_model model;
    cr_assert(eq(int, sgp_model_read(&model, layers, SGP_LOSS_MSE, NULL), 0));
    model.input = (struct sgp_shape){1, 2048, 2048};
    char text[SGP_MODEL_TEXT_BYTES];
    sgp_model_text(&model, text);
    cr_assert(eq(str, text, layers));
    cr_assert(lt(sz, strlen("conv 65536 1023x1024 stride 1024x1023 valid sigmoid, ") * 64 + 40,
        (size_t)SGP_MODEL_TEXT_BYTES));
}

static void refuse(struct sgp_shape input, const char *layers, const char *text)
{
    struct sgp_error error = {0};
    struct sgp_model model = {.inputs = 77};
    cr_assert(
        ne(int, sgp_model_init_shaped(&model, layers, SGP_LOSS_CROSS_ENTROPY, input, &error), 0),
        "%s", layers);
    cr_assert(eq(str, error.text, (char *)text));
    cr_assert(eq(u32, model.inputs, 77), "a failure leaves the model unchanged");
}

Test(layers, refuse_words_that_are_none)
{
    struct sgp_shape image = {1, 8, 8};
    refuse(image, "conv", "layer 1 has '' channels; give a number from 1 to 65536");
    refuse(image, "conv 4",
        "layer 1 has the window ''; give its sides, each from 1 to 1024, as in 'conv 4 3x3'");
    refuse(image, "conv 4 3x",
        "layer 1 has the window '3x'; give its sides, each from 1 to 1024, as in 'conv 4 3x3'");
    refuse(image, "conv 4 3x3 strid 2",
        "layer 1 has the unknown word 'strid' behind its window; what may follow is stride N, "
        "same, "
        "valid, none, relu, tanh, sigmoid");
    refuse(image, "conv 4 3x3 stride 0",
        "layer 1 has the stride '0'; give a number from 1 to 1024, or two as 2x1");
    refuse(image, "conv 4 3x3 relu valid",
        "layer 1 goes on after its activation with 'valid'; separate layers by commas");
    refuse(image, "pool min 2",
        "layer 1 has the window 'min'; write for example 'pool 2', 'pool avg 3x3 stride 2' or "
        "'pool "
        "avg all'");
    refuse(image, "pool 2 relu",
        "layer 1 has the unknown word 'relu' behind its window; what may follow is stride N, same, "
        "valid");
    refuse(image, "pool all relu",
        "layer 1 goes on after its window with 'relu'; separate layers by commas");
    refuse(image, "norm", "layer 1 normalises by ''; write norm batch, norm layer or norm group N");
    refuse(image, "norm group x", "layer 1 has 'x' groups; give a number from 1 to 65536");
    refuse(image, "dropout 1",
        "layer 1 drops '1'; give a chance from 0 to below 1, as in 'dropout 0.5'");
    refuse(image, "dropout 0.9999999",
        "layer 1 drops '0.9999999'; give a chance from 0 to below 1, as in 'dropout 0.5'");
    refuse(image, "dropout -0.1",
        "layer 1 drops '-0.1'; give a chance from 0 to below 1, as in 'dropout 0.5'");
    refuse(
        image, "dropout", "layer 1 drops ''; give a chance from 0 to below 1, as in 'dropout 0.5'");
    refuse(image, "dropout 0.5 relu",
        "layer 1 goes on after its chance with 'relu'; separate layers by commas");
    refuse(image, "embedding 0 x 3",
        "layer 1 is a table of '0' vectors; give a number from 1 to 65536, as in 'embedding 1000 x "
        "32'");
    refuse(image, "embedding 10 x",
        "layer 1 has vectors of '' values; give a number from 1 to 65536, as in 'embedding 10 x "
        "32'");
    refuse(image, "dense 3, residual",
        "layer 2 leads around '' layers; give the number of layers before it, as in 'residual 2'");
    refuse(
        image, "dense 3, residual 2", "layer 2 leads around 2 layers, and there are 1 before it");
    refuse(image, "input 1x8, dense 3",
        "the input is '1x8'; give CHANNELSxHEIGHTxWIDTH, at most 4194304 values, as in 'input "
        "1x28x28'");
    refuse(image, "input 1x8x8 dense 3",
        "the input goes on with 'dense 3'; separate it from the layers by a comma");
    refuse(
        image, "dense 3, input 3x1x1", "layer 2 is 'input'; it comes once, before the first layer");
    refuse(image, "dropout 0.5",
        "no layer is dense, conv or embedding, so there is nothing to learn; end with dense N");
}

Test(layers, refuse_shapes_that_do_not_suit)
{
    struct sgp_shape image = {1, 8, 8}, flat = {64, 1, 1}, colours = {3, 8, 8};
    refuse(image, "conv 4 9x3, dense 2",
        "layer 1 has a window of 9x3, larger than its input of 8x8 pixels; use a smaller one");
    refuse(image, "pool 4, pool 3, dense 2",
        "layer 2 has a window of 3x3, larger than its input of 2x2 pixels; use a smaller one");
    refuse(flat, "conv 4 3x3, dense 2",
        "layer 1 has a window of 3x3, larger than its input of 1x1 pixels; for images in flat rows "
        "begin the layers with input CHANNELSxHEIGHTxWIDTH");
    refuse(image, "input 1x8x9, dense 2",
        "the input 1x8x9 has 72 values, and the rows have 64; they must be equal");
    refuse(image, "conv 6 3x3, norm group 4, dense 2",
        "layer 2 has 4 groups for 6 channels; give a number that divides them");
    refuse(image, "conv 6 3x3, conv 5 3x3, residual 1, dense 2",
        "layer 3 adds what entered layer 2, 6x8x8, to 5x8x8; the shapes must be equal");
    refuse(image, "dense 6, embedding 6 x 2",
        "layer 2 is an embedding, which takes whole numbers; make it the first layer");
    refuse(colours, "embedding 6 x 2, dense 2",
        "layer 1 is an embedding, and the rows are images of 3 channels; it takes flat rows, or "
        "images of 1");
    refuse(image, "conv 10 3x3",
        "the last layer puts out images of 8x8; end with dense N, or with pool avg all");
    refuse((struct sgp_shape){1, 9, 8}, "conv 65536 1x1, pool all, dense 2",
        "layer 1 puts out more than 4194304 values a row; use a smaller one");
}

Test(layers, shapes)
{
    struct sgp_model model =
        describe("conv 4 3x3 stride 2, conv 5 4x4 stride 3 valid, pool 2 same, dense 2",
            SGP_LOSS_MSE, (struct sgp_shape){3, 27, 28});
    cr_assert(sgp_shape_equal(model.layers[0].output, (struct sgp_shape){4, 14, 14}));
    cr_assert(sgp_shape_equal(model.layers[1].output, (struct sgp_shape){5, 4, 4}));
    cr_assert(sgp_shape_equal(model.layers[2].output, (struct sgp_shape){5, 2, 2}));
    cr_assert(eq(u64, model.parameters, 4 * 27 + 4 + 5 * 64 + 5 + 2 * 20 + 2));
}

Test(layers, tensors_are_named_and_tile_the_parameters)
{
    struct sgp_model model = describe("conv 4 3x2, norm batch relu, dropout 0.5, dense 2",
        SGP_LOSS_MSE, (struct sgp_shape){3, 5, 5});
    struct sgp_model_tensor tensors[SGP_MODEL_TENSORS_MAX];
    static const char *const names[] = {
        "weight", "bias", "weight", "bias", "running_mean", "running_var", "weight", "bias"};
    static const uint32_t layers[] = {0, 0, 1, 1, 1, 1, 3, 3};
    cr_assert(eq(u32, sgp_model_tensors(&model, tensors), 8));
    float x[PARAMETERS_MAX];
    sgp_model_initialise(&model, 1, x);
    uint64_t at = 0;
    for (uint32_t i = 0; i < 8; i++) {
        cr_assert(eq(str, (char *)tensors[i].name, (char *)names[i]));
        cr_assert(eq(u32, tensors[i].layer, layers[i]));
        cr_assert(eq(u64, tensors[i].first, at));
        cr_assert(eq(int, tensors[i].statistic, i == 4 || i == 5));
        at += tensors[i].count;
    }
    cr_assert(eq(u64, at, model.parameters));
    cr_assert(eq(u64, tensors[0].shape[1], 3));
    cr_assert(eq(u64, tensors[0].shape[2], 3));
    cr_assert(eq(u64, tensors[0].shape[3], 2));
    for (uint64_t c = 0; c < 4; c++) {
        cr_assert(eq(flt, x[tensors[2].first + c], 1.0f));
        cr_assert(eq(flt, x[tensors[4].first + c], 0.0f));
        cr_assert(eq(flt, x[tensors[5].first + c], 1.0f));
    }
}

/* ---- passes ---- */

struct trial {
    struct sgp_model model;
    struct sgp_network network;
    struct reference_net reference;
    double weight;
    size_t rows;
    float *features, *x, *gradient;
    double *z, *expected;
    uint32_t *labels;
};

/* Features and parameters by chance; those of an embedding are whole. */
static void fill(struct trial *t)
{
    struct sgp_random random;
    sgp_random_init(&random, 11, t->model.parameters);
    struct sgp_model_tensor tensors[SGP_MODEL_TENSORS_MAX];
    uint32_t count = sgp_model_tensors(&t->model, tensors),
             vocabulary = sgp_model_vocabulary(&t->model);
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t j = tensors[i].first; j < tensors[i].first + tensors[i].count; j++) {
            double value = 0.4 * sgp_random_normal(&random);
            if (strcmp(tensors[i].name, "running_var") == 0)
                value = 0.5 + value * value;
            t->x[j] = (float)(value * t->weight);
            t->z[j] = (double)t->x[j] / t->weight;
        }
    for (size_t i = 0; i < t->rows * t->model.inputs; i++)
        t->features[i] = vocabulary > 0 ? (float)sgp_random_below(&random, vocabulary)
                                        : (float)sgp_random_normal(&random);
    for (size_t r = 0; r < t->rows; r++)
        t->labels[r] = (uint32_t)sgp_random_below(&random, t->model.outputs);
}

static void trial_init(
    struct trial *t, struct sgp_shape input, const char *layers, size_t rows, double weight)
{
    *t = (struct trial){
        .model = describe(layers, SGP_LOSS_CROSS_ENTROPY, input), .weight = weight, .rows = rows};
    cr_assert(eq(int,
        sgp_network_init(&t->network, &t->model, SGP_PRECISION_FLOAT32, (uint32_t)rows + 1, 1), 0));
    t->features = calloc(rows * t->model.inputs, sizeof *t->features);
    t->x = calloc(t->model.parameters, sizeof *t->x);
    t->gradient = calloc(t->model.parameters, sizeof *t->gradient);
    t->z = calloc(t->model.parameters, sizeof *t->z);
    t->expected = calloc(t->model.parameters, sizeof *t->expected);
    t->labels = calloc(rows, sizeof *t->labels);
    fill(t);
    reference_net_init(&t->reference, &t->model, t->features, rows);
    memcpy(t->network.activations[0], t->features, rows * t->model.inputs * sizeof(float));
}

static void trial_finish(struct trial *t)
{
    sgp_network_finish(&t->network);
    reference_net_finish(&t->reference);
    free(t->features);
    free(t->x);
    free(t->gradient);
    free(t->z);
    free(t->expected);
    free(t->labels);
}

static void same_outputs(const struct trial *t, const float *outputs)
{
    for (size_t i = 0; i < t->rows * t->model.outputs; i++) {
        double expected = t->reference.values[t->model.layer_count][i];
        char text[SGP_MODEL_TEXT_BYTES];
        sgp_model_text(&t->model, text);
        cr_assert(
            epsilon_eq(dbl, (double)outputs[i], expected, 2e-5 * (1 + fabs(expected))), "%s", text);
    }
}

/* Outputs, loss and gradient at x / weight, in training and not. */
static void against_reference(
    struct sgp_shape input, const char *layers, size_t rows, double weight)
{
    struct trial t;
    trial_init(&t, input, layers, rows, weight);
    t.reference.training = false;
    reference_net_forward(&t.reference, t.z);
    same_outputs(&t, sgp_network_forward(&t.network, t.x, weight, rows));
    t.reference.training = true;
    double loss = reference_net_loss(&t.reference, t.z, t.labels);
    same_outputs(&t, sgp_network_forward_training(&t.network, t.x, weight, 0, rows, 5));
    double got = sgp_network_loss(&t.network, t.labels, NULL, rows).loss / (double)rows;
    cr_assert(epsilon_eq(dbl, got, loss, 1e-5 * (1 + loss)));
    memset(t.gradient, 0xff,
        t.model.parameters * sizeof *t.gradient); /* NaN: every value is written */
    sgp_network_backward(&t.network, t.gradient, t.x, weight, rows);
    reference_net_gradient(&t.reference, t.z, t.expected, t.labels);
    double most = 0;
    for (uint64_t i = 0; i < t.model.parameters; i++)
        most = fabs(t.expected[i]) > most ? fabs(t.expected[i]) : most;
    for (uint64_t i = 0; i < t.model.parameters; i++)
        cr_assert(epsilon_eq(dbl, (double)t.gradient[i], t.expected[i], 1e-5 * (most + 0.1)),
            "%s, parameter %lu: %g, not %g", layers, (unsigned long)i, (double)t.gradient[i],
            t.expected[i]);
    trial_finish(&t);
}

Test(layers, conv)
{
    against_reference((struct sgp_shape){1, 1, 1}, "conv 3 1x1 relu, dense 2", 4, 1);
    against_reference((struct sgp_shape){1, 6, 5}, "conv 3 3x3 relu, dense 3", 5, 1);
    against_reference(
        (struct sgp_shape){3, 6, 5}, "conv 4 3x3 tanh, conv 3 2x2 relu, dense 3", 3, 0.37);
    against_reference((struct sgp_shape){2, 5, 1},
        "conv 3 3x1 relu, conv 2 2x1 stride 2 valid sigmoid, dense 3", 4, 1.9);
    against_reference(
        (struct sgp_shape){2, 7, 6}, "conv 3 4x3 stride 2x3, conv 20 1x1 relu, dense 2", 3, 1);
    against_reference((struct sgp_shape){2, 8, 7},
        "conv 3 3x2 stride 3x2 valid, conv 2 1x1 stride 2, dense 2", 3, 0.6);
    against_reference((struct sgp_shape){4, 3, 3}, "conv 3 3x3 valid, dense 2", 6, 0.5);
    against_reference((struct sgp_shape){5, 1, 1}, "conv 3 1x1 relu, dense 2", 6, 0.5);
}

Test(layers, conv_in_many_blocks)
{
    against_reference(
        (struct sgp_shape){1, 32, 32}, "conv 1 9x9 relu, pool avg all, dense 2", 2, 1.3);
}

Test(layers, pool)
{
    against_reference((struct sgp_shape){1, 6, 4}, "conv 3 3x3, pool 2, dense 2", 4, 1);
    against_reference((struct sgp_shape){1, 7, 5}, "conv 3 3x3, pool 2, dense 2", 4, 1);
    against_reference((struct sgp_shape){2, 7, 5},
        "conv 3 3x3, pool 3 stride 2, pool avg 2 same, dense 2", 4, 0.7);
    against_reference((struct sgp_shape){2, 7, 5},
        "conv 3 3x3, pool 3x2 stride 2x1 same, pool avg all, dense 2", 4, 1);
    against_reference((struct sgp_shape){2, 7, 5},
        "conv 3 3x3, pool avg 3 stride 2 same, pool max all, dense 2", 4, 1);
    against_reference((struct sgp_shape){3, 4, 4}, "pool 2, conv 3 2x2, dense 2", 4, 1);
}

Test(layers, norm)
{
    against_reference((struct sgp_shape){5, 1, 1}, "dense 6, norm batch relu, dense 3", 7, 1);
    against_reference((struct sgp_shape){5, 1, 1}, "dense 6, norm layer tanh, dense 3", 7, 0.4);
    against_reference((struct sgp_shape){2, 5, 4}, "conv 4 3x3, norm batch relu, dense 3", 5, 1.7);
    against_reference(
        (struct sgp_shape){2, 5, 4}, "conv 4 3x3, norm layer relu, norm group 2, dense 3", 5, 0.5);
    against_reference(
        (struct sgp_shape){2, 5, 4}, "norm batch, conv 6 3x3, norm group 3 sigmoid, dense 3", 5, 1);
    against_reference(
        (struct sgp_shape){1, 20, 20}, "conv 2 3x3, norm batch, pool avg all, dense 2", 3, 1);
}

Test(layers, residual)
{
    against_reference(
        (struct sgp_shape){5, 1, 1}, "dense 6 tanh, dense 6, residual 1 relu, dense 3", 7, 1);
    against_reference((struct sgp_shape){3, 5, 4},
        "conv 3 3x3 relu, conv 3 3x3, residual 2 relu, dense 3", 4, 0.7);
    against_reference((struct sgp_shape){2, 5, 4},
        "conv 3 3x3, norm batch relu, conv 3 3x3, residual 2 tanh, conv 3 1x1, residual 4 sigmoid, "
        "residual 1, dense 3",
        4, 1.4);
}

Test(layers, embedding)
{
    against_reference((struct sgp_shape){6, 1, 1}, "embedding 5 x 4, dense 2", 4, 0.7);
    against_reference((struct sgp_shape){6, 1, 1},
        "embedding 5 x 4, conv 3 1x3 relu, pool avg all, dense 2", 4, 1);
    against_reference(
        (struct sgp_shape){1, 3, 4}, "embedding 5 x 3, conv 3 2x2 relu, pool 2, dense 2", 4, 1.5);
}

#define NETWORKS 60

/* A text of layers by chance; many of them do not suit. */
static void draw(struct sgp_random *random, char text[512])
{
    static const char *const layers[] = {"conv 4 3x3", "conv 3 1x2 relu", "conv 3 2x1 stride 2",
        "conv 2 3x3 valid tanh", "conv 5 1x1", "pool 2", "pool avg 2 same", "pool 3 stride 2 same",
        "pool avg all", "norm batch", "norm batch relu", "norm layer", "norm group 2", "residual 1",
        "residual 2 relu", "residual 3", "embedding 4 x 3", "dense 6 tanh", "dense 5"};
    text[0] = '\0';
    for (uint64_t count = 1 + sgp_random_below(random, 6); count > 0; count--) {
        strcat(text, layers[sgp_random_below(random, sizeof layers / sizeof layers[0])]);
        strcat(text, ", ");
    }
    strcat(text, "dense 2");
}

Test(layers, networks_by_chance)
{
    static const struct sgp_shape shapes[] = {{1, 6, 5}, {2, 4, 4}, {6, 1, 1}, {1, 1, 7}};
    struct sgp_random random;
    sgp_random_init(&random, 4, 0);
    for (int found = 0; found < NETWORKS;) {
        char text[512];
        struct sgp_model model;
        draw(&random, text);
        struct sgp_shape shape = shapes[sgp_random_below(&random, 4)];
        if (sgp_model_init_shaped(&model, text, SGP_LOSS_CROSS_ENTROPY, shape, NULL) < 0 ||
            model.parameters > 300)
            continue;
        against_reference(shape, text, 4, 0.3 + sgp_random_double(&random));
        found++;
    }
}

Test(layers, a_dense_layer_takes_rows_as_they_come)
{
    against_reference((struct sgp_shape){2, 4, 4}, "dense 6 tanh, dense 2", 4, 0.7);
    against_reference((struct sgp_shape){3, 2, 1}, "dense 6 relu, residual 1, dense 2", 4, 1);
    against_reference((struct sgp_shape){3, 2, 2}, "norm layer, dense 6 tanh, dense 2", 4, 1.2);
}

Test(layers, an_embedding_takes_the_nearest_vector)
{
    struct sgp_model model =
        describe("embedding 3 x 1, dense 1", SGP_LOSS_MSE, (struct sgp_shape){5, 1, 1});
    struct sgp_network network;
    cr_assert(eq(int, sgp_network_init(&network, &model, SGP_PRECISION_FLOAT32, 1, 1), 0));
    const float features[5] = {-1e30f, 1, 2, 7e30f, NAN};
    memcpy(network.activations[0], features, sizeof features);
    float x[9] = {10, 20, 30};
    sgp_network_forward(&network, x, 2, 1);
    const float expected[5] = {5, 10, 15, 15, 5};
    for (int i = 0; i < 5; i++)
        cr_assert(eq(flt, network.activations[1][i], expected[i]));
    sgp_network_finish(&network);
}

Test(layers, a_pool_lets_no_value_that_is_no_number_go_by)
{
    struct sgp_model model = describe("pool 2, dense 1", SGP_LOSS_MSE, (struct sgp_shape){1, 4, 2});
    struct sgp_network network;
    cr_assert(eq(int, sgp_network_init(&network, &model, SGP_PRECISION_FLOAT32, 1, 1), 0));
    const float features[8] = {1, 2, NAN, 3, NAN, 5, 6, 7};
    memcpy(network.activations[0], features, sizeof features);
    float x[3] = {0};
    sgp_network_forward(&network, x, 1, 1);
    cr_assert(isnan(network.activations[1][0]) && isnan(network.activations[1][1]));
    sgp_network_finish(&network);
}

Test(layers, the_first_of_equal_values_has_the_gradient)
{
    struct sgp_model model = describe("pool 2, dense 1", SGP_LOSS_MSE, (struct sgp_shape){1, 2, 4});
    float input[8] = {1, 1, 0, 5, 1, 1, 5, 5}, output[2], delta[2] = {3, 7}, below[8];
    struct sgp_pass pass = {.layer = &model.layers[0],
        .rows = 1,
        .input = input,
        .output = output,
        .delta = delta,
        .below = below};
    sgp_layer_pool.forward(&pass);
    sgp_layer_pool.backward(&pass);
    const float expected[8] = {3, 0, 0, 7, 0, 0, 0, 0};
    for (int i = 0; i < 8; i++)
        cr_assert(eq(flt, below[i], expected[i]));
}

/* ---- statistics ---- */

/* Pass the rows from `first` on through the network. */
static void pass_rows(struct trial *t, double weight, size_t first, size_t rows)
{
    memcpy(t->network.activations[0], t->features + first * t->model.inputs,
        rows * t->model.inputs * sizeof(float));
    sgp_network_forward_training(&t->network, t->x, weight, first, rows, 5);
}

/* z moves to the batch's by the momentum, or x by half of the way if w is small; the mean over
 * nodes of what is added is that of their statistics. The step has passes over `half` rows and over
 * the others. */
static void settles(double weight, double momentum, size_t half)
{
    struct trial t;
    trial_init(&t, (struct sgp_shape){2, 3, 2}, "conv 3 1x1, norm batch, dense 2", 5, weight);
    reference_net_forward(&t.reference, t.z);
    if (half > 0)
        pass_rows(&t, weight, 0, half);
    pass_rows(&t, weight, half, t.rows - half);
    const struct sgp_layer *norm = &t.model.layers[1];
    float *statistics = t.x + norm->biases + 3;
    float before[6], first = t.x[0];
    memcpy(before, statistics, sizeof before);
    memset(statistics, 0xff, sizeof before); /* whatever the optimiser made of them */
    sgp_network_settle(&t.network, t.x);
    cr_assert(eq(flt, t.x[0], first));
    for (uint32_t c = 0; c < 3; c++) {
        double mean, variance;
        reference_moments(norm, t.reference.values[1], 0, 5, c, c + 1, &mean, &variance);
        variance *= 30.0 / 29.0; /* unbiased */
        double z_mean = (double)before[c] / weight, z_variance = (double)before[3 + c] / weight;
        cr_assert(epsilon_eq(
            dbl, (double)statistics[c], (double)before[c] + momentum * (mean - z_mean), 1e-6));
        cr_assert(epsilon_eq(dbl, (double)statistics[3 + c],
            (double)before[3 + c] + momentum * (variance - z_variance), 1e-6));
    }
    trial_finish(&t);
}

Test(layers, running_statistics_follow_those_of_batches)
{
    settles(1, 0.1, 0);
    settles(2.5, 0.1, 1);
    settles(2.5, 0.1, 2);
    settles(0.08, 0.04, 0);
}

Test(layers, one_value_has_no_variance_to_follow)
{
    struct trial t;
    trial_init(&t, (struct sgp_shape){4, 1, 1}, "dense 3, norm batch, dense 2", 1, 1);
    sgp_network_forward_training(&t.network, t.x, 1, 0, 1, 0);
    float before[6];
    memcpy(before, t.x + t.model.layers[1].biases + 3, sizeof before);
    sgp_network_settle(&t.network, t.x);
    cr_assert(eq(int, memcmp(before, t.x + t.model.layers[1].biases + 3, sizeof before), 0));
    trial_finish(&t);
}

/* ---- dropout ---- */

#define DROPPED 100003

static void drop(double rate, bool training, uint64_t chance, float *output)
{
    static float ones[DROPPED];
    for (size_t i = 0; i < DROPPED; i++)
        ones[i] = 1;
    struct sgp_layer layer = {
        .kind = SGP_LAYER_DROPOUT, .rate = rate, .inputs = DROPPED, .outputs = DROPPED};
    static float below[DROPPED];
    struct sgp_pass pass = {.layer = &layer,
        .rows = 1,
        .input = ones,
        .output = output,
        .training = training,
        .chance = chance,
        .delta = ones,
        .below = below};
    sgp_layer_dropout.forward(&pass);
    sgp_layer_dropout.backward(&pass);
    cr_assert(eq(int, memcmp(below, output, sizeof below), 0), "the way back is the way there");
}

Test(layers, dropout)
{
    static float a[DROPPED], b[DROPPED];
    static const double rates[] = {0, 0.1, 0.5, 0.9};
    for (int i = 0; i < 4; i++) {
        double rate = rates[i];
        size_t zeros = 0;
        drop(rate, true, 7, a);
        for (size_t v = 0; v < DROPPED; v++) {
            zeros += a[v] == 0;
            cr_assert(a[v] == 0 || fabs((double)a[v] * (1 - rate) - 1) < 2e-4);
        }
        cr_assert(lt(dbl, fabs((double)zeros / DROPPED - rate),
            5 * sqrt(rate * (1 - rate) / DROPPED) + 1e-5));
    }
    drop(0.5, true, 7, a);
    drop(0.5, true, 7, b);
    cr_assert(eq(int, memcmp(a, b, sizeof a), 0));
    drop(0.5, true, 8, b);
    cr_assert(ne(int, memcmp(a, b, sizeof a), 0));
    drop(0.5, false, 7, a);
    for (size_t v = 0; v < DROPPED; v++)
        cr_assert(eq(flt, a[v], 1.0f));
}

/* ---- a learner ---- */

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

Test(layers, a_run_that_was_interrupted_ends_as_one_that_was_not)
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

Test(layers, evaluation_changes_nothing_and_training_learns)
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
Test(layers, weight_decay_does_not_reach_statistics)
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
Test(layers, running_statistics_of_a_step_in_two_halves_are_those_of_its_batch)
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

Test(layers, an_embedding_refuses_features_that_are_no_whole_numbers)
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
