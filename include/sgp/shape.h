/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of a row: an image of `channels` planes, each `height` x `width`; or a flat vector,
 * which is an image of one pixel with as many channels as it has values. Plain data. */
#ifndef SGP_SHAPE_H
#define SGP_SHAPE_H

#include "sgp/types.h"

struct sgp_shape {
    uint32_t channels, height, width; /* each >= 1; all zero: not known */
};

static inline uint64_t sgp_shape_pixels(struct sgp_shape shape)
{
    return (uint64_t)shape.height * shape.width;
}

/* The values of a row. No overflow if each size is below 2^20. */
static inline uint64_t sgp_shape_values(struct sgp_shape shape)
{
    return shape.channels * sgp_shape_pixels(shape);
}

static inline bool sgp_shape_equal(struct sgp_shape a, struct sgp_shape b)
{
    return a.channels == b.channels && a.height == b.height && a.width == b.width;
}

/* An image whose planes and pixels differ in their order in memory. */
static inline bool sgp_shape_is_ordered(struct sgp_shape shape)
{
    return shape.channels > 1 && sgp_shape_pixels(shape) > 1;
}

#endif
