/* SPDX-License-Identifier: Apache-2.0 */
/* The scales of label columns of numbers; see target_scale.h. */
#include "target_scale.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

void sgp_target_scales_free(struct sgp_target_scale *scales, uint32_t count)
{
    for (uint32_t i = 0; scales && i < count; i++)
        free(scales[i].name);
    free(scales);
}

int sgp_target_scale_check(
    const struct sgp_target_scale *scale, const char *where, struct sgp_error *error)
{
    if (isfinite(scale->mean) && isfinite(scale->deviation) && scale->deviation > 0)
        return 0;
    return sgp_fail(error, SGP_E_DATA,
        "%s: target '%s' has mean %g and deviation %g; a finite mean and a deviation above 0 would "
        "be right",
        where, scale->name, scale->mean, scale->deviation);
}

/* ---- JSON ---- */

/* Read one element. On failure, too, *scale holds what was allocated. */
static int scale_parse(const json_t *object, size_t number, const char *where,
    struct sgp_error *error, struct sgp_target_scale *scale)
{
    const char *name = json_string_value(json_object_get(object, "name"));
    const json_t *mean = json_object_get(object, "mean");
    const json_t *deviation = json_object_get(object, "deviation");
    if (!name || json_object_size(object) != 3 || !json_is_number(mean) ||
        !json_is_number(deviation))
        return sgp_fail(error, SGP_E_DATA,
            "%s: target %zu is not right; {\"name\": \"...\", \"mean\": M, \"deviation\": D} would "
            "be",
            where, number);
    scale->mean = json_number_value(mean);
    scale->deviation = json_number_value(deviation);
    scale->name = strdup(name);
    return scale->name ? sgp_target_scale_check(scale, where, error)
                       : sgp_fail(error, -ENOMEM, "%s: out of memory", where);
}

int sgp_target_scales_parse(const json_t *list, const char *where, struct sgp_error *error,
    struct sgp_target_scale **ret_scales, uint32_t *ret_count)
{
    const size_t count = json_array_size(list);
    if (!json_is_array(list) || count == 0 || count > SGP_COLUMNS_MAX)
        return sgp_fail(error, SGP_E_DATA,
            "%s: \"targets\" must be an array of 1 to %u label columns", where, SGP_COLUMNS_MAX);
    struct sgp_target_scale *scales = calloc(count, sizeof *scales);
    if (!scales)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", where);
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++)
        status = scale_parse(json_array_get(list, i), i + 1, where, error, &scales[i]);
    if (status < 0) {
        sgp_target_scales_free(scales, (uint32_t)count);
        return status;
    }
    *ret_scales = scales;
    *ret_count = (uint32_t)count;
    return 0;
}

json_t *sgp_target_scales_json(const struct sgp_target_scale *scales, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_t *scale = json_pack("{s:s, s:f, s:f}", "name", scales[i].name, "mean", scales[i].mean,
            "deviation", scales[i].deviation);
        if (json_array_append_new(list, scale) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

char *sgp_target_scales_text(const struct sgp_target_scale *scales, uint32_t count)
{
    json_t *list = sgp_target_scales_json(scales, count);
    char *text =
        list ? json_dumps(list, JSON_COMPACT | JSON_REAL_PRECISION(SGP_REAL_DIGITS)) : NULL;
    json_decref(list);
    return text;
}

/* ---- numbers ---- */

uint64_t sgp_target_scales_digest(
    const struct sgp_target_scale *scales, uint32_t count, uint64_t digest)
{
    for (uint32_t i = 0; i < count; i++) {
        const double numbers[2] = {scales[i].mean, scales[i].deviation};
        digest = XXH3_64bits_withSeed(numbers, sizeof numbers, digest);
    }
    return digest;
}

float sgp_target_scale_apply(const struct sgp_target_scale *scale, double number)
{
    return (float)((number - scale->mean) / scale->deviation);
}

float sgp_target_scale_restore(const struct sgp_target_scale *scale, float output)
{
    return (float)sgp_target_scale_number(scale, output);
}

double sgp_target_scale_number(const struct sgp_target_scale *scale, float output)
{
    return scale->mean + scale->deviation * (double)output;
}
