/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to train on: their source, their scaling, and which of them a node owns.
 *
 * A dataset is a table of `rows` rows with `features` float32 numbers each, and their targets. The
 * targets of a row are a label in [0, classes), or `targets` float32 values (classes = 0). Such
 * values are numbers, or are 0 and 1. Image data stays as bytes, and becomes x / 255 only when rows
 * are gathered. So 60,000 images of 784 pixels take 47 MB. A dataset is immutable, and any thread
 * may read it.
 *
 * All input is untrusted until checked. A dimension is accepted only as far as bytes really follow.
 * If an input exceeds a limit below, it is refused, and the error names the limit. An error is one
 * line: `FILE:LINE: ...` for text, and `FILE: byte N: ...` for binary files. Files may be gzip,
 * which is detected from their first bytes. All functions may block on files; none keeps a file
 * open. */
#ifndef SGP_DATASET_H
#define SGP_DATASET_H

#include "sgp/shape.h"
#include "sgp/sink.h"
#include "sgp/status.h"

#define SGP_ROWS_MAX UINT32_MAX                /* rows of a dataset: an index is 32 bits */
#define SGP_FEATURES_MAX (1u << 22)            /* numbers of a row */
#define SGP_CLASSES_MAX 65536u                 /* labels of a classification */
#define SGP_DATA_BYTES_MAX ((uint64_t)1 << 36) /* of one table in memory (64 GiB) */
#define SGP_COLUMNS_MAX 65536u                 /* columns of a CSV file */
#define SGP_CATEGORIES_MAX 4096u               /* values of a categorical column */
#define SGP_FIELD_BYTES_MAX 65536u             /* of one CSV field, unquoted */
#define SGP_SCALING_BYTES_MAX (64u << 20)      /* of a scaling file */

/* How the numbers of a label column are scaled: a model learns (y - mean) / deviation, and its
 * output o stands for mean + deviation * o. */
struct sgp_target_scale {
    char *name; /* of the column */
    double mean;
    double deviation; /* > 0 */
};

struct sgp_dataset {
    uint64_t rows;
    uint32_t features;
    struct sgp_shape shape; /* of a row: IDX rows are images, others are flat */
    uint32_t classes;       /* 0: the rows carry values */
    uint32_t targets; /* outputs per row; 1 for classes; 0 if the rows have no labels (predict) */
    bool scaled_targets; /* the values are scaled by the targets of a scaling */

    /* The members below are private. Exactly one of bytes and floats is set, and at most one of
     * labels and values. Each has `rows` rows: features have `features` elements, labels 1, and
     * values `targets`. */
    uint8_t *bytes;
    float *floats;
    uint32_t *labels;
    float *values;
    /* The mapped file in which `floats` are; NULL: in memory. Other tables may share it. Then row r
     * of this table is row picked[r] of `floats`, or row r if picked is NULL. */
    struct sgp_mapping *mapping;
    uint32_t *picked;
    /* of the features, each with its zero; NULL: the features have no names, or are scaled */
    char *names;
    uint64_t classes_digest;
    uint64_t scaling_digest;
};

/* Copy a table from memory. `features` is rows x `feature_count`. The caller passes `labels` (rows)
 * for classes > 0, or `values` (rows x targets) for classes = 0 and targets > 0. The other pointer
 * is NULL. Returns:
 *
 *   0
 *   SGP_E_DATA: a label is not below classes, or rows or features are 0
 *   SGP_E_NOT_FINITE: a feature or value is not finite
 *   SGP_E_LIMIT, -ENOMEM */
int sgp_dataset_create_memory(const float *features, const uint32_t *labels, const float *values,
    uint64_t rows, uint32_t feature_count, uint32_t classes, uint32_t targets,
    struct sgp_dataset **ret_dataset);

/* Whether all features of all rows are whole numbers below `bound`. A byte counts as its own
 * number, not as x / 255. If the answer is false, *ret_row and *ret_value hold the first feature
 * that is not. */
bool sgp_dataset_is_whole(
    const struct sgp_dataset *dataset, uint32_t bound, uint64_t *ret_row, float *ret_value);

/* Free a dataset; NULL is fine. */
void sgp_dataset_destroy(struct sgp_dataset *dataset);

/* Collect `count` rows into a batch: features[count x features], labels[count] and values[count x
 * targets]. Labels and values may be NULL, and are not written if the dataset has none. Every index
 * is below `rows` (asserted). Bytes become x / 255. The further indices[count .. count + following)
 * may name rows that are needed next. The first of these rows are prefetched. Does not allocate;
 * any thread. */
void sgp_dataset_gather(const struct sgp_dataset *dataset, float *features, uint32_t *labels,
    float *values, const uint32_t *indices, size_t count, size_t following);

/* A new dataset of the named rows, in that order. The original may be destroyed. Rows are copied,
 * but features in a mapped file stay there, and take 4 bytes a row. count >= 1; every index is
 * below `rows` (asserted). Returns 0 or -ENOMEM. */
int sgp_dataset_subset(const struct sgp_dataset *dataset, const uint32_t *indices, uint64_t count,
    struct sgp_dataset **ret_dataset);

/* Hold out floor(fraction * rows) rows for evaluation, drawn with (seed, stream). If fraction > 0
 * and there are two rows or more, at least one row is held out. 0 <= fraction < 1 (asserted).
 * *ret_held is NULL if nothing is held out. Both parts keep the order of the rows. Returns 0 or
 * -ENOMEM. */
int sgp_dataset_split(const struct sgp_dataset *dataset, double fraction, uint64_t seed,
    uint64_t stream, struct sgp_dataset **ret_kept, struct sgp_dataset **ret_held);

/* Digests that peers compare in HELLO. Equal class digests mean the same labels with the same
 * names, in the same order. The names of unnamed classes are their numbers. For several label
 * columns, or columns of 0 and 1, equal class digests mean the same columns. Equal scaling digests
 * mean the same features in the same order, scaled by the same numbers, and values that are scaled
 * by the same numbers, or not at all. */
uint64_t sgp_dataset_classes_digest(const struct sgp_dataset *dataset);
uint64_t sgp_dataset_scaling_digest(const struct sgp_dataset *dataset);

/* The bytes of memory that the rows of a dataset take, without those in a mapped file. */
uint64_t sgp_dataset_memory(const struct sgp_dataset *dataset);

/* The bytes of the mapped file in which rows lie; 0: there is none. */
uint64_t sgp_dataset_mapped(const struct sgp_dataset *dataset);

/* Digest of the numbers and labels of all rows, in their order. Equal tables have equal digests on
 * every machine. Never 0. */
uint64_t sgp_dataset_digest(const struct sgp_dataset *dataset);

/* The unscaled columns with the largest magnitude in any row, and with the smallest above 0. The
 * dataset owns the names. Both are NULL if there are no unscaled columns, or if these hold only
 * zeros. Returns 0 or -ENOMEM. */
struct sgp_reach {
    const char *widest;
    const char *narrowest;
    float most;  /* the magnitude of the widest */
    float least; /* that of the narrowest */
};
int sgp_dataset_reach(const struct sgp_dataset *dataset, struct sgp_reach *ret_reach);

/* The largest magnitude of a value that a row carries; 0 without values. */
float sgp_dataset_targets_reach(const struct sgp_dataset *dataset);

/* ---- IDX (the format of MNIST and its descendants) ------------------------------------------- */

/* Read rows of unsigned bytes and their labels. The rows have two dimensions or more; all but the
 * first are flattened to features. With three dimensions a row is an image of height x width, with
 * four of channels x height x width, else flat. The labels are unsigned bytes in one dimension, as
 * many as rows. If label_path is NULL, the rows have no labels. class_names holds class_count names
 * in label order. If class_names is NULL, class_count is the number of classes. With class_count 0
 * that number is the greatest label + 1. Then every node must own every label, so a stated number
 * is better. Returns 0; SGP_E_DATA, SGP_E_LIMIT, -ENOMEM or -errno with *error set. */
int sgp_dataset_read_idx(const char *path, const char *label_path, const char *const *class_names,
    uint32_t class_count, struct sgp_error *error, struct sgp_dataset **ret_dataset);

/* ---- CSV ------------------------------------------------------------------------------------- */

enum sgp_missing {
    SGP_MISSING_ERROR = 1, /* a missing value is an error */
    SGP_MISSING_DROP,      /* the row is dropped */
    SGP_MISSING_MEAN,      /* the scaling file's mean, or no category set; needs a scaling file */
};

/* How to read the columns of a CSV file so that all nodes agree: JSON, UTF-8,
 *
 *     {"sgp_scaling": 1, "columns": [
 *         {"name": "age", "mean": 38.5, "deviation": 13.6},
 *         {"name": "colour", "values": ["blue", "green", "red"]}]}
 *
 * The named columns are the features, in this order, whatever the order in the CSV file. Other
 * columns are not used. A column with mean and deviation (> 0) becomes (x - mean) / deviation. A
 * column with values becomes one feature per value: 1 for the row's own value and 0 for the others.
 *
 * A file of format 2 also says how label columns of numbers are scaled, in their order:
 *
 *     {"sgp_scaling": 2, "columns": [...], "targets": [
 *         {"name": "price", "mean": 152.1, "deviation": 77.0}]}
 *
 * Several label columns must be those that it names, in its order. One label column may have
 * another name. Label columns of classes, or of 0 and 1 (`bits`), are never scaled. With format 1
 * no label column is. Further keys are not read. */
struct sgp_scaling;

/* Read and check a scaling file. SGP_E_DATA, SGP_E_LIMIT, -ENOMEM, -errno. */
int sgp_scaling_read(const char *path, struct sgp_error *error, struct sgp_scaling **ret_scaling);

/* Compute a scaling from a CSV file, in its order of columns, without the label columns and those
 * to ignore. A column whose present values are all numbers gets their mean and population
 * deviation. The deviation is 1 if all values are equal. Any other column gets its distinct values,
 * sorted. If all label columns hold numbers alone, the scaling has them as targets. Run this once,
 * on all the data, and copy the file to every node. `label` and `ignore` are as the label in struct
 * sgp_csv_options, or NULL. Errors as sgp_dataset_read_csv. */
int sgp_scaling_compute(const char *csv_path, const char *label, const char *ignore,
    struct sgp_error *error, struct sgp_scaling **ret_scaling);

/* Write a scaling to path, and replace the file atomically. Reading it gives the same bits. -errno,
 * -ENOMEM. */
int sgp_scaling_write(const struct sgp_scaling *scaling, const char *path, struct sgp_error *error);

/* The columns of a scaling as a file of format 1 in one line, without its targets. The caller frees
 * the text. `where` begins messages. SGP_E_DATA if a name or value is not UTF-8, -ENOMEM. */
int sgp_scaling_columns_text(
    const struct sgp_scaling *scaling, const char *where, struct sgp_error *error, char **ret_text);

/* The columns of a dataset that was read without a scaling file, as a scaling that leaves numbers
 * unchanged. *ret_scaling is NULL if the columns have no names. Errors as sgp_scaling_read. */
int sgp_dataset_columns(
    const struct sgp_dataset *dataset, struct sgp_error *error, struct sgp_scaling **ret_scaling);

/* How many features the columns of a scaling make. */
uint32_t sgp_scaling_features(const struct sgp_scaling *scaling);

/* How label columns of numbers are scaled, in their order; the scaling owns it. NULL and 0: the
 * scaling says nothing of them. */
const struct sgp_target_scale *sgp_scaling_targets(
    const struct sgp_scaling *scaling, uint32_t *ret_count);

/* The names of a scaling's columns, in the order of the features, separated by ", ". If the text
 * has no room for all, it ends in "...". */
void sgp_scaling_columns(const struct sgp_scaling *scaling, char *ret_text, size_t bytes);

/* Free; NULL is fine. */
void sgp_scaling_destroy(struct sgp_scaling *scaling);

/* What nodes that have agreed on a scaling tolerate, since a value or a class of few rows is not
 * told to others. */
struct sgp_csv_agreed {
    /* The classes that some node has told. If there are any, a row of another class that
     * `class_names` does not name is left out. */
    const char *const *classes;
    uint32_t class_count;
    uint64_t left_out;      /* out: these rows, */
    uint64_t left_out_line; /* out: and the line of the first of them */
    uint64_t strange;       /* out: values that the scaling does not name; their features are 0 */
};

struct sgp_csv_options {
    /* Name of the label column; NULL: rows without labels. Several names, separated by commas, make
     * as many values in this order. A name that contains a comma must be in "quotes", in which a
     * quote is written twice. */
    const char *label;
    /* the label's values in label order; NULL: label columns hold numbers */
    const char *const *class_names;
    uint32_t class_count;              /* 0 for numbers */
    bool bits;                         /* the numbers of the label columns are 0 or 1 */
    const struct sgp_scaling *scaling; /* NULL: every other column is a number, used unscaled */
    /* One for each label column of numbers, in their order, whatever the scaling has. NULL: those
     * of the scaling, if it has any. */
    const struct sgp_target_scale *target_scales;
    enum sgp_missing missing;
    /* The rows are for a trained model. If some label columns are missing, all are left out.
     * Messages name the model instead of the configuration. */
    bool for_model;
    struct sgp_csv_agreed *agreed; /* NULL: the scaling is none on which nodes have agreed */
};

/* Read a CSV file as in RFC 4180: comma, "quotes" with "" for a quote, CRLF or LF. The first line
 * names the columns. A UTF-8 byte order mark and empty lines are skipped. A field is missing if it
 * is empty or one of NA, NaN, nan, ?. A missing label is an error, or with SGP_MISSING_DROP its row
 * is dropped. Blanks may surround numbers, and labels whose classes are numbers: 0.0 is the class
 * 0. Errors are `FILE:LINE: column 'C': ...`: SGP_E_DATA, SGP_E_LIMIT, -ENOMEM, -errno. */
int sgp_dataset_read_csv(const char *path, const struct sgp_csv_options *options,
    struct sgp_error *error, struct sgp_dataset **ret_dataset);

/* ---- Shards ---------------------------------------------------------------------------------- */

enum sgp_shard_kind {
    SGP_SHARD_ROUND_ROBIN = 1, /* row r belongs to node r mod n */
    SGP_SHARD_CONTIGUOUS,      /* n pieces of the file, whose sizes differ by at most one row */
    /* contiguous pieces of the rows sorted by label (stable): heterogeneous nodes */
    SGP_SHARD_SORTED,
    SGP_SHARD_DIRICHLET, /* per class, node shares drawn from Dirichlet(alpha) */
    SGP_SHARD_NONE,      /* every node has its own files, and owns all their rows */
};

struct sgp_shards {
    enum sgp_shard_kind kind;
    double alpha; /* for SGP_SHARD_DIRICHLET: > 0; small: heterogeneous, large: homogeneous nodes */
};

/* Parse round-robin, contiguous, sorted, dirichlet:A or none. Otherwise SGP_E_CONFIG and one
 * line. */
int sgp_shards_parse(const char *text, struct sgp_error *error, struct sgp_shards *ret_shards);

/* The text of the shards, for people: A has six digits. */
#define SGP_SHARDS_TEXT_BYTES 40u
void sgp_shards_text(const struct sgp_shards *shards, char text[SGP_SHARDS_TEXT_BYTES]);

/* The rows of a node: ascending indices in *ret_rows (caller frees with free()), *ret_count >= 1 of
 * them. Over all nodes with the same (shards, labels, seed) each row appears exactly once. Every
 * machine computes the same rows, because only integers and exactly rounded arithmetic are used.
 * `labels` (rows, each below classes) may be NULL for kinds that do not read them. The Dirichlet
 * split is drawn as a Polya urn (Blackwell and MacQueen, 1973), whose counts are
 * Dirichlet-multinomial. The urn needs no logarithm, and no rounding of proportions. node_index <
 * node_count (asserted). With *error set, SGP_E_DATA if a node would have no row, SGP_E_CONFIG if a
 * kind needs labels that are absent; -ENOMEM. */
int sgp_shard_rows(const struct sgp_shards *shards, const uint32_t *labels, uint64_t rows,
    uint32_t classes, uint32_t node_index, uint32_t node_count, uint64_t seed,
    struct sgp_error *error, uint32_t **ret_rows, uint64_t *ret_count);

/* The owner of every row, ret_owners[rows], for all nodes at once. It is the division that
 * sgp_shard_rows makes, but a node may be without a row. Any kind but SGP_SHARD_NONE (asserted).
 * With *error set, SGP_E_DATA if there are fewer rows than nodes, SGP_E_CONFIG if a kind needs
 * labels that are absent; -ENOMEM. */
int sgp_shard_owners(const struct sgp_shards *shards, const uint32_t *labels, uint64_t rows,
    uint32_t classes, uint32_t node_count, uint64_t seed, struct sgp_error *error,
    uint32_t *ret_owners);

/* ---- All of [data] --------------------------------------------------------------------------- */

/* Where the rows of large CSV files are kept once they are parsed: DIRECTORY/train.rows and
 * DIRECTORY/test.rows. One process at a time may use a directory with `keep`. */
struct sgp_data_cache {
    const char *directory;
    bool keep;            /* false: use a file that is there; a new one has no name and vanishes */
    uint64_t least_bytes; /* of a CSV file; smaller ones are read into memory */
    const struct sgp_sink *sink; /* progress, and why a file was made anew; NULL: nowhere */
};
#define SGP_DATA_CACHE_LEAST_BYTES ((uint64_t)16 << 20)

/* Remove such files, for a node whose tables are small now. */
void sgp_data_cache_clear(const char *directory);

/* The section [data] of a configuration. NULL or 0: not given. With `label` (a column) the data is
 * CSV, with `labels` (a file) IDX. */
struct sgp_data_options {
    const char *train;
    const char *labels;
    const char *test;
    const char *test_labels;
    const char *label;
    bool bits; /* of label columns, see struct sgp_csv_options */
    const char *const *class_names;
    uint32_t class_count; /* with class_names NULL: their number (IDX), 0 = from the labels */
    const struct sgp_scaling *scaling; /* NULL: numbers are not scaled; borrowed */
    struct sgp_csv_agreed *agreed;     /* see struct sgp_csv_options; its counts begin at 0 */
    enum sgp_missing missing;          /* 0 means SGP_MISSING_ERROR */
    struct sgp_shards shards;          /* kind 0 means round-robin */
    double holdout; /* of the node's own rows, in [0, 1); used only without `test` */
    uint32_t node_index;
    uint32_t node_count;
    uint64_t seed;                      /* of the fleet; it determines the shards */
    const struct sgp_data_cache *cache; /* NULL: all rows are read into memory */
};

struct sgp_data {
    struct sgp_dataset *train; /* this node's rows */
    struct sgp_dataset *test;  /* NULL: there are no rows to evaluate on */
    uint64_t file_rows;        /* of the training file, without the dropped rows */
    uint64_t own_rows;         /* this node's part of file_rows, held-out rows included */
    uint64_t digest;           /* of all rows of the file as read; 0 if the node keeps all rows */
    uint64_t cache_bytes;      /* on disk, of the files of rows that are in use */
};

/* Read the files that the options name, keep the rows of this node, and hold out or read the
 * evaluation rows. The training file is read whole; then only the node's rows stay in memory. Rows
 * of a large CSV file stay in the cache, and memory holds their targets alone. The caller destroys
 * both tables. Errors are those of the readers. SGP_E_CONFIG means that options contradict each
 * other. *error is set. */
int sgp_data_load(
    const struct sgp_data_options *options, struct sgp_error *error, struct sgp_data *ret_data);

#endif
