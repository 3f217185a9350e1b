/* SPDX-License-Identifier: Apache-2.0 */
/* The destination of lines that library code writes for people. Library code never prints
 * itself. */
#ifndef SGP_SINK_H
#define SGP_SINK_H

#include "sgp/types.h"

enum sgp_level {
    SGP_LEVEL_ERROR = 1,
    SGP_LEVEL_WARNING,
    SGP_LEVEL_INFO,
    SGP_LEVEL_DEBUG,
    SGP_LEVEL_TRACE
};

struct sgp_sink {
    /* One line, no newline, valid during the call only. */
    void (*line)(void *context, enum sgp_level level, const char *text);
    void *context;
    enum sgp_level level; /* less important lines are not formatted */
};

/* Whether the sink wants a line of this level; sink may be NULL. Ask before formatting. */
bool sgp_sink_wants(const struct sgp_sink *sink, enum sgp_level level);

/* Format and deliver one line if wanted; cut at SGP_TEXT_BYTES; control characters become '?'. */
void sgp_log(const struct sgp_sink *sink, enum sgp_level level, const char *format, ...)
    SGP_PRINTF(3, 4);

#endif
