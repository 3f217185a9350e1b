/* SPDX-License-Identifier: Apache-2.0 */
/* The event journal (sgp/journal.h) and the trace of this process. Each is appended to a file of
 * its own if the configuration names one.
 *
 * A record is written with one write, before the step that it describes, and is not synced. A
 * killed process loses at most the record being written. A machine that loses power may lose
 * seconds. If a write fails later, that is reported once, and the file is not written any more;
 * training continues.
 *
 * Fails: only at the start, with one line. Thread: the loop thread. */
#ifndef SGPD_RECORDER_H
#define SGPD_RECORDER_H

#include "setup/config.h"

#include "sgp/journal.h"

#include <sys/types.h>

struct recorder_file {
    const char *path; /* borrowed; NULL: not wanted, or no longer written */
    const char *key;  /* of the configuration, for messages */
    int descriptor;
    off_t end; /* of the complete records */
};

struct recorder {
    struct recorder_file journal_file, trace_file;
    struct sgp_journal journal;
    struct sgp_sink trace;      /* pass &trace to the driver */
    const struct sgp_sink *log; /* borrowed; gets the trace, too, if it wants it */
};

/* Open the files that are wanted, and write the initial state of the node. On failure no file is
 * left open. */
int recorder_open(struct recorder *recorder, const struct config *config,
    const struct sgp_node_config *node, sgp_time now, const struct sgp_sink *log,
    struct sgp_error *error);
void recorder_event(struct recorder *recorder, const struct sgp_event *event);
void recorder_reload(struct recorder *recorder, sgp_time now, const struct sgp_node_change *change);
void recorder_close(struct recorder *recorder); /* an all-zero struct is fine */

#endif
