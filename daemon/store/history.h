/* SPDX-License-Identifier: Apache-2.0 */
/* The course of the training: a row at each evaluation. The latest rows are kept in memory for
 * onlookers. All are appended to STATE/history.csv, which only owner and group can read. An unknown
 * value is an empty field.
 *
 * The file is bounded. Before it becomes too long, every second row is dropped, except the first
 * and the last. So old rows become ever sparser. A file longer than the greatest number of rows was
 * not written by sgpd: its last 4 MiB are kept. A symbolic link is not followed.
 *
 * Later versions add columns only at the end. A file of an earlier version is rewritten before its
 * next row. It gets the head of this version, and its rows get an empty field for each new column.
 * A file of a later version is continued with the columns of this version.
 *
 * Fails: a full disk, or an unavailable file, costs rows of the file and nothing else. Each row
 * tries again. Allocates only at open. Thread: the loop thread. */
#ifndef SGPD_HISTORY_H
#define SGPD_HISTORY_H

#include "util/view.h"

#include "sgp/status.h"

#define HISTORY_ROWS_MAX 16384u /* of the file: some 2 MB */

struct history {
    struct view_history_row *rows; /* a ring of VIEW_HISTORY_MAX */
    uint32_t first;
    uint32_t count;
    uint64_t added; /* since the start; the ring has the latest `count` */
    char *path;
    int fd;             /* -1: not open */
    uint64_t lines;     /* of the file, including its head */
    bool torn;          /* the last line of the file has no end */
    uint64_t rows_most; /* HISTORY_ROWS_MAX */
    bool failed;        /* the failure was reported */
};

/* Open an empty history that continues DIRECTORY/history.csv. Returns 0, or -ENOMEM with *error. */
int history_open(struct history *history, const char *directory, struct sgp_error *error);

/* Close; an all-zero struct is fine. */
void history_close(struct history *history);

/* Add a row. If the file did not get the row, returns -errno with *error, but only for the first
 * failure in a row. Else returns 0. */
int history_add(
    struct history *history, const struct view_history_row *row, struct sgp_error *error);

/* Row `index` (0 is the oldest kept, < count). */
const struct view_history_row *history_row(const struct history *history, uint32_t index);

#endif
