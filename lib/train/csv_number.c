/* SPDX-License-Identifier: Apache-2.0 */
/* Fields as numbers, and missing fields; see csv.h. Pure. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"

/* Products of two doubles are rounded once. */
_Static_assert(FLT_EVAL_METHOD == 0, "double arithmetic must be done in double precision");

#define EXACT_MOST ((uint64_t)1 << 53) /* each whole number up to this is a double */
#define DIGITS_MOST 19                 /* as many digits fit 64 bits */
#define POWER_MOST 22                  /* 10^22 is the greatest power of ten that is a double */
#define NUMBER_MOST 3e38               /* numbers must fit float32 */

static const char *skip_blanks(const char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    return text;
}

/* Read any number by strtod, which would also accept 0x1p3, inf and nan. Nothing in this project
 * calls setlocale, so the decimal point is a point. */
static bool read_slowly(const char *begin, double *ret_number)
{
    const size_t length = strspn(begin, "+-.0123456789eE");
    if (length == 0 || *skip_blanks(begin + length) != '\0')
        return false;
    char *end;
    *ret_number = strtod(begin, &end);
    return end == begin + length && isfinite(*ret_number);
}

/* Append digits to a whole number. Returns what follows them. */
static const char *take_digits(const char *text, uint64_t *number)
{
    uint64_t value = *number;
    for (;; text++) {
        const unsigned digit = (unsigned)(unsigned char)*text - '0';
        if (digit > 9)
            break;
        value = 10 * value + digit;
    }
    *number = value;
    return text;
}

/* The power of ten behind the digits, such as e-3, and what follows it. A power that is malformed
 * or large is left to read_slowly: then *text does not end the number. */
static const char *take_power(const char *text, int *power)
{
    uint64_t value = 0;
    if (*text != 'e' && *text != 'E')
        return text;
    const bool negative = text[1] == '-';
    const char *begin = text + 1 + (negative || text[1] == '+');
    const char *end = take_digits(begin, &value);
    if (end == begin || end > begin + 2)
        return text;
    *power += negative ? -(int)value : (int)value;
    return end;
}

/* Read a number whose digits make a double w, and whose power of ten makes a double, too. Then one
 * rounding of w * 10^p or w / 10^-p gives the double nearest to the number, as strtod does (W. D.
 * Clinger, How to read floating point numbers accurately, 1990). Returns whether it is one. */
static bool read_fast(const char *text, double *ret_number)
{
    static const double powers[POWER_MOST + 1] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9,
        1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const bool negative = *text == '-';
    text += negative || *text == '+';
    uint64_t digits = 0;
    int power = 0;
    const char *end = take_digits(text, &digits);
    ptrdiff_t count = end - text;
    if (*end == '.') {
        const char *fraction = end + 1;
        end = take_digits(fraction, &digits);
        power = fraction - end < -DIGITS_MOST ? -DIGITS_MOST : (int)(fraction - end);
        count += end - fraction;
    }
    if (count == 0 || count > DIGITS_MOST || digits > EXACT_MOST)
        return false;
    end = take_power(end, &power);
    if (power < -POWER_MOST || power > POWER_MOST || *skip_blanks(end) != '\0')
        return false;
    const double whole = (double)(int64_t)digits;
    const double number = power < 0 ? whole / powers[-power] : whole * powers[power];
    *ret_number = negative ? -number : number;
    return true;
}

bool sgp_csv_number(const char *field, double *ret_number)
{
    double number;
    const char *begin = skip_blanks(field);
    if (!read_fast(begin, &number) && !read_slowly(begin, &number))
        return false;
    if (fabs(number) > NUMBER_MOST)
        return false;
    *ret_number = number;
    return true;
}

bool sgp_csv_missing(const char *field)
{
    static const char *const words[] = {"", "?", "NA", "NaN", "nan"};
    const char *begin = skip_blanks(field);
    if ((*begin >= '0' && *begin <= '9') || *begin == '-')
        return false;
    size_t length = strlen(begin);
    while (length > 0 && (begin[length - 1] == ' ' || begin[length - 1] == '\t'))
        length--;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i]) == length && strncmp(begin, words[i], length) == 0)
            return true;
    }
    return false;
}
