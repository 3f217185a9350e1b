/* SPDX-License-Identifier: Apache-2.0 */
/* Distances of words; see text.h. */
#include "base/text.h"

#include <stdbool.h>
#include <string.h>

static bool alike(char a, char b)
{
    unsigned char x = (unsigned char)a, y = (unsigned char)b;
    unsigned char lower_x = x >= 'A' && x <= 'Z' ? (unsigned char)(x + 'a' - 'A') : x;
    unsigned char lower_y = y >= 'A' && y <= 'Z' ? (unsigned char)(y + 'a' - 'A') : y;
    return lower_x == lower_y;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned sgp_text_distance(const char *a, const char *b)
{
    unsigned rows[3][SGP_WORD_BYTES]; /* of the prefixes of a that end at i - 2, i - 1 and i */
    size_t rows_count = strlen(a), columns = strlen(b);
    if (rows_count >= SGP_WORD_BYTES || columns >= SGP_WORD_BYTES)
        return SGP_WORD_BYTES;
    for (unsigned j = 0; j <= columns; j++)
        rows[0][j] = j;
    for (unsigned i = 1; i <= rows_count; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            unsigned best = above[j - 1] + !alike(a[i - 1], b[j - 1]);
            best = least(best, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && alike(a[i - 1], b[j - 2]) && alike(a[i - 2], b[j - 1]))
                best = least(best, two_above[j - 2] + 1);
            row[j] = best;
        }
    }
    return rows[rows_count % 3][columns];
}
