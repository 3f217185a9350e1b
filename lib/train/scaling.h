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
};

/* Take over an array of columns, and check it: names and values distinct, deviations above 0,
 * limits. The scaling owns each column from now on, even on failure. `where` begins the message,
 * and is kept as the scaling's name. */
int sgp_scaling_create(struct sgp_scaling_column *columns, uint32_t column_count, const char *where,
    struct sgp_error *error, struct sgp_scaling **ret_scaling);

/* Create a scaling from the JSON text of a scaling file. */
int sgp_scaling_parse(const char *text, size_t size, const char *name, struct sgp_error *error,
    struct sgp_scaling **ret_scaling);

/* The content of a scaling file; the caller releases it. NULL: *error says why, as
 * sgp_scaling_text. A double needs SGP_REAL_DIGITS digits to be read back equal. */
#define SGP_REAL_DIGITS 17
json_t *sgp_scaling_json(
    const struct sgp_scaling *scaling, const char *where, struct sgp_error *error);

uint64_t sgp_scaling_digest(const struct sgp_scaling *scaling);

/* For qsort: the order by bytes of an array of `char *`. */
int sgp_values_compare(const void *left, const void *right);

/* Add a name to a list of names (initially ""), separated by ", ". A full list ends in "...". */
void sgp_list_add(char *list, size_t bytes, const char *name);

void sgp_scaling_columns_free(struct sgp_scaling_column *columns, uint32_t column_count);

#endif
