/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a CSV file: its columns, what they hold, and what looks wrong.
 *
 * The file is read once, plain or gzip, by the reader of sgp_dataset_read_csv. Memory is that of
 * one record and of the kept values, SGP_DESCRIPTION_BYTES_MAX for all columns together. Blocks on
 * the file; any thread. */
#ifndef SGP_DESCRIPTION_H
#define SGP_DESCRIPTION_H

#include "sgp/dataset.h"

#include <stdio.h>

#define SGP_DESCRIPTION_BYTES_MAX ((size_t)64 << 20) /* of kept values; columns share it equally */
#define SGP_DESCRIPTION_STRAY_BYTES 48u              /* of the first stray text, cut */
#define SGP_IDENTIFIER_ROWS 10u /* fewer values without a repetition say nothing */
#define SGP_NUMBER_CLASSES 20u  /* most classes that a column of whole numbers is taken for */

/* What a column holds. The kinds are tried in this order, and only present values count. */
enum sgp_column_kind {
    SGP_COLUMN_EMPTY = 1,  /* no value in any row */
    SGP_COLUMN_CONSTANT,   /* one value in all rows */
    SGP_COLUMN_IDENTIFIER, /* SGP_IDENTIFIER_ROWS values or more: whole numbers, each one above the
                              one before; or text that never repeats */
    SGP_COLUMN_NUMBER,     /* numbers; at most one value in ten is stray text */
    SGP_COLUMN_CATEGORY,   /* text, and all its values are kept */
    SGP_COLUMN_TEXT,       /* text of more values than are kept */
};

/* "empty", "constant", "identifier", "number", "category", "text". Static storage. */
const char *sgp_column_kind_name(enum sgp_column_kind kind);

struct sgp_column_value {
    char *text; /* a number in its shortest form, so that 0.0 is 0; text as in the file */
    uint64_t rows;
};

struct sgp_column {
    char *name;
    enum sgp_column_kind kind;
    uint64_t present, missing; /* rows with and without a value, as sgp_dataset_read_csv says */
    uint64_t missing_line;     /* the first line without a value; 0: none */
    uint64_t numbers;          /* rows whose value is a number */
    uint64_t wholes;           /* rows whose value is a whole number */
    /* of the numbers, if there is one; the population deviation */
    double least, most, mean, deviation;
    /* of a column of kind number: rows whose value is text, and the first of them */
    uint64_t stray, stray_line;
    char stray_text[SGP_DESCRIPTION_STRAY_BYTES];
    /* The different values: numbers in their order, then text in the order of its bytes. If `many`,
     * there were more than SGP_CATEGORIES_MAX, or more than the column's part of memory holds.
     * Then these are the first ones, and their rows are not counted to the end. */
    struct sgp_column_value *values;
    uint32_t value_count;
    bool many;
    bool repeats; /* a value has been seen twice. If `many`, only kept values are looked at */
};

struct sgp_description {
    uint64_t rows;
    uint32_t column_count;
    struct sgp_column *columns; /* in the order of the file */
};

/* Read an open file to its end. `name` begins messages, `NAME:LINE: ...`. Errors as
 * sgp_dataset_read_csv; a file without rows is SGP_E_DATA. The caller destroys *ret_description. */
int sgp_description_read(FILE *file, const char *name, struct sgp_error *error,
    struct sgp_description **ret_description);

/* Free; NULL is fine. */
void sgp_description_destroy(struct sgp_description *description);

/* The column of that name; NULL: there is none. */
const struct sgp_column *sgp_description_find(
    const struct sgp_description *description, const char *name);

/* Whether the values of a column are taken for classes if it is the label: those of a category are.
 * Whole numbers are if there are at most SGP_NUMBER_CLASSES, each in five rows on average. */
bool sgp_column_is_classes(const struct sgp_column *column);

/* Whether a column says nothing, or cannot be used, as a feature: empty, constant, an identifier,
 * or text of too many values. */
bool sgp_column_is_useless(const struct sgp_column *column);

#endif
