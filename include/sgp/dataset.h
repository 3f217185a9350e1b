/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to train on: where they come from, how they are scaled, and which of them a node owns.
 *
 * A dataset is a table of `rows` rows with `features` float32 numbers each and what is to be learnt
 * from them: one label in [0, classes), or `targets` float32 values (classes = 0), which are
 * numbers, or 0 and 1.
 * Image data stays as bytes and is widened to x / 255 only when rows are gathered, so that 60,000
 * images of 784 pixels take 47 MB. A dataset is immutable once made and may be read by any thread.
 *
 * Everything read here is hostile until checked: dimensions are believed only as far as bytes
 * really follow, every limit below is refused by name, and an error is one line, `FILE:LINE: ...`
 * for text and `FILE: byte N: ...` for binary files. Files may be gzip; that is seen from their
 * first bytes. All functions may block on files; none keeps a file open. */
#ifndef SGP_DATASET_H
#define SGP_DATASET_H

#include "sgp/shape.h"
#include "sgp/status.h"

#define SGP_ROWS_MAX UINT32_MAX                /* rows of a dataset: an index is 32 bits */
#define SGP_FEATURES_MAX (1u << 22)            /* numbers of a row */
#define SGP_CLASSES_MAX 65536u                 /* labels of a classification */
#define SGP_DATA_BYTES_MAX ((uint64_t)1 << 36) /* of one table in memory (64 GiB) */
#define SGP_COLUMNS_MAX 65536u                 /* columns of a CSV file */
#define SGP_CATEGORIES_MAX 4096u               /* values of a categorical column */
#define SGP_FIELD_BYTES_MAX 65536u             /* of one CSV field, unquoted */
#define SGP_SCALING_BYTES_MAX (64u << 20)      /* of a scaling file */

struct sgp_dataset {
    uint64_t rows;
    uint32_t features;
    struct sgp_shape shape; /* of a row: IDX rows are images, others are flat */
    uint32_t classes;       /* 0: the rows carry values */
    uint32_t targets; /* outputs per row; 1 for classes; 0 if the rows carry no labels (predict) */

    /* Private from here on. Exactly one of bytes and floats is set, and at most one of labels and
     * values: `rows` rows of `features`, 1 and `targets` elements. */
    uint8_t *bytes;
    float *floats;
    uint32_t *labels;
    float *values;
    char *names; /* of the features, each with its zero; NULL: they have none, or are scaled */
    uint64_t classes_digest;
    uint64_t scaling_digest;
};

/* Copy a table from memory. `features` is rows x `feature_count`; `labels` (rows) is given for
 * classes > 0, `values` (rows x targets) for classes = 0 and targets > 0; the other is NULL.
 * Returns 0; SGP_E_DATA if a label is not below classes or rows or features are 0;
 * SGP_E_NOT_FINITE if a feature or value is not finite; SGP_E_LIMIT; -ENOMEM. */
int sgp_dataset_create_memory(const float *features, const uint32_t *labels, const float *values,
    uint64_t rows, uint32_t feature_count, uint32_t classes, uint32_t targets,
    struct sgp_dataset **ret_dataset);

/* Whether all features of all rows are whole numbers below `bound`; bytes are the numbers that they
 * are. If not, the first that is none: its row, and its value. */
bool sgp_dataset_is_whole(
    const struct sgp_dataset *dataset, uint32_t bound, uint64_t *ret_row, float *ret_value);

/* Free a dataset; NULL is fine. */
void sgp_dataset_destroy(struct sgp_dataset *dataset);

/* Collect `count` rows into a batch: features[count x features], and, where not NULL and where the
 * dataset has them, labels[count] and values[count x targets]. Every index is below `rows`
 * (asserted). Bytes become x / 255. Behind them, indices[count .. count + following) may name rows
 * that are wanted next: the first of these are asked for already. Does not allocate; any thread. */
void sgp_dataset_gather(const struct sgp_dataset *dataset, float *features, uint32_t *labels,
    float *values, const uint32_t *indices, size_t count, size_t following);

/* A new dataset of copies of the named rows, in that order; the original may be destroyed.
 * count >= 1; every index is below `rows` (asserted). Returns 0 or -ENOMEM. */
int sgp_dataset_subset(const struct sgp_dataset *dataset, const uint32_t *indices, uint64_t count,
    struct sgp_dataset **ret_dataset);

/* Hold out floor(fraction * rows) rows, drawn with (seed, stream), for evaluation: at least one
 * if fraction > 0 and there are two rows or more. 0 <= fraction < 1 (asserted). *ret_held is NULL
 * when nothing is held out. Both parts keep the order of the rows. Returns 0 or -ENOMEM. */
int sgp_dataset_split(const struct sgp_dataset *dataset, double fraction, uint64_t seed,
    uint64_t stream, struct sgp_dataset **ret_kept, struct sgp_dataset **ret_held);

/* What peers compare in hello. Equal class digests: the same labels, in the same order, with the
 * same names (the names of unnamed classes are their numbers); or the same label columns,
 * if they are several or hold 0 and 1. Equal scaling digests: the same
 * features in the same order, scaled by the same numbers. */
uint64_t sgp_dataset_classes_digest(const struct sgp_dataset *dataset);
uint64_t sgp_dataset_scaling_digest(const struct sgp_dataset *dataset);

/* Equal for equal tables of rows: numbers and labels, in their order; the same on every machine. Never 0. */
uint64_t sgp_dataset_digest(const struct sgp_dataset *dataset);

/* The unscaled columns whose greatest magnitude in any row is the largest, and the smallest above 0. Names
 * belong to the dataset; both are NULL if it has no unscaled columns, or these hold nothing but zeros.
 * Returns 0 or -ENOMEM. */
struct sgp_reach {
    const char *widest;
    const char *narrowest;
    float most;  /* the magnitude of the widest */
    float least; /* that of the narrowest */
};
int sgp_dataset_reach(const struct sgp_dataset *dataset, struct sgp_reach *ret_reach);

/* ---- IDX (the format of MNIST and its descendants) ------------------------------------------- */

/* Read rows of unsigned bytes (two dimensions or more, all but the first flattened to features;
 * with three a row is an image of height x width, with four of channels x height x width, else
 * flat) and their labels (unsigned bytes, one dimension, as many as rows). label_path NULL: rows
 * without labels. class_names: class_count names in label order, or NULL with class_count the
 * number of classes, 0 for the greatest label + 1 (then every node must own every label: say it
 * instead). Returns 0; SGP_E_DATA, SGP_E_LIMIT, -ENOMEM or -errno with *error set. */
int sgp_dataset_read_idx(const char *path, const char *label_path, const char *const *class_names,
    uint32_t class_count, struct sgp_error *error, struct sgp_dataset **ret_dataset);

/* ---- CSV ------------------------------------------------------------------------------------- */

enum sgp_missing {
    SGP_MISSING_ERROR = 1, /* a missing value is an error */
    SGP_MISSING_DROP,      /* its row is left out */
    SGP_MISSING_MEAN,      /* the scaling file's mean; no category set; needs a scaling file */
};

/* How to read the columns of a CSV file so that all nodes agree: JSON, UTF-8,
 *
 *     {"sgp_scaling": 1, "columns": [
 *         {"name": "age", "mean": 38.5, "deviation": 13.6},
 *         {"name": "colour", "values": ["blue", "green", "red"]}]}
 *
 * The columns named are the features, in this order, whatever the order in the CSV file; a column
 * that is not named is not used. A column with mean and deviation (> 0) becomes
 * (x - mean) / deviation; one with values becomes one feature per value, 1 for the row's own and 0
 * for the others. Label columns are never scaled. */
struct sgp_scaling;

/* Read and check a scaling file. SGP_E_DATA, SGP_E_LIMIT, -ENOMEM, -errno. */
int sgp_scaling_read(const char *path, struct sgp_error *error, struct sgp_scaling **ret_scaling);

/* Compute one from a CSV file, in its order of columns, leaving out the label column: mean and
 * (population) deviation of columns in which every value present is a number (1 if all are equal),
 * the sorted distinct values of others. Run it once, on all the data, and copy the file to every
 * node. label is as in struct sgp_csv_options, or NULL. Errors as sgp_dataset_read_csv. */
int sgp_scaling_compute(const char *csv_path, const char *label, struct sgp_error *error,
    struct sgp_scaling **ret_scaling);

/* Write it, replacing path atomically; what is read back is equal to the bit. -errno, -ENOMEM. */
int sgp_scaling_write(const struct sgp_scaling *scaling, const char *path, struct sgp_error *error);

/* Its text, as a file of it has it, in `lines` or in one; malloc'd, the caller's. `where` begins
 * messages. SGP_E_DATA if a name or value is not UTF-8, -ENOMEM. */
int sgp_scaling_text(const struct sgp_scaling *scaling, bool lines, const char *where,
    struct sgp_error *error, char **ret_text);

/* The columns of a dataset that was read without a scaling file, as one that leaves numbers as
 * they are; *ret_scaling is NULL if they have no names. Errors as sgp_scaling_read. */
int sgp_dataset_columns(
    const struct sgp_dataset *dataset, struct sgp_error *error, struct sgp_scaling **ret_scaling);

/* The features that its columns make. */
uint32_t sgp_scaling_features(const struct sgp_scaling *scaling);

/* The names of its columns, in the order of the features, separated by ", "; a list that has no room ends in "...". */
void sgp_scaling_columns(const struct sgp_scaling *scaling, char *ret_text, size_t bytes);

/* Free; NULL is fine. */
void sgp_scaling_destroy(struct sgp_scaling *scaling);

struct sgp_csv_options {
    /* Name of the label column; NULL: rows without labels. Several, separated by commas, make as
     * many values in this order; a name with a comma in it stands in "quotes", in which a quote is
     * written twice. */
    const char *label;
    const char *const
        *class_names;     /* its values in label order; NULL: label columns hold numbers */
    uint32_t class_count; /* 0 for numbers */
    bool bits;            /* the numbers of the label columns are 0 or 1 */
    const struct sgp_scaling *scaling; /* NULL: every other column is a number, taken as it is */
    enum sgp_missing missing;
    /* The rows are for a model that has been trained: label columns that are not all there are
     * left out, and messages speak of the model in the place of the configuration. */
    bool for_model;
};

/* Read a CSV file as RFC 4180 has it: comma, "quotes" with "" for one, CRLF or LF, the first line
 * names the columns (a UTF-8 byte order mark is skipped, so are empty lines). Missing is a field
 * that is empty or one of NA, NaN, nan, ?. A missing label is an error, or dropped with SGP_MISSING_DROP.
 * Numbers may have blanks around them, and so may labels whose classes are numbers: 0.0 is the class 0.
 * Errors are `FILE:LINE: column 'C': ...`:
 * SGP_E_DATA, SGP_E_LIMIT, -ENOMEM, -errno. */
int sgp_dataset_read_csv(const char *path, const struct sgp_csv_options *options,
    struct sgp_error *error, struct sgp_dataset **ret_dataset);

/* ---- Shards ---------------------------------------------------------------------------------- */

enum sgp_shard_kind {
    SGP_SHARD_ROUND_ROBIN = 1, /* row r belongs to node r mod n */
    SGP_SHARD_CONTIGUOUS,      /* n pieces of the file, equal to a row */
    SGP_SHARD_SORTED,          /* the same of the rows sorted by label (stable): unlike nodes */
    SGP_SHARD_DIRICHLET,       /* per class, node shares drawn from Dirichlet(alpha) */
    SGP_SHARD_NONE,            /* every node has files of its own: all rows */
};

struct sgp_shards {
    enum sgp_shard_kind kind;
    double alpha; /* for SGP_SHARD_DIRICHLET: > 0; small is unlike, large is alike */
};

/* round-robin, contiguous, sorted, dirichlet:A or none; SGP_E_CONFIG and one line otherwise. */
int sgp_shards_parse(const char *text, struct sgp_error *error, struct sgp_shards *ret_shards);

/* The word again, for people: A with six digits. */
#define SGP_SHARDS_TEXT_BYTES 40u
void sgp_shards_text(const struct sgp_shards *shards, char text[SGP_SHARDS_TEXT_BYTES]);

/* The rows of a node: ascending indices in *ret_rows (caller frees with free()), *ret_count >= 1 of
 * them. Over all nodes of one (shards, labels, seed) each row appears exactly once, and every machine
 * computes the same: integers and exactly rounded arithmetic only. `labels` (rows, each below
 * classes) may be NULL for kinds that do not look at them. The Dirichlet split is drawn as a Polya
 * urn (Blackwell and MacQueen, 1973), whose counts are Dirichlet-multinomial: no logarithm, no
 * rounding of proportions. node_index < node_count (asserted). With *error set, SGP_E_DATA if a
 * node would have no row, SGP_E_CONFIG if a kind needs labels that are not there; -ENOMEM. */
int sgp_shard_rows(const struct sgp_shards *shards, const uint32_t *labels, uint64_t rows,
    uint32_t classes, uint32_t node_index, uint32_t node_count, uint64_t seed,
    struct sgp_error *error, uint32_t **ret_rows, uint64_t *ret_count);

/* ---- All of [data] --------------------------------------------------------------------------- */

/* The section [data] of a configuration. NULL or 0: not given. `label` (a column) makes it CSV,
 * `labels` (a file) IDX. */
struct sgp_data_options {
    const char *train;
    const char *labels;
    const char *test;
    const char *test_labels;
    const char *label;
    bool bits; /* of label columns, see struct sgp_csv_options */
    const char *const *class_names;
    uint32_t class_count;     /* with class_names NULL: their number (IDX), 0 = from the labels */
    const char *scale;        /* a scaling file; NULL or "none": numbers as they are */
    enum sgp_missing missing; /* 0 means SGP_MISSING_ERROR */
    struct sgp_shards shards; /* kind 0 means round-robin */
    double holdout;           /* of the node's own rows, in [0, 1); used only without `test` */
    uint32_t node_index;
    uint32_t node_count;
    uint64_t seed; /* of the fleet: shards are drawn from it */
};

struct sgp_data {
    struct sgp_dataset *train; /* this node's rows */
    struct sgp_dataset *test;  /* NULL: nothing to evaluate on */
    uint64_t file_rows;        /* of the training file, but for those that were dropped */
    uint64_t own_rows;         /* this node's part of them, with what is held out */
    uint64_t digest; /* of all rows of the file as they were read; 0 if no part was cut out */
};

/* Read what the options name, keep the rows of this node, and hold out or read what to evaluate on. The
 * training file is read whole, then only the node's rows stay in memory. The caller destroys both tables.
 * Errors as the readers', and SGP_E_CONFIG for options that do not go together, with *error set. */
int sgp_data_load(
    const struct sgp_data_options *options, struct sgp_error *error, struct sgp_data *ret_data);

#endif
