/* SPDX-License-Identifier: Apache-2.0 */
/* Choosers of updates: their words, what each of them makes of known numbers, and that what is
 * chosen is packed without loss. */
#include "sgp/choose.h"
#include "sgp/random.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 700u /* two blocks, and a part of one */

static const struct sgp_tensors one_tensor = {0};

static struct sgp_chooser chooser_of(const char *word)
{
    struct sgp_chooser chooser;
    struct sgp_error error = {0};
    cr_assert(
        zero(int, sgp_chooser_parse(word, SGP_CHOOSER_WORDS, &error, &chooser)), "%s", error.text);
    cr_assert(eq(str, chooser.word, (char *)(uintptr_t)word));
    return chooser;
}

/* s and the rest of an update of a few values, after what was left out before. */
static void expect(const char *word, uint32_t count, const float *update, const float *before,
    const float *chosen, const float *left)
{
    struct sgp_chooser chooser = chooser_of(word);
    float values[8], rest[8];
    struct sgp_chosen sums;
    memcpy(values, update, count * sizeof *values);
    memcpy(rest, before, count * sizeof *rest);
    sgp_choose(&chooser, &one_tensor, 7, values, rest, 0, count, &sums);
    for (uint32_t i = 0; i < count; i++) {
        cr_assert(eq(flt, values[i], chosen[i]), "%s: s[%u]", word, i);
        cr_assert(eq(flt, rest[i], left[i]), "%s: rest[%u]", word, i);
    }
}

/* ---- words ---- */

Test(choose, words_say_the_grid_and_the_part)
{
    const struct {
        const char *word;
        enum sgp_choice choice;
        enum sgp_compressor compressor;
        double part;
        bool of_updates, coarse;
    } known[] = {{"none", SGP_CHOICE_NEAREST, SGP_COMPRESSOR_NONE, 0, false, false},
        {"fp16", SGP_CHOICE_NEAREST, SGP_COMPRESSOR_FP16, 0, false, false},
        {"int4:64", SGP_CHOICE_NEAREST, SGP_COMPRESSOR_INT4_64, 0, false, false},
        {"int2", SGP_CHOICE_NEAREST, SGP_COMPRESSOR_INT2, 0, true, false},
        {"sign", SGP_CHOICE_NEAREST, SGP_COMPRESSOR_SIGN, 0, true, true},
        {"qsgd:1", SGP_CHOICE_CHANCE, SGP_COMPRESSOR_INT2, 0, true, false},
        {"qsgd:7", SGP_CHOICE_CHANCE, SGP_COMPRESSOR_INT4, 0, true, false},
        {"qsgd:31", SGP_CHOICE_CHANCE, SGP_COMPRESSOR_INT6, 0, true, false},
        {"qsgd:127", SGP_CHOICE_CHANCE, SGP_COMPRESSOR_INT8, 0, true, false},
        {"terngrad", SGP_CHOICE_CHANCE, SGP_COMPRESSOR_INT2, 0, true, false},
        {"top:0.03", SGP_CHOICE_LARGEST, SGP_COMPRESSOR_SPARSE, 0.03, true, true},
        {"dgc:1e-3", SGP_CHOICE_LARGEST, SGP_COMPRESSOR_SPARSE, 0.001, true, true},
        {"adacomp", SGP_CHOICE_ADAPTIVE, SGP_COMPRESSOR_SPARSE, 0, true, true}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct sgp_chooser chooser = chooser_of(known[i].word);
        cr_assert(eq(int, (int)chooser.choice, (int)known[i].choice), "%s", known[i].word);
        cr_assert(eq(int, (int)chooser.compressor, (int)known[i].compressor));
        cr_assert(eq(dbl, chooser.part, known[i].part));
        cr_assert(eq(int, sgp_chooser_is_of_updates(&chooser), known[i].of_updates));
        cr_assert(eq(int, sgp_chooser_is_coarse(&chooser), known[i].coarse));
    }
}

Test(choose, other_words_are_refused)
{
    static const char levels[] =
        "qsgd:S has S = 1, 7, 31 or 127 levels, those of 2, 4, 6 and 8 bits, not \"15\"";
    static const char part[] =
        "F of top:F and dgc:F is the part that travels, above 0 and at most 1 as in top:0.03, not ";
    static const char *const parts[] = {
        "0", "1.5", "-0.1", "", "nan", "inf", "0x1", "0.1 ", "1e", "--1", "0.1.2"};
    static const char *const others[] = {"", "int7", "sparse", "top", "qsgd", "Sign", "adacomp:1",
        "top:0.000000000000000000000000000000000001"};
    struct sgp_chooser chooser;
    char text[64], told[160];
    struct sgp_error error = {0};
    cr_assert(
        eq(int, sgp_chooser_parse("qsgd:15", SGP_CHOOSER_WORDS, &error, &chooser), SGP_E_CONFIG));
    cr_assert(eq(str, error.text, (char *)(uintptr_t)levels));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct sgp_error why = {0};
        (void)snprintf(text, sizeof text, "%s%s", i % 2 ? "top:" : "dgc:", parts[i]);
        (void)snprintf(told, sizeof told, "%s\"%s\"", part, parts[i]);
        cr_assert(eq(int, sgp_chooser_parse(text, SGP_CHOOSER_WORDS, &why, &chooser), SGP_E_CONFIG),
            "%s", text);
        cr_assert(eq(str, why.text, told));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct sgp_error why = {0};
        cr_assert(
            eq(int, sgp_chooser_parse(others[i], SGP_CHOOSER_WORDS, &why, &chooser), SGP_E_CONFIG));
        cr_assert(strstr(why.text, "choose one of none|fp16|bf16|int8|int6|int4|int4:64|int2|sign|"
                                   "qsgd:S|terngrad|top:F|dgc:F|adacomp") != NULL,
            "%s", why.text);
        why.code = 0;
        cr_assert(lt(int, sgp_chooser_parse(others[i], SGP_CHOOSER_COPY_WORDS, &why, &chooser), 0));
        cr_assert(
            strstr(why.text, "choose one of " SGP_CHOOSER_COPY_WORDS) != NULL, "%s", why.text);
    }
}

/* Whether the word is one of these, which are separated by '|'. */
static bool is_among(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, word, length) == 0 && (at[length] == '|' || at[length] == '\0'))
            return true;
    }
    return false;
}

/* A compressor is for shares by its property, and not by the place of its number. */
Test(choose, each_compressor_is_for_shares_or_for_updates)
{
    for (int c = SGP_COMPRESSOR_NONE; c <= (int)SGP_COMPRESSOR_MOST; c++) {
        struct sgp_chooser chooser = {SGP_CHOICE_NEAREST, (enum sgp_compressor)c, 0, ""};
        const char *word = sgp_compressor_word(chooser.compressor);
        bool of_shares = sgp_compressor_is_of_shares(chooser.compressor);
        cr_assert(eq(int, sgp_compressor_of(word), c));
        cr_assert(eq(int, sgp_chooser_is_of_updates(&chooser), !of_shares), "%s", word);
        cr_assert(eq(int, sgp_chooser_is_of_copies(&chooser), of_shares), "%s", word);
        cr_assert(eq(int, is_among(SGP_COMPRESSOR_SHARE_WORDS, word), of_shares), "%s", word);
        cr_assert(eq(int, is_among(SGP_CHOOSER_COPY_WORDS, word), of_shares), "%s", word);
        cr_assert(eq(int, is_among(SGP_CHOOSER_WORDS, word), c != (int)SGP_COMPRESSOR_SPARSE));
    }
}

/* ---- known numbers ---- */

Test(choose, sign_is_the_mean_magnitude)
{
    expect("sign", 4, (float[]){4, -3, 2, 0}, (float[]){0, 0, 0, -1},
        (float[]){2.5F, -2.5F, 2.5F, -2.5F}, (float[]){1.5F, -0.5F, -0.5F, 1.5F});
}

Test(choose, int2_rounds_to_the_largest_or_to_0)
{
    expect("int2", 4, (float[]){4, -3, 1, 0}, (float[]){0, 0, 0, -2.5F}, (float[]){4, -4, 0, -4},
        (float[]){0, 1, 1, 1.5F});
}

Test(choose, top_takes_the_largest_and_of_equal_ones_the_first)
{
    static const float none[4] = {0};
    expect("top:0.5", 4, (float[]){1, -3, 2, 4}, none, (float[]){0, -3.5F, 0, 3.5F},
        (float[]){1, 0.5F, 2, 0.5F});
    expect("dgc:0.5", 4, (float[]){2, -2, 2, -2}, none, (float[]){2, -2, 0, 0},
        (float[]){0, 0, 2, -2});
    expect("top:0.001", 4, (float[]){1, -3, 2, 4}, none, (float[]){0, 0, 0, 4},
        (float[]){1, -3, 2, 0});
    expect("top:1", 3, (float[]){0, -1, 3}, none, (float[]){0, -2, 2}, (float[]){0, 1, 1});
    expect("top:0.5", 4, (float[]){0, 0, 0, -1}, (float[]){0, 0, 8, 0},
        (float[]){0, 0, 4.5F, -4.5F}, (float[]){0, 0, 3.5F, 3.5F});
}

/* u is 4, 2, 4.5, and with the latest update once more 5, 4,
 * 7: the first and the last reach 4.5. */
Test(choose, adacomp_compares_the_residual_and_twice_the_update)
{
    expect("adacomp", 3, (float[]){1, 2, 2.5F}, (float[]){3, 0, 2}, (float[]){4.25F, 0, 4.25F},
        (float[]){-0.25F, 2, 0.25F});
    expect("adacomp", 3, (float[]){0, 0, 0}, (float[]){3, 0, -2}, (float[]){3, 0, 0},
        (float[]){0, 0, -2});
}

/* 1, 1/4 and -1/2 of the largest come as 1, or as 0; on average as what they are. The same key
 * gives the same. */
Test(choose, chance_is_without_bias_and_by_key)
{
    struct sgp_chooser chooser = chooser_of("terngrad");
    double sums[3] = {0};
    uint32_t others = 0;
    for (uint64_t key = 0; key < 20000; key++) {
        float values[3] = {8, 2, -4}, again[3] = {8, 2, -4}, rest[3] = {0}, twice[3] = {0};
        struct sgp_chosen chosen;
        sgp_choose(&chooser, &one_tensor, key, values, rest, 5, 3, &chosen);
        sgp_choose(&chooser, &one_tensor, key, again, twice, 5, 3, &chosen);
        cr_assert(zero(int, memcmp(values, again, sizeof values)));
        cr_assert(eq(flt, values[0], 8));
        cr_assert(values[1] == 0 || values[1] == 8);
        cr_assert(values[2] == 0 || values[2] == -8);
        others += (values[1] == 0) != (values[2] == 0);
        for (uint32_t i = 0; i < 3; i++)
            sums[i] += (double)values[i] / 20000;
    }
    cr_assert(epsilon_eq(dbl, sums[1], 2, 0.1));
    cr_assert(epsilon_eq(dbl, sums[2], -4, 0.1));
    cr_assert(epsilon_eq(dbl, others / 20000.0, 0.5, 0.02), "each value has a chance of its own");
}

Test(choose, chance_takes_one_of_the_two_levels_beside)
{
    struct sgp_chooser chooser = chooser_of("qsgd:7");
    for (uint64_t key = 0; key < 100; key++) {
        float values[4] = {7, 2.5F, -6.25F, 3}, rest[4] = {0};
        struct sgp_chosen chosen;
        sgp_choose(&chooser, &one_tensor, key, values, rest, 0, 4, &chosen);
        cr_assert(eq(flt, values[0], 7));
        cr_assert(values[1] == 2 || values[1] == 3);
        cr_assert(values[2] == -6 || values[2] == -7);
        cr_assert(eq(flt, values[3], 3));
    }
}

/* What is without bias needs no feedback; with it TernGrad diverges, for its error is greater than
 * what it rounds. */
Test(choose, chance_leaves_no_rest)
{
    struct sgp_chooser chooser = chooser_of("qsgd:1");
    float values[3] = {8, 2, -4}, rest[3] = {0};
    struct sgp_chosen chosen;
    sgp_choose(&chooser, &one_tensor, 1, values, rest, 0, 3, &chosen);
    cr_assert(zero(int, memcmp(rest, (float[3]){0}, sizeof rest)));
    cr_assert(gt(dbl, chosen.difference, 0));
}

/* ---- all of them ---- */

static const char *const words[] = {"none", "fp16", "bf16", "int8", "int6", "int4", "int4:64",
    "int2", "sign", "qsgd:1", "qsgd:7", "qsgd:31", "qsgd:127", "terngrad", "top:0.03", "top:0.5",
    "top:1", "dgc:0.001", "adacomp"};
#define WORDS (sizeof words / sizeof *words)

static void fill(float *values, uint64_t seed, float size)
{
    struct sgp_random random;
    sgp_random_init(&random, seed, 0);
    for (uint32_t i = 0; i < COUNT; i++)
        values[i] = i % 11 == 5 ? 0 : (float)sgp_random_normal(&random) * size;
}

/* What is packed comes out as it was, and takes the bytes that were told. */
static void check_packed(const struct sgp_chooser *chooser, const struct sgp_tensors *tensors,
    const float *values, uint64_t bytes)
{
    static float decoded[COUNT], projected[COUNT];
    static uint8_t packed[4 * COUNT];
    struct sgp_codec codec = {.compressor = chooser->compressor, .tensors = *tensors};
    struct sgp_decoding decoding;
    cr_assert(eq(u64, sgp_codec_project(&codec, projected, values, 0, COUNT), bytes));
    cr_assert(zero(int, memcmp(projected, values, sizeof projected)), "%s", chooser->word);
    cr_assert(eq(u64, sgp_codec_pack(&codec, packed, values, 0, COUNT), bytes));
    enum sgp_coding coding = sgp_coding_of(chooser->compressor);
    memcpy(sgp_decoding_begin(&decoding, coding, decoded, COUNT, bytes), packed, bytes);
    sgp_decoding_go_on(&decoding, bytes);
    cr_assert(not(decoding.malformed));
    cr_assert(zero(int, memcmp(decoded, values, sizeof decoded)), "%s", chooser->word);
}

Test(choose, what_is_chosen_is_packed_without_loss_and_the_rest_stays)
{
    static const struct sgp_tensor_end ends[] = {{400, true}, {430, false}, {COUNT, true}};
    static const struct sgp_tensors tensors[] = {{0}, {ends, 3}};
    static const float sizes[] = {1, 1e-20F, 1e30F, 1e-42F, 0};
    static float values[COUNT], rest[COUNT], whole[COUNT];
    for (size_t w = 0; w < WORDS * 10; w++) {
        struct sgp_chooser chooser = chooser_of(words[w % WORDS]);
        const struct sgp_tensors *parts = &tensors[w / WORDS % 2];
        struct sgp_chosen chosen;
        fill(values, w, sizes[w / WORDS / 2]);
        fill(rest, w + 1000, sizes[w / WORDS / 2]);
        for (uint32_t i = 0; i < COUNT; i++)
            whole[i] = values[i] + rest[i];
        sgp_choose(&chooser, parts, w, values, rest, 0, COUNT, &chosen);
        check_packed(&chooser, parts, values, chosen.bytes);
        for (uint32_t i = 0; i < COUNT && chooser.choice != SGP_CHOICE_CHANCE; i++)
            cr_assert(eq(flt, rest[i], whole[i] - values[i]), "%s [%u]", chooser.word, i);
    }
}

/* A range begins a block, wherever it lies: two ranges are as each alone. */
Test(choose, ranges_are_chosen_apart)
{
    static float all[COUNT], rest[COUNT], part[300], kept[300];
    for (size_t w = 0; w < WORDS; w++) {
        struct sgp_chooser chooser = chooser_of(words[w]);
        struct sgp_chosen chosen;
        fill(all, w, 1);
        memset(rest, 0, sizeof rest);
        memset(kept, 0, sizeof kept);
        memcpy(part, all + 400, sizeof part);
        sgp_choose(&chooser, &one_tensor, 3, part, kept, 400, 300, &chosen);
        sgp_choose(&chooser, &one_tensor, 3, all, rest, 0, 400, &chosen);
        sgp_choose(&chooser, &one_tensor, 3, all + 400, rest + 400, 400, 300, &chosen);
        cr_assert(zero(int, memcmp(part, all + 400, sizeof part)));
        cr_assert(zero(int, memcmp(kept, rest + 400, sizeof kept)));
    }
}

/* Biases travel as 16-bit floats, whatever the chooser. */
Test(choose, small_tensors_are_not_thinned_out)
{
    static const struct sgp_tensor_end ends[] = {{4, false}};
    static const struct sgp_tensors biases = {ends, 1};
    struct sgp_chooser chooser = chooser_of("top:0.25");
    float values[4] = {100, 1, 0.5F, 0.25F}, rest[4] = {0};
    struct sgp_chosen chosen;
    sgp_choose(&chooser, &biases, 0, values, rest, 0, 4, &chosen);
    cr_assert(zero(int, memcmp(values, (float[]){100, 1, 0.5F, 0.25F}, sizeof values)));
    cr_assert(zero(int, memcmp(rest, (float[4]){0}, sizeof rest)));
    cr_assert(eq(u64, chosen.bytes, 12));
}

/* An update that is no number is refused where it arrives, and the next one is as any. */
Test(choose, what_is_not_finite_leaves_no_rest)
{
    for (size_t w = 1; w < WORDS; w++) {
        struct sgp_chooser chooser = chooser_of(words[w]);
        float values[4] = {1, INFINITY, NAN, -2}, rest[4] = {0, 1, 1, 0};
        struct sgp_chosen chosen;
        sgp_choose(&chooser, &one_tensor, 0, values, rest, 0, 4, &chosen);
        cr_assert(isinf(values[1]) && isnan(values[2]), "%s", words[w]);
        for (uint32_t i = 0; i < 4; i++)
            cr_assert(isfinite(rest[i]), "%s", words[w]);
    }
}

Test(choose, without_a_chooser_all_of_the_rest_goes)
{
    expect("none", 2, (float[]){1, 2}, (float[]){0.5F, -4}, (float[]){1.5F, -2}, (float[]){0, 0});
}

Test(choose, the_sums_say_how_much_is_left_out)
{
    struct sgp_chooser chooser = chooser_of("top:0.5");
    float values[4] = {4, 0, 3, 0}, rest[4] = {0};
    struct sgp_chosen chosen;
    sgp_choose(&chooser, &one_tensor, 0, values, rest, 0, 4, &chosen);
    cr_assert(eq(dbl, chosen.norm, 25));
    cr_assert(eq(dbl, chosen.difference, 0.5));
}
