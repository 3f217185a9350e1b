/* SPDX-License-Identifier: Apache-2.0 */
/* Transposes images, see order.h. */
#include "order.h"

/* to[c][r] = from[r][c] of a matrix */
static void transpose(float *to, const float *from, size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            to[c * rows + r] = from[r * columns + c];
}

void sgp_order_pixels(float *pixels, const float *planes, struct sgp_shape shape, size_t rows)
{
    size_t values = (size_t)sgp_shape_values(shape);
    for (size_t r = 0; r < rows; r++, pixels += values, planes += values)
        transpose(pixels, planes, shape.channels, (size_t)sgp_shape_pixels(shape));
}

void sgp_order_planes(float *planes, const float *pixels, struct sgp_shape shape, size_t rows)
{
    size_t values = (size_t)sgp_shape_values(shape);
    for (size_t r = 0; r < rows; r++, pixels += values, planes += values)
        transpose(planes, pixels, (size_t)sgp_shape_pixels(shape), shape.channels);
}
