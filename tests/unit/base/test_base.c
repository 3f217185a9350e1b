/* SPDX-License-Identifier: Apache-2.0 */
/* The base room: texts of errors, published random streams, sinks, the order of the event queue. */
#include "base/queue.h"
#include "base/text.h"
#include "sgp/random.h"
#include "sgp/sink.h"
#include "sgp/status.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

Test(status, every_code_has_its_own_text)
{
    cr_assert(eq(str, (char *)sgp_strerror(0), "no error"));
    cr_assert(eq(str, (char *)sgp_strerror(-ENOENT), "No such file or directory"));
    cr_assert(eq(str, (char *)sgp_strerror(SGP_E_SYNTAX), "the text cannot be parsed"));
    cr_assert(eq(str, (char *)sgp_strerror(SGP_E_CLOSED), "the connection was closed"));
    cr_assert(eq(str, (char *)sgp_strerror(-999999), "unknown error"));
    cr_assert(eq(str, (char *)sgp_strerror(5), "unknown error"));
    for (int a = SGP_E_CLOSED; a <= SGP_E_SYNTAX; a++)
        for (int b = a + 1; b <= SGP_E_SYNTAX; b++)
            cr_assert(ne(str, (char *)sgp_strerror(a), (char *)sgp_strerror(b)));
}

Test(status, the_first_error_stays_and_cannot_forge_lines)
{
    struct sgp_error error = {0};
    cr_assert(
        eq(int, sgp_fail(&error, SGP_E_DATA, "row %d: %s", 7, "a\nb\x1b[31m\x7f"), SGP_E_DATA));
    cr_assert(eq(str, error.text, "row 7: a?b?[31m?"));
    cr_assert(eq(int, sgp_fail(&error, SGP_E_CONFIG, "later"), SGP_E_CONFIG));
    cr_assert(eq(int, error.code, SGP_E_DATA));
    cr_assert(eq(str, error.text, "row 7: a?b?[31m?"));
    cr_assert(eq(int, sgp_fail(NULL, -ENOMEM, "nobody listens"), -ENOMEM));
}

Test(status, a_failure_with_the_code_of_success_is_a_programmers_error, .signal = SIGABRT)
{
    (void)sgp_fail(NULL, 0, "nothing failed");
}

/* A terminal takes U+009B for the beginning of a sequence, as ESC [. */
Test(text, control_characters_beyond_ascii_are_replaced_and_letters_stay)
{
    char text[] = "a\xc2\x9b"
                  "31m\xc2\x80\xc2\x9f\xc2\xa0\xc3\x9f\xe2\x82\xac\xf0\x9f\x8e\x82\xc2";
    sgp_text_clean(text);
    cr_assert(eq(str, text, "a?31m??\xc2\xa0\xc3\x9f\xe2\x82\xac\xf0\x9f\x8e\x82\xc2"));
}

Test(text, distances_of_words_are_known)
{
    const struct {
        const char *a, *b;
        unsigned distance;
    } cases[] = {{"", "", 0}, {"", "tls", 3}, {"tls", "tls", 0}, {"tsl", "tls", 1},
        {"TLS", "tls", 0}, {"adress", "address", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3},
        {"flaw", "lawn", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_expect(eq(u32, sgp_text_distance(cases[i].a, cases[i].b), cases[i].distance));
        cr_expect(eq(u32, sgp_text_distance(cases[i].b, cases[i].a), cases[i].distance));
    }
    char longest[SGP_WORD_BYTES + 1];
    memset(longest, 'a', SGP_WORD_BYTES);
    longest[SGP_WORD_BYTES] = '\0';
    cr_expect(eq(u32, sgp_text_distance(longest, longest), SGP_WORD_BYTES));
    cr_expect(zero(u32, sgp_text_distance(longest + 1, longest + 1)));
}

Test(status, a_long_text_is_cut)
{
    struct sgp_error error = {0};
    (void)sgp_fail(&error, SGP_E_DATA, "%600s", "end");
    cr_assert(eq(sz, strlen(error.text), SGP_TEXT_BYTES - 1));
}

Test(status, a_true_assertion_passes)
{
    sgp_assert(1 + 1 == 2);
}

Test(status, a_false_assertion_aborts, .signal = SIGABRT)
{
    sgp_assert(1 + 1 == 3);
}

Test(random, the_generator_gives_the_published_stream)
{
    static const uint64_t expected[] = {41943041, 58720359, UINT64_C(3588806011781223),
        UINT64_C(3591011842654386), UINT64_C(9228616714210784205), UINT64_C(9973669472204895162),
        UINT64_C(14011001112246962877), UINT64_C(12406186145184390807),
        UINT64_C(15849039046786891736), UINT64_C(10450023813501588000)};
    struct sgp_random random = {.state = {1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        cr_assert(eq(u64, sgp_random_next(&random), expected[i]));
}

Test(random, seed_and_stream_both_matter_and_do_not_commute)
{
    struct sgp_random a, b, c, d;
    sgp_random_init(&a, 1, 2);
    sgp_random_init(&b, 1, 2);
    sgp_random_init(&c, 2, 1);
    sgp_random_init(&d, 1, 3);
    cr_assert(zero(int, memcmp(&a, &b, sizeof a)));
    uint64_t first = sgp_random_next(&a);
    cr_assert(ne(u64, first, sgp_random_next(&c)));
    cr_assert(ne(u64, first, sgp_random_next(&d)));
}

/* Pearson's statistic of 30,000 draws over 6 cells has 5 degrees of freedom: 20.5 is the 0.1% point.
 * The seed is fixed, so this cannot come and go. */
Test(random, below_is_uniform_and_in_range)
{
    struct sgp_random random;
    sgp_random_init(&random, 42, 0);
    double seen[6] = {0}, statistic = 0;
    for (int i = 0; i < 30000; i++)
        seen[sgp_random_below(&random, 6)]++;
    for (int i = 0; i < 6; i++)
        statistic += (seen[i] - 5000) * (seen[i] - 5000) / 5000;
    cr_assert(lt(dbl, statistic, 20.5));
    for (int i = 0; i < 100; i++)
        cr_assert(zero(u64, sgp_random_below(&random, 1)));
}

Test(random, double_and_normal_have_their_moments)
{
    struct sgp_random random;
    sgp_random_init(&random, 7, 0);
    double uniform = 0, mean = 0, square = 0;
    const int draws = 100000;
    for (int i = 0; i < draws; i++) {
        double u = sgp_random_double(&random), z = sgp_random_normal(&random);
        cr_assert(u >= 0.0 && u < 1.0);
        uniform += u / draws;
        mean += z / draws;
        square += z * z / draws;
    }
    /* Four standard errors each: sqrt(1/12), 1 and sqrt(2), over sqrt(100000). */
    cr_assert(lt(dbl, fabs(uniform - 0.5), 4 * 0.2887 / 316.2));
    cr_assert(lt(dbl, fabs(mean), 4 / 316.2));
    cr_assert(lt(dbl, fabs(square - 1.0), 4 * 1.4143 / 316.2));
}

Test(random, shuffle_permutes_and_every_order_comes_equally_often)
{
    struct sgp_random random;
    sgp_random_init(&random, 3, 0);
    double seen[27] = {0}, statistic = 0;
    for (int i = 0; i < 6000; i++) {
        uint32_t v[3] = {0, 1, 2};
        sgp_random_shuffle(&random, v, 3);
        cr_assert(eq(u32, (1u << v[0]) | (1u << v[1]) | (1u << v[2]), 7));
        seen[v[0] * 9 + v[1] * 3 + v[2]]++;
    }
    for (int i = 0; i < 27; i++)
        statistic += seen[i] > 0 ? (seen[i] - 1000) * (seen[i] - 1000) / 1000 : 0;
    cr_assert(lt(dbl, statistic, 20.5));
}

struct heard {
    int count;
    enum sgp_level level;
    char text[SGP_TEXT_BYTES];
};

static void hear(void *context, enum sgp_level level, const char *text)
{
    struct heard *heard = context;
    heard->count++;
    heard->level = level;
    strcpy(heard->text, text);
}

Test(sink, wanted_lines_arrive_and_others_are_not_formatted)
{
    struct heard heard = {0};
    struct sgp_sink sink = {.line = hear, .context = &heard, .level = SGP_LEVEL_INFO};
    sgp_log(&sink, SGP_LEVEL_DEBUG, "%s", "hidden");
    cr_assert(zero(int, heard.count));
    sgp_log(&sink, SGP_LEVEL_INFO, "round=%d\n", 5);
    cr_assert(eq(int, heard.count, 1));
    cr_assert(eq(str, heard.text, "round=5?"));
    cr_assert(eq(int, (int)heard.level, SGP_LEVEL_INFO));
    cr_assert(not(sgp_sink_wants(NULL, SGP_LEVEL_ERROR)));
    sgp_log(NULL, SGP_LEVEL_ERROR, "nobody");
}

static int by_time_then_item(const void *a, const void *b)
{
    const struct sgp_queue_entry *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

/* Items are numbered in the order of their pushes, so a stable sort is the reference. */
Test(queue, pops_like_a_stable_sort)
{
    enum { count = 10000 };
    static struct sgp_queue_entry expected[count];
    struct sgp_random random;
    sgp_random_init(&random, 11, 0);
    struct sgp_queue queue;
    cr_assert(zero(int, sgp_queue_init(&queue, 0)));
    cr_assert(eq(i64, sgp_queue_next(&queue), SGP_TIME_NEVER));
    for (uint64_t i = 0; i < count; i++) {
        expected[i].time = (sgp_time)sgp_random_below(&random, 500);
        expected[i].item = i;
        cr_assert(zero(int, sgp_queue_push(&queue, expected[i].time, i)));
    }
    qsort(expected, count, sizeof *expected, by_time_then_item);
    for (size_t i = 0; i < count; i++) {
        cr_assert(eq(i64, sgp_queue_next(&queue), expected[i].time));
        cr_assert(eq(u64, sgp_queue_pop(&queue).item, expected[i].item));
    }
    cr_assert(zero(u32, queue.count));
    sgp_queue_finish(&queue);
}

/* The first of the least time, by looking at all; what was popped has no time any more. */
static size_t find_first(const struct sgp_queue_entry *entries, size_t count)
{
    size_t first = 0;
    for (size_t i = 1; i < count; i++)
        if (entries[i].time < entries[first].time)
            first = i;
    return first;
}

/* As a simulation does: most of what is pushed is due soon, much at one moment, some of it now. */
Test(queue, pushes_between_pops_keep_the_order)
{
    enum { count = 6000 };
    static struct sgp_queue_entry entries[count];
    static const uint64_t spans[] = {1, 2, 100, 1 << 20, (uint64_t)1 << 40};
    struct sgp_queue queue;
    cr_assert(zero(int, sgp_queue_init(&queue, 1)));
    struct sgp_random random;
    sgp_random_init(&random, 12, 0);
    sgp_time now = 0;
    for (size_t born = 0, popped = 0; popped < count; popped++) {
        for (int i = 0; (i < 2 || born == popped) && born < count; i++, born++) {
            uint64_t span = spans[sgp_random_below(&random, sizeof spans / sizeof *spans)];
            entries[born].time = now + (sgp_time)sgp_random_below(&random, span);
            entries[born].item = born;
            cr_assert(zero(int, sgp_queue_push(&queue, entries[born].time, born)));
        }
        size_t first = find_first(entries, born);
        now = entries[first].time;
        cr_assert(eq(i64, sgp_queue_next(&queue), now));
        cr_assert(eq(u64, sgp_queue_pop(&queue).item, first));
        entries[first].time = SGP_TIME_NEVER;
    }
    cr_assert(zero(u32, queue.count));
    sgp_queue_finish(&queue);
}

Test(queue, pushing_into_the_past_is_a_programmers_error, .signal = SIGABRT)
{
    struct sgp_queue queue;
    cr_assert(zero(int, sgp_queue_init(&queue, 4)));
    cr_assert(zero(int, sgp_queue_push(&queue, 5, 0)));
    (void)sgp_queue_pop(&queue);
    (void)sgp_queue_push(&queue, 4, 0);
}

Test(queue, popping_nothing_is_a_programmers_error, .signal = SIGABRT)
{
    struct sgp_queue queue;
    cr_assert(zero(int, sgp_queue_init(&queue, 4)));
    (void)sgp_queue_pop(&queue);
}
