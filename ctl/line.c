/* SPDX-License-Identifier: Apache-2.0 */
/* A line of a configuration; see line.h. */
#include "line.h"

#include <string.h>

#define LINE_BYTES_MAX 197u /* of inih, without the end of the line */

/* The bytes that are left for the value. */
static size_t room(const char *key)
{
    return LINE_BYTES_MAX - strlen(key) - strlen(" = ");
}

/* Whether no letter of the value is cut or refused. */
static bool survives(const char *value)
{
    const size_t length = strlen(value);
    bool whole = length > 0 && value[0] != ' ' && value[0] != '#' && value[0] != ';' &&
                 value[length - 1] != ' ';
    for (size_t i = 0; i < length; i++)
        whole = whole && (unsigned char)value[i] >= ' ' && value[i] != 0x7f &&
                !(value[i] == ' ' && (value[i + 1] == '#' || value[i + 1] == ';'));
    return whole;
}

bool ctl_line_holds(const char *key, const char *value)
{
    return strlen(value) <= room(key) && survives(value);
}

enum ctl_exit ctl_line_check(
    struct ctl *ctl, const char *option, const char *key, const char *value)
{
    if (strlen(value) > room(key))
        return ctl_usage(ctl,
            "%s: '%.80s...' is too long for a configuration, which takes %zu bytes there; "
            "use a shorter one",
            option, value, room(key));
    return survives(value) ? CTL_DONE
                           : ctl_usage(ctl,
                                 "%s: '%s' cannot be written into a configuration, where a line "
                                 "ends at a blank before # or ; and has no control character; "
                                 "use another",
                                 option, value);
}
