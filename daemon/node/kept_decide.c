/* SPDX-License-Identifier: Apache-2.0 */
/* Words and decisions on the best model; see kept_inside.h. */
#include "kept_inside.h"

#include "facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(SGP_BEST_WORD_BYTES <= SGP_FACT_BYTES, "a word fits a decision");

struct kept_word {
    char author[SGP_NAME_BYTES], text[SGP_FACT_BYTES];
};

struct kept_words { /* of one decision, in the order of names */
    uint32_t count, self;
    const char **texts; /* of `words`; owned */
    struct kept_word words[];
};

void kept_drop_words(struct kept *kept)
{
    if (kept->words != NULL)
        free(kept->words->texts);
    free(kept->words);
    kept->words = NULL;
}

/* ---- what people read ---- */

/* Evaluations of a tiny model may take a millisecond, so at most one line a second is logged,
 * except the last. */
static void log_verdict(struct kept *kept, const struct sgp_best_verdict *verdict)
{
    const struct sgp_best *rule = &kept->rule;
    const bool due = verdict->over || verdict->stops || events_now() - kept->logged >= SGP_SECOND;
    if (due)
        kept->logged = events_now();
    if (verdict->closed > 0 || verdict->better)
        sgp_log(&kept->daemon->log->sink, due ? SGP_LEVEL_INFO : SGP_LEVEL_DEBUG,
            "event=best round=%" PRId64 " %s=%.9g rows=%" PRIu64 " evaluated=%" PRId64 "%s%s",
            rule->best.label, sgp_best_measure_name(rule->settings.measure),
            sgp_best_value(&rule->best), rule->best.count, rule->last,
            verdict->better ? " new=1" : "", verdict->stops ? " stops=1" : "");
}

static void report(
    struct daemon *daemon, const struct sgp_best_verdict *verdict, const struct kept_words *words)
{
    if (verdict->unlike < words->count)
        notes_error(daemon,
            "keep_best: %s evaluates by other settings than %s; give all nodes the same [train] "
            "keep_best and evaluate_every",
            words->words[verdict->unlike].author, daemon->config->name);
    else if (verdict->nothing)
        notes_error(daemon,
            "keep_best: no node has held-out rows; give [data] test or holdout on one of them");
    else if (verdict->closed > 0)
        notes_mended(daemon, "keep_best: ");
}

/* ---- a decision ---- */

static void decide(struct kept *kept)
{
    const struct kept_words *words = kept->words;
    struct sgp_best_verdict verdict;
    sgp_best_decide(&kept->rule, words->texts, words->count, words->self, &verdict);
    kept->stops = kept->stops || verdict.stops;
    kept->news = events_now();
    kept_write(kept);
    log_verdict(kept, &verdict);
    report(kept->daemon, &verdict, words);
}

static struct kept_words *begin_words(uint32_t count)
{
    struct kept_words *words = calloc(1, sizeof *words + count * sizeof *words->words);
    const char **texts = calloc(count, sizeof *texts);
    if (words == NULL || texts == NULL) {
        free(words);
        free(texts);
        return NULL;
    }
    words->texts = texts;
    words->self = count;
    return words;
}

/* One word of a decision. What follows from the last one is done later, because the table of words
 * is being read. Without memory the decision is left: the next one says what it has decided. */
static void on_word(
    struct daemon *daemon, const char *author, const char *text, uint32_t index, uint32_t count)
{
    struct kept *kept = daemon->kept;
    if (index == 0) {
        kept_drop_words(kept);
        kept->words = begin_words(count);
    }
    struct kept_words *words = kept->words;
    if (words == NULL || index >= count)
        return;
    struct kept_word *word = &words->words[index];
    (void)snprintf(word->author, sizeof word->author, "%s", author);
    (void)snprintf(word->text, sizeof word->text, "%s", text);
    words->texts[index] = word->text;
    words->count++;
    if (strcmp(author, daemon->config->name) == 0)
        words->self = index;
    if (index + 1 < count)
        return;
    decide(kept);
    kept_drop_words(kept);
    kept_wake(kept);
}

static void on_missed(struct daemon *daemon)
{
    (void)daemon; /* no word of this node is for the first decision alone */
}

void kept_listen(struct kept *kept)
{
    struct facts *facts = &kept->daemon->facts;
    facts->decided = on_word;
    facts->missed = on_missed;
    facts->listens = true;
}

/* ---- the word of this node ---- */

void kept_tell(struct kept *kept)
{
    struct sgp_best *rule = &kept->rule;
    struct sgp_error error = {0};
    if (kept->daemon->facts.asks || !sgp_best_has_news(rule))
        return;
    if (rule->word[0] == '\0') {
        sgp_best_say(rule);
        kept_write(kept);
        kept->said = kept->changes;
    }
    if (kept->written < kept->said) /* others must not know what a restart would not */
        return;
    const int code = facts_tell(kept->daemon, rule->word, false, &error);
    if (code < 0 && !kept->refused)
        notes_error(
            kept->daemon, "keep_best: %s", error.code < 0 ? error.text : sgp_strerror(code));
    kept->refused = code < 0;
}
