/* SPDX-License-Identifier: Apache-2.0 */
/* The windows that conv and pool move over an image: their words, and the position of each window.
 * Pure. */
#ifndef SGP_TRAIN_WINDOWS_H
#define SGP_TRAIN_WINDOWS_H

#include "words.h"

/* Read [stride S] [same|valid], and an activation if `activated`, up to the end of the layer. */
int sgp_windows_read(struct sgp_words *words, struct sgp_layer *layer, bool activated);

/* Write the stride and padding, if they differ from `stride` and `same`. */
void sgp_windows_write(
    const struct sgp_layer *layer, struct sgp_window stride, bool same, struct sgp_text *text);

/* layer->output for layer->input and `channels`; SGP_E_CONFIG if the window is larger than the
 * image. */
int sgp_windows_suit(
    struct sgp_layer *layer, uint32_t number, uint32_t channels, struct sgp_error *error);

/* The part of a window that lies within an image, in one direction. It has positions first..end-1,
 * of which the first is number `skipped` of the window. */
struct sgp_extent {
    uint32_t first, end, skipped;
};

static inline struct sgp_extent sgp_windows_extent(
    uint32_t at, uint32_t window, uint32_t stride, bool same, uint32_t size)
{
    uint32_t before = same ? (window - 1) / 2 : 0;
    uint32_t begin = at * stride; /* the window is shifted back by `before` */
    struct sgp_extent extent = {.skipped = begin < before ? before - begin : 0};
    extent.first = begin + extent.skipped - before;
    extent.end = begin + window - before < size ? begin + window - before : size;
    return extent;
}

#endif
