/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a claim of privacy: exact words, the same bits back, and what is no claim. */
#include "sgp/claim.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <float.h>
#include <math.h>
#include <string.h>

static const struct sgp_claim whole = {
    .epsilon = 3, .delta = 1e-5, .noise = 1.1, .chance = 0.05, .clip = 1};

Test(claim, is_words_in_their_order)
{
    char text[SGP_CLAIM_TEXT_BYTES];
    sgp_claim_write(&whole, text);
    cr_assert(eq(str, text, "epsilon=3 delta=1e-05 noise=1.1 chance=0.05 clip=1"));
    struct sgp_claim some = whole;
    some.noise = some.clip = NAN;
    sgp_claim_write(&some, text);
    cr_assert(eq(str, text, "epsilon=3 delta=1e-05 chance=0.05"));
}

Test(claim, is_read_back_to_the_same_bits)
{
    const double values[] = {0, DBL_MIN, 0.1, 1.0 / 3, 2.0 / 3, 1 - DBL_EPSILON};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const struct sgp_claim claim = {.epsilon = 1e9 * values[i],
            .delta = values[i],
            .noise = values[i] > 0 ? values[i] : NAN,
            .chance = values[i] > 0 ? values[i] : 1,
            .clip = 1e9};
        struct sgp_claim back;
        char text[SGP_CLAIM_TEXT_BYTES];
        sgp_claim_write(&claim, text);
        cr_assert(eq(int, sgp_claim_read(text, NULL, &back), 0), "%s", text);
        cr_assert(back.epsilon == claim.epsilon && back.delta == claim.delta);
        cr_assert(back.noise == claim.noise || (isnan(back.noise) && isnan(claim.noise)));
        cr_assert(back.chance == claim.chance && back.clip == claim.clip);
    }
}

Test(claim, the_longest_fits)
{
    const double value = 1.2345678901234567e-300;
    const struct sgp_claim claim = {value, value, value, value, value};
    char text[SGP_CLAIM_TEXT_BYTES];
    sgp_claim_write(&claim, text);
    cr_assert(strlen(text) + 1 < sizeof text);
}

Test(claim, names_what_is_wrong)
{
    const struct {
        const char *text, *why;
    } cases[] = {
        {"", "and not ''"},
        {"epsilon=3", "has epsilon=, delta="},
        {"delta=1e-5 epsilon=3", "and not 'delta=1e-5'"},
        {"epsilon=3 noise=1 delta=1e-5", "and not 'noise=1'"},
        {"epsilon=3 delta=1e-5 clip=1 noise=1", "and not 'noise=1'"},
        {"epsilon=3 delta=1e-5 epsilon=2", "and not 'epsilon=2'"},
        {"epsilon=3  delta=1e-5", "and not ''"},
        {"epsilon=3 delta=1e-5 ", "and not ''"},
        {"epsilon=3 delta=1e-5 loss=1", "and not 'loss=1'"},
        {"epsilon=-1 delta=1e-5", "epsilon of a claim of privacy is a number from 0 to 1e+09"},
        {"epsilon=2e9 delta=1e-5", "and not '2e9'"},
        {"epsilon=nan delta=1e-5", "and not 'nan'"},
        {"epsilon=inf delta=1e-5", "and not 'inf'"},
        {"epsilon=0x3 delta=1e-5", "and not '0x3'"},
        {"epsilon= delta=1e-5", "and not ''"},
        {"epsilon=1e5e5 delta=1e-5", "and not '1e5e5'"},
        {"epsilon=3 delta=1", "delta of a claim of privacy is a number from 0 to below 1"},
        {"epsilon=3 delta=0 noise=0", "noise of a claim of privacy is a number above 0 to 1e+09"},
        {"epsilon=3 delta=0 chance=1.1", "chance of a claim of privacy is a number above 0 to 1"},
        {"epsilon=3 delta=0 clip=-1", "clip of a claim of privacy is a number above 0"},
        {"epsilon=3\nevent=forged delta=0", "and not '3?event=forged'"},
        {"epsilon=\xff\xfe delta=0", "and not '?\?'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sgp_error error = {0};
        struct sgp_claim claim = whole;
        cr_expect(eq(int, sgp_claim_read(cases[i].text, &error, &claim), SGP_E_DATA), "%s",
            cases[i].text);
        cr_expect(strstr(error.text, cases[i].why) != NULL, "%s: %s", cases[i].text, error.text);
        cr_expect(memcmp(&claim, &whole, sizeof claim) == 0, "untouched on failure");
    }
    char longest[400];
    memset(longest, '1', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    struct sgp_claim claim;
    cr_expect(eq(int, sgp_claim_read(longest, NULL, &claim), SGP_E_DATA));
}
