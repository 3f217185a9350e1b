/* SPDX-License-Identifier: Apache-2.0 */
/* The best model of a fleet; see sgp/best.h. */
#include "sgp/best.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABELS_OF_A_WORD (SGP_BEST_PENDING - 1)

const char *sgp_best_measure_name(enum sgp_best_measure measure)
{
    static const char *const names[] = {[SGP_BEST_ACCURACY] = "accuracy",
        [SGP_BEST_LOG_LOSS] = "log_loss",
        [SGP_BEST_ABSOLUTE_ERROR] = "absolute_error",
        [SGP_BEST_SQUARED_ERROR] = "squared_error"};
    return (unsigned)measure <= SGP_BEST_MEASURES ? names[measure] : NULL;
}

enum sgp_best_measure sgp_best_measure_find(const char *name)
{
    unsigned measure = SGP_BEST_MEASURES;
    while (measure > 0 && strcmp(name, sgp_best_measure_name((enum sgp_best_measure)measure)) != 0)
        measure--;
    return (enum sgp_best_measure)measure;
}

/* ---- what a model is measured by ---- */

struct suiting {
    enum sgp_best_measure measures[2]; /* the second may be 0 */
    const char *names;
};

static const struct suiting *suiting(enum sgp_measures_kind kind)
{
    static const struct suiting classes = {
        {SGP_BEST_ACCURACY, SGP_BEST_LOG_LOSS}, "accuracy or log_loss"};
    static const struct suiting scores = {{SGP_BEST_ACCURACY}, "accuracy"};
    static const struct suiting numbers = {
        {SGP_BEST_SQUARED_ERROR, SGP_BEST_ABSOLUTE_ERROR}, "squared_error or absolute_error"};
    return kind == SGP_MEASURES_NUMBERS  ? &numbers
           : kind == SGP_MEASURES_SCORES ? &scores
                                         : &classes;
}

bool sgp_best_suits(enum sgp_best_measure measure, enum sgp_measures_kind kind)
{
    const struct suiting *found = suiting(kind);
    return measure != 0 && (measure == found->measures[0] || measure == found->measures[1]);
}

const char *sgp_best_suiting(enum sgp_measures_kind kind)
{
    return suiting(kind)->names;
}

/* ---- when ---- */

sgp_round sgp_best_period(const struct sgp_best_times *times)
{
    const sgp_round cycles = (times->every + times->cycle - 1) / times->cycle;
    return (cycles > 2 ? cycles : 2) * times->cycle;
}

bool sgp_best_is_quiet(const struct sgp_best_times *times, sgp_round round)
{
    const sgp_round period = sgp_best_period(times), since = round - times->first;
    return since >= 0 && since % period >= period - times->cycle;
}

bool sgp_best_is_label(const struct sgp_best_times *times, sgp_round round)
{
    const sgp_round since = round - times->first;
    return since > 0 && since % sgp_best_period(times) == 0;
}

/* ---- scores ---- */

double sgp_best_value(const struct sgp_best_score *score)
{
    return score->count > 0 ? score->sum / (double)score->count : (double)NAN;
}

/* With equal counts the sums are compared, which are exact for counts of correct rows. */
bool sgp_best_is_better(enum sgp_best_measure measure, const struct sgp_best_score *one,
    const struct sgp_best_score *other)
{
    const bool alike = one->count == other->count;
    const double a = alike ? one->sum : sgp_best_value(one);
    const double b = alike ? other->sum : sgp_best_value(other);
    if (one->label == SGP_ROUND_NONE || one->count == 0 || !isfinite(a))
        return false;
    if (other->label == SGP_ROUND_NONE || other->count == 0 || !isfinite(b))
        return true;
    if (a < b || a > b)
        return measure == SGP_BEST_ACCURACY ? a > b : a < b;
    return one->label < other->label;
}

/* ---- what this node has measured ---- */

void sgp_best_begin(struct sgp_best *best, const struct sgp_best_settings *settings)
{
    *best = (struct sgp_best){.settings = *settings,
        .best.label = SGP_ROUND_NONE,
        .last = SGP_ROUND_NONE,
        .through = SGP_ROUND_NONE,
        .heard_last = SGP_ROUND_NONE};
}

static void pass(struct sgp_best *best, sgp_round label)
{
    best->last = label > best->last ? label : best->last;
}

/* Take what was heard, once the node has come to that label, or comes to none any more. */
static void recall(struct sgp_best *best)
{
    const bool early = best->heard_last > best->through && !best->over;
    if (best->heard_last == SGP_ROUND_NONE || early)
        return;
    if (sgp_best_is_better(best->settings.measure, &best->heard, &best->best))
        best->best = best->heard;
    pass(best, best->heard_last);
    best->heard_last = SGP_ROUND_NONE;
}

/* Forget a pending label, by its place. */
static void forget(struct sgp_best *best, uint32_t place)
{
    memmove(&best->pending[place], &best->pending[place + 1],
        (best->pending_count - place - 1) * sizeof *best->pending);
    best->pending_count--;
    best->told -= place < best->told;
}

void sgp_best_add(struct sgp_best *best, const struct sgp_best_score *score)
{
    sgp_assert(score->label > best->through);
    best->through = score->label;
    best->settled = false; /* training has gone on */
    if (best->pending_count == SGP_BEST_PENDING)
        forget(best, best->told);
    best->pending[best->pending_count++] = *score;
    recall(best);
}

void sgp_best_finish(struct sgp_best *best)
{
    best->over = true;
    recall(best);
}

bool sgp_best_has_news(const struct sgp_best *best)
{
    return best->word[0] != '\0' || best->pending_count > 0 || (best->over && !best->settled);
}

static size_t put_score(const struct sgp_best_score *score, char *text, size_t bytes)
{
    return (size_t)snprintf(
        text, bytes, " %" PRId64 " %" PRIu64 " %a", score->label, score->count, score->sum);
}

/* "best RUN EVERY MEASURE THROUGH LAST BEST COUNT SUM [LABEL COUNT SUM]..." Returns its bytes, also if
 * they do not fit. */
static size_t put_word(const struct sgp_best *best, char text[SGP_BEST_WORD_BYTES])
{
    const struct sgp_best_settings *settings = &best->settings;
    size_t used = (size_t)snprintf(text, SGP_BEST_WORD_BYTES,
        "best %" PRIu64 " %" PRId64 " %d %" PRId64 " %" PRId64, settings->run, settings->every,
        (int)settings->measure, best->over ? SGP_ROUND_MAX : best->through, best->last);
    used += put_score(&best->best, text + used, SGP_BEST_WORD_BYTES - used);
    for (uint32_t i = 0; i < best->pending_count && used < SGP_BEST_WORD_BYTES; i++)
        used += put_score(&best->pending[i], text + used, SGP_BEST_WORD_BYTES - used);
    return used;
}

void sgp_best_say(struct sgp_best *best)
{
    if (best->word[0] != '\0')
        return;
    while (best->pending_count > LABELS_OF_A_WORD)
        forget(best, 0);
    while (put_word(best, best->word) >= SGP_BEST_WORD_BYTES)
        forget(best, 0);
    best->told = best->pending_count;
}

/* ---- the decision ---- */

struct word {
    struct sgp_best_score best;
    sgp_round through, last;
    struct sgp_best_score labels[LABELS_OF_A_WORD];
    uint32_t label_count;
};

/* The next number of a word. "-1", which is no number of rounds, is taken if `least` allows it.
 * False: there is none in this range. */
static bool take_number(const char **text, int64_t least, int64_t most, int64_t *ret_number)
{
    char *end;
    const bool none = (*text)[0] == ' ' && (*text)[1] == '-';
    const char *from = *text + (none ? 2 : 1);
    if (**text != ' ' || *from < '0' || *from > '9')
        return false;
    const unsigned long long size = strtoull(from, &end, 10);
    if (size > (unsigned long long)INT64_MAX)
        return false;
    const int64_t number = none ? -(int64_t)size : (int64_t)size;
    if (number < least || number > most)
        return false;
    *ret_number = number;
    *text = end;
    return true;
}

static bool take_score(const char **text, struct sgp_best_score *ret_score)
{
    int64_t label, count;
    char *end;
    if (!take_number(text, SGP_ROUND_NONE, SGP_ROUND_MAX, &label) ||
        !take_number(text, 0, (int64_t)SGP_BEST_COUNT_MAX, &count) || **text != ' ')
        return false;
    const double sum = strtod(*text + 1, &end);
    if (end == *text + 1)
        return false;
    *text = end;
    *ret_score = (struct sgp_best_score){.label = label, .count = (uint64_t)count, .sum = sum};
    return true;
}

static bool read_word(
    const char *text, const struct sgp_best_settings *settings, struct word *ret_word)
{
    int64_t run, every, measure;
    *ret_word = (struct word){.label_count = 0};
    if (strncmp(text, "best", 4) != 0)
        return false;
    text += 4;
    if (!take_number(&text, 0, INT64_MAX, &run) || !take_number(&text, 1, SGP_ROUND_MAX, &every) ||
        !take_number(&text, 1, SGP_BEST_MEASURES, &measure) ||
        !take_number(&text, SGP_ROUND_NONE, SGP_ROUND_MAX, &ret_word->through) ||
        !take_number(&text, SGP_ROUND_NONE, SGP_ROUND_MAX, &ret_word->last) ||
        !take_score(&text, &ret_word->best))
        return false;
    while (*text != '\0' && ret_word->label_count < LABELS_OF_A_WORD) {
        const struct sgp_best_score *before =
            ret_word->label_count > 0 ? &ret_word->labels[ret_word->label_count - 1] : NULL;
        struct sgp_best_score *label = &ret_word->labels[ret_word->label_count];
        if (!take_score(&text, label) || label->label < 0 ||
            (before != NULL && label->label <= before->label))
            return false;
        ret_word->label_count++;
    }
    return *text == '\0' && (uint64_t)run == settings->run && every == settings->every &&
           measure == (int64_t)settings->measure;
}

static const struct sgp_best_score *score_at(const struct word *word, sgp_round label)
{
    for (uint32_t i = 0; i < word->label_count; i++)
        if (word->labels[i].label == label)
            return &word->labels[i];
    return NULL;
}

/* A label while the words are read. */
struct label {
    struct sgp_best_score sum;
    bool lacking; /* a word does not have it */
    bool dead;    /* its author will not measure it, or says other things */
};

static void add_word(struct label *label, const struct word *word, bool alike)
{
    const struct sgp_best_score *score = score_at(word, label->sum.label);
    if (!alike || score == NULL) {
        label->lacking = true;
        label->dead = label->dead || !alike || word->through >= label->sum.label;
        return;
    }
    label->sum.count += score->count;
    label->sum.sum += score->count > 0 ? score->sum : 0;
    if (label->sum.count > SGP_BEST_COUNT_MAX) /* which no word could tell */
        label->lacking = label->dead = true;
}

static void improve(
    struct sgp_best *best, const struct sgp_best_score *score, struct sgp_best_verdict *verdict)
{
    if (!sgp_best_is_better(best->settings.measure, score, &best->best))
        return;
    best->best = *score;
    verdict->better = true;
}

/* Whether two words name one best, and one latest label. */
static bool is_same_past(const struct word *one, const struct word *other)
{
    return one->last == other->last && one->best.label == other->best.label &&
           one->best.count == other->best.count && one->best.sum == other->best.sum;
}

/* The best and the latest label that more than half of the words of others name (Boyer and Moore,
 * MJRTY, 1991, which finds the candidate in one pass). Returns how many; 0: there are none such. */
static uint32_t find_past(const struct sgp_best_settings *settings, const char *const *words,
    uint32_t count, uint32_t self, struct word *ret_past)
{
    const uint32_t others = count - (self < count);
    uint32_t lead = 0, alike = 0;
    struct word word;
    for (uint32_t i = 0; i < count; i++) {
        if (i == self || !read_word(words[i], settings, &word))
            continue;
        if (lead == 0)
            *ret_past = word;
        lead += lead == 0 || is_same_past(&word, ret_past) ? 1 : UINT32_MAX;
    }
    for (uint32_t i = 0; lead > 0 && i < count; i++)
        alike += i != self && read_word(words[i], settings, &word) && is_same_past(&word, ret_past);
    return 2 * alike > others ? alike : 0;
}

/* What others know of the past, which this node may have lost. A single other node is heard only by
 * a node that knows nothing itself. */
static void hear(struct sgp_best *best, const struct word *past, uint32_t alike,
    struct sgp_best_verdict *verdict)
{
    const bool knows = best->best.label != SGP_ROUND_NONE || best->last != SGP_ROUND_NONE;
    const sgp_round before = best->best.label;
    best->heard_last = SGP_ROUND_NONE;
    if (past->best.label > past->last || (alike == 1 && knows))
        return;
    best->heard = past->best;
    best->heard_last = past->last;
    recall(best);
    verdict->better = best->best.label != before;
}

/* A label of all words counts. */
static void close_label(
    struct sgp_best *best, const struct label *label, struct sgp_best_verdict *verdict)
{
    verdict->closed++;
    verdict->nothing = verdict->nothing || label->sum.count == 0;
    pass(best, label->sum.label);
    improve(best, &label->sum, verdict);
}

static void drop_pending(struct sgp_best *best, sgp_round label)
{
    for (uint32_t i = best->pending_count; i-- > 0;)
        if (best->pending[i].label == label)
            forget(best, i);
}

static bool is_patient(const struct sgp_best *best)
{
    const struct sgp_best_settings *settings = &best->settings;
    return settings->patience == 0 || best->best.label == SGP_ROUND_NONE ||
           best->last < best->best.label ||
           (uint64_t)((best->last - best->best.label) / settings->every) < settings->patience;
}

void sgp_best_decide(struct sgp_best *best, const char *const *words, uint32_t count, uint32_t self,
    struct sgp_best_verdict *ret_verdict)
{
    struct sgp_best_verdict verdict = {.unlike = count, .over = true};
    struct label labels[LABELS_OF_A_WORD];
    struct word word, past = {.last = SGP_ROUND_NONE};
    uint32_t label_count = 0;
    const uint32_t alike = find_past(&best->settings, words, count, self, &past);
    if (alike > 0)
        hear(best, &past, alike, &verdict);
    /* the labels of the own word: those of others alone are not closed */
    if (self < count && read_word(words[self], &best->settings, &word))
        for (; label_count < word.label_count; label_count++)
            labels[label_count] = (struct label){.sum.label = word.labels[label_count].label};
    for (uint32_t i = 0; i < count; i++) {
        const bool ours = read_word(words[i], &best->settings, &word);
        verdict.unlike = !ours && verdict.unlike == count ? i : verdict.unlike;
        for (uint32_t l = 0; l < label_count; l++)
            add_word(&labels[l], &word, ours);
        verdict.over = verdict.over && ours && word.through == SGP_ROUND_MAX;
    }
    for (uint32_t l = 0; l < label_count; l++) {
        if (!labels[l].lacking)
            close_label(best, &labels[l], &verdict);
        if (!labels[l].lacking || labels[l].dead)
            drop_pending(best, labels[l].sum.label);
    }
    if (self < count && strcmp(words[self], best->word) == 0) {
        best->word[0] = '\0';
        best->told = 0;
    }
    best->settled = best->settled || (self < count && verdict.over);
    verdict.stops = !is_patient(best);
    *ret_verdict = verdict;
}
