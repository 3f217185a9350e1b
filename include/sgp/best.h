/* SPDX-License-Identifier: Apache-2.0 */
/* The best model of a fleet: which evaluations count, which model all nodes keep, and when training
 * has brought nothing better for long.
 *
 * A *label* is the number of a round. The model that a node has before that round is measured, on
 * all nodes, after a *quiet cycle*: a cycle of the topology in which no node takes a step, so that
 * the models of all nodes are near their average.
 *
 * A *word* is what a node says in a decision of all nodes (docs/rules/best.md): the best model that
 * it knows of, and its counts at the labels that it has measured since. All nodes decide by the
 * same words, so all come to the same verdict:
 *
 * 1. A label is *closed* if all words have it. Its score is the sum of the sums over the sum of the
 *    counts. If a word lacks a label that its author may still measure, the label stays pending.
 * 2. The best is the greatest score of the closed labels, and of the best that is known so far; of
 *    equal scores the earliest label.
 * 3. Training is to stop if `patience` evaluations or more lie between the best and the latest
 *    closed label.
 *
 * A node that has lost its state learns the best from the words of others. More than half of them
 * must name one best and one latest label, which the node heeds once it has come to it or ended. A
 * single other word is heard only by a node that knows of no label. So what one member says of
 * labels that it did not measure with all others counts for nothing.
 *
 * Pure: no clock, socket or file. One thread at a time. */
#ifndef SGP_BEST_H
#define SGP_BEST_H

#include "sgp/measures.h"
#include "sgp/status.h"
#include "sgp/types.h"

#define SGP_BEST_PENDING 3u      /* measured labels that are not decided yet */
#define SGP_BEST_WORD_BYTES 200u /* of a word, with its terminating zero */
#define SGP_BEST_COUNT_MAX (UINT64_C(1) << 48)
#define SGP_BEST_MEASURE_WORDS "accuracy|log_loss|absolute_error|squared_error"

enum sgp_best_measure {
    SGP_BEST_ACCURACY = 1, /* the greater is the better; of the others the smaller */
    SGP_BEST_LOG_LOSS,
    SGP_BEST_ABSOLUTE_ERROR,
    SGP_BEST_SQUARED_ERROR,
    SGP_BEST_MEASURES = SGP_BEST_SQUARED_ERROR,
};

/* "log_loss"; static storage. NULL: no such measure. */
const char *sgp_best_measure_name(enum sgp_best_measure measure);
/* The measure of this name, or 0. */
enum sgp_best_measure sgp_best_measure_find(const char *name);

/* Whether a model whose outputs are measured as `kind` has the measure. */
bool sgp_best_suits(enum sgp_best_measure measure, enum sgp_measures_kind kind);
/* Those that it has: "accuracy or log_loss"; static storage. */
const char *sgp_best_suiting(enum sgp_measures_kind kind);

/* ---- when ------------------------------------------------------------------------------------ */

struct sgp_best_times {
    sgp_round first; /* the first round of the first cycle: those before it come once */
    sgp_round cycle; /* rounds of a cycle, >= 1 */
    sgp_round every; /* rounds from one evaluation to the next, as configured, >= 1 */
};

/* The rounds from one evaluation to the next: whole cycles, of which at least one trains. */
sgp_round sgp_best_period(const struct sgp_best_times *times);
/* Whether no node takes a step in this round. */
bool sgp_best_is_quiet(const struct sgp_best_times *times, sgp_round round);
/* Whether the model before this round is to be measured. */
bool sgp_best_is_label(const struct sgp_best_times *times, sgp_round round);

/* ---- what is measured ------------------------------------------------------------------------ */

/* Of a label; of one node, or of the fleet. */
struct sgp_best_score {
    sgp_round label; /* SGP_ROUND_NONE: there is none, and the rest is 0 */
    uint64_t count;  /* rows, or values of rows; 0: the node has none to measure on */
    double sum;      /* over them; the measure is sum / count. NaN: the model is not finite */
};

/* The measure; NaN if the count is 0. */
double sgp_best_value(const struct sgp_best_score *score);

struct sgp_best_settings {
    enum sgp_best_measure measure;
    uint64_t run;      /* its number */
    sgp_round every;   /* sgp_best_period */
    uint64_t patience; /* evaluations; 0: training is not stopped */
};

/* What a node knows, and must keep when it ends, but for `over` and what is heard. sgp_best_begin
 * sets it at first. */
struct sgp_best {
    struct sgp_best_settings settings;
    struct sgp_best_score best;                      /* of the fleet */
    sgp_round last;                                  /* the latest closed label */
    struct sgp_best_score pending[SGP_BEST_PENDING]; /* by label */
    uint32_t pending_count;
    /* The word that is not decided yet; "": none. A node that is started again says it again, since
     * others may have heard it. */
    char word[SGP_BEST_WORD_BYTES];
    uint32_t told;     /* so many of the pending labels, the first, are in it */
    sgp_round through; /* labels up to this one are measured, or will never be */
    /* The best and the latest label that others know of, until this node has come to that label. */
    struct sgp_best_score heard;
    sgp_round heard_last; /* SGP_ROUND_NONE: nothing */
    bool over;            /* this node has finished, and will measure no other label */
    bool settled;         /* a decision has been made in which all nodes said so */
};

void sgp_best_begin(struct sgp_best *best, const struct sgp_best_settings *settings);

/* This node has measured a label later than `through` (asserted), so nothing is settled. If there
 * is no room, an older pending label is forgotten, the oldest that is not told. */
void sgp_best_add(struct sgp_best *best, const struct sgp_best_score *score);

/* This node has finished, and will measure no other label. */
void sgp_best_finish(struct sgp_best *best);

/* Whether the node has something to say: an undecided word, a pending label, or that it has
 * finished. */
bool sgp_best_has_news(const struct sgp_best *best);

/* Begin the next word (best->word), if no word is undecided: printable, without line breaks. It
 * says the latest labels, at most SGP_BEST_PENDING - 1; older pending ones are forgotten. */
void sgp_best_say(struct sgp_best *best);

/* ---- the decision ---------------------------------------------------------------------------- */

struct sgp_best_verdict {
    uint32_t closed; /* labels that this decision has closed */
    bool better;     /* the best is another one than before */
    bool stops;      /* training has brought nothing better for `patience` evaluations */
    bool over;       /* all nodes have finished */
    bool nothing;    /* a label is in all words, and no node has rows to measure on */
    uint32_t unlike; /* the first word of other settings, or of another form; else `count` */
};

/* Decide by the words of all nodes, in an order that is the same on all nodes. `self` is the place
 * of this node's own word: labels of it that are closed, or can never be, are pending no more.
 * `self` = `count` means that this node has no word. If a word has other settings, no label is
 * closed. The same decision may come twice. */
void sgp_best_decide(struct sgp_best *best, const char *const *words, uint32_t count, uint32_t self,
    struct sgp_best_verdict *ret_verdict);

/* Whether one score is better than another, or an equal one of an earlier label. */
bool sgp_best_is_better(enum sgp_best_measure measure, const struct sgp_best_score *one,
    const struct sgp_best_score *other);

#endif
