/* SPDX-License-Identifier: Apache-2.0 */
/* The words of one layer in a text of layers, read one after the other. A failure is one line that
 * names the layer. Any thread; the cursor is the only state. */
#ifndef SGP_TRAIN_WORDS_H
#define SGP_TRAIN_WORDS_H

#include "sgp/model.h"

#define SGP_WORD_BYTES 32u /* no layer has a longer word */

struct sgp_words {
    const char *cursor; /* in the text; borrowed */
    uint32_t number;    /* of the layer, from 1 */
    struct sgp_error *error;
    char word[SGP_WORD_BYTES]; /* the word that was read last */
};

/* The next word before a comma or the end, in words->word, cut at SGP_WORD_BYTES; "" if there is
 * none. */
const char *sgp_words_next(struct sgp_words *words);

/* Check that no words of the layer are left: 0, or SGP_E_CONFIG. `behind` names the last word in
 * the message. */
int sgp_words_end(struct sgp_words *words, const char *behind);

/* A whole number of 1..most in digits alone, or 0. */
uint32_t sgp_words_count(const char *word, uint32_t most);

/* "3" (both) or "3x5" into *ret_window, each of 1..SGP_WINDOW_MAX; false for any other word. */
bool sgp_words_window(const char *word, struct sgp_window *ret_window);

/* "3x28x28" into *ret_shape; false if the word is not a shape of at most SGP_INPUTS_MAX values. */
bool sgp_words_shape(const char *word, struct sgp_shape *ret_shape);

/* The activation of that name; 0 if there is none. */
enum sgp_activation sgp_words_activation(const char *word);

/* Read the next word as the activation of the layer, then the end. Without a word there is no
 * activation. */
int sgp_words_last_activation(struct sgp_words *words, struct sgp_layer *layer);

const char *sgp_activation_name(enum sgp_activation activation);

/* A text that grows. Text that does not fit is a programming error. */
struct sgp_text {
    char *bytes; /* SGP_MODEL_TEXT_BYTES of them */
    size_t length;
};
void sgp_text_add(struct sgp_text *text, const char *format, ...) SGP_PRINTF(2, 3);
/* " relu"; nothing for none. */
void sgp_text_add_activation(struct sgp_text *text, enum sgp_activation activation);
/* " 3" or " 3x5" */
void sgp_text_add_window(struct sgp_text *text, struct sgp_window window);

#endif
