/* SPDX-License-Identifier: Apache-2.0 */
/* A linear sketch of a vector (Alon, Matias and Szegedy 1996): a few numbers that fit into a
 * heartbeat. From two sketches follows the distance of two vectors on two machines.
 *
 * Value k of a sketch is the sum of z[i] over all i = k modulo SGP_SKETCH_VALUES, each with a sign
 * that is drawn from i. The sketch of a difference is the difference of the sketches. The sum of
 * the squares of its values estimates the square of its length. That estimate is unbiased over the
 * signs, with a relative standard deviation of at most sqrt(2 / SGP_SKETCH_VALUES). The sketch of
 * equal vectors is 0. The probability that it is a tenth of the true length or less is 1e-12.
 *
 * Any thread; no state. */
#ifndef SGP_SKETCH_H
#define SGP_SKETCH_H

#include "sgp/types.h"

#define SGP_SKETCH_VALUES 16u

struct sgp_sketch {
    float values[SGP_SKETCH_VALUES];
};

/* The sketch of z = x / weight, x of `count` values, weight > 0. Equal vectors give equal sketches,
 * on every processor. */
void sgp_sketch_of(struct sgp_sketch *ret_sketch, const float *x, double weight, uint64_t count);

#endif
