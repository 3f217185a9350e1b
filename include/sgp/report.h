/* SPDX-License-Identifier: Apache-2.0 */
/* A report: what one node of a fleet tells all nodes of its model, as a text of printable ASCII.
 *
 * It has the counts and exact sums of sgp/measures.h, so reports of several nodes are added count
 * by count. The text is words with one blank between them:
 *
 *     1 WISHES [WISH ...] RUN LABEL FINAL STATE [KIND OUTPUTS ROWS COUNTS]
 *
 * WISHES is the number of wishes that follow. Counts are decimal, sums hexadecimal; no number has
 * zeros in front. COUNTS of
 * logits and scores are the confusion matrix, row by row; of bits `rows said correct` of each
 * column. Then come for each output the number of bins in use, and `BIN OTHERS OWN` of each. Last,
 * for logits and bits, `rows correct confidence` of each part, and the loss. COUNTS of numbers are
 * `sum squares error_sum error_squares` of each column.
 *
 * A text is not trusted: a text whose counts do not fit together is refused. Pure; any thread. */
#ifndef SGP_REPORT_H
#define SGP_REPORT_H

#include "sgp/measures.h"

#define SGP_REPORT_OUTPUTS_MAX 100u             /* of more outputs nothing is told */
#define SGP_REPORT_WISHES 8u                    /* that a report names */
#define SGP_REPORT_ROWS_MAX (UINT64_C(1) << 36) /* of one node; sums of all nodes stay in range */

enum sgp_report_state {
    SGP_REPORT_MEASURED = 1,
    SGP_REPORT_NO_ROWS,    /* the node has no held-out rows */
    SGP_REPORT_NOT_FINITE, /* an output or the loss is not finite */
    SGP_REPORT_FEW_ROWS,   /* too few held-out rows to tell of them */
    SGP_REPORT_STATES = SGP_REPORT_FEW_ROWS,
};

struct sgp_report {
    /* The wishes (struct sgp_pull) that the node knew when it began to measure: the report answers
     * these, and no others. */
    uint64_t wishes[SGP_REPORT_WISHES];
    uint32_t wish_count;
    uint64_t run;    /* its number */
    sgp_round label; /* of the model */
    bool final;      /* the node has finished: the model is that of the fleet */
    enum sgp_report_state state;
    struct sgp_measures measures; /* MEASURED: of rows >= 1; else zeros */
};

/* The most bytes of a text about a model of 1 .. SGP_REPORT_OUTPUTS_MAX outputs (asserted). */
uint32_t sgp_report_bytes(enum sgp_measures_kind kind, uint32_t outputs);

/* The text of a report, which the caller frees. 0, -ENOMEM, or SGP_E_LIMIT: too many rows or
 * outputs. */
int sgp_report_write(const struct sgp_report *report, char **ret_text);

/* All but the measures, which are zeros. 0; SGP_E_VERSION: a later form; SGP_E_DATA. */
int sgp_report_head(const char *text, struct sgp_report *ret_report);

/* The part of a text behind its wishes, which is equal for equal counts; "" if there is none. */
const char *sgp_report_body(const char *text);

/* Whether a report (its head is enough) was measured after its author heard of this wish. */
bool sgp_report_answers(const struct sgp_report *report, uint64_t wish);

/* The whole report, whose measures the caller finishes. 0; SGP_E_VERSION: a later form; SGP_E_DATA:
 * not a report, or counts that no rows have; -ENOMEM. On failure nothing is to finish. */
int sgp_report_read(const char *text, struct sgp_report *ret_report);

#endif
