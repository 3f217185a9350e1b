/* SPDX-License-Identifier: Apache-2.0 */
/* The table of words of decisions: one word for each author, decision and set of members. The size
 * of the fleet limits the table. So a member that invents words costs neither memory nor another
 * member's word.
 *
 * Thread: one at a time. */
#ifndef SGPD_FACT_TABLE_H
#define SGPD_FACT_TABLE_H

#include "sgp/message.h"
#include "sgp/topology.h"

#include <stdbool.h>
#include <stdint.h>

struct fact {
    uint64_t number, members;
    uint64_t order; /* of arrival: 1, 2, ... */
    uint64_t from;  /* the connection that brought it; 0: this node told it */
    char author[SGP_NAME_BYTES], text[SGP_FACT_BYTES];
};

struct fact_table {
    struct fact *held; /* in the order of arrival */
    uint32_t count, capacity;
    uint64_t last; /* the order of the latest word, even if it was removed; 0: none */
};

/* The digest of the names of the nodes that train. */
uint64_t fact_members(const struct sgp_topology *topology);

/* Whether a word may be of decision `number` at a node that has agreed on decision `agreed`. A
 * fleet never makes FACT_NUMBER_MAX decisions, and a node that joins it lacks at most
 * FACT_NUMBER_AHEAD_MAX. */
#define FACT_NUMBER_MAX ((uint64_t)1 << 62)
#define FACT_NUMBER_AHEAD_MAX ((uint64_t)1 << 40)
bool fact_is_near(uint64_t agreed, uint64_t number);

/* Whether a word that came may be true: it is near, and an agreement has the number of members that
 * the file says. Nobody can judge the number of members of another file. */
bool fact_is_sound(
    const struct sgp_topology *topology, uint64_t agreed, const struct sgp_fact *word);

/* NULL: there is none. The result is valid until the table changes. */
const struct fact *fact_table_find(
    const struct fact_table *table, const char *author, uint64_t number, uint64_t members);

/* The first word that arrived after the one of this order. NULL: there is none. */
const struct fact *fact_table_after(const struct fact_table *table, uint64_t order);

/* The number of words of this decision in the table. */
uint32_t fact_table_count(const struct fact_table *table, uint64_t number, uint64_t members);

/* Add a word that is not in the table, and that this connection brought. The table has room for
 * four words of each node of the file: two decisions, under two files. In a full table the least
 * useful word is replaced: first of an author whom the file does not name, then of other
 * members, then of the latest decision. Returns false, and changes nothing, in three cases: the
 * new word is the least useful, its author is none of its members, or there is no memory. */
bool fact_table_add(struct fact_table *table, const struct sgp_topology *topology,
    const struct sgp_fact *word, uint64_t from);

/* Sort the words by author, to read them in that order; then by arrival again. */
void fact_table_by_author(struct fact_table *table);
void fact_table_by_arrival(struct fact_table *table);

/* Remove the words of decisions before this one. */
void fact_table_drop_before(struct fact_table *table, uint64_t number);

void fact_table_finish(struct fact_table *table);

#endif
