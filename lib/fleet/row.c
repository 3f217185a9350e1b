/* SPDX-License-Identifier: Apache-2.0 */
/* What a row says, as text and back; see sgp/fleet.h. One schema serves both directions. */
#include "sgp/fleet.h"

#include "base/schema.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORM "1" /* the first word of a text */
#define UNKNOWN "-"
#define BLANK '~'                 /* in a word that may have blanks */
#define WORD_BYTES SGP_NAME_BYTES /* the longest word, with its zero */

#define FIELD(member, ...) SGP_FIELD(struct sgp_fleet_row, #member, member, __VA_ARGS__)
#define ROUND(member) FIELD(member, SGP_ROUND_NONE, SGP_ROUND_MAX)
#define REAL(member) FIELD(member, SGP_SCHEMA_BITS)
#define COUNT(member) FIELD(member, SGP_SCHEMA_ANY)
#define WORD(member, letters) FIELD(member, 0, letters) /* the most that are written */
#define OWN 31                                          /* of a word of the author's program */
#define NAME (SGP_NAME_BYTES - 1)
static const struct sgp_schema_field fields[] = {
    FIELD(interval_ms, 1, SGP_FLEET_INTERVAL_MAX),
    WORD(state, OWN),
    ROUND(round),
    ROUND(rounds),
    REAL(epoch),
    REAL(loss),
    REAL(test_loss),
    REAL(test_accuracy),
    REAL(weight),
    REAL(disagreement),
    REAL(rounds_per_second),
    REAL(samples_per_second),
    REAL(uptime_seconds),
    WORD(waiting, OWN),
    WORD(waiting_peer, NAME),
    REAL(waiting_seconds),
    COUNT(topology_digest),
    COUNT(topology_version),
    WORD(version, OWN),
    WORD(device, OWN),
    COUNT(promised),
    REAL(promised_epsilon),
    REAL(promised_delta),
    COUNT(rollout_active),
    COUNT(rollout_proposed),
    COUNT(rollout_mark),
    COUNT(rollout_vote),
    WORD(rollout_why, NAME),
};
#define ROLLOUT_WORDS 5u /* at the end: without administrators they are left out */
static const struct sgp_schema schema = SGP_SCHEMA(struct sgp_fleet_row, fields);

void sgp_fleet_row_withhold(struct sgp_fleet_row *row)
{
    row->loss = row->test_loss = row->test_accuracy = (double)NAN;
    row->epoch = row->samples_per_second = (double)NAN;
}

const char *sgp_fleet_promised_word(uint32_t promised)
{
    static const char *const words[] = {[SGP_FLEET_PROMISED_NONE] = "none",
        [SGP_FLEET_PROMISED_COUNTED] = "counted",
        [SGP_FLEET_PROMISED_CLAIMED] = "claimed"};
    return promised < sizeof words / sizeof *words ? words[promised] : NULL;
}

static bool is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

bool sgp_fleet_promises_differ(const struct sgp_fleet_row *one, const struct sgp_fleet_row *other)
{
    return one->promised != SGP_FLEET_PROMISED_UNKNOWN &&
           other->promised != SGP_FLEET_PROMISED_UNKNOWN &&
           !(one->promised == other->promised &&
               is_same(one->promised_epsilon, other->promised_epsilon) &&
               is_same(one->promised_delta, other->promised_delta));
}

/* ---- to text ---- */

struct writer {
    char *text;
    size_t bytes;
};

static bool is_letter(char c)
{
    return c > ' ' && c <= '~';
}

static void put_word(struct writer *writer, const char *word)
{
    /* SGP_ROW_TEXT_BYTES is enough for all words at their longest */
    sgp_assert(writer->bytes + 1 + strlen(word) < SGP_ROW_TEXT_BYTES);
    if (writer->bytes > 0)
        writer->text[writer->bytes++] = ' ';
    for (; *word != '\0'; word++)
        writer->text[writer->bytes++] = *word;
    writer->text[writer->bytes] = '\0';
}

static bool may_have_blanks(const struct sgp_schema_field *field)
{
    return field->offset == offsetof(struct sgp_fleet_row, rollout_why);
}

static void spell(const struct sgp_schema_field *field, const void *place, char word[WORD_BYTES])
{
    const char *text = place;
    switch (field->kind) {
    case SGP_SCHEMA_REAL:
        (void)snprintf(word, WORD_BYTES, "%.9g", *(const double *)place);
        if (!isfinite(*(const double *)place))
            (void)snprintf(word, WORD_BYTES, UNKNOWN);
        break;
    case SGP_SCHEMA_I64:
        (void)snprintf(word, WORD_BYTES, "%" PRId64, *(const int64_t *)place);
        if (*(const int64_t *)place == SGP_ROUND_NONE)
            (void)snprintf(word, WORD_BYTES, UNKNOWN);
        break;
    case SGP_SCHEMA_U32:
        (void)snprintf(word, WORD_BYTES, "%" PRIu32, *(const uint32_t *)place);
        break;
    case SGP_SCHEMA_U64:
        (void)snprintf(word, WORD_BYTES, "%" PRIu64, *(const uint64_t *)place);
        break;
    default:
        (void)snprintf(word, WORD_BYTES, "%.*s", (int)field->most, *text != '\0' ? text : UNKNOWN);
        for (char *c = word; *c != '\0'; c++)
            *c = is_letter(*c) ? *c : may_have_blanks(field) && *c == ' ' ? BLANK : '_';
        break;
    }
}

static int put(void *context, const struct sgp_schema_field *field, void *place)
{
    char word[WORD_BYTES];
    spell(field, place, word);
    put_word(context, word);
    return 0;
}

void sgp_fleet_row_write(const struct sgp_fleet_row *row, char ret_text[SGP_ROW_TEXT_BYTES])
{
    struct writer writer = {.text = ret_text};
    struct sgp_schema written = schema;
    written.count -= row->rollout_active == 0 ? ROLLOUT_WORDS : 0;
    put_word(&writer, FORM);
    (void)sgp_schema_walk(&written, row, put, &writer);
}

/* ---- from text ---- */

struct reader {
    const char *at; /* the next word; NULL: there is none */
    char word[WORD_BYTES];
};

/* Take the next word: 1 or more letters, then a blank or the end. */
static bool next_word(struct reader *reader)
{
    size_t bytes = 0;
    if (reader->at == NULL)
        return false;
    for (; is_letter(reader->at[bytes]); bytes++)
        if (bytes + 1 == sizeof reader->word)
            return false;
    const char end = reader->at[bytes];
    if (bytes == 0 || (end != ' ' && end != '\0'))
        return false;
    memcpy(reader->word, reader->at, bytes);
    reader->word[bytes] = '\0';
    reader->at = end == ' ' ? reader->at + bytes + 1 : NULL;
    return true;
}

/* Decimal, without a sign. */
static bool read_count(const char *word, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (const char *c = word; *c != '\0'; c++) {
        const uint64_t digit = (uint64_t)(*c - '0');
        if (*c < '0' || *c > '9' || value > (UINT64_MAX - digit) / 10)
            return false;
        value = 10 * value + digit;
    }
    *ret_value = value;
    return true;
}

/* A finite number, or that it is not known. Letters of "inf" and "0x1" are none of a number. */
static bool read_real(const char *word, double *ret_value)
{
    char *end;
    *ret_value = (double)NAN;
    if (strcmp(word, UNKNOWN) == 0)
        return true;
    if (strspn(word, "0123456789+-.e") != strlen(word))
        return false;
    *ret_value = strtod(word, &end);
    return *end == '\0' && isfinite(*ret_value);
}

static bool store(const struct sgp_schema_field *field, const char *word, void *place)
{
    const bool unknown = strcmp(word, UNKNOWN) == 0;
    uint64_t count = 0;
    switch (field->kind) {
    case SGP_SCHEMA_REAL:
        return read_real(word, place);
    case SGP_SCHEMA_I64:
        if (!unknown && (!read_count(word, &count) || count > INT64_MAX))
            return false;
        *(int64_t *)place = unknown ? SGP_ROUND_NONE : (int64_t)count;
        return true;
    case SGP_SCHEMA_U32:
        if (!unknown && (!read_count(word, &count) || count > UINT32_MAX))
            return false;
        *(uint32_t *)place = (uint32_t)count;
        return true;
    case SGP_SCHEMA_U64:
        if (!unknown && !read_count(word, &count))
            return false;
        *(uint64_t *)place = count;
        return true;
    default:
        (void)snprintf(place, SGP_NAME_BYTES, "%s", unknown ? "" : word);
        for (char *c = place; may_have_blanks(field) && *c != '\0'; c++)
            *c = *c == BLANK ? ' ' : *c;
        return true;
    }
}

/* Words that are missing at the end are not known: an earlier program has fewer. */
static int get(void *context, const struct sgp_schema_field *field, void *place)
{
    struct reader *reader = context;
    const bool ends = reader->at == NULL;
    const bool good = (ends || next_word(reader)) &&
                      store(field, ends ? UNKNOWN : reader->word, place) &&
                      sgp_schema_fits(field, place);
    return good ? 0 : SGP_E_DATA;
}

int sgp_fleet_row_read(const char *text, struct sgp_fleet_row *ret_row)
{
    struct reader reader = {.at = text};
    struct sgp_fleet_row row;
    uint64_t form;
    memset(&row, 0, sizeof row);
    if (strnlen(text, SGP_ROW_TEXT_BYTES) == SGP_ROW_TEXT_BYTES || !next_word(&reader) ||
        !read_count(reader.word, &form))
        return SGP_E_DATA;
    if (strcmp(reader.word, FORM) != 0)
        return SGP_E_VERSION;
    const int code = sgp_schema_walk(&schema, &row, get, &reader);
    if (code < 0)
        return code;
    while (reader.at != NULL) /* words that a later program has added */
        if (!next_word(&reader))
            return SGP_E_DATA;
    *ret_row = row;
    return 0;
}
