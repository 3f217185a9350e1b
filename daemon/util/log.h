/* SPDX-License-Identifier: Apache-2.0 */
/* Where the daemon's lines go: one write a line, `key=value` in a fixed order.
 *
 * Under systemd (JOURNAL_STREAM names standard error) they go to the journal, with fields taken
 * from the line: SGP_NODE, SGP_EVENT, SGP_ROUND, SGP_PEER. This is the journal's native protocol, a
 * datagram a line, and not sd_journal_send, which waits for a journal that has fallen behind.
 * Without its socket, lines go to standard error behind their priority, "<6>". Without systemd time
 * and level come first:
 *     2024-05-01T12:00:00.123Z info node=n0 event=round round=17 weight=1
 * Callers write the part from `event=` on with sgp_log(&log.sink, ...), a value with spaces in
 * double quotes. A line that nobody takes just now is lost, for training does not wait for a
 * reader. The next one follows a line that counts them (event=lost lines=N). Thread: any. */
#ifndef SGPD_LOG_H
#define SGPD_LOG_H

#include "sgp/sink.h"

enum log_form {
    LOG_PLAIN,    /* time and level first */
    LOG_PRIORITY, /* <6> first */
    LOG_JOURNAL,  /* a datagram of fields */
};

struct log {
    struct sgp_sink sink; /* hand out &log.sink */
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
