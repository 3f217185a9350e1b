/* SPDX-License-Identifier: Apache-2.0 */
/* Private steps: which rows, and how long their gradients are; see clipped.h. */
#include "clipped.h"

#include "sgp/buffer.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

uint32_t sgp_clipped_capacity(uint32_t batch, uint64_t rows)
{
    uint64_t capacity = batch + 4 * (uint64_t)ceil(sqrt(batch));
    return (uint32_t)(capacity < rows ? capacity : rows);
}

int sgp_clipped_init(struct sgp_clipped *clipped, const struct sgp_learner_settings *settings)
{
    const struct sgp_learner_privacy *privacy = &settings->privacy;
    *clipped = (struct sgp_clipped){0};
    if (!settings->train || !(privacy->clip > 0))
        return 0;
    clipped->clip = privacy->clip;
    clipped->share = 1.0 / settings->batch;
    clipped->deviation = privacy->noise * privacy->clip * clipped->share;
    clipped->chance = fmin(1, (double)settings->batch / (double)settings->train->rows);
    clipped->capacity = sgp_clipped_capacity(settings->batch, settings->train->rows);
    clipped->squares = calloc(clipped->capacity, sizeof *clipped->squares);
    clipped->factors = calloc(clipped->capacity, sizeof *clipped->factors);
    if (!clipped->squares || !clipped->factors)
        return -ENOMEM;
    int status = sgp_vector_create(settings->model.parameters, &clipped->part);
    return status < 0 ? status : sgp_noise_create(privacy->key, &clipped->noise);
}

void sgp_clipped_finish(struct sgp_clipped *clipped)
{
    sgp_noise_destroy(clipped->noise);
    sgp_vector_destroy(clipped->part);
    free(clipped->squares);
    free(clipped->factors);
    *clipped = (struct sgp_clipped){0};
}

uint32_t sgp_clipped_draw(
    struct sgp_clipped *clipped, uint32_t rows, uint64_t place, uint32_t *ret_rows)
{
    uint32_t drawn = sgp_noise_choose(clipped->noise, clipped->chance, rows, ret_rows);
    for (uint32_t i = drawn; i < drawn + clipped->capacity; i++)
        ret_rows[i] = (uint32_t)((place + i) % rows);
    return drawn;
}

void sgp_clipped_measure(struct sgp_clipped *clipped, struct sgp_network *network, float *gradient,
    const float *x, double weight, uint32_t drawn)
{
    sgp_network_measure_rows(network, gradient, x, weight, clipped->capacity, clipped->squares);
    for (uint32_t i = 0; i < clipped->capacity; i++) {
        double length = sqrt(clipped->squares[i]);
        double factor = clipped->share * (length > clipped->clip ? clipped->clip / length : 1);
        bool counts = i < drawn && isfinite(length) && factor >= (double)FLT_MIN;
        clipped->factors[i] = counts ? (float)factor : 0;
    }
}
