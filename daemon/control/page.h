/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of the history an answer has, so that no answer is longer than its limit.
 *
 * Rows are numbered from 0 since the start of the process. The latest VIEW_HISTORY_MAX rows are
 * kept. If a reader names a first row, the answer has all rows from there on, and the number at
 * which to continue. If a reader names none, the answer is an overview of all kept rows: those
 * whose number is a multiple of a power of two, and the latest row.
 *
 * Any thread; pure. */
#ifndef SGPD_PAGE_H
#define SGPD_PAGE_H

#include "util/view.h"

#define PAGE_ROWS_MAX 1024u    /* of one answer */
#define PAGE_ROWS_DEFAULT 256u /* if the reader names no limit */
#define PAGE_OVERVIEW UINT64_MAX

struct page {
    uint64_t total;  /* rows added since the start of the process */
    uint64_t oldest; /* number of the oldest kept row; `total` if there is none */
    uint64_t first;  /* number of the first row of the answer, */
    uint64_t every;  /* the answer has one row of so many; 1: every row, */
    uint32_t count;  /* number of rows in the answer */
    uint64_t next;   /* the row to begin with in the next request */
};

/* since: PAGE_OVERVIEW, or the first row; if it is beyond `total`, the oldest row. limit: 1 to
 * PAGE_ROWS_MAX. */
struct page page_of(uint64_t total, uint64_t since, uint32_t limit);

/* The number of a row of the page (index < count). */
uint64_t page_row(const struct page *page, uint32_t index);

#endif
