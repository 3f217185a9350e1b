/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the words of layers, see words.h. No state. */
#include "words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const activation_names[] = {"none", "relu", "tanh", "sigmoid"};
#define ACTIVATIONS (sizeof activation_names / sizeof activation_names[0])

const char *sgp_words_next(struct sgp_words *words)
{
    words->cursor += strspn(words->cursor, " \t");
    size_t length = strcspn(words->cursor, " \t,");
    size_t kept = length < SGP_WORD_BYTES ? length : SGP_WORD_BYTES - 1;
    memcpy(words->word, words->cursor, kept);
    words->word[kept] = '\0';
    words->cursor += length;
    words->cursor += strspn(words->cursor, " \t");
    return words->word;
}

int sgp_words_end(struct sgp_words *words, const char *behind)
{
    if (*words->cursor == ',' || *words->cursor == '\0')
        return 0;
    return sgp_fail(words->error, SGP_E_CONFIG,
        "layer %u goes on after its %s with '%.16s'; separate layers by commas", words->number,
        behind, words->cursor);
}

/* Read digits at *cursor, up to `most`. Returns 0 without digits, or for a number that is 0 or
 * above `most`. */
static uint32_t read_count(const char **cursor, uint32_t most)
{
    uint64_t value = 0;
    for (; **cursor >= '0' && **cursor <= '9'; ++*cursor) {
        value = 10 * value + (uint64_t)(**cursor - '0');
        if (value > most)
            return 0;
    }
    return (uint32_t)value;
}

uint32_t sgp_words_count(const char *word, uint32_t most)
{
    uint32_t value = read_count(&word, most);
    return *word == '\0' ? value : 0;
}

bool sgp_words_window(const char *word, struct sgp_window *ret_window)
{
    struct sgp_window window;
    window.height = window.width = read_count(&word, SGP_WINDOW_MAX);
    if (window.height > 0 && *word == 'x') {
        word++;
        window.width = read_count(&word, SGP_WINDOW_MAX);
    }
    if (window.height == 0 || window.width == 0 || *word != '\0')
        return false;
    *ret_window = window;
    return true;
}

bool sgp_words_shape(const char *word, struct sgp_shape *ret_shape)
{
    uint32_t sizes[3];
    uint64_t values = 1;
    for (int i = 0; i < 3; i++) {
        sizes[i] = read_count(&word, SGP_INPUTS_MAX);
        values *= sizes[i];
        if (values == 0 || values > SGP_INPUTS_MAX || *word != (i < 2 ? 'x' : '\0'))
            return false;
        word += i < 2;
    }
    *ret_shape = (struct sgp_shape){sizes[0], sizes[1], sizes[2]};
    return true;
}

enum sgp_activation sgp_words_activation(const char *word)
{
    for (size_t i = 0; i < ACTIVATIONS; i++)
        if (strcmp(word, activation_names[i]) == 0)
            return (enum sgp_activation)(SGP_ACTIVATION_NONE + i);
    return 0;
}

const char *sgp_activation_name(enum sgp_activation activation)
{
    return activation_names[activation - SGP_ACTIVATION_NONE];
}

int sgp_words_last_activation(struct sgp_words *words, struct sgp_layer *layer)
{
    const char *word = sgp_words_next(words);
    layer->activation = *word == '\0' ? SGP_ACTIVATION_NONE : sgp_words_activation(word);
    if (layer->activation == 0)
        return sgp_fail(words->error, SGP_E_CONFIG,
            "layer %u has the unknown activation '%s'; it is one of none, relu, tanh, sigmoid",
            words->number, word);
    return sgp_words_end(words, "activation");
}

void sgp_text_add(struct sgp_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t room = SGP_MODEL_TEXT_BYTES - text->length;
    int written = vsnprintf(text->bytes + text->length, room, format, arguments);
    va_end(arguments);
    sgp_assert(written >= 0 && (size_t)written < room);
    text->length += (size_t)written;
}

void sgp_text_add_activation(struct sgp_text *text, enum sgp_activation activation)
{
    if (activation != SGP_ACTIVATION_NONE)
        sgp_text_add(text, " %s", sgp_activation_name(activation));
}

void sgp_text_add_window(struct sgp_text *text, struct sgp_window window)
{
    if (window.height == window.width)
        sgp_text_add(text, " %u", window.height);
    else
        sgp_text_add(text, " %ux%u", window.height, window.width);
}
