/* SPDX-License-Identifier: Apache-2.0 */
/* Residual connections (He et al. 2016): the output of the last `span` layers, plus the input of
 * the first of them. The gradient goes both ways. The gradient that skips the layers lies in
 * `kept`. The network adds it when the backward pass reaches the first layer of the span. */
#include "activation.h"
#include "layer.h"

#include <string.h>

static int residual_read(struct sgp_words *words, struct sgp_layer *layer)
{
    const char *word = sgp_words_next(words);
    layer->span = sgp_words_count(word, SGP_LAYERS_MAX);
    if (layer->span == 0)
        return sgp_fail(words->error, SGP_E_CONFIG,
            "layer %u leads around '%s' layers; give the number of layers before it, as in "
            "'residual 2'",
            words->number, word);
    if (layer->span >= words->number)
        return sgp_fail(words->error, SGP_E_CONFIG,
            "layer %u leads around %u layers, and there are %u before it", words->number,
            layer->span, words->number - 1);
    return sgp_words_last_activation(words, layer);
}

static void residual_write(const struct sgp_layer *layer, struct sgp_text *text)
{
    sgp_text_add(text, " %u", layer->span);
    sgp_text_add_activation(text, layer->activation);
}

static int residual_suit(struct sgp_layer *layer, uint32_t number, struct sgp_error *error)
{
    struct sgp_shape from = (layer - layer->span)->input, to = layer->input;
    if (!sgp_shape_equal(from, to))
        return sgp_fail(error, SGP_E_CONFIG,
            "layer %u adds what entered layer %u, %ux%ux%u, to %ux%ux%u; the shapes must be equal",
            number, number - layer->span, from.channels, from.height, from.width, to.channels,
            to.height, to.width);
    layer->output = to;
    return 0;
}

static uint64_t residual_kept(const struct sgp_layer *layer, uint64_t rows)
{
    return rows * layer->outputs;
}

static void residual_forward(const struct sgp_pass *pass)
{
    size_t count = pass->rows * pass->layer->outputs;
    for (size_t i = 0; i < count; i++)
        pass->output[i] = pass->input[i] + pass->around[i];
    sgp_activation_plain(pass->layer->activation, pass->output, count);
}

static void residual_backward(const struct sgp_pass *pass)
{
    size_t count = pass->rows * pass->layer->outputs;
    sgp_activation_plain_backward(pass->layer->activation, pass->delta, pass->output, count);
    memcpy(pass->kept, pass->delta, count * sizeof *pass->kept);
    if (pass->below)
        memcpy(pass->below, pass->delta, count * sizeof *pass->below);
}

const struct sgp_layer_methods sgp_layer_residual = {.word = "residual",
    .read = residual_read,
    .suit = residual_suit,
    .write = residual_write,
    .kept = residual_kept,
    .forward = residual_forward,
    .backward = residual_backward};
