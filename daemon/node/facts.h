/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions of all programs: each tells a word, and all get the words of all. Words are relayed from link to link until
 * everybody has them; no round waits for that. docs/rules/decide.md is the rule, and says why all get the same words.
 *
 * Fails: without memory a word that came is dropped, and comes again when its link does; one's own is refused.
 * Thread: the loop thread. */
#ifndef SGPD_FACTS_H
#define SGPD_FACTS_H

#include "fact_table.h"
#include "net/link.h"

struct daemon;

struct facts {
    struct fact_table table; /* of decision `agreed` and later ones */
    uint64_t agreed;         /* the latest decision of which all words are here; 0: none */
    uint64_t agreed_members; /* whose they are, */
    uint32_t agreed_count;   /* and how many */
    struct sgp_fact heard;   /* of a later one that a node agreed, without texts; number 0: none */
    bool asks;               /* the program waits for the next; decision.c, guests.c: no longer, */
    uint64_t told;  /* the latest decision that a program of this process came to; 0: none */
    bool unfetched; /* or has not been told the latest, in which it had a part */
    void (*decided)(struct daemon *daemon, const char *author, const char *text, uint32_t index,
        uint32_t count); /* told the program's words, one by one: `index` of so many */
};

void facts_finish(struct daemon *daemon);

/* The program's word in the next decision, unless it has told one. facts.decided follows, perhaps
 * at once. Returns 0, SGP_E_STATE with *error if no link reaches a member, or -ENOMEM. */
int facts_tell(struct daemon *daemon, const char *text, struct sgp_error *error);
/* Whether the program waits; then the names of the members whose word is missing. */
bool facts_missing(const struct daemon *daemon, char *ret_names, size_t bytes);

/* One came over a neighbour's link. */
void facts_take(struct daemon *daemon, const struct link *link, const struct sgp_fact *came);
/* A link is up: all that is held. */
void facts_greet(struct daemon *daemon, struct link *link);
/* Another file: other members. */
void facts_reloaded(struct daemon *daemon);

#endif
