/* SPDX-License-Identifier: Apache-2.0 */
/* How the node got where it is: a row at each evaluation, the latest kept in memory for onlookers,
 * all appended to STATE/history.csv, for owner and group alone. An unknown value is an empty field.
 *
 * The file is bounded: before it grows too long every second row is dropped, but never the first
 * and the last, so the past is told ever more coarsely. A file that is longer than so many rows can
 * be was written by somebody else: its last 4 MiB stay. A symbolic link is not followed.
 *
 * A later version adds columns at the end alone. A file of an earlier version is written anew before
 * its next row: it gets the head of this version, and its rows an empty field for each new column. A
 * file of a later version is continued with the columns of this one.
 *
 * Fails: a full disk, or a file that cannot be had, costs rows of the file and nothing else; each
 * row tries anew. Allocates at open alone. Thread: the loop thread. */
#ifndef SGPD_HISTORY_H
#define SGPD_HISTORY_H

#include "util/view.h"

#include "sgp/status.h"

#define HISTORY_ROWS_MAX 16384u /* of the file: some 2 MB */

struct history {
    struct view_history_row *rows; /* a ring of VIEW_HISTORY_MAX */
    uint32_t first;
    uint32_t count;
    uint64_t added; /* since the start; the latest `count` are in the ring */
    char *path;
    int fd;             /* -1: not open */
    uint64_t lines;     /* of the file, its head among them */
    bool torn;          /* the last line of the file has no end */
    uint64_t rows_most; /* HISTORY_ROWS_MAX */
    bool failed;        /* told already */
};

/* Have an empty history that goes on in DIRECTORY/history.csv. Returns 0, or -ENOMEM with *error. */
int history_open(struct history *history, const char *directory, struct sgp_error *error);

/* Close; an all-zero struct is fine. */
void history_close(struct history *history);

/* Keep a row. Returns 0; the first time in a row that the file did not get it, -errno with *error. */
int history_add(
    struct history *history, const struct view_history_row *row, struct sgp_error *error);

/* Row `index` (0 is the oldest kept, < count). */
const struct view_history_row *history_row(const struct history *history, uint32_t index);

#endif
