/* SPDX-License-Identifier: Apache-2.0 */
/* A column, for the scaling file, the CSV reader and the digest. Immutable once made. */
#ifndef SGP_TRAIN_SCALING_H
#define SGP_TRAIN_SCALING_H

#include "sgp/dataset.h"

#include <jansson.h>

struct sgp_scaling_column {
    char *name;
    double mean;      /* numbers only */
    double deviation; /* > 0 */
    char **values;    /* categories in feature order; NULL for numbers */
    uint32_t value_count;
};

struct sgp_scaling {
    char *name; /* name of the scaling's file */
    struct sgp_scaling_column *columns;
    uint32_t column_count;
    uint32_t features;
    struct sgp_target_scale *targets; /* of label columns of numbers; NULL: they are not scaled */
    uint32_t target_count;
};

/* Take over an array of columns, and check it: names and values distinct, deviations above 0,
 * limits. The scaling owns each column from now on, even on failure. `where` begins the message,
 * and is kept as the scaling's name. */
int sgp_scaling_create(struct sgp_scaling_column *columns, uint32_t column_count, const char *where,
    struct sgp_error *error, struct sgp_scaling **ret_scaling);

/* Give a scaling its targets, of which there were none. It owns them from now on. */
void sgp_scaling_take_targets(
    struct sgp_scaling *scaling, struct sgp_target_scale *targets, uint32_t target_count);

/* Create a scaling from the JSON text of a scaling file. */
int sgp_scaling_parse(const char *text, size_t size, const char *name, struct sgp_error *error,
    struct sgp_scaling **ret_scaling);

/* Whether the content of a scaling file scales label columns by its "targets": format 2. */
bool sgp_scaling_scales_targets(const json_t *root);

/* The content of a scaling file; the caller releases it. NULL: *error says why, as
 * sgp_scaling_columns_text. */
json_t *sgp_scaling_json(
    const struct sgp_scaling *scaling, const char *where, struct sgp_error *error);

/* Of its columns; see sgp_target_scales_digest. */
uint64_t sgp_scaling_digest(const struct sgp_scaling *scaling);

/* For qsort: the order by bytes of an array of `char *`. */
int sgp_values_compare(const void *left, const void *right);

/* Add a name to a list of names (initially ""), separated by ", ". A full list ends in "...". */
void sgp_list_add(char *list, size_t bytes, const char *name);

void sgp_scaling_columns_free(struct sgp_scaling_column *columns, uint32_t column_count);

#endif
