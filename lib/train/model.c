/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of models: reading, writing, digests. Each kind of layer has a file of its own
 * (layer.h); parameters.c has their parameters. Any thread; no state. */
#include "sgp/model.h"

#include "layer.h"
#include "parameters.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* ---- reading ---- */

/* Read "input CxHxW," if the text begins with it. */
static int read_input(struct sgp_words *words, struct sgp_model *model)
{
    const char *begin = words->cursor;
    if (strcmp(sgp_words_next(words), "input") != 0) {
        words->cursor = begin;
        return 0;
    }
    if (!sgp_words_shape(sgp_words_next(words), &model->input))
        return sgp_fail(words->error, SGP_E_CONFIG,
            "the input is '%s'; give CHANNELSxHEIGHTxWIDTH, at most %u values, as in "
            "'input 1x28x28'",
            words->word, SGP_INPUTS_MAX);
    if (*words->cursor != ',')
        return sgp_fail(words->error, SGP_E_CONFIG,
            "the input goes on with '%.16s'; separate it from the layers by a comma",
            words->cursor);
    words->cursor++;
    return 0;
}

/* Read one layer up to a comma or the end into *layer. */
static int read_layer(struct sgp_words *words, struct sgp_layer *layer)
{
    char kinds[SGP_MODEL_TEXT_BYTES];
    struct sgp_text text = {.bytes = kinds};
    const char *word = sgp_words_next(words);
    layer->kind = sgp_layer_find(word);
    if (layer->kind != 0)
        return sgp_layer_methods(layer->kind)->read(words, layer);
    sgp_layer_words(&text);
    if (strcmp(word, "input") == 0)
        return sgp_fail(words->error, SGP_E_CONFIG,
            "layer %u is 'input'; it comes once, before the first layer", words->number);
    return sgp_fail(words->error, SGP_E_CONFIG,
        "layer %u begins with '%s'; write for example 'dense 512 relu', or another of %s",
        words->number, word, kinds);
}

static int check_last(const struct sgp_model *model, struct sgp_error *error)
{
    enum sgp_activation last = model->layers[model->layer_count - 1].activation;
    if (model->outputs == 0)
        return sgp_fail(error, SGP_E_CONFIG,
            "no layer is dense, conv or embedding, so there is nothing to learn; end with dense N");
    if (sgp_loss_activation(model->loss) && last != SGP_ACTIVATION_NONE)
        return sgp_fail(error, SGP_E_CONFIG,
            "the last layer has the activation %s under %s, which brings a %s of its own; leave "
            "the activation out",
            sgp_activation_name(last), sgp_loss_name(model->loss),
            sgp_loss_activation(model->loss));
    return 0;
}

int sgp_model_read(
    struct sgp_model *model, const char *layers, enum sgp_loss loss, struct sgp_error *error)
{
    struct sgp_model built = {.loss = loss, .loss_settings = sgp_loss_defaults};
    struct sgp_words words = {.cursor = layers, .error = error};
    int status = read_input(&words, &built);
    for (; status == 0; words.cursor++) {
        if (built.layer_count == SGP_LAYERS_MAX)
            return sgp_fail(
                error, SGP_E_LIMIT, "the model has more than %u layers; use fewer", SGP_LAYERS_MAX);
        struct sgp_layer *layer = &built.layers[built.layer_count++];
        words.number = built.layer_count;
        status = read_layer(&words, layer);
        built.outputs = layer->units > 0 ? layer->units : built.outputs;
        if (*words.cursor == '\0')
            break;
    }
    if (status == 0)
        status = check_last(&built, error);
    if (status == 0)
        *model = built;
    return status;
}

/* ---- shapes ---- */

static int find_input(struct sgp_model *model, struct sgp_shape input, struct sgp_error *error)
{
    uint64_t values = sgp_shape_values(input), said = sgp_shape_values(model->input);
    if (values == 0 || values > SGP_INPUTS_MAX)
        return sgp_fail(error, SGP_E_LIMIT, "a model of %llu inputs; it has 1 to %u",
            (unsigned long long)values, SGP_INPUTS_MAX);
    if (said > 0 && said != values)
        return sgp_fail(error, SGP_E_CONFIG,
            "the input %ux%ux%u has %llu values, and the rows have %llu; they must be equal",
            model->input.channels, model->input.height, model->input.width,
            (unsigned long long)said, (unsigned long long)values);
    model->input = said > 0 ? model->input : input;
    model->inputs = (uint32_t)values;
    return 0;
}

static int suit_layer(
    struct sgp_model *model, uint32_t index, struct sgp_shape input, struct sgp_error *error)
{
    struct sgp_layer *layer = &model->layers[index];
    layer->input = input;
    layer->inputs = (uint32_t)sgp_shape_values(input);
    int status = sgp_layer_methods(layer->kind)->suit(layer, index + 1, error);
    if (status < 0)
        return status;
    uint64_t pixels = sgp_shape_pixels(layer->output);
    if (pixels > SGP_INPUTS_MAX / layer->output.channels)
        return sgp_fail(error, SGP_E_LIMIT,
            "layer %u puts out more than %u values a row; use a smaller one", index + 1,
            SGP_INPUTS_MAX);
    layer->outputs = (uint32_t)sgp_shape_values(layer->output);
    return sgp_parameters_place(model, layer, error);
}

int sgp_model_init_shaped(struct sgp_model *model, const char *layers, enum sgp_loss loss,
    struct sgp_shape input, struct sgp_error *error)
{
    struct sgp_model built;
    int status = sgp_model_read(&built, layers, loss, error);
    if (status == 0)
        status = find_input(&built, input, error);
    struct sgp_shape shape = built.input;
    for (uint32_t i = 0; status == 0 && i < built.layer_count; i++) {
        status = suit_layer(&built, i, shape, error);
        shape = built.layers[i].output;
    }
    if (status == 0 && sgp_shape_pixels(shape) > 1)
        status = sgp_fail(error, SGP_E_CONFIG,
            "the last layer puts out images of %ux%u; end with dense N, or with pool avg all",
            shape.height, shape.width);
    if (status < 0)
        return status;
    built.outputs = shape.channels;
    *model = built;
    return 0;
}

int sgp_model_init(struct sgp_model *model, const char *layers, enum sgp_loss loss, uint32_t inputs,
    struct sgp_error *error)
{
    return sgp_model_init_shaped(model, layers, loss, (struct sgp_shape){inputs, 1, 1}, error);
}

/* ---- writing ---- */

/* Whether a layer depends on the shape of the rows. Behind a dense layer rows have no shape. */
static bool goes_by_input(const struct sgp_model *model)
{
    uint32_t l = 0;
    while (l < model->layer_count && model->layers[l].kind != SGP_LAYER_DENSE &&
           !sgp_layer_methods(model->layers[l].kind)->by_shape)
        l++;
    return l < model->layer_count && model->layers[l].kind != SGP_LAYER_DENSE &&
           sgp_shape_pixels(model->input) > 1;
}

int sgp_model_set_loss(
    struct sgp_model *model, const struct sgp_loss_settings *settings, struct sgp_error *error)
{
    int status = sgp_loss_check(model->loss, settings, model->outputs, error);
    if (status == 0)
        model->loss_settings = *settings;
    return status;
}

void sgp_model_text(const struct sgp_model *model, char ret_text[SGP_MODEL_TEXT_BYTES])
{
    struct sgp_text text = {.bytes = ret_text};
    ret_text[0] = '\0';
    if (goes_by_input(model))
        sgp_text_add(&text, "input %ux%ux%u, ", model->input.channels, model->input.height,
            model->input.width);
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const struct sgp_layer_methods *methods = sgp_layer_methods(model->layers[i].kind);
        sgp_text_add(&text, "%s%s", i == 0 ? "" : ", ", methods->word);
        methods->write(&model->layers[i], &text);
    }
}

uint32_t sgp_model_vocabulary(const struct sgp_model *model)
{
    return model->layers[0].vocabulary;
}

uint64_t sgp_model_shape_digest(const struct sgp_model *model)
{
    char text[SGP_MODEL_TEXT_BYTES], local[SGP_MODEL_LOCAL_BYTES];
    sgp_model_text(model, text);
    sgp_model_local_text(model, local);
    uint64_t digest = XXH3_64bits_withSeed(text, strlen(text), model->inputs);
    return local[0] == '\0' ? digest : XXH3_64bits_withSeed(local, strlen(local), digest);
}

uint64_t sgp_model_loss_digest(const struct sgp_model *model)
{
    return sgp_loss_digest(model->loss, &model->loss_settings);
}

uint32_t sgp_model_products(const struct sgp_model *model, uint32_t batch,
    struct sgp_blas_layer ret_layers[static SGP_LAYERS_MAX])
{
    uint32_t count = 0;
    for (uint32_t l = 0; l < model->layer_count; l++) {
        const struct sgp_layer *layer = &model->layers[l];
        const struct sgp_layer_methods *methods = sgp_layer_methods(layer->kind);
        if (methods->product && methods->product(layer, batch, l > 0, &ret_layers[count]))
            count++;
    }
    return count;
}
