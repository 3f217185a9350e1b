/* SPDX-License-Identifier: Apache-2.0 */
/* The two orders of an image in memory. Planes are channels x height x width, as in files and flat
 * rows. Pixels are height x width x channels, as between layers. Any thread; no state. */
#ifndef SGP_TRAIN_ORDER_H
#define SGP_TRAIN_ORDER_H

#include "sgp/shape.h"

/* Convert `rows` images from one order to the other. The arrays must not overlap. */
void sgp_order_pixels(float *pixels, const float *planes, struct sgp_shape shape, size_t rows);
void sgp_order_planes(float *planes, const float *pixels, struct sgp_shape shape, size_t rows);

#endif
