/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of statistics share; see sgp/statistics.h. */
#ifndef SGP_TRAIN_STATISTICS_H
#define SGP_TRAIN_STATISTICS_H

#include <jansson.h>
#include <stdio.h>

#include "sgp/statistics.h"

/* The most different values that a column may have when it is told. */
uint32_t sgp_statistics_values_max(enum sgp_statistics_kind kind);

/* The order of the values of a column, for qsort of struct sgp_column_value: of their bytes, as in
 * a scaling file; of classes numbers first. */
typedef int sgp_statistics_compare(const void *left, const void *right);
sgp_statistics_compare *sgp_statistics_order(enum sgp_statistics_kind kind);

/* The reader of sgp_statistics_read on an open file. */
int sgp_statistics_read_file(FILE *file, const char *name,
    const struct sgp_statistics_options *options, struct sgp_error *error,
    struct sgp_statistics **ret_statistics);

/* A value of JSON as one line of printable ASCII, which the caller frees. NULL: no memory. */
char *sgp_statistics_dump(const json_t *value);

/* Read a text of the node `name`, which is not trusted. All names are distinct, counts are at most
 * the rows, sums are those of so many numbers, and there is at least one column. Errors as
 * sgp_statistics_combine. */
int sgp_statistics_parse(const char *text, const char *name, struct sgp_error *error,
    struct sgp_statistics **ret_statistics);

#endif
