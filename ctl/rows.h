/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that a node is to train on: the description of a CSV file, its label, and the section
 * [data] that follows from them. One thread. */
#ifndef CTL_ROWS_H
#define CTL_ROWS_H

#include "ctl.h"

#include "sgp/description.h"

#include <limits.h>

struct ctl_rows {
    const char *file;    /* as given, for messages */
    char path[PATH_MAX]; /* absolute */
    struct sgp_description *description;
    const struct sgp_column *label; /* NULL: not named */
    char **ignored;                 /* the columns that the caller ignores */
    uint32_t ignored_count;
    char **classes; /* of the label on all machines; NULL: the values of these rows */
    uint32_t class_count;
    bool common; /* with other machines, where a column may vary that is constant here */
};

/* Read and describe FILE. `label` is a column, or NULL; `ignore` columns separated by commas, or
 * NULL. CTL_DONE: the caller calls ctl_rows_finish. Else the error was reported. */
enum ctl_exit ctl_rows_read(struct ctl *ctl, const char *file, const char *label,
    const char *ignore, struct ctl_rows *ret_rows);
void ctl_rows_finish(struct ctl_rows *rows); /* zeros are fine */

/* Name the classes of the label, separated by blanks or commas: other machines may have rows of
 * classes that these rows lack. SGP_E_CONFIG if a row has another class, -ENOMEM. If `common`, it
 * may be one of fewer rows than are told to other machines. */
int ctl_rows_name_classes(struct ctl_rows *rows, const char *names, struct sgp_error *error);

/* Whether the label names classes. */
bool ctl_rows_classify(const struct ctl_rows *rows);

/* Whether a column becomes a feature: it is not the label, not ignored, and says something. */
bool ctl_rows_uses(const struct ctl_rows *rows, const struct sgp_column *column);

/* How many outputs a model of the label has: its classes, or 1 for a number. */
uint32_t ctl_rows_outputs(const struct ctl_rows *rows);

/* Why no section [data] can be written, as one line with the remedy; false: it can be. */
bool ctl_rows_refuse(const struct ctl_rows *rows, struct sgp_error *ret_why);

/* The value of [data] scale with which all nodes agree on the scaling before they train. */
#define CTL_SCALE_FLEET "fleet"

/* Why the columns that `scale = fleet` must name cannot be written. */
bool ctl_rows_refuse_fleet(const struct ctl_rows *rows, struct sgp_error *ret_why);

/* The columns that are no features, with or without the label, as lists of columns are written:
 * "id,name". The caller frees the text; NULL: no memory. */
char *ctl_rows_left_out(const struct ctl_rows *rows, bool with_label);

/* The label as lists of columns are written. The caller frees the text; NULL: no memory. */
char *ctl_rows_label(const struct ctl_rows *rows);

/* The label as a word of a shell that --label of `sgpctl scaling` takes. */
void ctl_rows_put_label(const struct ctl_rows *rows, FILE *file);

/* The section [data], with a comment above each key. `scale` is the path of the scaling file,
 * "none", or CTL_SCALE_FLEET. ctl_rows_refuse must have been false, and for CTL_SCALE_FLEET
 * ctl_rows_refuse_fleet. */
struct ctl_data_options {
    const char *scale;
    const char *shards;
    double holdout;
};
void ctl_rows_put_data(
    const struct ctl_rows *rows, const struct ctl_data_options *options, FILE *file);

#endif
