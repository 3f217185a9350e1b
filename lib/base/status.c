/* SPDX-License-Identifier: Apache-2.0 */
/* Error codes and their texts, the one line for a failure, and the assertion that is always on.
 *
 * Any thread: nothing here keeps state. Only sgp_assert_failed prints, and it does not return. */
#include "sgp/status.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *sgp_strerror(int code)
{
    switch (code) {
#define X(name, number, text)                                                                      \
    case SGP_E_##name:                                                                             \
        return text;
        SGP_STATUS_TABLE(X)
#undef X
    default:
        break;
    }
    if (code == 0)
        return "no error";
    if (code == -ELOOP) /* from O_NOFOLLOW, in the state directory */
        return "it is a symbolic link, which is not followed here";
    /* unlike strerror, this function never writes to a buffer */
    const char *text = code < 0 && code > -4096 ? strerrordesc_np(-code) : NULL;
    return text ? text : "unknown error";
}

void sgp_text_clean(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++)
        if (*c < 0x20 || *c == 0x7f)
            *c = '?';
}

#undef sgp_fail /* the macro of scripts/clang-tidy.h */
int sgp_fail(struct sgp_error *error, int code, const char *format, ...)
{
    if (!error || error->code != 0)
        return code;
    error->code = code;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    sgp_text_clean(error->text);
    return code;
}

void sgp_assert_failed(const char *expression, const char *file, int line)
{
    (void)fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, expression);
    abort();
}
