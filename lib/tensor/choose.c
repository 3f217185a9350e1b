/* SPDX-License-Identifier: Apache-2.0 */
/* Choosers of updates; see sgp/choose.h. Owns nothing. Any thread. */
#include "sgp/choose.h"

#include "block.h"

#include "sgp/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- words ---- */

static const struct {
    uint32_t levels, bits;
    enum sgp_compressor compressor;
} grids[] = {{1, 2, SGP_COMPRESSOR_INT2}, {7, 4, SGP_COMPRESSOR_INT4}, {31, 6, SGP_COMPRESSOR_INT6},
    {127, 8, SGP_COMPRESSOR_INT8}};
#define GRIDS (sizeof grids / sizeof *grids)

static int parse_levels(const char *text, struct sgp_error *error, struct sgp_chooser *chooser)
{
    char levels[8];
    chooser->choice = SGP_CHOICE_CHANCE;
    for (size_t i = 0; i < GRIDS; i++) {
        (void)snprintf(levels, sizeof levels, "%u", grids[i].levels);
        if (strcmp(text, levels) == 0) {
            chooser->compressor = grids[i].compressor;
            return 0;
        }
    }
    return sgp_fail(error, SGP_E_CONFIG,
        "qsgd:S has S = 1, 7, 31 or 127 levels, those of 2, 4, 6 and 8 bits, not \"%.40s\"", text);
}

static int parse_part(const char *text, struct sgp_error *error, struct sgp_chooser *chooser)
{
    char *end = NULL;
    bool digits = text[0] != '\0' && text[strspn(text, "0123456789.eE-")] == '\0';
    double part = digits ? strtod(text, &end) : 0;
    chooser->choice = SGP_CHOICE_LARGEST;
    chooser->compressor = SGP_COMPRESSOR_SPARSE;
    chooser->part = part;
    if (digits && *end == '\0' && part > 0 && part <= 1)
        return 0;
    return sgp_fail(error, SGP_E_CONFIG,
        "F of top:F and dgc:F is the part that travels, above 0 and at most 1 as in top:0.03, not "
        "\"%.40s\"",
        text);
}

/* Words without a number. Returns whether this is one. */
static bool parse_whole(const char *text, struct sgp_chooser *chooser)
{
    int compressor = sgp_compressor_of(text);
    if (compressor >= 0 && compressor != SGP_COMPRESSOR_SPARSE)
        chooser->compressor = (enum sgp_compressor)compressor;
    else if (strcmp(text, "terngrad") == 0)
        return parse_levels("1", NULL, chooser) == 0;
    else if (strcmp(text, "adacomp") == 0)
        *chooser = (struct sgp_chooser){SGP_CHOICE_ADAPTIVE, SGP_COMPRESSOR_SPARSE, 0, ""};
    else
        return false;
    return true;
}

int sgp_chooser_parse(
    const char *text, const char *words, struct sgp_error *error, struct sgp_chooser *ret_chooser)
{
    static const struct {
        const char *name;
        int (*parse)(const char *, struct sgp_error *, struct sgp_chooser *);
    } with_number[] = {{"qsgd:", parse_levels}, {"top:", parse_part}, {"dgc:", parse_part}};
    struct sgp_chooser chooser = {0};
    bool found = parse_whole(text, &chooser), fits = strlen(text) < sizeof chooser.word;
    for (size_t i = 0; i < sizeof with_number / sizeof *with_number && fits; i++) {
        size_t length = strlen(with_number[i].name);
        if (strncmp(text, with_number[i].name, length) != 0)
            continue;
        int code = with_number[i].parse(text + length, error, &chooser);
        if (code < 0)
            return code;
        found = true;
    }
    if (!found)
        return sgp_fail(
            error, SGP_E_CONFIG, "\"%.80s\" does not exist; choose one of %s", text, words);
    (void)snprintf(chooser.word, sizeof chooser.word, "%s", text);
    *ret_chooser = chooser;
    return 0;
}

bool sgp_chooser_is_of_updates(const struct sgp_chooser *chooser)
{
    return chooser->choice != SGP_CHOICE_NEAREST ||
           !sgp_compressor_is_of_shares(chooser->compressor);
}

bool sgp_chooser_is_coarse(const struct sgp_chooser *chooser)
{
    return chooser->compressor == SGP_COMPRESSOR_SIGN ||
           chooser->compressor == SGP_COMPRESSOR_SPARSE;
}

bool sgp_chooser_is_of_copies(const struct sgp_chooser *chooser)
{
    bool largest = chooser->choice == SGP_CHOICE_LARGEST;
    return largest || !sgp_chooser_is_of_updates(chooser);
}

/* ---- by chance ---- */

static uint32_t bits_of(enum sgp_compressor compressor)
{
    for (size_t i = 0; i < GRIDS; i++)
        if (grids[i].compressor == compressor)
            return grids[i].bits;
    sgp_assert_failed("a grid of integers", __FILE__, __LINE__);
}

/* Uniform in [0, 1), with 24 bits. */
static float chance(uint64_t key, uint64_t place)
{
    return (float)(sgp_random_at(key, place) >> 40) * 0x1p-24f;
}

/* The largest magnitude has the highest level, as in QSGD, so packing finds the same scale. */
static size_t by_chance(float *projected, enum sgp_compressor compressor, const float *values,
    uint32_t count, uint64_t key, uint64_t first)
{
    uint32_t bits = bits_of(compressor);
    float largest = sgp_kernels_best()->largest(values, count), levels = block_levels(bits);
    struct block_form form = {BLOCK_DENSE, bits, {sgp_block_scale_up(largest / levels)}};
    form = sgp_block_fit(form, &largest, 1);
    if (form.layout != BLOCK_DENSE)
        return sgp_block_project(projected, compressor, false, values, count);
    float scale = form.scales[0], inverse = 1 / scale;
    for (uint32_t i = 0; i < count; i++) {
        float magnitude = fabsf(values[i]), level = magnitude * inverse, below = floorf(level);
        below += level - below > chance(key, first + i) ? 1 : 0;
        below = below > levels || magnitude >= largest ? levels : below;
        projected[i] = below > 0 ? copysignf(below * scale, values[i]) : 0;
    }
    return block_bytes(&form, count, 0);
}

/* ---- some values ---- */

static uint32_t magnitude_bits(float value)
{
    uint32_t bits;
    value = fabsf(value);
    memcpy(&bits, &value, sizeof bits);
    return bits; /* these are ordered like the magnitudes */
}

/* The `number`-th largest magnitude, from 1 on, found bit by bit. */
static uint32_t magnitude_at(const uint32_t *magnitudes, uint32_t count, uint32_t number)
{
    uint32_t found = 0;
    for (uint32_t bit = UINT32_C(1) << 30; bit > 0; bit /= 2) {
        uint32_t reach = 0, tried = found | bit;
        for (uint32_t i = 0; i < count; i++)
            reach += magnitudes[i] >= tried;
        found = reach >= number ? tried : found;
    }
    return found;
}

/* If magnitudes are equal, the first of them are chosen. */
static void mark_largest(
    uint64_t chosen[static SGP_BLOCK_PLACE_WORDS], const float *values, uint32_t count, double part)
{
    uint32_t magnitudes[SGP_BLOCK_VALUES];
    uint32_t number = (uint32_t)(part * count + 0.5), above = 0;
    number = number < 1 ? 1 : number < count ? number : count;
    for (uint32_t i = 0; i < count; i++)
        magnitudes[i] = magnitude_bits(values[i]);
    uint32_t least = magnitude_at(magnitudes, count, number);
    for (uint32_t i = 0; i < count; i++)
        above += magnitudes[i] > least;
    uint32_t equal = number - above;
    for (uint32_t i = 0; i < count; i++) {
        bool taken = magnitudes[i] > least || (magnitudes[i] == least && equal > 0);
        equal -= taken && magnitudes[i] == least;
        chosen[i / 64] |= (uint64_t)taken << i % 64;
    }
}

/* The function pack() of AdaComp: H = G + dW is compared with the largest G of the bin. */
static void mark_adaptive(uint64_t chosen[static SGP_BLOCK_PLACE_WORDS], const float *values,
    const float *latest, uint32_t count)
{
    float largest = sgp_kernels_best()->largest(values, count);
    for (uint32_t i = 0; i < count; i++)
        chosen[i / 64] |= (uint64_t)(fabsf(values[i] + latest[i]) >= largest) << i % 64;
}

/* ---- the whole vector ---- */

/* projected = s of the block; `latest` is what was added to the residual. */
static size_t choose_block(const struct sgp_chooser *chooser, float *projected, const float *values,
    const float *latest, uint32_t count, uint64_t key, uint64_t first)
{
    uint64_t chosen[SGP_BLOCK_PLACE_WORDS] = {0};
    if (chooser->choice == SGP_CHOICE_CHANCE)
        return by_chance(projected, chooser->compressor, values, count, key, first);
    if (chooser->choice == SGP_CHOICE_LARGEST)
        mark_largest(chosen, values, count, chooser->part);
    else
        mark_adaptive(chosen, values, latest, count);
    return sgp_block_project_chosen(projected, BLOCK_SPARSE_BITS, chosen, values, count);
}

/* Nothing is left out: the whole residual is sent. */
static void choose_all(float *values, float *rest, uint64_t count, struct sgp_chosen *ret_chosen)
{
    *ret_chosen = (struct sgp_chosen){.bytes = count * sizeof *values};
    for (uint64_t i = 0; rest != NULL && i < count; i++) {
        values[i] += rest[i];
        rest[i] = 0;
    }
}

void sgp_choose(const struct sgp_chooser *chooser, const struct sgp_tensors *tensors, uint64_t key,
    float *values, float *rest, uint64_t first, uint64_t count, struct sgp_chosen *ret_chosen)
{
    uint32_t tensor = sgp_codec_tensor_at(tensors, first);
    float latest[SGP_BLOCK_VALUES], whole[SGP_BLOCK_VALUES];
    struct sgp_chosen sum = {0};
    bool feeds_back = chooser->choice != SGP_CHOICE_CHANCE;
    if (chooser->compressor == SGP_COMPRESSOR_NONE) {
        choose_all(values, rest, count, ret_chosen);
        return;
    }
    for (uint64_t at = 0; at < count; at += SGP_BLOCK_VALUES) {
        float *s = values + at, none[SGP_BLOCK_VALUES] = {0};
        float *kept = rest != NULL ? rest + at : none;
        uint32_t block = (uint32_t)(count - at < SGP_BLOCK_VALUES ? count - at : SGP_BLOCK_VALUES);
        bool fine = sgp_codec_is_fine(tensors, &tensor, first + at, block);
        for (uint32_t i = 0; i < block; i++) {
            latest[i] = s[i];
            whole[i] = s[i] + kept[i];
        }
        sum.bytes += fine || chooser->choice == SGP_CHOICE_NEAREST
                         ? sgp_codec_project_block(s, chooser->compressor, fine, whole, block)
                         : choose_block(chooser, s, whole, latest, block, key, first + at);
        for (uint32_t i = 0; i < block; i++) {
            float left_out = whole[i] - s[i];
            kept[i] = feeds_back && isfinite(left_out) ? left_out : 0;
            sum.difference += (double)left_out * (double)left_out;
            sum.norm += (double)whole[i] * (double)whole[i];
        }
    }
    *ret_chosen = sum;
}
