/* SPDX-License-Identifier: Apache-2.0 */
/* The CSV reader: reads RFC 4180 records from a source, one at a time. Owns the text of the present
 * record. It knows neither numbers nor the meaning of columns. */
#ifndef SGP_TRAIN_CSV_H
#define SGP_TRAIN_CSV_H

#include <stdio.h>

#include "sgp/dataset.h"
#include "source.h"

#define SGP_CSV_RECORD_BYTES_MAX ((size_t)1 << 26) /* all fields of a record, terminated by zeros */

struct sgp_csv {
    struct sgp_source source;
    uint64_t line;     /* where the record begins; 1 is the file's first line */
    uint64_t line_end; /* the present line: a quoted field may contain line ends */
    char *text;        /* the fields, each with its terminating zero */
    size_t text_size;
    size_t text_capacity;
    size_t *fields; /* offsets into text */
    size_t field_count;
    size_t field_capacity;
};

/* Returns 0, -ENOMEM, -errno, SGP_E_DATA. The caller still owns the file and the name. */
int sgp_csv_init(struct sgp_csv *csv, FILE *file, const char *name, struct sgp_error *error);
void sgp_csv_finish(struct sgp_csv *csv);

/* Read the next record that is not an empty line: 1, 0 at the end of the file, or a negative code
 * with one line in *error. */
int sgp_csv_next(struct sgp_csv *csv, struct sgp_error *error);

/* Field `index` of the present record; valid until the next record is read. */
const char *sgp_csv_field(const struct sgp_csv *csv, size_t index);

/* The first record: the names of the columns, all different. */
struct sgp_csv_header {
    char **names;
    uint32_t count;
};
int sgp_csv_header_read(
    struct sgp_csv *csv, struct sgp_error *error, struct sgp_csv_header *ret_header);
void sgp_csv_header_finish(struct sgp_csv_header *header);

/* The index of the column with a name, or SGP_E_DATA with the existing columns. */
int64_t sgp_csv_header_find(const struct sgp_csv_header *header, const struct sgp_csv *csv,
    const char *name, struct sgp_error *error);
/* The names of the columns as one text, which may end in "...". */
void sgp_csv_header_list(const struct sgp_csv_header *header, char *list, size_t bytes);

/* As sgp_csv_next. The row must have as many fields as there are names. */
int sgp_csv_row(struct sgp_csv *csv, const struct sgp_csv_header *header, struct sgp_error *error);

/* The reader of sgp_dataset_read_csv and of sgp_scaling_compute on open files. */
int sgp_csv_read_dataset(FILE *file, const char *name, const struct sgp_csv_options *options,
    struct sgp_error *error, struct sgp_dataset **ret_dataset);
/* Report that line `line` has a row too many for one dataset. Returns SGP_E_LIMIT. */
int sgp_csv_too_many(const char *name, uint64_t line, struct sgp_error *error);
/* Read the same rows in blocks of at most `block_rows`, and of at most 4 MiB of features. `take`
 * receives each block, which it must not keep, and the line of its last row. If `take` returns a
 * negative code with *error filled, the reading ends. If a row is wrong, `take` receives the rows
 * before it first. */
typedef int sgp_csv_take(
    void *context, const struct sgp_dataset *block, uint64_t line, struct sgp_error *error);
int sgp_csv_read_blocks(FILE *file, const char *name, const struct sgp_csv_options *options,
    uint64_t block_rows, sgp_csv_take *take, void *context, struct sgp_error *error);
int sgp_csv_compute_scaling(FILE *file, const char *name, const char *label, const char *ignore,
    struct sgp_error *error, struct sgp_scaling **ret_scaling);

/* Read a field as a finite number; false if it is not one. Blanks around it are allowed. */
bool sgp_csv_number(const char *field, double *ret_number);
/* Whether a field is missing: empty, NA, NaN, nan or ?, apart from blanks around it. */
bool sgp_csv_missing(const char *field);

#endif
