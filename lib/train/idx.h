/* SPDX-License-Identifier: Apache-2.0 */
/* The IDX reader on open files, so that tests and fuzzers can pass bytes. */
#ifndef SGP_TRAIN_IDX_H
#define SGP_TRAIN_IDX_H

#include <stdio.h>

#include "sgp/dataset.h"

/* As sgp_dataset_read_idx. The caller still owns the files. Messages use the names. */
int sgp_idx_read(FILE *file, const char *name, FILE *label_file, const char *label_name,
    const char *const *class_names, uint32_t class_count, struct sgp_error *error,
    struct sgp_dataset **ret_dataset);

#endif
