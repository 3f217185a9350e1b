/* SPDX-License-Identifier: Apache-2.0 */
/* Parses texts from the command line. */
#include "ctl.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool ctl_text_u64(const char *text, uint64_t *ret_number)
{
    if (text[0] < '0' || text[0] > '9')
        return false;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (*end != '\0' || errno != 0)
        return false;
    *ret_number = number;
    return true;
}

bool ctl_text_real(const char *text, double *ret_number)
{
    if (text[0] == '\0' || strchr(" \t\n\v\f\r", text[0]))
        return false;
    char *end;
    double number = strtod(text, &end);
    if (*end != '\0' || !isfinite(number))
        return false;
    *ret_number = number;
    return true;
}

bool ctl_ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && strcmp(text + length - end_length, end) == 0;
}
