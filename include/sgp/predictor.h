/* SPDX-License-Identifier: Apache-2.0 */
/* A model file in use: rows of a CSV file through the model, without a daemon.
 *
 * The tags of the file (docs/MODELS.md) say what a row must have and what the outputs mean. Columns
 * are found by name, whatever their order in the CSV file; a column that the model does not know is
 * not used. A file without `columns` takes as many columns of numbers as the model has inputs, as
 * they are. If the label columns are there, the model is scored on the way.
 *
 * Memory is that of the model and of a block of rows. All functions block on the disk; any thread,
 * one at a time, and no learner beside it: matrix products run in OpenBLAS. */
#ifndef SGP_PREDICTOR_H
#define SGP_PREDICTOR_H

#include "sgp/dataset.h"
#include "sgp/measures.h"
#include "sgp/model.h"
#include "sgp/model_file.h"

#include <stdio.h>

struct sgp_predictor;

/* What the outputs are; owned by the predictor. */
struct sgp_predictor_view {
    const struct sgp_model_file *file;
    const struct sgp_model *model;
    const char *const *classes; /* model->outputs names; NULL: they have none, or are no classes */
    const char *const *labels;  /* of the label columns; NULL: not known */
    uint32_t label_count;
    const struct sgp_scaling *scaling; /* of the columns; NULL: the file names none */
    enum sgp_missing missing;          /* SGP_MISSING_MEAN, or ERROR: no value may be missing */
    bool classifies;                   /* the greatest output of a row is its class */
    bool bits; /* each output is the probability of a 1 in its label column */
};

/* Rows that the model has seen: model->outputs predictions each (sgp_learner_predict), finite. */
struct sgp_predictions {
    uint64_t first; /* number of the first row, from 0 */
    uint64_t rows;
    const float *outputs;
};

/* Open a model file that a daemon with layers wrote. SGP_E_FILE with one line if it is damaged, of
 * another kind, or without the tags; SGP_E_LIMIT, -ENOMEM, -errno. */
int sgp_predictor_open(
    const char *path, struct sgp_error *error, struct sgp_predictor **ret_predictor);

/* The same of a file that has been read; the predictor's from now on, also on failure. `name` is
 * what messages call it. */
int sgp_predictor_create(struct sgp_model_file *file, const char *name, struct sgp_error *error,
    struct sgp_predictor **ret_predictor);

/* Free; NULL is fine. */
void sgp_predictor_destroy(struct sgp_predictor *predictor);

struct sgp_predictor_view sgp_predictor_view(const struct sgp_predictor *predictor);

/* Empty measures of this model. Returns 0 or -ENOMEM. */
int sgp_predictor_measures(
    const struct sgp_predictor *predictor, struct sgp_measures *ret_measures);

/* Read CSV from an open file, plain or gzip, and hand the predictions to `take` in blocks, in the
 * order of the rows. If the label columns are there, each row is added to `measures`. A negative
 * code of `take` ends it, with *error filled by it. `name` begins messages, `NAME:LINE: ...`.
 * Errors as sgp_dataset_read_csv, and SGP_E_NOT_FINITE for an output that is not finite. Rows
 * before the error have been handed over. */
typedef int sgp_predictor_take(
    void *context, const struct sgp_predictions *predictions, struct sgp_error *error);
int sgp_predictor_run(struct sgp_predictor *predictor, FILE *file, const char *name,
    sgp_predictor_take *take, void *context, struct sgp_error *error,
    struct sgp_measures *measures);

#endif
