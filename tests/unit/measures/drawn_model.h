/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as a model judges them, drawn at random, for measures and reports. Plain functions; a state gives the same rows each
 * time. */
#ifndef DRAWN_MODEL_H
#define DRAWN_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* The next number, from 0 to 1. */
static double draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

/* One row: its label, below `count`, and as many outputs that know something of it; `sure` makes them overconfident. `noises`:
 * what hides the label in each output, or NULL. */
static uint32_t draw_row(
    uint64_t *state, double sure, uint32_t count, float *outputs, float *noises)
{
    const uint32_t label = (uint32_t)(draw(state) * draw(state) * count);
    for (uint32_t c = 0; c < count; c++) {
        const double noise = draw(state) + draw(state) + draw(state) - 1.5;
        outputs[c] = (float)(sure * (3 * noise + (c == label ? 1.0 : 0.0)));
        if (noises != NULL)
            noises[c] = (float)noise;
    }
    return label;
}

/* ---- scores of one class ---- */

struct scored {
    float score;
    bool own; /* the row is of the class */
};

/* The next row, of a model that is `sure` times as sure as its scores deserve. */
static struct scored draw_scored(uint64_t *state, double sure)
{
    const double noise = draw(state) + draw(state) + draw(state) + draw(state) - 2;
    const bool own = draw(state) < 0.3;
    return (struct scored){(float)(sure * (2 * noise + own)), own};
}

static int by_score(const void *left, const void *right)
{
    const float a = ((const struct scored *)left)->score, b = ((const struct scored *)right)->score;
    return (a > b) - (a < b);
}

/* The chance that a row of the class has a greater score than another row, by ranks: of scores without ties. */
static double auc_of_ranks(struct scored *rows, uint32_t count)
{
    double below = 0, won = 0;
    qsort(rows, count, sizeof *rows, by_score);
    for (uint32_t r = 0; r < count; r++) {
        won += rows[r].own ? below : 0;
        below += rows[r].own ? 0 : 1;
    }
    return won / (below * (count - below));
}

#endif
