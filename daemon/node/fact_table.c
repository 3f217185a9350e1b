/* SPDX-License-Identifier: Apache-2.0 */
/* The table of words of decisions; see fact_table.h. */
#include "fact_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#define WORDS_OF_A_NODE 4u /* two decisions, under two files */

uint64_t fact_members(const struct sgp_topology *topology)
{
    uint64_t digest = 0;
    for (uint32_t i = 0; i < topology->node_count; i++) {
        const struct sgp_topology_node *node = &topology->nodes[i];
        if (!node->relay)
            digest = XXH3_64bits_withSeed(node->name, strlen(node->name) + 1, digest);
    }
    return digest;
}

bool fact_is_near(uint64_t agreed, uint64_t number)
{
    return number >= agreed && number <= FACT_NUMBER_MAX &&
           number - agreed <= FACT_NUMBER_AHEAD_MAX;
}

bool fact_is_sound(
    const struct sgp_topology *topology, uint64_t agreed, const struct sgp_fact *word)
{
    if (!fact_is_near(agreed, word->number))
        return false;
    if (word->kind != SGP_FACT_AGREED)
        return true;
    bool ours = word->members == fact_members(topology);
    return word->count > 0 && (!ours || word->count == sgp_topology_trainers(topology)) &&
           sgp_topology_find(topology, word->author) >= 0;
}

const struct fact *fact_table_find(
    const struct fact_table *table, const char *author, uint64_t number, uint64_t members)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const struct fact *fact = &table->held[i];
        if (fact->number == number && fact->members == members && strcmp(fact->author, author) == 0)
            return fact;
    }
    return NULL;
}

const struct fact *fact_table_after(const struct fact_table *table, uint64_t order)
{
    uint32_t low = 0;
    for (uint32_t high = table->count; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        if (table->held[middle].order <= order)
            low = middle + 1;
        else
            high = middle;
    }
    return low < table->count ? &table->held[low] : NULL;
}

uint32_t fact_table_count(const struct fact_table *table, uint64_t number, uint64_t members)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < table->count; i++)
        count += table->held[i].number == number && table->held[i].members == members;
    return count;
}

/* ---- replacement ---- */

struct use {
    bool stranger, others;
    uint64_t number;
};

static struct use use_of(const struct sgp_topology *topology, uint64_t members, const char *author,
    uint64_t number, uint64_t of_members)
{
    return (struct use){.stranger = sgp_topology_find(topology, author) < 0,
        .others = of_members != members,
        .number = number};
}

static bool is_less(const struct use *a, const struct use *b)
{
    if (a->stranger != b->stranger)
        return a->stranger;
    if (a->others != b->others)
        return a->others;
    return a->number > b->number;
}

/* The place of the least useful word, if that is less useful than the new one. Otherwise NULL. */
static struct fact *place_taken(
    struct fact_table *table, const struct sgp_topology *topology, const struct sgp_fact *word)
{
    uint64_t members = fact_members(topology);
    struct use least = use_of(topology, members, word->author, word->number, word->members);
    struct fact *place = NULL;
    for (uint32_t i = 0; i < table->count; i++) {
        struct fact *fact = &table->held[i];
        struct use use = use_of(topology, members, fact->author, fact->number, fact->members);
        if (is_less(&use, &least)) {
            least = use;
            place = fact;
        }
    }
    return place;
}

/* ---- adding and removing ---- */

static bool grow(struct fact_table *table, uint32_t most)
{
    uint32_t capacity = table->capacity > 0 ? 2 * table->capacity : 16;
    capacity = capacity < most ? capacity : most;
    struct fact *held = realloc(table->held, capacity * sizeof *held);
    if (held == NULL)
        return false;
    table->held = held;
    table->capacity = capacity;
    return true;
}

/* Take a word out, and return the place behind the last one. */
static struct fact *move_last(struct fact_table *table, struct fact *place)
{
    struct fact *last = &table->held[table->count - 1];
    memmove(place, place + 1, (size_t)(last - place) * sizeof *place);
    return last;
}

bool fact_table_add(struct fact_table *table, const struct sgp_topology *topology,
    const struct sgp_fact *word, uint64_t from)
{
    uint32_t most = WORDS_OF_A_NODE * topology->node_count;
    struct fact *place = NULL;
    bool ours = word->members == fact_members(topology);
    if (ours && sgp_topology_find(topology, word->author) < 0)
        return false;
    if (table->count >= most)
        place = place_taken(table, topology, word);
    else if (table->count < table->capacity || grow(table, most))
        place = &table->held[table->count++];
    if (place == NULL)
        return false;
    place = move_last(table, place);
    *place = (struct fact){
        .number = word->number, .members = word->members, .order = ++table->last, .from = from};
    (void)snprintf(place->author, sizeof place->author, "%s", word->author);
    (void)snprintf(place->text, sizeof place->text, "%s", word->text);
    return true;
}

void fact_table_drop_before(struct fact_table *table, uint64_t number)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < table->count; i++)
        if (table->held[i].number >= number)
            table->held[kept++] = table->held[i];
    table->count = kept;
}

/* ---- order ---- */

static int compare_authors(const void *a, const void *b)
{
    return strcmp(((const struct fact *)a)->author, ((const struct fact *)b)->author);
}

static int compare_arrivals(const void *a, const void *b)
{
    uint64_t first = ((const struct fact *)a)->order, second = ((const struct fact *)b)->order;
    return (first > second) - (first < second);
}

void fact_table_by_author(struct fact_table *table)
{
    if (table->count > 0)
        qsort(table->held, table->count, sizeof *table->held, compare_authors);
}

void fact_table_by_arrival(struct fact_table *table)
{
    if (table->count > 0)
        qsort(table->held, table->count, sizeof *table->held, compare_arrivals);
}

void fact_table_finish(struct fact_table *table)
{
    free(table->held);
    *table = (struct fact_table){.held = NULL};
}
