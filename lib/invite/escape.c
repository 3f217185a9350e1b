/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of several lines as strings of messages, which have no control characters: the percent
 * encoding of RFC 3986, section 2.1, of all bytes but printable ASCII, and of '%'. */
#include "sgp/invitation.h"

#include <stdlib.h>
#include <string.h>

static bool is_plain(char byte)
{
    return byte >= ' ' && byte <= '~' && byte != '%';
}

char *sgp_joined_escape(const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t bytes = 1;
    for (const char *at = text; *at != '\0'; at++)
        bytes += is_plain(*at) ? 1 : 3;
    char *escaped = malloc(bytes), *end = escaped;
    for (const char *at = text; escaped != NULL && *at != '\0'; at++) {
        const uint8_t byte = (uint8_t)*at;
        *end++ = is_plain(*at) ? *at : '%';
        if (!is_plain(*at)) {
            *end++ = digits[byte >> 4];
            *end++ = digits[byte & 15];
        }
    }
    if (escaped != NULL)
        *end = '\0';
    return escaped;
}

static int digit_of(char letter)
{
    if (letter >= '0' && letter <= '9')
        return letter - '0';
    return letter >= 'A' && letter <= 'F' ? letter - 'A' + 10 : -1;
}

bool sgp_joined_unescape(char *text)
{
    char *into = text;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at != '%') {
            *into++ = *at;
            continue;
        }
        const int high = digit_of(at[1]), low = high < 0 ? -1 : digit_of(at[2]);
        if (low < 0 || 16 * high + low == 0)
            return false;
        *into++ = (char)(16 * high + low);
        at += 2;
    }
    *into = '\0';
    return true;
}

uint32_t sgp_joined_piece(
    const char *texts, uint32_t bytes, uint32_t first, char ret_piece[SGP_JOINED_PIECE_MAX + 1])
{
    const uint32_t left = first < bytes ? bytes - first : 0;
    const uint32_t count = left < SGP_JOINED_PIECE_MAX ? left : SGP_JOINED_PIECE_MAX;
    memcpy(ret_piece, texts + (count > 0 ? first : 0), count);
    ret_piece[count] = '\0';
    return count;
}
