/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling: the greatest value or the mean of each window, for each channel. Positions outside the
 * image are left out. The gradient of a greatest value goes to the first of equal values. */
#include "layer.h"
#include "windows.h"

#include <string.h>

static int pool_read(struct sgp_words *words, struct sgp_layer *layer)
{
    const char *word = sgp_words_next(words);
    layer->activation = SGP_ACTIVATION_NONE;
    layer->average = strcmp(word, "avg") == 0;
    if (layer->average || strcmp(word, "max") == 0)
        word = sgp_words_next(words);
    bool all = strcmp(word, "all") == 0;
    if (all)
        layer->stride = (struct sgp_window){1, 1};
    else if (!sgp_words_window(word, &layer->window))
        return sgp_fail(words->error, SGP_E_CONFIG,
            "layer %u has the window '%s'; write for example 'pool 2', 'pool avg 3x3 stride 2' or "
            "'pool avg all'",
            words->number, word);
    else
        layer->stride = layer->window;
    return all ? sgp_words_end(words, "window") : sgp_windows_read(words, layer, false);
}

static void pool_write(const struct sgp_layer *layer, struct sgp_text *text)
{
    sgp_text_add(text, layer->average ? " avg" : "");
    if (layer->window.height == 0) {
        sgp_text_add(text, " all");
        return;
    }
    sgp_text_add_window(text, layer->window);
    sgp_windows_write(layer, layer->window, false, text);
}

static int pool_suit(struct sgp_layer *layer, uint32_t number, struct sgp_error *error)
{
    layer->output = (struct sgp_shape){layer->input.channels, 1, 1};
    return layer->window.height == 0
               ? 0
               : sgp_windows_suit(layer, number, layer->input.channels, error);
}

/* The part of the image that contributes to a pixel of the output. */
struct area {
    struct sgp_extent down, across;
};

static struct area area_of(const struct sgp_layer *layer, uint32_t y, uint32_t x)
{
    bool all = layer->window.height == 0;
    uint32_t height = all ? layer->input.height : layer->window.height;
    uint32_t width = all ? layer->input.width : layer->window.width;
    return (struct area){
        sgp_windows_extent(y, height, layer->stride.height, layer->same, layer->input.height),
        sgp_windows_extent(x, width, layer->stride.width, layer->same, layer->input.width)};
}

static uint32_t area_pixels(const struct area *area)
{
    return (area->down.end - area->down.first) * (area->across.end - area->across.first);
}

/* Where a pixel of a row of the input begins. */
static size_t pixel_at(const struct sgp_layer *layer, uint32_t y, uint32_t x)
{
    return ((size_t)y * layer->input.width + x) * layer->input.channels;
}

/* A NaN remains a NaN. */
static void take_greater(float *restrict output, const float *restrict input, size_t channels)
{
    for (size_t c = 0; c < channels; c++) {
        float greater = input[c] > output[c] ? input[c] : output[c];
        output[c] = input[c] == input[c] ? greater : input[c];
    }
}

static void take_sum(float *restrict output, const float *restrict input, size_t channels)
{
    for (size_t c = 0; c < channels; c++)
        output[c] += input[c];
}

static void pool_pixel(
    const struct sgp_layer *layer, float *output, const float *input, const struct area *area)
{
    size_t channels = layer->input.channels;
    memcpy(output, input + pixel_at(layer, area->down.first, area->across.first),
        channels * sizeof *output);
    for (uint32_t y = area->down.first; y < area->down.end; y++)
        for (uint32_t x = area->across.first + (y == area->down.first); x < area->across.end; x++)
            if (layer->average)
                take_sum(output, input + pixel_at(layer, y, x), channels);
            else
                take_greater(output, input + pixel_at(layer, y, x), channels);
    float part = 1.0f / (float)area_pixels(area);
    for (size_t c = 0; layer->average && c < channels; c++)
        output[c] *= part;
}

static void pool_forward(const struct sgp_pass *pass)
{
    const struct sgp_layer *layer = pass->layer;
    const float *input = pass->input;
    float *output = pass->output;
    for (size_t r = 0; r < pass->rows; r++, input += layer->inputs)
        for (uint32_t y = 0; y < layer->output.height; y++)
            for (uint32_t x = 0; x < layer->output.width; x++, output += layer->output.channels) {
                struct area area = area_of(layer, y, x);
                pool_pixel(layer, output, input, &area);
            }
}

/* Add the remaining delta to the values that are the greatest. */
static void give_greatest(float *restrict below, float *restrict left, const float *restrict input,
    const float *restrict output, size_t channels)
{
    for (size_t c = 0; c < channels; c++) {
        float all = left[c], part = input[c] == output[c] ? all : 0.0f;
        below[c] += part;
        left[c] = all - part;
    }
}

/* Compute the gradient of the image of one row. delta is overwritten. */
static void give_back(const struct sgp_layer *layer, float *below, float *delta, const float *input,
    const float *output, const struct area *area)
{
    size_t channels = layer->input.channels;
    float part = 1.0f / (float)area_pixels(area);
    for (uint32_t y = area->down.first; y < area->down.end; y++)
        for (uint32_t x = area->across.first; x < area->across.end; x++) {
            size_t at = pixel_at(layer, y, x);
            if (!layer->average)
                give_greatest(below + at, delta, input + at, output, channels);
            else
                for (size_t c = 0; c < channels; c++)
                    below[at + c] += part * delta[c];
        }
}

static void pool_backward(const struct sgp_pass *pass)
{
    const struct sgp_layer *layer = pass->layer;
    if (!pass->below)
        return;
    memset(pass->below, 0, pass->rows * layer->inputs * sizeof *pass->below);
    size_t at = 0;
    for (size_t r = 0; r < pass->rows; r++)
        for (uint32_t y = 0; y < layer->output.height; y++)
            for (uint32_t x = 0; x < layer->output.width; x++, at += layer->output.channels) {
                struct area area = area_of(layer, y, x);
                give_back(layer, pass->below + r * layer->inputs, pass->delta + at,
                    pass->input + r * layer->inputs, pass->output + at, &area);
            }
}

const struct sgp_layer_methods sgp_layer_pool = {.word = "pool",
    .by_shape = true,
    .read = pool_read,
    .suit = pool_suit,
    .write = pool_write,
    .forward = pool_forward,
    .backward = pool_backward};
