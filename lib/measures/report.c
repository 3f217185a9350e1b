/* SPDX-License-Identifier: Apache-2.0 */
/* Reports as text; see sgp/report.h. */
#include "sgp/report.h"

#include "sgp/bulletin.h"
#include "wide.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORM 1u /* the first word of a text */

/* The sums of SGP_REPORT_ROWS_MAX numbers of the size that sgp_wide_add takes: below 2^129 each, of
 * which 192 bits, or 384 of squares, are behind the point. Sums of SGP_NODES_MAX such sums fit. */
#define SUM_DIGITS ((36u + 129u + 192u) / 4 + 1)
#define SQUARES_DIGITS ((36u + 258u + 384u) / 4 + 1)
_Static_assert(SUM_DIGITS * 4 + 16 < SGP_WIDE_SUM_LIMBS * 32, "sums of all nodes");
_Static_assert(SQUARES_DIGITS * 4 + 16 < SGP_WIDE_SQUARES_LIMBS * 32, "sums of all nodes");

static bool has_probabilities(enum sgp_measures_kind kind)
{
    return kind == SGP_MEASURES_LOGITS || kind == SGP_MEASURES_BITS;
}

/* Whether classes follow from the confusion matrix, which is told in their place. */
static bool is_confused(enum sgp_measures_kind kind)
{
    return kind == SGP_MEASURES_LOGITS || kind == SGP_MEASURES_SCORES;
}

uint32_t sgp_report_bytes(enum sgp_measures_kind kind, uint32_t outputs)
{
    enum {
        COUNT = 12,
        BIN = 4 + 2 * COUNT,
        HEAD = 96 + 21 * SGP_REPORT_WISHES,
        SUMS = 15 * (2 * 14 + 96) + 96
    };
    sgp_assert(outputs >= 1 && outputs <= SGP_REPORT_OUTPUTS_MAX);
    if (kind == SGP_MEASURES_NUMBERS)
        return HEAD + outputs * 2 * (SUM_DIGITS + SQUARES_DIGITS + 3);
    const uint32_t counts = is_confused(kind) ? outputs * outputs : 3 * outputs;
    return HEAD + counts * COUNT + outputs * (5 + SGP_MEASURES_BINS * BIN) + SUMS;
}

/* ---- writing ---- */

struct writing {
    char *text;
    size_t bytes, room;
    bool failed;
};

static void put(struct writing *writing, const char *word)
{
    const size_t length = strlen(word), needed = writing->bytes + length + 2;
    if (needed > writing->room) {
        const size_t room = 2 * needed + 256;
        char *text = writing->failed ? NULL : realloc(writing->text, room);
        writing->failed = text == NULL;
        if (writing->failed)
            return;
        writing->text = text;
        writing->room = room;
    }
    if (writing->bytes > 0)
        writing->text[writing->bytes++] = ' ';
    memcpy(writing->text + writing->bytes, word, length + 1);
    writing->bytes += length;
}

static void put_count(struct writing *writing, uint64_t count)
{
    char word[24];
    (void)snprintf(word, sizeof word, "%" PRIu64, count);
    put(writing, word);
}

static void put_wide(struct writing *writing, const uint32_t *limbs, uint32_t count)
{
    char word[SGP_WIDE_TEXT_BYTES];
    sgp_wide_write(limbs, count, word);
    put(writing, word);
}

static void put_bins(struct writing *writing, const struct sgp_measures *measures, uint32_t output)
{
    const uint64_t *others = measures->bins + (size_t)output * 2 * SGP_MEASURES_BINS;
    const uint64_t *own = others + SGP_MEASURES_BINS;
    uint32_t used = 0;
    for (uint32_t b = 0; b < SGP_MEASURES_BINS; b++)
        used += others[b] + own[b] > 0;
    put_count(writing, used);
    for (uint32_t b = 0; b < SGP_MEASURES_BINS; b++) {
        if (others[b] + own[b] == 0)
            continue;
        put_count(writing, b);
        put_count(writing, others[b]);
        put_count(writing, own[b]);
    }
}

static void put_classes(struct writing *writing, const struct sgp_measures *measures)
{
    const uint32_t outputs = measures->outputs;
    for (uint32_t i = 0; is_confused(measures->kind) && i < outputs * outputs; i++)
        put_count(writing, measures->confusion[i]);
    for (uint32_t c = 0; !is_confused(measures->kind) && c < outputs; c++) {
        put_count(writing, measures->classes[c].rows);
        put_count(writing, measures->classes[c].said);
        put_count(writing, measures->classes[c].correct);
    }
    for (uint32_t c = 0; c < outputs; c++)
        put_bins(writing, measures, c);
    for (uint32_t p = 0; has_probabilities(measures->kind) && p < SGP_MEASURES_PARTS; p++) {
        put_count(writing, measures->parts[p].rows);
        put_count(writing, measures->parts[p].correct);
        put_wide(writing, measures->parts[p].confidence, SGP_WIDE_SUM_LIMBS);
    }
    if (has_probabilities(measures->kind))
        put_wide(writing, measures->loss, SGP_WIDE_SUM_LIMBS);
}

static void put_numbers(struct writing *writing, const struct sgp_measures *measures)
{
    for (uint32_t c = 0; c < measures->outputs; c++) {
        put_wide(writing, measures->numbers[c].sum, SGP_WIDE_SUM_LIMBS);
        put_wide(writing, measures->numbers[c].squares, SGP_WIDE_SQUARES_LIMBS);
        put_wide(writing, measures->numbers[c].error_sum, SGP_WIDE_SUM_LIMBS);
        put_wide(writing, measures->numbers[c].error_squares, SGP_WIDE_SQUARES_LIMBS);
    }
}

int sgp_report_write(const struct sgp_report *report, char **ret_text)
{
    const struct sgp_measures *measures = &report->measures;
    const bool measured = report->state == SGP_REPORT_MEASURED;
    struct writing writing = {.text = NULL};
    if (measured &&
        (measures->outputs > SGP_REPORT_OUTPUTS_MAX || measures->rows > SGP_REPORT_ROWS_MAX))
        return SGP_E_LIMIT;
    sgp_assert(!measured || measures->rows > 0);
    sgp_assert(report->wish_count <= SGP_REPORT_WISHES);
    put_count(&writing, FORM);
    put_count(&writing, report->wish_count);
    for (uint32_t i = 0; i < report->wish_count; i++)
        put_count(&writing, report->wishes[i]);
    put_count(&writing, report->run);
    put_count(&writing, (uint64_t)report->label);
    put_count(&writing, report->final);
    put_count(&writing, report->state);
    if (measured) {
        put_count(&writing, measures->kind);
        put_count(&writing, measures->outputs);
        put_count(&writing, measures->rows);
        if (measures->classes)
            put_classes(&writing, measures);
        else
            put_numbers(&writing, measures);
    }
    if (writing.failed) {
        free(writing.text);
        return -ENOMEM;
    }
    *ret_text = writing.text;
    return 0;
}

/* ---- reading ---- */

struct reading {
    const char *rest; /* "": no word follows */
    bool failed;      /* from then on every word is 0 */
};

#define WORD_BYTES (SQUARES_DIGITS + 2) /* with a sign and the terminating zero */

/* The next word; "" if there is none, or it is too long. */
static void take(struct reading *reading, char word[WORD_BYTES])
{
    const size_t length = strcspn(reading->rest, " ");
    const bool good = !reading->failed && length > 0 && length < WORD_BYTES;
    reading->failed = !good;
    (void)snprintf(word, WORD_BYTES, "%.*s", good ? (int)length : 0, reading->rest);
    if (!good)
        return;
    reading->rest += length;
    if (*reading->rest == ' ')
        reading->rest++;
    /* a blank at the end is followed by no word */
    reading->failed = reading->rest[-1] == ' ' && *reading->rest == '\0';
}

static uint64_t take_count(struct reading *reading, uint64_t most)
{
    char word[WORD_BYTES];
    take(reading, word);
    const size_t length = strlen(word);
    const bool whole = length > 0 && length <= 20 && strspn(word, "0123456789") == length;
    errno = 0;
    const uint64_t count = whole ? strtoull(word, NULL, 10) : 0;
    if (!whole || errno != 0 || (word[0] == '0' && length > 1) || count > most) {
        reading->failed = true;
        return 0;
    }
    return count;
}

static void take_wide(struct reading *reading, bool positive, uint32_t *limbs, uint32_t count)
{
    char word[WORD_BYTES];
    take(reading, word);
    const uint32_t digits = count == SGP_WIDE_SUM_LIMBS ? SUM_DIGITS : SQUARES_DIGITS;
    if (reading->failed || (positive && word[0] == '-') ||
        !sgp_wide_read(word, digits, limbs, count)) {
        reading->failed = true;
        memset(limbs, 0, count * sizeof *limbs);
    }
}

static void take_wishes(struct reading *reading, struct sgp_report *report)
{
    report->wish_count = (uint32_t)take_count(reading, SGP_REPORT_WISHES);
    for (uint32_t i = 0; i < report->wish_count; i++)
        report->wishes[i] = take_count(reading, UINT64_MAX);
}

static void take_head(struct reading *reading, struct sgp_report *report)
{
    report->run = take_count(reading, UINT64_MAX);
    report->label = (sgp_round)take_count(reading, SGP_ROUND_MAX);
    report->final = take_count(reading, 1) == 1;
    report->state = (enum sgp_report_state)take_count(reading, SGP_REPORT_STATES);
    reading->failed = reading->failed || report->state < SGP_REPORT_MEASURED;
}

/* Classes from the confusion matrix. */
static uint64_t take_confusion(struct reading *reading, struct sgp_measures *measures)
{
    const uint32_t outputs = measures->outputs;
    uint64_t rows = 0;
    for (uint32_t i = 0; i < outputs; i++)
        for (uint32_t j = 0; j < outputs; j++) {
            const uint64_t count = take_count(reading, measures->rows);
            measures->confusion[(size_t)i * outputs + j] = count;
            measures->classes[i].rows += count;
            measures->classes[j].said += count;
            measures->classes[i].correct += i == j ? count : 0;
            rows += count;
        }
    return rows;
}

/* Rows of a column of bits; the 0s that the model says are not more than there are. */
static void take_bits(struct reading *reading, struct sgp_measures *measures)
{
    for (uint32_t c = 0; c < measures->outputs; c++) {
        struct sgp_measures_class *class = &measures->classes[c];
        class->rows = take_count(reading, measures->rows);
        class->said = take_count(reading, measures->rows);
        class->correct = take_count(reading, class->rows < class->said ? class->rows : class->said);
        reading->failed =
            reading->failed || class->rows + class->said > measures->rows + class->correct;
    }
}

/* The bins of a class. All its rows are in them, except for a softmax of one output. */
static void take_bins(struct reading *reading, struct sgp_measures *measures, uint32_t output)
{
    uint64_t *others = measures->bins + (size_t)output * 2 * SGP_MEASURES_BINS;
    uint64_t *own = others + SGP_MEASURES_BINS;
    const bool none = measures->kind == SGP_MEASURES_LOGITS && measures->outputs == 1;
    const uint64_t rows = none ? 0 : measures->classes[output].rows;
    const uint64_t rest = none ? 0 : measures->rows - measures->classes[output].rows;
    uint64_t all_own = 0, all_others = 0, least = 0;
    const uint64_t used = take_count(reading, SGP_MEASURES_BINS);
    for (uint64_t i = 0; i < used && !reading->failed; i++) {
        const uint64_t bin = take_count(reading, SGP_MEASURES_BINS - 1);
        const uint64_t other_rows = take_count(reading, rest);
        const uint64_t own_rows = take_count(reading, rows);
        reading->failed = reading->failed || bin < least || other_rows + own_rows == 0;
        least = bin + 1;
        others[bin] = other_rows;
        own[bin] = own_rows;
        all_others += other_rows;
        all_own += own_rows;
    }
    reading->failed = reading->failed || all_own != rows || all_others != rest;
}

/* Whether the mean confidence of a part's rows can lie in the part. A sum of rounded confidences
 * may be beside it. */
static bool is_in_part(const struct sgp_measures_part *part, uint32_t place)
{
    const double sum = sgp_wide_sum(part->confidence), rows = (double)part->rows;
    const double from = rows * place / SGP_MEASURES_PARTS;
    const double to = rows * (place + 1) / SGP_MEASURES_PARTS;
    return sum >= from * (1 - 1e-9) && sum <= to * (1 + 1e-9);
}

static void take_parts(struct reading *reading, struct sgp_measures *measures)
{
    const bool bits = measures->kind == SGP_MEASURES_BITS;
    const uint64_t judged = measures->rows * (bits ? measures->outputs : 1);
    uint64_t rows = 0, correct = 0, said = 0;
    for (uint32_t c = 0; c < measures->outputs; c++) {
        const struct sgp_measures_class *class = &measures->classes[c];
        said += class->correct;
        if (bits)
            said += measures->rows + class->correct - class->rows - class->said;
    }
    for (uint32_t p = 0; p < SGP_MEASURES_PARTS; p++) {
        struct sgp_measures_part *part = &measures->parts[p];
        part->rows = take_count(reading, judged);
        part->correct = take_count(reading, part->rows);
        rows += part->rows;
        correct += part->correct;
        take_wide(reading, true, part->confidence, SGP_WIDE_SUM_LIMBS);
        reading->failed = reading->failed || !is_in_part(part, p);
    }
    take_wide(reading, true, measures->loss, SGP_WIDE_SUM_LIMBS);
    reading->failed = reading->failed || rows != judged || correct != said;
}

static void take_classes(struct reading *reading, struct sgp_measures *measures)
{
    if (!is_confused(measures->kind))
        take_bits(reading, measures);
    else if (take_confusion(reading, measures) != measures->rows)
        reading->failed = true;
    for (uint32_t c = 0; c < measures->outputs && !reading->failed; c++)
        take_bins(reading, measures, c);
    if (has_probabilities(measures->kind) && !reading->failed)
        take_parts(reading, measures);
}

static void take_numbers(struct reading *reading, struct sgp_measures *measures)
{
    const uint64_t rows = measures->rows;
    for (uint32_t c = 0; c < measures->outputs && !reading->failed; c++) {
        struct sgp_measures_number *number = &measures->numbers[c];
        take_wide(reading, false, number->sum, SGP_WIDE_SUM_LIMBS);
        take_wide(reading, true, number->squares, SGP_WIDE_SQUARES_LIMBS);
        take_wide(reading, true, number->error_sum, SGP_WIDE_SUM_LIMBS);
        take_wide(reading, true, number->error_squares, SGP_WIDE_SQUARES_LIMBS);
        reading->failed = reading->failed ||
                          !sgp_wide_is_possible(rows, number->sum, number->squares) ||
                          !sgp_wide_is_possible(rows, number->error_sum, number->error_squares);
    }
}

static int take_measures(struct reading *reading, struct sgp_measures *measures)
{
    const enum sgp_measures_kind kind =
        (enum sgp_measures_kind)take_count(reading, SGP_MEASURES_NUMBERS);
    const uint32_t outputs = (uint32_t)take_count(reading, SGP_REPORT_OUTPUTS_MAX);
    const uint64_t rows = take_count(reading, SGP_REPORT_ROWS_MAX);
    if (reading->failed || kind < SGP_MEASURES_LOGITS || outputs == 0 || rows == 0)
        return SGP_E_DATA;
    const int code = sgp_measures_init(measures, kind, outputs);
    if (code < 0)
        return code;
    measures->rows = rows;
    if (measures->classes)
        take_classes(reading, measures);
    else
        take_numbers(reading, measures);
    return 0;
}

/* The first word, and the wishes. */
static int begin(const char *text, struct reading *reading, struct sgp_report *report)
{
    *reading = (struct reading){.rest = text};
    *report = (struct sgp_report){.run = 0};
    const uint64_t form = take_count(reading, UINT32_MAX);
    if (reading->failed || form == 0)
        return SGP_E_DATA;
    if (form != FORM)
        return SGP_E_VERSION;
    take_wishes(reading, report);
    return reading->failed ? SGP_E_DATA : 0;
}

const char *sgp_report_body(const char *text)
{
    struct reading reading;
    struct sgp_report report;
    return begin(text, &reading, &report) == 0 ? reading.rest : "";
}

bool sgp_report_answers(const struct sgp_report *report, uint64_t wish)
{
    for (uint32_t i = 0; i < report->wish_count; i++)
        if (sgp_wish_follows(report->wishes[i], wish))
            return true;
    return false;
}

static int read_head(const char *text, struct reading *reading, struct sgp_report *report)
{
    const int code = begin(text, reading, report);
    if (code < 0)
        return code;
    take_head(reading, report);
    return reading->failed ? SGP_E_DATA : 0;
}

int sgp_report_head(const char *text, struct sgp_report *ret_report)
{
    struct reading reading;
    return read_head(text, &reading, ret_report);
}

int sgp_report_read(const char *text, struct sgp_report *ret_report)
{
    struct reading reading;
    struct sgp_report report;
    int code = read_head(text, &reading, &report);
    if (code == 0 && report.state == SGP_REPORT_MEASURED)
        code = take_measures(&reading, &report.measures);
    if (code == 0 && (reading.failed || *reading.rest != '\0'))
        code = SGP_E_DATA;
    if (code < 0)
        sgp_measures_finish(&report.measures);
    else
        *ret_report = report;
    return code;
}
