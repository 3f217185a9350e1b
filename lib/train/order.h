/* SPDX-License-Identifier: Apache-2.0 */
/* The two orders of an image in memory: planes (channels x height x width, of files and flat
 * rows) and pixels (height x width x channels, between layers). Any thread; no state. */
#ifndef SGP_TRAIN_ORDER_H
#define SGP_TRAIN_ORDER_H

#include "sgp/shape.h"

/* rows images from the one order to the other; the arrays do not overlap. */
void sgp_order_pixels(float *pixels, const float *planes, struct sgp_shape shape, size_t rows);
void sgp_order_planes(float *planes, const float *pixels, struct sgp_shape shape, size_t rows);

#endif
