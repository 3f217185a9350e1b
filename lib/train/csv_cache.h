/* SPDX-License-Identifier: Apache-2.0 */
/* Reads large CSV tables through a file of rows in the state directory. A table is parsed once.
 * Later starts only read it to see that it is the same, and map the file. */
#ifndef SGP_TRAIN_CSV_CACHE_H
#define SGP_TRAIN_CSV_CACHE_H

#include "sgp/dataset.h"

/* As sgp_dataset_read_csv, with the rows in CACHE/NAME.rows if the table has at least
 * cache->least_bytes. If that file is not of this table, these options and this version, or if it
 * is damaged, it is made anew. If it cannot be written, the rows are read into memory; a line says
 * so. cache NULL: the rows are read into memory. */
int sgp_csv_cache_read(const struct sgp_data_cache *cache, const char *name, const char *path,
    const struct sgp_csv_options *options, struct sgp_error *error,
    struct sgp_dataset **ret_dataset);

#endif
