/* SPDX-License-Identifier: Apache-2.0 */
/* The words of layers: what is read and refused, shapes, and the names of tensors. */
#include "layers.h"

#define PARAMETERS_MAX 2000

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

Test(layer_texts, texts_say_no_more_than_is_needed)
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

Test(layer_texts, the_longest_text_fits)
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

Test(layer_texts, refuse_words_that_are_none)
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

Test(layer_texts, refuse_shapes_that_do_not_suit)
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

Test(layer_texts, shapes)
{
    struct sgp_model model =
        describe("conv 4 3x3 stride 2, conv 5 4x4 stride 3 valid, pool 2 same, dense 2",
            SGP_LOSS_MSE, (struct sgp_shape){3, 27, 28});
    cr_assert(sgp_shape_equal(model.layers[0].output, (struct sgp_shape){4, 14, 14}));
    cr_assert(sgp_shape_equal(model.layers[1].output, (struct sgp_shape){5, 4, 4}));
    cr_assert(sgp_shape_equal(model.layers[2].output, (struct sgp_shape){5, 2, 2}));
    cr_assert(eq(u64, model.parameters, 4 * 27 + 4 + 5 * 64 + 5 + 2 * 20 + 2));
}

Test(layer_texts, tensors_are_named_and_tile_the_parameters)
{
    struct sgp_model model = describe("conv 4 3x2, norm batch relu, dropout 0.5, dense 2",
        SGP_LOSS_MSE, (struct sgp_shape){3, 5, 5});
    struct sgp_model_tensor tensors[SGP_MODEL_TENSORS_MAX];
    static const char *const names[] = {
        "weight", "bias", "weight", "bias", "running_mean", "running_var", "weight", "bias"};
    static const uint32_t layers[] = {0, 0, 1, 1, 1, 1, 3, 3};
    cr_assert(eq(u32, sgp_model_tensors(&model, tensors), 8));
    float x[PARAMETERS_MAX];
    sgp_model_initialise(&model, 1, x, NULL);
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
