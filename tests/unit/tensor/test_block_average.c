/* SPDX-License-Identifier: Apache-2.0 */
/* Averaging with shares that travel as blocks: the sum stays, and errors are those of a calculation
 * in another language. */
#include "sgp/block.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <string.h>

#define NODES 8
#define VALUES 1024

struct fleet {
    float x[NODES][VALUES];
    double mean[VALUES], total;
};

static void begin(struct fleet *fleet, double offset)
{
    memset(fleet, 0, sizeof *fleet);
    for (int64_t c = 0; c < VALUES; c++)
        for (int64_t i = 0; i < NODES; i++) {
            int64_t k = (131 * i + 71 * c * c + 17 * i * c) % 8191 - 4095;
            fleet->x[i][c] = (float)(offset + (double)k / 2048);
            fleet->mean[c] += (double)fleet->x[i][c] / NODES;
            fleet->total += (double)fleet->x[i][c];
        }
}

static void project(float *projected, enum sgp_compressor compressor, const float *values)
{
    memcpy(projected, values, VALUES * sizeof *values);
    for (uint32_t at = 0; at < VALUES && compressor != SGP_COMPRESSOR_NONE; at += SGP_BLOCK_VALUES)
        sgp_block_project(projected + at, compressor, false, projected + at, SGP_BLOCK_VALUES);
}

/* Each node gives half of x to the node `hop` places on: x = (x - s / 2) + s' / 2, where
 * s = project(x) and s' is the s of its source. */
static void average(struct fleet *fleet, enum sgp_compressor compressor, uint32_t hop)
{
    static float given[NODES][VALUES];
    for (uint32_t i = 0; i < NODES; i++)
        project(given[i], compressor, fleet->x[i]);
    for (uint32_t i = 0; i < NODES; i++)
        for (uint32_t c = 0; c < VALUES; c++) {
            float kept = fleet->x[i][c] - 0.5F * given[i][c];
            fleet->x[i][c] = kept + 0.5F * given[(i + NODES - hop) % NODES][c];
        }
}

static void error_of(const struct fleet *fleet, double *ret_greatest, double *ret_rms)
{
    double greatest = 0, squares = 0;
    for (uint32_t i = 0; i < NODES; i++)
        for (uint32_t c = 0; c < VALUES; c++) {
            double error = fabs((double)fleet->x[i][c] - fleet->mean[c]);
            greatest = fmax(greatest, error);
            squares += error * error;
        }
    *ret_greatest = greatest;
    *ret_rms = sqrt(squares / (NODES * VALUES));
}

static double total_of(const struct fleet *fleet)
{
    double total = 0;
    for (uint32_t i = 0; i < NODES; i++)
        for (uint32_t c = 0; c < VALUES; c++)
            total += (double)fleet->x[i][c];
    return total;
}

static const struct {
    double offset;
    enum sgp_compressor compressor;
    double greatest, rms;
} known[] = {{5, SGP_COMPRESSOR_FP16, 2.9297e-03, 8.8013e-04},
    {5, SGP_COMPRESSOR_BF16, 2.3010e-02, 7.2001e-03},
    {5, SGP_COMPRESSOR_INT8, 3.9670e-02, 1.2057e-02},
    {5, SGP_COMPRESSOR_INT6, 1.5945e-01, 4.8527e-02},
    {5, SGP_COMPRESSOR_INT4, 6.9270e-01, 2.0996e-01},
    {0, SGP_COMPRESSOR_FP16, 7.3242e-04, 7.8532e-05},
    {0, SGP_COMPRESSOR_BF16, 4.6387e-03, 5.5622e-04},
    {0, SGP_COMPRESSOR_INT8, 1.0942e-02, 2.9916e-03},
    {0, SGP_COMPRESSOR_INT6, 4.4373e-02, 1.2401e-02},
    {0, SGP_COMPRESSOR_INT4, 1.9067e-01, 5.4651e-02}};

Test(block_average, averaging_keeps_the_sum_and_comes_as_near_as_is_known)
{
    static struct fleet fleet;
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        double greatest, rms;
        begin(&fleet, known[k].offset);
        for (uint32_t t = 0; t < 60; t++)
            average(&fleet, known[k].compressor, 1u << t % 3);
        error_of(&fleet, &greatest, &rms);
        cr_assert(epsilon_eq(dbl, greatest, known[k].greatest, 1e-4 * known[k].greatest), "%zu", k);
        cr_assert(epsilon_eq(dbl, rms, known[k].rms, 1e-4 * known[k].rms), "%zu", k);
        cr_assert(eq(dbl, total_of(&fleet), fleet.total), "%zu", k);
        for (uint32_t t = 60; t < 66; t++)
            average(&fleet, SGP_COMPRESSOR_NONE, 1u << t % 3);
        error_of(&fleet, &greatest, &rms);
        cr_assert(eq(dbl, greatest, 0), "%zu", k);
    }
}
