/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout (Srivastava et al. 2014): in training, values are set to 0 at random. The others are
 * enlarged, so that the mean is preserved. The choice depends only on node, step, layer and number
 * in the batch. So a step that is repeated after a restart drops the same values, and backward
 * recomputes the choice. */
#include "layer.h"

#include "sgp/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 4u    /* values that share 64 random bits */
#define RANGE 65536u /* of the random number of one value */
#define STEPS 1e6    /* a rate is written with six digits */

static int dropout_read(struct sgp_words *words, struct sgp_layer *layer)
{
    const char *word = sgp_words_next(words);
    char *end;
    layer->activation = SGP_ACTIVATION_NONE;
    layer->rate = strtod(word, &end);
    bool plain = word[strspn(word, "0123456789.")] == '\0' && end != word && *end == '\0';
    layer->rate = floor(layer->rate * STEPS + 0.5) / STEPS;
    if (!plain || layer->rate >= 1)
        return sgp_fail(words->error, SGP_E_CONFIG,
            "layer %u drops '%s'; give a chance from 0 to below 1, as in 'dropout 0.5'",
            words->number, word);
    return sgp_words_end(words, "chance");
}

static void dropout_write(const struct sgp_layer *layer, struct sgp_text *text)
{
    sgp_text_add(text, " %.6f", layer->rate);
    while (text->bytes[text->length - 1] == '0')
        text->length--;
    if (text->bytes[text->length - 1] == '.')
        text->length--;
    text->bytes[text->length] = '\0';
}

static int dropout_suit(struct sgp_layer *layer, uint32_t number, struct sgp_error *error)
{
    (void)number;
    (void)error;
    layer->output = layer->input;
    return 0;
}

/* A value is dropped if its random number is below this bound. The bound is below RANGE. */
static uint32_t bound_of(const struct sgp_layer *layer)
{
    uint32_t bound = (uint32_t)(layer->rate * RANGE + 0.5);
    return bound < RANGE ? bound : RANGE - 1;
}

/* to[i] = from[i], set to 0 or enlarged. */
static void drop(const struct sgp_pass *pass, float *to, const float *from)
{
    size_t count = pass->rows * pass->layer->inputs;
    uint32_t bound = bound_of(pass->layer);
    float factor = (float)((double)RANGE / (RANGE - bound));
    for (size_t first = 0; first < count; first += PLACES) {
        uint64_t bits = sgp_random_at(pass->chance, first / PLACES);
        size_t end = count - first < PLACES ? count : first + PLACES;
        for (size_t i = first; i < end; i++, bits >>= 16)
            to[i] = (bits & UINT16_MAX) < bound ? 0.0f : factor * from[i];
    }
}

static void dropout_forward(const struct sgp_pass *pass)
{
    if (pass->training)
        drop(pass, pass->output, pass->input);
    else
        memcpy(pass->output, pass->input, pass->rows * pass->layer->inputs * sizeof *pass->output);
}

static void dropout_backward(const struct sgp_pass *pass)
{
    if (pass->below && pass->training)
        drop(pass, pass->below, pass->delta);
    else if (pass->below)
        memcpy(pass->below, pass->delta, pass->rows * pass->layer->inputs * sizeof *pass->below);
}

const struct sgp_layer_methods sgp_layer_dropout = {.word = "dropout",
    .read = dropout_read,
    .suit = dropout_suit,
    .write = dropout_write,
    .forward = dropout_forward,
    .backward = dropout_backward};
