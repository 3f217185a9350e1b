/* SPDX-License-Identifier: Apache-2.0 */
/* The CSV reader: RFC 4180 records out of a source, one at a time.
 *
 * Owns the text of the record it holds. Knows nothing of numbers or columns' meanings. */
#ifndef SGP_TRAIN_CSV_H
#define SGP_TRAIN_CSV_H

#include <stdio.h>

#include "sgp/dataset.h"
#include "source.h"

#define SGP_CSV_RECORD_BYTES_MAX ((size_t)1 << 26) /* all fields of a record, terminated by zeros */

struct sgp_csv {
    struct sgp_source source;
    uint64_t line;     /* where the record begins; 1 is the file's first */
    uint64_t line_end; /* the line that is being read: a quoted field may hold line ends */
    char *text;        /* the fields, each with its terminating zero */
    size_t text_size;
    size_t text_capacity;
    size_t *fields; /* offsets into text */
    size_t field_count;
    size_t field_capacity;
};

/* -ENOMEM, -errno, SGP_E_DATA. The file and the name stay the caller's. */
int sgp_csv_init(struct sgp_csv *csv, FILE *file, const char *name, struct sgp_error *error);
void sgp_csv_finish(struct sgp_csv *csv);

/* Read the next record that is not an empty line: 1, 0 at the end of the file, or a negative code
 * with one line in *error. */
int sgp_csv_next(struct sgp_csv *csv, struct sgp_error *error);

/* Field `index` of the record that was read; valid until the next. */
const char *sgp_csv_field(const struct sgp_csv *csv, size_t index);

/* The first record: the names of the columns, all different. */
struct sgp_csv_header {
    char **names;
    uint32_t count;
};
int sgp_csv_header_read(
    struct sgp_csv *csv, struct sgp_error *error, struct sgp_csv_header *ret_header);
void sgp_csv_header_finish(struct sgp_csv_header *header);

/* The column of a name, or SGP_E_DATA with the columns there are; and with those of the scaling, if the name is from
 * there (else NULL). */
int64_t sgp_csv_header_find(const struct sgp_csv_header *header, const struct sgp_csv *csv,
    const char *name, const struct sgp_scaling *scaling, struct sgp_error *error);

/* sgp_csv_next, with as many fields as there are names. */
int sgp_csv_row(struct sgp_csv *csv, const struct sgp_csv_header *header, struct sgp_error *error);

/* The reader of sgp_dataset_read_csv and of sgp_scaling_compute on open files. */
int sgp_csv_read_dataset(FILE *file, const char *name, const struct sgp_csv_options *options,
    struct sgp_error *error, struct sgp_dataset **ret_dataset);
/* The same rows in blocks of at most `block_rows`: `take` gets each, and keeps nothing of it; a
 * negative code of it ends the reading, with *error filled. */
typedef int sgp_csv_take(void *context, const struct sgp_dataset *block, struct sgp_error *error);
int sgp_csv_read_blocks(FILE *file, const char *name, const struct sgp_csv_options *options,
    uint64_t block_rows, sgp_csv_take *take, void *context, struct sgp_error *error);
int sgp_csv_compute_scaling(FILE *file, const char *name, const char *label,
    struct sgp_error *error, struct sgp_scaling **ret_scaling);

/* What a field says: a finite number (true), or not. Blanks around it are fine. */
bool sgp_csv_number(const char *field, double *ret_number);
/* Empty, NA, NaN, nan or ?, blanks around it aside. */
bool sgp_csv_missing(const char *field);

#endif
