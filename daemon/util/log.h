/* SPDX-License-Identifier: Apache-2.0 */
/* Where the daemon writes its lines: one write a line, `key=value` in a fixed order.
 *
 * Under systemd (JOURNAL_STREAM names standard error) they go to the journal, with fields taken
 * from the line: SGP_NODE, SGP_EVENT, SGP_ROUND, SGP_PEER. This uses the journal's native protocol,
 * one datagram a line. sd_journal_send is not used, because it waits for a journal that is behind.
 * Without the journal's socket, lines go to standard error after their priority, "<6>". Without
 * systemd, time and level come first:
 *
 *     2024-05-01T12:00:00.123Z info node=n0 event=round round=17 weight=1
 *
 * Callers write the part from `event=` on with sgp_log(&log.sink, ...), a value with spaces in
 * double quotes. If the reader cannot take a line at once, the line is lost, because training does
 * not wait for a reader. A line that counts the lost lines (event=lost lines=N) precedes the next
 * one. Thread: any. */
#ifndef SGPD_LOG_H
#define SGPD_LOG_H

#include "sgp/sink.h"

enum log_form {
    LOG_PLAIN,    /* time and level first */
    LOG_PRIORITY, /* <6> first */
    LOG_JOURNAL,  /* a datagram of fields */
};

struct log {
    struct sgp_sink sink; /* pass &log.sink to callers */
    int descriptor;
    enum log_form form;
    char node[SGP_NAME_BYTES];
    _Atomic unsigned lost; /* lines since the last that was written */
};

/* `node` is the name that every line carries; "" leaves it out. */
void log_init(struct log *log, enum sgp_level level, const char *node);

/* As log_init, to another descriptor and in a given form. */
void log_init_to(
    struct log *log, enum sgp_level level, const char *node, int descriptor, enum log_form form);

#endif
