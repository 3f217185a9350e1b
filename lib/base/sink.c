/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for people, delivered to the sinks that asked for them.
 *
 * Any thread that the sink's owner allows. Nothing here keeps state. */
#include "sgp/sink.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

bool sgp_sink_wants(const struct sgp_sink *sink, enum sgp_level level)
{
    return sink && sink->line && level <= sink->level;
}

void sgp_log(const struct sgp_sink *sink, enum sgp_level level, const char *format, ...)
{
    if (!sgp_sink_wants(sink, level))
        return;
    char text[SGP_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    sgp_text_clean(text);
    sink->line(sink->context, level, text);
}
