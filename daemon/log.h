/* SPDX-License-Identifier: Apache-2.0 */
/* Where the daemon's lines go: standard error, one write a line, `key=value` in a fixed order.
 *
 * Under systemd (JOURNAL_STREAM names standard error) a line begins with its priority, "<6>", and
 * the journal adds time and process. Elsewhere it begins with the time and the level:
 *     2024-05-01T12:00:00.123Z info node=n0 event=round round=17 weight=1
 * Callers write the part from `event=` on with sgp_log(&log.sink, ...); a value with spaces goes in
 * double quotes. A line that nobody takes just now is lost: training does not wait for a reader. The
 * next that is taken follows a line that counts them (event=lost lines=N).
 *
 * Thread: any. */
#ifndef SGPD_LOG_H
#define SGPD_LOG_H

#include "sgp/sink.h"

struct log {
    struct sgp_sink sink; /* hand out &log.sink */
    int descriptor;
    bool journal;
    char node[SGP_NAME_BYTES];
    _Atomic unsigned lost; /* lines since the last that was written */
};

/* `node` is the name that every line carries; "" leaves it out. */
void log_init(struct log *log, enum sgp_level level, const char *node);

/* As log_init, to another descriptor and with the kind of line given. */
void log_init_to(
    struct log *log, enum sgp_level level, const char *node, int descriptor, bool journal);

#endif
