/* SPDX-License-Identifier: Apache-2.0 */
/* Pages and overviews of the history; see page.h. */
#include "page.h"

#include "sgp/status.h"

static struct page overview(struct page page, uint32_t limit)
{
    uint64_t latest = page.total - 1;
    uint64_t from = limit > 1 ? page.oldest : latest;
    for (;; page.every *= 2) {
        page.first = (from + page.every - 1) / page.every * page.every;
        uint64_t multiples = page.first <= latest ? (latest - page.first) / page.every + 1 : 0;
        uint64_t count = multiples + (latest % page.every != 0);
        if (count > limit)
            continue;
        page.first = multiples > 0 ? page.first : latest;
        page.count = (uint32_t)count;
        page.next = page.total;
        return page;
    }
}

struct page page_of(uint64_t total, uint64_t since, uint32_t limit)
{
    sgp_assert(limit >= 1 && limit <= PAGE_ROWS_MAX);
    struct page page = {.total = total,
        .oldest = total > VIEW_HISTORY_MAX ? total - VIEW_HISTORY_MAX : 0,
        .every = 1,
        .next = total};
    if (total > 0 && since == PAGE_OVERVIEW)
        return overview(page, limit);
    page.first = since < page.oldest || since > total ? page.oldest : since;
    uint64_t left = total - page.first;
    page.count = left < limit ? (uint32_t)left : limit;
    page.next = page.first + page.count;
    return page;
}

uint64_t page_row(const struct page *page, uint32_t index)
{
    sgp_assert(index < page->count);
    uint64_t number = page->first + index * page->every;
    return number < page->total ? number : page->total - 1; /* the latest row of an overview */
}
