/* SPDX-License-Identifier: Apache-2.0 */
/* The source of dense blocks: chooses the form of a block, projects and packs; see sgp/block.h.
 * Owns nothing. Any thread.
 *
 * The form and the values determine the bytes. Project and pack choose the form by one function, so
 * that they agree. */
#include "block.h"

#include <math.h>
#include <string.h>

#define HALF_GREATEST 65504.0f
#define LANES 8u

/* ---- forms ---- */

float sgp_block_scale_up(float scale)
{
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    bits = (bits + 0xffu) & ~0xffu;
    memcpy(&scale, &bits, sizeof bits);
    return scale;
}

double sgp_block_sum_magnitudes(const float *values, uint32_t count)
{
    double lanes[LANES] = {0};
    uint32_t whole = count - count % LANES;
    for (uint32_t i = 0; i < whole; i += LANES)
        for (uint32_t lane = 0; lane < LANES; lane++)
            lanes[lane] += (double)fabsf(values[i + lane]);
    for (uint32_t i = whole; i < count; i++)
        lanes[i % LANES] += (double)fabsf(values[i]);
    for (uint32_t half = LANES / 2; half > 0; half /= 2)
        for (uint32_t lane = 0; lane < half; lane++)
            lanes[lane] += lanes[lane + half];
    return lanes[0];
}

static float larger(float a, float b)
{
    return a > b ? a : b;
}

/* BLOCK_TOO_LARGE is a bfloat16. A magnitude at or above it is still so after rounding, and the
 * projected values have the same form. */
struct block_form sgp_block_fit(struct block_form form, const float *largest, uint32_t parts)
{
    float reach = 0, most = 0;
    for (uint32_t p = 0; p < parts; p++) {
        if (!isfinite(largest[p]))
            return (struct block_form){.layout = BLOCK_HALF};
        reach = larger(reach, larger(largest[p], form.scales[p] * block_levels(form.bits)));
        form.scales[p] = form.scales[p] < BLOCK_SCALE_LEAST ? 0 : form.scales[p];
        most = larger(most, form.scales[p]);
    }
    if (reach >= BLOCK_TOO_LARGE)
        return (struct block_form){.layout = BLOCK_BFLOAT};
    return most > 0 ? form : (struct block_form){.layout = BLOCK_ZEROS};
}

static struct block_form form_of_integers(
    uint32_t bits, uint32_t parts, const float *values, uint32_t count)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    struct block_form form = {parts == 1 ? BLOCK_DENSE : BLOCK_IN_QUARTERS, bits, {0}};
    float largest[BLOCK_QUARTERS];
    for (uint32_t p = 0; p < parts; p++, values += BLOCK_QUARTER) {
        uint32_t part = block_part(p, parts, count);
        largest[p] = kernels->largest(values, part);
        form.scales[p] =
            sgp_block_scale_up(bits > 1 ? largest[p] / block_levels(bits)
                                        : (float)(sgp_block_sum_magnitudes(values, part) / part));
    }
    return sgp_block_fit(form, largest, parts);
}

/* A value above HALF_GREATEST is still so as bfloat16, so the projected values have the same
 * form. */
static struct block_form form_of_fine(const float *values, uint32_t count)
{
    float largest = sgp_kernels_best()->largest(values, count);
    for (uint32_t i = 0; i < count && !isfinite(largest); i++)
        if (isfinite(values[i]) && fabsf(values[i]) > HALF_GREATEST)
            largest = fabsf(values[i]);
    bool large = isfinite(largest) && largest > HALF_GREATEST;
    return (struct block_form){.layout = large ? BLOCK_BFLOAT : BLOCK_HALF};
}

/* The compressors whose blocks have all values. */
static const struct {
    enum block_layout layout;
    uint32_t bits;
} dense[SGP_COMPRESSOR_MOST + 1] = {
    [SGP_COMPRESSOR_FP16] = {BLOCK_HALF, 0},
    [SGP_COMPRESSOR_BF16] = {BLOCK_BFLOAT, 0},
    [SGP_COMPRESSOR_INT8] = {BLOCK_DENSE, 8},
    [SGP_COMPRESSOR_INT6] = {BLOCK_DENSE, 6},
    [SGP_COMPRESSOR_INT4] = {BLOCK_DENSE, 4},
    [SGP_COMPRESSOR_INT4_64] = {BLOCK_IN_QUARTERS, 4},
    [SGP_COMPRESSOR_INT2] = {BLOCK_DENSE, 2},
    [SGP_COMPRESSOR_SIGN] = {BLOCK_DENSE, 1},
};

static struct block_form form_of(
    enum sgp_compressor compressor, bool fine, const float *values, uint32_t count)
{
    sgp_assert(compressor <= SGP_COMPRESSOR_MOST && dense[compressor].layout != BLOCK_ZEROS);
    sgp_assert(count > 0 && count <= SGP_BLOCK_VALUES);
    enum block_layout layout = dense[compressor].layout;
    if (layout == BLOCK_HALF)
        return (struct block_form){.layout = BLOCK_HALF};
    if (fine)
        return form_of_fine(values, count);
    if (layout == BLOCK_BFLOAT)
        return (struct block_form){.layout = BLOCK_BFLOAT};
    bool quarters = layout == BLOCK_IN_QUARTERS && count > BLOCK_QUARTER;
    return form_of_integers(dense[compressor].bits, quarters ? BLOCK_QUARTERS : 1, values, count);
}

/* ---- projecting ---- */

static void project_part(
    float *projected, uint32_t bits, float scale, const float *values, uint32_t count)
{
    if (scale == 0)
        memset(projected, 0, count * sizeof *projected);
    else if (bits > 1)
        sgp_kernels_best()->fake_quantise(projected, values, 1 / scale, scale, count);
    else
        for (uint32_t i = 0; i < count; i++)
            projected[i] = values[i] < 0 ? -scale : scale;
}

size_t sgp_block_project_as(
    float *projected, const struct block_form *form, const float *values, uint32_t count)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    uint8_t halves[2 * SGP_BLOCK_VALUES];
    if (form->layout == BLOCK_HALF) {
        kernels->to_half(halves, values, count);
        kernels->from_half(projected, halves, count);
    } else if (form->layout == BLOCK_BFLOAT) {
        kernels->to_bfloat(halves, values, count);
        kernels->from_bfloat(projected, halves, count);
    } else if (form->layout == BLOCK_IN_QUARTERS) {
        for (uint32_t p = 0; p * BLOCK_QUARTER < count; p++)
            project_part(projected + p * BLOCK_QUARTER, form->bits, form->scales[p],
                values + p * BLOCK_QUARTER, block_part(p, BLOCK_QUARTERS, count));
    } else {
        project_part(projected, form->bits, form->scales[0], values, count);
    }
    return block_bytes(form, count, 0);
}

size_t sgp_block_project(float *projected, enum sgp_compressor compressor, bool fine,
    const float *values, uint32_t count)
{
    struct block_form form = form_of(compressor, fine, values, count);
    return sgp_block_project_as(projected, &form, values, count);
}

/* ---- packing ---- */

static uint8_t *write_word(uint8_t *bytes, uint32_t kind, float scale)
{
    uint32_t word;
    memcpy(&word, &scale, sizeof word);
    word |= kind;
    for (uint32_t i = 0; i < BLOCK_WORD_BYTES; i++)
        *bytes++ = (uint8_t)(word >> 8 * i);
    return bytes;
}

uint8_t *sgp_block_write_words(uint8_t *bytes, const struct block_form *form)
{
    static const uint8_t first[] = {[BLOCK_ZEROS] = 0,
        [BLOCK_HALF] = BLOCK_KIND_HALF,
        [BLOCK_BFLOAT] = BLOCK_KIND_BFLOAT,
        [BLOCK_DENSE] = 0,
        [BLOCK_IN_QUARTERS] = BLOCK_KIND_QUARTERS,
        [BLOCK_PLACES] = BLOCK_KIND_PLACES,
        [BLOCK_BITMAP] = BLOCK_KIND_BITMAP};
    bytes = write_word(bytes, first[form->layout] + form->bits, form->scales[0]);
    for (uint32_t p = 1; p < BLOCK_QUARTERS && form->layout == BLOCK_IN_QUARTERS; p++)
        bytes = write_word(bytes, 0, form->scales[p]);
    return bytes;
}

static void write_integers(
    uint8_t *bytes, const struct block_form *form, const float *values, uint32_t count)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    int8_t integers[SGP_BLOCK_VALUES];
    uint32_t parts = form->layout == BLOCK_IN_QUARTERS ? BLOCK_QUARTERS : 1;
    for (uint32_t i = 0; i < count && form->bits == 1; i++)
        integers[i] = values[i] < 0;
    for (uint32_t p = 0; p < parts && form->bits > 1; p++) {
        uint32_t first = p * BLOCK_QUARTER, part = block_part(p, parts, count);
        float inverse = form->scales[p] > 0 ? 1 / form->scales[p] : 0;
        kernels->quantise(integers + first, values + first, inverse, part);
    }
    kernels->pack_bits(bytes, integers, form->bits, count);
}

size_t sgp_block_pack_as(
    uint8_t *bytes, const struct block_form *form, const float *values, uint32_t count)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    size_t size = block_bytes(form, count, 0);
    uint8_t *rest = sgp_block_write_words(bytes, form);
    if (size > BLOCK_WORD_BYTES)
        memset(bytes + size - 3, 0, 3); /* at most these 3 bytes are padding */
    if (form->layout == BLOCK_HALF)
        kernels->to_half(rest, values, count);
    else if (form->layout == BLOCK_BFLOAT)
        kernels->to_bfloat(rest, values, count);
    else if (form->layout == BLOCK_DENSE && form->bits == 8)
        kernels->quantise((int8_t *)rest, values, 1 / form->scales[0], count);
    else if (form->layout != BLOCK_ZEROS)
        write_integers(rest, form, values, count);
    return size;
}

size_t sgp_block_pack(
    uint8_t *bytes, enum sgp_compressor compressor, bool fine, const float *values, uint32_t count)
{
    struct block_form form = form_of(compressor, fine, values, count);
    return sgp_block_pack_as(bytes, &form, values, count);
}
