/* SPDX-License-Identifier: Apache-2.0 */
/* What the scaling file, the CSV reader and the digest know of a column. Immutable once made. */
#ifndef SGP_TRAIN_SCALING_H
#define SGP_TRAIN_SCALING_H

#include "sgp/dataset.h"

struct sgp_scaling_column {
    char *name;
    double mean;      /* numbers only */
    double deviation; /* > 0 */
    char **values;    /* categories in feature order; NULL for numbers */
    uint32_t value_count;
};

struct sgp_scaling {
    char *name; /* of the file that it is from */
    struct sgp_scaling_column *columns;
    uint32_t column_count;
    uint32_t features;
};

/* Take over an array of columns (each owned by the scaling from now on, failure included) and check
 * it: names and values distinct, deviations above 0, limits. `where` begins the message; it is kept as the scaling's name. */
int sgp_scaling_create(struct sgp_scaling_column *columns, uint32_t column_count, const char *where,
    struct sgp_error *error, struct sgp_scaling **ret_scaling);

/* From the JSON text of a scaling file. */
int sgp_scaling_parse(const char *text, size_t size, const char *name, struct sgp_error *error,
    struct sgp_scaling **ret_scaling);

uint64_t sgp_scaling_digest(const struct sgp_scaling *scaling);

/* For qsort: the order by bytes of an array of `char *`. */
int sgp_values_compare(const void *left, const void *right);

/* Add a name to a list of names (at first ""), separated by ", "; a list that is full ends in "...". */
void sgp_list_add(char *list, size_t bytes, const char *name);

void sgp_scaling_columns_free(struct sgp_scaling_column *columns, uint32_t column_count);

#endif
