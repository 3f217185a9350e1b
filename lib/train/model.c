/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of models: reading, writing, digests, first parameters. Any thread; no state. */
#include "sgp/model.h"

#include "network.h"

#include "sgp/random.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#define WORD_BYTES 32                            /* longer words are no words of ours */
#define STREAM_PARAMETERS UINT64_C(0x6d6f64656c) /* keeps these draws apart from others of a seed */

static const char *const activation_names[] = {"none", "relu", "tanh", "sigmoid"};
static const char *const loss_names[] = {"cross-entropy", "mse"};

static const char *activation_name(enum sgp_activation activation)
{
    return activation_names[activation - SGP_ACTIVATION_NONE];
}

static const char *loss_name(enum sgp_loss loss)
{
    return loss_names[loss - SGP_LOSS_CROSS_ENTROPY];
}

/* The next word before a comma or the end, cut at WORD_BYTES; empty if there is none. */
static void next_word(const char **cursor, char word[WORD_BYTES])
{
    *cursor += strspn(*cursor, " \t");
    size_t length = strcspn(*cursor, " \t,");
    size_t kept = length < WORD_BYTES ? length : WORD_BYTES - 1;
    memcpy(word, *cursor, kept);
    word[kept] = '\0';
    *cursor += length;
    *cursor += strspn(*cursor, " \t");
}

/* A whole number of 1..SGP_UNITS_MAX in digits alone, or 0. */
static uint32_t units(const char *word)
{
    uint32_t value = 0;
    for (; *word >= '0' && *word <= '9'; word++) {
        value = 10 * value + (uint32_t)(*word - '0');
        if (value > SGP_UNITS_MAX)
            return 0;
    }
    return *word == '\0' ? value : 0;
}

/* Read "dense N [ACTIVATION]" up to a comma or the end into *layer. */
static int parse_layer(
    const char **cursor, uint32_t number, struct sgp_error *error, struct sgp_layer *layer)
{
    char word[WORD_BYTES];
    next_word(cursor, word);
    if (strcmp(word, "dense") != 0)
        return sgp_fail(error, SGP_E_CONFIG,
            "layer %u begins with '%s'; write for example 'dense 512 relu'", number, word);
    next_word(cursor, word);
    layer->outputs = units(word);
    if (layer->outputs == 0)
        return sgp_fail(error, SGP_E_CONFIG,
            "layer %u has '%s' outputs; give a number from 1 to %u", number, word, SGP_UNITS_MAX);
    next_word(cursor, word);
    layer->activation = word[0] == '\0' ? SGP_ACTIVATION_NONE : 0;
    for (int i = 0; i < 4; i++)
        if (strcmp(word, activation_names[i]) == 0)
            layer->activation = (enum sgp_activation)(SGP_ACTIVATION_NONE + i);
    if (layer->activation == 0)
        return sgp_fail(error, SGP_E_CONFIG,
            "layer %u has the unknown activation '%s'; it is one of none, relu, tanh, sigmoid",
            number, word);
    if (**cursor != ',' && **cursor != '\0')
        return sgp_fail(error, SGP_E_CONFIG,
            "layer %u goes on after its activation with '%.16s'; separate layers by commas", number,
            *cursor);
    return 0;
}

int sgp_model_init(struct sgp_model *model, const char *layers, enum sgp_loss loss, uint32_t inputs,
    struct sgp_error *error)
{
    if (inputs == 0 || inputs > SGP_INPUTS_MAX)
        return sgp_fail(
            error, SGP_E_LIMIT, "a model of %u inputs; it has 1 to %u", inputs, SGP_INPUTS_MAX);
    struct sgp_model built = {.loss = loss, .inputs = inputs, .outputs = inputs};
    for (const char *cursor = layers;; cursor++) {
        if (built.layer_count == SGP_LAYERS_MAX)
            return sgp_fail(
                error, SGP_E_LIMIT, "the model has more than %u layers; use fewer", SGP_LAYERS_MAX);
        struct sgp_layer *layer = &built.layers[built.layer_count++];
        int status = parse_layer(&cursor, built.layer_count, error, layer);
        if (status < 0)
            return status;
        layer->inputs = built.outputs;
        layer->weights = built.parameters;
        layer->biases = layer->weights + (uint64_t)layer->outputs * layer->inputs;
        built.outputs = layer->outputs;
        built.parameters = layer->biases + layer->outputs;
        if (built.parameters > SGP_PARAMETERS_MAX)
            return sgp_fail(error, SGP_E_LIMIT,
                "the model has more than %llu parameters; use smaller layers",
                (unsigned long long)SGP_PARAMETERS_MAX);
        if (*cursor == '\0')
            break;
    }
    enum sgp_activation last = built.layers[built.layer_count - 1].activation;
    if (loss == SGP_LOSS_CROSS_ENTROPY && last != SGP_ACTIVATION_NONE)
        return sgp_fail(error, SGP_E_CONFIG,
            "the last layer has the activation %s under cross-entropy, which brings a softmax of "
            "its own; leave the activation out",
            activation_name(last));
    *model = built;
    return 0;
}

void sgp_model_text(const struct sgp_model *model, char ret_text[SGP_MODEL_TEXT_BYTES])
{
    size_t length = 0;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const struct sgp_layer *layer = &model->layers[i];
        bool plain = layer->activation == SGP_ACTIVATION_NONE;
        int written = snprintf(ret_text + length, SGP_MODEL_TEXT_BYTES - length, "%sdense %u%s%s",
            i == 0 ? "" : ", ", layer->outputs, plain ? "" : " ",
            plain ? "" : activation_name(layer->activation));
        sgp_assert(written > 0 && (size_t)written < SGP_MODEL_TEXT_BYTES - length);
        length += (size_t)written;
    }
}

uint32_t sgp_model_tensors(const struct sgp_model *model, struct sgp_tensor_end *ret_ends)
{
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const struct sgp_layer *layer = &model->layers[i];
        ret_ends[2 * i] = (struct sgp_tensor_end){layer->biases, true};
        ret_ends[2 * i + 1] = (struct sgp_tensor_end){layer->biases + layer->outputs, false};
    }
    return 2 * model->layer_count;
}

uint64_t sgp_model_shape_digest(const struct sgp_model *model)
{
    char text[SGP_MODEL_TEXT_BYTES];
    sgp_model_text(model, text);
    return XXH3_64bits_withSeed(text, strlen(text), model->inputs);
}

uint64_t sgp_model_loss_digest(const struct sgp_model *model)
{
    const char *name = loss_name(model->loss);
    return XXH3_64bits(name, strlen(name));
}

uint32_t sgp_model_products(const struct sgp_model *model, uint32_t batch,
    struct sgp_blas_layer ret_layers[static SGP_LAYERS_MAX])
{
    uint32_t count = 0;
    for (uint32_t l = 0; l < model->layer_count; l++) {
        const struct sgp_layer *layer = &model->layers[l];
        bool back = l > 0; /* to its inputs, by OpenBLAS even if it is narrow */
        if (layer->outputs > SGP_NARROW_OUTPUTS_MAX || back)
            ret_layers[count++] = (struct sgp_blas_layer){batch, layer->inputs, layer->outputs};
    }
    return count;
}

void sgp_model_initialise(const struct sgp_model *model, uint64_t seed, float *x)
{
    struct sgp_random random;
    sgp_random_init(&random, seed, STREAM_PARAMETERS);
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const struct sgp_layer *layer = &model->layers[i];
        double deviation = sqrt(2.0 / layer->inputs);
        for (uint64_t j = layer->weights; j < layer->biases; j++)
            x[j] = (float)(deviation * sgp_random_normal(&random));
        memset(x + layer->biases, 0, layer->outputs * sizeof *x);
    }
}
