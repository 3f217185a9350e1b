/* SPDX-License-Identifier: Apache-2.0 */
/* A table divided among simulated sites: known owners for a seed, each row once, no site without a row. */
#include "sgp/sites.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 240u
#define CLASSES 4u
#define SITES_MAX 50u

static struct sgp_error error;

static struct sgp_sites_plan plan_of(const char *how, uint32_t count, uint64_t seed)
{
    struct sgp_sites_plan plan = {.count = count, .holdout = 0.25, .seed = seed};
    cr_assert(eq(int, sgp_sites_parse(how, &error, &plan), 0), "%s", error.text);
    return plan;
}

/* The owners of rows whose classes are 0, 1, 2, 3, 0, ... */
static void own(const char *how, uint32_t count, uint64_t seed, uint64_t rows, uint32_t *owners)
{
    uint32_t labels[ROWS];
    struct sgp_sites_plan plan = plan_of(how, count, seed);
    for (uint32_t r = 0; r < rows; r++)
        labels[r] = r % CLASSES;
    cr_assert(eq(int, sgp_sites_owners(&plan, labels, rows, CLASSES, &error, owners), 0), "%s",
        error.text);
}

static void check_owners(const char *how, const char *expected)
{
    uint32_t owners[24];
    char told[25] = "";
    own(how, 5, 7, 24, owners);
    for (size_t r = 0; r < 24; r++)
        told[r] = (char)('0' + owners[r]);
    cr_assert(eq(str, told, (char *)(uintptr_t)expected), "%s", how);
}

/* Computed by a program of its own, in Python: xoshiro256++, a shuffle, and the urn. */
Test(sites, a_seed_gives_known_owners)
{
    check_owners("iid", "341124200013322134002143");
    check_owners("sorted", "012301240134023412341234");
    check_owners("dirichlet:0.1", "104320432044204320432043");
    check_owners("dirichlet:100", "104320011234302440242423");
    check_owners("round-robin", "012340123401234012340123");
    check_owners("contiguous", "000011111222223333344444");
}

static void count_sizes(const uint32_t *owners, uint32_t count, uint32_t sizes[SITES_MAX])
{
    memset(sizes, 0, SITES_MAX * sizeof *sizes);
    for (uint32_t r = 0; r < ROWS; r++) {
        cr_assert(lt(u32, owners[r], count));
        sizes[owners[r]]++;
    }
}

Test(sites, every_site_has_a_row_and_sizes_sum_up)
{
    static const char *const hows[] = {"iid", "sorted", "round-robin", "contiguous", "dirichlet:1",
        "dirichlet:0.1", "dirichlet:1e-6"};
    static const uint32_t counts[] = {1, 2, 7, 50};
    for (size_t h = 0; h < sizeof hows / sizeof *hows; h++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            uint32_t owners[ROWS], sizes[SITES_MAX], sum = 0;
            own(hows[h], counts[c], 3, ROWS, owners);
            count_sizes(owners, counts[c], sizes);
            for (uint32_t i = 0; i < counts[c]; i++) {
                cr_assert(ge(u32, sizes[i], 1), "%s", hows[h]);
                if (h < 4)
                    cr_assert(sizes[i] == ROWS / counts[c] || sizes[i] == ROWS / counts[c] + 1,
                        "%s", hows[h]);
                sum += sizes[i];
            }
            cr_assert(eq(u32, sum, ROWS));
        }
}

Test(sites, the_same_seed_divides_the_same_way_and_another_does_not)
{
    static const char *const hows[] = {"iid", "dirichlet:0.1"};
    for (size_t h = 0; h < 2; h++) {
        uint32_t first[ROWS], second[ROWS], other[ROWS];
        own(hows[h], 7, 3, ROWS, first);
        own(hows[h], 7, 3, ROWS, second);
        own(hows[h], 7, 4, ROWS, other);
        cr_assert(eq(int, memcmp(first, second, sizeof first), 0));
        cr_assert(ne(int, memcmp(first, other, sizeof first), 0));
    }
}

/* With so small a number all rows of a class are at one site. */
Test(sites, a_site_without_rows_takes_the_last_one_of_the_largest)
{
    uint32_t labels[ROWS] = {0}, owners[ROWS], sizes[SITES_MAX];
    struct sgp_sites_plan plan = plan_of("dirichlet:1e-6", 10, 1);
    cr_assert(eq(int, sgp_sites_owners(&plan, labels, ROWS, 1, &error, owners), 0));
    count_sizes(owners, 10, sizes);
    uint32_t large = owners[0];
    cr_assert(eq(u32, sizes[large], ROWS - 9));
    for (uint32_t r = 0; r < ROWS - 9; r++)
        cr_assert(eq(u32, owners[r], large));
    for (uint32_t r = ROWS - 9; r < ROWS; r++)
        cr_assert(eq(u32, sizes[owners[r]], 1));
}

/* Row r has the feature r, and the number (r * 7) mod rows to predict, so all numbers differ. */
static struct sgp_dataset *table_of(uint32_t rows, bool classes)
{
    float features[ROWS], values[ROWS];
    uint32_t labels[ROWS];
    struct sgp_dataset *table;
    for (uint32_t r = 0; r < rows; r++) {
        features[r] = (float)r;
        values[r] = (float)(r * 7 % rows);
        labels[r] = r % CLASSES;
    }
    cr_assert(eq(int,
        sgp_dataset_create_memory(features, classes ? labels : NULL, classes ? NULL : values, rows,
            1, classes ? CLASSES : 0, 1, &table),
        0));
    return table;
}

static void see(const struct sgp_dataset *rows, bool seen[ROWS])
{
    for (uint64_t r = 0; r < rows->rows; r++) {
        size_t row = (size_t)rows->floats[r];
        cr_assert(not(seen[row]));
        cr_assert(r == 0 || rows->floats[r - 1] < rows->floats[r]);
        seen[row] = true;
    }
}

Test(sites, each_row_is_held_out_or_at_one_site)
{
    struct sgp_sites_plan plan = plan_of("dirichlet:0.1", 7, 3);
    struct sgp_dataset *table = table_of(ROWS, true);
    struct sgp_sites sites;
    bool seen[ROWS] = {false};
    cr_assert(eq(int, sgp_sites_divide(&plan, table, &error, &sites), 0), "%s", error.text);
    sgp_dataset_destroy(table);
    cr_assert(eq(u64, sites.held->rows, ROWS / 4));
    cr_assert(eq(u64, sites.all->rows, ROWS - ROWS / 4));
    cr_assert(eq(u32, sites.count, 7));
    see(sites.held, seen);
    for (uint32_t i = 0; i < 7; i++)
        see(sites.rows[i], seen);
    for (uint32_t r = 0; r < ROWS; r++)
        cr_assert(seen[r]);
    sgp_sites_finish(&sites);
}

Test(sites, numbers_are_sorted_by_tenths)
{
    struct sgp_sites_plan plan = plan_of("sorted", 10, 3);
    struct sgp_dataset *table = table_of(200, false);
    struct sgp_sites sites;
    float most = -1;
    plan.holdout = 0.5;
    cr_assert(eq(int, sgp_sites_divide(&plan, table, &error, &sites), 0), "%s", error.text);
    for (uint32_t i = 0; i < 10; i++) {
        float least = 1e9f, greatest = -1;
        cr_assert(eq(u64, sites.rows[i]->rows, 10));
        for (uint64_t r = 0; r < 10; r++) {
            least = sites.rows[i]->values[r] < least ? sites.rows[i]->values[r] : least;
            greatest = sites.rows[i]->values[r] > greatest ? sites.rows[i]->values[r] : greatest;
        }
        cr_assert(gt(flt, least, most));
        most = greatest;
    }
    sgp_sites_finish(&sites);
    sgp_dataset_destroy(table);
}

Test(sites, what_cannot_be_divided_is_refused)
{
    static const char *const wrong[] = {
        "none", "", "dirichlet", "dirichlet:0", "dirichlet:x", "IID"};
    struct sgp_sites_plan plan = plan_of("iid", 9, 1);
    struct sgp_sites sites;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_assert(eq(int, sgp_sites_parse(wrong[i], &error, &plan), SGP_E_CONFIG), "%s", wrong[i]);
        cr_assert(ne(ptr, strstr(error.text, "write iid, sorted, dirichlet:A"), NULL));
    }
    plan = plan_of("iid", 9, 1);
    error = (struct sgp_error){.code = 0};
    struct sgp_dataset *table = table_of(10, true);
    cr_assert(eq(int, sgp_sites_divide(&plan, table, &error, &sites), SGP_E_DATA));
    cr_assert(eq(str, error.text,
        "8 rows are left to train on, and each of 9 sites needs one; take fewer sites or hold out "
        "less"));
    sgp_dataset_destroy(table);
    table = table_of(1, true);
    cr_assert(eq(int, sgp_sites_divide(&plan, table, &error, &sites), SGP_E_DATA));
    sgp_dataset_destroy(table);
}
