/* SPDX-License-Identifier: Apache-2.0 */
/* Words and shapes of windows, see windows.h. */
#include "windows.h"

#include <string.h>

static int fail_word(struct sgp_words *words, bool activated)
{
    return sgp_fail(words->error, SGP_E_CONFIG,
        "layer %u has the unknown word '%s' behind its window; what may follow is stride N, same, "
        "valid%s",
        words->number, words->word, activated ? ", none, relu, tanh, sigmoid" : "");
}

int sgp_windows_read(struct sgp_words *words, struct sgp_layer *layer, bool activated)
{
    layer->activation = SGP_ACTIVATION_NONE;
    while (*sgp_words_next(words) != '\0') {
        const char *word = words->word;
        enum sgp_activation activation = activated ? sgp_words_activation(word) : 0;
        if (strcmp(word, "same") == 0 || strcmp(word, "valid") == 0) {
            layer->same = *word == 's';
        } else if (activation != 0) {
            layer->activation = activation;
            return sgp_words_end(words, "activation");
        } else if (strcmp(word, "stride") != 0) {
            return fail_word(words, activated);
        } else if (!sgp_words_window(sgp_words_next(words), &layer->stride)) {
            return sgp_fail(words->error, SGP_E_CONFIG,
                "layer %u has the stride '%s'; give a number from 1 to %u, or two as 2x1",
                words->number, words->word, SGP_WINDOW_MAX);
        }
    }
    return 0;
}

static bool windows_equal(struct sgp_window a, struct sgp_window b)
{
    return a.height == b.height && a.width == b.width;
}

void sgp_windows_write(
    const struct sgp_layer *layer, struct sgp_window stride, bool same, struct sgp_text *text)
{
    if (!windows_equal(layer->stride, stride)) {
        sgp_text_add(text, " stride");
        sgp_text_add_window(text, layer->stride);
    }
    if (layer->same != same)
        sgp_text_add(text, layer->same ? " same" : " valid");
}

/* How many windows there are in one direction. */
static uint32_t steps(uint32_t size, uint32_t window, uint32_t stride, bool same)
{
    return same ? (size + stride - 1) / stride : (size - window) / stride + 1;
}

int sgp_windows_suit(
    struct sgp_layer *layer, uint32_t number, uint32_t channels, struct sgp_error *error)
{
    const struct sgp_shape *input = &layer->input;
    struct sgp_window window = layer->window, stride = layer->stride;
    if (window.height > input->height || window.width > input->width)
        return sgp_fail(error, SGP_E_CONFIG,
            "layer %u has a window of %ux%u, larger than its input of %ux%u pixels%s", number,
            window.height, window.width, input->height, input->width,
            input->height * input->width > 1
                ? "; use a smaller one"
                : "; for images in flat rows begin the layers with input CHANNELSxHEIGHTxWIDTH");
    layer->output = (struct sgp_shape){channels,
        steps(input->height, window.height, stride.height, layer->same),
        steps(input->width, window.width, stride.width, layer->same)};
    return 0;
}
