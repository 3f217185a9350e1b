/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a claim; see sgp/claim.h. */
#include "sgp/claim.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 64 /* of a word, with its terminating zero */

/* In the order of the text. */
static const struct part {
    const char *key;
    size_t offset;
    double least, most;
    bool required;
} parts[] = {
    {"epsilon", offsetof(struct sgp_claim, epsilon), 0, SGP_CLAIM_MAX, true},
    {"delta", offsetof(struct sgp_claim, delta), 0, 1 - DBL_EPSILON, true},
    {"noise", offsetof(struct sgp_claim, noise), DBL_MIN, SGP_CLAIM_MAX, false},
    {"chance", offsetof(struct sgp_claim, chance), DBL_MIN, 1, false},
    {"clip", offsetof(struct sgp_claim, clip), DBL_MIN, SGP_CLAIM_MAX, false},
};
enum { PARTS = sizeof parts / sizeof *parts };

static double *value_of(struct sgp_claim *claim, const struct part *part)
{
    return (double *)(void *)((char *)claim + part->offset);
}

/* The shortest of these forms that is read back to the same bits. */
static void spell(double value, char word[ROOM])
{
    for (int digits = 6; digits <= DBL_DECIMAL_DIG; digits++) {
        (void)snprintf(word, ROOM, "%.*g", digits, value);
        if (strtod(word, NULL) == value)
            break;
    }
}

void sgp_claim_write(const struct sgp_claim *claim, char ret_text[SGP_CLAIM_TEXT_BYTES])
{
    struct sgp_claim copy = *claim;
    int length = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < PARTS; i++) {
        char word[ROOM];
        const double value = *value_of(&copy, &parts[i]);
        if (isnan(value))
            continue;
        spell(value, word);
        length += snprintf(ret_text + length, SGP_CLAIM_TEXT_BYTES - (size_t)length, "%s%s=%s",
            length > 0 ? " " : "", parts[i].key, word);
    }
    sgp_assert(length < (int)SGP_CLAIM_TEXT_BYTES);
}

/* A decimal number. Letters of "nan" and "0x1" are none of it. */
static bool read_number(const char *word, double *ret_value)
{
    char *end;
    if (*word == '\0' || strspn(word, "0123456789+-.e") != strlen(word))
        return false;
    *ret_value = strtod(word, &end);
    return *end == '\0';
}

/* One word of a claim whose first parts, up to `next`, were there. Returns the index of the part,
 * or PARTS: it is none of those that may come. */
static size_t find(const char *word, size_t next)
{
    for (size_t i = next; i < PARTS; i++) {
        const size_t length = strlen(parts[i].key);
        if (strncmp(word, parts[i].key, length) == 0 && word[length] == '=')
            return i;
        if (parts[i].required)
            break;
    }
    return PARTS;
}

/* The word may come from outside. */
static int fail_word(struct sgp_error *error, char *word, const struct part *part)
{
    for (char *c = word; *c != '\0'; c++)
        *c = *c > ' ' && *c <= '~' ? *c : '?';
    if (part == NULL)
        return sgp_fail(error, SGP_E_DATA,
            "a claim of privacy has epsilon=, delta=, and then some of noise=, chance= and clip=, "
            "in this order, and not '%.40s'",
            word);
    return sgp_fail(error, SGP_E_DATA,
        "the %s of a claim of privacy is a number %s %g %s %g, and not '%.40s'", part->key,
        part->least > 0 ? "above" : "from", part->least > 0 ? 0 : part->least,
        part->most < 1 ? "to below" : "to", part->most < 1 ? 1 : part->most,
        word + strlen(part->key) + 1);
}

int sgp_claim_read(const char *text, struct sgp_error *error, struct sgp_claim *ret_claim)
{
    struct sgp_claim claim = {
        .epsilon = NAN, .delta = NAN, .noise = NAN, .chance = NAN, .clip = NAN};
    size_t next = 0;
    while (*text != '\0') {
        char word[ROOM];
        const size_t length = strcspn(text, " ");
        (void)snprintf(word, sizeof word, "%.*s", (int)(length < ROOM ? length : ROOM - 1), text);
        const size_t i = length < ROOM ? find(word, next) : PARTS;
        if (i == PARTS)
            return fail_word(error, word, NULL);
        double *value = value_of(&claim, &parts[i]);
        if (!read_number(word + strlen(parts[i].key) + 1, value) ||
            !(*value >= parts[i].least && *value <= parts[i].most))
            return fail_word(error, word, &parts[i]);
        next = i + 1;
        text += length;
        text += *text == ' ' && text[1] != '\0';
    }
    if (isnan(claim.delta))
        return fail_word(error, (char[]){""}, NULL);
    *ret_claim = claim;
    return 0;
}
