/* SPDX-License-Identifier: Apache-2.0 */
/* Shards and held-out rows: partitions, alike on every machine, and unlike where that is meant. */
#include "sgp/dataset.h"
#include "sgp/random.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 1000u
#define CLASSES 10u

static struct sgp_error error;
static uint32_t labels[ROWS];

static void labels_draw(void)
{
    struct sgp_random random;
    sgp_random_init(&random, 5, 0);
    for (uint32_t r = 0; r < ROWS; r++)
        labels[r] = (uint32_t)sgp_random_below(&random, CLASSES);
    error = (struct sgp_error){.code = 0};
}

/* Shards of all nodes: each row once, ascending. counts[node][class] are theirs. */
static void check_partition(
    const char *text, uint32_t node_count, uint64_t seed, uint32_t counts[][CLASSES])
{
    struct sgp_shards shards;
    cr_assert(eq(int, sgp_shards_parse(text, &error, &shards), 0), "%s", error.text);
    unsigned char seen[ROWS] = {0};
    for (uint32_t node = 0; node < node_count; node++) {
        uint32_t *rows = NULL;
        uint64_t count = 0;
        int status = sgp_shard_rows(
            &shards, labels, ROWS, CLASSES, node, node_count, seed, &error, &rows, &count);
        cr_assert(eq(int, status, 0), "%s", error.text);
        cr_assert(ge(u64, count, 1));
        memset(counts[node], 0, sizeof counts[node]);
        for (uint64_t i = 0; i < count; i++) {
            cr_assert(lt(u32, rows[i], ROWS));
            cr_assert(i == 0 || rows[i - 1] < rows[i]);
            cr_assert(eq(u8, seen[rows[i]]++, 0));
            counts[node][labels[rows[i]]]++;
        }
        free(rows);
    }
    for (uint32_t r = 0; r < ROWS; r++)
        cr_assert(eq(u8, seen[r], 1), "%s: row %u", text, r);
}

static uint32_t total(const uint32_t counts[CLASSES])
{
    uint32_t sum = 0;
    for (uint32_t c = 0; c < CLASSES; c++)
        sum += counts[c];
    return sum;
}

static uint32_t classes_seen(const uint32_t counts[CLASSES])
{
    uint32_t seen = 0;
    for (uint32_t c = 0; c < CLASSES; c++)
        seen += counts[c] > 0;
    return seen;
}

Test(shard, every_kind_is_a_partition)
{
    labels_draw();
    static const char *const kinds[] = {"round-robin", "contiguous", "sorted", "dirichlet:1"};
    static const uint32_t node_counts[] = {1, 2, 3, 4, 7, 16};
    uint32_t counts[16][CLASSES];
    for (size_t k = 0; k < 4; k++) {
        for (size_t n = 0; n < 6; n++) {
            check_partition(kinds[k], node_counts[n], 3, counts);
            for (uint32_t node = 0; node < node_counts[n] && k < 3; node++) {
                const uint32_t rows = total(counts[node]);
                cr_assert(rows == ROWS / node_counts[n] || rows == ROWS / node_counts[n] + 1);
            }
        }
    }
}

Test(shard, the_owners_of_all_rows_are_the_shards_of_all_nodes)
{
    labels_draw();
    static const char *const kinds[] = {"round-robin", "contiguous", "sorted", "dirichlet:1"};
    for (size_t k = 0; k < 4; k++) {
        struct sgp_shards shards;
        uint32_t owners[ROWS];
        cr_assert(eq(int, sgp_shards_parse(kinds[k], &error, &shards), 0));
        cr_assert(
            eq(int, sgp_shard_owners(&shards, labels, ROWS, CLASSES, 7, 3, &error, owners), 0));
        for (uint32_t node = 0; node < 7; node++) {
            uint32_t *rows = NULL;
            uint64_t count = 0;
            cr_assert(eq(int,
                sgp_shard_rows(&shards, labels, ROWS, CLASSES, node, 7, 3, &error, &rows, &count),
                0));
            for (uint64_t i = 0; i < count; i++)
                cr_assert(eq(u32, owners[rows[i]], node));
            free(rows);
        }
    }
}

Test(shard, sorted_shards_see_few_classes)
{
    labels_draw();
    uint32_t counts[4][CLASSES];
    check_partition("sorted", 4, 3, counts);
    for (uint32_t node = 0; node < 4; node++)
        cr_assert(le(u32, classes_seen(counts[node]), 4));
    check_partition("round-robin", 4, 3, counts);
    for (uint32_t node = 0; node < 4; node++)
        cr_assert(eq(u32, classes_seen(counts[node]), CLASSES));
}

/* Mean over nodes and classes of (count - expected)^2 / expected^2, expected being a node's fair share:
 * for Dirichlet(alpha) over n nodes the variance of a proportion is (n-1) / (n^2 (n alpha + 1)), so
 * this is about (n-1) / (n alpha + 1), and (1 - 1/n) n / rows more from counting. */
static double unlikeness(const char *text, uint64_t seed)
{
    uint32_t counts[4][CLASSES];
    check_partition(text, 4, seed, counts);
    double sum = 0;
    for (uint32_t c = 0; c < CLASSES; c++) {
        double all = 0;
        for (uint32_t node = 0; node < 4; node++)
            all += counts[node][c];
        for (uint32_t node = 0; node < 4; node++)
            sum += pow(counts[node][c] / (all / 4) - 1, 2);
    }
    return sum / (4 * CLASSES);
}

Test(shard, dirichlet_is_as_unlike_as_alpha_says)
{
    labels_draw();
    double small = 0;
    double one = 0;
    double large = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        small += unlikeness("dirichlet:0.3", seed) / 20;
        one += unlikeness("dirichlet:1", seed) / 20;
        large += unlikeness("dirichlet:1000", seed) / 20;
    }
    /* 200 proportions each: 3/2.2 = 1.36, 3/5 = 0.6 + 0.02, 3/4001 + 0.03. */
    cr_assert(epsilon_eq(dbl, small, 1.36, 0.3));
    cr_assert(epsilon_eq(dbl, one, 0.62, 0.15));
    cr_assert(epsilon_eq(dbl, large, 0.03, 0.01));
}

Test(shard, a_seed_decides_and_the_numbers_stay)
{
    /* Written down once: a change of these rows would part new nodes from old ones. */
    static const uint32_t few[] = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
    const struct sgp_shards shards = {.kind = SGP_SHARD_DIRICHLET, .alpha = 1};
    char text[128] = "";
    for (uint32_t node = 0; node < 3; node++) {
        uint32_t *rows = NULL;
        uint64_t count = 0;
        error = (struct sgp_error){.code = 0};
        int status = sgp_shard_rows(&shards, few, 12, 2, node, 3, 1, &error, &rows, &count);
        cr_assert(eq(int, status, 0), "%s", error.text);
        for (uint64_t i = 0; i < count; i++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%u ", rows[i]);
        strcat(text, "| ");
        free(rows);
    }
    cr_assert(eq(str, text, "5 8 10 | 0 1 3 4 7 9 11 | 2 6 | "));
}

Test(shard, own_files_are_owned_whole)
{
    labels_draw();
    const struct sgp_shards shards = {.kind = SGP_SHARD_NONE};
    uint32_t *rows = NULL;
    uint64_t count = 0;
    int status = sgp_shard_rows(&shards, NULL, 5, 0, 2, 7, 1, &error, &rows, &count);
    cr_assert(eq(int, status, 0));
    cr_assert(eq(u64, count, 5));
    for (uint32_t i = 0; i < 5; i++)
        cr_assert(eq(u32, rows[i], i));
    free(rows);
}

static void expect_rows_error(
    const char *kind, const uint32_t *of, uint64_t rows, uint32_t nodes, int code, const char *text)
{
    struct sgp_shards shards;
    error = (struct sgp_error){.code = 0};
    cr_assert(eq(int, sgp_shards_parse(kind, &error, &shards), 0));
    for (uint32_t node = 0; node < nodes; node++) { /* every node says the same */
        uint32_t *mine = NULL;
        uint64_t count = 0;
        error = (struct sgp_error){.code = 0};
        int status =
            sgp_shard_rows(&shards, of, rows, CLASSES, node, nodes, 1, &error, &mine, &count);
        cr_assert(eq(int, status, code));
        cr_assert(eq(str, error.text, (char *)(uintptr_t)text));
        cr_assert(eq(ptr, mine, NULL));
    }
}

Test(shard, refuses_what_leaves_a_node_without_rows)
{
    labels_draw();
    expect_rows_error("contiguous", labels, 3, 4, SGP_E_DATA,
        "shards: 3 rows cannot give each of 4 nodes one; have more rows or fewer nodes");
    static const uint32_t one[4] = {0, 0, 0, 0};
    expect_rows_error("dirichlet:0.000001", one, 4, 2, SGP_E_DATA,
        "shards: dirichlet:1e-06 leaves node 0 without a row; a larger number or another seed "
        "would be right");
    expect_rows_error("sorted", NULL, 8, 2, SGP_E_CONFIG,
        "shards: sorted and dirichlet go by class, and these rows have none; round-robin or "
        "contiguous would be right");
}

Test(shard, parses_its_words)
{
    struct sgp_shards shards = {.kind = SGP_SHARD_NONE};
    error = (struct sgp_error){.code = 0};
    cr_assert(eq(int, sgp_shards_parse("dirichlet:0.25", &error, &shards), 0));
    cr_assert(eq(int, (int)shards.kind, SGP_SHARD_DIRICHLET));
    cr_assert(eq(dbl, shards.alpha, 0.25));
    cr_assert(eq(int, sgp_shards_parse("random", &error, &shards), SGP_E_CONFIG));
    cr_assert(eq(str, error.text,
        "shards = random: unknown; round-robin, contiguous, sorted, dirichlet:A or none would be "
        "right"));
    static const char *const wrong[] = {"dirichlet", "dirichlet:", "dirichlet:0", "dirichlet:-1",
        "dirichlet:1x", "dirichlet:nan", "dirichlet:inf", "dirichlet=1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        error = (struct sgp_error){.code = 0};
        cr_assert(eq(int, sgp_shards_parse(wrong[i], &error, &shards), SGP_E_CONFIG));
        cr_assert(ne(ptr, strstr(error.text, "needs a number from 1e-06 to 1e+06"), NULL));
    }
    cr_assert(eq(dbl, shards.alpha, 0.25)); /* untouched on failure */
}

/* A dataset whose feature is its row's number. */
static struct sgp_dataset *numbered(uint64_t rows)
{
    float *features = malloc(rows * sizeof *features);
    for (uint64_t r = 0; r < rows; r++)
        features[r] = (float)r;
    struct sgp_dataset *dataset = NULL;
    cr_assert(
        eq(int, sgp_dataset_create_memory(features, NULL, features, rows, 1, 0, 1, &dataset), 0));
    free(features);
    return dataset;
}

Test(split, holds_out_a_seeded_fraction)
{
    struct sgp_dataset *dataset = numbered(100);
    struct sgp_dataset *kept = NULL;
    struct sgp_dataset *held = NULL;
    struct sgp_dataset *again = NULL;
    struct sgp_dataset *other = NULL;
    cr_assert(eq(int, sgp_dataset_split(dataset, 0.1, 7, 2, &kept, &held), 0));
    cr_assert(eq(u64, kept->rows, 90));
    cr_assert(eq(u64, held->rows, 10));
    unsigned char seen[100] = {0};
    for (uint64_t i = 0; i < 90; i++)
        seen[(int)kept->floats[i]]++;
    for (uint64_t i = 0; i < 10; i++)
        seen[(int)held->floats[i]]++;
    for (int i = 0; i < 100; i++)
        cr_assert(eq(u8, seen[i], 1));
    sgp_dataset_destroy(kept);
    cr_assert(eq(int, sgp_dataset_split(dataset, 0.1, 7, 2, &kept, &again), 0));
    cr_assert(eq(int, memcmp(held->floats, again->floats, 10 * sizeof(float)), 0));
    sgp_dataset_destroy(kept);
    cr_assert(eq(int, sgp_dataset_split(dataset, 0.1, 7, 3, &kept, &other), 0));
    cr_assert(ne(int, memcmp(held->floats, other->floats, 10 * sizeof(float)), 0));
    sgp_dataset_destroy(kept);
    sgp_dataset_destroy(held);
    sgp_dataset_destroy(again);
    sgp_dataset_destroy(other);
    sgp_dataset_destroy(dataset);
}

Test(split, small_sets_keep_at_least_a_row_on_each_side)
{
    static const struct {
        uint64_t rows;
        double fraction;
        uint64_t held;
    } cases[] = {{1, 0.5, 0}, {2, 0.01, 1}, {2, 0.999, 1}, {10, 0, 0}, {10, 0.25, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sgp_dataset *dataset = numbered(cases[i].rows);
        struct sgp_dataset *kept = NULL;
        struct sgp_dataset *held = NULL;
        cr_assert(eq(int, sgp_dataset_split(dataset, cases[i].fraction, 1, 0, &kept, &held), 0));
        cr_assert(eq(u64, held ? held->rows : 0, cases[i].held));
        cr_assert(eq(u64, kept->rows, cases[i].rows - cases[i].held));
        sgp_dataset_destroy(kept);
        sgp_dataset_destroy(held);
        sgp_dataset_destroy(dataset);
    }
}

Test(dataset, refuses_bad_memory)
{
    const float good[4] = {1, 2, 3, 4};
    const float bad[4] = {1, NAN, 3, 4};
    const uint32_t classes[2] = {0, 2};
    struct sgp_dataset *dataset = NULL;
    cr_assert(
        eq(int, sgp_dataset_create_memory(good, classes, NULL, 2, 2, 2, 1, &dataset), SGP_E_DATA));
    cr_assert(eq(int, sgp_dataset_create_memory(bad, classes, NULL, 2, 2, 3, 1, &dataset),
        SGP_E_NOT_FINITE));
    cr_assert(eq(
        int, sgp_dataset_create_memory(good, NULL, bad, 2, 2, 0, 2, &dataset), SGP_E_NOT_FINITE));
    cr_assert(
        eq(int, sgp_dataset_create_memory(good, NULL, NULL, 2, 2, 3, 1, &dataset), SGP_E_DATA));
    cr_assert(
        eq(int, sgp_dataset_create_memory(good, NULL, good, 0, 2, 0, 1, &dataset), SGP_E_DATA));
    cr_assert(eq(int, sgp_dataset_create_memory(good, NULL, good, 1ull << 33, 2, 0, 1, &dataset),
        SGP_E_LIMIT));
    cr_assert(eq(ptr, dataset, NULL));
}
