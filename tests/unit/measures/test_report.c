/* SPDX-License-Identifier: Apache-2.0 */
/* Reports as text: they come back to the bit, they add up, and texts that no rows have are
 * refused. */
#include "drawn_model.h"
#include "sgp/report.h"

#include "sgp/bulletin.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 600u
#define OUTPUTS 4u

static const enum sgp_measures_kind kinds[] = {
    SGP_MEASURES_LOGITS, SGP_MEASURES_SCORES, SGP_MEASURES_BITS, SGP_MEASURES_NUMBERS};
#define KINDS (sizeof kinds / sizeof *kinds)

/* Add the rows first, first + by, ... of a table that is the same in every call. */
static void add_rows(struct sgp_measures *measures, double sure, uint32_t first, uint32_t by)
{
    uint64_t state = 11;
    for (uint32_t r = 0; r < ROWS; r++) {
        float outputs[OUTPUTS], values[OUTPUTS];
        const uint32_t label = draw_row(&state, sure, OUTPUTS, outputs, values);
        for (uint32_t c = 0; measures->kind == SGP_MEASURES_BITS && c < OUTPUTS; c++)
            values[c] = c == label;
        if (r % by != first)
            continue;
        if (measures->kind <= SGP_MEASURES_SCORES)
            sgp_measures_add_label(measures, outputs, label);
        else
            sgp_measures_add_values(measures, outputs, values);
    }
}

static struct sgp_report report_of(
    enum sgp_measures_kind kind, double sure, uint32_t first, uint32_t by)
{
    struct sgp_report report = {.run = UINT64_MAX, .label = 400, .state = SGP_REPORT_MEASURED};
    cr_assert(eq(int, sgp_measures_init(&report.measures, kind, OUTPUTS), 0));
    add_rows(&report.measures, sure, first, by);
    return report;
}

static char *text_of(const struct sgp_report *report)
{
    char *text = NULL;
    cr_assert(eq(int, sgp_report_write(report, &text), 0));
    return text;
}

static void expect_same(const void *one, const void *other, size_t bytes)
{
    cr_assert(one == NULL ? other == NULL : memcmp(one, other, bytes) == 0);
}

static void expect_equal(const struct sgp_measures *one, const struct sgp_measures *other)
{
    const size_t outputs = one->outputs;
    cr_assert(eq(u64, one->rows, other->rows));
    expect_same(one->classes, other->classes, outputs * sizeof *one->classes);
    expect_same(one->confusion, other->confusion, outputs * outputs * sizeof *one->confusion);
    expect_same(one->bins, other->bins, outputs * 2 * SGP_MEASURES_BINS * sizeof *one->bins);
    expect_same(one->parts, other->parts, sizeof one->parts);
    expect_same(one->loss, other->loss, sizeof one->loss);
    expect_same(one->numbers, other->numbers, outputs * sizeof *one->numbers);
}

Test(report, a_report_comes_back_to_the_bit)
{
    for (size_t k = 0; k < KINDS; k++) {
        struct sgp_report report = report_of(kinds[k], k == 0 ? 300 : 1, 0, 1), again, head;
        char *text = text_of(&report);
        cr_assert(le(u64, strlen(text), sgp_report_bytes(kinds[k], OUTPUTS)), "kind %zu", k);
        cr_assert(eq(int, sgp_report_read(text, &again), 0), "kind %zu", k);
        cr_assert(eq(int, sgp_report_head(text, &head), 0));
        cr_assert(eq(u64, again.run, report.run));
        cr_assert(eq(i64, again.label, 400));
        cr_assert_not(again.final);
        cr_assert(eq(u64, head.run, report.run));
        cr_assert(eq(u64, head.measures.rows, 0));
        expect_equal(&again.measures, &report.measures);
        for (const char *c = text; *c; c++)
            cr_assert(c[0] >= ' ' && c[0] < 0x7f);
        free(text);
        sgp_measures_finish(&report.measures);
        sgp_measures_finish(&again.measures);
    }
}

Test(report, a_node_without_rows_tells_that)
{
    const struct sgp_report none = {
        .run = 3, .label = 7, .final = true, .state = SGP_REPORT_NO_ROWS};
    struct sgp_report again;
    char *text = text_of(&none);
    cr_assert(eq(str, text, "1 0 3 7 1 2"));
    cr_assert(eq(int, sgp_report_read(text, &again), 0));
    cr_assert(again.final && again.state == SGP_REPORT_NO_ROWS && again.measures.rows == 0);
    free(text);
}

/* Of one process later wishes answer earlier ones. */
Test(report, a_report_answers_the_wishes_that_it_names)
{
    const uint64_t one = UINT64_C(7) << SGP_WISH_COUNT_BITS;
    const uint64_t other = UINT64_C(8) << SGP_WISH_COUNT_BITS;
    struct sgp_report head = {.wishes = {one + 5, other + 2}, .wish_count = 2}, none = {.run = 1};
    const struct sgp_report first = {
        .wishes = {one + 5, other + 2}, .wish_count = 2, .run = 3, .state = SGP_REPORT_NO_ROWS};
    char *text = text_of(&first);
    cr_assert(eq(str, text, "1 2 7340037 8388610 3 0 0 2"));
    cr_assert(eq(str, (char *)sgp_report_body(text), "3 0 0 2"));
    cr_assert(eq(int, sgp_report_head(text, &head), 0));
    cr_assert(sgp_report_answers(&head, one + 1) && sgp_report_answers(&head, one + 5));
    cr_assert_not(sgp_report_answers(&head, one + 6));
    cr_assert(sgp_report_answers(&head, other + 2));
    cr_assert_not(sgp_report_answers(&head, other + 3), "the wishes of two are not compared");
    cr_assert_not(sgp_report_answers(&none, one));
    free(text);
    cr_assert(eq(str, (char *)sgp_report_body("1 0 3 0 0 2"), "3 0 0 2"));
    static const char *const bodiless[] = {"", "1", "2 0 3", "1 9 3", "1 2 3", "damaged"};
    for (size_t i = 0; i < sizeof bodiless / sizeof *bodiless; i++)
        cr_assert(eq(str, (char *)sgp_report_body(bodiless[i]), ""), "%zu", i);
}

/* Each of four nodes tells its rows; one of them has one class only, and one has no row. */
Test(report, reports_add_up_to_the_measures_of_the_pooled_rows)
{
    for (size_t k = 0; k < KINDS; k++) {
        struct sgp_report whole = report_of(kinds[k], 1, 0, 1), read;
        struct sgp_measures sum;
        cr_assert(eq(int, sgp_measures_init(&sum, kinds[k], OUTPUTS), 0));
        for (uint32_t node = 4; node > 0; node--) {
            struct sgp_report part = report_of(kinds[k], 1, node - 1, 4);
            char *text = text_of(&part);
            cr_assert(eq(int, sgp_report_read(text, &read), 0));
            sgp_measures_add(&sum, &read.measures);
            free(text);
            sgp_measures_finish(&part.measures);
            sgp_measures_finish(&read.measures);
        }
        expect_equal(&sum, &whole.measures);
        sgp_measures_finish(&sum);
        sgp_measures_finish(&whole.measures);
    }
}

/* Three nodes with rows of one class, of the other, and of both; the last model is far too sure. */
Test(report, the_auc_of_several_nodes_is_that_of_all_rows)
{
    enum { MANY = 20000 };
    static struct scored rows[MANY];
    static const double sure[] = {0.01, 1, 1000};
    for (size_t s = 0; s < sizeof sure / sizeof *sure; s++) {
        struct sgp_measures sum;
        struct sgp_report parts[3], read;
        uint64_t state = 3;
        double value, bound;
        for (size_t p = 0; p < 3; p++) {
            parts[p] = (struct sgp_report){.state = SGP_REPORT_MEASURED};
            cr_assert(eq(int, sgp_measures_init(&parts[p].measures, SGP_MEASURES_BITS, 1), 0));
        }
        for (uint32_t r = 0; r < MANY; r++) {
            rows[r] = draw_scored(&state, sure[s]);
            sgp_measures_add_values(
                &parts[r % 2 ? rows[r].own : 2].measures, &rows[r].score, &(float){rows[r].own});
        }
        cr_assert(eq(int, sgp_measures_init(&sum, SGP_MEASURES_BITS, 1), 0));
        for (size_t p = 0; p < 3; p++) {
            char *text = text_of(&parts[p]);
            cr_assert(eq(int, sgp_report_read(text, &read), 0));
            cr_assert(eq(int, sgp_measures_auc(&read.measures, 0, &value, &bound), p == 2));
            sgp_measures_add(&sum, &read.measures);
            free(text);
            sgp_measures_finish(&parts[p].measures);
            sgp_measures_finish(&read.measures);
        }
        cr_assert(sgp_measures_auc(&sum, 0, &value, &bound));
        cr_assert(
            lt(dbl, fabs(value - auc_of_ranks(rows, MANY)), 1e-4), "%g times as sure", sure[s]);
        sgp_measures_finish(&sum);
    }
}

/* The words of a text, each with its blank. */
static size_t split(const char *text, const char *words[], size_t most)
{
    size_t count = 0;
    for (const char *at = text; at != NULL && count < most; at = strchr(at, ' ')) {
        at += *at == ' ';
        words[count++] = at;
    }
    return count;
}

/* A text with another word in the place of one. The caller frees it. */
static char *with_word(const char *text, const char *at, const char *word)
{
    char *copy = malloc(strlen(text) + strlen(word) + 1);
    cr_assert(copy != NULL);
    (void)sprintf(copy, "%.*s%s%s", (int)(at - text), text, word, at + strcspn(at, " "));
    return copy;
}

/* Whatever is accepted is what a report is written as, and has figures. */
static bool is_accepted(const char *text)
{
    struct sgp_report report;
    const int code = sgp_report_read(text, &report);
    double value = 0, bound = 0;
    cr_assert(code == 0 || code == SGP_E_DATA || code == SGP_E_VERSION, "%d", code);
    if (code < 0)
        return false;
    char *again = text_of(&report);
    cr_assert(eq(str, again, (char *)text));
    free(again);
    const struct sgp_measures *m = &report.measures;
    for (uint32_t c = 0; m->bins != NULL && c < m->outputs; c++)
        cr_assert_not(sgp_measures_auc(m, c, &value, &bound) && !(value >= 0 && value <= 1));
    cr_assert_not(sgp_measures_accuracy(m, &value) && !(value >= 0 && value <= 1));
    cr_assert_not(m->rows > 0 && sgp_measures_log_loss(m, &value) && !isfinite(value));
    cr_assert_not(sgp_measures_r2(m, 0, &value) && !isfinite(value));
    sgp_measures_finish(&report.measures);
    return true;
}

/* Counts of a text at random: most changes are refused, and what is accepted is sound. */
Test(report, counts_that_do_not_fit_are_refused)
{
    static const char *const wrong[] = {
        "", "-1", "01", "+1", "1.0", "x", "99999999999999999999", "68719476737", "1  1", "1 1"};
    /* the words before these tell one number twice; one more row may be a row of zeros */
    static const size_t fitting[KINDS] = {9 + OUTPUTS * OUTPUTS, 9 + OUTPUTS * OUTPUTS, 9, 8};
    for (size_t k = 0; k < KINDS; k++) {
        struct sgp_report report = report_of(kinds[k], 1, 0, 20);
        char *text = text_of(&report), *bad, number[32];
        const char *words[2000];
        const size_t count = split(text, words, 2000);
        size_t refused = 0, changed = 0;
        cr_assert(is_accepted(text));
        for (size_t w = 0; w < count; w += w < 40 ? 1 : 17) {
            for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
                bad = with_word(text, words[w], wrong[i]);
                refused += !is_accepted(bad);
                changed++;
                free(bad);
            }
            (void)snprintf(number, sizeof number, "%lu", strtoul(words[w], NULL, 10) + 1);
            bad = with_word(text, words[w], number);
            if (w >= 6 && w < fitting[k])
                cr_assert_not(is_accepted(bad), "word %zu of kind %zu", w, k);
            else
                (void)is_accepted(bad);
            free(bad);
            text[words[w] - text] ^= 1;
            (void)is_accepted(text);
            text[words[w] - text] ^= 1;
        }
        cr_assert(gt(u64, refused, changed * 8 / 10));
        const size_t end = (size_t)(words[count - 1] - text);
        for (size_t length = end; length > 10; length -= length / 50 + 1) {
            text[length] = '\0';
            cr_assert_not(is_accepted(text), "%zu bytes of kind %zu", length, k);
        }
        free(text);
        sgp_measures_finish(&report.measures);
    }
}

Test(report, texts_by_hand)
{
    /* one output of numbers, one row: 1 said as 2; sums have 192 bits behind the point */
#define ZEROS_48 "000000000000000000000000000000000000000000000000"
#define ONE "1" ZEROS_48
#define ONE_SQUARED ONE ZEROS_48
    cr_assert(is_accepted("1 0 0 0 0 1 4 1 1 " ONE " " ONE_SQUARED " " ONE " " ONE_SQUARED));
    cr_assert(is_accepted("1 0 0 0 0 1 4 1 1 -" ONE " " ONE_SQUARED " " ONE " " ONE_SQUARED));
    /* a sum that no number has, a negative error, negative squares */
    cr_assert_not(is_accepted("1 0 0 0 0 1 4 1 1 " ONE "0 " ONE_SQUARED " " ONE " " ONE_SQUARED));
    cr_assert_not(is_accepted("1 0 0 0 0 1 4 1 1 " ONE " " ONE_SQUARED " -" ONE " " ONE_SQUARED));
    cr_assert_not(is_accepted("1 0 0 0 0 1 4 1 1 " ONE " -" ONE_SQUARED " " ONE " " ONE_SQUARED));
    /* scores of two classes: two rows, both said to be class 0 */
    cr_assert(is_accepted("1 0 0 0 0 1 2 2 2 1 0 1 0 1 500 1 1 1 500 1 1"));
    cr_assert_not(
        is_accepted("1 0 0 0 0 1 2 2 2 1 0 1 0 1 500 1 1 1 500 0 1")); /* a row is missing */
    cr_assert_not(
        is_accepted("1 0 0 0 0 1 2 2 2 1 0 1 0 1 500 2 0 1 500 1 1")); /* of another class */
    cr_assert_not(is_accepted("1 0 0 0 0 1 2 2 2 1 0 1 0 1 1000 1 1 1 500 1 1")); /* no such bin */
    cr_assert_not(is_accepted("1 0 0 0 0 1 2 2 2 1 0 1 0 2 5 1 0 5 0 1 1 500 1 1")); /* twice */
    cr_assert_not(is_accepted("1 0 0 0 0 1 2 2 3 1 0 1 0 1 500 1 1 1 500 1 1"));
    cr_assert_not(is_accepted("1 0 0 0 0 1 2 101 1"));
    cr_assert_not(is_accepted("1 0 0 0 0 1 2 0 1"));
    cr_assert_not(is_accepted("1 0 0 0 0 1 2 1 0"));
    cr_assert_not(is_accepted("1 0 0 0 0 1 5 1 1"));
    cr_assert_not(is_accepted("1 0 0 281474976710657 0 2"));
    cr_assert(is_accepted("1 0 0 281474976710656 0 2"));
    cr_assert_not(is_accepted("1 0 0 0 0 2 1"));
    cr_assert_not(is_accepted("1 0 0 0 0 2 "));
    cr_assert_not(is_accepted("1 0 0 0 2 2"));
    cr_assert_not(is_accepted("0 0 0 0 0 2"));
    cr_assert(is_accepted("1 2 8 9 0 0 0 2"));
    cr_assert_not(is_accepted("1 9 1 2 3 4 5 6 7 8 9 0 0 0 2"));
    cr_assert_not(is_accepted("1 2 8 0 0 0 2"));
    cr_assert_not(is_accepted(""));
    struct sgp_report later;
    cr_assert(eq(int, sgp_report_read("2 anything", &later), SGP_E_VERSION));
    cr_assert(eq(int, sgp_report_head("2 anything", &later), SGP_E_VERSION));
}

/* The greatest report that can be told: every bin of every class in use, with the longest counts. */
Test(report, the_longest_text_is_bounded)
{
    struct sgp_report report = {
        .run = UINT64_MAX, .label = SGP_ROUND_MAX, .state = SGP_REPORT_MEASURED};
    struct sgp_measures *m = &report.measures;
    report.wish_count = SGP_REPORT_WISHES;
    memset(report.wishes, 0xff, sizeof report.wishes);
    cr_assert(eq(int, sgp_measures_init(m, SGP_MEASURES_BITS, SGP_REPORT_OUTPUTS_MAX), 0));
    m->rows = SGP_REPORT_ROWS_MAX;
    for (uint32_t c = 0; c < m->outputs; c++)
        m->classes[c] = (struct sgp_measures_class){m->rows, m->rows, m->rows};
    for (size_t b = 0; b < (size_t)m->outputs * 2 * SGP_MEASURES_BINS; b++)
        m->bins[b] = m->rows;
    for (uint32_t p = 0; p < SGP_MEASURES_PARTS; p++) {
        m->parts[p].rows = m->parts[p].correct = m->rows * m->outputs;
        memset(m->parts[p].confidence, 0xff, 44);
    }
    memset(m->loss, 0xff, 44);
    char *text = text_of(&report);
    cr_assert(le(u64, strlen(text), sgp_report_bytes(SGP_MEASURES_BITS, m->outputs)));
    free(text);
    m->rows++;
    cr_assert(eq(int, sgp_report_write(&report, &text), SGP_E_LIMIT));
    sgp_measures_finish(m);
}
