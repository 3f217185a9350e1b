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

/* U+0080 to U+009F are two bytes in UTF-8. */
void sgp_text_clean(char *text)
{
    const unsigned char *from = (const unsigned char *)text;
    for (; *from != '\0'; from++) {
        const bool wide = from[0] == 0xc2 && from[1] >= 0x80 && from[1] <= 0x9f;
        *text++ = wide || *from < 0x20 || *from == 0x7f ? '?' : (char)*from;
        from += wide;
    }
    *text = '\0';
}

#undef sgp_fail /* the macro of scripts/analysers.h */
int sgp_fail(struct sgp_error *error, int code, const char *format, ...)
{
    sgp_assert(code < 0);
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
