/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of the history an answer has, so that no answer is longer than its limit.
 *
 * Rows are numbered from 0 since the start of the process, and the latest VIEW_HISTORY_MAX are kept. A reader that
 * names a row to begin with gets the rows from there on, none left out, and where to go on. A reader that names none
 * gets an overview of all that are kept: the rows whose number is a multiple of a power of two, and the latest one.
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
    uint64_t oldest; /* number of the oldest row that is kept; `total` if there is none */
    uint64_t first;  /* number of the first row of the answer, */
    uint64_t every;  /* of so many rows it has one; 1: none is left out, */
    uint32_t count;  /* and how many rows it has */
    uint64_t next;   /* the row to begin with next time */
};

/* since: PAGE_OVERVIEW, or the first row; beyond `total`, the oldest. limit: 1 to PAGE_ROWS_MAX. */
struct page page_of(uint64_t total, uint64_t since, uint32_t limit);

/* The number of a row of the page (index < count). */
uint64_t page_row(const struct page *page, uint32_t index);

#endif
