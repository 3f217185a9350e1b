/* SPDX-License-Identifier: Apache-2.0 */
/* The scales of label columns of numbers (struct sgp_target_scale): as JSON, and numbers there and
 * back. Any thread; nothing here keeps state. */
#ifndef SGP_TRAIN_TARGET_SCALE_H
#define SGP_TRAIN_TARGET_SCALE_H

#include "sgp/dataset.h"

#include <jansson.h>

#define SGP_REAL_DIGITS 17 /* of a double in JSON that is read back equal */

/* Read [{"name": "y", "mean": M, "deviation": D}, ...], with at least one element. `where` begins
 * messages. SGP_E_DATA, -ENOMEM. The caller frees *ret_scales. */
int sgp_target_scales_parse(const json_t *list, const char *where, struct sgp_error *error,
    struct sgp_target_scale **ret_scales, uint32_t *ret_count);

/* 0; SGP_E_DATA unless mean and deviation are finite and the deviation is above 0. */
int sgp_target_scale_check(
    const struct sgp_target_scale *scale, const char *where, struct sgp_error *error);

void sgp_target_scales_free(struct sgp_target_scale *scales, uint32_t count); /* NULL is fine */

/* What sgp_target_scales_parse reads, and its text in one line, which the caller frees. NULL
 * without memory, or with a name that is not UTF-8. */
json_t *sgp_target_scales_json(const struct sgp_target_scale *scales, uint32_t count);
char *sgp_target_scales_text(const struct sgp_target_scale *scales, uint32_t count);

/* The digest of means and deviations, as peers compare them, after another digest. The names are
 * left out, because one label column may have another name on each node. */
uint64_t sgp_target_scales_digest(
    const struct sgp_target_scale *scales, uint32_t count, uint64_t digest);

/* What the model learns in place of a number of the column, and the number for an output. */
float sgp_target_scale_apply(const struct sgp_target_scale *scale, double number);
float sgp_target_scale_restore(const struct sgp_target_scale *scale, float output);
/* The same before it is rounded to a float: of a column whose mean is large beside its deviation,
 * the rounding may be larger than the errors of a model. */
double sgp_target_scale_number(const struct sgp_target_scale *scale, float output);

#endif
