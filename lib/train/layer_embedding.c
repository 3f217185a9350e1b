/* SPDX-License-Identifier: Apache-2.0 */
/* Embeddings: each feature is a whole number, and selects that row of a table of vectors. An
 * embedding must be the first layer, because a whole number has no gradient. */
#include "layer.h"
#include "sgp/kernels.h"

#include <string.h>

static int embedding_read(struct sgp_words *words, struct sgp_layer *layer)
{
    const char *word = sgp_words_next(words);
    layer->activation = SGP_ACTIVATION_NONE;
    layer->vocabulary = sgp_words_count(word, SGP_UNITS_MAX);
    if (layer->vocabulary == 0)
        return sgp_fail(words->error, SGP_E_CONFIG,
            "layer %u is a table of '%s' vectors; give a number from 1 to %u, as in "
            "'embedding 1000 x 32'",
            words->number, word, SGP_UNITS_MAX);
    word = sgp_words_next(words);
    if (strcmp(word, "x") == 0)
        word = sgp_words_next(words);
    layer->units = sgp_words_count(word, SGP_UNITS_MAX);
    if (layer->units == 0)
        return sgp_fail(words->error, SGP_E_CONFIG,
            "layer %u has vectors of '%s' values; give a number from 1 to %u, as in "
            "'embedding %u x 32'",
            words->number, word, SGP_UNITS_MAX, layer->vocabulary);
    return sgp_words_end(words, "size");
}

static void embedding_write(const struct sgp_layer *layer, struct sgp_text *text)
{
    sgp_text_add(text, " %u x %u", layer->vocabulary, layer->units);
}

static int embedding_suit(struct sgp_layer *layer, uint32_t number, struct sgp_error *error)
{
    struct sgp_shape input = layer->input;
    if (number != 1)
        return sgp_fail(error, SGP_E_CONFIG,
            "layer %u is an embedding, which takes whole numbers; make it the first layer", number);
    if (sgp_shape_is_ordered(input))
        return sgp_fail(error, SGP_E_CONFIG,
            "layer 1 is an embedding, and the rows are images of %u channels; it takes flat rows, "
            "or images of 1",
            input.channels);
    layer->output = (struct sgp_shape){
        layer->units, input.height, input.channels > 1 ? input.channels : input.width};
    return 0;
}

static uint32_t embedding_tensors(const struct sgp_layer *layer,
    struct sgp_model_tensor ret_tensors[static SGP_LAYER_TENSORS_MAX])
{
    ret_tensors[0] = (struct sgp_model_tensor){.name = "weight",
        .dimensions = 2,
        .shape = {layer->vocabulary, layer->units},
        .deviation = 1};
    return 1;
}

/* The number of the vector of a feature. A feature outside the table selects the nearest vector.
 * Training data are checked earlier. */
static size_t number_of(const struct sgp_layer *layer, float feature)
{
    float last = (float)(layer->vocabulary - 1);
    return feature >= last ? layer->vocabulary - 1 : feature > 0 ? (uint32_t)feature : 0;
}

/* Where that vector begins. */
static size_t vector_of(const struct sgp_layer *layer, float feature)
{
    return number_of(layer, feature) * layer->units;
}

static void embedding_forward(const struct sgp_pass *pass)
{
    const struct sgp_layer *layer = pass->layer;
    const float *table = pass->x + layer->weights;
    float *output = pass->output;
    for (size_t i = 0; i < pass->rows * layer->inputs; i++, output += layer->units) {
        const float *vector = table + vector_of(layer, pass->input[i]);
        for (size_t u = 0; u < layer->units; u++)
            output[u] = pass->scale * vector[u];
    }
}

/* Scratch of a row, which links the features of each vector. A feature is its place + 1, and 0 is
 * none. A float holds all whole numbers to SGP_INPUTS_MAX. */
struct selected {
    float *first; /* of each vector: the first feature that selects it */
    float *next;  /* of each feature: the next one of its vector */
    float *own;   /* the row's gradient of one vector */
};

static uint64_t embedding_scratch(const struct sgp_layer *layer, uint64_t rows)
{
    (void)rows;
    return (uint64_t)layer->vocabulary + layer->inputs + layer->units;
}

static struct selected selected_of(const struct sgp_pass *pass)
{
    float *next = pass->scratch + pass->layer->vocabulary;
    return (struct selected){
        .first = pass->scratch, .next = next, .own = next + pass->layer->inputs};
}

/* A row's delta, from which weigh computes its gradient. */
static uint64_t embedding_own(const struct sgp_layer *layer)
{
    return layer->outputs;
}

/* Take what a row alone adds to each vector that it selects: measure it, or add it times the row's
 * factor. `first` has no features, and has none afterwards. */
static void take_row(
    const struct sgp_pass *pass, const struct selected *selected, const float *deltas, size_t r)
{
    const struct sgp_layer *layer = pass->layer;
    const size_t units = layer->units;
    const float *row = pass->input + r * layer->inputs;
    const float *delta = deltas + r * layer->outputs;
    float *vectors = pass->gradient + layer->weights;
    float *first = selected->first, *next = selected->next, *own = selected->own;
    for (size_t i = layer->inputs; i-- > 0;) {
        const size_t number = number_of(layer, row[i]);
        next[i] = first[number];
        first[number] = (float)(i + 1);
    }
    for (size_t i = 0; i < layer->inputs; i++) {
        const size_t number = number_of(layer, row[i]);
        memset(own, 0, units * sizeof *own);
        for (size_t j = (size_t)first[number]; j > 0; j = (size_t)next[j - 1])
            for (size_t u = 0; u < units; u++)
                own[u] += delta[(j - 1) * units + u];
        if (first[number] > 0 && pass->factors)
            sgp_kernels_best()->absorb(vectors + number * units, own, pass->factors[r], units);
        else if (first[number] > 0)
            pass->squares[r] += sgp_kernels_best()->squares(own, units);
        first[number] = 0;
    }
}

static void take_rows(const struct sgp_pass *pass, const float *deltas)
{
    const struct selected selected = selected_of(pass);
    memset(selected.first, 0, pass->layer->vocabulary * sizeof *selected.first);
    for (size_t r = 0; r < pass->rows; r++)
        take_row(pass, &selected, deltas, r);
}

static void embedding_backward(const struct sgp_pass *pass)
{
    const struct sgp_layer *layer = pass->layer;
    float *gradient = pass->gradient + layer->weights;
    const float *delta = pass->delta;
    if (pass->squares) {
        take_rows(pass, delta);
        memcpy(pass->own, delta, pass->rows * layer->outputs * sizeof *pass->own);
        return;
    }
    memset(gradient, 0, (size_t)layer->vocabulary * layer->units * sizeof *gradient);
    for (size_t i = 0; i < pass->rows * layer->inputs; i++, delta += layer->units) {
        float *vector = gradient + vector_of(layer, pass->input[i]);
        for (size_t u = 0; u < layer->units; u++)
            vector[u] += delta[u];
    }
}

static void embedding_weigh(const struct sgp_pass *pass)
{
    const struct sgp_layer *layer = pass->layer;
    float *gradient = pass->gradient + layer->weights;
    memset(gradient, 0, (size_t)layer->vocabulary * layer->units * sizeof *gradient);
    take_rows(pass, pass->own);
}

const struct sgp_layer_methods sgp_layer_embedding = {.word = "embedding",
    .by_shape = true,
    .read = embedding_read,
    .suit = embedding_suit,
    .write = embedding_write,
    .tensors = embedding_tensors,
    .scratch = embedding_scratch,
    .forward = embedding_forward,
    .backward = embedding_backward,
    .weigh = embedding_weigh,
    .own = embedding_own};
