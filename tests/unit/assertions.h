/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions of unit tests, with the words of Criterion's criterion/new/assert.h, of which they have
 * what the tests use. An assertion of Criterion 2.4 expands to 5 KB of C, so the compiler took
 * longer for assertions than for all that they test. Also, Criterion's gt(T, a, a) holds, and its
 * reports lack the values. Criterion runs the tests. */
#ifndef SGP_TEST_ASSERT_H
#define SGP_TEST_ASSERT_H

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* What the comparison that failed last has compared. */
static char test_told[1024] __attribute__((unused));

static __attribute__((format(printf, 1, 2), noinline, unused)) bool test_tell(
    const char *format, ...)
{
    va_list values;
    va_start(values, format);
    (void)vsnprintf(test_told, sizeof test_told, format, values);
    va_end(values);
    return false;
}

/* Whether a condition of several parts holds. What a part has told is of no use then. */
static inline bool test_whole(bool holds)
{
    if (holds)
        test_told[0] = '\0';
    return holds;
}

/* Reports a failed assertion. `format` begins with an x, so that it is never empty. */
static __attribute__((format(printf, 4, 5), noinline, unused)) void test_failed(
    const char *file, unsigned line, const char *assertion, const char *format, ...)
{
    char words[1024], text[4096];
    va_list values;
    va_start(values, format);
    (void)vsnprintf(words, sizeof words, format, values);
    va_end(values);
    (void)snprintf(text, sizeof text, "%s%s%s%s%s", assertion, test_told[0] != '\0' ? ": " : "",
        test_told, words[1] != '\0' ? ": " : "", words + 1);
    struct criterion_assert_stats stats = {
        .passed = false, .message = text, .file = file, .line = line};
    criterion_send_assert(&stats);
    test_told[0] = '\0';
}

#define TEST_COMPARISON(name, operator, tag, type, format)                                         \
    static inline bool test_##name##_##tag(type a, type b)                                         \
    {                                                                                              \
        return a operator b || test_tell("%" format " and %" format, a, b);                        \
    }
#define TEST_NUMBERS(tag, type, format)                                                            \
    TEST_COMPARISON(eq, ==, tag, type, format)                                                     \
    TEST_COMPARISON(ne, !=, tag, type, format)                                                     \
    TEST_COMPARISON(lt, <, tag, type, format)                                                      \
    TEST_COMPARISON(le, <=, tag, type, format)                                                     \
    TEST_COMPARISON(gt, >, tag, type, format)                                                      \
    TEST_COMPARISON(ge, >=, tag, type, format)                                                     \
    static inline bool test_zero_##tag(type a)                                                     \
    {                                                                                              \
        return a == 0 || test_tell("%" format, a);                                                 \
    }
TEST_NUMBERS(chr, char, "d")
TEST_NUMBERS(int, int, "d")
TEST_NUMBERS(long, long, "ld")
TEST_NUMBERS(llong, long long, "lld")
TEST_NUMBERS(sz, size_t, "zu")
TEST_NUMBERS(u8, uint8_t, PRIu8)
TEST_NUMBERS(u16, uint16_t, PRIu16)
TEST_NUMBERS(u32, uint32_t, PRIu32)
TEST_NUMBERS(u64, uint64_t, PRIu64)
TEST_NUMBERS(i32, int32_t, PRId32)
TEST_NUMBERS(i64, int64_t, PRId64)
TEST_NUMBERS(flt, float, ".9g")
TEST_NUMBERS(dbl, double, ".17g")

TEST_COMPARISON(eq, ==, ptr, const void *, "p")
TEST_COMPARISON(ne, !=, ptr, const void *, "p")

static inline bool test_zero_ptr(const void *a)
{
    return a == NULL || test_tell("%p", a);
}

static inline bool test_eq_str(const char *a, const char *b)
{
    return (a != NULL && b != NULL && strcmp(a, b) == 0) ||
           test_tell("'%.480s' and '%.480s'", a != NULL ? a : "(NULL)", b != NULL ? b : "(NULL)");
}

static inline bool test_ne_str(const char *a, const char *b)
{
    return a == NULL || b == NULL || strcmp(a, b) != 0 || test_tell("'%.480s'", a);
}

/* Infinities of one sign are equal. */
#define TEST_EPSILON(tag, type, format)                                                            \
    static inline bool test_epsilon_eq_##tag(type a, type b, long double epsilon)                  \
    {                                                                                              \
        return a == b || (b - a <= epsilon && a - b <= epsilon) ||                                 \
               test_tell("%" format " and %" format " differ by more than %Lg", a, b, epsilon);    \
    }
TEST_EPSILON(flt, float, ".9g")
TEST_EPSILON(dbl, double, ".17g")

static inline bool test_ieee_ulp_eq_dbl(double a, double b, size_t ulps)
{
    double next = a;
    for (; ulps > 0 && next != b; ulps--)
        next = nextafter(next, b);
    return next == b || test_tell("%.17g and %.17g", a, b);
}

/* A condition is a comparison, or any expression that begins with a name. TEST_IS_ before it makes
 * the name of a macro, whose text begins with a comma, or else the name of none. */
#define TEST_SECOND(first, second, ...) second
#define TEST_CHOOSE(...) TEST_SECOND(__VA_ARGS__, )
#define TEST_CONDITION(condition) TEST_CONDITION_(condition)
#define TEST_CONDITION_(condition) TEST_CHOOSE(TEST_IS_##condition, (condition))
#define TEST_IS_eq(tag, ...) , test_eq_##tag(__VA_ARGS__)
#define TEST_IS_ne(tag, ...) , test_ne_##tag(__VA_ARGS__)
#define TEST_IS_lt(tag, ...) , test_lt_##tag(__VA_ARGS__)
#define TEST_IS_le(tag, ...) , test_le_##tag(__VA_ARGS__)
#define TEST_IS_gt(tag, ...) , test_gt_##tag(__VA_ARGS__)
#define TEST_IS_ge(tag, ...) , test_ge_##tag(__VA_ARGS__)
#define TEST_IS_zero(tag, ...) , test_zero_##tag(__VA_ARGS__)
#define TEST_IS_epsilon_eq(tag, ...) , test_epsilon_eq_##tag(__VA_ARGS__)
#define TEST_IS_ieee_ulp_eq(tag, ...) , test_ieee_ulp_eq_##tag(__VA_ARGS__)
#define TEST_IS_not(...) , test_whole(!TEST_INNER(__VA_ARGS__))
#define TEST_IS_any(a, b) , test_whole(TEST_INNER(a) || TEST_INNER(b))
/* A macro is not expanded inside itself, so a condition in another has macros of its own. */
#define TEST_INNER_SECOND(first, second, ...) second
#define TEST_INNER_CHOOSE(...) TEST_INNER_SECOND(__VA_ARGS__, )
#define TEST_INNER(condition) TEST_INNER_CHOOSE(TEST_IS_##condition, (condition))

#define TEST_ASSERT(fail, assertion, holds, ...)                                                   \
    do {                                                                                           \
        if (!(holds)) {                                                                            \
            test_failed(__FILE__, __LINE__, assertion, "x" __VA_ARGS__);                           \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

#undef cr_assert
#define cr_assert(...)                                                                             \
    TEST_ASSERT(criterion_abort_test, CR_STR(CR_VA_HEAD(__VA_ARGS__)),                             \
        TEST_CONDITION(CR_VA_HEAD(__VA_ARGS__)), CR_VA_TAIL(__VA_ARGS__))
#undef cr_expect
#define cr_expect(...)                                                                             \
    TEST_ASSERT(criterion_continue_test, CR_STR(CR_VA_HEAD(__VA_ARGS__)),                          \
        TEST_CONDITION(CR_VA_HEAD(__VA_ARGS__)), CR_VA_TAIL(__VA_ARGS__))
#undef cr_assert_not
#define cr_assert_not(...)                                                                         \
    TEST_ASSERT(criterion_abort_test, "not " CR_STR(CR_VA_HEAD(__VA_ARGS__)),                      \
        !(CR_VA_HEAD(__VA_ARGS__)), CR_VA_TAIL(__VA_ARGS__))
#undef cr_assert_null
#define cr_assert_null(...)                                                                        \
    TEST_ASSERT(criterion_abort_test, CR_STR(CR_VA_HEAD(__VA_ARGS__)) " is NULL",                  \
        (CR_VA_HEAD(__VA_ARGS__)) == NULL, CR_VA_TAIL(__VA_ARGS__))
#undef cr_assert_not_null
#define cr_assert_not_null(...)                                                                    \
    TEST_ASSERT(criterion_abort_test, CR_STR(CR_VA_HEAD(__VA_ARGS__)) " is not NULL",              \
        (CR_VA_HEAD(__VA_ARGS__)) != NULL, CR_VA_TAIL(__VA_ARGS__))
#undef cr_fatal
#define cr_fatal(...) TEST_ASSERT(criterion_abort_test, "never reached", false, __VA_ARGS__)

#endif
