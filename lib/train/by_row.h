/* SPDX-License-Identifier: Apache-2.0 */
/* What a backward pass does with the gradient of one row alone. Thread: the trainer's; no state. */
#ifndef SGP_TRAIN_BY_ROW_H
#define SGP_TRAIN_BY_ROW_H

#include "layer.h"

/* The sum of the squares of the values. In float64, because a square that vanished in float32 would
 * make a row too long. */
double sgp_by_row_square(const float *values, size_t count);

/* Take the gradient that a row alone has for `count` parameters. A pass with `squares` measures it.
 * Another one adds it to the sum, times the row's factor if the pass has factors. It is the same in
 * both passes, to the bit, so no row adds more than was measured, however its terms have
 * cancelled. */
void sgp_by_row_take(
    const struct sgp_pass *pass, size_t row, const float *own, float *sum, size_t count);

/* Whether the pass asks for the gradients of single rows. */
static inline bool sgp_by_row_asked(const struct sgp_pass *pass)
{
    return pass->squares || pass->factors;
}

#endif
