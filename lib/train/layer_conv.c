/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions as matrix products (Chellapilla, Puri, Simard 2006). The windows of a block of
 * pixels become lines of a matrix, which is multiplied by the weights. A block has at most
 * BLOCK_FLOATS floats. So its memory does not grow with the batch, and the block stays in the
 * cache. */
#include "activation.h"
#include "layer.h"
#include "sgp/kernels.h"
#include "windows.h"

#include <math.h>
#include <string.h>

#define BLOCK_FLOATS ((uint64_t)1 << 16)

static int conv_read(struct sgp_words *words, struct sgp_layer *layer)
{
    const char *word = sgp_words_next(words);
    layer->units = sgp_words_count(word, SGP_UNITS_MAX);
    if (layer->units == 0)
        return sgp_fail(words->error, SGP_E_CONFIG,
            "layer %u has '%s' channels; give a number from 1 to %u", words->number, word,
            SGP_UNITS_MAX);
    word = sgp_words_next(words);
    if (!sgp_words_window(word, &layer->window))
        return sgp_fail(words->error, SGP_E_CONFIG,
            "layer %u has the window '%s'; give its sides, each from 1 to %u, as in 'conv %u 3x3'",
            words->number, word, SGP_WINDOW_MAX, layer->units);
    layer->stride = (struct sgp_window){1, 1};
    layer->same = true;
    return sgp_windows_read(words, layer, true);
}

static void conv_write(const struct sgp_layer *layer, struct sgp_text *text)
{
    sgp_text_add(text, " %u", layer->units);
    sgp_text_add(text, " %ux%u", layer->window.height, layer->window.width);
    sgp_windows_write(layer, (struct sgp_window){1, 1}, true, text);
    sgp_text_add_activation(text, layer->activation);
}

static int conv_suit(struct sgp_layer *layer, uint32_t number, struct sgp_error *error)
{
    return sgp_windows_suit(layer, number, layer->units, error);
}

/* ---- sizes ---- */

static uint64_t positions(const struct sgp_layer *layer)
{
    return (uint64_t)layer->window.height * layer->window.width;
}

/* The number of values in a sum. */
static uint64_t taps(const struct sgp_layer *layer)
{
    return positions(layer) * layer->input.channels;
}

/* Whether the values of a pixel are its window. */
static bool is_direct(const struct sgp_layer *layer)
{
    return positions(layer) == 1 && layer->stride.height == 1 && layer->stride.width == 1;
}

/* Weights are stored plane after plane, and are needed pixel after pixel. */
static bool is_ordered(const struct sgp_layer *layer)
{
    return layer->input.channels > 1 && positions(layer) > 1;
}

static uint64_t pixels_at_once(const struct sgp_layer *layer, uint64_t rows)
{
    const uint64_t widest = taps(layer) > layer->units ? taps(layer) : layer->units;
    sgp_assert(widest > 0);
    uint64_t most = BLOCK_FLOATS / widest;
    uint64_t pixels = rows * sgp_shape_pixels(layer->output);
    most = most > 0 ? most : 1;
    return pixels < most ? pixels : most;
}

static uint32_t conv_tensors(const struct sgp_layer *layer,
    struct sgp_model_tensor ret_tensors[static SGP_LAYER_TENSORS_MAX])
{
    ret_tensors[0] = (struct sgp_model_tensor){.name = "weight",
        .dimensions = 4,
        .shape = {layer->units, layer->input.channels, layer->window.height, layer->window.width},
        .deviation = sqrt(2.0 / (double)taps(layer))};
    ret_tensors[1] =
        (struct sgp_model_tensor){.name = "bias", .dimensions = 1, .shape = {layer->units}};
    return 2;
}

static uint64_t row_floats(const struct sgp_layer *layer)
{
    return (taps(layer) + 1) * layer->units;
}

/* What weigh needs of a row: its gradient, or if that is larger its delta, from which the gradient
 * is computed again. */
static bool keeps_gradients(const struct sgp_layer *layer)
{
    return taps(layer) + 1 <= sgp_shape_pixels(layer->output);
}

static uint64_t conv_own(const struct sgp_layer *layer)
{
    return keeps_gradients(layer) ? row_floats(layer) : layer->outputs;
}

/* Scratch: the weights, their gradient, sums of a block's columns, the gradient of a row, and the
 * block. */
static uint64_t weights_floats(const struct sgp_layer *layer)
{
    return is_ordered(layer) ? layer->units * taps(layer) : 0;
}

static uint64_t conv_scratch(const struct sgp_layer *layer, uint64_t rows)
{
    uint64_t block = is_direct(layer) ? 0 : pixels_at_once(layer, rows) * taps(layer);
    return 2 * weights_floats(layer) + layer->units + row_floats(layer) + block;
}

static bool conv_product(
    const struct sgp_layer *layer, uint32_t rows, bool back, struct sgp_blas_layer *ret_product)
{
    (void)back; /* OpenBLAS adds the gradients of blocks */
    *ret_product = (struct sgp_blas_layer){
        (uint32_t)pixels_at_once(layer, rows), (uint32_t)taps(layer), layer->units};
    return true;
}

/* ---- windows as lines ---- */

/* to[o][position][channel] = from[o][channel][position], one output after the other. */
static void order_weights(const struct sgp_layer *layer, float *to, const float *from)
{
    size_t channels = layer->input.channels, count = (size_t)positions(layer);
    for (size_t o = 0; o < layer->units; o++, to += channels * count, from += channels * count)
        for (size_t c = 0; c < channels; c++)
            for (size_t i = 0; i < count; i++)
                to[i * channels + c] = from[c * count + i];
}

/* The reverse of order_weights. */
static void restore_weights(const struct sgp_layer *layer, float *to, const float *from)
{
    size_t channels = layer->input.channels, count = (size_t)positions(layer);
    for (size_t o = 0; o < layer->units; o++, to += channels * count, from += channels * count)
        for (size_t c = 0; c < channels; c++)
            for (size_t i = 0; i < count; i++)
                to[c * count + i] = from[i * channels + c];
}

/* A pixel of the output of a batch. */
struct place {
    size_t row;
    uint32_t y, x;
};

static struct place place_of(const struct sgp_layer *layer, size_t pixel)
{
    sgp_assert(layer->output.width > 0);
    size_t pixels = (size_t)sgp_shape_pixels(layer->output), within = pixel % pixels;
    return (struct place){pixel / pixels, (uint32_t)(within / layer->output.width),
        (uint32_t)(within % layer->output.width)};
}

static void go_on(const struct sgp_layer *layer, struct place *place)
{
    if (++place->x < layer->output.width)
        return;
    place->x = 0;
    if (++place->y < layer->output.height)
        return;
    place->y = 0;
    place->row++;
}

/* Copy a few floats, for which a call of memcpy is slow. */
static void copy_few(float *to, const float *from, size_t count)
{
    if (count > 16)
        memcpy(to, from, count * sizeof *to);
    else
        for (size_t i = 0; i < count; i++)
            to[i] = from[i];
}

/* Write one window to a line of taps(layer) values; 0 outside the image. */
static void write_line(const struct sgp_layer *layer, float *line, const float *image,
    struct sgp_extent down, struct sgp_extent across)
{
    size_t channels = layer->input.channels;
    size_t width = layer->window.width * channels;
    size_t before = across.skipped * channels, inside = (across.end - across.first) * channels;
    if (down.end - down.first < layer->window.height || inside < width)
        memset(line, 0, layer->window.height * width * sizeof *line);
    line += down.skipped * width + before;
    image += ((size_t)down.first * layer->input.width + across.first) * channels;
    for (uint32_t y = down.first; y < down.end; y++) {
        copy_few(line, image, inside);
        line += width;
        image += layer->input.width * channels;
    }
}

/* Add a line of write_line to the image of its window. */
static void add_line(const struct sgp_layer *layer, float *image, const float *line,
    struct sgp_extent down, struct sgp_extent across)
{
    size_t channels = layer->input.channels;
    size_t width = layer->window.width * channels;
    size_t before = across.skipped * channels, inside = (across.end - across.first) * channels;
    line += down.skipped * width + before;
    image += ((size_t)down.first * layer->input.width + across.first) * channels;
    for (uint32_t y = down.first; y < down.end; y++) {
        for (size_t i = 0; i < inside; i++)
            image[i] += line[i];
        line += width;
        image += layer->input.width * channels;
    }
}

static struct sgp_extent extent_down(const struct sgp_layer *layer, const struct place *place)
{
    return sgp_windows_extent(
        place->y, layer->window.height, layer->stride.height, layer->same, layer->input.height);
}

static struct sgp_extent extent_across(const struct sgp_layer *layer, const struct place *place)
{
    return sgp_windows_extent(
        place->x, layer->window.width, layer->stride.width, layer->same, layer->input.width);
}

/* Write the windows of `count` pixels from number `first` on, each to one line. Returns the
 * lines. */
static const float *write_lines(
    const struct sgp_pass *pass, float *lines, size_t first, size_t count)
{
    const struct sgp_layer *layer = pass->layer;
    if (is_direct(layer))
        return pass->input + first * layer->input.channels;
    struct place place = place_of(layer, first);
    float *line = lines;
    for (size_t i = 0; i < count; i++, line += taps(layer), go_on(layer, &place))
        write_line(layer, line, pass->input + place.row * layer->inputs, extent_down(layer, &place),
            extent_across(layer, &place));
    return lines;
}

static void add_lines(const struct sgp_pass *pass, const float *line, size_t first, size_t count)
{
    const struct sgp_layer *layer = pass->layer;
    struct place place = place_of(layer, first);
    for (size_t i = 0; i < count; i++, line += taps(layer), go_on(layer, &place))
        add_line(layer, pass->below + place.row * layer->inputs, line, extent_down(layer, &place),
            extent_across(layer, &place));
}

/* ---- passes ---- */

static float *block_of(const struct sgp_pass *pass)
{
    const struct sgp_layer *layer = pass->layer;
    return pass->scratch + 2 * weights_floats(layer) + layer->units + row_floats(layer);
}

/* Returns the weights, pixel after pixel. */
static const float *weights_of(const struct sgp_pass *pass)
{
    const float *weights = pass->x + pass->layer->weights;
    if (!is_ordered(pass->layer))
        return weights;
    order_weights(pass->layer, pass->scratch, weights);
    return pass->scratch;
}

static void conv_forward(const struct sgp_pass *pass)
{
    const struct sgp_layer *layer = pass->layer;
    const float *weights = weights_of(pass);
    float *lines = block_of(pass);
    size_t pixels = pass->rows * (size_t)sgp_shape_pixels(layer->output);
    size_t most = (size_t)pixels_at_once(layer, pass->rows);
    for (size_t first = 0; first < pixels; first += most) {
        size_t count = pixels - first < most ? pixels - first : most;
        float *y = pass->output + first * layer->units;
        const struct sgp_product_shape shape = {count, (size_t)taps(layer), layer->units};
        sgp_product_forward(
            pass->product, &shape, y, write_lines(pass, lines, first, count), weights, pass->scale);
        sgp_activation_forward(
            layer->activation, y, pass->x + layer->biases, pass->scale, count, layer->units);
    }
}

/* Where gradients are written. Those of weights are pixel after pixel. `activation`: through which
 * delta must still go back; NONE if it already did. */
struct slopes {
    float *weights, *biases;
    enum sgp_activation activation;
};

/* The gradients of a block of pixels: of weights and biases, and with respect to the input. With
 * `adds` the first two are added. */
static void conv_backward_block(const struct sgp_pass *pass, const float *weights,
    const struct slopes *to, size_t first, size_t count, bool adds)
{
    const struct sgp_layer *layer = pass->layer;
    float *sums = pass->scratch + 2 * weights_floats(layer);
    float *lines = block_of(pass);
    float *delta = pass->delta + first * layer->units;
    size_t width = (size_t)taps(layer);
    sgp_activation_backward(to->activation, delta, adds ? sums : to->biases,
        pass->output + first * layer->units, count, layer->units);
    for (size_t o = 0; adds && o < layer->units; o++)
        to->biases[o] += sums[o];
    const struct sgp_product_shape shape = {count, width, layer->units};
    sgp_product_gradient(
        pass->product, &shape, to->weights, delta, write_lines(pass, lines, first, count), adds);
    if (!pass->below)
        return;
    bool direct = is_direct(layer);
    float *back = direct ? pass->below + first * width : lines;
    sgp_product_back(pass->product, &shape, back, delta, weights, pass->scale);
    if (!direct)
        add_lines(pass, back, first, count);
}

/* The gradients of the pixels first..end, block after block. */
static void conv_backward_pixels(const struct sgp_pass *pass, const float *weights,
    const struct slopes *to, size_t first, size_t end)
{
    const size_t most = (size_t)pixels_at_once(pass->layer, pass->rows);
    for (size_t at = first; at < end; at += most)
        conv_backward_block(pass, weights, to, at, end - at < most ? end - at : most, at > first);
}

/* Where the gradients of a row lie in `own`: biases, then weights. */
static struct slopes own_slopes(const struct sgp_pass *pass, float *own, enum sgp_activation behind)
{
    return (struct slopes){
        .biases = own, .weights = own + pass->layer->units, .activation = behind};
}

static float *row_scratch(const struct sgp_pass *pass)
{
    return pass->scratch + 2 * weights_floats(pass->layer) + pass->layer->units;
}

/* Measure the gradient of each row by itself. */
static void conv_measure_rows(const struct sgp_pass *pass, const float *weights)
{
    const struct sgp_layer *layer = pass->layer;
    const size_t pixels = (size_t)sgp_shape_pixels(layer->output);
    const size_t count = (size_t)taps(layer) * layer->units;
    for (size_t r = 0; r < pass->rows; r++) {
        float *kept = pass->own + r * conv_own(layer);
        float *own = keeps_gradients(layer) ? kept : row_scratch(pass);
        const struct slopes to = own_slopes(pass, own, layer->activation);
        conv_backward_pixels(pass, weights, &to, r * pixels, (r + 1) * pixels);
        pass->squares[r] += sgp_kernels_best()->squares(to.weights, count);
        pass->squares[r] += sgp_kernels_best()->squares(to.biases, layer->units);
        if (!keeps_gradients(layer))
            memcpy(kept, pass->delta + r * layer->outputs, layer->outputs * sizeof *kept);
    }
}

static struct slopes all_slopes(const struct sgp_pass *pass)
{
    const struct sgp_layer *layer = pass->layer;
    return (struct slopes){.weights = is_ordered(layer) ? pass->scratch + weights_floats(layer)
                                                        : pass->gradient + layer->weights,
        .biases = pass->gradient + layer->biases,
        .activation = layer->activation};
}

static void conv_backward(const struct sgp_pass *pass)
{
    const struct sgp_layer *layer = pass->layer;
    const float *weights = weights_of(pass);
    if (pass->below && !is_direct(layer))
        memset(pass->below, 0, pass->rows * layer->inputs * sizeof *pass->below);
    if (pass->squares) {
        conv_measure_rows(pass, weights);
        return;
    }
    const struct slopes to = all_slopes(pass);
    conv_backward_pixels(
        pass, weights, &to, 0, pass->rows * (size_t)sgp_shape_pixels(layer->output));
    if (is_ordered(layer))
        restore_weights(layer, pass->gradient + layer->weights, to.weights);
}

/* The same gradient of a row as was measured, to the bit. */
static struct slopes slopes_of_row(const struct sgp_pass *pass, size_t r)
{
    const struct sgp_layer *layer = pass->layer;
    const size_t pixels = (size_t)sgp_shape_pixels(layer->output);
    if (keeps_gradients(layer))
        return own_slopes(pass, pass->own + r * conv_own(layer), SGP_ACTIVATION_NONE);
    const struct slopes to = own_slopes(pass, row_scratch(pass), SGP_ACTIVATION_NONE);
    struct sgp_pass again = *pass;
    again.delta = pass->own;
    again.below = NULL;
    conv_backward_pixels(&again, NULL, &to, r * pixels, (r + 1) * pixels);
    return to;
}

static void conv_weigh(const struct sgp_pass *pass)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    const struct sgp_layer *layer = pass->layer;
    const size_t count = (size_t)taps(layer) * layer->units;
    const struct slopes to = all_slopes(pass);
    memset(to.weights, 0, count * sizeof *to.weights);
    memset(to.biases, 0, layer->units * sizeof *to.biases);
    for (size_t r = 0; r < pass->rows; r++) {
        const struct slopes own = slopes_of_row(pass, r);
        kernels->absorb(to.weights, own.weights, pass->factors[r], count);
        kernels->absorb(to.biases, own.biases, pass->factors[r], layer->units);
    }
    if (is_ordered(layer))
        restore_weights(layer, pass->gradient + layer->weights, to.weights);
}

const struct sgp_layer_methods sgp_layer_conv = {.word = "conv",
    .by_shape = true,
    .read = conv_read,
    .suit = conv_suit,
    .write = conv_write,
    .tensors = conv_tensors,
    .scratch = conv_scratch,
    .product = conv_product,
    .forward = conv_forward,
    .backward = conv_backward,
    .weigh = conv_weigh,
    .own = conv_own};
