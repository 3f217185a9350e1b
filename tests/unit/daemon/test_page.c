/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of the history an answer has: exact numbers, and what must hold of every overview. */
#include "control/page.h"

#include <criterion/criterion.h>
#include <assertions.h>

static void expect(struct page page, uint64_t oldest, uint64_t first, uint64_t every,
    uint32_t count, uint64_t next)
{
    cr_assert(eq(u64, page.oldest, oldest));
    cr_assert(eq(u64, page.first, first));
    cr_assert(eq(u64, page.every, every));
    cr_assert(eq(u32, page.count, count));
    cr_assert(eq(u64, page.next, next));
}

Test(page, rows_from_one_on_and_where_to_go_on)
{
    expect(page_of(0, 0, 256), 0, 0, 1, 0, 0);
    expect(page_of(3, 0, 256), 0, 0, 1, 3, 3);
    expect(page_of(3, 0, 2), 0, 0, 1, 2, 2);
    expect(page_of(3, 2, 2), 0, 2, 1, 1, 3);
    expect(page_of(3, 3, 2), 0, 3, 1, 0, 3);
    expect(page_of(3, 4, 2), 0, 0, 1, 2, 2); /* of an earlier process */
    expect(
        page_of(VIEW_HISTORY_MAX + 100, 0, 1024), 100, 100, 1, 1024, 1124); /* the rest is gone */
}

Test(page, pages_have_every_row_once)
{
    uint64_t since = 0, seen = 904;
    for (;;) {
        struct page page = page_of(5000, since, 700);
        if (page.count == 0)
            break;
        for (uint32_t i = 0; i < page.count; i++)
            cr_assert(eq(u64, page_row(&page, i), seen++));
        since = page.next;
    }
    cr_assert(eq(u64, seen, 5000));
}

Test(page, an_overview_is_thinned_by_a_power_of_two)
{
    expect(page_of(0, PAGE_OVERVIEW, 256), 0, 0, 1, 0, 0);
    expect(page_of(256, PAGE_OVERVIEW, 256), 0, 0, 1, 256, 256);
    expect(page_of(257, PAGE_OVERVIEW, 256), 0, 0, 2, 129, 257);
    expect(page_of(4096, PAGE_OVERVIEW, 256), 0, 0, 32, 129, 4096);
    expect(page_of(5000, PAGE_OVERVIEW, 256), 904, 928, 32, 129, 5000);
    expect(page_of(5000, PAGE_OVERVIEW, 1), 904, 4999, 1, 1, 5000);
    struct page page = page_of(4096, PAGE_OVERVIEW, 256);
    cr_assert(eq(u64, page_row(&page, 127), 4064));
    cr_assert(eq(u64, page_row(&page, 128), 4095), "the latest row is always there");
}

Test(page, every_overview_keeps_its_limit_and_ends_with_the_latest_row)
{
    for (uint64_t total = 1; total < 9000; total += 37)
        for (uint32_t limit = 1; limit <= PAGE_ROWS_MAX; limit += 31) {
            struct page page = page_of(total, PAGE_OVERVIEW, limit);
            cr_assert(page.count >= 1 && page.count <= limit);
            cr_assert(eq(u64, page_row(&page, page.count - 1), total - 1));
            for (uint32_t i = 0; i < page.count; i++) {
                uint64_t row = page_row(&page, i);
                cr_assert(row >= page.oldest && (i == 0 || row > page_row(&page, i - 1)));
                cr_assert(i + 1 == page.count || row % page.every == 0);
            }
        }
}
