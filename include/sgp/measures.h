/* SPDX-License-Identifier: Apache-2.0 */
/* Measures of a model on rows whose truth is known, as counts and sums that add up.
 *
 * Measures of several tables of rows, or of several nodes, are added count by count; ratios are
 * computed at the end. All members are integers: sums of numbers are exact, in multiples of a power
 * of two (lib/measures/wide.h). So the result depends on the rows alone. It is the same to the bit
 * for any order of the rows, and for any way to divide them.
 *
 * A figure that needs what is not there, such as the accuracy of no rows, is false, and never NaN.
 *
 * Pure; any thread, one at a time for one structure. */
#ifndef SGP_MEASURES_H
#define SGP_MEASURES_H

#include "sgp/status.h"

#define SGP_MEASURES_CLASSES_MAX 1000u /* for more, neither confusion matrix nor bins are kept */
#define SGP_MEASURES_BINS 1000u        /* of the score of a class, equal in asinh(FINE * score) */
#define SGP_MEASURES_FINE 128          /* the bins about 0 also part the rows of an unsure model */
#define SGP_MEASURES_REACH 1e4         /* scores beyond this are in the first or the last bin */
#define SGP_MEASURES_PARTS 15u         /* of the confidence, from 0 to 1 */

#define SGP_WIDE_SUM_LIMBS 12u     /* of a sum, 384 bits */
#define SGP_WIDE_SQUARES_LIMBS 22u /* of a sum of squares, 704 bits */

enum sgp_measures_kind {
    SGP_MEASURES_LOGITS = 1, /* one class a row; the softmax of the outputs is its probability */
    SGP_MEASURES_SCORES,  /* one class a row; the greatest output says it, none is a probability */
    SGP_MEASURES_BITS,    /* each output is the logit of a 1 in its own column */
    SGP_MEASURES_NUMBERS, /* each output is a number */
};

/* Of one class, or of one column of bits, where the class is the 1. */
struct sgp_measures_class {
    uint64_t rows;    /* that are of the class */
    uint64_t said;    /* of which the model says the class */
    uint64_t correct; /* both */
};

/* Of the rows whose confidence is in one part. The confidence is the greatest probability of a row;
 * of a bit that of its likelier value. */
struct sgp_measures_part {
    uint64_t rows, correct;
    uint32_t confidence[SGP_WIDE_SUM_LIMBS];
};

/* Of one column of numbers. */
struct sgp_measures_number {
    uint32_t sum[SGP_WIDE_SUM_LIMBS]; /* of the true numbers */
    uint32_t squares[SGP_WIDE_SQUARES_LIMBS];
    uint32_t error_sum[SGP_WIDE_SUM_LIMBS]; /* of the absolute errors */
    uint32_t error_squares[SGP_WIDE_SQUARES_LIMBS];
};

struct sgp_measures {
    enum sgp_measures_kind kind;
    uint32_t outputs;
    uint64_t rows;
    struct sgp_measures_class *classes; /* `outputs` of them; NULL: numbers */
    /* outputs x outputs: rows of the true class, columns of the class that the model says. NULL: it
     * is not kept */
    uint64_t *confusion;
    /* outputs x 2 x SGP_MEASURES_BINS: for each class the rows of other classes, then its own, by
     * the bin of the score. The score is the logit of the class against all others, or the output.
     * NULL: they are not kept */
    uint64_t *bins;
    struct sgp_measures_part parts[SGP_MEASURES_PARTS]; /* of logits and bits; else zeros */
    /* of logits and bits: -log of the probability of the truth, over rows and columns */
    uint32_t loss[SGP_WIDE_SUM_LIMBS];
    struct sgp_measures_number *numbers; /* `outputs` of them; NULL: classes */
};

/* The place of the greatest of count >= 1 outputs, which is the class that a model says. The first
 * of equal ones. */
uint32_t sgp_measures_greatest(const float *outputs, uint32_t count);

/* Empty measures of a model with outputs >= 1. Returns 0 or -ENOMEM. sgp_measures_finish frees;
 * zeros are fine. */
int sgp_measures_init(struct sgp_measures *measures, enum sgp_measures_kind kind, uint32_t outputs);
void sgp_measures_finish(struct sgp_measures *measures);

/* The bytes that they allocate. */
uint64_t sgp_measures_bytes(enum sgp_measures_kind kind, uint32_t outputs);

/* Add one row: the outputs of the model, before the last function of the loss, all finite. The
 * truth is a label below `outputs`, or `values` of 0 and 1, or `values` that are finite numbers. */
void sgp_measures_add_label(struct sgp_measures *measures, const float *outputs, uint32_t label);
void sgp_measures_add_values(
    struct sgp_measures *measures, const float *outputs, const float *values);
/* The same of one column of a row of numbers, which a float32 may not tell apart, and whose sizes
 * are below 2^128. Column 0 counts the row. */
void sgp_measures_add_number(
    struct sgp_measures *measures, uint32_t column, double output, double value);

/* Add the counts of others, of the same kind and number of outputs (asserted). */
void sgp_measures_add(struct sgp_measures *measures, const struct sgp_measures *others);

/* ---- figures: false if there is nothing to say ---- */

/* The part of the rows, or of the bits, that the model says correctly. */
bool sgp_measures_accuracy(const struct sgp_measures *measures, double *ret_accuracy);
/* Mean of -log of the probability of the truth, over rows and columns; of logits and bits. */
bool sgp_measures_log_loss(const struct sgp_measures *measures, double *ret_loss);
/* Mean over the rows of the distance between confidence and accuracy of their part (Guo et al.
 * 2017); of logits and bits. */
bool sgp_measures_calibration_error(const struct sgp_measures *measures, double *ret_error);
/* Mean confidence of the rows of one part. */
bool sgp_measures_confidence(
    const struct sgp_measures *measures, uint32_t part, double *ret_confidence);
/* Mean of F1 over the classes that a row has or that the model says. */
bool sgp_measures_macro_f1(const struct sgp_measures *measures, double *ret_f1);
/* Mean of the AUC over the classes that have one. */
bool sgp_measures_macro_auc(const struct sgp_measures *measures, double *ret_auc);

/* Of one class: correct / said, correct / rows, and 2 correct / (said + rows); 0 for 0 / 0. */
double sgp_measures_precision(const struct sgp_measures *measures, uint32_t output);
double sgp_measures_recall(const struct sgp_measures *measures, uint32_t output);
double sgp_measures_f1(const struct sgp_measures *measures, uint32_t output);
/* The chance that a row of the class has a greater score than another row, ties half, from the
 * bins. The true value is within *ret_bound. False without rows of the class, or without others. */
bool sgp_measures_auc(
    const struct sgp_measures *measures, uint32_t output, double *ret_auc, double *ret_bound);

/* Of one column of numbers, or the mean over all columns if output == measures->outputs. R2 is
 * 1 - squared errors / squared deviations from the mean of these rows: false if a column is
 * constant. */
bool sgp_measures_r2(const struct sgp_measures *measures, uint32_t output, double *ret_r2);
bool sgp_measures_absolute_error(
    const struct sgp_measures *measures, uint32_t output, double *ret_error);
bool sgp_measures_squared_error(
    const struct sgp_measures *measures, uint32_t output, double *ret_error);

#endif
