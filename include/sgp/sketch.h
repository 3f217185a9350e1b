/* SPDX-License-Identifier: Apache-2.0 */
/* A linear sketch of a vector (Alon, Matias and Szegedy 1996): so few numbers that they fit into a beat,
 * from which the distance of two vectors can be told though they are on two machines.
 *
 * Value k of a sketch is the sum of z[i], each with a sign that is drawn from i, over all i = k modulo
 * SGP_SKETCH_VALUES. The sketch of a difference is the difference of the sketches, and the sum of the
 * squares of its values is the square of its length in the mean over the signs, with a standard deviation of
 * sqrt(2 / SGP_SKETCH_VALUES) of it at most. Of equal vectors it is 0; that it is a tenth of the true
 * length or less happens once in a million million times.
 *
 * Any thread; no state. */
#ifndef SGP_SKETCH_H
#define SGP_SKETCH_H

#include "sgp/types.h"

#define SGP_SKETCH_VALUES 16u

struct sgp_sketch {
    float values[SGP_SKETCH_VALUES];
};

/* The sketch of z = x / weight, x of `count` values, weight > 0. Equal vectors give equal sketches, on
 * every processor. */
SGP_API void sgp_sketch_of(
    struct sgp_sketch *ret_sketch, const float *x, double weight, uint64_t count);

#endif
