/* SPDX-License-Identifier: Apache-2.0 */
/* The best model of a fleet: when models are measured, what words say, and what follows from the
 * words of all nodes. */
#include "sgp/best.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NODES 3u

struct fleet {
    struct sgp_best nodes[NODES];
};

static struct fleet begin(enum sgp_best_measure measure, uint64_t patience)
{
    struct fleet fleet;
    const struct sgp_best_settings settings = {
        .measure = measure, .run = 1, .every = 10, .patience = patience};
    for (uint32_t i = 0; i < NODES; i++)
        sgp_best_begin(&fleet.nodes[i], &settings);
    return fleet;
}

static void measure(struct sgp_best *best, sgp_round label, uint64_t count, double sum)
{
    sgp_best_add(best, &(struct sgp_best_score){.label = label, .count = count, .sum = sum});
}

/* All nodes say a word and decide; all must come to the same. */
static struct sgp_best_verdict decide(struct fleet *fleet)
{
    char texts[NODES][SGP_BEST_WORD_BYTES];
    const char *words[NODES];
    struct sgp_best_verdict first, other;
    for (uint32_t i = 0; i < NODES; i++) {
        sgp_best_say(&fleet->nodes[i]);
        (void)snprintf(texts[i], sizeof texts[i], "%s", fleet->nodes[i].word);
        words[i] = texts[i];
    }
    sgp_best_decide(&fleet->nodes[0], words, NODES, 0, &first);
    for (uint32_t i = 1; i < NODES; i++) {
        sgp_best_decide(&fleet->nodes[i], words, NODES, i, &other);
        cr_assert(eq(i64, fleet->nodes[i].best.label, fleet->nodes[0].best.label));
        cr_assert(eq(u64, fleet->nodes[i].best.count, fleet->nodes[0].best.count));
        cr_assert(eq(i64, fleet->nodes[i].last, fleet->nodes[0].last));
        cr_assert(eq(int, other.stops, first.stops));
        cr_assert(eq(u32, other.closed, first.closed));
        cr_assert(eq(str, fleet->nodes[i].word, ""));
    }
    return first;
}

/* Each node counts 10 rows, and these sums. */
static struct sgp_best_verdict round_of(
    struct fleet *fleet, sgp_round label, double a, double b, double c)
{
    measure(&fleet->nodes[0], label, 10, a);
    measure(&fleet->nodes[1], label, 10, b);
    measure(&fleet->nodes[2], label, 10, c);
    return decide(fleet);
}

Test(best, a_kind_of_outputs_has_the_measures_that_messages_name)
{
    for (enum sgp_measures_kind kind = SGP_MEASURES_LOGITS; kind <= SGP_MEASURES_NUMBERS; kind++) {
        uint32_t count = 0;
        cr_assert(not(sgp_best_suits(0, kind)));
        for (enum sgp_best_measure measure = 1; measure <= SGP_BEST_MEASURES; measure++) {
            const char *name = sgp_best_measure_name(measure);
            cr_assert(eq(int, sgp_best_measure_find(name), measure));
            count += sgp_best_suits(measure, kind);
            cr_assert(eq(
                int, strstr(sgp_best_suiting(kind), name) != NULL, sgp_best_suits(measure, kind)));
        }
        cr_assert(eq(u32, count, kind == SGP_MEASURES_SCORES ? 1 : 2));
    }
    cr_assert(eq(int, sgp_best_measure_find("loss"), 0));
    cr_assert(eq(int, sgp_best_measure_find(""), 0));
}

Test(best, the_last_cycle_before_a_label_is_quiet)
{
    const struct sgp_best_times times = {.first = 4, .cycle = 3, .every = 8};
    cr_assert(eq(i64, sgp_best_period(&times), 9), "whole cycles");
    for (sgp_round round = 0; round < 100; round++) {
        const bool quiet = round >= 4 && (round - 4) % 9 >= 6;
        cr_assert(eq(int, sgp_best_is_quiet(&times, round), quiet), "round %ld", (long)round);
        cr_assert(eq(int, sgp_best_is_label(&times, round), round > 4 && (round - 4) % 9 == 0));
    }
}

Test(best, a_period_has_a_cycle_that_trains)
{
    cr_assert(eq(i64, sgp_best_period(&(struct sgp_best_times){.cycle = 5, .every = 1}), 10));
    cr_assert(eq(i64, sgp_best_period(&(struct sgp_best_times){.cycle = 1, .every = 2}), 2));
}

Test(best, the_score_is_the_sum_over_all_nodes)
{
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 0);
    const struct sgp_best_verdict verdict = round_of(&fleet, 10, 9, 1, 5);
    cr_assert(verdict.better);
    cr_assert(eq(u32, verdict.closed, 1));
    cr_assert(eq(i64, fleet.nodes[0].best.label, 10));
    cr_assert(eq(dbl, sgp_best_value(&fleet.nodes[0].best), 0.5));
    cr_assert(not(round_of(&fleet, 20, 0, 10, 4).better), "14 of 30 is less");
    cr_assert(round_of(&fleet, 30, 0, 10, 6).better);
}

Test(best, of_equal_scores_the_earliest_label_is_the_best)
{
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 0);
    (void)round_of(&fleet, 10, 5, 5, 5);
    cr_assert(not(round_of(&fleet, 20, 0, 10, 5).better));
    cr_assert(eq(i64, fleet.nodes[1].best.label, 10));
}

Test(best, of_errors_the_least_is_the_best)
{
    struct fleet fleet = begin(SGP_BEST_LOG_LOSS, 0);
    (void)round_of(&fleet, 10, 5, 5, 5);
    cr_assert(round_of(&fleet, 20, 1, 1, 1).better);
    cr_assert(not(round_of(&fleet, 30, 1, 1, 1.5).better));
}

Test(best, training_stops_after_so_many_evaluations_without_a_better_model)
{
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 3);
    cr_assert(not(round_of(&fleet, 10, 1, 1, 1).stops));
    cr_assert(not(round_of(&fleet, 20, 2, 2, 2).stops));
    cr_assert(not(round_of(&fleet, 30, 2, 2, 1).stops));
    cr_assert(not(round_of(&fleet, 40, 2, 2, 2).stops));
    cr_assert(round_of(&fleet, 50, 1, 1, 1).stops, "the best is of 20");
}

Test(best, without_patience_it_never_stops)
{
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 0);
    (void)round_of(&fleet, 10, 9, 9, 9);
    for (sgp_round label = 20; label < 500; label += 10)
        cr_assert(not(round_of(&fleet, label, 1, 1, 1).stops));
}

Test(best, a_node_without_rows_lets_the_others_choose)
{
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 0);
    measure(&fleet.nodes[0], 10, 0, 0);
    measure(&fleet.nodes[1], 10, 10, 4);
    measure(&fleet.nodes[2], 10, 30, 6);
    const struct sgp_best_verdict verdict = decide(&fleet);
    cr_assert(verdict.better);
    cr_assert(not(verdict.nothing));
    cr_assert(eq(dbl, sgp_best_value(&fleet.nodes[0].best), 0.25));
}

Test(best, without_rows_at_any_node_there_is_no_best)
{
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 1);
    for (uint32_t i = 0; i < NODES; i++)
        measure(&fleet.nodes[i], 10, 0, 0);
    const struct sgp_best_verdict verdict = decide(&fleet);
    cr_assert(verdict.nothing);
    cr_assert(not(verdict.better));
    cr_assert(not(verdict.stops));
    cr_assert(eq(i64, fleet.nodes[0].best.label, SGP_ROUND_NONE));
}

Test(best, a_model_that_is_not_finite_is_never_the_best)
{
    struct fleet fleet = begin(SGP_BEST_LOG_LOSS, 0);
    cr_assert(not(round_of(&fleet, 10, 1, NAN, 1).better));
    cr_assert(not(round_of(&fleet, 20, 1, HUGE_VAL, 1).better));
    cr_assert(round_of(&fleet, 30, 9, 9, 9).better);
}

Test(best, a_label_that_a_word_lacks_is_not_closed)
{
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 0);
    measure(&fleet.nodes[0], 10, 10, 9);
    measure(&fleet.nodes[1], 10, 10, 9);
    measure(&fleet.nodes[2], 20, 10, 9); /* it was away at 10 */
    cr_assert(eq(u32, decide(&fleet).closed, 0));
    cr_assert(eq(u32, fleet.nodes[0].pending_count, 0), "the third node will never measure it");
    cr_assert(eq(u32, fleet.nodes[2].pending_count, 1), "the others may still measure it");
    measure(&fleet.nodes[0], 20, 10, 1);
    measure(&fleet.nodes[1], 20, 10, 1);
    cr_assert(eq(u32, decide(&fleet).closed, 1));
    cr_assert(eq(dbl, fleet.nodes[0].best.sum, 11));
}

Test(best, two_labels_in_a_word_are_both_closed)
{
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 0);
    for (uint32_t i = 0; i < NODES; i++) {
        measure(&fleet.nodes[i], 10, 10, 5);
        measure(&fleet.nodes[i], 20, 10, 8);
    }
    cr_assert(eq(u32, decide(&fleet).closed, 2));
    cr_assert(eq(i64, fleet.nodes[2].best.label, 20));
}

Test(best, more_labels_than_there_is_room_for_are_forgotten_from_the_oldest)
{
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 0);
    struct sgp_best *best = &fleet.nodes[0];
    measure(best, 10, 10, 5);
    sgp_best_say(best);
    for (sgp_round label = 20; label <= 60; label += 10)
        measure(best, label, 10, 5);
    cr_assert(eq(u32, best->pending_count, SGP_BEST_PENDING));
    cr_assert(eq(i64, best->pending[0].label, 10), "it is told");
    cr_assert(eq(i64, best->pending[1].label, 50));
    cr_assert(eq(i64, best->pending[2].label, 60));
}

Test(best, a_word_stays_until_it_is_decided)
{
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 0);
    struct sgp_best *best = &fleet.nodes[0];
    char word[SGP_BEST_WORD_BYTES];
    measure(best, 10, 10, 5);
    sgp_best_say(best);
    memcpy(word, best->word, sizeof word);
    measure(best, 20, 10, 6);
    sgp_best_say(best);
    cr_assert(eq(str, best->word, word), "others may have heard it");
}

Test(best, a_decision_that_comes_again_changes_nothing)
{
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 0);
    char texts[NODES][SGP_BEST_WORD_BYTES];
    const char *words[NODES];
    struct sgp_best_verdict verdict;
    for (uint32_t i = 0; i < NODES; i++) {
        measure(&fleet.nodes[i], 10, 10, 5);
        sgp_best_say(&fleet.nodes[i]);
        memcpy(texts[i], fleet.nodes[i].word, sizeof texts[i]);
        words[i] = texts[i];
    }
    sgp_best_decide(&fleet.nodes[0], words, NODES, 0, &verdict);
    measure(&fleet.nodes[0], 20, 10, 6);
    sgp_best_say(&fleet.nodes[0]);
    const struct sgp_best before = fleet.nodes[0];
    sgp_best_decide(&fleet.nodes[0], words, NODES, 0, &verdict);
    cr_assert(eq(u32, before.pending_count, fleet.nodes[0].pending_count));
    cr_assert(eq(str, (char *)before.word, fleet.nodes[0].word));
    cr_assert(eq(i64, before.best.label, fleet.nodes[0].best.label));
}

Test(best, the_words_say_what_a_node_that_lost_its_state_does_not_know)
{
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 0);
    (void)round_of(&fleet, 10, 9, 9, 9);
    const struct sgp_best_settings settings = fleet.nodes[1].settings;
    sgp_best_begin(&fleet.nodes[1], &settings);
    (void)round_of(&fleet, 20, 1, 1, 1);
    cr_assert(eq(i64, fleet.nodes[1].best.label, 10));
    cr_assert(eq(i64, fleet.nodes[1].last, 20));
}

Test(best, a_word_of_other_settings_closes_nothing_and_is_named)
{
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 1);
    fleet.nodes[1].settings.every = 20;
    for (uint32_t i = 0; i < NODES; i++)
        measure(&fleet.nodes[i], 20, 10, 5);
    const struct sgp_best_verdict verdict = decide(&fleet);
    cr_assert(eq(u32, verdict.unlike, 1));
    cr_assert(eq(u32, verdict.closed, 0));
    cr_assert(eq(i64, fleet.nodes[0].best.label, SGP_ROUND_NONE));
}

Test(best, a_hostile_word_is_of_another_form)
{
    static const char *const bad[] = {"", "best", "best 1 10 1 5 -1 -1 0",
        "best 1 10 9 5 -1 -1 0 0x0p+0", "best 1 10 1 5 -1 -1 0 0x0p+0 20 10",
        "best 1 10 1 5 -1 -1 0 0x0p+0 20 10 0x1p+2 10 10 0x1p+2",
        "best 1 10 1 5 -1 -1 0 0x0p+0 20 99999999999999999999 0x1p+2",
        "best 1 10 1 5 -2 -1 0 0x0p+0", "best 1 10 1 5 -1 -1 0 0x0p+0 -1 1 0x1p+2",
        "best 1 10 1 5 -1 -1 0 0x0p+0 10 1 1 20 1 1 30 1 1", "mean loss 0.5",
        "best 18446744073709551616 10 1 5 -1 -1 0 0x0p+0", "best 1 0 1 5 -1 -1 0 0x0p+0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct fleet fleet = begin(SGP_BEST_ACCURACY, 1);
        struct sgp_best *best = &fleet.nodes[0];
        struct sgp_best_verdict verdict;
        measure(best, 20, 10, 5);
        sgp_best_say(best);
        char own[SGP_BEST_WORD_BYTES];
        memcpy(own, best->word, sizeof own);
        sgp_best_decide(best, (const char *[]){own, bad[i]}, 2, 0, &verdict);
        cr_assert(eq(u32, verdict.unlike, 1), "%s", bad[i]);
        cr_assert(eq(u32, verdict.closed, 0), "%s", bad[i]);
        cr_assert(eq(i64, best->best.label, SGP_ROUND_NONE), "%s", bad[i]);
    }
}

/* Else no word could say the best of the fleet, and nothing would be decided ever after. */
Test(best, more_rows_than_a_word_can_tell_of_are_no_best)
{
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 0);
    measure(&fleet.nodes[0], 10, SGP_BEST_COUNT_MAX, (double)SGP_BEST_COUNT_MAX);
    measure(&fleet.nodes[1], 10, 10, 5);
    measure(&fleet.nodes[2], 10, 10, 5);
    cr_assert(eq(u32, decide(&fleet).closed, 0));
    const struct sgp_best_verdict next = round_of(&fleet, 20, 9, 9, 9);
    cr_assert(eq(u32, next.closed, 1));
    cr_assert(eq(u32, next.unlike, NODES));
    cr_assert(eq(i64, fleet.nodes[0].best.label, 20));
}

Test(best, a_word_does_not_close_labels_that_its_author_has_not_measured)
{
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 2);
    (void)round_of(&fleet, 10, 9, 9, 9);
    struct sgp_best liar = fleet.nodes[2];
    liar.last = 100000;
    measure(&liar, 20, 10, 9);
    measure(&fleet.nodes[0], 20, 10, 10);
    sgp_best_say(&liar);
    sgp_best_say(&fleet.nodes[0]);
    char own[SGP_BEST_WORD_BYTES];
    (void)snprintf(own, sizeof own, "%s", fleet.nodes[0].word);
    const char *words[] = {own, liar.word};
    struct sgp_best_verdict verdict;
    sgp_best_decide(&fleet.nodes[0], words, 2, 0, &verdict);
    cr_assert(not(verdict.stops));
    cr_assert(eq(i64, fleet.nodes[0].best.label, 20));
    cr_assert(eq(i64, fleet.nodes[0].last, 20));
}

/* The nodes of a fleet decide, and the last of them tells this best and latest label in place of its
 * own, as a node that has finished. */
static struct sgp_best_verdict decide_with_liar(
    struct fleet *fleet, uint32_t count, sgp_round last, const struct sgp_best_score *best)
{
    char texts[NODES][SGP_BEST_WORD_BYTES];
    const char *words[NODES];
    struct sgp_best_verdict verdict;
    struct sgp_best liar = fleet->nodes[count - 1];
    sgp_best_finish(&liar);
    liar.last = last;
    liar.best = *best;
    sgp_best_say(&liar);
    for (uint32_t i = 0; i < count; i++) {
        sgp_best_say(&fleet->nodes[i]);
        const char *word = i + 1 < count ? fleet->nodes[i].word : liar.word;
        (void)snprintf(texts[i], sizeof texts[i], "%s", word);
        words[i] = texts[i];
    }
    sgp_best_decide(&fleet->nodes[0], words, count, 0, &verdict);
    return verdict;
}

Test(best, a_liar_that_has_finished_stops_nobody)
{
    static const struct sgp_best_score perfect = {.label = 10, .count = 1000, .sum = 1000};
    for (uint32_t count = 2; count <= NODES; count++) {
        struct fleet fleet = begin(SGP_BEST_ACCURACY, 2);
        for (uint32_t i = 0; i < count; i++)
            measure(&fleet.nodes[i], 10, 10, 5);
        const struct sgp_best_verdict first = decide_with_liar(&fleet, count, 100000, &perfect);
        cr_assert(not(first.stops), "%u nodes", count);
        cr_assert(eq(i64, fleet.nodes[0].last, 10), "else it would measure no label before that");
        for (uint32_t i = 1; i < count; i++)
            fleet.nodes[i] = fleet.nodes[0];
        for (uint32_t i = 0; i < count; i++)
            measure(&fleet.nodes[i], 20, 10, 6);
        cr_assert(not(decide_with_liar(&fleet, count, 20, &perfect).stops), "%u nodes", count);
        sgp_best_finish(&fleet.nodes[0]);
        cr_assert(eq(i64, fleet.nodes[0].best.label, 20), "by the sums of %u nodes", count);
    }
}

/* A fleet that has just begun has no best, and neither has a node that lost its state. */
Test(best, a_liar_gives_no_best_to_a_fleet_that_begins)
{
    static const struct sgp_best_score perfect = {.label = 5, .count = 1000, .sum = 1000};
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 2);
    for (uint32_t i = 0; i < NODES; i++)
        measure(&fleet.nodes[i], 10, 10, 5);
    (void)decide_with_liar(&fleet, NODES, 10, &perfect);
    cr_assert(eq(i64, fleet.nodes[0].best.label, 10));
}

Test(best, of_two_nodes_the_one_that_lost_its_state_hears_the_other)
{
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 0);
    char texts[2][SGP_BEST_WORD_BYTES];
    struct sgp_best_verdict verdict;
    fleet.nodes[0].best = (struct sgp_best_score){.label = 10, .count = 20, .sum = 19};
    fleet.nodes[0].last = 10;
    for (uint32_t i = 0; i < 2; i++) {
        measure(&fleet.nodes[i], 20, 10, 1);
        sgp_best_say(&fleet.nodes[i]);
        memcpy(texts[i], fleet.nodes[i].word, sizeof texts[i]);
    }
    sgp_best_decide(&fleet.nodes[1], (const char *[]){texts[0], texts[1]}, 2, 1, &verdict);
    cr_assert(eq(i64, fleet.nodes[1].best.label, 10));
    cr_assert(eq(i64, fleet.nodes[1].last, 20));
}

/* It hears the others before it has measured a label again. */
Test(best, what_others_know_waits_until_a_node_has_come_to_that_label)
{
    for (uint32_t over = 0; over <= 1; over++) {
        struct fleet fleet = begin(SGP_BEST_ACCURACY, 0);
        char word[SGP_BEST_WORD_BYTES], own[SGP_BEST_WORD_BYTES];
        struct sgp_best_verdict verdict;
        (void)round_of(&fleet, 10, 9, 9, 9);
        measure(&fleet.nodes[2], 20, 10, 5);
        sgp_best_say(&fleet.nodes[2]);
        sgp_best_say(&fleet.nodes[0]);
        memcpy(own, fleet.nodes[2].word, sizeof own);
        memcpy(word, fleet.nodes[0].word, sizeof word);
        const struct sgp_best_settings settings = fleet.nodes[2].settings;
        sgp_best_begin(&fleet.nodes[2], &settings);
        sgp_best_decide(&fleet.nodes[2], (const char *[]){word, word, own}, 3, 2, &verdict);
        cr_assert(eq(i64, fleet.nodes[2].best.label, SGP_ROUND_NONE));
        if (over)
            sgp_best_finish(&fleet.nodes[2]);
        else
            measure(&fleet.nodes[2], 10, 10, 9);
        cr_assert(eq(i64, fleet.nodes[2].best.label, 10));
        cr_assert(eq(dbl, fleet.nodes[2].best.sum, 27));
        cr_assert(eq(i64, fleet.nodes[2].last, 10));
    }
}

Test(best, a_word_of_the_greatest_numbers_fits)
{
    const struct sgp_best_settings settings = {
        .measure = SGP_BEST_SQUARED_ERROR, .run = UINT64_MAX / 4, .every = SGP_ROUND_MAX};
    struct sgp_best best;
    sgp_best_begin(&best, &settings);
    best.last = SGP_ROUND_MAX;
    best.best = (struct sgp_best_score){SGP_ROUND_MAX, SGP_BEST_COUNT_MAX, 1.0 / 3e-300};
    for (uint32_t i = 3; i > 0; i--)
        measure(&best, SGP_ROUND_MAX - i, SGP_BEST_COUNT_MAX, 1.0 / 3e-300);
    sgp_best_say(&best);
    cr_assert(lt(sz, strlen(best.word), SGP_BEST_WORD_BYTES));
    cr_assert(eq(u32, best.told, best.pending_count));
    struct sgp_best_verdict verdict;
    char word[SGP_BEST_WORD_BYTES];
    memcpy(word, best.word, sizeof word);
    sgp_best_decide(&best, (const char *[]){word}, 1, 0, &verdict);
    cr_assert(eq(u32, verdict.unlike, 1), "it can be read");
}

Test(best, nodes_are_done_once_all_have_said_that_no_label_follows)
{
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 0);
    measure(&fleet.nodes[0], 15, 10, 5); /* its last model */
    sgp_best_finish(&fleet.nodes[0]);
    measure(&fleet.nodes[1], 10, 10, 5);
    measure(&fleet.nodes[2], 10, 10, 5);
    (void)decide(&fleet);
    cr_assert(not(fleet.nodes[0].settled));
    cr_assert(eq(u32, fleet.nodes[0].pending_count, 1), "the others will measure it");
    for (uint32_t i = 1; i < NODES; i++) {
        measure(&fleet.nodes[i], 15, 10, 6);
        sgp_best_finish(&fleet.nodes[i]);
    }
    cr_assert(eq(u32, decide(&fleet).closed, 1));
    for (uint32_t i = 0; i < NODES; i++) {
        cr_assert(fleet.nodes[i].settled);
        cr_assert(not(sgp_best_has_news(&fleet.nodes[i])));
        cr_assert(eq(i64, fleet.nodes[i].best.label, 15));
    }
}

/* Its word has said that no label follows, and that counts. */
Test(best, a_decision_of_all_that_have_finished_settles_whatever_the_node_does_meanwhile)
{
    struct fleet fleet = begin(SGP_BEST_ACCURACY, 0);
    for (uint32_t i = 0; i < NODES; i++) {
        measure(&fleet.nodes[i], 15, 10, 6);
        sgp_best_finish(&fleet.nodes[i]);
        sgp_best_say(&fleet.nodes[i]);
        fleet.nodes[i].over = i > 0;
    }
    (void)decide(&fleet);
    for (uint32_t i = 0; i < NODES; i++)
        cr_assert(fleet.nodes[i].settled, "node %u", i);
}
