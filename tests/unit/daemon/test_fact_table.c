/* SPDX-License-Identifier: Apache-2.0 */
/* The words that a daemon keeps of decisions: which are found, which are forgotten, and what a member that makes words up costs. */
#include "node/fact_table.h"

#include "sgp/dot.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <stdio.h>
#include <string.h>

static struct sgp_topology *ring(void)
{
    static const char text[] = "digraph { a -> b -> c -> d -> a }";
    struct sgp_topology *topology = NULL;
    struct sgp_error error;
    cr_assert(eq(int, sgp_dot_parse(text, strlen(text), "ring", &error, &topology), 0));
    return topology;
}

static struct sgp_fact word(const char *author, uint64_t number, uint64_t members)
{
    return (struct sgp_fact){.kind = SGP_FACT_TOLD,
        .number = number,
        .members = members,
        .author = author,
        .text = "mean 1"};
}

Test(fact_table, words_are_found_counted_and_forgotten)
{
    struct sgp_topology *topology = ring();
    struct fact_table table = {.held = NULL};
    for (uint64_t number = 1; number <= 2; number++)
        for (const char *author = "abc"; *author != '\0'; author++) {
            struct sgp_fact told = word((char[]){*author, '\0'}, number, 7);
            cr_assert(fact_table_add(&table, topology, &told, 0));
        }
    cr_assert(eq(u32, fact_table_count(&table, 1, 7), 3));
    cr_assert(eq(u32, fact_table_count(&table, 2, 8), 0));
    cr_assert(eq(str, (char *)fact_table_find(&table, "b", 2, 7)->text, "mean 1"));
    cr_assert(fact_table_find(&table, "d", 2, 7) == NULL);
    fact_table_drop_before(&table, 2);
    cr_assert(fact_table_find(&table, "b", 1, 7) == NULL);
    cr_assert(eq(u32, fact_table_count(&table, 2, 7), 3));
    fact_table_finish(&table);
    sgp_topology_destroy(topology);
}

/* 100,000 words that somebody makes up take 16 places in a fleet of four, and none that a member needs. */
static void flood(struct fact_table *table, const struct sgp_topology *topology)
{
    uint64_t members = fact_members(topology);
    for (uint32_t i = 0; i < 100000; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "x%u", i);
        bool of_member = i % 3 == 0, of_others = i % 3 == 1;
        struct sgp_fact made_up = word(
            of_member || of_others ? "d" : name, of_member ? 1000 + i : 1, of_others ? i : members);
        (void)fact_table_add(table, topology, &made_up, 0);
    }
}

Test(fact_table, words_that_are_made_up_are_bounded_and_take_no_place)
{
    struct sgp_topology *topology = ring();
    uint64_t members = fact_members(topology);
    struct fact_table table = {.held = NULL};
    struct sgp_fact first = word("a", 1, members);
    cr_assert(fact_table_add(&table, topology, &first, 0));
    flood(&table, topology);
    cr_assert(eq(u32, table.count, 16));
    cr_assert(le(u32, table.capacity, 16));
    for (const char *author = "bcd"; *author != '\0'; author++) {
        struct sgp_fact told = word((char[]){*author, '\0'}, 1, members);
        cr_assert(fact_table_add(&table, topology, &told, 0));
    }
    flood(&table, topology);
    cr_assert(eq(u32, fact_table_count(&table, 1, members), 4));
    cr_assert(eq(u32, table.count, 16));
    fact_table_finish(&table);
    sgp_topology_destroy(topology);
}

Test(fact_table, words_of_decisions_far_ahead_are_not_taken)
{
    static const uint64_t gap = (uint64_t)1 << 40, last = (uint64_t)1 << 62;
    static const struct {
        uint64_t agreed, number;
        bool near;
    } cases[] = {{0, 1, true}, {1, 0, false}, {5, 4, false}, {5, 5, true}, {5, 6, true},
        {0, gap, true}, {0, gap + 1, false}, {5, gap + 5, true}, {5, gap + 6, false},
        {0, UINT64_MAX, false}, {last - 1, last, true}, {last, last, true}, {last, last + 1, false},
        {last, UINT64_MAX, false}};
    struct sgp_topology *topology = ring();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sgp_fact told = word("x", cases[i].number, 7), agreed = word("a", told.number, 7);
        agreed.kind = SGP_FACT_AGREED;
        agreed.count = 1;
        cr_assert(eq(int, fact_is_near(cases[i].agreed, told.number), cases[i].near), "%zu", i);
        cr_assert(eq(int, fact_is_sound(topology, cases[i].agreed, &told), cases[i].near));
        cr_assert(eq(int, fact_is_sound(topology, cases[i].agreed, &agreed), cases[i].near));
    }
    sgp_topology_destroy(topology);
}

/* Of the members of the file; the members of another file may be as many as they like. */
Test(fact_table, an_agreement_has_the_words_of_all_members)
{
    struct sgp_topology *topology = ring();
    const uint32_t counts[] = {0, 1, 3, 4, 5, UINT32_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct sgp_fact agreed = word("a", 1, fact_members(topology));
        agreed.kind = SGP_FACT_AGREED;
        agreed.count = counts[i];
        cr_assert(eq(int, fact_is_sound(topology, 0, &agreed), counts[i] == 4));
        agreed.members++;
        cr_assert(eq(int, fact_is_sound(topology, 0, &agreed), counts[i] > 0));
        agreed.author = "x"; /* whom the file does not name */
        cr_assert(zero(int, fact_is_sound(topology, 0, &agreed)));
    }
    sgp_topology_destroy(topology);
}

/* A reader that has read up to an order gets each later word once, whatever is replaced, dropped or sorted meanwhile. */
Test(fact_table, words_are_read_in_the_order_of_arrival)
{
    struct sgp_topology *topology = ring();
    struct fact_table table = {.held = NULL};
    uint64_t members = fact_members(topology), read = 0;
    for (uint64_t number = 1; number <= 4; number++) /* the table is full */
        for (const char *author = "dbca"; *author != '\0'; author++) {
            struct sgp_fact told = word((char[]){*author, '\0'}, number, 7);
            cr_assert(fact_table_add(&table, topology, &told, number));
        }
    for (uint32_t i = 0; i < 16; i++) {
        const struct fact *fact = fact_table_after(&table, read);
        cr_assert(eq(u64, fact->order, i + 1));
        cr_assert(eq(u64, fact->from, i / 4 + 1));
        cr_assert(eq(int, fact->author[0], "dbca"[i % 4]));
        read = fact->order;
    }
    cr_assert(fact_table_after(&table, read) == NULL);
    struct sgp_fact ours = word("c", 1, members);
    cr_assert(
        fact_table_add(&table, topology, &ours, 9)); /* in the place of the first of decision 4 */
    cr_assert(eq(u32, table.count, 16));
    fact_table_by_author(&table);
    cr_assert(eq(int, table.held[0].author[0], 'a'));
    fact_table_by_arrival(&table);
    cr_assert(eq(u64, fact_table_after(&table, read)->from, 9));
    cr_assert(eq(u64, fact_table_after(&table, 12)->order, 14), "13 was replaced");
    fact_table_drop_before(&table, 2);
    cr_assert(eq(u64, fact_table_after(&table, 0)->order, 5));
    cr_assert(fact_table_after(&table, read) == NULL, "ours was of decision 1");
    cr_assert(eq(u64, table.last, 17));
    fact_table_finish(&table);
    sgp_topology_destroy(topology);
}
