/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions of all programs: each program gives a word, and all programs get the words of all.
 * Words are relayed from link to link until every node has them. No round waits for that.
 * docs/rules/decide.md is the rule, and says why all get the same words.
 *
 * Fails: without memory a received word is dropped, and arrives again when its link is up again.
 * The program's own word is refused. Thread: the loop thread. */
#ifndef SGPD_FACTS_H
#define SGPD_FACTS_H

#include "fact_table.h"
#include "net/link.h"

struct daemon;

struct facts {
    struct fact_table table; /* of decision `agreed` and later ones */
    uint64_t agreed;         /* the latest decision whose words are all here; 0: none */
    uint64_t agreed_members; /* its members */
    uint32_t agreed_count;   /* their number */
    /* a later decision that another node agreed on, without texts; number 0: none */
    struct sgp_fact heard;
    bool asks; /* the program waits for the next decision; decision.c, attachments.c: no longer */
    uint64_t told;  /* the latest decision that a program of this process reached; 0: none */
    bool unfetched; /* the program has not been sent the latest decision in which it took part */
    bool first;     /* the program's word is for the first decision, and for no later one */
    /* `decided` gets the words of each decision that has a word of this node, even if a former
     * process told that word. */
    bool listens;
    void (*decided)(struct daemon *daemon, const char *author, const char *text, uint32_t index,
        uint32_t count); /* called with the program's words, one by one: word `index` of `count` */
    void (*missed)(struct daemon *daemon); /* the first decision was made without this word */
};

void facts_finish(struct daemon *daemon);

/* The program's word in the next decision, unless it has given one. facts.decided is called later,
 * perhaps at once. With `first` the word counts only in the first decision that the members make
 * since their daemons came up. If this node or a neighbour knows of an earlier decision,
 * facts.missed is called instead. Returns 0, or with *error: SGP_E_STATE if no link reaches a
 * member, or if liars have used up the numbers of decisions; -ENOMEM. */
int facts_tell(struct daemon *daemon, const char *text, bool first, struct sgp_error *error);
/* Whether the program waits for a decision, and the names of the members whose word is missing. */
bool facts_missing(const struct daemon *daemon, char *ret_names, size_t bytes);

/* A word arrived on a neighbour's link. It is dropped unless it may be true (fact_is_sound). */
void facts_take(struct daemon *daemon, const struct link *link, const struct sgp_fact *came);
/* Queue the latest agreement and the words that each link has not been sent, while it has room.
 * Called after each turn of the loop. */
void facts_send(struct daemon *daemon);
/* Another file has other members. */
void facts_reloaded(struct daemon *daemon);

#endif
