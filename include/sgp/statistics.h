/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a table that add up over machines: the scaling of all rows, without the rows.
 *
 * Each node reads its own table and tells one text. The scaling follows from the texts of all nodes
 * alone, so every node that has them computes the same. Of a column of numbers the count, the sum
 * and the sum of squares are told, as integers of multiples of 2^-192 and 2^-384. They have no
 * rounding, so the result depends on the rows alone. It is the same to the bit for any way to
 * divide the rows among nodes.
 *
 * A text is one line of JSON in printable ASCII, of at most SGP_STATISTICS_MAX bytes:
 *
 *     {"sgp_statistics":1,"rows":400,
 *      "labels":[["y","classes",{"no":171,"yes":129}]],
 *      "columns":[["age","numbers",398,"4c9a...","1f03..."],
 *                 ["colour","values",["blue","red"]],
 *                 ["zip","words"]]}
 *
 *     ["age", "numbers", N, S, Q]   count, sum and sum of squares; S and Q are hexadecimal, in
 *                                   multiples of 2^-192 and 2^-384
 *     ["colour", "values", [...]]   the values that at least `min_count` rows have
 *     ["y", "classes", {...}]       of a label: the same, and how many rows have each
 *     ["zip", "words"]              a column of numbers that holds text; no node can use it
 *
 * Fewer than `min_count` numbers of a column are told as count 0, because a sum of few numbers
 * tells the numbers. A text tells no more of a table than this.
 *
 * Any thread; nothing here keeps state. */
#ifndef SGP_STATISTICS_H
#define SGP_STATISTICS_H

#include "sgp/description.h"
#include "sgp/measures.h"

#define SGP_STATISTICS_MAX (2u * 1024u * 1024u) /* bytes of a text: some 6,000 columns */
#define SGP_STATISTICS_MIN_COUNT 10u
#define SGP_STATISTICS_NODES_MAX 65536u
#define SGP_STATISTICS_BYTES_MAX ((size_t)64 << 20) /* of the values counted while reading */

enum sgp_statistics_kind {
    SGP_STATISTICS_NUMBERS = 1,
    SGP_STATISTICS_VALUES,
    SGP_STATISTICS_CLASSES, /* only of a label */
    SGP_STATISTICS_WORDS,
};

/* "numbers", "values", "classes", "words". Static storage. */
const char *sgp_statistics_kind_name(enum sgp_statistics_kind kind);

/* What is told of a column, and below what is not. */
struct sgp_statistics_column {
    char *name;
    enum sgp_statistics_kind kind;
    uint64_t
        count; /* of the numbers in the sums, or rows of the told values (in texts: of classes) */
    uint32_t sum[SGP_WIDE_SUM_LIMBS];
    uint32_t squares[SGP_WIDE_SQUARES_LIMBS];
    /* VALUES: in the order of bytes. CLASSES: numbers in their order, then text in that of bytes */
    struct sgp_column_value *values;
    uint32_t value_count;

    uint64_t present;     /* rows with a value */
    uint32_t held_values; /* different values that too few rows have to be told */
    uint64_t held_rows;   /* rows that have those, or too few numbers to be told */
    uint64_t stray_line;  /* WORDS: the first line that holds text, and this text, cut */
    char stray_text[SGP_DESCRIPTION_STRAY_BYTES];
};

struct sgp_statistics {
    uint64_t rows;
    struct sgp_statistics_column *columns; /* the features, in the order of the file */
    uint32_t column_count;
    struct sgp_statistics_column *labels; /* in the order in which `label` names them */
    uint32_t label_count;
};

struct sgp_statistics_options {
    const char *label;      /* as in struct sgp_csv_options; NULL: none */
    bool classes;           /* the label holds classes; else label columns hold numbers */
    const char *categories; /* columns of words, separated by commas; NULL: none */
    const char *ignore;     /* columns that are neither told nor features; NULL: none */
    uint32_t min_count;     /* 0: SGP_STATISTICS_MIN_COUNT */
};

/* Read a CSV file once, as sgp_dataset_read_csv does. A name in `categories` or `ignore` need not
 * be a column of the file. Missing values are not counted. Classes that are numbers are written in
 * their shortest form: 0.0 is the class 0. Errors are `FILE:LINE: ...`: SGP_E_DATA, SGP_E_LIMIT,
 * SGP_E_CONFIG, -ENOMEM, -errno. The caller destroys *ret_statistics. */
int sgp_statistics_read(const char *path, const struct sgp_statistics_options *options,
    struct sgp_error *error, struct sgp_statistics **ret_statistics);

/* Free; NULL is fine. */
void sgp_statistics_destroy(struct sgp_statistics *statistics);

/* A column or label of kind WORDS as one line for the log of its own node: FILE:LINE, the text, the
 * remedy. */
void sgp_statistics_explain(const struct sgp_statistics_column *column, bool label,
    const char *path, struct sgp_error *ret_line);

/* The text that the node tells. `path` begins messages. The caller frees it. SGP_E_DATA if a name
 * or a value is not UTF-8, SGP_E_LIMIT if the text is too long, -ENOMEM. */
int sgp_statistics_text(const struct sgp_statistics *statistics, const char *path,
    struct sgp_error *error, char **ret_text);

/* The scaling of the tables of 1 <= count <= SGP_STATISTICS_NODES_MAX nodes (asserted), with their
 * texts and names in the order of the topology file. Its columns are those of the first node, in
 * its order. The mean is sum / count, the deviation is sqrt(count * squares - sum^2) / count, and 1
 * if all numbers are equal. Labels of numbers become its targets in the same way. *ret_text is a
 * scaling file of one line of printable ASCII, of at most SGP_STATISTICS_MAX bytes, which the
 * caller frees. It has further keys:
 *
 *     "rows": 700
 *     "classes": {"no": 371, "yes": 329}    numbers first, then text, in order; with classes only
 *     "members": {"n0": 400, "n1": 300}     the rows of each node
 *
 * Texts are not trusted. An error is one line that names a node: SGP_E_DATA (the columns do not fit
 * together, or a text is malformed), SGP_E_LIMIT, -ENOMEM. Errors other than the last depend on the
 * arguments alone. Memory is that of one text read as JSON, at most 80 times its bytes, and of the
 * result. */
int sgp_statistics_combine(const char *const *texts, const char *const *names, uint32_t count,
    struct sgp_error *error, struct sgp_scaling **ret_scaling, char **ret_text);

#endif
